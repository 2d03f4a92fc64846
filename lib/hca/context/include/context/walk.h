/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_WALK_H
#define CONTEXT_WALK_H
/*
 * How far a queue pair has written ahead in a client's memory. What is written further ahead than
 * the caches are large is out of them before it could be written again, so it may as well bypass
 * them: the copy then need not fetch the lines that it overwrites.
 */
#include <stdint.h>

enum { WALK_STEP_LOG = 16 };

/* In steps of 2^WALK_STEP_LOG bytes; positions modulo 2^16 steps. A hint needs no more. */
struct walk {
	uint16_t at; /* where the last write ended */
	uint16_t steps;
};

/* Notes a write. Returns how far it has come since it began, or last turned back or jumped; bytes,
 * 4 GiB at most. */
static inline uint64_t walk_on(struct walk *w, uint64_t from, uint64_t bytes)
{
	uint64_t to = from + bytes;
	uint16_t jump = (uint16_t)((from >> WALK_STEP_LOG) - w->at);
	uint64_t steps = (to >> WALK_STEP_LOG) - (from >> WALK_STEP_LOG);

	if (jump <= 1)
		steps += w->steps + jump;
	w->steps = steps < UINT16_MAX ? (uint16_t)steps : UINT16_MAX;
	w->at = (uint16_t)(to >> WALK_STEP_LOG);
	return (uint64_t)w->steps << WALK_STEP_LOG;
}

/* Where walk_on() last found it. */
static inline uint64_t walk_bytes(const struct walk *w)
{
	return (uint64_t)w->steps << WALK_STEP_LOG;
}

#endif
