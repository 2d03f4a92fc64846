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

TEST(c9_153__no_credits_given_send_at_will)
{
	fx->qp[0]->rrc.credits = CREDITS_UNLIMITED;
	for (unsigned i = 0; i < 20; i++)
		send_request(0, USER_SEND, 8, 0);
	assert_packets(20);
}

TEST(c9_156__before_any_credits_came)
{
	fx->qp[0]->rrc.credits = 0;
	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_SEND, 8, 0);
	assert_packets(1);
	assert_limited();
	credits_come(1); /* of the one that is out, not of the second: that is limited again */
	assert_packets(1);
	send_request(0, USER_SEND, 8, 0);
	assert_limited();
}

TEST(c9_159__what_needs_no_receive_goes_without_credit)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	send_request(0, USER_RDMA_WRITE, 3 * FX_MTU, 0);
	send_request(0, USER_RDMA_READ, 8, 0);
	send_request(0, USER_ATOMIC_FA, 8, 0);
	assert_packets(5);
	fx_assert_counter(park_credit, 0);
}

/* Each operation alone, without credit: of those that consume a receive a second one is not
 * sent. */
TEST(c9_159__operations_that_consume_a_receive)
{
	static const struct {
		uint8_t opcode;
		bool consumes;
	} rows[] = {{USER_SEND, true},		 {USER_SEND_IMM, true},	   {USER_SEND_INV, true},
		    {USER_RDMA_WRITE_IMM, true}, {USER_RDMA_WRITE, false}, {USER_RDMA_READ, false},
		    {USER_ATOMIC_CS, false},	 {USER_ATOMIC_FA, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		fx->qp[i]->rrc.credits = CREDITS_CAME;
		send_request(i, rows[i].opcode, 8, 0);
		send_request(i, rows[i].opcode, 8, 0);
		assert_packets(rows[i].consumes ? 1 : 2);
		assert_int_equal(fx->qp[i]->rtc.parked, rows[i].consumes ? PARK_CREDIT : PARK_NONE);
	}
}

TEST(c9_160__nothing_goes_past_a_limited_request)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_RDMA_WRITE, 8, 0);
	assert_packets(1);
	assert_limited();
	fx_assert_counter(park_credit, 1);
	acknowledge_all(0);
	wake_sender_of(0);
	assert_packets(1);
}

/* LSN = 2; each of the three adds one; so the two SENDs have the two credits and the third has
 * none. */
TEST(c9_161__lsn_grows_with_what_needs_no_receive)
{
	credits_come(2);
	send_request(0, USER_RDMA_WRITE, 8, 0);
	send_request(0, USER_RDMA_READ, 8, 0);
	send_request(0, USER_ATOMIC_CS, 8, 0);
	assert_packets(3);
	for (unsigned i = 0; i < 5; i++)
		send_request(0, i == 1 ? USER_RDMA_WRITE_IMM : USER_SEND, 8, 0);
	assert_packets(3);
	assert_limited();
	credits_come(
		7); /* SSN 4 and 5 had credit, 6 was sent limited; 7 has credit now, 8 has not */
	assert_packets(2);
	assert_int_equal(fx->qp[0]->rtc.ssn, 9);
	send_request(0, USER_RDMA_WRITE, 8, 0);
	assert_limited();
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

TEST(c9_161__lsn_wraps)
{
	fx->qp[0]->rtc.ssn = PSN_MASK;
	credits_come(0xfffffe);
	send_request(0, USER_RDMA_WRITE, 8, 0); /* SSN 0xffffff, LSN becomes that */
	send_request(0, USER_RDMA_WRITE, 8, 0); /* 0 and 0 */
	assert_packets(2);
	send_request(0, USER_SEND, 8, 0); /* 1 */
	send_request(0, USER_SEND, 8, 0);
	assert_packets(1);
	assert_limited();
	credits_come(2);
	assert_packets(1);
	assert_int_equal(fx->qp[0]->rtc.limited, 0);
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

TEST(c9_162__limited_send_gets_its_credit)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	send_request(0, USER_SEND, 3 * FX_MTU, 0);
	assert_packets(1);
	credits_come(0);
	assert_limited();
	credits_come(1);
	assert_packets(2);
	assert_int_equal(fx->qp[0]->rtc.limited, 0);
	fx_assert_counter(park_credit, 2); /* once for each time that it had to wait */
}

TEST(c9_163__limited_write_with_immediate)
{
	fx->qp[0]->rrc.credits = CREDITS_CAME;
	fx->e->settings.ack_interval = 100;
	send_request(0, USER_RDMA_WRITE_IMM, 3 * FX_MTU, 0);
	send_request(0, USER_RDMA_READ, 8, 0);
	assert_packets(3);
	assert_limited();
	acknowledge_all(0);
	wake_sender_of(0);
	assert_packets(1);
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

TEST(c9_161__lsn_is_msn_plus_credits)
{
	sends(4);
	fx->qp[0]->rrc.credits = 0;
	respond(0, P(0), aeth_ack(2), 0xffffff);
	assert_lsn(1); /* wrapped */
	respond(0, P(1), aeth_ack(7), 0);
	assert_lsn(12);
	respond(0, P(2), aeth_ack(0), 1);
	assert_lsn(1);
	respond(0, P(3), aeth_nak(AETH_NAK_SEQUENCE), 5); /* a NAK gives none */
	assert_lsn(1);
}

TEST(c9_144__credits_of_duplicate_acks)
{
	sends(3);
	fx->qp[0]->rrc.credits = 0;
	respond(0, P(1), aeth_ack(0), 2);
	assert_lsn(2);
	respond(0, P(1), aeth_ack(4), 2);
	assert_lsn(6);
	fx_assert_counter(ack_duplicate, 1);
}

/* An overtaken AETH has no effect. */
TEST(c9_164__credits_of_a_late_ack)
{
	sends(3);
	fx->qp[0]->rrc.credits = 0;
	respond(0, P(1), aeth_ack(1), 2);
	respond(0, P(0), aeth_ack(30), 1);
	assert_lsn(3);
}

/* The initial unsolicited ACK has the initial PSN - 1; of it only MSN and credits count. */
TEST(c9_155__initial_credits)
{
	fx->qp[0]->rrc.credits = 0;
	respond(0, P(0) - 1, aeth_ack(3), 0); /* before anything was sent */
	assert_lsn(3);
	sends(1);
	respond(0, P(0) - 1, aeth_ack(4), 0);
	assert_lsn(4);
	fx_assert_no_cqe();
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(0));
	fx_assert_counter(acks, 0);
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

TEST(c9_164__unsolicited_ack_wakes_the_sender)
{
	fx->qp[0]->rrc.credits = 0;
	fx->qp[0]->rtc.parked = PARK_CREDIT;
	respond(0, P(0) - 1, aeth_ack(3), 0);
	assert_int_equal(wake_take(&fx->e->wake[WAKE_RTC]), fx->qp[0]->index);
	wake_next(&fx->qp[0]->wake[WAKE_RTC]);
	fx->qp[0]->rtc.parked = PARK_NONE;
}

TEST(c9_153__unlimited_from_then_on)
{
	sends(3);
	fx->qp[0]->rrc.credits = 0;
	respond(0, P(0), aeth_ack(3), 1);
	respond(0, P(1), aeth_ack(AETH_CREDIT_INVALID), 2);
	assert_int_equal(fx->qp[0]->rrc.credits, CREDITS_UNLIMITED);
	respond(0, P(2), aeth_ack(1), 3);
	assert_int_equal(fx->qp[0]->rrc.credits, CREDITS_UNLIMITED);
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
