/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EAL_H
#define EAL_H
/* The daemon's DPDK environment. Control thread. */
#include <stdint.h>
#include "config/config.h"

/* Starts EAL as configured, with an lcore per CPU, numbered from 1. memory_mib: reserved without
 * hugepages; 0: hugepages are used. 0 or -errno, logged. */
int eal_start(const struct config *c, const struct config_cpus *cpus, uint32_t *memory_mib);

/* Removes EAL's runtime directory; the process is about to exit. */
void eal_stop(const struct config *c);

#endif
