/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLACEMENT_H
#define PLACEMENT_H
/* Which CPU each stage runs on. Control thread, before the lcores run. */
#include "config/config.h"

struct device;
struct lcores;

/*
 * Lists the CPUs that the configuration needs, each once; places unplaced stages near their ports,
 * and fills in the NUMA nodes of ports (from `sysfs`), HCAs and engines. 0; -EINVAL (a CPU that
 * this process may not use; logged to stderr).
 */
int placement_cpus(struct config *c, const char *sysfs, struct config_cpus *cpus);

/* Sets the loops' stages and peers, and tells the HCAs that have an lcore to themselves. 0 or
 * -errno. */
int placement_apply(struct lcores *l, const struct device *devices, unsigned count);

#endif
