/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_NODES_H
#define BASE_NODES_H
/*
 * The NUMA nodes of this machine: which CPU and which memory lie near each other. DPDK knows the
 * node of a hugepage and of a PCI device; the rest is asked of libnuma, through a table of calls
 * that a test can replace by a machine of its own.
 *
 * On a machine with one node, or of which the kernel tells nothing, every CPU is on node 0 and
 * memory lies where the kernel puts it. So it does for a process that runs under a memory policy
 * already (numactl): whoever set that knows better.
 *
 * Control thread; once the first question is answered any thread may ask for counts, nodes and
 * distances. Nothing here fails: memory in the wrong place is slower, not wrong.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No node in particular, or unknown. The same number as DPDK's SOCKET_ID_ANY. */
#define NODE_ANY (-1)

/* libnuma's calls, as its manual describes them, and the scheduler's answer to where we may run. */
struct nodes_calls {
	int (*available)(void);		 /* numa_available: -1, there is no NUMA here */
	int (*max_node)(void);		 /* numa_max_node */
	int (*node_of_cpu)(int cpu);	 /* numa_node_of_cpu: -1, no such CPU */
	int (*distance)(int a, int b);	 /* numa_distance: 10 is near, 0 unknown */
	void (*set_preferred)(int node); /* numa_set_preferred: of this thread; -1, its own */
	bool (*has_policy)(void);	 /* does this thread have a memory policy? */
	bool (*may_run)(int cpu);	 /* may this process run there? */
	long (*bind)(void *at, size_t bytes, int node, bool move); /* mbind; 0 or -1 */
};

/* From now on these are asked, NULL: libnuma again. For tests. The table stays the caller's. */
void nodes_use(const struct nodes_calls *calls);

/* How many nodes there are; 1 where nothing is known. */
unsigned int nodes_count(void);

/* The node of a CPU, 0..nodes_count() - 1. */
int node_of_cpu(unsigned int cpu);

/* How far two nodes are apart, in the firmware's measure: 10 is the node itself, 20 twice as far.
 * 0: unknown, as it is of NODE_ANY. */
unsigned int node_distance(int a, int b);

/* May this process run on that CPU? */
bool node_cpu_allowed(unsigned int cpu);

/* Memory that this thread is the first to touch from now on comes from that node; NODE_ANY: from
 * the node that the thread runs on. Control thread: DPDK's pools and tables without hugepages. */
void node_prefer(int node);

/*
 * The memory of [at, at + bytes), whole pages, shall lie on that node: what has not been touched
 * yet will, for every process that maps it. What has been touched moves there if it is no more than
 * NODE_MOVE_BYTES_MAX: queues, doorbell pages, small buffers. Pages that others map, too, move only
 * for a daemon with CAP_SYS_NICE. NODE_ANY: nothing happens.
 */
#define NODE_MOVE_BYTES_MAX (64u << 20)
void node_bind(void *at, size_t bytes, int node);

#endif
