/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the engines lie, for telemetry: their NUMA nodes, and how far these are from their ports.
 * Under the daemon's lock. */
#include <stdio.h>
#include <rte_telemetry.h>
#include "base/nodes.h"
#include "daemon.h"
#include "telemetry.h"

static unsigned from_port(const struct hca_section *s, unsigned engine)
{
	return node_distance(s->engine_node[engine], s->port_node);
}

static struct rte_tel_data *new_numbers(void)
{
	struct rte_tel_data *a = rte_tel_data_alloc();

	if (a)
		rte_tel_data_start_array(a, RTE_TEL_INT_VAL);
	return a;
}

void node_put(struct rte_tel_data *to, const struct hca_section *s)
{
	struct rte_tel_data *nodes = new_numbers(), *distances = new_numbers();

	rte_tel_data_add_dict_int(to, "node", s->port_node);
	for (unsigned e = 0; nodes && distances && e < s->engines; e++) {
		rte_tel_data_add_array_int(nodes, s->engine_node[e]);
		rte_tel_data_add_array_int(distances, (int)from_port(s, e));
	}
	dict_put(to, "engine_nodes", nodes);
	dict_put(to, "distances", distances);
}

static struct rte_tel_data *engine_of(const struct hca_section *s, unsigned engine)
{
	struct rte_tel_data *p = dict_new(), *cpus = new_numbers();

	if (!p)
		return NULL;
	for (unsigned i = 0; cpus && i < STAGE_COUNT; i++)
		rte_tel_data_add_array_int(cpus, s->cpu[engine][i]);
	rte_tel_data_add_dict_int(p, "node", s->engine_node[engine]);
	rte_tel_data_add_dict_int(p, "port_node", s->port_node);
	rte_tel_data_add_dict_u64(p, "distance", from_port(s, engine));
	dict_put(p, "cpus", cpus);
	return p;
}

void engines_put(struct rte_tel_data *to, const struct daemon *d)
{
	struct rte_tel_data *engines = dict_new();
	char name[CONFIG_NAME_BYTES + 16];

	for (unsigned i = 0; engines && i < d->device_count; i++) {
		const struct hca_section *s = d->devices[i].section;

		for (unsigned e = 0; e < s->engines; e++) {
			snprintf(name, sizeof(name), "%s/%u", s->name, e);
			dict_put(engines, name, engine_of(s, e));
		}
	}
	dict_put(to, "engines", engines);
}
