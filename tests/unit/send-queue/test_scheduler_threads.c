/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WQEScheduler against RequesterTransControl on another lcore: one parks the queue pair when its
 * request has not been consumed, the other consumes it and wakes who is parked. Whoever comes
 * second sees the first, so no wake is ever lost.
 *
 * Once without the other lcore: single steps of the processor, at each of which in turn the request
 * is consumed. Then with it, for what only two processors can do to each other's stores; there a
 * lost wake is proven, not waited for: all that was handed over is consumed, the other side has
 * been through its loop since, so its wake is posted if there will be one; more requests wait; and
 * a poll does nothing. The clock only ends the test when the machine is slow: that is no failure.
 *
 * A request comes only when the list is empty: else WQEScheduler parks the queue pair in the same
 * poll in which it hands the one before it over, when nobody can have consumed that yet.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include "send_queue_fixture.h"

enum { REQUESTS = 3000, REQUESTS_MIN = 20, SECONDS = 3 };

/* A while, each time another one, so that one comes into the midst of what the other does. */
static void dawdle(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	for (volatile uint32_t i = *random >> 25; i; i--)
		;
}

/* What RequesterTransControl does with a request, as far as WQEScheduler sees. */
static void consume(struct qp *q, struct rte_mbuf *m)
{
	rte_mbuf_raw_free(m);
	__atomic_store_n(&q->rtc.consumed, q->rtc.consumed + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&q->ws.parked, __ATOMIC_SEQ_CST))
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

static void leave_nothing(void)
{
	fx_unfill(CHANNEL_WS_WP);
	requests_free(fx->e, &fx->qp[0]->ws.head);
	fx->e->held[FX_CLIENT] = fx->e->held_total = 0; /* they were not counted */
}

/* ---- step by step ---- */

/* ThreadSanitizer's own code must not be entered in its midst. */
#if defined(__SANITIZE_THREAD__)
#define STEPS_CAN_BE_MADE 0
#elif defined(__has_feature)
#define STEPS_CAN_BE_MADE !__has_feature(thread_sanitizer)
#else
#define STEPS_CAN_BE_MADE 1
#endif

#if defined(__x86_64__) && STEPS_CAN_BE_MADE
#define TRAP_FLAG 0x100
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 7 /* many more instructions, and none of them about this */
#else
#define STRIDE 1
#endif

static volatile unsigned steps; /* until the request is consumed */

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)sig;
	(void)info;
	if (--steps)
		return;
	consume_one(fx->qp[0]);
	c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* A poll, in which the request handed over before is consumed after so many instructions. False: it
 * is over before that. */
static bool poll_in_steps(unsigned n)
{
	steps = n;
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
	ws_poll(fx->e);
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
	return steps == 0;
}

static void ws_poll__consumed_at_any_instruction(void **state)
{
	struct sigaction mine = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, old;
	struct qp *q = fx->qp[0];
	unsigned n, rounds_made = 0;
	bool inside = true;

	fx->e->settings.pipeline_depth = 1;
	sigaction(SIGTRAP, &mine, &old);
	for (n = 1; inside; n += STRIDE) {
		put_one();
		assert_int_equal(ws_poll(fx->e), 2); /* taken, and handed over */
		put_one();
		inside = poll_in_steps(n);
		rounds_made++;
		while (q->rtc.consumed != 2 * rounds_made)
			if (!consume_one(q) && !ws_poll(fx->e))
				fail_msg("consumed after instruction %u: its wake is lost", n);
	}
	sigaction(SIGTRAP, &old, NULL);
	print_message("%u instructions\n", n);
	assert_true(n > 50);
	leave_nothing();
}
#else
static void ws_poll__consumed_at_any_instruction(void **state)
{
	skip();
}
#endif

/* ---- with two threads ---- */

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

static void ws_poll__no_wake_is_lost(void **state)
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
	leave_nothing();
	print_message("%u of %u requests\n", consumed, (unsigned)REQUESTS);
	assert_false(lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FX_TEST(ws_poll__consumed_at_any_instruction),
		FX_TEST(ws_poll__no_wake_is_lost),
	};

	return cmocka_run_group_tests(tests, fx_group_setup, fx_group_teardown);
}
