/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COPY_BYTES_H
#define BASE_COPY_BYTES_H
/*
 * Copies of payload. rte_memcpy() is as wide as the CPU that was compiled for, libc's memcpy() as
 * wide as the one that it runs on; the first needs no call, which is what counts in a short copy.
 * Above 2112 bytes glibc 2.36 uses REP MOVSB if the CPU says that it is fast at it. On Zen 5 it is:
 * 4 KiB take two thirds of the cycles, half of them where the caches miss. On Zen 3 and Zen 4 it
 * takes twenty times as many if dst is unaligned, as it is in a packet (glibc bug 30994): there a
 * long copy is made by shorter calls.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <rte_common.h>
#include <rte_memcpy.h>

enum { COPY_BYTES_CALL_MIN = 512, COPY_BYTES_CALL_PART = 2048 };

/* The most bytes of one call, where dst is not aligned to a cache line and where it is. Written
 * before main(). */
extern size_t copy_bytes_call_max[2];

/* The same as copy_bytes(), without what is short enough to be inlined. */
static __rte_noinline __rte_unused void copy_bytes_any(uint8_t *to, const uint8_t *from, size_t n)
{
	if (n >= COPY_BYTES_CALL_MIN) {
		size_t max = copy_bytes_call_max[(uintptr_t)to % RTE_CACHE_LINE_SIZE == 0];

		do {
			size_t part = RTE_MIN(n, max);

			/* Knowing how long it is at most, GCC would put in a REP MOVSQ instead of a
			 * call. */
			__asm__("" : "+r"(part));
			memcpy(to, from, part);
			to += part;
			from += part;
			n -= part;
		} while (n >= COPY_BYTES_CALL_MIN);
	}
	if (n)
		rte_memcpy(to, from, n);
}

/* Copies n bytes from src to dst, which do not overlap. Any thread. */
static inline void copy_bytes(void *dst, const void *src, size_t n)
{
	const uint8_t *from = src;
	uint8_t *to = dst;

	if (n < 32 || n > 64) {
		copy_bytes_any(to, from, n);
		return;
	}
	rte_mov32(to, from); /* two halves that overlap */
	rte_mov32(to + n - 32, from + n - 32);
}

#endif
