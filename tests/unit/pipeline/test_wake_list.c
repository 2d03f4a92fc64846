/* SPDX-License-Identifier: BSD-3-Clause */
/* Wake lists: once each, nothing lost, many posters and one consumer. */
#include <pthread.h>
#include <sched.h>

#include "test.h"
#include "pipeline/wake_list.h"

enum { QPS = 16, POSTERS = 3, ROUNDS = 30000 };

static struct wake_list list;
static struct wake_link links[QPS];

static void begin(void)
{
	wake_list_init(&list);
	memset(links, 0, sizeof(links));
}

/* Takes the whole list; returns how many, with a bit for each index. */
static unsigned take(uint32_t *bits)
{
	uint32_t i = wake_take(&list);
	unsigned n = 0;

	*bits = 0;
	while (i != WAKE_END) {
		*bits |= 1u << i;
		n++;
		i = wake_next(&links[i]);
	}
	return n;
}

TEST(wake_post__once_each)
{
	uint32_t bits;

	begin();
	assert_int_equal(take(&bits), 0);
	for (unsigned twice = 0; twice < 2; twice++)
		for (unsigned i = 0; i < QPS; i += 3)
			wake_post(&list, &links[i], i);
	assert_int_equal(take(&bits), 6);
	assert_int_equal(bits, 0x9249);
	assert_int_equal(take(&bits), 0);
}

TEST(wake_next__may_be_posted_again)
{
	uint32_t i, bits;

	begin();
	wake_post(&list, &links[1], 1);
	wake_post(&list, &links[2], 2);
	i = wake_take(&list);
	wake_post(&list, &links[i], i); /* not released yet: the taker reads it after this */
	assert_int_equal(wake_take(&list), WAKE_END);
	wake_next(&links[i]);
	wake_post(&list, &links[i], i);
	assert_int_equal(take(&bits), 1);
	assert_int_equal(bits, 1u << i);
}

/* ---- threads: what a poster stores before it posts, the consumer sees after it took ---- */

static uint32_t stored[POSTERS][QPS]; /* atomic; one writer each */
static uint32_t seen[POSTERS][QPS];
static uint32_t posters_done;

static void *poster(void *arg)
{
	unsigned me = (uintptr_t)arg;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint32_t i = (round * 7 + me) % QPS;

		__atomic_store_n(&stored[me][i], round, __ATOMIC_RELAXED);
		wake_post(&list, &links[i], i);
	}
	__atomic_add_fetch(&posters_done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void consume(void)
{
	uint32_t i = wake_take(&list);

	while (i != WAKE_END) {
		uint32_t next = wake_next(&links[i]);

		for (unsigned p = 0; p < POSTERS; p++)
			seen[p][i] = __atomic_load_n(&stored[p][i], __ATOMIC_RELAXED);
		i = next;
	}
}

TEST(wake_list__nothing_lost)
{
	pthread_t thread[POSTERS];
	bool last = false;

	begin();
	for (uintptr_t i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poster, (void *)i), 0);
	while (!last) {
		last = __atomic_load_n(&posters_done, __ATOMIC_SEQ_CST) == POSTERS;
		consume();
		sched_yield();
	}
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned p = 0; p < POSTERS; p++)
		for (unsigned i = 0; i < QPS; i++)
			assert_int_equal(seen[p][i], stored[p][i]);
}
