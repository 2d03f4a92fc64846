/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RING_MOVE_H
#define BASE_RING_MOVE_H
/*
 * Moves pointers into and out of a ring that has one producer and one consumer, perhaps on
 * different lcores. The ring is the same as for DPDK's functions, which may be used on it as well;
 * but here the pointers are copied by memcpy(), not in a loop of their own at each place, and
 * nothing asks what kind of ring it is. That saves two thirds of the instructions.
 */
#include <string.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ring.h>

static inline void **ring_slots(const struct rte_ring *r)
{
	return (void **)(uintptr_t)(r + 1);
}

/* Puts n pointers, which the producer knows to fit. Returns how many are in the ring then, or
 * more. */
static inline uint32_t ring_put(struct rte_ring *r, void *const *from, uint32_t n)
{
	uint32_t put = r->prod.tail, at = put & r->mask, first = RTE_MIN(n, r->size - at);
	uint32_t taken =
		__atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE); /* their slots are free */

	memcpy(ring_slots(r) + at, from, first * sizeof(*from));
	if (unlikely(first < n))
		memcpy(ring_slots(r), from + first, (n - first) * sizeof(*from));
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
	memcpy(to, ring_slots(r) + at, first * sizeof(*to));
	if (unlikely(first < n))
		memcpy(to + first, ring_slots(r), (n - first) * sizeof(*to));
	__atomic_store_n(&r->cons.head, taken + n, __ATOMIC_RELAXED);
	__atomic_store_n(&r->cons.tail, taken + n, __ATOMIC_RELEASE);
	return n;
}

#endif
