/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: softhca-stage [timer] [MILLISECONDS OF A WORKLOAD]
 *        softhca-stage budget [MILLISECONDS OF A WORKLOAD]
 *        softhca-stage spread [MILLISECONDS OF A WORKLOAD]
 *        softhca-stage count WORKLOAD MESSAGES ROUNDS [always|never|both [auto]]
 * timer: see timer.c; budget: see budget.c; spread: see spread.c; count: see counted.c; WORKLOAD: 0
 * for the first one. Otherwise cycles per element of each pipeline stage: two HCAs in this process,
 * one lcore, every call of hca_poll_stage() between two readings of the TSC. Without hugepages,
 * devices, daemon.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include "budget.h"
#include "counted.h"
#include "rig.h"
#include "spread.h"
#include "timer.h"

enum { WINDOW = 256, WARM_UP_SHARE = 5, STUCK_ROUNDS = 1000000 };

static const struct workload workloads[] = {
	{"64-byte writes, a doorbell each", USER_RDMA_WRITE, 64, WINDOW, 1},
	{"64-byte writes, lists of 16", USER_RDMA_WRITE, 64, WINDOW, 16},
	{"64-KiB writes, 4-KiB packets", USER_RDMA_WRITE, 65536, 32, 1},
	{"64-byte sends, lists of 16", USER_SEND, 64, WINDOW, 16},
	{"64-KiB sends, 4-KiB packets", USER_SEND, 65536, 32, 1},
	{"64-byte reads, lists of 16", USER_RDMA_READ, 64, WINDOW, 16},
	{"64-KiB reads, 4-KiB packets", USER_RDMA_READ, 65536, 32, 1},
	{"atomics, lists of 16", USER_ATOMIC_FA, 8, WINDOW, 16},
	{"8-byte writes, one at a time", USER_RDMA_WRITE, 8, 1, 1},
};
enum { WORKLOADS = sizeof(workloads) / sizeof(*workloads) };

/* Those whose budget is printed. */
static const unsigned budgeted[] = {1, 3, 5, 7, 2};

struct cost {
	uint64_t cycles, elements;	    /* of polls that found work */
	uint64_t empty_cycles, empty_polls; /* of those that did not */
};

struct tally {
	struct cost cost[2][STAGE_COUNT];
	uint64_t messages;
};

enum { SPREAD_TURNS = 5 };

static uint64_t tsc_overhead;

static void measure_overhead(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < 10000; i++) {
		uint64_t t = rte_rdtsc(), u = rte_rdtsc();

		if (u - t < least)
			least = u - t;
	}
	tsc_overhead = least;
}

static void poll_stage(struct engine *e, enum stage_id stage, struct cost *c)
{
	uint64_t before = rte_rdtsc();
	unsigned n = hca_poll_stage(e, stage);
	uint64_t cycles = rte_rdtsc() - before;

	cycles = cycles > tsc_overhead ? cycles - tsc_overhead : 0;
	if (n) {
		c->cycles += cycles;
		c->elements += n;
	} else {
		c->empty_cycles += cycles;
		c->empty_polls++;
	}
}

/* Every stage of both HCAs once. */
static void poll_all(struct rig *r, struct tally *t)
{
	double ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();

	for (unsigned i = 0; i < 2; i++) {
		struct engine *e = &r->side[i].hca->engines[0];

		e->now_ns = (uint64_t)((double)rte_rdtsc() * ns_per_cycle);
		for (unsigned s = 0; s < STAGE_COUNT; s++)
			poll_stage(e, s, &t->cost[i][s]);
	}
}

/* Runs for `cycles`, and then until nothing is outstanding. 0 or -1. */
static int run(struct rig *r, const struct workload *w, uint64_t cycles, struct tally *t)
{
	uint64_t end = rte_rdtsc() + cycles, idle = 0;
	unsigned outstanding = 0;

	*t = (struct tally){0};
	for (;;) {
		bool more = rte_rdtsc() < end;
		int done, received;

		if (!more && outstanding == 0)
			return 0;
		while (more && outstanding + workload_post(w) <= w->window) {
			rig_post(r, 0, w->opcode, w->bytes, workload_post(w), w->list);
			outstanding += workload_post(w);
		}
		poll_all(r, t);
		done = rig_poll(r, 0, 0);
		received = rig_poll(r, 0, 1);
		if (done < 0 || received < 0)
			return -1;
		outstanding -= (unsigned)done;
		t->messages += (unsigned)done;
		idle = done || received ? 0 : idle + 1;
		if (idle > STUCK_ROUNDS) {
			fprintf(stderr, "softhca-stage: stuck with %u outstanding\n", outstanding);
			return -1;
		}
	}
}

static void print_tally(const struct workload *w, const struct tally *t)
{
	static const char *const sides[] = {"requester", "responder"};
	double sum = 0, messages = (double)t->messages;

	printf("\n%s\n", w->name);
	printf("  side       stage           cycles/element  elements/message  cycles/message  "
	       "cycles/empty poll\n");
	for (unsigned i = 0; i < 2; i++)
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			const struct cost *c = &t->cost[i][s];

			if (c->elements)
				printf("  %-10s %-16s %13.1f %17.2f %15.1f %18.1f\n", sides[i],
				       stage_infos[s].name, (double)c->cycles / (double)c->elements,
				       (double)c->elements / messages, (double)c->cycles / messages,
				       c->empty_polls
					       ? (double)c->empty_cycles / (double)c->empty_polls
					       : 0);
			sum += (double)c->cycles;
		}
	printf("  both sides                                                 %15.1f  = %.2f "
	       "Mmsg/s, %.1f Gbit/s on one core\n",
	       sum / messages, (double)rte_get_tsc_hz() / (sum / messages) * 1e-6,
	       (double)rte_get_tsc_hz() / (sum / messages) * w->bytes * 8e-9);
}

static int init_eal(char *program)
{
	char lcores[16]; /* one, where we are: CPU 0 may not be ours */
	char *args[] = {program,	   "--no-huge", "-m",	"256",	       "--no-pci",
			"--no-telemetry",  "--lcores",	lcores, "--no-shconf", "--log-level",
			"lib.eal:warning", NULL};

	snprintf(lcores, sizeof(lcores), "0@%d", sched_getcpu());
	return rte_eal_init(sizeof(args) / sizeof(*args) - 1, args);
}

static int stages_main(unsigned ms)
{
	struct rig rig;
	struct tally tally;
	uint64_t cycles;

	if (rig_create(&rig, &(struct rig_options){0}))
		return 1;
	measure_overhead();
	cycles = rte_get_tsc_hz() / 1000 * ms;
	for (unsigned i = 0; i < WORKLOADS; i++) {
		if (run(&rig, &workloads[i], cycles / WARM_UP_SHARE, &tally) ||
		    run(&rig, &workloads[i], cycles, &tally))
			return 1;
		print_tally(&workloads[i], &tally);
	}
	return 0;
}

static int budget_main(unsigned ms)
{
	struct rig rig;

	if (rig_create(&rig, &(struct rig_options){0}))
		return 1;
	for (unsigned i = 0; i < RTE_DIM(budgeted); i++)
		if (budget_print(&rig, &workloads[budgeted[i]], ms))
			return 1;
	return 0;
}

static int usage(const char *program)
{
	fprintf(stderr,
		"usage: %s [timer] [MILLISECONDS OF A WORKLOAD]\n"
		"       %s budget [MILLISECONDS OF A WORKLOAD]\n"
		"       %s spread [MILLISECONDS OF A WORKLOAD [TURNS]]\n"
		"       %s count WORKLOAD MESSAGES ROUNDS [always|never|both [auto]]\n",
		program, program, program, program);
	return 2;
}

/* count WORKLOAD MESSAGES ROUNDS [ICRC [CC]]; -1: that is not what it says. */
static int count_arguments(int argc, char **argv, unsigned *v)
{
	if (argc < 5 || argc > 7)
		return -1;
	for (unsigned i = 0; i < 3; i++)
		v[i] = (unsigned)atoi(argv[2 + i]);
	v[3] = COUNTED_ALWAYS;
	if (argc > 5 && strcmp(argv[5], "always"))
		v[3] = strcmp(argv[5], "both") == 0 ? COUNTED_BOTH : COUNTED_NEVER;
	v[4] = argc > 6 ? CC_AUTO : CC_NONE;
	return v[0] < WORKLOADS && v[1] && v[1] % WORKLOAD_POST == 0 && v[2] ? 0 : -1;
}

int main(int argc, char **argv)
{
	bool timer = argc > 1 && !strcmp(argv[1], "timer");
	bool spread = argc > 1 && !strcmp(argv[1], "spread");
	bool budget = argc > 1 && !strcmp(argv[1], "budget");
	bool counted = argc > 1 && !strcmp(argv[1], "count");
	bool named = timer || budget || spread;
	unsigned ms = argc > 1 + named ? (unsigned)atoi(argv[1 + named]) : 300;
	unsigned v[5];
	int result;

	if (counted ? count_arguments(argc, argv, v) : ms == 0)
		return usage(argv[0]);
	if (spread)
		return spread_main(&workloads[1], &workloads[2], ms,
				   argc > 3 ? (unsigned)atoi(argv[3]) : SPREAD_TURNS);
	if (init_eal(argv[0]) < 0) {
		fprintf(stderr, "%s: EAL: %s\n", argv[0], rte_strerror(rte_errno));
		return 1;
	}
	if (counted)
		result = counted_main(&workloads[v[0]], v[1], v[2], v[3], v[4]);
	else
		result = timer ? timer_main(ms) : budget ? budget_main(ms) : stages_main(ms);
	rte_eal_cleanup();
	return result;
}
