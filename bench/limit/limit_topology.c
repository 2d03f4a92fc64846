/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far two CPUs are from each other at this moment: a number goes to and fro in two cache lines.
 * On a virtual machine the answer changes as the host moves its CPUs; ask before and after whatever
 * is measured on two of them.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>
#include <rte_cycles.h>
#include "limit_measure.h"

enum {
	TRIPS = 64,   /* round trips of one sample */
	SAMPLES = 41, /* the median of these is returned */
	WARM_UP = 8,  /* samples not counted */
};

#define SIBLINGS_BELOW_NS 75.0
#define NEAR_BELOW_NS	  220.0
#define GIVE_UP_S	  2.0

struct lines {
	uint64_t ball __attribute__((aligned(128)));
	uint64_t answer __attribute__((aligned(128)));
	int cpu __attribute__((aligned(128)));
	int bound; /* result of binding the echoing thread, 1 while it is not known */
};

static const uint64_t last_ball = UINT64_MAX;

static void *echo(void *arg)
{
	struct lines *l = arg;
	uint64_t seen = 0, ball;

	__atomic_store_n(&l->bound, limit_bind(l->cpu), __ATOMIC_RELEASE);
	do {
		ball = __atomic_load_n(&l->ball, __ATOMIC_ACQUIRE);
		if (ball != seen)
			__atomic_store_n(&l->answer, ball, __ATOMIC_RELEASE);
		seen = ball;
	} while (ball != last_ball);
	return NULL;
}

/* One sample: ns per round trip. ball: the number of the last one, kept by the caller. */
static double sample(struct lines *l, uint64_t *ball)
{
	uint64_t start = rte_rdtsc();

	for (unsigned int i = 0; i < TRIPS; i++) {
		__atomic_store_n(&l->ball, ++*ball, __ATOMIC_RELEASE);
		while (__atomic_load_n(&l->answer, __ATOMIC_ACQUIRE) != *ball)
			;
	}
	return (double)(rte_rdtsc() - start) * 1e9 / (double)rte_get_tsc_hz() / TRIPS;
}

/* The echoing thread runs. Stops early, with what there is, on a machine that is too busy. */
static double probe(struct lines *l)
{
	double samples[SAMPLES];
	uint64_t ball = 0,
		 deadline = rte_rdtsc() + (uint64_t)(GIVE_UP_S * (double)rte_get_tsc_hz());
	unsigned int n = 0;

	for (unsigned int i = 0; i < WARM_UP; i++)
		sample(l, &ball);
	do
		samples[n++] = sample(l, &ball);
	while (n < SAMPLES && rte_rdtsc() < deadline);
	return limit_median(samples, n);
}

static double with_echo(int cpu)
{
	struct lines l = {.cpu = cpu, .bound = 1};
	double result = 0;
	pthread_t thread;
	int bound;

	if (pthread_create(&thread, NULL, echo, &l))
		return 0;
	while ((bound = __atomic_load_n(&l.bound, __ATOMIC_ACQUIRE)) == 1)
		sched_yield();
	if (bound == 0)
		result = probe(&l);
	__atomic_store_n(&l.ball, last_ball, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return result;
}

double limit_topology_between(int cpu_a, int cpu_b)
{
	double result = 0;
	cpu_set_t before;

	pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
	if (cpu_a != cpu_b && limit_bind(cpu_a) == 0)
		result = with_echo(cpu_b);
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return result;
}

double limit_topology(void)
{
	int here = sched_getcpu();
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	for (int cpu = 0; cpu < cpus; cpu++) {
		double result = limit_topology_between(here, cpu);

		if (result > 0)
			return result;
	}
	return 0;
}

const char *limit_topology_name(double round_trip_ns)
{
	if (round_trip_ns < SIBLINGS_BELOW_NS)
		return "siblings";
	return round_trip_ns < NEAR_BELOW_NS ? "near" : "far";
}
