/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of samples and the tables on stdout. One report at a time in a process. */
#include <math.h>
#include <stdio.h>
#include "../sort.h"
#include "report.h"

static const char rule[] = "---------------------------------------------------------------------"
			   "------------------";
static bool first_row;

/* The value that a share q of the samples does not exceed. */
static double quantile(const double *sorted, size_t n, double q)
{
	size_t i = (size_t)ceil(q * (double)n);

	return sorted[i > 0 ? (i <= n ? i - 1 : n - 1) : 0];
}

void lat_statistics(struct lat_result *r, double *s, size_t n, double divisor)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		s[i] /= divisor * 1e3;
		sum += s[i];
	}
	sort_doubles(s, n);
	r->iterations = n;
	r->average = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (s[i] - r->average) * (s[i] - r->average);
	r->stdev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	r->min = s[0];
	r->max = s[n - 1];
	r->median = quantile(s, n, 0.5);
	r->p99 = quantile(s, n, 0.99);
	r->p999 = quantile(s, n, 0.999);
}

void report_begin(bool json, bool latency, bool verified)
{
	first_row = true;
	if (json)
		printf("[");
	else if (latency)
		printf("%s\n #bytes   #iterations  t_min[usec]  t_max[usec]  t_typical[usec]  "
		       "t_avg[usec]  t_stdev[usec]  99%%[usec]  99.9%%[usec]\n",
		       rule);
	else
		printf("%s\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
		       "MsgRate[Mpps]%s\n",
		       rule, verified ? "   BW with checks[Gb/sec]" : "");
	fflush(stdout);
}

static void begin_object(void)
{
	printf("%s\n  {", first_row ? "" : ",");
	first_row = false;
}

void report_bw(bool json, const struct bw_result *r)
{
	if (json) {
		begin_object();
		printf("\"bytes\": %u, \"iterations\": %llu, \"bw_peak_gbps\": %.4f, "
		       "\"bw_average_gbps\": %.4f, \"msg_rate_mpps\": %.6f",
		       r->size, (unsigned long long)r->messages, r->peak_gbps, bw_gbps(r),
		       bw_mpps(r));
		if (r->whole_ns)
			printf(", \"bw_with_checks_gbps\": %.4f", bw_whole_gbps(r));
		printf("}");
	} else {
		printf(" %-10u %-14llu %-18.2f %-20.2f %.6f", r->size,
		       (unsigned long long)r->messages, r->peak_gbps, bw_gbps(r), bw_mpps(r));
		if (r->whole_ns)
			printf("        %.2f", bw_whole_gbps(r));
		printf("\n");
	}
	fflush(stdout);
}

void report_lat(bool json, const struct lat_result *r)
{
	if (json) {
		begin_object();
		printf("\"bytes\": %u, \"iterations\": %llu, \"t_min_usec\": %.3f, "
		       "\"t_max_usec\": %.3f, \"t_typical_usec\": %.3f, \"t_avg_usec\": %.3f, "
		       "\"t_stdev_usec\": %.3f, \"t_99_usec\": %.3f, \"t_99_9_usec\": %.3f}",
		       r->size, (unsigned long long)r->iterations, r->min, r->max, r->median,
		       r->average, r->stdev, r->p99, r->p999);
	} else {
		printf(" %-8u %-12llu %-12.2f %-12.2f %-16.2f %-12.2f %-14.2f %-10.2f %.2f\n",
		       r->size, (unsigned long long)r->iterations, r->min, r->max, r->median,
		       r->average, r->stdev, r->p99, r->p999);
	}
	fflush(stdout);
}

void report_end(bool json)
{
	printf("%s\n", json ? "\n]" : rule);
	fflush(stdout);
}
