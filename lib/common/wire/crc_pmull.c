/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32 with PMULL on the 16-byte vectors of ARMv8 (crc_vector.h). */
#include "crc_internal.h"

#include <arm_neon.h>

#define FORM	       __attribute__((target("+crypto")))
#define VEC	       FORM static inline __attribute__((always_inline))
#define LOADED_ONCE(v) __asm__("" : "+w"(v))

typedef uint64x2_t vec;

enum { VECTOR = 16, LANES = 8 };

VEC vec multiply_low(vec a, vec b)
{
	return vreinterpretq_u64_p128(
		vmull_p64((poly64_t)vgetq_lane_u64(a, 0), (poly64_t)vgetq_lane_u64(b, 0)));
}

VEC vec multiply_high(vec a, vec b)
{
	return vreinterpretq_u64_p128(
		vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
}

VEC vec vec_zero(void)
{
	return vdupq_n_u64(0);
}

VEC vec vec_state(uint32_t state)
{
	return vsetq_lane_u64(state, vec_zero(), 0);
}

VEC vec vec_xor(vec a, vec b)
{
	return veorq_u64(a, b);
}

VEC vec vec_or(vec a, vec b)
{
	return vorrq_u64(a, b);
}

VEC vec vec_load(const uint8_t *p)
{
	return vreinterpretq_u64_u8(vld1q_u8(p));
}

VEC void vec_store(uint8_t *p, vec v)
{
	vst1q_u8(p, vreinterpretq_u8_u64(v));
}

/* ARMv8 has no non-temporal store of one vector. */
VEC void vec_stream(uint8_t *p, vec v)
{
	vec_store(p, v);
}

VEC vec vec_partial(const uint8_t *p, size_t n, uint8_t *dst)
{
	struct crc_fold halves = crc_load_partial(p, n, dst);

	return vcombine_u64(vcreate_u64(halves.lo), vcreate_u64(halves.hi));
}

VEC vec vec_factors(const struct crc_fold *f)
{
	return vld1q_u64(&f->lo);
}

VEC vec vec_same_factors(const struct crc_fold *f)
{
	return vec_factors(f);
}

VEC vec vec_fold_onto(vec sum, vec v, vec factors)
{
	return veorq_u64(sum, veorq_u64(multiply_low(v, factors), multiply_high(v, factors)));
}

/* 64 bits modulo P. */
VEC uint32_t barrett(uint64_t w)
{
	vec q = multiply_low(vdupq_n_u64(w), vdupq_n_u64(CRC_BARRETT_MU));
	vec r = multiply_low(vdupq_n_u64((uint32_t)vgetq_lane_u64(q, 0)),
			     vdupq_n_u64(CRC_BARRETT_P));

	return (uint32_t)(w >> 32) ^ (uint32_t)(vgetq_lane_u64(r, 0) >> 32);
}

VEC uint32_t vec_reduce(vec sum)
{
	vec high = multiply_low(sum, vdupq_n_u64(crc_tables.reduce.lo));

	return barrett(vgetq_lane_u64(veorq_u64(sum, high), 1));
}

#include "crc_vector.h"

FORM static uint32_t combine(uint32_t state_a, uint32_t crc_b, size_t len_b)
{
	vec product = multiply_low(vec_state(state_a), vec_state(crc_shift_factor(len_b)));

	return barrett(vgetq_lane_u64(product, 0)) ^ crc_b;
}

const struct wire_crc_ops crc_pmull = CRC_VECTOR_OPS("pmull", combine);
