/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SORT_H
#define BENCH_SORT_H
/* Samples in ascending order, for medians and quantiles. */
#include <stdlib.h>
#include <string.h>

static inline int sort_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void sort_doubles(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), sort_compare);
}

/*
 * n rows of `width` values, which belong to the same round each; the first is the total, by which
 * they are sorted. mean[width]: of the quickest tenth, so that the values still add up.
 */
static inline void sort_quickest_tenth(double *rows, size_t n, size_t width, double *mean)
{
	size_t quickest = (n + 9) / 10;

	qsort(rows, n, width * sizeof(*rows), sort_compare);
	memset(mean, 0, width * sizeof(*mean));
	for (size_t i = 0; i < quickest; i++)
		for (size_t k = 0; k < width; k++)
			mean[k] += rows[i * width + k] / (double)quickest;
}

#endif
