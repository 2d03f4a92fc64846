/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting between polls; see wait.h. Makes system calls only when there is nothing to do. */
#include <sched.h>
#include <stdio.h>
#include "wait.h"

enum {
	EMPTY_LOOK = 64,
	EMPTY_YIELD = 512,
	LOOK_NS_MAX = 1000000000, /* if longer between looks, we or the machine stood still */
};
#define STUCK_NS 20000000000ull

void wait_begin(struct waiter *w, struct session *s, const char *what)
{
	*w = (struct waiter){.s = s, .what = what, .last_ns = now_ns()};
	w->look_ns = w->last_ns;
}

/* Arms first, so that the caller polls once more before it sleeps in the next turn. */
static void sleep_on_events(struct waiter *w)
{
	if (w->armed)
		session_sleep(w->s);
	else
		session_arm(w->s);
	w->armed = !w->armed;
}

int wait_turn(struct waiter *w, int progress)
{
	uint64_t now;

	if (progress > 0) {
		w->empty = 0;
		return 0;
	}
	if (w->empty++ == 0) { /* the turn before was the last that did something */
		w->last_ns = w->look_ns = now_ns();
		w->looked_ns = 0;
	}
	if (w->s->o->events)
		sleep_on_events(w);
	else if (w->empty > EMPTY_YIELD)
		sched_yield();
	if (w->empty % EMPTY_LOOK && !w->s->o->events)
		return 0;
	now = now_ns();
	w->looked_ns += now - w->look_ns < LOOK_NS_MAX ? now - w->look_ns : LOOK_NS_MAX;
	w->look_ns = now;
	if (w->looked_ns < STUCK_NS)
		return 0;
	fprintf(stderr, "softhca-perf: %s: nothing has happened for 20 s\n", w->what);
	return -1;
}

uint64_t wait_idle_ns(const struct waiter *w)
{
	return w->empty ? w->looked_ns : 0;
}

uint64_t wait_last_ns(const struct waiter *w)
{
	return w->empty ? w->last_ns : now_ns();
}
