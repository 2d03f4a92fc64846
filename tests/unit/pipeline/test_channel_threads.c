/* SPDX-License-Identifier: BSD-3-Clause */
/* Several engines put into one channel while its consumer takes: all arrives once, each engine's in
 * order, and the counts that `softhca fifos` shows miss nothing. */
#include <pthread.h>

#include "test.h"
#include "world_eal.h"
#include "pipeline/channel.h"

enum { ENGINES = 2, EACH = 300000, AT_ONCE = 7 };

TEST_GROUP(.setup = world_eal, .teardown = world_eal_end);

static struct channel channel;
static uint64_t stopped[ENGINES]; /* times that not all of them fitted */

/* What goes through the ring: engine and number, never followed as a pointer. */
static struct rte_mbuf *numbered(uintptr_t engine, uint32_t i)
{
	return (struct rte_mbuf *)(engine << 32 | i);
}

static void *put_all(void *arg)
{
	uintptr_t me = (uintptr_t)arg;

	for (uint32_t i = 0, done; i < EACH; i += done) {
		unsigned n = RTE_MIN(EACH - i, (unsigned)AT_ONCE);
		struct rte_mbuf *m[AT_ONCE];

		for (unsigned k = 0; k < n; k++)
			m[k] = numbered(me, i + k);
		done = channel_try_put(&channel, m, n);
		stopped[me] += done < n;
		if (done == 0)
			sched_yield();
	}
	return NULL;
}

/* Takes until everything has come. */
static void take_all(void)
{
	uint32_t next[ENGINES] = {0};

	for (unsigned taken = 0, n; taken < ENGINES * EACH; taken += n) {
		struct rte_mbuf *m[AT_ONCE], *seen[AT_ONCE];

		for (unsigned i = 0; i < AT_ONCE; i++)
			seen[i] = channel_peek(&channel, i);
		n = channel_take(&channel, m, AT_ONCE);
		for (unsigned i = 0; i < AT_ONCE; i++)
			assert_true(!seen[i] || (i < n && seen[i] == m[i]));
		for (unsigned i = 0; i < n; i++) {
			uintptr_t engine = (uintptr_t)m[i] >> 32;

			assert_in_range(engine, 0, ENGINES - 1);
			assert_ptr_equal(m[i], numbered(engine, next[engine]++));
		}
		if (n == 0)
			sched_yield();
	}
}

TEST(channel_try_put__of_several_threads)
{
	pthread_t thread[ENGINES];
	uint64_t full = 0;

	assert_int_equal(channel_create(&channel, CHANNEL_HP_EE, "threads", true, SOCKET_ID_ANY),
			 0);
	for (uintptr_t i = 0; i < ENGINES; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, put_all, (void *)i), 0);
	while (!__atomic_load_n(&channel.full, __ATOMIC_RELAXED)) /* so that they meet its end */
		sched_yield();
	take_all();
	for (unsigned i = 0; i < ENGINES; i++) {
		pthread_join(thread[i], NULL);
		full += stopped[i];
	}
	assert_int_equal(channel.put, ENGINES * EACH);
	assert_int_equal(channel.taken, ENGINES * EACH);
	assert_int_equal(channel.full, full);
	assert_int_equal(channel.high_water, channel_infos[CHANNEL_HP_EE].depth);
	channel_destroy(&channel);
}
