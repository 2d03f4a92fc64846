/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WQEScheduler against RequesterTransControl on another lcore: one parks the queue pair when its
 * request has not been consumed, the other consumes it and wakes the parked queue pair. The second
 * to act sees the first, so no wake is ever lost.
 *
 * In one thread, order by order: test_wqe_scheduler_races.c. This one tests reordering of stores,
 * which needs two processors. A lost wake is proven, not waited for: everything passed on is
 * consumed, the other side has completed a loop since, so its wake is posted if there will be one;
 * more requests wait; and a poll does nothing. The clock only ends the test when the machine is
 * slow: that is no failure.
 *
 * A request comes only when the list is empty: else WQEScheduler parks the queue pair in the same
 * poll in which it passes on the one before it, which cannot have been consumed yet.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include "pipeline/parking.h"
#include "send_queue_fixture.h"

enum { REQUESTS = 3000, REQUESTS_MIN = 20, SECONDS = 3 };

/* A varying delay, so that each side meets the other in the middle of its work. */
static void dawdle(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	for (volatile uint32_t i = *random >> 25; i; i--)
		;
}

/* RequesterTransControl's handling of a request, as far as WQEScheduler sees it. */
static void consume(struct qp *q, struct rte_mbuf *m)
{
	rte_mbuf_raw_free(m);
	__atomic_store_n(&q->rtc.consumed, q->rtc.consumed + 1, __ATOMIC_RELEASE);
	if (parked(&q->ws.parked, false))
		wake_post(&fx->e->wake[WAKE_WS], &q->wake[WAKE_WS], q->index);
}

static void put_one(void)
{
	channel_put_one(&fx->e->channel[CHANNEL_DBP_WS], fetched(0, USER_SEND, 0, 16));
}

static bool consume_one(struct qp *q)
{
	struct rte_mbuf *m;

	if (!channel_take(&fx->e->channel[CHANNEL_WS_WP], &m, 1))
		return false;
	consume(q, m);
	return true;
}

/* Nothing to do: the other one may have no CPU. */
static void idle(uint32_t *times)
{
	if (++*times % 256 == 0)
		sched_yield();
}

static bool stop;
static uint32_t rounds; /* of the consumer's loop; atomic */

static void *consumer(void *arg)
{
	uint32_t random = 1, idles = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		dawdle(&random);
		if (!consume_one(arg))
			idle(&idles);
		__atomic_fetch_add(&rounds, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* All handed over is consumed, with all that belongs to it. */
static bool consumer_rests(const struct qp *q)
{
	uint32_t from;

	if (__atomic_load_n(&q->rtc.consumed, __ATOMIC_ACQUIRE) != q->ws.issued)
		return false;
	from = __atomic_load_n(&rounds, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) - from < 2)
		sched_yield();
	return true;
}

/* Requests until there were enough, a wake was lost, or it takes too long. Returns how many were
 * consumed. */
static uint32_t schedule(struct qp *q, bool *lost)
{
	time_t end = time(NULL) + SECONDS;
	uint32_t put = 0, consumed = 0, idles = 0;

	while (!*lost && consumed < REQUESTS && (consumed < REQUESTS_MIN || time(NULL) < end)) {
		if (put < REQUESTS && put - consumed < 2) {
			put_one();
			put++;
		}
		if (!ws_poll(fx->e)) {
			idle(&idles);
			*lost = idles % 512 == 0 && q->ws.issued < put && consumer_rests(q) &&
				!ws_poll(fx->e);
		}
		consumed = __atomic_load_n(&q->rtc.consumed, __ATOMIC_ACQUIRE);
	}
	return consumed;
}

TEST(ws_poll__no_wake_is_lost)
{
	struct qp *q = fx->qp[0];
	uint32_t consumed;
	pthread_t thread;
	bool lost = false;
	cpu_set_t cpus;

	CPU_ZERO(
		&cpus); /* EAL keeps the first thread on one, and the second would stay there too */
	for (int i = 0; i < CPU_SETSIZE; i++)
		CPU_SET(i, &cpus);
	fx->e->settings.pipeline_depth = 1;
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, consumer, q), 0);
	pthread_setaffinity_np(thread, sizeof(cpus), &cpus);
	consumed = schedule(q, &lost);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	fx_unfill(CHANNEL_WS_WP);
	requests_free(fx->e, &q->ws.head);
	fx->e->held[FX_CLIENT] = fx->e->held_total = 0; /* they were not counted */
	print_message("%u of %u requests\n", consumed, (unsigned)REQUESTS);
	assert_false(lost);
}
