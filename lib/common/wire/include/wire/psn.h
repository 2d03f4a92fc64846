/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_PSN_H
#define WIRE_PSN_H
/*
 * 24-bit sequence arithmetic, in this one place: PSN, MSN, SSN and LSN all wrap at 2^24 and compare
 * within a window of 2^23 (rules C9-61, C9-66).
 */
#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK   0xffffffu
#define PSN_WINDOW 0x800000u /* at most this many PSNs may be outstanding (C9-61) */

/* psn + n, wrapped. n may be any number. */
static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* psn - n, wrapped. */
static inline uint32_t psn_sub(uint32_t psn, uint32_t n)
{
	return (psn - n) & PSN_MASK;
}

/* How far a is ahead of b: -2^23 .. 2^23 - 1. Bits above 24 of a and b are ignored. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* a comes before b. */
static inline bool psn_before(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) < 0;
}

/* a is b or comes before it. */
static inline bool psn_before_eq(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) <= 0;
}

/* a comes after b. */
static inline bool psn_after(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) > 0;
}

/* a is b or comes after it. */
static inline bool psn_after_eq(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) >= 0;
}

/* psn is one of the `count` PSNs that begin with `first`; count <= 2^24. */
static inline bool psn_in(uint32_t psn, uint32_t first, uint32_t count)
{
	return ((psn - first) & PSN_MASK) < count;
}

/*
 * Packets of a message of `bytes` with a path MTU of mtu_bytes (a power of two): at least 1, a
 * message without payload is one packet. For a READ, the packets of its response.
 */
static inline uint32_t psn_packets(uint64_t bytes, uint32_t mtu_bytes)
{
	unsigned int shift = (unsigned int)__builtin_ctz(mtu_bytes);

	return bytes ? (uint32_t)((bytes + mtu_bytes - 1) >> shift) : 1;
}

#endif
