/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_CRC_X86_H
#define WIRE_CRC_X86_H
/* Blocks of 16 bytes in SSE registers: common to the three x86 forms. */
#include "crc_internal.h"

#include <immintrin.h>

#define CRC_X86 __attribute__((target("pclmul,sse4.1"), always_inline)) static inline

CRC_X86 __m128i crc_block_fold(__m128i block, __m128i factors)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
			     _mm_clmulepi64_si128(block, factors, 0x11));
}

/* The upper half of w, 64 bits, modulo P. */
CRC_X86 uint32_t crc_block_barrett(__m128i w)
{
	const __m128i constants = _mm_set_epi64x(CRC_BARRETT_P, CRC_BARRETT_MU);
	__m128i q = _mm_clmulepi64_si128(w, constants, 0x01);
	__m128i r;

	q = _mm_blend_epi16(q, _mm_setzero_si128(), 0xfc);
	r = _mm_clmulepi64_si128(q, constants, 0x10);
	return (uint32_t)_mm_extract_epi32(w, 3) ^ (uint32_t)_mm_extract_epi32(r, 1);
}

/* A sum of finished blocks (96 bits) modulo P. */
CRC_X86 uint32_t crc_block_reduce(__m128i sum)
{
	__m128i factor = _mm_loadl_epi64((const __m128i *)&crc_tables.reduce);

	return crc_block_barrett(_mm_xor_si128(sum, _mm_clmulepi64_si128(sum, factor, 0x00)));
}

/* n = 0..15 bytes, padded with zeroes. */
CRC_X86 __m128i crc_block_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	struct crc_fold halves = crc_load_partial(p, n, dst);

	if (n & 8)
		return _mm_set_epi64x((long long)halves.hi, (long long)halves.lo);
	return _mm_cvtsi64_si128((long long)halves.lo);
}

#endif
