/* SPDX-License-Identifier: BSD-3-Clause */
/* Several stages complete into one CQ while its client takes, arms and sleeps, and while the
 * control thread holds and releases it: nothing is lost, neither entries nor wake-ups.
 * ThreadSanitizer is the other judge. */
#include <pthread.h>
#include <rte_lcore.h>
#include "completion_fixture.h"

enum { PRODUCERS = 3, EACH = 20000, TOGETHER = 4, IDLE_MAX = 20000000 };

static struct counters own[PRODUCERS];
static uint32_t done; /* atomic: the client has taken all */
/* Atomic: completions, at most TOGETHER of each producer ahead of its post. */
static uint32_t posted;
static struct counters holders;

static void *producer(void *arg)
{
	uint32_t me = (uintptr_t)arg;

	if (me > 0)
		RTE_PER_LCORE(_lcore_id) = me; /* the others have no lists of their own */
	for (uint32_t i = 0, n; i < EACH; i += n) {
		struct cqe entry[TOGETHER];

		n = RTE_MIN(1 + i / 5 % TOGETHER, EACH - i);
		for (uint32_t k = 0; k < n; k++) {
			uint32_t number = me << 24 | (i + k);

			entry[k] = (struct cqe){.my_qpn = number,
						.remote_qpn = ~number,
						.byte_count = number * 3,
						.opcode = 0x0a};
		}

		/* As a client keeps its queues from overrunning: by how much it posts */
		while (__atomic_load_n(&posted, __ATOMIC_RELAXED) -
			       __atomic_load_n(&record.consumer_index, __ATOMIC_ACQUIRE) >=
		       ENTRIES - PRODUCERS * TOGETHER) {
			completion_round(&completion, &own[me]);
			sched_yield();
		}
		__atomic_add_fetch(&posted, n, __ATOMIC_RELAXED);
		if (!cq_post_burst(&completion, &own[me], CQN, entry, n, false))
			break;
		if (i % 3 == 0)
			completion_round(&completion, &own[me]);
	}
	/* Stages go on polling: what the holder releases last is their concern, too. */
	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
		completion_round(&completion, &own[me]);
		sched_yield();
	}
	return NULL;
}

/* The control thread. */
static void *holder(void *arg)
{
	static struct cqe backlog[ENTRIES];

	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
		memset(backlog, 0, sizeof(backlog));
		assert_int_equal(cq_hold(&completion, CQN, backlog, ENTRIES), 0);
		sched_yield();
		assert_int_equal(cq_release(&completion, &holders, CQN), 0);
		sched_yield();
	}
	return NULL;
}

struct seen {
	uint32_t next[PRODUCERS], wrong, total;
};

static void take_all(struct seen *s)
{
	struct cqe c;

	while (take_cqe(&c)) {
		uint32_t p = c.my_qpn >> 24;

		if (p >= PRODUCERS || (c.my_qpn & 0xffffff) != s->next[p] ||
		    c.remote_qpn != ~c.my_qpn || c.byte_count != c.my_qpn * 3)
			s->wrong++;
		else
			s->next[p]++;
		s->total++;
	}
}

/* The client: arms, takes what is there, and then moves only when an event came. */
TEST(cq_post__many_producers_and_a_sleeping_client)
{
	struct seen s = {0};
	pthread_t thread[PRODUCERS + 1];
	uint32_t arm = 0, sleeps = 0;
	uint64_t idle = 0;
	struct eqe ev;

	memset(own, 0, sizeof(own));
	memset(&holders, 0, sizeof(holders));
	done = posted = 0;
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, producer, (void *)i), 0);
	assert_int_equal(pthread_create(&thread[PRODUCERS], NULL, holder, NULL), 0);
	while (s.total < PRODUCERS * EACH && !s.wrong && idle < IDLE_MAX) {
		__atomic_store_n(&record.arm_next, ++arm, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		take_all(&s);
		if (s.total == PRODUCERS * EACH)
			break;
		sleeps++;
		for (idle = 0; !take_event(&ev) && idle < IDLE_MAX; idle++)
			sched_yield();
	}
	if (s.wrong || s.total != PRODUCERS * EACH) {
		print_message("%u of %u, %u wrong\n", s.total, PRODUCERS * EACH, s.wrong);
		_exit(1); /* the producers may wait for ever */
	}
	__atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i <= PRODUCERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < PRODUCERS; i++) {
		assert_int_equal(s.next[i], EACH);
		assert_int_equal(counter_read(&own[i], COUNTER_cq_overruns), 0);
	}
	assert_int_equal(counter_read(&holders, COUNTER_cq_overruns), 0);
	assert_true(sleeps > 0);
}
