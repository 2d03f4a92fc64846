/* SPDX-License-Identifier: BSD-3-Clause */
/* The two code tables of the AETH syndrome. Constant data, no code. */
#include "wire/aeth.h"

const uint32_t aeth_credit_table[32] = {
	0,    1,    2,	  3,	 4,	6,     8,     12,
	16,   24,   32,	  48,	 64,	96,    128,   192,
	256,  384,  512,  768,	 1024,	1536,  2048,  3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, AETH_CREDITS_UNLIMITED,
};

/* Code 0 is the longest wait, not none. */
const uint32_t aeth_rnr_ns_table[32] = {
	655360000, 10000,    20000,    30000,	  40000,     60000,	80000,	   120000,
	160000,	   240000,   320000,   480000,	  640000,    960000,	1280000,   1920000,
	2560000,   3840000,  5120000,  7680000,	  10240000,  15360000,	20480000,  30720000,
	40960000,  61440000, 81920000, 122880000, 163840000, 245760000, 327680000, 491520000,
};
