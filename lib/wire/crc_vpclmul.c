/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 with VPCLMULQDQ and AVX-512. Long messages are folded 256 bytes at a time; what remains
 * (less than 512 bytes, folded sums included) is multiplied straight to the end of the message, all
 * vectors independently of each other (crc_internal.h), so that a small packet costs little more
 * than one reduction. Masked loads never touch a byte outside of the message. Reads crc_tables,
 * keeps no state; any stage.
 */
#include "crc_internal.h"

#include <immintrin.h>

#define FORM   __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul,sse4.1,bmi2")))
#define INLINE FORM static inline __attribute__((always_inline))

/* The compiler must not load a vector again: what is summed is what is stored. */
#define LOADED_ONCE(v) __asm__("" : "+v"(v))

enum store { STORE_NONE, STORE_CACHED, STORE_NT };

enum {
	VECTOR = 64,
	VECTORS = 4,
	STRIDE = VECTOR * VECTORS,
	NT_BYTES_MIN = 1024, /* below this, going around the caches cannot pay */
	XOR3 = 0x96,
};

INLINE __m512i xor3(__m512i a, __m512i b, __m512i c)
{
	return _mm512_ternarylogic_epi64(a, b, c, XOR3);
}

/* sum + the four blocks of v, each times its factors. */
INLINE __m512i fold_onto(__m512i sum, __m512i v, __m512i factors)
{
	return xor3(sum, _mm512_clmulepi64_epi128(v, factors, 0x00),
		_mm512_clmulepi64_epi128(v, factors, 0x11));
}

INLINE __m512i factors_at(const struct crc_fold *fold)
{
	return _mm512_loadu_si512(fold);
}

/* A sum of finished blocks in four lanes (96 bits each) modulo P. */
INLINE uint32_t reduce(__m512i sum)
{
	const __m128i barrett = _mm_set_epi64x(CRC_BARRETT_P, CRC_BARRETT_MU);
	__m256i half =
		_mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
	__m128i x = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
	__m128i factor = _mm_loadl_epi64((const __m128i *)&crc_tables.reduce);
	__m128i q;
	__m128i r;

	x = _mm_xor_si128(x, _mm_clmulepi64_si128(x, factor, 0x00));
	q = _mm_clmulepi64_si128(x, barrett, 0x01);
	q = _mm_blend_epi16(q, _mm_setzero_si128(), 0xfc);
	r = _mm_clmulepi64_si128(q, barrett, 0x10);
	return (uint32_t)_mm_extract_epi32(x, 3) ^ (uint32_t)_mm_extract_epi32(r, 1);
}

/* 64 bytes at p + i, stored to dst + i. */
INLINE __m512i load_vector(const uint8_t *p, uint8_t *dst, size_t i, enum store store)
{
	__m512i v = _mm512_loadu_si512(p + i);

	if (store == STORE_NONE)
		return v;
	LOADED_ONCE(v);
	if (store == STORE_NT)
		_mm512_stream_si512((__m512i *)(dst + i), v);
	else
		_mm512_storeu_si512(dst + i, v);
	return v;
}

/* n = 1..63 bytes at p + i, stored to dst + i; zeros behind them in the register only. */
INLINE __m512i load_partial(const uint8_t *p, uint8_t *dst, size_t i, size_t n, enum store store)
{
	__mmask64 valid = _bzhi_u64(~0ull, (unsigned int)n);
	__m512i v = _mm512_maskz_loadu_epi8(valid, p + i);

	if (store == STORE_NONE)
		return v;
	LOADED_ONCE(v);
	_mm512_mask_storeu_epi8(dst + i, valid, v);
	return v;
}

/* Sum of the first n - n % 256 >= 256 bytes, each block multiplied to the end of all n. */
INLINE __m512i run_long(__m512i first, const uint8_t *p, size_t n, uint8_t *dst, enum store store,
	const struct crc_fold *factors)
{
	const __m512i fold256 =
		_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)&crc_tables.fold256));
	__m512i a0 = _mm512_xor_si512(load_vector(p, dst, 0, store), first);
	__m512i a1 = load_vector(p, dst, 64, store);
	__m512i a2 = load_vector(p, dst, 128, store);
	__m512i a3 = load_vector(p, dst, 192, store);
	__m512i sum;
	size_t i;

	for (i = STRIDE; n - i >= STRIDE; i += STRIDE) {
		a0 = fold_onto(load_vector(p, dst, i, store), a0, fold256);
		a1 = fold_onto(load_vector(p, dst, i + 64, store), a1, fold256);
		a2 = fold_onto(load_vector(p, dst, i + 128, store), a2, fold256);
		a3 = fold_onto(load_vector(p, dst, i + 192, store), a3, fold256);
	}
	sum = fold_onto(_mm512_setzero_si512(), a0, factors_at(factors));
	sum = fold_onto(sum, a1, factors_at(factors + 4));
	sum = fold_onto(sum, a2, factors_at(factors + 8));
	return fold_onto(sum, a3, factors_at(factors + 12));
}

/* State after n bytes at p, stored to dst as `store` says. */
INLINE uint32_t run(uint32_t state, const uint8_t *p, size_t n, uint8_t *dst, enum store store)
{
	const struct crc_fold *factors = crc_finish(n < STRIDE ? n : STRIDE + n % STRIDE);
	__m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state));
	__m512i sum = _mm512_setzero_si512();
	size_t i = 0;

	if (n == 0)
		return state;
	if (n >= STRIDE) {
		sum = run_long(first, p, n, dst, store, factors);
		factors += STRIDE / 16;
		first = _mm512_setzero_si512();
		i = n - n % STRIDE;
	}
	for (; n - i >= VECTOR; i += VECTOR, factors += VECTOR / 16) {
		__m512i v = load_vector(p, dst, i, store);

		sum = fold_onto(sum, _mm512_xor_si512(v, first), factors_at(factors));
		first = _mm512_setzero_si512();
	}
	if (i < n) {
		__m512i v = load_partial(p, dst, i, n - i, store);

		sum = fold_onto(sum, _mm512_xor_si512(v, first), factors_at(factors));
	}
	return reduce(sum);
}

FORM static uint32_t crc(uint32_t state, const void *p, size_t n)
{
	return run(state, p, n, NULL, STORE_NONE);
}

FORM static uint32_t crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return run(state, src, n, dst, STORE_CACHED);
}

FORM static uint32_t crc_copy_nt(uint32_t state, void *dst, const void *src, size_t n)
{
	size_t head = -(uintptr_t)dst % VECTOR; /* such stores must be aligned */
	const uint8_t *p = src;
	uint8_t *d = dst;

	if (n < NT_BYTES_MIN)
		return crc_copy(state, dst, src, n);
	state = run(state, p, head, d, STORE_CACHED);
	return run(state, p + head, n - head, d + head, STORE_NT);
}

/*
 * Masked headers are nothing but another first 64 bytes: (bytes | mask) ^ state = bytes ^ first,
 * where first = state ^ (mask & ~bytes).
 */
INLINE uint32_t run_icrc(const uint8_t *l3, size_t n, bool ipv6)
{
	const struct crc_fold *factors = crc_finish(n < STRIDE ? n : STRIDE + n % STRIDE);
	__mmask64 valid = _bzhi_u64(~0ull, n < VECTOR ? (unsigned int)n : VECTOR);
	__m512i v = _mm512_maskz_loadu_epi8(valid, l3);
	__m512i first = _mm512_andnot_si512(v, _mm512_load_si512(icrc_mask[ipv6]));
	__m512i sum;
	size_t i;

	first = _mm512_xor_si512(first, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)ICRC_START)));
	if (n >= STRIDE) {
		sum = run_long(first, l3, n, NULL, STORE_NONE, factors);
		factors += STRIDE / 16;
		i = n - n % STRIDE;
	} else {
		v = _mm512_xor_si512(v, first);
		sum = fold_onto(_mm512_setzero_si512(), v, factors_at(factors));
		factors += VECTOR / 16;
		i = VECTOR;
	}
	for (; i + VECTOR <= n; i += VECTOR, factors += VECTOR / 16)
		sum = fold_onto(sum, load_vector(l3, NULL, i, STORE_NONE), factors_at(factors));
	if (i < n)
		sum = fold_onto(
			sum, load_partial(l3, NULL, i, n - i, STORE_NONE), factors_at(factors));
	return reduce(sum);
}

FORM static uint32_t icrc_headers(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return run_icrc(l3, n, ipv6);
}

FORM static uint32_t icrc(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return ~run_icrc(l3, n, ipv6);
}

const struct wire_crc_ops crc_vpclmul = {
	.name = "vpclmul",
	.crc = crc,
	.crc_copy = crc_copy,
	.crc_copy_nt = crc_copy_nt,
	.icrc = icrc,
	.icrc_headers = icrc_headers,
	.combine = crc_combine_pclmul,
};
