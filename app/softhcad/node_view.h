/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NODE_VIEW_H
#define NODE_VIEW_H
/* Where the engines lie. Telemetry's threads, under the daemon's lock. */
struct device;
struct hca_section;
struct rte_tel_data;

/* The NUMA nodes of the engines behind a port, and their distances from it, into the port's
 * dictionary. */
void node_put(struct rte_tel_data *to, const struct hca_section *s);

/* The same with the CPUs of all engines of all devices, into a dictionary `engines`. */
void engines_put(struct rte_tel_data *to, const struct device *devices, unsigned count);

#endif
