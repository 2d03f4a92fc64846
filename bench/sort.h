/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SORT_H
#define BENCH_SORT_H
/* Samples in ascending order, for medians and quantiles. */
#include <stdlib.h>

static inline int sort_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void sort_doubles(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), sort_compare);
}

#endif
