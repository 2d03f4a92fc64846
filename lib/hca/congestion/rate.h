/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONGESTION_RATE_H
#define CONGESTION_RATE_H
/* Arithmetic of both congestion controls: 64-bit integers, rates in kbit/s. No state. */
#include "congestion/dcqcn.h"

/* A parameter, which the control thread may change at any time. */
#define SETTING(p, name) __atomic_load_n(&(p)->name, __ATOMIC_RELAXED)

enum {
	KBIT = 1000, /* in a Mbit */
	NEAR = 128,  /* a flow within 1/128 of the line rate is as fast as the line */
};

static inline uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The line rate. */
static inline uint64_t rate_of_line(const struct dcqcn_params *p)
{
	return (uint64_t)SETTING(p, rpg_max_rate) * KBIT;
}

/* Is a flow at `rate` as fast as the line, and needs no limit? */
static inline bool rate_is_line(const struct dcqcn_params *p, uint64_t rate)
{
	uint64_t most = rate_of_line(p);

	return rate >= most - most / NEAR;
}

#endif
