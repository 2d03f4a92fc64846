/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_CM_XORSHIFT_H
#define TESTS_UNIT_CM_XORSHIFT_H
/* Numbers at random that a seed repeats: xorshift64*, of G. Marsaglia and S. Vigna. */
#include <stdint.h>

/* The next; *state begins as any seed but 0. */
static inline uint64_t xorshift(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1d;
}

/* 0 to n - 1. */
static inline uint32_t xorshift_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((xorshift(state) >> 32) * n >> 32);
}

#endif
