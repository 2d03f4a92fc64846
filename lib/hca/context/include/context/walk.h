/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_WALK_H
#define CONTEXT_WALK_H
/*
 * How far a queue pair has written ahead in a client's memory. What is written further ahead than
 * the caches are large is out of them before it could be written again, so it may as well bypass
 * them: the copy then need not fetch the lines that it overwrites.
 */
#include <stdint.h>

/* A write that begins at most this many pages behind the last one goes on. */
enum { WALK_PAGE_LOG = 12, WALK_GAP_PAGES = 16 };

/* Pages of 4 KiB, modulo 2^16 and saturating. A hint needs no more. */
struct walk {
	uint16_t end; /* where the last write ended */
	uint16_t ahead;
};

static inline uint64_t walk_bytes(const struct walk *w)
{
	return (uint64_t)w->ahead << WALK_PAGE_LOG;
}

/* Notes a write. Returns how far it has come since it began, or last turned back or jumped; bytes,
 * not quite 256 MiB at most. */
static inline uint64_t walk_on(struct walk *w, uint64_t at, uint64_t bytes)
{
	uint64_t from = at >> WALK_PAGE_LOG, to = (at + bytes) >> WALK_PAGE_LOG;
	uint16_t gap = (uint16_t)(from - w->end);
	uint64_t ahead = to - from;

	if (gap <= WALK_GAP_PAGES)
		ahead += w->ahead + gap;
	w->ahead = ahead < UINT16_MAX ? (uint16_t)ahead : UINT16_MAX;
	w->end = (uint16_t)to;
	return walk_bytes(w);
}

#endif
