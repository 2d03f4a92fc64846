/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CRC by carry-less multiplication, for vectors of any width. Each vector form
 * (crc_vpclmul512.c, crc_vpclmul256.c, crc_pclmul.c, crc_pmull.c) defines the names below and then
 * includes this file, which defines crc(), crc_copy(), crc_copy_nt(), icrc(), icrc_headers() and
 * CRC_VECTOR_OPS.
 *
 *   FORM                         attributes of functions that use the form's instructions
 *   vec                          the vector type
 *   VECTOR                       its size in bytes: 16, 32 or 64
 *   LANES                        vectors folded side by side, to hide the multiplier's latency
 *   LOADED_ONCE(v)               keeps the compiler from loading v twice: the sum is of what is
 *                                stored
 *   vec_zero(), vec_state(state) zero; the state in the first four bytes
 *   vec_xor(a, b), vec_or(a, b)
 *   vec_load(p), vec_store(p, v) any alignment
 *   vec_stream(p, v)             non-temporal, p aligned to VECTOR
 *   vec_partial(p, n, dst)       0 < n < VECTOR bytes, padded with zeroes; stored unless dst is
 *   NULL vec_factors(f)               the multipliers of VECTOR / 16 blocks
 *   vec_same_factors(f)          the same multipliers for each block
 *   vec_fold_onto(sum, v, f)     sum + the blocks of v, each times its factors
 *   vec_reduce(sum)              a sum of finished blocks modulo P
 *
 * Long messages are folded STRIDE bytes at a time; the rest (less than two strides, folded sums
 * included) is multiplied straight to the end of the message, all vectors independently of each
 * other (crc_internal.h), so that a small packet costs little more than one reduction. No byte
 * outside the message is touched. Reads crc_tables, keeps no state; any stage.
 */
#define INLINE FORM static inline __attribute__((always_inline))

/* Keeps the lanes in registers, also at -O2. */
#ifdef __clang__
#define EACH_LANE _Pragma("unroll")
#else
#define EACH_LANE _Pragma("GCC unroll 8")
#endif

enum store { STORE_NONE, STORE_CACHED, STORE_NT };

enum {
	STRIDE = VECTOR * LANES,
	NT_BYTES_MIN = 1024, /* below this, non-temporal stores cannot pay */
};

_Static_assert(STRIDE == 128 || STRIDE == 256, "crc_tables has multipliers for these");

/* The vector at p + i, stored to dst + i as `store` says. */
INLINE vec load_vector(const uint8_t *p, uint8_t *dst, size_t i, enum store store)
{
	vec v = vec_load(p + i);

	if (store == STORE_NONE)
		return v;
	LOADED_ONCE(v);
	if (store == STORE_NT)
		vec_stream(dst + i, v);
	else
		vec_store(dst + i, v);
	return v;
}

/*
 * v, which begins `at` bytes into a message of less than a stride, with the mask over it. mask: to
 * OR over the first bytes (icrc_mask), or NULL. Zeroes follow the mask, so only 64-byte vectors,
 * the first of which uses all of it, need to check where it ends.
 */
INLINE vec masked(vec v, const uint8_t *mask, size_t at)
{
	if (!mask || (sizeof(v) == ICRC_MASKED_BYTES && at > 0))
		return v;
	return vec_or(v, vec_load(mask + at));
}

/* Sum of the first n - n % STRIDE >= STRIDE bytes, each block multiplied to the end of the n
 * bytes. */
INLINE vec run_long(vec first, const uint8_t *p, size_t n, uint8_t *dst, enum store store,
		    const uint8_t *mask, const struct crc_fold *factors)
{
	const vec fold =
		vec_same_factors(STRIDE == 128 ? &crc_tables.fold128 : &crc_tables.fold256);
	vec sum = vec_zero();
	vec a[LANES];
	unsigned int k;
	size_t i;

	EACH_LANE
	for (k = 0; k < LANES; k++)
		a[k] = masked(load_vector(p, dst, k * VECTOR, store),
			      k * VECTOR < ICRC_MASKED_BYTES ? mask : NULL, k * VECTOR);
	a[0] = vec_xor(a[0], first);
	for (i = STRIDE; n - i >= STRIDE; i += STRIDE) {
		EACH_LANE
		for (k = 0; k < LANES; k++)
			a[k] = vec_fold_onto(load_vector(p, dst, i + k * VECTOR, store), a[k],
					     fold);
	}
	EACH_LANE
	for (k = 0; k < LANES; k++)
		sum = vec_fold_onto(sum, a[k], vec_factors(factors + k * (VECTOR / 16)));
	return sum;
}

/* sum + the last n < STRIDE bytes of a message, each block multiplied to its end. */
INLINE vec run_short(vec sum, vec first, const uint8_t *p, size_t n, uint8_t *dst, enum store store,
		     const uint8_t *mask, const struct crc_fold *factors)
{
	size_t i = 0;
	vec v;

	if (n >= VECTOR) {
		v = vec_xor(masked(load_vector(p, dst, 0, store), mask, 0), first);
		sum = vec_fold_onto(sum, v, vec_factors(factors));
		first = vec_zero();
		i = VECTOR;
	}
	for (; n - i >= VECTOR; i += VECTOR) {
		v = masked(load_vector(p, dst, i, store), mask, i);
		sum = vec_fold_onto(sum, v, vec_factors(factors + i / 16));
	}
	if (i < n) {
		v = vec_partial(p + i, n - i, store == STORE_NONE ? NULL : dst + i);
		v = vec_xor(masked(v, mask, i), first);
		sum = vec_fold_onto(sum, v, vec_factors(factors + i / 16));
	}
	return sum;
}

/* State after n bytes at p, masked, and stored to dst as `store` says. */
INLINE uint32_t crc_run(uint32_t state, const uint8_t *p, size_t n, uint8_t *dst, enum store store,
			const uint8_t *mask)
{
	const struct crc_fold *factors = crc_finish(n < STRIDE ? n : STRIDE + n % STRIDE);
	size_t folded = n - n % STRIDE;
	vec first = vec_state(state);
	vec sum;

	if (n == 0)
		return state;
	if (n < STRIDE)
		return vec_reduce(run_short(vec_zero(), first, p, n, dst, store, mask, factors));
	sum = run_long(first, p, n, dst, store, mask, factors);
	if (store != STORE_NONE)
		dst += folded;
	return vec_reduce(run_short(sum, vec_zero(), p + folded, n - folded, dst, store, NULL,
				    factors + STRIDE / 16));
}

FORM static uint32_t crc(uint32_t state, const void *p, size_t n)
{
	return crc_run(state, p, n, NULL, STORE_NONE, NULL);
}

FORM static uint32_t crc_copy(uint32_t state, void *dst, const void *src, size_t n)
{
	return crc_run(state, src, n, dst, STORE_CACHED, NULL);
}

FORM static uint32_t crc_copy_nt(uint32_t state, void *dst, const void *src, size_t n)
{
	size_t head = -(uintptr_t)dst % VECTOR; /* non-temporal stores must be aligned */
	const uint8_t *p = src;
	uint8_t *d = dst;

	if (n < NT_BYTES_MIN)
		return crc_copy(state, dst, src, n);
	state = crc_run(state, p, head, d, STORE_CACHED, NULL);
	return crc_run(state, p + head, n - head, d + head, STORE_NT, NULL);
}

FORM static uint32_t icrc_headers(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return crc_run(ICRC_START, l3, n, NULL, STORE_NONE, icrc_mask[ipv6]);
}

FORM static uint32_t icrc(const uint8_t *l3, unsigned int n, bool ipv6)
{
	return ~icrc_headers(l3, n, ipv6);
}

/* The form's table of functions. combines: its wire_crc_ops.combine. */
#define CRC_VECTOR_OPS(form_name, combines)                                                        \
	{                                                                                          \
		.name = form_name, .crc = crc, .crc_copy = crc_copy, .crc_copy_nt = crc_copy_nt,   \
		.icrc = icrc, .icrc_headers = icrc_headers, .combine = combines,                   \
	}
