/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 in portable C: sixteen independent table look-ups per sixteen bytes. For machines without
 * carry-less multiplication, and as a second opinion in the tests. Reads crc_tables, keeps no
 * state; any stage.
 */
#include "crc_internal.h"

#include <endian.h>

/* Keeps the compiler from loading a value twice: the sum is of what is stored. */
#define LOADED_ONCE(v) __asm__("" : "+r"(v))

/* The look-ups of eight bytes that `behind` of the sixteen bytes follow. */
static uint32_t look_up(uint64_t word, unsigned int behind)
{
	uint32_t(*const t)[256] = crc_tables.slice + behind;

	return t[7][word & 0xff] ^ t[6][word >> 8 & 0xff] ^ t[5][word >> 16 & 0xff] ^
	       t[4][word >> 24 & 0xff] ^ t[3][word >> 32 & 0xff] ^ t[2][word >> 40 & 0xff] ^
	       t[1][word >> 48 & 0xff] ^ t[0][word >> 56];
}

static uint32_t step8(uint32_t state, uint64_t word)
{
	return look_up(le64toh(word) ^ state, 0);
}

static uint32_t step16(uint32_t state, const uint64_t word[2])
{
	return look_up(le64toh(word[0]) ^ state, 8) ^ look_up(le64toh(word[1]), 0);
}

static uint32_t step1(uint32_t state, uint8_t byte)
{
	return (state >> 8) ^ crc_tables.slice[0][(state ^ byte) & 0xff];
}

static uint32_t crc(uint32_t state, const void *src, size_t n)
{
	const uint8_t *p = src;
	uint64_t word[2];

	for (; n >= 16; p += 16, n -= 16) {
		memcpy(word, p, 16);
		state = step16(state, word);
	}
	if (n >= 8) {
		memcpy(word, p, 8);
		state = step8(state, word[0]);
		p += 8, n -= 8;
	}
	for (; n; p++, n--)
		state = step1(state, *p);
	return state;
}

static uint32_t crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	const uint8_t *p = src;
	uint8_t *d = dst;
	uint64_t word[2];
	uint8_t byte;

	for (; n >= 16; p += 16, d += 16, n -= 16) {
		memcpy(word, p, 16);
		LOADED_ONCE(word[0]);
		LOADED_ONCE(word[1]);
		memcpy(d, word, 16);
		state = step16(state, word);
	}
	if (n >= 8) {
		memcpy(word, p, 8);
		LOADED_ONCE(word[0]);
		memcpy(d, word, 8);
		state = step8(state, word[0]);
		p += 8, d += 8, n -= 8;
	}
	for (; n; p++, d++, n--) {
		byte = *p;
		LOADED_ONCE(byte);
		*d = byte;
		state = step1(state, byte);
	}
	return state;
}

static uint32_t icrc_headers(const uint8_t *l3, unsigned int n, bool ipv6)
{
	unsigned int masked_bytes = n < ICRC_MASKED_BYTES ? n : ICRC_MASKED_BYTES;
	uint8_t masked[ICRC_MASKED_BYTES];
	unsigned int i;

	for (i = 0; i < masked_bytes; i++)
		masked[i] = l3[i] | icrc_mask[ipv6][i];
	return crc(crc(ICRC_START, masked, masked_bytes), l3 + masked_bytes, n - masked_bytes);
}

static uint32_t icrc(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return ~icrc_headers(l3, n, ipv6);
}

static uint32_t combine(uint32_t state_a, uint32_t crc_b, size_t len_b)
{
	const uint32_t x =
		0x40000000; /* the factor is one power short, for the other forms' sake */

	return crc_multiply(crc_multiply(state_a, crc_shift_factor(len_b)), x) ^ crc_b;
}

const struct wire_crc_ops crc_portable = {
	.name = "portable",
	.crc = crc,
	.crc_copy = crc_copy,
	.crc_copy_nt = crc_copy,
	.icrc = icrc,
	.icrc_headers = icrc_headers,
	.combine = combine,
};
