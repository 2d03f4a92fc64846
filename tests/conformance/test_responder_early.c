/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that arrive ahead of missing ones and are kept (context/early.h). The standard's rules
 * hold as if the peer had sent them again: nothing is executed before its turn (C9-77), each gap
 * draws one NAK (C9-79, C9-80, C9-114), and what the peer does send again is a duplicate (C9-105).
 */
#include "pipeline/stepping.h"
#include "responder/responder.h"
#include "rig.h"

enum { PSN = 0x100, AT = 4096, RECV = 1 << 20, MTU = 1024 };

static void add(struct sim *s, unsigned qp, uint32_t psn)
{
	struct wire_headers h = rig_headers(s, qp, WIRE_RC_FETCH_ADD, psn, AT, 0);

	h.swap_add = 1;
	rig_send(s, h, NULL, 0);
}

static uint64_t word(struct sim *s)
{
	return *(uint64_t *)(s->node[0].memory + AT);
}

static unsigned kept(struct sim *s)
{
	return sim_context(s, 0, 0)->ee_gap.early.kept;
}

/* Each finds what the one before it has left, although the first comes last. */
static void in_order(struct sim *s, uint32_t psn)
{
	uint64_t seven = 7;

	sim_post_recv(s, 0, 0, RECV, 1000);
	add(s, 0, psn_add(psn, 1));
	rig_expect_nak(s, psn, AETH_NAK_SEQUENCE, 0);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, psn_add(psn, 2), AT, 2 * MTU + 8, 0);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, psn_add(psn, 5), 0, 0, 64);
	add(s, 0, psn_add(psn, 6));
	rig_silent(s, 10 * US);
	assert_int_equal(rig_epsn(s, 0), psn);
	assert_true(word(s) == 0);
	rig_no_cqe(s);
	rig_send(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, psn, AT, 8), &seven, 8);
	assert_true(rig_expect(s, WIRE_RC_ATOMIC_ACK, psn_add(psn, 1)).h.orig == 7);
	/* A READ may see what follows it: only a fence of its requester prevents that. */
	assert_in_range(rig_expect(s, WIRE_RC_READ_RESP_FIRST, psn_add(psn, 2)).payload[0], 8, 9);
	rig_expect(s, WIRE_RC_READ_RESP_MIDDLE, psn_add(psn, 3));
	rig_expect(s, WIRE_RC_READ_RESP_LAST, psn_add(psn, 4));
	assert_true(rig_expect(s, WIRE_RC_ATOMIC_ACK, psn_add(psn, 6)).h.orig == 8);
	rig_expect_cqe(s, USER_RECV, 0, 0);
	assert_int_equal(rig_epsn(s, 0), psn_add(psn, 7));
	assert_true(word(s) == 9);
	assert_int_equal(kept(s), 0);
	rig_silent(s, MS);
}

TEST(c9_077__early_requests_are_executed_in_order_past_the_wrap)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	for (p.psn = 0xfffff9; p.psn <= 0xffffff; p.psn++) {
		struct sim *s = rig_create(&p);

		in_order(s, p.psn);
		rig_end(s);
	}
}

/* The acknowledgement passes what was kept; what the peer repeats of it is a duplicate. */
TEST_RC(c9_105__early_requests_sent_again_are_duplicates)
{
	enum { PACKETS = 16 };

	for (uint32_t i = 1; i < PACKETS; i++)
		add(s, 0, PSN + i);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	rig_write(s, PSN, AT + 8, 8);
	for (uint32_t i = 1; i < PACKETS; i++)
		rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + i);
	for (uint32_t i = 1; i < PACKETS; i++)
		add(s, 0, PSN + i);
	for (uint32_t i = 1; i < PACKETS; i++)
		assert_true(rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + i).h.orig == i - 1);
	assert_true(word(s) == PACKETS - 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_early_kept), PACKETS - 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_out_of_sequence), 0);
}

/* One acknowledgement for all that was kept, however long it takes; or the first answer behind it. */
TEST_RC(c9_095__early_requests_are_acknowledged_together)
{
	enum { PACKETS = 3 * BURST };

	for (uint32_t i = PACKETS; i-- > 0;)
		rig_write(s, PSN + i, AT, 8);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	rig_expect_ack(s, PSN + PACKETS - 1, aeth_ack(0), PACKETS);
	rig_silent(s, 10 * US);
}

/* The peer repeats while the gap is open: the second copy is dropped. */
TEST_RC(c9_114__an_early_request_that_comes_twice_is_kept_once)
{
	for (unsigned i = 0; i < 3; i++)
		add(s, 0, PSN + 1);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	rig_silent(s, 10 * US);
	assert_int_equal(kept(s), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_out_of_sequence), 2);
	rig_write(s, PSN, AT + 8, 8);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 1);
	assert_true(word(s) == 1);
}

/* So may a second copy of what was kept. */
TEST_RC(c9_080__a_copy_of_what_was_kept_draws_the_next_nak)
{
	add(s, 0, PSN + 1);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	add(s, 0, PSN + 3);
	add(s, 0, PSN);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 1);
	add(s, 0, PSN + 3);
	rig_expect_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 2);
	add(s, 0, PSN + 2);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 3);
}

/* Of two gaps the second draws its NAK when a packet passes it after the first was filled: before,
 * the peer may be on its way back to it. */
TEST_RC(c9_080__each_gap_draws_one_nak)
{
	add(s, 0, PSN + 1);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	add(s, 0, PSN + 3);
	rig_silent(s, 10 * US);
	add(s, 0, PSN);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 1);
	rig_silent(s, 10 * US);
	assert_int_equal(kept(s), 1);
	add(s, 0, PSN + 4);
	rig_expect_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 2);
	add(s, 0, PSN + 5);
	rig_silent(s, 10 * US);
	add(s, 0, PSN + 2);
	for (uint32_t i = 2; i < 6; i++)
		rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + i);
	rig_silent(s, 10 * US);
}

/* A kept request is checked in its turn, and those behind it fall with the queue pair. */
TEST_RC(c9_087__a_bad_early_request_is_refused_in_its_turn)
{
	rig_write(s, PSN + 1, AT, 64);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	rig_request(s, 0, WIRE_RC_WRITE_MIDDLE, PSN + 2, AT, 0, MTU);
	rig_write(s, PSN + 3, AT + 64, 64);
	rig_write(s, PSN + 5, AT + 64, 64);
	rig_silent(s, 10 * US);
	rig_write(s, PSN, AT, 64);
	rig_expect_refusal(s, 0, PSN + 2, AETH_NAK_INVALID_REQUEST, 2);
	rig_untouched(s, AT + 64, 64);
	assert_int_equal(kept(s), 0);
}

/* In the wait after an RNR NAK the peer sends nothing that it would not send again. */
TEST_RC(c9_114__nothing_is_kept_behind_an_rnr_nak)
{
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 64);
	rig_write(s, PSN + 1, AT, 64);
	rig_expect_ack(s, PSN, aeth_rnr(1), 0);
	rig_silent(s, 10 * US);
	assert_int_equal(kept(s), 0);
}

TEST_RC(early__a_damaged_packet_is_not_kept)
{
	rig_bad_icrc(s);
	rig_write(s, PSN + 1, AT, MTU);
	rig_silent(s, 10 * US);
	assert_int_equal(kept(s), 0);
}

/* The next life of the queue pair has the same number and the same PSNs. */
TEST_RC(early__none_survives_a_reset_or_an_error)
{
	for (unsigned error = 0; error < 2; error++) {
		rig_write(s, PSN + 1, AT, 64);
		rig_write(s, PSN + 200, AT, 64);
		rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
		if (error) {
			sim_modify(s, 0, 0, QP_ERR, 0);
			rig_silent(s, 10 * US);
			assert_int_equal(kept(s), 0);
		}
		rig_reconnect(s, 0);
		assert_int_equal(kept(s), 0);
		rig_written(s, PSN, AT + 64, 64, 1);
		rig_silent(s, 10 * US);
		rig_untouched(s, AT, 64);
		rig_reconnect(s, 0);
	}
}

/* Only an error closes the gap: whoever wakes the module for another reason changes nothing. */
TEST_RC(early__all_survive_a_wake)
{
	struct engine *e = s->node[0].hca->engines;
	struct qp *q = sim_context(s, 0, 0);

	rig_write(s, PSN + 1, AT, 64);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	wake_post(&e->wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
	sim_run(s, 10 * US);
	rig_write(s, PSN, AT, 64);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 2);
}

/* A gap that is never filled: the packets behind it go back to the pool. */
TEST_RC(early__none_stays_for_ever)
{
	rig_write(s, PSN + 1, AT, 64);
	rig_write(s, PSN + 200, AT, 64);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	assert_int_equal(kept(s), 2);
	sim_run(s, 200 * MS);
	assert_int_equal(kept(s), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_early_dropped), 2);
	rig_written(s, PSN, AT + 64, 64, 1);
	rig_untouched(s, AT, 64);
}

/* As soon as buffers are short. */
TEST_RC(early__none_stays_when_buffers_are_short)
{
	struct rte_mempool *pool = s->packets;
	unsigned n = 0, most = pool->size - pool->size / 10;
	struct rte_mbuf **m = calloc(most, sizeof(*m));

	rig_write(s, PSN + 1, AT, 64);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	while (n < most && (m[n] = rte_pktmbuf_alloc(pool)))
		n++;
	sim_run(s, MS);
	assert_int_equal(kept(s), 0);
	rig_write(s, PSN + 2, AT, 64);
	sim_run(s, MS);
	assert_int_equal(kept(s), 0);
	rte_pktmbuf_free_bulk(m, n);
	free(m);
	sim_run(s, MS);
	rig_write(s, PSN + 3, AT, 64);
	sim_run(s, MS);
	assert_int_equal(kept(s), 1);
}

/* A thousand queue pairs of one user, whose peers leave gaps for ever; then one of another user
 * meets a loss. */
enum { HOSTILE = 1000, PACKETS = 40 };

TEST_RIG_WITH(early__gaps_left_for_ever_take_nothing_from_others, p.qps = HOSTILE + 1,
	      p.own = HOSTILE, p.no_credits = true)
{
	struct rig_packet got;
	unsigned all;

	for (unsigned i = 0; i < HOSTILE; i++) {
		for (uint32_t k = 1; k < 5; k++)
			add(s, i, PSN + k);
		assert_true(rig_recv(s, &got, MS));
	}
	all = s->node[0].hca->config.settings.swpb_elements / 2;
	assert_in_range(responder_stock(s->node[0].hca->engines), all / 2, all + 2 * BURST);
	for (uint32_t k = 1; k < PACKETS; k++)
		rig_request(s, HOSTILE, WIRE_RC_WRITE_ONLY, PSN + k, AT, 8, 8);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	assert_int_equal(sim_context(s, 0, HOSTILE)->ee_gap.early.kept, PACKETS - 1);
	add(s, HOSTILE, PSN);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN);
	rig_expect_ack(s, PSN + PACKETS - 1, aeth_ack(0), PACKETS);
}

/* One queue pair alone gets half of the places. */
TEST_RC(early__a_queue_pair_has_a_share)
{
	unsigned all = s->node[0].hca->config.settings.swpb_elements / 2;

	for (uint32_t i = 1; i < all; i++)
		add(s, 0, PSN + i);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	sim_run(s, MS);
	assert_int_equal(kept(s), all / 2);
}

/* ---- networks that reorder ---- */

/* The packet of that PSN comes `late` after the one behind it. If `twice`, the peer repeats it, as
 * the NAK demands. */
static void come_late(struct sim *s, uint32_t psn, uint64_t late, bool twice)
{
	rig_write(s, psn + 1, AT, 8);
	rig_expect_nak(s, psn, AETH_NAK_SEQUENCE, psn - PSN);
	sim_run(s, late);
	for (unsigned i = 0; i < 1u + twice; i++) {
		rig_write(s, psn, AT, 8);
		rig_expect_ack(s, psn + 1, aeth_ack(0), psn - PSN + 2);
	}
}

/* The packet behind has come: how long until the NAK? */
static uint64_t wait_for_nak(struct sim *s, uint32_t psn)
{
	uint64_t began_ns = s->now_ns;

	rig_write(s, psn + 1, AT, 8);
	rig_expect_nak(s, psn, AETH_NAK_SEQUENCE, psn - PSN);
	began_ns = s->now_ns - began_ns;
	rig_write(s, psn, AT, 8);
	rig_expect_ack(s, psn + 1, aeth_ack(0), psn - PSN + 2);
	return began_ns;
}

/* After two NAKs in vain a gap may stay open for twice as long, then it draws its NAK, although no
 * other packet comes. */
TEST_RC(c9_079__a_network_that_reorders_draws_naks_later)
{
	come_late(s, PSN, 20 * US, true);
	come_late(s, PSN + 2, 20 * US, true);
	rig_write(s, PSN + 5, AT, 8);
	rig_write(s, PSN + 6, AT, 8);
	rig_silent(s, 33 * US);
	rig_write(s, PSN + 4, AT, 8);
	rig_expect_ack(s, PSN + 6, aeth_ack(0), 7);
	assert_in_range(wait_for_nak(s, PSN + 7), 55 * US, 100 * US); /* the latest counts */
	assert_int_equal(sim_counter(s, 0, COUNTER_nak_sequence_sent), 3);
}

/* Losses do not, and undo it. */
TEST_RC(c9_079__a_network_that_loses_draws_naks_at_once)
{
	uint32_t psn = PSN;

	for (; psn < PSN + 20; psn += 2)
		come_late(s, psn, 20 * US, false);
	assert_in_range(wait_for_nak(s, psn), 1, 5 * US);
	sim_run(s, 5 * MS); /* that one was no NAK in vain */
	for (psn += 2; psn < PSN + 26; psn += 2)
		come_late(s, psn, 20 * US, true);
	for (unsigned i = 0; i < 8; i++, psn += 2, sim_run(s, 5 * MS))
		wait_for_nak(s, psn);
	assert_in_range(wait_for_nak(s, psn), 1, 5 * US);
}

/* The wait ends with the queue pair's life. */
TEST_RC(early__no_nak_waits_beyond_a_reset)
{
	come_late(s, PSN, 20 * US, true);
	come_late(s, PSN + 2, 20 * US, true);
	rig_write(s, PSN + 5, AT, 8);
	sim_run(s, 2 * US);
	rig_reconnect(s, 0);
	rig_silent(s, MS);
	rig_write(s, PSN + 1, AT, 8);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
}

/* Or when it fails, before anybody looks at it. */
TEST_RC(early__no_nak_waits_beyond_an_error)
{
	come_late(s, PSN, 20 * US, true);
	come_late(s, PSN + 2, 20 * US, true);
	rig_write(s, PSN + 5, AT, 8);
	sim_run(s, 2 * US);
	sim_context(s, 0, 0)->state = QP_ERR;
	rig_silent(s, MS);
}

/* The missing packet finds no receive: the RNR NAK is the only one of its PSN. */
TEST_RC(c9_114__no_sequence_nak_follows_an_rnr_nak)
{
	come_late(s, PSN, 20 * US, true);
	come_late(s, PSN + 2, 20 * US, true);
	rig_write(s, PSN + 5, AT, 8);
	rig_silent(s, 5 * US);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN + 4, 0, 0, 64);
	rig_expect_ack(s, PSN + 4, aeth_rnr(1), 4);
	rig_silent(s, 2 * MS);
}

/* After this a gap may stay open for long. */
static void make_patient(struct sim *s)
{
	come_late(s, PSN, 400 * US, true);
	come_late(s, PSN + 2, 400 * US, true);
}

/* What cannot be kept has to be sent again: that ends it. */
TEST_RC(c9_079__a_dropped_request_ends_patience)
{
	uint64_t began_ns;

	make_patient(s);
	rig_write(s, PSN + 5, AT, 8);
	rig_silent(s, 50 * US);
	s->node[0].hca->engines[0].settings.loss_recovery = LOSS_RECOVERY_STANDARD;
	began_ns = s->now_ns;
	rig_write(s, PSN + 6, AT, 8);
	rig_expect_nak(s, PSN + 4, AETH_NAK_SEQUENCE, 4);
	assert_in_range(s->now_ns - began_ns, 1, 50 * US);
}

/* A second copy of what is kept says nothing about the missing packet. */
TEST_RC(c9_079__a_second_copy_ends_no_patience)
{
	make_patient(s);
	for (unsigned i = 0; i < 3; i++)
		rig_write(s, PSN + 5, AT, 8);
	rig_silent(s, 100 * US);
	rig_write(s, PSN + 4, AT, 8);
	rig_expect_ack(s, PSN + 5, aeth_ack(0), 6);
}

/* What comes when it is over draws the NAK: the only one. */
TEST_RC(c9_079__one_nak_when_patience_ends)
{
	struct engine *e = s->node[0].hca->engines;

	make_patient(s);
	rig_write(s, PSN + 5, AT, 8);
	sim_run(s, 3 * US);
	stepping_set(e, 1u << MODULE_EE);
	rig_write(s, PSN + 6, AT, 8);
	sim_run(s, 2 * MS);
	stepping_set(e, 0);
	rig_expect_nak(s, PSN + 4, AETH_NAK_SEQUENCE, 4);
	rig_silent(s, 2 * MS);
}

/* While a NAK waits the module takes a step for each packet, as ever. */
TEST_RC(early__a_gap_that_waits_is_no_step)
{
	struct engine *e = s->node[0].hca->engines;
	struct step_report r;

	make_patient(s);
	rig_write(s, PSN + 5, AT, 8);
	sim_run(s, 3 * US);
	stepping_set(e, 1u << MODULE_EE);
	rig_write(s, PSN + 4, AT, 8);
	sim_run(s, 3 * US);
	stepping_ask(e, MODULE_EE, 5);
	do
		sim_step(s);
	while (!stepping_done(e, &r));
	assert_int_equal(r.taken[CHANNEL_HP_EE], 1);
	assert_int_equal(rig_epsn(s, 0), PSN + 6);
	stepping_set(e, 0);
	rig_expect_ack(s, PSN + 5, aeth_ack(0), 6);
}

/* Gaps that fill in the same burst cost those behind it no further polls. */
TEST_RC(early__a_filled_gap_ends_no_burst)
{
	const struct stage *stage = &s->node[0].hca->engines[0].stage[STAGE_RESPONDER_EXEC];
	uint64_t busy = stage->busy_polls;

	for (uint32_t i = 0; i < BURST; i++)
		rig_write(s, PSN + (i ^ 1), AT, 8);
	while (rig_epsn(s, 0) != PSN + BURST)
		sim_step(s);
	assert_in_range(stage->busy_polls - busy, 1, 8);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	for (struct rig_packet p; rig_recv(s, &p, 10 * US);)
		;
}

/* An lcore that sleeps looks seldom, but then at more of them. */
TEST_RC(early__none_stays_for_ever_while_the_lcore_sleeps)
{
	enum { SLEEPS = 20 };

	rig_write(s, PSN + 1, AT, 64);
	rig_write(s, PSN + 200, AT, 64);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	assert_int_equal(kept(s), 2);
	for (unsigned i = 0; i < SLEEPS; i++) {
		sim_steal(s, 10 * MS);
		sim_step(s);
	}
	assert_int_equal(kept(s), 0);
}
