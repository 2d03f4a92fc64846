/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EAL_H
#define EAL_H
/* DPDK's environment of the daemon. Control thread. */
#include <stdint.h>
#include "config/config.h"

/* Starts EAL as the configuration says, with an lcore for each of the CPUs, numbered from 1.
 * memory_mib: what is reserved without hugepages; 0: hugepages are used. 0 or -errno, logged. */
int eal_start(const struct config *c, const struct config_cpus *cpus, uint32_t *memory_mib);

/* Removes EAL's runtime directory; the process ends next. */
void eal_stop(const struct config *c);

#endif
