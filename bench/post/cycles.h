/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POST_CYCLES_H
#define POST_CYCLES_H
/* The time stamp counter, read after all loads and calculations before it, and before all after. */
#include <stdint.h>

static inline uint64_t cycles_now(void)
{
	uint64_t t;

#if defined(__x86_64__)
	__builtin_ia32_lfence();
	t = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(t)::"memory");
#else
#error "no counter of cycles"
#endif
	return t;
}

#endif
