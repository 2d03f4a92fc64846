/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_COPY_BYTES_H
#define BASE_COPY_BYTES_H
/*
 * Copies of payload. rte_memcpy() is as wide as the CPU that was compiled for, libc's memcpy() as wide as the
 * one that it runs on; the first needs no call, which is what counts in a short copy.
 */
#include <stddef.h>
#include <string.h>
#include <rte_memcpy.h>

enum { COPY_BYTES_CALL_MIN = 512 };

/* Copies n bytes from src to dst, which do not overlap. Any thread. */
static inline void copy_bytes(void *dst, const void *src, size_t n)
{
	if (n >= COPY_BYTES_CALL_MIN)
		memcpy(dst, src, n);
	else
		rte_memcpy(dst, src, n);
}

#endif
