/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLACEMENT_H
#define PLACEMENT_H
/* Which CPU each stage runs on. Control thread. */
#include "config/config.h"

struct device;
struct lcores;

/*
 * Lists the CPUs that the configuration needs, each once; places unplaced stages near their ports,
 * and fills in the NUMA nodes of ports (from `sysfs`), HCAs and engines. 0; -EINVAL (a CPU that
 * this process may not use; logged to stderr).
 */
int placement_cpus(struct config *c, const char *sysfs, struct config_cpus *cpus);

/* The same for one HCA that joins running lcores: chooses among these. 0; -EINVAL with *error: its
 * configuration names another CPU. */
int placement_join(struct lcores *l, struct hca_section *h, const char *sysfs,
		   struct config_error *error);

/* Puts the stages of an HCA that has just been created into the loops, which do not run. 0 or
 * -errno, after which some may be there: lcore_loop_remove(). */
int placement_place(struct lcores *l, const struct device *v);

/* Sets the peers of the loops again, while they do not run, and informs HCAs that have an lcore to
 * themselves. */
void placement_connect(struct lcores *l, const struct device *devices, unsigned count);

#endif
