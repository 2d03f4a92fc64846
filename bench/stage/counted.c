/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca-stage count: a workload as identical rounds: a number of messages is posted and polled
 * for, on a virtual clock, without reading the TSC in between. Two builds differ only in the
 * instructions they execute. Under `valgrind --tool=callgrind --toggle-collect=counted_round` it
 * shows where these are spent, to the instruction.
 */
#include <stdio.h>
#include <stdlib.h>
#include <rte_cycles.h>
#include "../sort.h"
#include "counted.h"

enum { WARM_UP_ROUNDS = 4, ROUND_NS = 1000, POLLS_MAX = 10000000 };

static uint64_t now_ns = 1000000;

static uint64_t clock_of(const struct counted_client *c)
{
	return c ? rte_rdtsc() : 0;
}

__attribute__((noinline)) int counted_round(struct rig *r, const struct workload *w,
					    unsigned messages, struct counted_client *client)
{
	unsigned posted = 0, done = 0, polls = 0;

	while (done < messages) {
		uint64_t before = clock_of(client);
		int got, received;

		while (posted < messages && posted - done + workload_post(w) <= w->window) {
			rig_post(r, 0, w->opcode, w->bytes, workload_post(w), w->list);
			posted += workload_post(w);
		}
		if (client)
			client->post_cycles += rte_rdtsc() - before;
		now_ns += ROUND_NS;
		for (unsigned i = 0; i < 2; i++)
			r->side[i].hca->engines[0].now_ns = now_ns;
		for (unsigned i = 0; i < 2; i++)
			for (unsigned s = 0; s < STAGE_COUNT; s++)
				hca_poll_stage(&r->side[i].hca->engines[0], s);
		before = clock_of(client);
		got = rig_poll(r, 0, 0);
		received = rig_poll(r, 0, 1);
		if (client) {
			client->poll_cycles += rte_rdtsc() - before;
			client->readings += 2;
		}
		if (got < 0 || received < 0 || ++polls > POLLS_MAX)
			return -1;
		done += (unsigned)got;
	}
	return 0;
}

/* A round in which frames have an ICRC, or have none. *cycles: of a message. 0 or -1. */
static int timed_round(struct rig *r, const struct workload *w, unsigned messages, bool icrc,
		       double *cycles)
{
	uint64_t before;
	int err;

	for (unsigned i = 0; i < 2; i++) {
		r->side[i].hca->engines[0].settings.icrc = icrc ? ICRC_ALWAYS : ICRC_NEVER;
		r->side[i].hca->engines[0].settings.payload_refs = true; /* as between ring ports */
	}
	before = rte_rdtsc();
	err = counted_round(r, w, messages, NULL);
	*cycles = (double)(rte_rdtsc() - before) / messages;
	return err;
}

static void print_cycles(const char *name, bool icrc, double *cycles, unsigned rounds)
{
	sort_doubles(cycles, rounds);
	printf("%s%s: cycles/message: %.1f least, %.1f of the quickest tenth, %.1f median\n", name,
	       icrc ? "" : ", no ICRC", cycles[0], cycles[rounds / 10], cycles[rounds / 2]);
}

int counted_main(const struct workload *w, unsigned messages, unsigned rounds,
		 enum counted_icrc icrc, enum congestion_control cc)
{
	double *cycles[2] = {calloc(rounds, sizeof(double)), calloc(rounds, sizeof(double))};
	bool runs[2] = {icrc != COUNTED_ALWAYS, icrc != COUNTED_NEVER}; /* by "has an ICRC" */
	struct rig rig;
	int err = cycles[0] && cycles[1] ? rig_create(&rig, &(struct rig_options){.cc = cc}) : -1;

	for (unsigned i = 0; i < (WARM_UP_ROUNDS + rounds) && !err; i++)
		for (unsigned k = 0; k < 2 && !err; k++)
			if (runs[k])
				err = timed_round(
					&rig, w, messages, k,
					&cycles[k][i < WARM_UP_ROUNDS ? 0 : i - WARM_UP_ROUNDS]);
	for (unsigned k = 0; k < 2 && !err; k++)
		if (runs[k])
			print_cycles(w->name, k, cycles[k], rounds);
	free(cycles[0]);
	free(cycles[1]);
	return err ? 1 : 0;
}
