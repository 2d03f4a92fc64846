/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 in portable C: eight table look-ups per eight bytes. For machines without carry-less
 * multiplication, and a second opinion in the tests. Reads crc_tables, keeps no state; any stage.
 */
#include "crc_internal.h"

#include <endian.h>

/* The compiler must not load a value again: what is summed is what is stored. */
#define LOADED_ONCE(v) __asm__("" : "+r"(v))

static uint32_t step8(uint32_t state, uint64_t word)
{
	uint32_t(*const t)[256] = crc_tables.slice;
	uint32_t a = (uint32_t)word ^ state;
	uint32_t b = (uint32_t)(word >> 32);

	return t[7][a & 0xff] ^ t[6][(a >> 8) & 0xff] ^ t[5][(a >> 16) & 0xff] ^ t[4][a >> 24] ^
	       t[3][b & 0xff] ^ t[2][(b >> 8) & 0xff] ^ t[1][(b >> 16) & 0xff] ^ t[0][b >> 24];
}

static uint32_t step1(uint32_t state, uint8_t byte)
{
	return (state >> 8) ^ crc_tables.slice[0][(state ^ byte) & 0xff];
}

static uint32_t crc(uint32_t state, const void *src, size_t n)
{
	const uint8_t *p = src;
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		state = step8(state, le64toh(word));
	}
	for (; n; p++, n--)
		state = step1(state, *p);
	return state;
}

static uint32_t crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	const uint8_t *p = src;
	uint8_t *d = dst;
	uint64_t word;
	uint8_t byte;

	for (; n >= 8; p += 8, d += 8, n -= 8) {
		memcpy(&word, p, 8);
		LOADED_ONCE(word);
		memcpy(d, &word, 8);
		state = step8(state, le64toh(word));
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
	unsigned int masked_bytes = n < ICRC_MASK_BYTES ? n : ICRC_MASK_BYTES;
	uint8_t masked[ICRC_MASK_BYTES];
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
