/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair contexts: finding them, and the one transition that several modules make. */
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

static void qp_set_error__from_each_state(void **state)
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

static void qp_find__whole_number(void **state)
{
	uint32_t qpn = fx->qp[0]->qpn;

	assert_ptr_equal(qp_find(&fx->h->qps, qpn), fx->qp[0]);
	assert_null(qp_find(&fx->h->qps, qpn + fx->h->qps.count)); /* same context */
	assert_null(qp_find(&fx->h->qps, qpn + 32));		   /* a free one */
	assert_null(qp_find(&fx->h->qps, 0));
}

/* From RTS and SQD alone. */
static void qp_set_sqe__from_each_state(void **state)
{
	struct qp *q = fx->qp[0];

	for (enum qp_state s = QP_RST; s <= QP_ERR; s++) {
		bool can = s == QP_RTS || s == QP_SQD;

		q->state = s;
		assert_int_equal(qp_set_sqe(q), can);
		assert_int_equal(q->state, can ? QP_SQE : s);
	}
}

static void qp_closing__all_modules_let_go(void **state)
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

static void qp_state__what_it_permits(void **state)
{
	static const struct {
		bool sends, receives;
	} rows[] = {[QP_RST] = {0, 0},
		[QP_INIT] = {0, 0},
		[QP_RTR] = {0, 1},
		[QP_RTS] = {1, 1},
		[QP_SQE] = {0, 1},
		[QP_SQD] = {1, 1},
		[QP_ERR] = {0, 0}};

	for (enum qp_state s = QP_RST; s <= QP_ERR; s++) {
		assert_int_equal(qp_sends(s), rows[s].sends);
		assert_int_equal(qp_receives(s), rows[s].receives);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FX_TEST(qp_set_error__from_each_state),
		FX_TEST(qp_set_sqe__from_each_state),
		FX_TEST(qp_find__whole_number),
		FX_TEST(qp_closing__all_modules_let_go),
		FX_TEST(qp_state__what_it_permits),
	};

	return cmocka_run_group_tests(tests, fx_group_setup, fx_group_teardown);
}
