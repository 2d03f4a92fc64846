/* SPDX-License-Identifier: BSD-3-Clause */
/* End-to-end credits as requester: what RequesterRecvControl takes from AETHs, what
 * RequesterTransControl sends with them and without (C9-144, C9-153 to C9-164). */
#include "recv_fixture.h"

/* ---- sending ---- */

/* RequesterRecvControl's part when an AETH gives that LSN. */
static void credits_come(uint32_t lsn)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME | (lsn & PSN_MASK);
	wake_sender_of(0);
}

/* The packets that go now; the last one asks for an acknowledgement. */
static void assert_packets(unsigned n)
{
	struct packet p = {0};

	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), n);
	while (n--)
		assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(p.headers.ackreq, 1);
}

static void assert_limited(void)
{
	rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_CREDIT);
}

/* One packet goes, and asks; its ACK says that it has taken a receive: then the rest goes. */
TEST(c9_162__limited_send_of_several_packets)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	send_request(0, USER_SEND, 3 * FX_MTU, 0);
	send_request(0, USER_SEND, 8, 0);
	assert_packets(1);
	assert_limited();
	wake_sender_of(0); /* by something else */
	assert_limited();
	acknowledge_all(0);
	wake_sender_of(0);
	assert_packets(3); /* and the next, limited itself */
	send_request(0, USER_SEND, 8, 0);
	assert_limited();
}

/* It stops in the middle for want of room, and stays limited. */
TEST(c9_163__limited_write_in_two_turns)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	fx_fill(CHANNEL_RTC_RPG, 1);
	send_request(0, USER_RDMA_WRITE_IMM, 2 * FX_MTU, 0);
	send_request(0, USER_SEND, 8, 0);
	rtc_poll(fx->e);
	fx_unfill(CHANNEL_RTC_RPG);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	assert_packets(1);
	assert_limited();
}

/* ---- receiving ---- */

static void assert_lsn(uint32_t lsn)
{
	assert_int_equal(fx->qp[0]->rrc.credits, CREDITS_CAME | (lsn & PSN_MASK));
}

TEST(c9_164__initial_credits_while_still_in_rtr)
{
	fx->qp[0]->rrc.credits = 0;
	fx->qp[0]->state = QP_RTR;
	respond(0, 12345, aeth_ack(3), 7); /* cannot be ours */
	assert_int_equal(fx->qp[0]->rrc.credits, 0);
	respond(0, 12345, aeth_nak(AETH_NAK_SEQUENCE), 0);
	assert_int_equal(fx->qp[0]->rrc.credits, 0);
	respond(0, 12345, aeth_ack(3), 0);
	assert_lsn(3);
	fx_assert_counter(drop_qp_state, 3);
}

TEST(c9_164__retransmission_needs_no_credit)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	send_request(0, USER_SEND, 2 * FX_MTU, 0);
	sent();
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_CREDIT);
	expire(0, TIMER_LOSS);
	assert_retransmission(WIRE_RC_SEND_FIRST, P(0));
	assert_no_retransmission();
	respond(0, P(0), aeth_ack(0), 0); /* the one receive that there was is taken */
	sent();
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 1);
	respond(0, P(1), aeth_ack(0), 1);
	fx_assert_cqe(USER_SEND, 0);
}

/* The additions begin again with each newer LSN, as the standard's note 11 says. */
TEST(c9_161__newer_lsn_replaces_the_older)
{
	credits_come(1);
	send_request(0, USER_RDMA_WRITE, 8, 0);
	send_request(0, USER_RDMA_WRITE, 8, 0);
	assert_packets(2);
	assert_int_equal(fx->qp[0]->rtc.lsn, 3);
	credits_come(2); /* MSN 1, one credit */
	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_SEND, 8, 0);
	assert_packets(1);
	assert_limited();
	credits_come(4);
	assert_packets(1);
	assert_int_equal(fx->qp[0]->rtc.limited, 0);
}

/* A peer that gives no credits may count its messages as it likes. */
TEST(c9_153__unlimited_whatever_the_msn)
{
	sends(1);
	fx->qp[0]->rrc.credits = 0;
	respond(0, P(0), aeth_ack(AETH_CREDIT_INVALID), 1000);
	assert_int_equal(fx->qp[0]->rrc.credits, CREDITS_UNLIMITED);
	fx_assert_counter(ack_msn_ahead, 0);
}
