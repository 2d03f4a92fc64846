/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parking (pipeline/parking.h) and waking (pipeline/wake_list.h) between two modules on two
 * processors: one waits for changes that the other makes. Each processor has a store buffer, as x86
 * has: others see a store only when it has left the buffer, in any step after it. No change may be
 * slept through: then the waiting side would stand still, which is an invalid end state here.
 *
 * tests/model/check sees that park(), parked() and wake_post() do in the code, in this order, what
 * the steps marked STEP(function, what) do here. Without the fences (-DNO_FENCE) the model fails.
 */
#ifndef CHANGES
#define CHANGES 3
#endif
#define STEP(function, what)

/* Memory as all see it, and what waits in each side's buffer: at most one store to each place. */
byte change;	    /* the condition: how many changes were made; the changing side writes it */
bool place;	    /* parked; the waiting side writes it */
byte change_buffer; /* of the changing side; 0: empty */
bool place_waits, place_buffer;

bool posted, listed; /* wake_link.posted; the queue pair is on the list: atomic exchanges */
byte consumed;	     /* changes that the waiting side has seen */

/* Buffers drain by themselves, at any time. */
proctype drain_change()
{
	do
	:: atomic { change_buffer != 0 -> change = change_buffer; change_buffer = 0 }
	:: consumed == CHANGES -> break
	od
}

proctype drain_place()
{
	do
	:: atomic { place_waits -> place = place_buffer; place_waits = false }
	:: consumed == CHANGES -> break
	od
}

inline fence_change()
{
#ifndef NO_FENCE
	change_buffer == 0
#else
	skip
#endif
}

inline fence_place()
{
#ifndef NO_FENCE
	!place_waits
#else
	skip
#endif
}

inline store_place(value)
{
	atomic { place_buffer = value; place_waits = true }
}

proctype changing()
{
	byte n = 1;

	do
	:: n <= CHANGES ->
		change_buffer = n; /* whoever is first to drain it makes it seen; a later one covers it */
		STEP(parked, parking_fence)
		fence_change();
		STEP(parked, load)
		if
		:: place ->
			/* An exchange is atomic, and waits for the buffer. */
			STEP(wake_post, exchange)
			atomic {
				change_buffer == 0 ->
				if
				:: posted -> skip
				:: else -> posted = true; listed = true
				fi
			}
			STEP(wake_post, load)
			STEP(wake_post, compare_exchange)
		:: else
		fi;
		n++
	:: else -> break
	od
}

proctype waiting()
{
	bool parked_now;

	do
	:: consumed == CHANGES -> break
	:: consumed < CHANGES && !parked_now ->
		if
		:: change > consumed -> consumed++ /* what it waited for is there: it works */
		:: else ->
			STEP(park, store)
			store_place(true);
			STEP(park, parking_fence)
			fence_place();
			if
			:: change > consumed -> store_place(false) /* looks once more: unpark() */
			:: else -> parked_now = true		  /* returns to its poll loop */
			fi
		fi
	:: parked_now -> /* and sleeps until it finds itself on its list */
		atomic { listed && !place_waits -> listed = false };
		STEP(wake_next, store)
		posted = false;
		store_place(false);
		parked_now = false
	od
}

init
{
	atomic { run changing(); run waiting(); run drain_change(); run drain_place() }
}
