/* SPDX-License-Identifier: BSD-3-Clause */
/* End-to-end credits as requester: what RequesterRecvControl takes from AETHs, what
 * RequesterTransControl sends with them and without (C9-161, C9-164). */
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
