/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parking by two threads: one parks and checks the condition, one changes the condition and checks
 * for a parked thread; every time at least one sees the other, and the one that sees the change
 * sees everything written before it. Without the fences of parking.h this fails on x86 with two
 * processors.
 */
#include <pthread.h>
#include <sched.h>
#include "test.h"
#include "pipeline/parking.h"

enum { CELLS = 4096, ROUNDS = 256, SPINS = 2000, REASON = 3 };

/* The two sides on separate cache lines, as in contexts. Many of them, so that the sides pass them
 * without waiting for each other, and often reach the same one at the same time. */
static struct {
	uint8_t place __attribute__((aligned(64)));   /* the waiting side writes it */
	uint32_t change __attribute__((aligned(64))); /* the round of the last change */
	uint32_t data;				      /* written before `change` */
} cells[CELLS];
static bool saw_change[CELLS], saw_place[CELLS]; /* in this round */
static uint32_t arrived;

/* Both sides have come here for the n-th time. */
static void meet(uint32_t n)
{
	__atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
	for (unsigned i = 1; __atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 2 * n; i++)
		if (i % SPINS == 0)
			sched_yield();
}

static void *change_all(void *arg)
{
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		meet(2 * n - 1);
		for (unsigned i = 0; i < CELLS; i++) {
			cells[i].data = n;
			__atomic_store_n(&cells[i].change, n, __ATOMIC_RELEASE);
			saw_place[i] = parked(&cells[i].place, false);
		}
		meet(2 * n);
	}
	return NULL;
}

static void park_all(uint32_t n)
{
	for (unsigned i = 0; i < CELLS; i++) {
		park(&cells[i].place, REASON);
		saw_change[i] = __atomic_load_n(&cells[i].change, __ATOMIC_ACQUIRE) == n;
		if (saw_change[i])
			assert_int_equal(cells[i].data, n);
	}
}

TEST(park__one_side_sees_the_other)
{
	unsigned lost = 0, both = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, change_all, NULL), 0);
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		meet(2 * n - 1);
		park_all(n);
		meet(2 * n);
		for (unsigned i = 0; i < CELLS; i++) {
			lost += !saw_change[i] && !saw_place[i];
			both += saw_change[i] && saw_place[i];
			unpark(&cells[i].place);
		}
	}
	pthread_join(thread, NULL);
	print_message("%u times, both saw %u times\n", (unsigned)ROUNDS * CELLS, both);
	assert_int_equal(lost, 0);
}

TEST(parked__until_unparked)
{
	uint8_t place = 0;

	assert_false(parked(&place, false));
	park(&place, REASON);
	assert_int_equal(place, REASON);
	assert_true(parked(&place, false));
	unpark(&place);
	assert_false(parked(&place, false));
	assert_false(parked_here(&place));
}
