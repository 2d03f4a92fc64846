/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of transitions that state machines made: debug builds only, see machine.h. */
#include <errno.h>
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

/* NULL if there is no such state. */
static struct machine_step *step_of(const struct machine *m, unsigned from, unsigned to)
{
	if (from >= m->state_count || to >= m->state_count)
		return NULL;
	return &m->steps[from * m->state_count + to];
}

static void write_machine(FILE *out, const struct machine *m)
{
	for (unsigned i = 0; i < m->edge_count; i++) {
		const struct machine_edge *x = &m->edges[i];
		const struct machine_step *s = step_of(m, x->from, x->to);

		fprintf(out, "%s\t%s\t%s\t%s\t%s\t%lu\t%s\n", m->name, m->states[x->from],
			m->states[x->to], x->condition, x->why, (unsigned long)s->taken,
			s->taker ? s->taker : "");
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
	for (unsigned i = 0; i < m->edge_count; i++)
		step_of(m, m->edges[i].from, m->edges[i].to)->defined = true;
	m->next = machines;
	machines = m;
}

uint64_t machine_taken(const char *name, unsigned from, unsigned to)
{
	for (const struct machine *m = machines; m; m = m->next)
		if (!strcmp(m->name, name) && step_of(m, from, to))
			return step_of(m, from, to)->taken;
	return 0;
}

void machine_step(struct machine *m, unsigned from, unsigned to)
{
	struct machine_step *s = step_of(m, from, to);

	if (s && s->defined) {
		if (__atomic_fetch_add(&s->taken, 1, __ATOMIC_RELAXED) == 0)
			s->taker = test ? test : program_invocation_short_name;
		return;
	}
	fprintf(stderr, "%s: %s to %s is not in its table\n", m->name,
		from < m->state_count ? m->states[from] : "?",
		to < m->state_count ? m->states[to] : "?");
	abort();
}
