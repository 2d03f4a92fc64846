/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timing of the models: repetitions of fixed length, rate by the thread's CPU time, median. The
 * clock is read once per step (32 packets), which costs less than one cycle a packet.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <rte_cycles.h>
#include "../sort.h"
#include "limit_measure.h"

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double limit_median(double *values, unsigned int n)
{
	sort_doubles(values, n);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int limit_bind(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	return -pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static double repetition(unsigned int ms, uint64_t (*step)(void *model), void *model)
{
	uint64_t deadline = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
	double start = cpu_seconds();
	uint64_t units = 0;

	do
		units += step(model);
	while (rte_rdtsc() < deadline);
	return (double)units / (cpu_seconds() - start);
}

double limit_measure(const struct limit_params *params, uint64_t (*step)(void *model), void *model)
{
	double rates[LIMIT_REPETITIONS_MAX];
	unsigned int n = params->repetitions;

	n = n < 1 ? 1 : n > LIMIT_REPETITIONS_MAX ? LIMIT_REPETITIONS_MAX : n;
	repetition(params->repetition_ms, step, model);
	for (unsigned int i = 0; i < n; i++)
		rates[i] = repetition(params->repetition_ms, step, model);
	return limit_median(rates, n);
}
