/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RING_MOVE_H
#define BASE_RING_MOVE_H
/*
 * Moves pointers into and out of a ring that has one producer and one consumer, perhaps on
 * different lcores. The ring is the same as for DPDK's functions, which may be used on it as well;
 * but nothing here asks what kind of ring it is, and the code is short wherever it is inlined.
 */
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ring.h>
#include "base/assert.h"

static inline void **ring_slots(const struct rte_ring *r)
{
	return (void **)(uintptr_t)(r + 1);
}

/* Relaxed atomics, so that no compiler makes a memcpy() of it. */
static inline void ring_copy_one(void **to, void *const *from)
{
	__atomic_store_n(to, *from, __ATOMIC_RELAXED);
}

/* n of them, 1 at least, one by one, as they were written and will be read: a wide load waits for
 * the narrow stores that it covers. Mostly few: a short loop is better than an unrolled one. */
static inline void ring_copy(void **to, void *const *from, uint32_t n)
{
	uint32_t i = 0;

	do
		ring_copy_one(to + i, from + i);
	while (++i < n);
}

/* Puts n pointers, 1 at least, which the producer knows to fit. Returns how many are in the ring
 * then, or more. */
static inline uint32_t ring_put(struct rte_ring *r, void *const *from, uint32_t n)
{
	uint32_t put = r->prod.tail, at = put & r->mask, first = RTE_MIN(n, r->size - at);
	uint32_t taken =
		__atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE); /* their slots are free */

	ASSERT(n);
	ring_copy(ring_slots(r) + at, from, first);
	if (unlikely(first < n))
		ring_copy(ring_slots(r), from + first, n - first);
	__atomic_store_n(&r->prod.head, put + n, __ATOMIC_RELAXED);
	__atomic_store_n(&r->prod.tail, put + n, __ATOMIC_RELEASE);
	return put + n - taken;
}

/* Takes up to n pointers. Returns how many. */
static inline uint32_t ring_take(struct rte_ring *r, void **to, uint32_t n)
{
	uint32_t taken = r->cons.tail, at = taken & r->mask, first;
	uint32_t there = __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) - taken;

	n = RTE_MIN(n, there);
	if (n == 0)
		return 0;
	first = RTE_MIN(n, r->size - at);
	ring_copy(to, ring_slots(r) + at, first);
	if (unlikely(first < n))
		ring_copy(to + first, ring_slots(r), n - first);
	__atomic_store_n(&r->cons.head, taken + n, __ATOMIC_RELAXED);
	__atomic_store_n(&r->cons.tail, taken + n, __ATOMIC_RELEASE);
	return n;
}

/* The pointer behind i others that wait, which stays; NULL: there are no more than i. */
static inline void *ring_peek(const struct rte_ring *r, uint32_t i)
{
	uint32_t taken = r->cons.tail;

	if (__atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) - taken <= i)
		return NULL;
	return __atomic_load_n(&ring_slots(r)[(taken + i) & r->mask], __ATOMIC_RELAXED);
}

#endif
