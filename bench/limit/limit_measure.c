/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timing of the models: repetitions of fixed length, rate by the thread's CPU time, median. The
 * clock is read once per step (32 packets), which costs less than one cycle a packet.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
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

/* ---- steps ---- */

enum {
	ROUND_STEPS = 20, /* 640 packets: a round takes a fraction of a millisecond */
	ROUNDS_MIN = 4,
	ROUNDS_MAX = 4096,
	LAPS = 1000,
	LAP_TRIES = 100,
};

/* What a round has cost; sort_quickest_tenth() knows its order. */
struct row {
	double total;
	double step[LIMIT_STEP_COUNT];
};

enum { ROW_WIDTH = sizeof(struct row) / sizeof(double) };

const char *limit_step_name(enum limit_step step)
{
#define LIMIT_STEP_NAME(id, name) name,
	static const char *const names[] = {LIMIT_STEPS(LIMIT_STEP_NAME)};
#undef LIMIT_STEP_NAME
	return names[step];
}

/* Cycles of a lap, whole: in a row of laps nothing else happens. */
static double lap_cost(void)
{
	double least = 1e9;

	for (unsigned int i = 0; i < LAP_TRIES; i++) {
		struct limit_clock c = {.runs = true, .last = rte_rdtsc()};
		double cycles;

		for (unsigned int k = 0; k < LAPS; k++)
			limit_lap(&c, LIMIT_REQUEST_ALLOC);
		cycles = (double)c.cycles[LIMIT_REQUEST_ALLOC] / LAPS;
		least = cycles < least ? cycles : least;
	}
	return least;
}

static void measure_round(uint64_t (*step)(void *model), void *model, struct limit_clock *clock,
			  bool timed, double unit, double lap, struct row *row)
{
	uint64_t before = rte_rdtsc(), units = 0;
	double count;

	*row = (struct row){0};
	*clock = (struct limit_clock){.runs = timed, .last = before};
	for (unsigned int i = 0; i < ROUND_STEPS; i++)
		units += step(model);
	row->total = (double)(rte_rdtsc() - before);
	count = (double)units / unit;
	for (unsigned int i = 0; i < LIMIT_STEP_COUNT; i++) {
		row->total -= clock->laps[i] * lap;
		row->step[i] = ((double)clock->cycles[i] - clock->laps[i] * lap) / count;
	}
	row->total /= count;
	clock->runs = false;
}

int limit_measure_steps(unsigned int ms, uint64_t (*step)(void *model), void *model,
			struct limit_clock *clock, double unit, struct limit_steps *out)
{
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * ms;
	struct row *rows[2] = {calloc(ROUNDS_MAX, sizeof(struct row)),
			       calloc(ROUNDS_MAX, sizeof(struct row))}; /* by "timed" */
	double lap = lap_cost();
	struct row mean;
	unsigned int n = 0;
	int ret = -1;

	if (rows[0] && rows[1]) {
		measure_round(step, model, clock, true, unit, lap, &rows[0][0]); /* warms up */
		for (; n < ROUNDS_MIN || (n < ROUNDS_MAX && rte_rdtsc() < end); n++)
			for (unsigned int timed = 0; timed < 2; timed++)
				measure_round(step, model, clock, timed, unit, lap,
					      &rows[timed][n]);
		sort_quickest_tenth(&rows[0][0].total, n, ROW_WIDTH, &mean.total);
		out->total = mean.total;
		sort_quickest_tenth(&rows[1][0].total, n, ROW_WIDTH, &mean.total);
		memcpy(out->step, mean.step, sizeof(out->step));
		ret = 0;
	}
	free(rows[0]);
	free(rows[1]);
	return ret;
}
