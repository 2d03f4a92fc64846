/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_MODULE_RUN_H
#define PIPELINE_MODULE_RUN_H
/*
 * A stage polls its modules through this, so that each can be measured in a running daemon
 * (`softhca show runtime`), stopped and stepped (stepping.h). When that is not in use, it costs a
 * load and a branch.
 */
#include <rte_branch_prediction.h>
#include "pipeline/engine.h"
#include "pipeline/stepping.h"

/* Polls a module once. Returns how many elements it handled. The lcore that runs its stage. */
static __rte_always_inline unsigned module_run(struct engine *e, enum module_id id,
					       unsigned (*poll)(struct engine *e))
{
	if (unlikely(__atomic_load_n(&e->watched, __ATOMIC_RELAXED)))
		return module_run_watched(e, id, poll);
	return poll(e);
}

#endif
