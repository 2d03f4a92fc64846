/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_NODES_H
#define BASE_NODES_H
/*
 * The NUMA nodes of this machine: which CPUs and which memory are near each other. DPDK knows the
 * node of a hugepage and of a PCI device; the rest comes from libnuma, through a table of calls
 * that a test can replace.
 *
 * On a machine with one node, or for which the kernel reports none, every CPU is on node 0 and the
 * kernel places memory. It also does so in a process with a memory policy (numactl), which takes
 * precedence.
 *
 * Control thread; after the first query any thread may ask for counts, nodes and distances. Nothing
 * here fails: misplaced memory is slower, not wrong.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No node in particular, or unknown. The same number as DPDK's SOCKET_ID_ANY. */
#define NODE_ANY (-1)

/* libnuma's calls, as its manual describes them, and the scheduler's answer to where we may run. */
struct nodes_calls {
	int (*available)(void);		 /* numa_available: -1, no NUMA */
	int (*max_node)(void);		 /* numa_max_node */
	int (*node_of_cpu)(int cpu);	 /* numa_node_of_cpu: -1, no such CPU */
	int (*distance)(int a, int b);	 /* numa_distance: 10 is near, 0 unknown */
	void (*set_preferred)(int node); /* numa_set_preferred: of this thread; -1, its own */
	bool (*has_policy)(void);	 /* does this thread have a memory policy? */
	bool (*may_run)(int cpu);	 /* may this process run there? */
	long (*bind)(void *at, size_t bytes, int node, bool move); /* mbind; 0 or -1 */
};

/* Uses these calls from now on; NULL: libnuma again. For tests. The table stays the caller's. */
void nodes_use(const struct nodes_calls *calls);

/* The number of nodes; 1 if unknown. */
unsigned int nodes_count(void);

/* The node of a CPU, 0..nodes_count() - 1. */
int node_of_cpu(unsigned int cpu);

/* The distance between two nodes by the firmware's measure: 10 is the node itself, 20 twice as far.
 * 0: unknown, as for NODE_ANY. */
unsigned int node_distance(int a, int b);

/* May this process run on that CPU? */
bool node_cpu_allowed(unsigned int cpu);

/* Memory that this thread touches first comes from that node from now on; NODE_ANY: from the node
 * that the thread runs on. Control thread: DPDK's pools and tables without hugepages. */
void node_prefer(int node);

/*
 * Places the memory of [at, at + bytes), whole pages, on that node: untouched pages will be
 * allocated there, for every process that maps them. Touched pages move there if there are no more
 * than NODE_MOVE_BYTES_MAX: queues, doorbell pages, small buffers. Pages that others also map move
 * only for a daemon with CAP_SYS_NICE. NODE_ANY: no effect.
 */
#define NODE_MOVE_BYTES_MAX (64u << 20)
void node_bind(void *at, size_t bytes, int node);

#endif
