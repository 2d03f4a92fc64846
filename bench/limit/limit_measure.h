/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMIT_MEASURE_H
#define LIMIT_MEASURE_H
/* How the models of this folder are timed. Internal to bench/limit. */
#include <stdint.h>
#include "limit.h"

/*
 * Calls step(model) until the time of a repetition is over and returns the median over the
 * repetitions of units per second of this thread's CPU time; step returns the units it has done.
 * A first repetition is run and not counted.
 */
double limit_measure(const struct limit_params *params, uint64_t (*step)(void *model), void *model);

/* Median of n values, 1 or more; sorts them. */
double limit_median(double *values, unsigned int n);

/* Binds the calling thread to one CPU. Returns 0 or -errno. */
int limit_bind(int cpu);

#endif
