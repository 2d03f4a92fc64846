/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 with PCLMULQDQ on the 16-byte vectors of SSE4.1 (crc_vector.h). */
#include "crc_x86.h"

#define FORM	       __attribute__((target("pclmul,sse4.1")))
#define VEC	       FORM static inline __attribute__((always_inline))
#define LOADED_ONCE(v) __asm__("" : "+x"(v))

typedef __m128i vec;

enum { VECTOR = 16, LANES = 8 };

VEC vec vec_zero(void)
{
	return _mm_setzero_si128();
}

VEC vec vec_state(uint32_t state)
{
	return _mm_cvtsi32_si128((int)state);
}

VEC vec vec_xor(vec a, vec b)
{
	return _mm_xor_si128(a, b);
}

VEC vec vec_or(vec a, vec b)
{
	return _mm_or_si128(a, b);
}

VEC vec vec_load(const void *p)
{
	return _mm_loadu_si128(p);
}

VEC void vec_store(uint8_t *p, vec v)
{
	_mm_storeu_si128((__m128i *)p, v);
}

VEC void vec_stream(uint8_t *p, vec v)
{
	_mm_stream_si128((__m128i *)p, v);
}

VEC vec vec_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	return crc_block_partial(p, n, dst);
}

VEC vec vec_factors(const struct crc_fold *f)
{
	return _mm_loadu_si128((const __m128i *)f);
}

VEC vec vec_same_factors(const struct crc_fold *f)
{
	return vec_factors(f);
}

VEC vec vec_fold_onto(vec sum, vec v, vec factors)
{
	return _mm_xor_si128(sum, crc_block_fold(v, factors));
}

VEC uint32_t vec_reduce(vec sum)
{
	return crc_block_reduce(sum);
}

#include "crc_vector.h"

FORM uint32_t crc_combine_pclmul(uint32_t state_a, uint32_t crc_b, size_t len_b)
{
	uint32_t factor =
		len_b <= CRC_SHIFT_BYTES_MAX ? crc_tables.shift[len_b] : crc_shift_factor(len_b);
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)state_a),
					       _mm_cvtsi32_si128((int)factor), 0x00);

	return crc_block_barrett(_mm_slli_si128(product, 8)) ^ crc_b;
}

const struct wire_crc_ops crc_pclmul = CRC_VECTOR_OPS("pclmul", crc_combine_pclmul);
