/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over what is outstanding, when it is sent again: how far, in which order, whose turn. */
#include "recv_fixture.h"
#include "retransmission.h"

enum { EACH = 16 }; /* packets of one turn; the last one asks for an acknowledgement */

static void turns(unsigned n)
{
	while (n--)
		sends(EACH);
}

/* Exactly the packets from P(first) to P(end - 1) go out again by now. */
static void assert_again(unsigned first, unsigned end)
{
	for (unsigned i = 0; i < 8; i++)
		rrc_poll(fx->e);
	for (; first < end; first++)
		assert_retransmission(WIRE_RC_SEND_ONLY, P(first));
	assert_no_retransmission();
	rrc_poll(fx->e);
	assert_no_retransmission();
}

/* As much as the window allows, up to a packet that requests an acknowledgement; when that arrives,
 * more. */
TEST(window__paces_the_walk)
{
	struct qp *q = fx->qp[0];

	turns(6);
	nak(P(4));
	assert_int_equal(q->rrc.window >> 4, 46);
	assert_again(4, 64);
	respond_ack(0, P(7)); /* there is no room yet */
	assert_again(64, 64);
	assert_int_equal(q->rrc.retransmitting, 1);
	respond_ack(0, P(31));
	assert_int_equal(q->rrc.window >> 4, 47);
	assert_again(64, 80);
	assert_int_equal(q->rrc.retransmitting, 1);
	respond_ack(0, P(79));
	assert_again(80, 96);
	assert_int_equal(q->rrc.retransmitting, 0);
	assert_int_not_equal(q->rrc.window, 0);
	sends(EACH);
	respond_ack(0, P(97)); /* it is over: nothing more */
	assert_again(96, 96);
}

/* The packet it waits for is lost: a probe or the Loss timer starts over. */
TEST(window__a_lost_tail)
{
	turns(6);
	nak(P(0));
	assert_again(0, 48);
	fx->qp[0]->rrc.srtt_ns = 1000;
	probe_after(1000000000);
	fx_assert_counter(loss_probes, 1);
	assert_again(0, 32); /* the window is halved each time, but not below 32 */
	expire(0, TIMER_LOSS);
	fx_assert_counter(loss_timeouts, 1);
	assert_again(0, 32);
	respond_ack(0, P(31));
	assert_again(32, 80);
}

/* It comes while the walk waits for room: the walk ends, and begins anew when the wait is over. */
TEST(c9_130__rnr_nak_during_a_walk)
{
	turns(2);
	fx_fill(CHANNEL_RRC_RPG, 1);
	nak(P(4));
	respond(0, P(4), aeth_rnr(1), 0);
	fx_unfill(CHANNEL_RRC_RPG);
	assert_again(5, 5);
	expire(0, TIMER_RNR);
	assert_again(4, 32);
}

/* A peer that NAKs one packet after the other makes little work. */
TEST(window__naks_of_each_packet)
{
	enum { NAKS = 64 };

	turns(30);
	for (unsigned i = 0; i < NAKS; i++) {
		fx->qp[0]->rrc.retry_left = 7;
		nak(P(i));
		for (unsigned k = 0; k < 32; k++) {
			fx_unfill(CHANNEL_RRC_RPG);
			rrc_poll(fx->e);
		}
	}
	assert_in_range(fx_counter(COUNTER_retransmitted_packets), 32 * NAKS, 2 * 32 * NAKS);
}

/* A local operation lies between packets: it has none, and nothing is sent for it. */
TEST(walk__passes_what_has_no_packet)
{
	struct qp *q = fx->qp[0];
	const struct sw_element local = {.psn = P(2), .opcode = USER_LOCAL_INV};

	sends(2);
	sw_put(fx->e->mq, &q->mq.sw, &local);
	sends(1);
	nak(P(0));
	assert_again(0, 3);
}

/* Room for one at a time: they take turns. */
TEST(walk__takes_turns)
{
	unsigned from[2] = {0};
	struct packet p = {0};

	for (unsigned qp = 0; qp < 2; qp++) {
		for (unsigned i = 0; i < 8; i++)
			send_request(qp, USER_SEND, 16, 0);
		sent();
	}
	fx_fill(CHANNEL_RRC_RPG, 0);
	expire(0, TIMER_LOSS);
	expire(1, TIMER_LOSS);
	fx_unfill(CHANNEL_RRC_RPG);
	for (unsigned i = 0; i < 8; i++) {
		fx_fill(CHANNEL_RRC_RPG, 1);
		rrc_poll(fx->e);
		for (unsigned left = channel_infos[CHANNEL_RRC_RPG].depth - 1; left; left--)
			rte_pktmbuf_free(fx_take(CHANNEL_RRC_RPG));
		assert_true(take_packet(CHANNEL_RRC_RPG, &p));
		from[p.qpn == fx->qp[1]->qpn]++;
	}
	assert_int_equal(from[0], 4);
	assert_int_equal(from[1], 4);
}
