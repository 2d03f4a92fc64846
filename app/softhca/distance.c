/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The distance between CPUs: from the kernel's view of the caches and, on request, by bouncing a
 * cache line. Passing packets between CPUs without a common L3 cache costs several times as much.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/monotonic.h"
#include "view.h"

enum {
	ROUND_TRIPS = 20000, /* in batches, the fastest of which counts: the CPUs may be shared */
	BATCH = 200,
	FAR_NS = 250,
	GIVE_UP_NS = 1000000000,
};

static bool distance_read_line(const char *path, char *text, int bytes)
{
	FILE *file = fopen(path, "re");
	bool got = file && fgets(text, bytes, file);

	if (file)
		fclose(file);
	return got;
}

/* Do the two CPUs' lists of L3 sharers differ? Unknown counts as no. */
static bool caches_differ(unsigned a, unsigned b)
{
	static const char format[] = "/sys/devices/system/cpu/cpu%u/cache/index3/shared_cpu_list";
	char path[128], list_a[256], list_b[256];

	snprintf(path, sizeof(path), format, a);
	if (!distance_read_line(path, list_a, sizeof(list_a)))
		return false;
	snprintf(path, sizeof(path), format, b);
	return distance_read_line(path, list_b, sizeof(list_b)) && strcmp(list_a, list_b) != 0;
}

struct ping {
	uint32_t flag __attribute__((aligned(64))); /* atomic: number of the last bounce */
	uint32_t over __attribute__((aligned(64))); /* atomic: one side gave up */
	unsigned cpu[2];
	uint64_t took_ns; /* of one round trip; 0: not measured */
};

struct player {
	struct ping *ping;
	unsigned side;
};

/* Waits until the other side has written `number`. False: one side gave up. */
static bool await(struct ping *ping, uint32_t number)
{
	uint64_t start = monotonic_ns();

	for (uint32_t spins = 1; __atomic_load_n(&ping->flag, __ATOMIC_ACQUIRE) != number;
	     spins++) {
		if (__atomic_load_n(&ping->over, __ATOMIC_RELAXED))
			return false;
		if (spins % 65536 == 0 && monotonic_ns() - start > GIVE_UP_NS)
			__atomic_store_n(&ping->over, 1, __ATOMIC_RELAXED);
	}
	return true;
}

/* Each side waits for its parity and bounces the line back. */
static void *play(void *argument)
{
	const struct player *p = argument;
	struct ping *ping = p->ping;
	uint64_t start = 0, took_ns;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(ping->cpu[p->side], &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		__atomic_store_n(&ping->over, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < ROUND_TRIPS && await(ping, 2 * i + p->side); i++) {
		if (p->side == 0 && i % BATCH == 0) {
			took_ns = (monotonic_ns() - start) / BATCH;
			if (i > BATCH && (!ping->took_ns || took_ns < ping->took_ns))
				ping->took_ns = took_ns;
			start = monotonic_ns();
		}
		__atomic_store_n(&ping->flag, 2 * i + p->side + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* One round trip of a cache line, ns; 0: measurement failed. */
static uint64_t measure(unsigned a, unsigned b)
{
	struct ping ping = {.cpu = {a, b}};
	struct player players[2] = {{&ping, 0}, {&ping, 1}};
	pthread_t other;

	if (pthread_create(&other, NULL, play, &players[1]))
		return 0;
	play(&players[0]);
	pthread_join(other, NULL);
	return ping.took_ns;
}

static void report(unsigned a, unsigned b, bool probe)
{
	uint64_t ns = probe ? measure(a, b) : 0;

	if (ns)
		printf("  CPU %u <-> CPU %u: %llu ns for a cache line's round trip\n", a, b,
		       (unsigned long long)ns);
	if (ns > FAR_NS)
		printf("  warning: CPU %u and CPU %u are far apart: stages that touch the same "
		       "packet belong on one of them\n",
		       a, b);
	else if (caches_differ(a, b))
		printf("  warning: CPU %u and CPU %u share no L3 cache: stages that touch the same "
		       "packet belong on one of them\n",
		       a, b);
}

void warn_distance(const unsigned *cpus, unsigned count, bool probe)
{
	cpu_set_t before;

	sched_getaffinity(0, sizeof(before), &before);
	for (unsigned i = 0; i + 1 < count; i++) /* neighbours in the pipeline */
		report(cpus[i], cpus[i + 1], probe);
	sched_setaffinity(0, sizeof(before), &before);
}
