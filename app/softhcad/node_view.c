/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of the engines: their NUMA nodes and distances from their ports. Under
 * the daemon's lock. */
#include <stdio.h>
#include "base/nodes.h"
#include "device.h"
#include "node_view.h"
#include "views.h"

void node_put(json_t *to, const struct hca_section *s)
{
	json_t *nodes = array_new();
	json_t *distances = array_new();

	for (unsigned e = 0; nodes && distances && e < s->engines; e++) {
		array_int(nodes, s->engine_node[e]);
		array_int(distances, (int)node_distance(s->engine_node[e], s->port_node));
	}
	dict_put(to, "engine_nodes", nodes);
	dict_put(to, "distances", distances);
}

static json_t *engine_of(const struct hca_section *it, unsigned e)
{
	json_t *to = dict_new(), *cpus = array_new();

	if (!to)
		return NULL;
	ENGINE_VIEW(PUT)
	for (unsigned i = 0; cpus && i < STAGE_COUNT; i++)
		array_int(cpus, it->cpu[e][i]);
	dict_put(to, "cpus", cpus);
	return to;
}

void engines_put(json_t *to, const struct device *devices, unsigned count)
{
	json_t *engines = dict_new();
	char name[CONFIG_NAME_BYTES + 16];

	for (unsigned i = 0; engines && i < count; i++) {
		const struct hca_section *s = devices[i].section;

		for (unsigned e = 0; s && e < s->engines; e++) {
			snprintf(name, sizeof(name), "%s/%u", s->name, e);
			dict_put(engines, name, engine_of(s, e));
		}
	}
	dict_put(to, "engines", engines);
}
