/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MADE_UP_NODES_H
#define MADE_UP_NODES_H
/*
 * A machine with four nodes of two CPUs each, whatever this one has: CPU c is on node c / 2; nodes
 * 0 and 1, and 2 and 3, are near each other. Takes the place of libnuma by made_up_nodes(true).
 * What is asked of it is written down.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/nodes.h"

enum { MADE_UP_NODES = 4, MADE_UP_CPUS = 8, MADE_UP_CALLS_MAX = 64 };

static struct {
	bool policy;   /* the process runs under numactl */
	int preferred; /* now */
	struct made_up_bind {
		void *at;
		size_t bytes;
		int node;
		bool move;
	} bind[MADE_UP_CALLS_MAX];
	unsigned int binds; /* may be more than are written down */
} made_up;

static int made_up_available(void)
{
	return 0;
}

static int made_up_max_node(void)
{
	return MADE_UP_NODES - 1;
}

static int made_up_node_of_cpu(int cpu)
{
	return cpu < MADE_UP_CPUS ? cpu / 2 : -1;
}

static int made_up_distance(int a, int b)
{
	if (a == b)
		return 10;
	return a / 2 == b / 2 ? 21 : 42;
}

static void made_up_set_preferred(int node)
{
	made_up.preferred = node;
}

static bool made_up_has_policy(void)
{
	return made_up.policy;
}

static bool made_up_may_run(int cpu)
{
	return cpu < MADE_UP_CPUS;
}

static long made_up_bind(void *at, size_t bytes, int node, bool move)
{
	if (made_up.binds < MADE_UP_CALLS_MAX)
		made_up.bind[made_up.binds] = (struct made_up_bind){at, bytes, node, move};
	made_up.binds++;
	return -1; /* misplaced memory still works */
}

static void made_up_nodes(bool on)
{
	static const struct nodes_calls calls = {
		.available = made_up_available,
		.max_node = made_up_max_node,
		.node_of_cpu = made_up_node_of_cpu,
		.distance = made_up_distance,
		.set_preferred = made_up_set_preferred,
		.has_policy = made_up_has_policy,
		.may_run = made_up_may_run,
		.bind = made_up_bind,
	};

	made_up.binds = 0;
	made_up.preferred = NODE_ANY;
	nodes_use(on ? &calls : NULL);
}

#endif
