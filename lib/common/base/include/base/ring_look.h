/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RING_LOOK_H
#define BASE_RING_LOOK_H
/*
 * How full a ring is, for one of its two sides while the other one may be at work. The same as
 * DPDK's rte_ring_count() and its like, which read the indices as plain words: these read them
 * atomically, relaxed, at the same cost. What is in the ring is only to be believed once it was
 * dequeued.
 */
#include <stdbool.h>
#include <stdint.h>
#include <rte_ring.h>

/* Places in use. Exact for nobody but who stops both sides: the producer may see too many, the
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

/* How many were ever put, free running. Whoever reads this sees that they are there. */
static inline uint32_t ring_put_count(const struct rte_ring *r)
{
	return __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE);
}

/* Has the consumer taken all that had been put when ring_put_count() said `count`? */
static inline bool ring_taken_to(const struct rte_ring *r, uint32_t count)
{
	return (int32_t)(__atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED) - count) >= 0;
}

static inline unsigned ring_room(const struct rte_ring *r)
{
	return r->capacity - ring_used(r);
}

#endif
