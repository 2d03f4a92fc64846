/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POOLS_H
#define POOLS_H
/* The buffers of the daemon, on each node that has engines. Control thread. */
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

/* Makes the buffers, near the engines as placement_cpus() has placed them. 0; -ENOMEM, logged:
 * pools_free() is due all the same. */
int pools_make(struct pools *p, const struct config *c);

/* The set of that node; the first one where it has none of its own. */
const struct node_pools *pools_near(const struct pools *p, int node);

void pools_free(struct pools *p);

#endif
