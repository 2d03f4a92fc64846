/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 with VPCLMULQDQ on the 32-byte vectors of AVX2 (crc_vector.h): for Zen 3, and Intel's
 * client cores, which lack AVX-512.
 */
#include "crc_x86.h"

#define FORM	       __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.1")))
#define VEC	       FORM static inline __attribute__((always_inline))
#define LOADED_ONCE(v) __asm__("" : "+x"(v))

typedef __m256i vec;

enum { VECTOR = 32, LANES = 8 };

VEC vec vec_zero(void)
{
	return _mm256_setzero_si256();
}

VEC vec vec_state(uint32_t state)
{
	return _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)state));
}

VEC vec vec_xor(vec a, vec b)
{
	return _mm256_xor_si256(a, b);
}

VEC vec vec_or(vec a, vec b)
{
	return _mm256_or_si256(a, b);
}

VEC vec vec_load(const void *p)
{
	return _mm256_loadu_si256(p);
}

VEC void vec_store(uint8_t *p, vec v)
{
	_mm256_storeu_si256((__m256i *)p, v);
}

VEC void vec_stream(uint8_t *p, vec v)
{
	_mm256_stream_si256((__m256i *)p, v);
}

/* AVX2 has no masked loads of bytes: a whole block if there is one, then the rest. */
VEC vec vec_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	__m128i whole;

	if (n < 16)
		return _mm256_zextsi128_si256(crc_block_partial(p, n, dst));
	whole = _mm_loadu_si128((const __m128i *)p);
	if (dst) {
		LOADED_ONCE(whole);
		_mm_storeu_si128((__m128i *)dst, whole);
		dst += 16;
	}
	return _mm256_set_m128i(crc_block_partial(p + 16, n - 16, dst), whole);
}

VEC vec vec_factors(const struct crc_fold *f)
{
	return _mm256_loadu_si256((const __m256i *)f);
}

VEC vec vec_same_factors(const struct crc_fold *f)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)f));
}

VEC vec vec_fold_onto(vec sum, vec v, vec factors)
{
	__m256i low = _mm256_clmulepi64_epi128(v, factors, 0x00);

	return _mm256_xor_si256(_mm256_xor_si256(sum, low),
				_mm256_clmulepi64_epi128(v, factors, 0x11));
}

VEC uint32_t vec_reduce(vec sum)
{
	return crc_block_reduce(
		_mm_xor_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1)));
}

#include "crc_vector.h"

const struct wire_crc_ops crc_vpclmul256 = CRC_VECTOR_OPS("vpclmul256", crc_combine_pclmul);
