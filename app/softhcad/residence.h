/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESIDENCE_H
#define RESIDENCE_H
/*
 * Which pages of a table are in memory. Most of a table of contexts has never been touched, and
 * reading it would populate it. Asks the kernel for many pages at once. Control thread, telemetry's
 * threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RESIDENCE_PAGES = 1024 };

struct residence {
	uintptr_t end;	    /* of the table */
	uintptr_t from, to; /* whose pages are known: */
	unsigned char page[RESIDENCE_PAGES];
};

/* Nothing is known yet of a table of `bytes`, a mapping or part of one. */
static inline void residence_init(struct residence *r, const void *table, size_t bytes)
{
	r->end = (uintptr_t)table + bytes;
	r->from = r->to = 0;
}

/* Is the page of that address, which is in the table, in memory? False also if the kernel does not
 * know. */
bool is_resident(struct residence *r, const void *at);

#endif
