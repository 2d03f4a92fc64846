/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WATCHDOG_H
#define WATCHDOG_H
/*
 * Detects threads that hang. A thread of its own checks each watched thread's count of turns, which
 * rises even when there is nothing to do. A thread whose count does not change for WATCHDOG_LOOKS
 * checks is logged once, with its name, what it waits for in the kernel, and its stack. The service
 * manager's watchdog (sd_notify, WATCHDOG_USEC) is fed while no thread hangs.
 *
 * Every WATCHDOG_GLANCE_MS it also asks the kernel where each thread waits, to find those that a
 * client holds up (control_thread_waits()). Such a wait is charged to the client from the previous
 * glance on: too much for a short one, but most short ones are not seen, so that the average is
 * right. While the lcores rest, glances are seldom: WATCHDOG_SELDOM_MS.
 *
 * Checks are counted instead of time: a process that was stopped as a whole (by a debugger, or with
 * the machine) does not hang.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/limits.h"

enum {
	WATCHDOG_LOOK_MS = 1000,
	WATCHDOG_LOOKS = 5,
	WATCHDOG_GLANCE_MS = 20,
	WATCHDOG_SELDOM_MS = 100,
	WATCHDOG_THREADS_MAX = LCORES_MAX + 2
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

/* Whether glances are seldom from now on; at first they are not. Any thread. */
void watchdog_glance_seldom(bool seldom);

/* Stops looking. Allowed without a start. Control thread. */
void watchdog_stop(void);

#endif
