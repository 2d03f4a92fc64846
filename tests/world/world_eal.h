/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WORLD_WORLD_EAL_H
#define TESTS_WORLD_WORLD_EAL_H
/* EAL as tests want it: its memory and its thread, no hugepages, no root, no ports, quiet. */
#include <sched.h>
#include <stdbool.h>
#include <rte_common.h>
#include <rte_eal.h>

/* A cmocka group setup; only the first call of a file does anything. Pages that nobody uses cost
 * nothing. EAL would keep the thread on CPU 0; many programs run at once, so it may continue where
 * it could before. 0; not 0: EAL does not start. */
static inline int world_eal(void **state)
{
	static bool started;
	char *argv[] = {"test",	       "--no-huge",	 "-m",		 "1024",	 "--no-pci",
			"--no-shconf", "--no-telemetry", "--lcores=0@0", "--log-level=3"};
	cpu_set_t cpus;

	if (started)
		return 0;
	started = true;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		return -1;
	return sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* The group's teardown. */
static inline int world_eal_end(void **state)
{
	return rte_eal_cleanup();
}

#endif
