/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOLS_H
#define POOLS_H
/* The buffers of the daemon, on each node with engines. Control thread. */
#include <stdbool.h>
#include "config/config.h"

/* Buffers of the engines on one node. */
struct node_pools {
	int node;
	unsigned engines;
	bool first; /* its pools have plain names */
	struct rte_mempool *packets, *descriptors, *clones;
};

struct pools {
	struct node_pools set[LCORES_MAX];
	unsigned count;
};

/* Creates the buffers, near the engines as placed by placement_cpus(). 0; -ENOMEM, logged, after
 * which pools_free() must still be called. */
int pools_make(struct pools *p, const struct config *c);

/* The set of that node; the first one if it has none. */
const struct node_pools *pools_near(const struct pools *p, int node);

void pools_free(struct pools *p);

#endif
