/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 with PCLMULQDQ and SSE4.1: four blocks of 16 bytes at a time, and every remaining block
 * multiplied straight to the end of the message (crc_internal.h). Reads crc_tables, keeps no state;
 * any stage.
 */
#include "crc_internal.h"

#include <immintrin.h>

#define FORM   __attribute__((target("pclmul,sse4.1")))
#define INLINE FORM static inline __attribute__((always_inline))

/* The compiler must not load a vector again: what is summed is what is stored. */
#define LOADED_ONCE(v) __asm__("" : "+x"(v))

INLINE __m128i fold(__m128i block, __m128i factors)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
		_mm_clmulepi64_si128(block, factors, 0x11));
}

INLINE __m128i factors_at(const struct crc_fold *fold)
{
	return _mm_loadu_si128((const __m128i *)fold);
}

/* The upper half of w, 64 bits, modulo P. */
INLINE uint32_t barrett(__m128i w)
{
	const __m128i constants = _mm_set_epi64x(CRC_BARRETT_P, CRC_BARRETT_MU);
	__m128i q = _mm_clmulepi64_si128(w, constants, 0x01);
	__m128i r;

	q = _mm_blend_epi16(q, _mm_setzero_si128(), 0xfc);
	r = _mm_clmulepi64_si128(q, constants, 0x10);
	return (uint32_t)_mm_extract_epi32(w, 3) ^ (uint32_t)_mm_extract_epi32(r, 1);
}

/* A sum of finished blocks (96 bits) modulo P. */
INLINE uint32_t reduce(__m128i sum)
{
	__m128i high = _mm_clmulepi64_si128(sum, factors_at(&crc_tables.reduce), 0x00);

	return barrett(_mm_xor_si128(sum, high));
}

/* The next sizeof(type) bytes: loaded once, shifted to their place, copied unless dst is NULL. */
#define PIECE(into, type, shift)                                                                   \
	do {                                                                                       \
		type piece;                                                                        \
		memcpy(&piece, p, sizeof(piece));                                                  \
		__asm__("" : "+r"(piece));                                                         \
		p += sizeof(piece);                                                                \
		(into) |= (uint64_t)piece << (shift);                                              \
		if (dst) {                                                                         \
			memcpy(dst, &piece, sizeof(piece));                                        \
			dst += sizeof(piece);                                                      \
		}                                                                                  \
	} while (0)

/* n = 1..15 bytes, zeros behind them. Of RoCE packets only 4, 8 and 12 remain. */
INLINE __m128i load_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	uint64_t whole = 0;
	uint64_t rest = 0;

	if (n & 8)
		PIECE(whole, uint64_t, 0);
	if (n & 4)
		PIECE(rest, uint32_t, 0);
	if (n & 2)
		PIECE(rest, uint16_t, (n & 4) * 8);
	if (n & 1)
		PIECE(rest, uint8_t, (n & 6) * 8);
	if (n & 8)
		return _mm_set_epi64x((long long)rest, (long long)whole);
	return _mm_cvtsi64_si128((long long)rest);
}

INLINE __m128i load_block(const uint8_t *p, uint8_t *dst)
{
	__m128i block = _mm_loadu_si128((const __m128i *)p);

	if (dst) {
		LOADED_ONCE(block);
		_mm_storeu_si128((__m128i *)dst, block);
	}
	return block;
}

/*
 * State after n bytes at p, which are also copied to dst unless it is NULL. mask: 64 bytes to OR
 * over the first 64, or NULL. Both are known where this is inlined.
 */
INLINE uint32_t run(uint32_t state, const uint8_t *p, size_t n, uint8_t *dst, const uint8_t *mask)
{
	const __m128i fold64 = factors_at(&crc_tables.fold64);
	const struct crc_fold *factors = crc_finish(n < 64 ? n : 64 + n % 64);
	__m128i first = _mm_cvtsi32_si128((int)state);
	__m128i sum = _mm_setzero_si128();
	__m128i a[4];
	__m128i block;
	size_t i = 0;
	unsigned int k;

	if (n >= 64) {
		for (k = 0; k < 4; k++) {
			a[k] = load_block(p + 16 * k, dst ? dst + 16 * k : NULL);
			if (mask)
				a[k] = _mm_or_si128(a[k], load_block(mask + 16 * k, NULL));
		}
		a[0] = _mm_xor_si128(a[0], first);
		for (i = 64; n - i >= 64; i += 64)
			for (k = 0; k < 4; k++)
				a[k] = _mm_xor_si128(fold(a[k], fold64),
					load_block(p + i + 16 * k, dst ? dst + i + 16 * k : NULL));
		for (k = 0; k < 4; k++)
			sum = _mm_xor_si128(sum, fold(a[k], factors_at(factors++)));
		first = _mm_setzero_si128();
		mask = NULL;
	}
	for (; n - i >= 16; i += 16) {
		block = load_block(p + i, dst ? dst + i : NULL);
		if (mask)
			block = _mm_or_si128(block, load_block(mask + i, NULL));
		block = _mm_xor_si128(block, first);
		sum = _mm_xor_si128(sum, fold(block, factors_at(factors++)));
		first = _mm_setzero_si128();
	}
	if (i < n) {
		block = load_partial(p + i, n - i, dst ? dst + i : NULL);
		if (mask)
			block = _mm_or_si128(block, load_block(mask + i, NULL));
		block = _mm_xor_si128(block, first);
		sum = _mm_xor_si128(sum, fold(block, factors_at(factors)));
	}
	return n ? reduce(sum) : state;
}

FORM static uint32_t crc(uint32_t state, const void *p, size_t n)
{
	return run(state, p, n, NULL, NULL);
}

FORM static uint32_t crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	if (!n)
		return state;
	return run(state, src, n, dst, NULL);
}

FORM static uint32_t icrc_headers(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return run(ICRC_START, l3, n, NULL, icrc_mask[ipv6]);
}

FORM static uint32_t icrc(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return ~run(ICRC_START, l3, n, NULL, icrc_mask[ipv6]);
}

FORM uint32_t crc_combine_pclmul(uint32_t state_a, uint32_t crc_b, size_t len_b)
{
	uint32_t factor =
		len_b <= CRC_SHIFT_BYTES_MAX ? crc_tables.shift[len_b] : crc_shift_factor(len_b);
	__m128i product = _mm_clmulepi64_si128(
		_mm_cvtsi32_si128((int)state_a), _mm_cvtsi32_si128((int)factor), 0x00);

	return barrett(_mm_slli_si128(product, 8)) ^ crc_b;
}

const struct wire_crc_ops crc_pclmul = {
	.name = "pclmul",
	.crc = crc,
	.crc_copy = crc_copy,
	.crc_copy_nt = crc_copy,
	.icrc = icrc,
	.icrc_headers = icrc_headers,
	.combine = crc_combine_pclmul,
};
