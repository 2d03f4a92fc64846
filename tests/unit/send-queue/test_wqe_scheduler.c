/* SPDX-License-Identifier: BSD-3-Clause */
/* WQEScheduler alone, and with WQEParse where chains go round: order, parking, turns. */
#include "send_queue_fixture.h"

static void put(unsigned qp, uint32_t offset)
{
	fx_put(CHANNEL_DBP_WS, fetched(qp, USER_SEND, offset, 16));
}

/* A chain is with WQEParse: the doorbells behind it wait until its end, others' do not. */
TEST(ws_poll__doorbell_waits_for_the_chain)
{
	struct rte_mbuf *m;

	wqe_link(0, 0, 64, USER_SEND, 1);
	put(0, 0);
	put(0, 512);
	put(1, 128);
	ws_poll(fx->e);
	assert_int_equal(fx->qp[0]->ws.chain, 1);
	m = fx_take(CHANNEL_WS_WP);
	assert_int_equal(request_of(m)->wqe_offset, 0);
	assert_descriptor(CHANNEL_WS_WP, 1, 128);
	assert_null(fx_take(CHANNEL_WS_WP));
	rte_mbuf_raw_free(m);
	/* The rest comes back: it goes first, and its end lets the doorbell go */
	fx_put(CHANNEL_WP_WS, fetched(0, USER_SEND, 64, 16));
	ws_poll(fx->e);
	assert_descriptor(CHANNEL_WS_WP, 0, 64);
	assert_descriptor(CHANNEL_WS_WP, 0, 512);
	assert_int_equal(fx->qp[0]->ws.chain, 0);
}

static void poll_both(unsigned times)
{
	while (times--) {
		ws_poll(fx->e);
		wp_poll(fx->e);
	}
}

/* Chains of 1 to 7 and single doorbells mixed, several queue pairs, little allowance: everything
 * comes out once, each queue pair's in the order of its posts. */
TEST(ws_poll__chains_and_doorbells_mixed)
{
	uint32_t posted[3] = {0}, got[3] = {0}, total = 0, seen = 0;
	struct rte_mbuf *m;

	fx->e->settings.pipeline_depth = 5;
	for (unsigned post = 0; post < 30; post++) {
		unsigned qp = post % 3, length = post % 8 ? post % 8 : 1;
		uint32_t first = posted[qp];

		if (first + length > FX_SQ_BYTES / 64)
			continue;
		for (unsigned i = 0; i < length; i++, posted[qp]++) {
			wqe_begin(qp, posted[qp] * 64, 0);
			if (i + 1 < length)
				wqe_link(qp, posted[qp] * 64, (posted[qp] + 1) * 64, USER_SEND, 1);
		}
		total += length;
		put(qp, first * 64);
	}
	for (unsigned round = 0; round < 1000 && seen < total; round++) {
		poll_both(1);
		while ((m = fx_take(CHANNEL_WP_DP))) {
			unsigned qp = request_of(m)->qpn - FX_QPN - 1;

			assert_in_range(qp, 0, 2);
			assert_int_equal(request_of(m)->wqe_offset, got[qp]++ * 64);
			seen++;
			fx->qp[qp]->rtc.consumed++;
			wake_post(&fx->e->wake[WAKE_WS], &fx->qp[qp]->wake[WAKE_WS],
				  fx->qp[qp]->index);
			rte_mbuf_raw_free(m);
		}
	}
	assert_int_equal(seen, total);
}

/* When more than four fifths of the descriptors are in use a queue pair has two of them on their
 * way. */
TEST(ws_poll__little_ahead_when_descriptors_are_scarce)
{
	fx->e->descriptor_share = 40;
	for (unsigned i = 0; i < 32; i++)
		ring(0, USER_SEND, i * 64, 16);
	assert_int_equal(dbp_poll(fx->e), 32); /* all of them one user's */
	ws_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), 32); /* no more than four fifths */
	fx->e->held_total += 1;
	for (unsigned i = 0; i < 20; i++)
		put(1, i * 64);
	ws_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), 34);
	fx->e->held_total -= 1;
}

/* But not one of a user who holds less than is left. */
TEST(ws_poll__as_ever_for_who_holds_little)
{
	fx->e->descriptor_share = 40;
	fx->e->held_total += 20;
	for (unsigned i = 0; i < 20; i++)
		put(0, i * 64);
	ws_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), 20);
	fx->e->held_total -= 20;
}

/* With little room each queue pair still has its turn. */
TEST(ws_poll__queue_pairs_in_turn)
{
	unsigned counts[4] = {0};
	struct rte_mbuf *m;

	for (unsigned i = 0; i < 15; i++)
		for (unsigned qp = 0; qp < 4; qp++)
			put(qp, i * 64);
	for (unsigned round = 0; round < 20; round++) {
		fx_fill(CHANNEL_WS_WP, 2);
		ws_poll(fx->e);
		while ((m = fx_take(CHANNEL_WS_WP))) {
			if (request_of(m)->qpn) {
				unsigned qp = request_of(m)->qpn - FX_QPN - 1;

				assert_int_equal(request_of(m)->wqe_offset, counts[qp]++ * 64);
			}
			rte_mbuf_raw_free(m);
		}
	}
	for (unsigned qp = 0; qp < 4; qp++)
		assert_in_range(counts[qp], 9, 11);
}

TEST(ws_poll__output_full)
{
	fx_fill(CHANNEL_WS_WP, 0);
	put(0, 0);
	put(0, 64);
	ws_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_DBP_WS), 0); /* in the queue pair's list */
	fx_unfill(CHANNEL_WS_WP);
	ws_poll(fx->e);
	assert_descriptor(CHANNEL_WS_WP, 0, 0);
	assert_descriptor(CHANNEL_WS_WP, 0, 64);
}

TEST(ws_poll__stale_descriptor)
{
	put(0, 0);
	put(1, 0);
	put(2, 0);
	fx->qp[0]->epoch++;
	fx->qp[2]->qpn += 64; /* its number belongs to another one now */
	ws_poll(fx->e);
	assert_descriptor(CHANNEL_WS_WP, 1, 0);
	assert_null(fx_take(CHANNEL_WS_WP));
	fx_assert_counter(drop_stale_wqe, 2);
}

TEST(ws_poll__releases_a_closed_queue_pair)
{
	struct qp *q = fx->qp[0];

	q->state = QP_SQD;
	for (unsigned i = 0; i < 5; i++)
		put(0, i * 64);
	ws_poll(fx->e);
	assert_non_null(q->ws.head);
	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	hca_close_qp(fx->h, q);
	ws_poll(fx->e);
	assert_null(q->ws.head);
	assert_int_equal(q->closed & 1u << WAKE_WS, 1u << WAKE_WS);
	assert_int_equal(rte_mempool_in_use_count(fx->descriptors), 0);
}

/* Descriptor buffers run out under WQEParse while several doorbells of one queue pair are on
 * their way: their order stays. */
TEST(ws_poll__order_without_descriptor_buffers)
{
	for (unsigned i = 0; i < 4; i++)
		put(0, i * 64);
	ws_poll(fx->e);
	fx_exhaust(fx->descriptors, 0);
	poll_both(3);
	fx_refill();
	poll_both(3);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_descriptor(CHANNEL_WP_DP, 0, i * 64);
}

/* A queue pair that cannot continue is not in the list of those to visit. */
TEST(ws_poll__no_visits_in_vain)
{
	struct qp *q = fx->qp[0];

	wqe_link(0, 0, 64, USER_SEND, 1);
	put(0, 0); /* a chain: with WQEParse */
	ws_poll(fx->e);
	put(0, 512);
	ws_poll(fx->e);
	assert_int_equal(q->ws.ready.listed, 0);
	fx->e->settings.pipeline_depth = 1;
	put(1, 0);
	put(1, 64); /* waits for the first one to be sent */
	ws_poll(fx->e);
	ws_poll(fx->e);
	assert_int_equal(fx->qp[1]->ws.parked, 1);
	put(1, 128);
	ws_poll(fx->e);
	assert_int_equal(fx->qp[1]->ws.ready.listed, 0);
	fx_unfill(CHANNEL_WS_WP);
	wit_clear(fx->e, q);
}

/* The rest of a chain comes back: in front of the doorbell that waits, and of those to come. */
TEST(ws_poll__rest_of_a_chain_goes_first)
{
	static const uint32_t order[] = {64, 512, 576};

	wqe_link(0, 0, 64, USER_SEND, 1);
	put(0, 0);
	put(0, 512);
	ws_poll(fx->e);
	fx_unfill(CHANNEL_WS_WP);
	fx_put(CHANNEL_WP_WS, fetched(0, USER_SEND, 64, 16));
	put(0, 576);
	ws_poll(fx->e);
	for (unsigned i = 0; i < RTE_DIM(order); i++)
		assert_descriptor(CHANNEL_WS_WP, 0, order[i]);
	/* and when none waits */
	put(1, 1024); /* has been there: its place in the list is stale */
	ws_poll(fx->e);
	assert_descriptor(CHANNEL_WS_WP, 1, 1024);
	fx_put(CHANNEL_WP_WS, fetched(1, USER_SEND, 64, 16));
	put(1, 128);
	ws_poll(fx->e);
	assert_descriptor(CHANNEL_WS_WP, 1, 64);
	assert_descriptor(CHANNEL_WS_WP, 1, 128);
}

TEST(ws_poll__rest_of_a_stale_chain)
{
	fx_put(CHANNEL_WP_WS, fetched(0, USER_SEND, 64, 16));
	fx->qp[0]->epoch++;
	ws_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), 0);
	fx_assert_counter(drop_stale_wqe, 1);
}

/* It leaves the list, whether or not there is room for what it has there; at its turn, if that comes before
 * the wake. */
TEST(ws_poll__releases_one_that_is_ready)
{
	for (unsigned i = 0; i < 2; i++) {
		struct qp *q = fx->qp[i];

		fx_fill(CHANNEL_WS_WP, 0);
		put(i, 0);
		ws_poll(fx->e);
		assert_int_equal(q->ws.ready.listed, 1);
		__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
		if (i == 0)
			hca_close_qp(fx->h, q);
		else
			fx_unfill(CHANNEL_WS_WP);
		ws_poll(fx->e);
		assert_null(q->ws.head);
		assert_int_equal(q->ws.ready.listed, 0);
		assert_int_not_equal(q->closed & 1u << WAKE_WS, 0);
		fx_unfill(CHANNEL_WS_WP);
	}
}

static struct fx_options more_qps = {.qps = 128};

static unsigned parked(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < BURST + 6; i++)
		n += qp_at(&fx->h->qps, i)->ws.parked;
	return n;
}

/* However many queue pairs there are, a poll visits BURST of them: each visit parks one. */
TEST_OPTIONS(ws_poll__visits_are_bounded, &more_qps)
{
	fx_fill(CHANNEL_WS_WP, 0); /* all of them come into the list first */
	for (uint32_t i = 0; i < BURST + 6; i++) {
		struct qp *q = qp_at(&fx->h->qps, i);
		struct rte_mbuf *m = fetched(0, USER_SEND, 0, 16);

		if (!q->qpn)
			fx_make_qp(q, 0x500000 | i, i);
		q->state = QP_SQD; /* nothing comes of the visit */
		request_of(m)->qpn = q->qpn;
		fx_put(CHANNEL_DBP_WS, m);
	}
	ws_poll(fx->e);
	ws_poll(fx->e);
	assert_int_equal(parked(), 0);
	fx_unfill(CHANNEL_WS_WP);
	ws_poll(fx->e);
	assert_int_equal(parked(), BURST);
	ws_poll(fx->e);
	assert_int_equal(parked(), BURST + 6);
	for (uint32_t i = 0; i < BURST + 6; i++) {
		struct qp *q = qp_at(&fx->h->qps, i);

		q->state = QP_RTS;
		wake_post(&fx->e->wake[WAKE_WS], &q->wake[WAKE_WS], q->index);
	}
	ws_poll(fx->e);
	ws_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_WS_WP), BURST + 6);
	fx_unfill(CHANNEL_WS_WP);
}

/* ---- the stage ---- */

/* A queue pair has one chain at a time with WQEParse, and in one poll as many as make a burst of
 * what WQEParse takes and makes. */
TEST(doorbell_wqe_poll__several_chains)
{
	enum { LENGTH = 3, REQUESTS = BURST + 8 };

	fx->e->settings.pipeline_depth = REQUESTS;
	for (uint32_t i = 0; i < REQUESTS; i++) {
		wqe_empty_send(0, i * 64);
		if (i % LENGTH)
			wqe_link(0, i * 64 - 64, i * 64, USER_SEND, 1);
		else
			ring(0, USER_SEND, i * 64, 16);
	}
	doorbell_wqe_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_DP_RTC), BURST / (1 + LENGTH) * LENGTH);
	doorbell_wqe_poll(fx->e);
	for (uint32_t i = 0; i < REQUESTS; i++)
		assert_descriptor(CHANNEL_DP_RTC, 0, i * 64);
}

/* What finds no room waits for a later poll. */
TEST(doorbell_wqe_poll__all_full)
{
	static const enum channel_id rings[] = {CHANNEL_WS_WP, CHANNEL_WP_DP, CHANNEL_DP_RTC};

	wqe_empty_send(0, 0);
	ring(0, USER_SEND, 0, 16);
	for (unsigned i = 0; i < RTE_DIM(rings); i++)
		fx_fill(rings[i], 0);
	doorbell_wqe_poll(fx->e);
	for (unsigned i = 0; i < RTE_DIM(rings); i++)
		fx_unfill(rings[i]);
	doorbell_wqe_poll(fx->e);
	assert_descriptor(CHANNEL_DP_RTC, 0, 0);
}
