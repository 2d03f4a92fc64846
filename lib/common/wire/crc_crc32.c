/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 with the CRC32 instructions of ARMv8, whose polynomial is ours. Most cores start one each
 * cycle, with eight bytes, but its result takes two or three cycles, so three blocks are summed
 * side by side: the first sum continues the state, the others begin with 0. Eight look-ups move a
 * sum past the block that follows it; a CPU with carry-less multiplication uses crc_pmull.c
 * instead. The blocks are thirds of the MTUs 2048 and 512, so that full payloads of 512 bytes and
 * more leave at most two words to a single sum.
 *
 * Reads its tables, which crc_crc32_fill() fills before main(); keeps no state; any stage. For
 * little-endian machines. No byte outside the message is touched.
 */
#include "crc_internal.h"

#include <arm_acle.h>

#define FORM   __attribute__((target("+crc")))
#define INLINE FORM static inline __attribute__((always_inline))
/* Keeps the compiler from loading a value twice: the sum is of what is stored. */
#define LOADED_ONCE(v) __asm__("" : "+r"(v))
#define UNROLLED       _Pragma("GCC unroll 4")

enum { SUMS = 3, LONG_BYTES = 680, SHORT_BYTES = 168, DIGITS = 8 };

/* after_zeroes[k][v]: the state after a block of zeroes that began as v << 4k. */
struct forward {
	uint32_t after_zeroes[DIGITS][16];
};

static struct forward long_forward;
static struct forward short_forward;

static void fill(struct forward *forward, size_t block)
{
	uint32_t digit;
	unsigned int k;

	for (k = 0; k < DIGITS; k++)
		for (digit = 0; digit < 16; digit++)
			forward->after_zeroes[k][digit] =
				crc_portable.combine(digit << 4 * k, 0, block);
}

void crc_crc32_fill(void)
{
	fill(&long_forward, LONG_BYTES);
	fill(&short_forward, SHORT_BYTES);
}

/* The state after a block of zeroes. */
INLINE uint32_t forwarded(uint32_t state, const struct forward *forward)
{
	const uint32_t(*t)[16] = forward->after_zeroes;

	return t[0][state & 0xf] ^ t[1][state >> 4 & 0xf] ^ t[2][state >> 8 & 0xf] ^
	       t[3][state >> 12 & 0xf] ^ t[4][state >> 16 & 0xf] ^ t[5][state >> 20 & 0xf] ^
	       t[6][state >> 24 & 0xf] ^ t[7][state >> 28];
}

/* The eight bytes at p + i; if `copy`, stored to dst + i. */
INLINE uint64_t load_word(const uint8_t *p, uint8_t *dst, size_t i, bool copy)
{
	uint64_t word;

	memcpy(&word, p + i, sizeof(word));
	if (copy) {
		LOADED_ONCE(word);
		memcpy(dst + i, &word, sizeof(word));
	}
	return word;
}

/* The word, which begins i bytes into a message, with the mask (icrc_mask, or NULL) over it. */
INLINE uint64_t masked(uint64_t word, const uint8_t *mask, size_t i)
{
	return mask ? word | load_word(mask, NULL, i, false) : word;
}

/* State after SUMS blocks. */
INLINE uint32_t run_blocks(uint32_t state, const uint8_t *p, uint8_t *dst, bool copy, size_t block,
			   const struct forward *forward)
{
	uint32_t second = 0;
	uint32_t third = 0;
	size_t i;

	UNROLLED
	for (i = 0; i < block; i += 8) {
		state = __crc32d(state, load_word(p, dst, i, copy));
		second = __crc32d(second, load_word(p, dst, i + block, copy));
		third = __crc32d(third, load_word(p, dst, i + 2 * block, copy));
	}
	return forwarded(forwarded(state, forward) ^ second, forward) ^ third;
}

/* State after n bytes, each word waiting for the one before. */
INLINE uint32_t run_single(uint32_t state, const uint8_t *p, size_t n, uint8_t *dst, bool copy,
			   const uint8_t *mask)
{
	uint64_t rest;
	size_t i;

	for (i = 0; n - i >= 8; i += 8)
		state = __crc32d(state, masked(load_word(p, dst, i, copy), mask, i));
	rest = masked(crc_load_partial(p + i, n - i, copy ? dst + i : NULL).lo, mask, i);
	if (n & 4) {
		state = __crc32w(state, (uint32_t)rest);
		rest >>= 32;
	}
	if (n & 2) {
		state = __crc32h(state, (uint16_t)rest);
		rest >>= 16;
	}
	return n & 1 ? __crc32b(state, (uint8_t)rest) : state;
}

/* The longest blocks first. */
INLINE uint32_t crc_run(uint32_t state, const uint8_t *p, size_t n, uint8_t *dst, bool copy)
{
	const uint8_t *end = p + n;

	for (; end - p >= SUMS * LONG_BYTES; p += SUMS * LONG_BYTES) {
		state = run_blocks(state, p, dst, copy, LONG_BYTES, &long_forward);
		dst += copy ? SUMS * LONG_BYTES : 0;
	}
	for (; end - p >= SUMS * SHORT_BYTES; p += SUMS * SHORT_BYTES) {
		state = run_blocks(state, p, dst, copy, SHORT_BYTES, &short_forward);
		dst += copy ? SUMS * SHORT_BYTES : 0;
	}
	return run_single(state, p, (size_t)(end - p), dst, copy, NULL);
}

FORM static uint32_t crc(uint32_t state, const void *p, size_t n)
{
	return crc_run(state, p, n, NULL, false);
}

FORM static uint32_t crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return crc_run(state, src, n, dst, true);
}

FORM static uint32_t icrc_headers(const uint8_t *l3, unsigned int n, bool ipv6)
{
	unsigned int masked_bytes = n < ICRC_MASKED_BYTES ? n : ICRC_MASKED_BYTES;
	uint32_t state = run_single(ICRC_START, l3, masked_bytes, NULL, false, icrc_mask[ipv6]);

	return crc_run(state, l3 + masked_bytes, n - masked_bytes, NULL, false);
}

FORM static uint32_t icrc(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return ~icrc_headers(l3, n, ipv6);
}

/* The carry-less product: as a register of 64 bits, a * b * x (crc_internal.h). */
static uint64_t multiply(uint32_t a, uint32_t b)
{
	uint64_t product = 0;
	unsigned int i;

	for (i = 0; i < 32; i++)
		product ^= -(uint64_t)(a >> i & 1) & (uint64_t)b << i;
	return product;
}

/* The upper half of the product is a residue; the lower one times x^32 is what CRC32W computes. */
FORM static uint32_t combine(uint32_t state_a, uint32_t crc_b, size_t len_b)
{
	uint64_t product = multiply(state_a, crc_shift_factor(len_b));

	return (uint32_t)(product >> 32) ^ __crc32w(0, (uint32_t)product) ^ crc_b;
}

const struct wire_crc_ops crc_crc32 = {
	.name = "crc32",
	.crc = crc,
	.crc_copy = crc_copy,
	.crc_copy_nt = crc_copy,
	.icrc = icrc,
	.icrc_headers = icrc_headers,
	.combine = combine,
};
