/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pair contexts: finding them, the one transition that several modules make, and the lists in
 * which they take turns.
 */
#include <sys/mman.h>
#include "context/qp_list.h"
#include "engine_fixture.h"

static unsigned woken(struct qp *q)
{
	unsigned n = 0;

	for (unsigned t = 0; t < WAKE_COUNT; t++)
		if (wake_take(&fx->e->wake[t]) == q->index) {
			wake_next(&q->wake[t]);
			n++;
		}
	return n;
}

TEST(qp_set_error__from_each_state)
{
	struct qp *q = fx->qp[0];

	for (enum qp_state s = QP_RST; s <= QP_ERR; s++) {
		bool moves = s != QP_RST && s != QP_ERR;

		q->state = s;
		assert_int_equal(qp_set_error(fx->e, q), moves);
		assert_int_equal(qp_state(q), moves ? QP_ERR : s);
		assert_int_equal(woken(q), moves ? WAKE_COUNT : 0);
	}
}

/* The first one ends the QP and says so; those that follow are lost in silence. */
TEST(qp_completion_lost__once)
{
	struct qp *q = fx->qp[0];
	const struct eqe *e = &fx->page->eq[0];

	q->state = QP_RTS;
	for (unsigned i = 0; i < 3; i++)
		qp_completion_lost(fx->e, &fx->h->counters, q);
	assert_int_equal(qp_state(q), QP_ERR);
	assert_int_equal(woken(q), WAKE_COUNT);
	assert_int_equal(counter_read(&fx->h->counters, COUNTER_events), 1);
	assert_int_equal(e->type, EQE_WQ_CATAS_ERROR);
	assert_int_equal(e->number, q->qpn);
}

TEST(qp_find__whole_number)
{
	uint32_t qpn = fx->qp[0]->qpn;

	assert_ptr_equal(qp_find(&fx->h->qps, qpn), fx->qp[0]);
	assert_null(qp_find(&fx->h->qps, qpn + fx->h->qps.count)); /* same context */
	assert_null(qp_find(&fx->h->qps, qpn + 32));		   /* a free one */
	assert_null(qp_find(&fx->h->qps, 0));
}

/* From RTS and SQD alone. */
TEST(qp_set_sqe__from_each_state)
{
	struct qp *q = fx->qp[0];

	for (enum qp_state s = QP_RST; s <= QP_ERR; s++) {
		bool can = s == QP_RTS || s == QP_SQD;

		q->state = s;
		assert_int_equal(qp_set_sqe(q), can);
		assert_int_equal(q->state, can ? QP_SQE : s);
	}
}

TEST(qp_closing__all_modules_release_it)
{
	struct qp *q = fx->qp[0];

	assert_false(qp_closing(q));
	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	assert_true(qp_closing(q));
	for (unsigned t = 0; t < WAKE_COUNT; t++) {
		assert_false(hca_qp_closed(q));
		qp_close(q, t);
	}
	assert_true(hca_qp_closed(q));
}

/* Pages of that memory, of whole pages, that take room. */
static unsigned resident(const void *at, size_t bytes)
{
	static unsigned char in_core[4096];
	unsigned n = 0;

	assert_in_range(bytes / 4096, 1, sizeof(in_core));
	assert_int_equal(mincore((void *)(uintptr_t)at, bytes, in_core), 0);
	for (size_t i = 0; i < bytes / 4096; i++)
		n += in_core[i] & 1;
	return n;
}

/* What 128 outstanding READs and atomics of each may need costs nothing before it is used, nor
 * after the queue pair has gone. */
TEST(qp_answers__cost_nothing_while_unused)
{
	const size_t bytes = ANSWERS_MAX * sizeof(struct answer);
	struct qp q = {.index = 5};
	struct qp_table t;

	assert_int_equal(qp_table_create(&t, 8), 0);
	assert_int_equal(resident(t.answers, 8 * bytes), 0);
	assert_int_equal(resident(t.results, 4096), 0);
	qp_answers(&t, &q)[q.respg.fresh++].va = 1;
	assert_true(resident(qp_answers(&t, &q), bytes) > 0);
	qp_answers_release(&t, &q);
	assert_int_equal(resident(qp_answers(&t, &q), bytes), 0);
	qp_table_destroy(&t);
}

TEST(qp_state__what_it_permits)
{
	static const struct {
		bool sends, receives;
	} rows[] = {[QP_RST] = {0, 0}, [QP_INIT] = {0, 0}, [QP_RTR] = {0, 1}, [QP_RTS] = {1, 1},
		    [QP_SQE] = {0, 1}, [QP_SQD] = {1, 1},  [QP_ERR] = {0, 0}};

	for (enum qp_state s = QP_RST; s <= QP_ERR; s++) {
		assert_int_equal(qp_sends(s), rows[s].sends);
		assert_int_equal(qp_receives(s), rows[s].receives);
	}
}

enum { LISTED = 6 };

/* A list of QPs 0, 1, … LISTED - 1. */
static void make_list(struct qp_list *l, struct qp *qps)
{
	static struct qp_table table;

	table = (struct qp_table){.qps = qps, .count = LISTED};
	memset(qps, 0, LISTED * sizeof(*qps));
	qp_list_init(l, &table, offsetof(struct qp, ee.starved));
	for (uint32_t i = 0; i < LISTED; i++) {
		qps[i].index = i;
		qp_list_add(l, &qps[i]);
	}
}

static void assert_list(struct qp_list *l, const uint32_t *want, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct qp *q = qp_list_take(l);

		assert_non_null(q);
		assert_int_equal(q->index, want[i]);
		assert_int_equal(q->ee.starved.listed, 0);
	}
	assert_null(qp_list_take(l));
}

/* Any two, in any order, then one of them comes back. */
TEST(qp_list__order_after_removals)
{
	static struct qp qps[LISTED];
	struct qp_list l;

	for (uint32_t a = 0; a < LISTED; a++)
		for (uint32_t b = 0; b < LISTED; b++) {
			uint32_t want[LISTED], n = 0;

			make_list(&l, qps);
			qp_list_remove(&l, &qps[a]);
			qp_list_remove(&l, &qps[b]);
			qp_list_add(&l, &qps[a]);
			for (uint32_t i = 0; i < LISTED; i++)
				if (i != a && i != b)
					want[n++] = i;
			want[n++] = a;
			assert_list(&l, want, n);
		}
}

/* The first ones have been taken: what they left behind in the others is not looked at. */
TEST(qp_list__removed_after_takes)
{
	static const uint32_t want[] = {3, 5};
	static struct qp qps[LISTED];
	struct qp_list l;

	make_list(&l, qps);
	qp_list_take(&l);
	qp_list_take(&l);
	qp_list_remove(&l, &qps[2]);
	qp_list_remove(&l, &qps[4]);
	assert_list(&l, want, 2);
}

/* One that was put in front is a neighbour like any other. */
TEST(qp_list__removed_behind_one_put_first)
{
	static const uint32_t want[] = {0, 3, 4, 5}, alone[] = {1};
	static struct qp qps[LISTED];
	struct qp_list l;

	make_list(&l, qps);
	qp_list_take(&l);
	qp_list_take(&l);
	qp_list_add_first(&l, &qps[0]);
	qp_list_remove(&l, &qps[2]);
	assert_list(&l, want, 4);
	qp_list_add_first(&l, &qps[1]); /* of an empty list */
	assert_list(&l, alone, 1);
}

/* When a client with thousands of QPs goes, each of them must cost the same: nothing but the
 * neighbours is looked at. */
TEST(qp_list__removal_looks_at_neighbours_only)
{
	static const uint32_t want[] = {0, 1, 2, 3, 5};
	static struct qp qps[LISTED];
	struct qp_list l;

	make_list(&l, qps);
	qps[1].ee.starved.next = 5; /* a walk from the first one would miss it */
	qp_list_remove(&l, &qps[4]);
	qps[1].ee.starved.next = 2;
	assert_list(&l, want, 5);
}
