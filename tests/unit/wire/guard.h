/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H
/*
 * Memory that ends exactly where an unreadable page begins, so that reading one byte too many
 * faults even where a sanitizer does not look (masked vector loads, assembler).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD_BYTES = 16384, GUARD_PAGE = 4096 };

/* Returns the first byte of the unreadable page; GUARD_BYTES before it may be used. */
static inline uint8_t *guard_new(void)
{
	uint8_t *p = mmap(NULL, GUARD_BYTES + GUARD_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + GUARD_BYTES, GUARD_PAGE, PROT_NONE))
		abort();
	return p + GUARD_BYTES;
}

/* Copies n bytes so that they end at the guard; returns where they begin. */
static inline uint8_t *guard_copy(uint8_t *guard, const void *src, size_t n)
{
	memcpy(guard - n, src, n);
	return guard - n;
}

static inline void guard_free(uint8_t *guard)
{
	munmap(guard - GUARD_BYTES, GUARD_BYTES + GUARD_PAGE);
}

#endif
