/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of the engines for telemetry: their NUMA nodes and distances from their ports. Under
 * the daemon's lock. */
#include <stdio.h>
#include "base/nodes.h"
#include "device.h"
#include "node_view.h"
#include "views.h"

void node_put(struct rte_tel_data *to, const struct hca_section *s)
{
	struct rte_tel_data *nodes = array_new(RTE_TEL_INT_VAL);
	struct rte_tel_data *distances = array_new(RTE_TEL_INT_VAL);

	for (unsigned e = 0; nodes && distances && e < s->engines; e++) {
		rte_tel_data_add_array_int(nodes, s->engine_node[e]);
		rte_tel_data_add_array_int(distances,
					   (int)node_distance(s->engine_node[e], s->port_node));
	}
	dict_put(to, "engine_nodes", nodes);
	dict_put(to, "distances", distances);
}

static struct rte_tel_data *engine_of(const struct hca_section *it, unsigned e)
{
	struct rte_tel_data *to = dict_new(), *cpus = array_new(RTE_TEL_INT_VAL);

	if (!to)
		return NULL;
	ENGINE_VIEW(PUT)
	for (unsigned i = 0; cpus && i < STAGE_COUNT; i++)
		rte_tel_data_add_array_int(cpus, it->cpu[e][i]);
	dict_put(to, "cpus", cpus);
	return to;
}

void engines_put(struct rte_tel_data *to, const struct device *devices, unsigned count)
{
	struct rte_tel_data *engines = dict_new();
	char name[CONFIG_NAME_BYTES + 16];

	for (unsigned i = 0; engines && i < count; i++) {
		const struct hca_section *s = devices[i].section;

		for (unsigned e = 0; e < s->engines; e++) {
			snprintf(name, sizeof(name), "%s/%u", s->name, e);
			dict_put(engines, name, engine_of(s, e));
		}
	}
	dict_put(to, "engines", engines);
}
