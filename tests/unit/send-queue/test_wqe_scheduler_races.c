/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterTransControl consumes a request in the middle of WQEScheduler's poll: before any of its
 * atomic loads and stores; by one thread, so that each order surely comes by. */
#include "../intruder.h"

#define __atomic_load_n(...)  (other_lcore(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...) (other_lcore(), __atomic_store_n(__VA_ARGS__))
#include "wqe_scheduler.c"
#undef __atomic_load_n
#undef __atomic_store_n
#include "send_queue_fixture.h"

static void consume(void)
{
	struct qp *q = fx->qp[0];

	__atomic_store_n(&q->rtc.consumed, q->rtc.consumed + 1, __ATOMIC_RELEASE);
	if (parked(&q->ws.parked, false))
		wake_post(&fx->e->wake[WAKE_WS], &q->wake[WAKE_WS], q->index);
}

static void back_to_rts(void)
{
	struct qp *q = fx->qp[0];

	__atomic_store_n(&q->state, QP_RTS, __ATOMIC_RELEASE);
	if (parked(&q->ws.parked, false))
		wake_post(&fx->e->wake[WAKE_WS], &q->wake[WAKE_WS], q->index);
}

static void put(uint32_t offset)
{
	fx_put(CHANNEL_DBP_WS, fetched(0, USER_SEND, offset, 16));
}

/* With `other` in the middle of a poll, or after it, the descriptor continues at the latest with
 * the poll that follows. */
static void continues(void **state, void (*begin)(void), void (*other)(void))
{
	bool came_by = true;

	for (unsigned at = 0; came_by; at++) {
		assert_true(at < 200);
		fx_teardown(state);
		fx_setup(state);
		begin();
		put(64);
		intruder = other;
		intrude_at = at;
		ws_poll(fx->e);
		came_by = !intruder;
		if (!came_by) {
			intruder = NULL;
			other();
		}
		ws_poll(fx->e);
		assert_descriptor(CHANNEL_WS_WP, 0, 64);
		assert_int_equal(fx->qp[0]->ws.parked, 0);
	}
}

static void at_its_depth(void)
{
	fx->e->settings.pipeline_depth = 1;
	put(0);
	ws_poll(fx->e);
	assert_descriptor(CHANNEL_WS_WP, 0, 0);
}

TEST(ws_poll__consumed_while_it_is_parked)
{
	continues(state, at_its_depth, consume);
}

static void in_sqd(void)
{
	fx->qp[0]->state = QP_SQD;
}

TEST(ws_poll__rts_while_it_is_parked)
{
	continues(state, in_sqd, back_to_rts);
}
