/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROVE_FACTS_H
#define PROVE_FACTS_H
/*
 * What the provers are told and do not prove: how C reduces a number to a type, what a mask and a
 * shift by a constant do, and what two built-in functions of the compiler return. All of it linear, since
 * that is what the provers are good at: the number of wraps and the remainder are functions of which
 * nothing else is known.
 */
#include <stdint.h>

#define TWO_24 0x1000000
#define TWO_32 0x100000000

/*@
  axiomatic wraps {
    logic integer wraps_unsigned(integer x);
    logic integer wraps_signed(integer x);
  }
  admit lemma to_uint32: \forall integer x; x == (uint32_t)x + TWO_32 * wraps_unsigned(x);
  admit lemma to_int32: \forall integer x; x == (int32_t)x + TWO_32 * wraps_signed(x);
  admit lemma mask_24: \forall integer x; 0 <= x < TWO_24 ==> (x & 0xffffff) == x;
  admit lemma mask_24_after: \forall integer x; TWO_24 <= x < 2 * TWO_24 ==> (x & 0xffffff) == x - TWO_24;
  admit lemma mask_24_before: \forall integer x; TWO_32 - TWO_24 <= x < TWO_32 ==>
	(x & 0xffffff) == x - (TWO_32 - TWO_24);
  admit lemma mask_5: \forall integer x; 0 <= x < 256 ==> (x & 0x1f) == (x >= 0xe0 ? x - 0xe0 :
	x >= 0xc0 ? x - 0xc0 : x >= 0xa0 ? x - 0xa0 : x >= 0x80 ? x - 0x80 : x >= 0x60 ? x - 0x60 :
	x >= 0x40 ? x - 0x40 : x >= 0x20 ? x - 0x20 : x);
  admit lemma or_5: \forall integer x; 0 <= x < 0x20 ==> (0x20 | x) == 0x20 + x && (0x60 | x) == 0x60 + x;
  admit lemma mask_high_3: \forall integer x; 0 <= x < 256 ==> (x & 0xe0) == x - (x & 0x1f);
  admit lemma left_8: \forall integer x; 0 <= x ==> (x << 8) == 256 * x;
  admit lemma right_8: \forall integer x; 256 * (x >> 8) <= x < 256 * (x >> 8) + 256;
  admit lemma right_9: \forall integer x; 512 * (x >> 9) <= x < 512 * (x >> 9) + 512;
  admit lemma right_10: \forall integer x; 1024 * (x >> 10) <= x < 1024 * (x >> 10) + 1024;
  admit lemma right_11: \forall integer x; 2048 * (x >> 11) <= x < 2048 * (x >> 11) + 2048;
  admit lemma right_12: \forall integer x; 4096 * (x >> 12) <= x < 4096 * (x >> 12) + 4096;
*/

/*@ requires x != 0;
    assigns \nothing;
    ensures 0 <= \result < 32;
    ensures x == 256 ==> \result == 8;
    ensures x == 512 ==> \result == 9;
    ensures x == 1024 ==> \result == 10;
    ensures x == 2048 ==> \result == 11;
    ensures x == 4096 ==> \result == 12; */
int __builtin_ctz(unsigned int x);

/*@ requires x != 0;
    assigns \nothing;
    ensures 0 <= \result < 32;
    ensures 2 <= x < 32768 ==> 17 <= \result <= 30; */
int __builtin_clz(unsigned int x);

#endif
