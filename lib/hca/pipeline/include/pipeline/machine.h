/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_MACHINE_H
#define PIPELINE_MACHINE_H
/*
 * State machines as tables. Each machine has one .def file that is its table of transitions:
 *
 *   STATE(ID, "what it waits for or does; the design's name where it differs")
 *   EDGE(FROM, TO, "condition", "why: a rule, or 'design'")
 *
 * A table is for a machine whose state is stored and looked at: one function a state returns the
 * next, or the state waits in a context for the next call. Steps of straight-line code have none:
 * a check of two constants cannot fail (doc/deviations.md lists those of the design).
 *
 * The table generates the enum of its states and, in debug builds, the assertion that no other
 * transition is made and the record of those that were: `make conformance` lists those that no test
 * took. In release builds MACHINE_STEP() expands to nothing.
 *
 *   enum ee_state {
 *   #define STATE(id, text) EE_##id,
 *   #include "execution_engine.def"
 *   };
 *   #define MACHINE       ee_machine
 *   #define MACHINE_NAME  "ExecutionEngine"
 *   #define MACHINE_ID(s) EE_##s
 *   #define MACHINE_DEF   "execution_engine.def"
 *   #include "pipeline/machine_define.h"
 *
 * and where a step was made: MACHINE_STEP(ee_machine, state, next). A .def file ends with #undef
 * STATE and #undef EDGE, and begins with empty ones, as topology.def does.
 */
#include <stdbool.h>
#include <stdint.h>

struct machine_edge {
	uint8_t from, to;
	const char *condition, *why;
};

struct machine_step {
	uint64_t taken;	   /* how often; relaxed, several lcores may count */
	const char *taker; /* the test that took it first; NULL: none */
	bool defined;	   /* the table has it as an edge */
};

struct machine {
	const char *name;
	const char *const *states; /* names, by number */
	unsigned state_count;
	const struct machine_edge *edges;
	unsigned edge_count;
	struct machine_step *steps; /* from each state to each: [from * state_count + to] */
	struct machine *next;	    /* all machines of the program */
};

#ifdef SOFTHCA_DEBUG
#define MACHINE_STEP(machine, from, to) machine_step(&(machine), (from), (to))
#else
#define MACHINE_STEP(machine, from, to) ((void)sizeof((from) + (to)))
#endif

/* Every machine that is defined registers itself before main(). */
void machine_register(struct machine *m);

/* A transition was made: aborts if the table has no such edge. Any lcore. */
void machine_step(struct machine *m, unsigned from, unsigned to);

/* How often transitions between these states of the machines of that name were made; for tests. */
uint64_t machine_taken(const char *name, unsigned from, unsigned to);

/* Name of the test that runs now, for the record; static storage. */
void machine_set_test(const char *name);

/*
 * The record: at exit, if SOFTHCA_TRANSITIONS names a folder, a file there named after the program
 * has one line for each edge of each machine, fields separated by tabs: machine, from, to,
 * condition, why, times taken, first test.
 */

#endif
