/* SPDX-License-Identifier: BSD-3-Clause */
/* Contracts of wire/psn.h. Of 24-bit numbers, that is; of others the results are in range. */
#include <stdbool.h>
#include "facts.h"
#include "wire/psn.h"

/*@ predicate is_psn(integer a) = 0 <= a < TWO_24;
    // How far a is ahead of b in the window.
    logic integer gap(integer a, integer b) =
	a - b >= 0x800000 ? a - b - TWO_24 : a - b < -0x800000 ? a - b + TWO_24 : a - b; */

/*@ assigns \nothing;
    ensures \result <= PSN_MASK;
    ensures is_psn(psn) && is_psn(n) ==> \result == psn + n || \result == psn + n - TWO_24; */
static inline uint32_t psn_add(uint32_t psn, uint32_t n);

/*@ assigns \nothing;
    ensures \result <= PSN_MASK;
    ensures is_psn(psn) && is_psn(n) ==> \result == psn - n || \result == psn - n + TWO_24; */
static inline uint32_t psn_sub(uint32_t psn, uint32_t n);

/*@ assigns \nothing;
    ensures -0x800000 <= \result < 0x800000;
    ensures is_psn(a) && is_psn(b) ==> \result == gap(a, b); */
static inline int32_t psn_diff(uint32_t a, uint32_t b);

/*@ assigns \nothing;
    ensures is_psn(a) && is_psn(b) ==> (\result <==> gap(a, b) < 0); */
static inline bool psn_before(uint32_t a, uint32_t b);

/*@ assigns \nothing;
    ensures is_psn(a) && is_psn(b) ==> (\result <==> gap(a, b) <= 0); */
static inline bool psn_before_eq(uint32_t a, uint32_t b);

/*@ assigns \nothing;
    ensures is_psn(a) && is_psn(b) ==> (\result <==> gap(a, b) > 0); */
static inline bool psn_after(uint32_t a, uint32_t b);

/*@ assigns \nothing;
    ensures is_psn(a) && is_psn(b) ==> (\result <==> gap(a, b) >= 0); */
static inline bool psn_after_eq(uint32_t a, uint32_t b);

/*@ requires count <= TWO_24;
    assigns \nothing;
    ensures is_psn(psn) && is_psn(first) ==>
	(\result <==> first <= psn < first + count || first <= psn + TWO_24 < first + count); */
static inline bool psn_in(uint32_t psn, uint32_t first, uint32_t count);

/*@ requires mtu_bytes == 256 || mtu_bytes == 512 || mtu_bytes == 1024 || mtu_bytes == 2048 ||
	mtu_bytes == 4096;
    requires bytes <= UINT32_MAX;
    assigns \nothing;
    ensures bytes == 0 ==> \result == 1;
    ensures bytes > 0 ==> mtu_bytes * (\result - 1) < bytes <= mtu_bytes * \result; */
static inline uint32_t psn_packets(uint64_t bytes, uint32_t mtu_bytes);

/* Going there and back, and the order of what is in the window. */
/*@ requires is_psn(psn) && n < 0x800000;
    assigns \nothing;
    ensures \result == n; */
static int32_t distance_of_sum(uint32_t psn, uint32_t n)
{
	return psn_diff(psn_add(psn, n), psn);
}

/*@ requires is_psn(a) && is_psn(b);
    assigns \nothing;
    ensures \result; */
static bool one_order(uint32_t a, uint32_t b)
{
	return psn_before(a, b) + psn_after(a, b) + (a == b) == 1 &&
	       psn_before_eq(a, b) == (psn_before(a, b) || a == b);
}

#ifdef WRONG
/* Not so for a distance of half of all PSNs. If this were proven, so would be anything. */
/*@ requires is_psn(a) && is_psn(b) && a != b;
    assigns \nothing;
    ensures \result; */
static bool wrong(uint32_t a, uint32_t b)
{
	return psn_before(a, b) != psn_before(b, a);
}
#endif
