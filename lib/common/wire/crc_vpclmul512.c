/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 with VPCLMULQDQ on the 64-byte vectors of AVX-512 (crc_vector.h). */
#include "crc_x86.h"

#define FORM	       __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul,sse4.1,bmi2")))
#define VEC	       FORM static inline __attribute__((always_inline))
#define LOADED_ONCE(v) __asm__("" : "+v"(v))

typedef __m512i vec;

enum { VECTOR = 64, LANES = 4, XOR3 = 0x96 };

VEC vec vec_zero(void)
{
	return _mm512_setzero_si512();
}

VEC vec vec_state(uint32_t state)
{
	return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state));
}

VEC vec vec_xor(vec a, vec b)
{
	return _mm512_xor_si512(a, b);
}

VEC vec vec_or(vec a, vec b)
{
	return _mm512_or_si512(a, b);
}

VEC vec vec_load(const void *p)
{
	return _mm512_loadu_si512(p);
}

VEC void vec_store(uint8_t *p, vec v)
{
	_mm512_storeu_si512(p, v);
}

VEC void vec_stream(uint8_t *p, vec v)
{
	_mm512_stream_si512((__m512i *)p, v);
}

VEC vec vec_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	__mmask64 valid = _bzhi_u64(~0ull, (unsigned int)n);
	vec v = _mm512_maskz_loadu_epi8(valid, p);

	if (!dst)
		return v;
	LOADED_ONCE(v);
	_mm512_mask_storeu_epi8(dst, valid, v);
	return v;
}

VEC vec vec_factors(const struct crc_fold *f)
{
	return _mm512_loadu_si512(f);
}

VEC vec vec_same_factors(const struct crc_fold *f)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)f));
}

VEC vec vec_fold_onto(vec sum, vec v, vec factors)
{
	return _mm512_ternarylogic_epi64(sum, _mm512_clmulepi64_epi128(v, factors, 0x00),
					 _mm512_clmulepi64_epi128(v, factors, 0x11), XOR3);
}

VEC uint32_t vec_reduce(vec sum)
{
	__m256i half =
		_mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));

	return crc_block_reduce(
		_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

#include "crc_vector.h"

const struct wire_crc_ops crc_vpclmul512 = CRC_VECTOR_OPS("vpclmul512", crc_combine_pclmul);
