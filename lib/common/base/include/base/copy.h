/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COPY_H
#define BASE_COPY_H
/*
 * Copies a payload. rte_memcpy() is inline and made for the CPU that the compiler builds for; memcpy()
 * chooses its code when the program starts. In a build for any x86-64 machine, as packages are, the first
 * copies 16 bytes at a time and is the better one for short payloads only.
 */
#include <stddef.h>
#include <string.h>
#include <rte_memcpy.h>

enum { COPY_LONG_BYTES = 256 };

static inline void copy_bytes(void *dst, const void *src, size_t n)
{
#if defined(__x86_64__) && !defined(__AVX2__)
	if (n >= COPY_LONG_BYTES) {
		memcpy(dst, src, n);
		return;
	}
#endif
	rte_memcpy(dst, src, n);
}

#endif
