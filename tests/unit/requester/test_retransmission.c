/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes, round trips, and how much may be outstanding after losses. */
#include "recv_fixture.h"
#include "retransmission.h"

#define US 1000ull

/* A round trip of that time; nothing is outstanding afterwards. */
static void round_trip(unsigned *psn, uint64_t ns)
{
	sends(3);
	fx->e->now_ns += 10 * US;
	respond_ack(0, P(*psn)); /* now it begins */
	sends(1);
	fx->e->now_ns += ns;
	respond_ack(0, P(*psn + 3));
	*psn += 4;
}

/* Acknowledgements of packets sent together arrive together, however far away the peer is. */
TEST(round_trip__is_not_the_distance_of_two_acknowledgements)
{
	struct qp *q = fx->qp[0];

	sends(3);
	fx->e->now_ns += 1000 * US;
	respond_ack(0, P(0));
	fx->e->now_ns += 2 * US;
	respond_ack(0, P(2));
	assert_true(q->rrc.srtt_ns == 0 || q->rrc.srtt_ns >= 1000 * US);
}

/* Packets outstanding at a loss are sent twice: no round trip is measured until they are
 * acknowledged. */
TEST(round_trip__not_of_what_came_twice)
{
	struct qp *q = fx->qp[0];
	unsigned psn = 5;

	sends(4);
	nak(P(1));
	fx_unfill(CHANNEL_RRC_RPG);
	respond_ack(0, P(1));
	sends(1);
	fx->e->now_ns += 10 * US;
	respond_ack(0, P(4));
	assert_int_equal(q->rrc.srtt_ns, 0);
	round_trip(&psn, 100 * US);
	assert_int_equal(q->rrc.srtt_ns, 100 * US);
}

/* Nor does the peer's wait for a receive descriptor count, nor overflow. */
TEST(round_trip__without_waits)
{
	struct qp *q = fx->qp[0];
	unsigned psn = 0;

	sends(2);
	respond_ack(0, P(0));
	sends(1);
	respond(0, P(1), aeth_rnr(0), 0);
	fx->e->now_ns += 655360 * US;
	expire(0, TIMER_RNR);
	respond_ack(0, P(2));
	assert_int_equal(q->rrc.srtt_ns, 0);
	for (psn = 3; psn < 100;)
		round_trip(&psn, 5000000 * US);
	assert_int_equal(q->rrc.srtt_ns, UINT32_MAX / 8);
}

/* These packets are sent again, and no others. */
static void assert_again(unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_retransmission(WIRE_RC_SEND_ONLY, P(first + i));
	assert_no_retransmission();
	rrc_poll(fx->e);
}

/* Toward a peer that keeps what comes behind a gap the first one sends one packet, the others all;
 * what is acknowledged behind all of them shows no next gap. */
TEST(probe__of_one_packet_and_then_of_all)
{
	unsigned psn = 0;

	round_trip(&psn, 100 * US);
	fx->qp[0]->rrc.peer_keeps = 4;
	sends(3);
	for (unsigned i = 0; i < 3; i++) {
		probe_after(100000 * US);
		assert_again(psn, i ? 3 : 1);
	}
	respond_ack(0, P(psn));
	assert_no_retransmission();
}

/* It is acknowledged before the packet that it sends again has left. */
TEST(probe__overtaken_by_an_acknowledgement)
{
	unsigned psn = 0;

	round_trip(&psn, 100 * US);
	fx->qp[0]->rrc.peer_keeps = 4;
	sends(3);
	probe_after(100000 * US);
	respond_ack(0, P(psn));
	assert_again(psn, 1);
	respond_ack(0, P(psn + 1)); /* now it shows that the next one is missing */
	assert_again(psn + 2, 1);
}

/* What is acknowledged beyond the walk after a NAK was kept by the peer; after a timeout it may be
 * that the answer was late. Nobody looks where the setting says that no peer does that. */
TEST(walk__proof_that_the_peer_keeps)
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned psn = 8 * i;

		fx->e->settings.loss_recovery =
			i == 1 ? LOSS_RECOVERY_STANDARD : LOSS_RECOVERY_KEEP;
		sends(8);
		fx_fill(CHANNEL_RRC_RPG, 1);
		if (i)
			nak(P(psn));
		else
			expire(0, TIMER_LOSS);
		rrc_poll(fx->e);
		respond_ack(0, P(psn + 6));
		assert_int_equal(fx->qp[0]->rrc.peer_keeps != 0, i == 2);
		fx_unfill(CHANNEL_RRC_RPG);
		respond_ack(0, P(psn + 7));
		fx_unfill(CHANNEL_RRC_RPG);
		rrc_poll(fx->e);
	}
	fx->qp[0]->rrc.peer_keeps = 2; /* and once more, when one packet was sent again */
	sends(3);
	nak(P(24));
	assert_again(24, 1);
	respond_ack(0, P(26));
	assert_int_equal(fx->qp[0]->rrc.peer_keeps, 4);
}

/* The next one waits twice as long; an acknowledgement ends that. Never longer than Ttr. */
TEST(probe__each_waits_twice_as_long)
{
	uint64_t tick = fx->e->settings.timer_tick_ns, first;
	struct qp *q = fx->qp[0];
	unsigned psn = 0;

	fx->e->settings.first_probe_us = 0;
	assert_true(qp_probe_ns(fx->e, q) == qp_timeout_ns(q)); /* no round trip is known */
	fx->e->settings.first_probe_us = 500;
	assert_true(qp_probe_ns(fx->e, q) == RTE_MIN(500 * US, qp_timeout_ns(q)));
	q->timeout = 20;
	round_trip(&psn, 100 * US);
	first = qp_probe_ns(fx->e, q);
	assert_true(first == 400 * US + 2 * tick);
	sends(1);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(qp_probe_ns(fx->e, q) == first << i);
		probe_after(100000 * US);
		assert_retransmission(WIRE_RC_SEND_ONLY, P(psn));
		rrc_poll(fx->e);
	}
	respond_ack(0, P(psn));
	assert_int_equal(q->rrc.probes, 0);
	q->timeout = 1;
	assert_true(qp_probe_ns(fx->e, q) == qp_timeout_ns(q));
}

/* A peer that is slow to answer, and NAKs when it does: what probes draw uses up no retries. */
TEST(probe__a_nak_that_it_draws_does_not_count)
{
	struct qp *q = fx->qp[0];
	unsigned psn = 0;
	uint8_t left;

	q->timeout = 20;
	round_trip(&psn, 100 * US);
	left = q->rrc.retry_left;
	sends(2);
	for (unsigned i = 0; i < 20; i++) {
		probe_after(1000000 * US);
		fx_unfill(CHANNEL_RRC_RPG);
		rrc_poll(fx->e);
		nak(P(psn));
		assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 2);
		fx_unfill(CHANNEL_RRC_RPG);
		rrc_poll(fx->e);
	}
	assert_int_equal(q->rrc.retry_left, left);
	assert_int_equal(qp_state(q), QP_RTS);
	respond_ack(0, P(psn)); /* progress: from here on they count */
	nak(P(psn + 1));
	assert_int_equal(q->rrc.retry_left, left - 1);
}

/* After a pause of the lcore responses and an expiry wait together: the responses count. */
TEST(probe__disproved_by_what_came)
{
	unsigned psn = 0;

	round_trip(&psn, 100 * US);
	sends(2);
	respond_with(0,
		     (struct wire_headers){.opcode = WIRE_RC_ACK,
					   .psn = P(psn),
					   .syndrome = aeth_ack(AETH_CREDIT_INVALID)},
		     0, 0);
	probe_after(100000 * US);
	assert_no_retransmission();
	fx_assert_counter(loss_probes, 0);
}

TEST(probe__not_while_the_receiver_is_not_ready)
{
	unsigned psn = 0;

	round_trip(&psn, 100 * US);
	sends(1);
	fx->qp[0]->rrc.rnr_waiting = 1;
	probe_after(100000 * US);
	assert_no_retransmission();
	fx_assert_counter(loss_probes, 0);
	fx->qp[0]->rrc.rnr_waiting = 0;
}

/* Packets being sent again need not be repeated; nor before it is time. */
TEST(probe__not_too_soon)
{
	struct qp *q = fx->qp[0];
	unsigned psn = 0;
	uint64_t soon;

	round_trip(&psn, 100 * US);
	sends(2);
	fx_fill(CHANNEL_RRC_RPG, 0);
	soon = qp_probe_ns(fx->e, q);
	fx->e->now_ns = qp_quiet_since(q) + soon - 1;
	probe_after(0);
	fx_assert_counter(loss_probes, 0);
	fx->e->now_ns++;
	probe_after(0);
	fx_assert_counter(loss_probes, 1);
	probe_after(100 * soon);
	fx_assert_counter(loss_probes, 1); /* there was no room for the first one yet */
}

/* The doublings end, even if nothing ever arrives: the time does not overflow. */
TEST(probe__for_ever)
{
	uint64_t ns;
	struct qp *q = fx->qp[0];
	unsigned psn = 0;

	q->timeout = 31;
	round_trip(&psn, 1 * US);
	sends(1);
	ns = qp_probe_ns(fx->e, q);
	for (unsigned i = 1; i < 300; i++) {
		fx->e->now_ns = RTE_MAX(fx->e->now_ns, qp_quiet_since(q)) + qp_probe_ns(fx->e, q);
		probe_after(0);
		assert_retransmission(WIRE_RC_SEND_ONLY, P(psn));
		rrc_poll(fx->e);
		assert_true(qp_probe_ns(fx->e, q) == ns << RTE_MIN(i, 16u));
	}
}

/* The wheel: an entry with a round trip to go by comes due long before Ttr. */
TEST(probe__comes_from_the_wheel)
{
	struct qp *q = fx->qp[0];
	struct rte_mbuf *m;
	unsigned psn = 0;

	q->timeout = 14; /* 67 ms */
	round_trip(&psn, 100 * US);
	send_request(0, USER_SEND, 16, 0);
	segmentation_poll(fx->e);
	fx_unfill(CHANNEL_RPG_TXA);
	for (unsigned i = 0; i < 100 && !fx_ring_count(CHANNEL_TC_RRC); i++) {
		tc_poll(fx->e);
		fx->e->now_ns += 16 * US;
	}
	m = fx_take(CHANNEL_TC_RRC);
	assert_non_null(m);
	assert_int_equal(timer_event_of(m)->expiry, TIMER_PROBE);
	rte_mbuf_raw_free(m);
	tc_stop(fx->e, q);
}

TEST(window__halved_by_a_loss_and_grown_by_a_sixteenth)
{
	struct qp *q = fx->qp[0];

	retransmit_acked(fx->e, q, 1000);
	assert_int_equal(q->rrc.window, 0); /* no loss yet: no bound */
	q->rtc.next_psn = psn_add(q->rrc.unacked_psn, 200);
	retransmit_cut(q);
	assert_int_equal(q->rrc.window >> 4, 100);
	retransmit_acked(fx->e, q, 160);
	assert_int_equal(q->rrc.window >> 4, 110);
	q->rtc.next_psn = psn_add(q->rrc.unacked_psn, 3);
	retransmit_cut(q);
	assert_int_equal(q->rrc.window >> 4, 32); /* not less */
	q->rrc.window = (fx->e->settings.swpb_elements - 1) << 4;
	retransmit_acked(fx->e, q, 16);
	assert_int_equal(q->rrc.window >> 4, fx->e->settings.swpb_elements);
	for (unsigned i = 0; i < 20; i++)
		retransmit_acked(fx->e, q, fx->e->settings.swpb_elements);
	assert_int_equal(q->rrc.window, 0); /* as much as there is: no bound any more */
	q->rtc.next_psn = q->rrc.unacked_psn;
}

/* Everything is acknowledged in the middle of a retransmission, and a turn of the sender's that had
 * begun before it puts another packet behind: that is the next one, not what lay there before. */
TEST(walk__continues_behind_an_emptied_queue)
{
	struct qp *q = fx->qp[0];

	sends(3);
	fx_fill(CHANNEL_RRC_RPG, 1);
	expire(0, TIMER_LOSS); /* one goes out, no room for the others */
	rte_pktmbuf_free(fx_take(CHANNEL_RRC_RPG));
	respond_ack(0, P(2));
	q->rrc.retransmitting = 0;
	send_request(0, USER_SEND, 16, 0);
	rtc_poll(fx->e);
	q->rrc.retransmitting = 1;
	fx_unfill(CHANNEL_RTC_RPG);
	fx_unfill(CHANNEL_RTC_TC);
	fx_unfill(CHANNEL_RRC_RPG);
	rrc_poll(fx->e);
	assert_retransmission(WIRE_RC_SEND_ONLY, P(3));
	rrc_poll(fx->e);
	assert_int_equal(q->rrc.retransmitting, 0);
}

/* The channel's counts have gone far since the QP's last retransmission, and this one finds that
 * everything was acknowledged. */
TEST(walk__of_nothing_ends_after_2_31_packets)
{
	struct channel *c = &fx->e->channel[CHANNEL_RRC_RPG];
	struct qp *q = fx->qp[0];

	c->put = c->taken = 0x80000005;
	expire(0, TIMER_RNR);
	assert_int_equal(q->rrc.retransmitting, 0);
}
