/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WATCHDOG_H
#define WATCHDOG_H
/*
 * Notices threads that stand still. A thread of its own looks at each watched thread's count of
 * turns, which goes on when there is nothing to do, too. One whose count stays the same for
 * WATCHDOG_LOOKS looks is logged, once: its name, what it waits for in the kernel, and its stack.
 * The service manager's watchdog (sd_notify, WATCHDOG_USEC) is fed while none stands still.
 *
 * Every WATCHDOG_GLANCE_MS it also asks the kernel where each thread waits, to find those that a client holds up
 * (control_thread_waits()): they are charged a glance, and what they wait from then on. A thread that waits more briefly is
 * charged as much, but seldom seen: on average it comes to the time that it waits.
 *
 * Looks are counted instead of time, so that a process that was stopped as a whole (by a debugger,
 * with the machine) is not taken for one that stands still.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/limits.h"

enum {
	WATCHDOG_LOOK_MS = 1000,
	WATCHDOG_LOOKS = 5,
	WATCHDOG_GLANCE_MS = 20, /* divides WATCHDOG_LOOK_MS */
	WATCHDOG_THREADS_MAX = LCORES_MAX + 1
};

struct watched {
	char name[24];
	pid_t thread;
	const uint64_t *turns; /* atomic; counted by the thread */
	/* The watchdog's own. */
	uint64_t seen;	/* the last count ... */
	unsigned looks; /* ... and how often it has been seen since the first time */
	int wchan;	/* its file in /proc; -1: there is none */
};

/* Looks at one thread. Logs when it has stood still for WATCHDOG_LOOKS looks, and when it goes on
 * again. Returns whether it stands still. The watchdog's thread. */
bool watched_look(struct watched *w);

/* Starts looking at these, which stay the caller's, until watchdog_stop(). 0 or -errno. Control
 * thread. */
int watchdog_start(struct watched *threads, unsigned count);

/* Stops looking. Allowed without a start. Control thread. */
void watchdog_stop(void);

#endif
