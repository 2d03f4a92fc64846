/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_MODULE_RUN_H
#define PIPELINE_MODULE_RUN_H
/*
 * A stage polls its modules through this, so that the cost of each can be measured in a running
 * daemon (`softhca show runtime`). While not measured, that costs a load and a branch.
 */
#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include "pipeline/engine.h"

static __rte_noinline unsigned module_run_timed(struct engine *e, enum module_id id,
						unsigned (*poll)(struct engine *e))
{
	struct module_run *r = &e->run[id];
	uint64_t before = rte_rdtsc(), cycles;
	unsigned n = poll(e);

	cycles = rte_rdtsc() - before;
	__atomic_store_n(&r->polls, r->polls + 1, __ATOMIC_RELAXED);
	if (!n) {
		__atomic_store_n(&r->idle_cycles, r->idle_cycles + cycles, __ATOMIC_RELAXED);
		return 0;
	}
	__atomic_store_n(&r->busy_polls, r->busy_polls + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->elements, r->elements + n, __ATOMIC_RELAXED);
	__atomic_store_n(&r->cycles, r->cycles + cycles, __ATOMIC_RELAXED);
	return n;
}

/* Polls a module once. Returns how many elements it handled. The lcore that runs its stage. */
static __rte_always_inline unsigned module_run(struct engine *e, enum module_id id,
					       unsigned (*poll)(struct engine *e))
{
	if (unlikely(__atomic_load_n(&e->timed, __ATOMIC_RELAXED)))
		return module_run_timed(e, id, poll);
	return poll(e);
}

#endif
