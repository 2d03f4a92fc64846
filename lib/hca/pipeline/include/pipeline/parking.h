/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_PARKING_H
#define PIPELINE_PARKING_H
/*
 * Parking: how a module stops looking at something until another one, perhaps on another lcore,
 * changes what it waits for. Neither side locks or blocks, and no wake-up is lost.
 *
 *   the one who waits                        the one who changes something
 *
 *   park(&place, reason)                     stores what it changes
 *   looks once more: may it go on?           if (parked(&place))
 *     yes: unpark(&place), goes on                   wakes the other one (wake_list.h)
 *     no: returns to its poll loop
 *
 * A place is a byte in memory that both share: 0, nobody waits. Only the one who waits writes it.
 *
 * Why one of the two always sees the other. Each side stores, passes a fence, and then loads what
 * the other side has stored: the place and the condition. All sequentially consistent fences have
 * one order (C11 7.17.3). If the fence of park() comes first, the load in parked() sees the place
 * taken, and the other side wakes. If the fence of parked() comes first, the look behind park()
 * sees the change, and the waiting side goes on by itself. Both may happen: then the wake-up finds
 * nothing to do, which costs a visit. Without the fences a processor may do its load before others
 * see its store, x86 too, and both sides could miss each other.
 *
 * What the proof asks of the callers:
 *   - the condition is atomic (relaxed is enough for the proof; release and acquire if it announces
 *     other data), and is looked at after park(), all of it, whatever was looked at before;
 *   - whoever changes any part of the condition looks at the place behind that;
 *   - the wake-up has the one who waited unpark the place.
 *
 * Where the change is made often and looks at several places, one parking_fence() between all
 * stores and all looks does for all of them.
 */
#include <stdbool.h>
#include <stdint.h>

/* Between what this side has stored and its look at what the other side stores. */
static inline void parking_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Says that we wait, for `reason`, not 0. The caller looks once more behind it. */
static inline void park(uint8_t *place, uint8_t reason)
{
	__atomic_store_n(place, reason, __ATOMIC_RELAXED);
	parking_fence();
}

/* We wait no more. The other side may see it late: it wakes us once for nothing. */
static inline void unpark(uint8_t *place)
{
	__atomic_store_n(place, 0, __ATOMIC_RELAXED);
}

/* Does somebody wait at the place? Behind a parking_fence() of the caller's own. */
static inline bool parked_here(const uint8_t *place)
{
	return __atomic_load_n(place, __ATOMIC_RELAXED) != 0;
}

/* Does somebody wait for what the caller has just stored? */
static inline bool parked(const uint8_t *place)
{
	parking_fence();
	return parked_here(place);
}

#endif
