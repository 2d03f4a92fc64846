/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EAL_H
#define EAL_H
/* The daemon's DPDK environment. Control thread. */
#include <stdbool.h>
#include <stdint.h>
#include "config/config.h"

/*
 * Starts EAL as configured, with an lcore per CPU, numbered from 1. memory_mib: reserved without
 * hugepages; 0: hugepages are used. 0 or -errno, logged.
 *
 * Nothing stops it: rte_eal_cleanup() unmaps memory that EAL's interrupt thread, which runs on,
 * still uses (the sockets of a memif port); one stop in eight ended in a SIGSEGV. The process is
 * about to exit, and runtime_folder_remove() removes EAL's files.
 */
int eal_start(const struct config *c, const struct config_cpus *cpus, uint32_t *memory_mib);

/* Are so many MiB of hugepages of one size free? */
bool eal_hugepages_free(uint32_t mib);

/* Writes how much memory an HCA takes that did not fit, how much is free, and what to do about it.
 * reserved_mib: as memory_mib of eal_start(). */
void eal_explain_memory(const struct hca_section *h, uint32_t reserved_mib, char *text,
			size_t bytes);

#endif
