/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_WAIT_H
#define PATH_WAIT_H
/*
 * Waiting between polls: not at all while there is work; after a while without, yields the CPU
 * (there may be fewer CPUs than pollers), or with --events sleeps; and gives up when nothing
 * happens for long.
 */
#include "session.h"

struct waiter {
	struct session *s;
	const char *what; /* for the complaint */
	uint32_t empty;	  /* turns without progress */
	bool armed;
	uint64_t last_ns, look_ns; /* last progress as seen; last look at the clock */
	uint64_t looked_ns;	   /* since last_ns, without the time in which nobody could look */
};

void wait_begin(struct waiter *w, struct session *s, const char *what);
/* One turn of the loop ended; progress > 0: it did something. 0, or -1: stuck, said on stderr. */
int wait_turn(struct waiter *w, int progress);
/* For how long nothing has happened, as in looked_ns. */
uint64_t wait_idle_ns(const struct waiter *w);
/* The moment of the last progress. */
uint64_t wait_last_ns(const struct waiter *w);

#endif
