/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Defines one state machine's tables from its .def file: see machine.h. No include guard: it is
 * included once for each machine. Wants MACHINE, MACHINE_NAME, MACHINE_ID, MACHINE_DEF.
 */
#include "pipeline/machine.h"

#ifdef SOFTHCA_DEBUG
#define MACHINE_GLUE(a, b)  a##b
#define MACHINE_PART(m, p)  MACHINE_GLUE(m, p)
#define MACHINE_COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const MACHINE_PART(MACHINE, _states)[] = {
#define STATE(id, text) #id,
#include MACHINE_DEF
};
static const struct machine_edge MACHINE_PART(MACHINE, _edges)[] = {
#define EDGE(from, to, condition, why) {MACHINE_ID(from), MACHINE_ID(to), condition, why},
#include MACHINE_DEF
};
static uint64_t MACHINE_PART(MACHINE, _taken)[MACHINE_COUNT(MACHINE_PART(MACHINE, _edges))];
static const char *MACHINE_PART(MACHINE, _taker)[MACHINE_COUNT(MACHINE_PART(MACHINE, _edges))];
static struct machine MACHINE = {
	.name = MACHINE_NAME,
	.states = MACHINE_PART(MACHINE, _states),
	.state_count = MACHINE_COUNT(MACHINE_PART(MACHINE, _states)),
	.edges = MACHINE_PART(MACHINE, _edges),
	.edge_count = MACHINE_COUNT(MACHINE_PART(MACHINE, _edges)),
	.taken = MACHINE_PART(MACHINE, _taken),
	.taker = MACHINE_PART(MACHINE, _taker),
};
__attribute__((constructor)) static void MACHINE_PART(MACHINE, _register)(void)
{
	machine_register(&MACHINE);
}
#undef MACHINE_GLUE
#undef MACHINE_PART
#undef MACHINE_COUNT
#endif

#undef MACHINE
#undef MACHINE_NAME
#undef MACHINE_ID
#undef MACHINE_DEF
