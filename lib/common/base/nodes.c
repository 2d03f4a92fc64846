/* SPDX-License-Identifier: BSD-3-Clause */
/* NUMA nodes, by libnuma or by whatever a test puts in its place. Control thread. */
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include "base/nodes.h"

#define MASK_WORDS (NUMA_NUM_NODES / (sizeof(long) * CHAR_BIT))

enum { NEAR = 10 }; /* the distance of a node from itself, by ACPI */

static bool has_policy(void)
{
	int mode = MPOL_DEFAULT;

	return get_mempolicy(&mode, NULL, 0, NULL, 0) == 0 && mode != MPOL_DEFAULT;
}

static bool may_run(int cpu)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_ISSET(cpu, &set);
}

/* MOVE_ALL needs CAP_SYS_NICE; without it only pages that no one else maps move. */
static long bind_pages(void *at, size_t bytes, int node, bool move)
{
	unsigned long mask[MASK_WORDS] = {0};
	const unsigned long bits = sizeof(long) * CHAR_BIT;

	mask[node / bits] = 1ul << node % bits;
	if (move && mbind(at, bytes, MPOL_PREFERRED, mask, NUMA_NUM_NODES, MPOL_MF_MOVE_ALL) == 0)
		return 0;
	return mbind(at, bytes, MPOL_PREFERRED, mask, NUMA_NUM_NODES, move ? MPOL_MF_MOVE : 0);
}

static const struct nodes_calls machine = {
	.available = numa_available,
	.max_node = numa_max_node,
	.node_of_cpu = numa_node_of_cpu,
	.distance = numa_distance,
	.set_preferred = numa_set_preferred,
	.has_policy = has_policy,
	.may_run = may_run,
	.bind = bind_pages,
};

static const struct nodes_calls *asked = &machine;
static unsigned int count; /* 0: unknown yet */
static bool placing;	   /* memory is ours to place */

void nodes_use(const struct nodes_calls *calls)
{
	asked = calls ? calls : &machine;
	count = 0;
}

unsigned int nodes_count(void)
{
	if (!count) {
		int last = asked->available() < 0 ? 0 : asked->max_node();

		count = last < 0 || last >= NUMA_NUM_NODES ? 1 : last + 1;
		placing = count > 1 && !asked->has_policy();
	}
	return count;
}

static bool nodes_known(int node)
{
	return node >= 0 && node < (int)nodes_count();
}

int node_of_cpu(unsigned int cpu)
{
	int node = nodes_count() > 1 ? asked->node_of_cpu((int)cpu) : 0;

	return nodes_known(node) ? node : 0;
}

unsigned int node_distance(int a, int b)
{
	if (!nodes_known(a) || !nodes_known(b))
		return 0;
	if (nodes_count() == 1)
		return NEAR;
	return (unsigned int)asked->distance(a, b);
}

bool node_cpu_allowed(unsigned int cpu)
{
	return cpu < CPU_SETSIZE && asked->may_run((int)cpu);
}

void node_prefer(int node)
{
	if ((node == NODE_ANY || nodes_known(node)) && placing)
		asked->set_preferred(node);
}

void node_bind(void *at, size_t bytes, int node)
{
	if (nodes_known(node) && placing && bytes)
		(void)asked->bind(at, bytes, node, bytes <= NODE_MOVE_BYTES_MAX);
}
