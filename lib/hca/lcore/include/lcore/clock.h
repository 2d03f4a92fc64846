/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLOCK_H
#define CLOCK_H
/*
 * The time of the data path: nanoseconds since the daemon started, from the time stamp counter by
 * one multiplication.
 */
#include <stdint.h>
#include <rte_cycles.h>

struct clock {
	uint64_t start_tsc;
	uint64_t mult; /* nanoseconds per tick, in units of 2^-32 */
};

static inline void clock_start(struct clock *c)
{
	c->start_tsc = rte_rdtsc();
	c->mult = (1000000000ull << 32) / rte_get_tsc_hz();
}

static inline uint64_t clock_now_ns(const struct clock *c)
{
	return (uint64_t)(((unsigned __int128)(rte_rdtsc() - c->start_tsc) * c->mult) >> 32);
}

#endif
