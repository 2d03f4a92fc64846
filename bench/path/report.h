/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_REPORT_H
#define PATH_REPORT_H
/* Output: perftest's tables, or one JSON array of objects. */
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct bw_result {
	uint32_t size;	   /* bytes */
	uint64_t messages; /* in all directions and QPs */
	uint64_t ns;	   /* measured time */
	uint64_t whole_ns; /* verified: with writing and checking the data; else 0 */
	double peak_gbps;  /* best stretch */
};

struct lat_result {
	uint32_t size;
	uint64_t iterations;
	double min, max, median, average, stdev, p99, p999; /* usec */
};

static inline double bw_gbps(const struct bw_result *r)
{
	return r->ns ? (double)r->messages * r->size * 8.0 / (double)r->ns : 0;
}

static inline double bw_whole_gbps(const struct bw_result *r)
{
	return r->whole_ns ? (double)r->messages * r->size * 8.0 / (double)r->whole_ns : 0;
}

static inline double bw_mpps(const struct bw_result *r)
{
	return r->ns ? (double)r->messages * 1e3 / (double)r->ns : 0;
}

/* Statistics of n samples in ns, each divided by `divisor`; sorts them. n > 0. */
void lat_statistics(struct lat_result *r, double *samples_ns, size_t n, double divisor);

/* verified: results of bw have a whole_ns. */
void report_begin(bool json, bool latency, bool verified);
void report_bw(bool json, const struct bw_result *r);
void report_lat(bool json, const struct lat_result *r);
void report_end(bool json);

#endif
