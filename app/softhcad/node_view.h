/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NODE_VIEW_H
#define NODE_VIEW_H
/* Placement of the engines. Under the daemon's lock. */
#include <jansson.h>

struct device;
struct hca_section;

/* Puts the NUMA nodes of a port's engines, and their distances from it, into the port's
 * dictionary. */
void node_put(json_t *to, const struct hca_section *s);

/* Puts the same and the CPUs, for all engines of all devices, into a dictionary `engines`. */
void engines_put(json_t *to, const struct device *devices, unsigned count);

#endif
