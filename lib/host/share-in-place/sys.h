/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHARING_SYS_H
#define SHARING_SYS_H
/*
 * System calls that touch nothing but registers: no errno, no cancellation point, no GOT. While
 * pages are being swapped, memory may be stale or missing. -errno on failure.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline __attribute__((always_inline)) long sys6(long n, long a, long b, long c, long d,
						       long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
#else
	long r = syscall(n, a, b, c, d, e, f);

	return r == -1 ? -errno : r;
#endif
}

/*
 * Stores into a page what it holds, so that a private page becomes a copy. Not by
 * __atomic_fetch_or(at, 0), which clang turns into a fence that stores nothing. AddressSanitizer
 * must not check it either: the first byte of a stack page may belong to anything.
 */
static inline __attribute__((always_inline)) void touch(uintptr_t at)
{
#ifdef __x86_64__
	__asm__ volatile("lock orb $0, (%0)" : : "r"(at) : "cc", "memory");
#else
	volatile uint8_t *byte = (volatile uint8_t *)at;
	uint8_t is = *byte;

	while (!__atomic_compare_exchange_n(byte, &is, is, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
#endif
}

#endif
