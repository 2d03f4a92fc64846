/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_PARKING_H
#define PIPELINE_PARKING_H
/*
 * Parking: how a module stops polling a condition until another module, perhaps on another lcore,
 * changes it. Neither side locks or blocks, and no wake-up is lost.
 *
 *   waiting side                             changing side
 *
 *   park(&place, reason)                     stores the change
 *   checks the condition once more           if (parked(&place))
 *     true:  unpark(&place), continues               wakes the other side (wake_list.h)
 *     false: returns to its poll loop
 *
 * A place is a byte in shared memory; 0: nobody waits. Only the waiting side writes it.
 *
 * Why one side always sees the other. Each side stores, passes a fence, and then loads what the
 * other side has stored: the place and the condition. All sequentially consistent fences have one
 * order (C11 7.17.3). If the fence of park() comes first, the load in parked() sees the place
 * taken, and the changing side wakes. If the fence of parked() comes first, the check after park()
 * sees the change, and the waiting side continues without a wake-up. Both may happen: then the
 * wake-up finds nothing to do, which costs a visit. Without the fences a processor, x86 included,
 * may load before others see its store, and both sides could miss each other.
 *
 * What the proof requires of callers:
 *   - the condition is atomic (relaxed suffices for the proof; release and acquire if it publishes
 *     other data), and is checked completely after park(), whatever was checked before;
 *   - every change to any part of the condition is followed by a check of the place;
 *   - the wake-up makes the waiting side unpark the place.
 *
 * Where changes are frequent and concern several places, one fence between all stores and all checks
 * serves all of them. Where one lcore runs both sides, the order of its program suffices: it sees its
 * own stores. The changing side, which is the frequent one, then fences for the compiler alone.
 */
#include <stdbool.h>
#include <stdint.h>

/* Orders this side's store before its load of what the other side stores. */
static inline void parking_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The same for modules of one engine. one_lcore: it polls them all. */
static inline void parking_fence_within(bool one_lcore)
{
	if (one_lcore)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		parking_fence();
}

/* Marks us as waiting for `reason`, not 0. The caller must check once more afterwards. */
static inline void park(uint8_t *place, uint8_t reason)
{
	__atomic_store_n(place, reason, __ATOMIC_RELAXED);
	parking_fence();
}

/* Clears the mark. The other side may see it late, and wake us once without need. */
static inline void unpark(uint8_t *place)
{
	__atomic_store_n(place, 0, __ATOMIC_RELAXED);
}

/* Is the place taken? To be called after the caller's own fence. */
static inline bool parked_here(const uint8_t *place)
{
	return __atomic_load_n(place, __ATOMIC_RELAXED) != 0;
}

/* Is the other side waiting for what the caller has just stored? one_lcore: it is a module of the
 * same engine, all of whose modules one lcore polls. */
static inline bool parked(const uint8_t *place, bool one_lcore)
{
	parking_fence_within(one_lcore);
	return parked_here(place);
}

#endif
