/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RING_LOOK_H
#define BASE_RING_LOOK_H
/*
 * The fill level of a ring, for one of its two sides while the other may be at work. The same as
 * DPDK's rte_ring_count() and its kind, but these read the indices atomically, relaxed, at the same
 * cost, not as plain words. Trust the contents of the ring only after dequeuing them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <rte_ring.h>

/* Entries in use. Exact only while both sides are stopped: the producer may see too many, the
 * consumer too few. */
static inline unsigned ring_used(const struct rte_ring *r)
{
	uint32_t put = __atomic_load_n(&r->prod.tail, __ATOMIC_RELAXED);
	uint32_t taken = __atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED);
	uint32_t used = (put - taken) & r->mask;

	return used > r->capacity ? r->capacity : used;
}

static inline bool ring_empty(const struct rte_ring *r)
{
	return __atomic_load_n(&r->prod.tail, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED);
}

/* Entries enqueued so far, free running. An acquire: they are visible to the caller. */
static inline uint32_t ring_put_count(const struct rte_ring *r)
{
	return __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE);
}

/* Has the consumer taken everything that ring_put_count() counted in `count`? */
static inline bool ring_taken_to(const struct rte_ring *r, uint32_t count)
{
	return (int32_t)(__atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED) - count) >= 0;
}

static inline unsigned ring_room(const struct rte_ring *r)
{
	return r->capacity - ring_used(r);
}

#endif
