/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls make a long copy: measured when the program starts, in some 50 us. */
#include <rte_cycles.h>

#include "base/copy_bytes.h"

enum { PAYLOAD = 4096, TURNS = 32, UNALIGNED = 58 };

size_t copy_bytes_call_max[2];

/* Least cycles of a copy of PAYLOAD bytes by calls of at most max bytes. */
static uint64_t copy_bytes_cycles(size_t aligned, size_t max)
{
	static _Alignas(RTE_CACHE_LINE_SIZE) uint8_t from[PAYLOAD],
		to[PAYLOAD + RTE_CACHE_LINE_SIZE];
	uint64_t least = UINT64_MAX;

	copy_bytes_call_max[aligned] = max;
	for (unsigned int i = 0; i < TURNS; i++) {
		uint64_t start = rte_rdtsc_precise();

		copy_bytes(aligned ? to : to + UNALIGNED, from, PAYLOAD);
		least = RTE_MIN(least, rte_rdtsc_precise() - start);
	}
	return least;
}

/*
 * The measurement runs in the L1 cache, where REP MOVSB gains least: it is used for long copies
 * unless it is much slower there.
 */
static __attribute__((constructor)) void copy_bytes_measure(void)
{
	for (size_t aligned = 0; aligned < RTE_DIM(copy_bytes_call_max); aligned++) {
		uint64_t parts = copy_bytes_cycles(aligned, COPY_BYTES_CALL_PART);

		if (copy_bytes_cycles(aligned, SIZE_MAX) > 2 * parts)
			copy_bytes_call_max[aligned] = COPY_BYTES_CALL_PART;
	}
}
