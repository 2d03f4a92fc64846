/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMIT_MEASURE_H
#define LIMIT_MEASURE_H
/* How the models of this folder are timed. Internal to bench/limit. */
#include <stdint.h>
#include <rte_cycles.h>
#include "limit_steps.h"

/*
 * Calls step(model) until the time of a repetition is over and returns the median over the
 * repetitions of units per second of this thread's CPU time; step returns the units it has done.
 * A first repetition is run and not counted.
 */
double limit_measure(const struct limit_params *params, uint64_t (*step)(void *model), void *model);

/* Where a model's time goes: all since the last lap is the cost of the step that ends. */
struct limit_clock {
	bool runs;
	uint64_t last; /* time of the last lap */
	uint64_t cycles[LIMIT_STEP_COUNT];
	uint32_t laps[LIMIT_STEP_COUNT];
};

/* A step ends, for a whole burst. */
static inline void limit_lap(struct limit_clock *c, enum limit_step step)
{
	uint64_t now;

	if (!c->runs)
		return;
	now = rte_rdtsc();
	c->cycles[step] += now - c->last;
	c->laps[step]++;
	c->last = now;
}

/*
 * Fills in *out from rounds of step(model), which laps on *clock and returns the units it has done;
 * cycles are of `unit` of these. 0; -1: memory is short.
 */
int limit_measure_steps(unsigned int ms, uint64_t (*step)(void *model), void *model,
			struct limit_clock *clock, double unit, struct limit_steps *out);

/* Median of n values, 1 or more; sorts them. */
double limit_median(double *values, unsigned int n);

/* Binds the calling thread to one CPU. Returns 0 or -errno. */
int limit_bind(int cpu);

#endif
