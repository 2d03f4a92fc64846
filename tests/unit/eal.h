/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_EAL_H
#define UNIT_EAL_H
/* EAL as unit tests want it: its memory and its thread, no hugepages, no root, no ports, quiet. */
#include <rte_common.h>
#include <rte_eal.h>

/* A cmocka group setup; once for each program. 0; not 0: it cannot be had. */
static inline int unit_eal(void **state)
{
	char *argv[] = {"test",
			"--no-huge",
			"-m",
			"128",
			"--no-pci",
			"--no-shconf",
			"--no-telemetry",
			"--lcores=0@0",
			"--log-level=lib.*:4",
			NULL};

	(void)state;
	return rte_eal_init(RTE_DIM(argv) - 1, argv) < 0;
}

#endif
