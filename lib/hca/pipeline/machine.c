/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of transitions that state machines made: debug builds only, see machine.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_common.h>
#include "pipeline/machine.h"

static struct machine *machines;
static const char *test;

void machine_set_test(const char *name)
{
	test = name;
}

static void write_machine(FILE *out, const struct machine *m)
{
	for (unsigned i = 0; i < m->edge_count; i++) {
		const struct machine_edge *x = &m->edges[i];

		fprintf(out, "%s\t%s\t%s\t%s\t%s\t%lu\t%s\n", m->name, m->states[x->from],
			m->states[x->to], x->condition, x->why, (unsigned long)m->taken[i],
			m->taker[i] ? m->taker[i] : "");
	}
}

static void write_record(void)
{
	const char *folder = secure_getenv("SOFTHCA_TRANSITIONS");
	char path[4096];
	FILE *out;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%s.transitions", folder, program_invocation_short_name);
	out = fopen(path, "w");
	if (!out) {
		perror(path);
		return;
	}
	for (const struct machine *m = machines; m; m = m->next)
		write_machine(out, m);
	fclose(out);
}

void machine_register(struct machine *m)
{
	if (!machines)
		atexit(write_record);
	m->next = machines;
	machines = m;
}

uint64_t machine_taken(const char *name, unsigned from, unsigned to)
{
	uint64_t most = 0;

	for (const struct machine *m = machines; m; m = m->next)
		for (unsigned i = 0; i < m->edge_count && !strcmp(m->name, name); i++)
			if (m->edges[i].from == from && m->edges[i].to == to)
				most = RTE_MAX(most, m->taken[i]);
	return most;
}

void machine_step(struct machine *m, unsigned from, unsigned to)
{
	bool found = false;

	for (unsigned i = 0; i < m->edge_count; i++) {
		if (m->edges[i].from != from || m->edges[i].to != to)
			continue;
		found = true;
		if (__atomic_fetch_add(&m->taken[i], 1, __ATOMIC_RELAXED) == 0)
			m->taker[i] = test ? test : program_invocation_short_name;
	}
	if (found)
		return;
	fprintf(stderr, "%s: %s to %s is not in its table\n", m->name,
		from < m->state_count ? m->states[from] : "?",
		to < m->state_count ? m->states[to] : "?");
	abort();
}
