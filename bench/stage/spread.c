/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca-stage spread: what a second lcore brings. Each way to use two of them runs by itself in a
 * process of its own, in turns with the others; the clients are driven by the lcore that runs
 * doorbell_wqe of their engine. Ratios are medians over the turns, each to the single lcore of the
 * same turn. Two engines have a floor, where the two CPUs are near each other.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include "../sort.h"
#include "limit.h"
#include "rig.h"
#include "spread.h"

enum {
	TURNS_MAX = 9,
	TURNS_JUDGED = 3, /* as many as a median needs */
	WARM_UP_SHARE = 4,
	SKIPPED = 77,
};

/* Which lcore polls a stage; with two engines each has its own. */
struct way {
	const char *name;
	unsigned engines;
	bool spread;
	double floor;		       /* least share of one lcore, on near CPUs; 0: none */
	uint8_t lcore[2][STAGE_COUNT]; /* requester's HCA, responder's */
};

#define ALL_ON(lcore)                                                                              \
	{                                                                                          \
		lcore, lcore, lcore, lcore, lcore                                                  \
	}

/* Stages in the order of topology.def. */
static const struct way ways[] = {
	{"one lcore", 1, false, 0, {ALL_ON(0), ALL_ON(0)}},
	{"two engines", 2, true, 1.7, {ALL_ON(0), ALL_ON(0)}},
	{"an HCA on each", 1, true, 0, {ALL_ON(0), ALL_ON(1)}},
	{"descriptors and segmentation | the rest", 1, true, 0, {{0, 0, 1, 1, 1}, {0, 0, 1, 1, 1}}},
	{"requester | headers and responder", 1, true, 0, {{0, 0, 1, 0, 1}, {0, 0, 1, 0, 1}}},
};
enum { WAYS = sizeof(ways) / sizeof(*ways), WORKLOADS = 2 };

/* Shared by the lcores of one run. */
struct run {
	struct rig rig;
	const struct way *way;
	const struct workload *workload;
	uint64_t begin, end; /* TSC: of what counts */
	unsigned failed;
	struct {
		uint64_t messages; /* completed between begin and end */
		unsigned outstanding;
	} __rte_cache_aligned engine[RIG_ENGINES_MAX];
};

static unsigned lcore_of(const struct way *w, unsigned side, unsigned engine, unsigned stage)
{
	return w->engines > 1 ? engine : w->lcore[side][stage];
}

/* The clients of an engine: posts while there is room, takes completions. */
static int drive(struct run *r, unsigned engine, uint64_t now)
{
	const struct workload *w = r->workload;
	int done = rig_poll(&r->rig, engine, 0);

	if (done < 0 || rig_poll(&r->rig, engine, 1) < 0)
		return -1;
	r->engine[engine].outstanding -= (unsigned)done;
	if (now >= r->begin)
		r->engine[engine].messages += (unsigned)done;
	for (; r->engine[engine].outstanding + WORKLOAD_POST <= w->window;
	     r->engine[engine].outstanding += WORKLOAD_POST)
		rig_post(&r->rig, engine, w->opcode, w->bytes, WORKLOAD_POST, w->list);
	return 0;
}

/* As lcore_loop_run() does. */
static void poll_mine(struct run *r, unsigned lcore, unsigned engine, uint64_t now_ns)
{
	for (unsigned i = 0; i < 2; i++) {
		struct engine *e = &r->rig.side[i].hca->engines[engine];
		struct counters *mine = NULL;

		if (lcore_of(r->way, i, engine, STAGE_REQUESTER_RECV) == lcore)
			__atomic_store_n(&e->now_ns, now_ns, __ATOMIC_RELAXED);
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			if (lcore_of(r->way, i, engine, s) != lcore)
				continue;
			hca_poll_stage(e, s);
			mine = stage_counters(e, s);
		}
		if (mine)
			completion_round(e->completion, mine);
	}
}

static int poll_until_end(void *arg)
{
	struct run *r = arg;
	unsigned lcore = rte_lcore_id();
	double ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();

	for (uint64_t now; (now = rte_rdtsc()) < r->end;)
		for (unsigned k = 0; k < r->way->engines; k++) {
			if (lcore_of(r->way, 0, k, STAGE_DOORBELL_WQE) == lcore &&
			    drive(r, k, now)) {
				__atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
				return -1;
			}
			poll_mine(r, lcore, k, (uint64_t)((double)now * ns_per_cycle));
		}
	return 0;
}

static int start_eal(void)
{
	char lcores[64];
	char *args[] = {"softhca-stage",   "--no-huge", "-m",	"256",	       "--no-pci",
			"--no-telemetry",  "--lcores",	lcores, "--no-shconf", "--log-level",
			"lib.eal:warning", NULL};
	int cpu[2], n = 0;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n < 2)
		return -1;
	snprintf(lcores, sizeof(lcores), "0@%d,1@%d", cpu[0], cpu[1]);
	return rte_eal_init(sizeof(args) / sizeof(*args) - 1, args) < 0 ? -1 : 0;
}

struct result {
	double rate; /* messages per second of all engines; 0: none was completed in time */
	double round_trip_ns; /* of a cache line between the two CPUs */
	bool good;
};

/* In a process of its own. */
static struct result measure(const struct way *way, const struct workload *w, unsigned ms)
{
	struct rig_options o = {.engines = way->engines, .spread = way->spread};
	struct result result = {0};
	uint64_t cycles, messages = 0;
	static struct run r;

	if (start_eal() || rig_create(&r.rig, &o))
		return result;
	r.way = way;
	r.workload = w;
	result.round_trip_ns = limit_topology();
	cycles = rte_get_tsc_hz() / 1000 * ms;
	r.begin = rte_rdtsc() + cycles / WARM_UP_SHARE;
	r.end = r.begin + cycles;
	rte_eal_remote_launch(poll_until_end, &r, 1);
	poll_until_end(&r);
	rte_eal_mp_wait_lcore();
	for (unsigned k = 0; k < way->engines; k++)
		messages += r.engine[k].messages;
	result.rate = (double)messages * 1000 / ms;
	result.good = !r.failed;
	return result;
}

/* *result is shared with the child. 0, or -1: it failed. */
static int in_child(struct result *result, const struct way *way, const struct workload *w,
		    unsigned ms)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		*result = measure(way, w, ms);
		_exit(!result->good);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status ? -1 : 0;
}

static double median(double *values, unsigned n)
{
	sort_doubles(values, n);
	return values[n / 2];
}

/* Of one way: medians over the turns. */
struct summary {
	double rate[WORKLOADS], share[WORKLOADS], round_trip_ns;
};

static struct summary summarise(struct result (*results)[WAYS][WORKLOADS], unsigned way,
				unsigned turns)
{
	double rates[TURNS_MAX], shares[TURNS_MAX], trips[TURNS_MAX];
	struct summary s;

	for (unsigned k = 0; k < WORKLOADS; k++) {
		for (unsigned t = 0; t < turns; t++) {
			rates[t] = results[t][way][k].rate;
			shares[t] = rates[t] / RTE_MAX(results[t][0][k].rate, 1);
		}
		s.rate[k] = median(rates, turns);
		s.share[k] = median(shares, turns);
	}
	for (unsigned t = 0; t < turns; t++)
		trips[t] = results[t][way][0].round_trip_ns;
	s.round_trip_ns = median(trips, turns);
	return s;
}

/* Says how a way with a floor stands to it. Whether that is good enough. */
static bool judge(const struct way *way, const struct summary *s, unsigned turns)
{
	const char *where = limit_topology_name(s->round_trip_ns);
	bool good = s->share[0] >= way->floor && s->share[1] >= way->floor;
	bool near = !strcmp(where, "near");

	printf("%s, %s: %.2f and %.2f of one lcore, floor on near CPUs %.2f: ", way->name, where,
	       s->share[0], s->share[1], way->floor);
	if (!near || turns < TURNS_JUDGED) {
		printf("not judged (%s)\n", near ? "too few turns" : "CPUs not near");
		return true;
	}
	printf("%s\n", good ? "ok" : "BELOW");
	return good;
}

/* The table, then what there is to say of floors. Whether all are kept. */
static bool print_results(struct result (*results)[WAYS][WORKLOADS], unsigned turns)
{
	struct summary summaries[WAYS];
	bool good = true;

	for (unsigned i = 0; i < WAYS; i++) {
		const struct summary *s = &summaries[i];

		summaries[i] = summarise(results, i, turns);
		printf("%-40s", ways[i].name);
		for (unsigned k = 0; k < WORKLOADS; k++)
			printf("  %8.3f  %4.2f", s->rate[k] * 1e-6, s->share[k]);
		printf("  %s\n", limit_topology_name(s->round_trip_ns));
	}
	for (unsigned i = 0; i < WAYS; i++)
		if (ways[i].floor > 0)
			good = judge(&ways[i], &summaries[i], turns) && good;
	return good;
}

int spread_main(const struct workload *small, const struct workload *large, unsigned ms,
		unsigned turns)
{
	const struct workload *workloads[WORKLOADS] = {small, large};
	struct result(*results)[WAYS][WORKLOADS] =
		mmap(NULL, TURNS_MAX * sizeof(*results), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t set;

	turns = turns < 1 ? 1 : turns > TURNS_MAX ? TURNS_MAX : turns;
	if (results == MAP_FAILED || sched_getaffinity(0, sizeof(set), &set))
		return 1;
	if (CPU_COUNT(&set) < 2) {
		printf("one CPU: nothing to spread over\n");
		return SKIPPED;
	}
	for (unsigned t = 0; t < turns; t++)
		for (unsigned k = 0; k < WORKLOADS; k++)
			for (unsigned i = 0; i < WAYS; i++)
				if (in_child(&results[t][i][k], &ways[i], workloads[k], ms)) {
					fprintf(stderr, "softhca-stage: %s: no result\n",
						ways[i].name);
					return 1;
				}
	printf("Mmsg/s; share of one lcore: %s; %s; where the CPUs are\n", small->name,
	       large->name);
	return print_results(results, turns) ? 0 : 1;
}
