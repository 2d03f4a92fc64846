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
enum { MACHINE_PART(MACHINE, _count) = MACHINE_COUNT(MACHINE_PART(MACHINE, _states)) };
static struct machine_step
	MACHINE_PART(MACHINE,
		     _steps)[MACHINE_PART(MACHINE, _count) * MACHINE_PART(MACHINE, _count)];
static struct machine MACHINE = {
	.name = MACHINE_NAME,
	.states = MACHINE_PART(MACHINE, _states),
	.state_count = MACHINE_PART(MACHINE, _count),
	.edges = MACHINE_PART(MACHINE, _edges),
	.edge_count = MACHINE_COUNT(MACHINE_PART(MACHINE, _edges)),
	.steps = MACHINE_PART(MACHINE, _steps),
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
