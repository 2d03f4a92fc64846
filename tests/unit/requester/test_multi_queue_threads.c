/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MultiQueue by two threads, as RequesterTransControl and RequesterRecvControl use it: a producer
 * that puts whenever there is a free element and a consumer that takes whenever there is something,
 * with a pool so small that lists run empty and elements change lists all the time. Both the
 * numbers seen and ThreadSanitizer are the judges.
 */
#include <pthread.h>
#include "multi_queue_fixture.h"

enum { QUEUES = 5, ELEMENTS = 30000 };

struct shared {
	struct multi_queue *mq;
	struct mq_list list[QUEUES];
	unsigned queues;
	/* consumer's */
	uint32_t next[QUEUES];
	uint32_t wrong;
};

/* Mostly spins, so that the two really meet; yields now and then, for there may be one CPU. */
static void wait_a_little(uint32_t *waits)
{
	if (++*waits % 256 == 0)
		sched_yield();
}

static void *producer(void *arg)
{
	struct shared *s = arg;
	uint32_t waits = 0;

	for (uint32_t i = 0; i < ELEMENTS * s->queues; i++) {
		uint32_t q = i % s->queues;
		struct sw_element x = {
			.psn = i / s->queues, .wqe_offset = q, .length = ~(i / s->queues)};

		while (!mq_free_count(&s->mq->sw_free))
			wait_a_little(&waits);
		sw_put(s->mq, &s->list[q], &x);
	}
	return NULL;
}

/* Takes some elements of that queue. Returns how many. */
static uint32_t consume(struct shared *s, uint32_t q)
{
	struct sw_element *x = sw_head(s->mq, &s->list[q]);
	uint32_t n = RTE_MIN(mq_count(&s->list[q]), 1 + s->next[q] % 4);

	if (!x)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		if (x->psn != s->next[q] || x->wqe_offset != q || x->length != ~x->psn)
			s->wrong++;
		s->next[q]++;
		if (i + 1 < n)
			x = &s->mq->sw[x->next];
	}
	sw_pop_run(s->mq, &s->list[q], n);
	return n;
}

static void *consumer(void *arg)
{
	struct shared *s = arg;
	uint32_t left = ELEMENTS * s->queues, waits = 0;

	while (left && !s->wrong) {
		uint32_t n = 0;

		for (uint32_t q = 0; q < s->queues; q++)
			n += consume(s, q);
		left -= n;
		if (!n)
			wait_a_little(&waits);
	}
	return NULL;
}

static void stress(unsigned queues, uint32_t pool)
{
	struct shared s = {.mq = multi_queue_make(pool), .queues = queues};
	pthread_t thread[2];

	assert_int_equal(pthread_create(&thread[0], NULL, producer, &s), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, consumer, &s), 0);
	pthread_join(thread[1], NULL);
	if (s.wrong)
		_exit(1); /* the producer may wait for ever */
	pthread_join(thread[0], NULL);
	for (uint32_t q = 0; q < queues; q++) {
		assert_int_equal(s.next[q], ELEMENTS);
		assert_int_equal(mq_count(&s.list[q]), 0);
	}
	assert_int_equal(mq_free_count(&s.mq->sw_free), pool);
	multi_queue_unmake();
}

TEST(multi_queue__one_element_race)
{
	stress(1, 1);
	stress(1, 2);
	stress(1, 3);
}

TEST(multi_queue__queues_share_a_small_pool)
{
	stress(QUEUES, 2);
	stress(QUEUES, QUEUES + 1);
}

TEST(multi_queue__plenty)
{
	stress(2, 64);
}
