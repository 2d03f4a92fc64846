/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of multicast groups read by one thread while another attaches, detaches and frees, as
 * HeaderParser and the CEU do. For ThreadSanitizer, and to catch uses after free. */
#include <pthread.h>
#include <sched.h>

#include "test.h"
#include "context/multicast.h"

enum { GROUPS = 12, QPS = 5, ROUNDS = 6000, KEPT = 0 };

static struct multicast_table table;
static uint64_t polls; /* atomic: rounds that the reader has ended */
static bool ending;    /* atomic */
static uint64_t wrong; /* the reader's: what it saw that was never there */
static uint64_t missed, seen;

static void group(unsigned int n, uint8_t mgid[16])
{
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[15] = (uint8_t)n;
}

/* A queue pair's number says which group it is of. */
static uint32_t qpn_of(unsigned int n, unsigned int qp)
{
	return (n + 1) << 8 | (qp + 1);
}

static void read_group(unsigned int n)
{
	const struct multicast_group *g;
	bool kept = false;
	uint8_t mgid[16];

	group(n, mgid);
	g = multicast_find(&table, mgid);
	for (uint32_t i = 0; g && i < multicast_end(g); i++) {
		uint32_t qpn = multicast_member(g, i);

		if (qpn >> 8 != n + 1 && qpn)
			wrong++;
		kept |= qpn == qpn_of(n, 0);
		seen += qpn != 0;
	}
	if (n == KEPT && !kept)
		missed++;
}

static void *reader(void *arg)
{
	while (!__atomic_load_n(&ending, __ATOMIC_ACQUIRE)) {
		for (unsigned int n = 0; n < GROUPS; n++)
			read_group(n);
		__atomic_add_fetch(&polls, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* As the CEU: nothing is freed before the reader has started over. */
static void quiesce(void)
{
	uint64_t before = __atomic_load_n(&polls, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&polls, __ATOMIC_SEQ_CST) < before + 2)
		sched_yield();
	multicast_reap(&table);
}

TEST(multicast__changes_under_the_reader)
{
	uint32_t attached[GROUPS][QPS] = {{0}}, random = 1;
	uint8_t mgid[16];
	pthread_t thread;

	multicast_table_create(&table);
	group(KEPT, mgid);
	assert_int_equal(multicast_attach(&table, mgid, qpn_of(KEPT, 0)), 0);
	assert_int_equal(pthread_create(&thread, NULL, reader, NULL), 0);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		unsigned int n, qp;

		random = random * 1664525 + 1013904223;
		n = (random >> 24) % GROUPS;
		qp = (random >> 16) % QPS;
		if (n == KEPT && qp == 0)
			continue;
		group(n, mgid);
		if (attached[n][qp])
			assert_int_equal(multicast_detach(&table, mgid, qpn_of(n, qp)), 0);
		else
			assert_int_equal(multicast_attach(&table, mgid, qpn_of(n, qp)), 0);
		attached[n][qp] ^= 1;
		if (i % 16 == 0) /* some at a time, as when a client ends */
			quiesce();
	}
	__atomic_store_n(&ending, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_true(seen > 0);
	assert_true(wrong == 0);
	assert_true(missed == 0);
	multicast_table_destroy(&table);
}
