/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COPY_BYTES_H
#define BASE_COPY_BYTES_H
/*
 * Copies of payload. rte_memcpy() is as wide as the CPU that was compiled for, libc's memcpy() as wide as the
 * one that it runs on; the first needs no call, which is what counts in a short copy. A long copy takes several
 * calls: above 2112 bytes glibc 2.36 uses REP MOVSB if the CPU says that it is fast at it. On Zen 3 and Zen 4 it is
 * not, if dst is unaligned, as it is in a packet: a twentieth of the speed (glibc bug 30994).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <rte_memcpy.h>

enum { COPY_BYTES_CALL_MIN = 512, COPY_BYTES_CALL_MAX = 2048 };

/* Copies n bytes from src to dst, which do not overlap. Any thread. */
static inline void copy_bytes(void *dst, const void *src, size_t n)
{
	const uint8_t *from = src;
	uint8_t *to = dst;

	while (n >= COPY_BYTES_CALL_MIN) {
		size_t part = n < COPY_BYTES_CALL_MAX ? n : COPY_BYTES_CALL_MAX;

		/* Knowing how long it is at most, GCC would put in a REP MOVSQ instead of a call. */
		__asm__("" : "+r"(part));
		memcpy(to, from, part);
		to += part;
		from += part;
		n -= part;
	}
	if (n)
		rte_memcpy(to, from, n);
}

#endif
