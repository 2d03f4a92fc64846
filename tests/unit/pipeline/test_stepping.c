/* SPDX-License-Identifier: BSD-3-Clause */
/* A module stands, steps, and runs again; what it would have done is done later. What modules do is
 * traced. */
#include "engine_fixture.h"
#include "pipeline/stepping.h"
#include "pipeline/trace.h"
#include "send-queue/send_queue.h"

enum { ELEMENTS = 5 };

static void stand(enum module_id id)
{
	stepping_set(fx->e, 1u << id);
}

/* Steps of a module of stage doorbell_wqe. */
static struct step_report step(enum module_id id, uint32_t steps)
{
	struct step_report r;

	stepping_ask(fx->e, id, steps);
	assert_false(stepping_done(fx->e, &r));
	doorbell_wqe_poll(fx->e);
	assert_true(stepping_done(fx->e, &r));
	return r;
}

static void put_elements(void)
{
	for (unsigned i = 0; i < ELEMENTS; i++)
		fx_put(CHANNEL_WP_DP, fx_request(1, USER_RDMA_READ, 8, i * 64));
}

static void assert_fill(unsigned before, unsigned behind)
{
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), before);
	assert_int_equal(fx_ring_count(CHANNEL_DP_RTC), behind);
}

TEST(stepping__a_module_stands_and_steps)
{
	struct step_report r;

	put_elements();
	stand(MODULE_DP);
	assert_int_equal(doorbell_wqe_poll(fx->e), 0);
	assert_fill(ELEMENTS, 0);

	r = step(MODULE_DP, 1);
	assert_fill(ELEMENTS - 1, 1);
	assert_int_equal(r.steps, 1);
	assert_int_equal(r.taken[CHANNEL_WP_DP], 1);
	assert_int_equal(r.put[CHANNEL_DP_RTC], 1);
	assert_int_equal(r.last.qpn, FX_QPN + 2);
	assert_int_equal(doorbell_wqe_poll(fx->e), 0); /* that was all */

	r = step(MODULE_DP, 2);
	assert_int_equal(r.steps, 2);
	assert_fill(ELEMENTS - 3, 3);
	assert_int_equal(step(MODULE_DP, 100).steps, 2);
	assert_fill(0, ELEMENTS);
	assert_int_equal(step(MODULE_DP, 1).steps, 0);
	for (unsigned i = 0; i < ELEMENTS; i++) { /* in order */
		struct rte_mbuf *m = fx_take(CHANNEL_DP_RTC);

		assert_int_equal(request_of(m)->wqe_offset, i * 64);
		rte_mbuf_raw_free(m);
	}
}

/* Back pressure is the same as ever; so is what stays where it was. */
TEST(stepping__no_room)
{
	struct channel *in = &fx->e->channel[CHANNEL_WP_DP];

	put_elements();
	fx_fill(CHANNEL_DP_RTC, 0);
	stand(MODULE_DP);
	assert_int_equal(step(MODULE_DP, 1).steps, 0);
	assert_int_equal(fx_ring_count(CHANNEL_WP_DP), ELEMENTS);
	assert_int_equal(in->taken, 0);
	fx_unfill(CHANNEL_DP_RTC);
	stepping_set(fx->e, 0);
	assert_int_equal(fx->e->watched, 0);
	assert_int_equal(doorbell_wqe_poll(fx->e), ELEMENTS);
	assert_int_equal(in->taken, ELEMENTS);
	fx_unfill(CHANNEL_DP_RTC);
}

/* One that stands is not measured; the others go on, and are. */
TEST(stepping__others_run)
{
	put_elements();
	engine_watch(fx->e, WATCH_TIMED, true);
	stand(MODULE_WS);
	assert_int_equal(doorbell_wqe_poll(fx->e), ELEMENTS);
	assert_int_equal(fx->e->run[MODULE_DP].elements, ELEMENTS);
	assert_int_equal(fx->e->run[MODULE_WS].polls, 0);
	stepping_set(fx->e, 0);
	doorbell_wqe_poll(fx->e);
	assert_int_equal(fx->e->run[MODULE_WS].polls, 1);
	engine_watch(fx->e, WATCH_TIMED, false);
	fx_unfill(CHANNEL_DP_RTC);
}

/* Who takes something of a queue pair is recorded, what is of others is not, nor what is not taken. */
TEST(trace__what_a_module_takes)
{
	const struct trace_stage *s;

	assert_int_equal(trace_begin(fx->e, FX_QPN + 2), 0);
	assert_int_equal(trace_begin(fx->e, FX_QPN + 1), -EBUSY);
	fx_put(CHANNEL_WP_DP, fx_request(0, USER_RDMA_READ, 8, 0));
	put_elements();
	fx_fill(CHANNEL_DP_RTC, 3);
	engine_watch(fx->e, WATCH_TIMED, true); /* at the same time */
	assert_int_equal(doorbell_wqe_poll(fx->e), 3);
	engine_watch(fx->e, WATCH_TIMED, false);
	assert_int_equal(fx->e->run[MODULE_DP].elements, 3);
	s = &fx->e->stepping->trace->stage[STAGE_DOORBELL_WQE];
	assert_int_equal(s->count, 2);
	for (unsigned i = 0; i < s->count; i++) {
		assert_int_equal(s->record[i].module, MODULE_DP);
		assert_int_equal(s->record[i].channel, CHANNEL_WP_DP);
		assert_int_equal(s->record[i].kind, TRACE_REQUEST);
		assert_int_equal(s->record[i].wqe, i * 64);
	}
	fx_unfill(CHANNEL_DP_RTC);
	rte_free(trace_end(fx->e));
	assert_int_equal(fx->e->watched, 0);
	doorbell_wqe_poll(fx->e);
	fx_unfill(CHANNEL_DP_RTC);
}

/* No more than there is room for. */
TEST(trace__full)
{
	const struct trace_stage *s;

	assert_int_equal(trace_begin(fx->e, FX_QPN + 2), 0);
	for (unsigned i = 0; i <= TRACE_RECORDS_MAX / ELEMENTS; i++) {
		put_elements();
		doorbell_wqe_poll(fx->e);
		fx_unfill(CHANNEL_DP_RTC);
	}
	s = &fx->e->stepping->trace->stage[STAGE_DOORBELL_WQE];
	assert_int_equal(s->count, TRACE_RECORDS_MAX);
	rte_free(trace_end(fx->e));
}

/* A queue pair that leaves is released by those that stand, too, who take nothing new. */
TEST(stepping__queue_pairs_leave)
{
	struct qp *q = fx->qp[0];

	fx_put(CHANNEL_DBP_WS, fx_request(1, USER_SEND, 8, 0));
	stand(MODULE_WS);
	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	hca_close_qp(fx->h, q);
	doorbell_wqe_poll(fx->e);
	assert_int_equal(q->closed & 1u << WAKE_WS, 0);
	fx->e->releasing = 1;
	doorbell_wqe_poll(fx->e);
	assert_int_not_equal(q->closed & 1u << WAKE_WS, 0);
	assert_int_equal(fx_ring_count(CHANNEL_DBP_WS), 1);
	fx->e->releasing = 0;
	stepping_set(fx->e, 0);
	fx_unfill(CHANNEL_DBP_WS);
}
