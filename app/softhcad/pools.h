/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOLS_H
#define POOLS_H
/* The buffers of the daemon, on each node with engines. Control thread. */
#include <stdbool.h>
#include "config/config.h"

/* Buffers of the engines on one node. */
struct node_pools {
	int node;
	unsigned engines;				    /* for which it was made */
	bool first;					    /* its pools have plain names */
	bool extra;					    /* made for engines that came later */
	struct rte_mempool *packets, *descriptors, *clones; /* all NULL: there is no such set */
	struct config_buffers room;			    /* that no engine has taken */
};

enum { POOL_SETS_MAX = LCORES_MAX + HCA_MAX * ENGINES_MAX };

struct pools {
	struct node_pools set[POOL_SETS_MAX];
	unsigned count; /* places in use; there may be gaps */
};

/* Creates the buffers, near the engines as placed by placement_cpus(). 0; -ENOMEM, logged, after
 * which pools_free() must still be called. */
int pools_make(struct pools *p, const struct config *c);

/* Reserves an engine's part of a set: one of that node with enough room, else a new one. NULL: no
 * memory, which is logged. */
struct node_pools *pools_take(struct pools *p, int node, const struct config_buffers *part);

/* Gives an engine's part back. Frees a set that was made for it, if no engine uses the set any more
 * and all its buffers have come back. */
void pools_give(struct pools *p, struct node_pools *set, const struct config_buffers *part);

void pools_free(struct pools *p);

#endif
