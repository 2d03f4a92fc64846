/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigns stage instances to CPUs, and records which lcores pass work to each other. Control
 * thread. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/nodes.h"
#include "device.h"
#include "lcores.h"
#include "placement.h"

/* The last CPU on which the process may run, near that node if possible: the first one often
 * handles the interrupts. */
static unsigned last_cpu(int node)
{
	unsigned last = 0, nearest = UINT_MAX;

	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		unsigned distance;

		if (!node_cpu_allowed(cpu))
			continue;
		distance = node_distance(node_of_cpu(cpu), node);
		if (distance <= nearest) {
			nearest = distance;
			last = cpu;
		}
	}
	return last;
}

/* The CPU of the list with the fewest engines; of these the nearest to the node; of these the
 * first. used: engines on each. */
static unsigned placement_choose(const struct config_cpus *list, const unsigned used[], int node)
{
	unsigned best = 0;

	for (unsigned i = 1; i < list->count; i++) {
		unsigned near = node_distance(node_of_cpu(list->cpu[i]), node);
		unsigned nearest = node_distance(node_of_cpu(list->cpu[best]), node);

		if (used[i] < used[best] || (used[i] == used[best] && near < nearest))
			best = i;
	}
	return best;
}

/* Assigns the engine's unplaced stages to that CPU. Were there any? */
static bool fill_engine(int16_t cpus[STAGE_COUNT], unsigned cpu)
{
	bool used = false;

	for (unsigned s = 0; s < STAGE_COUNT; s++) {
		if (cpus[s] != CONFIG_CPU_AUTO)
			continue;
		cpus[s] = (int16_t)cpu;
		used = true;
	}
	return used;
}

/* Spreads an HCA's unplaced engines over the CPUs of the list, near its port; all stages of an
 * engine stay together. */
static void fill_auto(struct hca_section *h, const struct config_cpus *list,
		      unsigned used[LCORES_MAX])
{
	for (unsigned e = 0; e < h->engines; e++) {
		unsigned chosen = placement_choose(list, used, h->port_node);

		used[chosen] += fill_engine(h->cpu[e], list->cpu[chosen]);
	}
}

/* Without a list each HCA has one CPU. */
static void fill_all(struct config *c, const char *sysfs)
{
	unsigned used[LCORES_MAX] = {0};

	for (unsigned i = 0; i < c->hcas; i++) {
		struct hca_section *h = &c->hca[i];
		struct config_cpus list = c->daemon.lcores;

		h->port_node = port_node(&h->port, sysfs);
		if (list.count == 0)
			list.cpu[list.count++] = last_cpu(h->port_node);
		fill_auto(h, &list, used);
	}
}

/* The node on which most of an engine's stages run. */
static int node_of_engine(const int16_t cpus[STAGE_COUNT])
{
	unsigned best = 0, most = 0;

	for (unsigned s = 0; s < STAGE_COUNT; s++) {
		unsigned same = 0;

		for (unsigned k = 0; k < STAGE_COUNT; k++)
			same += node_of_cpu(cpus[k]) == node_of_cpu(cpus[s]);
		if (same > most) {
			most = same;
			best = s;
		}
	}
	return node_of_cpu(cpus[best]);
}

/* An engine's memory is near its lcores; what engines share, and what belongs to the port, near the
 * port, or near the first engine if the port's node is unknown. */
static void fill_nodes(struct hca_section *h)
{
	for (unsigned e = 0; e < h->engines; e++)
		h->engine_node[e] = node_of_engine(h->cpu[e]);
	h->node = h->port_node == NODE_ANY ? h->engine_node[0] : h->port_node;
	h->port.socket = h->node;
}

static int placement_collect(struct config_cpus *cpus, unsigned cpu)
{
	for (unsigned i = 0; i < cpus->count; i++) {
		if (cpus->cpu[i] == cpu)
			return 0;
	}
	if (cpus->count == LCORES_MAX || !node_cpu_allowed(cpu)) {
		LOG(ERR, "CPU %u: %s", cpu,
		    cpus->count == LCORES_MAX ? "too many CPUs in use"
					      : "this process may not run there");
		return -EINVAL;
	}
	cpus->cpu[cpus->count++] = cpu;
	return 0;
}

int placement_cpus(struct config *c, const char *sysfs, struct config_cpus *cpus)
{
	int ret = 0;

	fill_all(c, sysfs);
	cpus->count = 0;
	for (unsigned i = 0; i < c->hcas; i++) {
		fill_nodes(&c->hca[i]);
		for (unsigned e = 0; e < c->hca[i].engines; e++) {
			for (unsigned s = 0; s < STAGE_COUNT && !ret; s++)
				ret = placement_collect(cpus, c->hca[i].cpu[e][s]);
		}
	}
	return ret;
}

static struct lcore_loop *loop_on(struct lcores *l, unsigned cpu)
{
	for (unsigned i = 0; i < l->count; i++) {
		if (l->loops[i].cpu == cpu)
			return &l->loops[i];
	}
	return NULL;
}

static bool have_lcores(struct lcores *l, const struct hca_section *h, struct config_error *error)
{
	for (unsigned e = 0; e < h->engines; e++) {
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			if (loop_on(l, h->cpu[e][s]))
				continue;
			snprintf(error->text, sizeof(error->text),
				 "hca %s: the daemon has no lcore on CPU %d, which needs a restart",
				 h->name, h->cpu[e][s]);
			return false;
		}
	}
	return true;
}

int placement_join(struct lcores *l, struct hca_section *h, const char *sysfs,
		   struct config_error *error)
{
	struct config_cpus list = {.count = 0};
	unsigned used[LCORES_MAX] = {0};

	for (unsigned i = 0; i < l->count; i++) {
		used[i] = l->loops[i].bell_count;
		list.cpu[list.count++] = l->loops[i].cpu;
	}
	h->port_node = port_node(&h->port, sysfs);
	fill_auto(h, &list, used);
	if (!have_lcores(l, h, error))
		return -EINVAL;
	fill_nodes(h);
	return 0;
}

int placement_place(struct lcores *l, const struct device *v)
{
	int ret = 0;

	for (unsigned e = 0; e < v->section->engines; e++) {
		for (unsigned s = 0; s < STAGE_COUNT && !ret; s++)
			ret = lcore_loop_place(loop_on(l, v->section->cpu[e][s]), v->hca,
					       &v->hca->engines[e], s, v->kicks);
	}
	return ret;
}

/* HCAs connected by a ring pass work to each other. */
static bool devices_meet(const struct device *a, const struct device *b)
{
	const struct port_config *p = &a->section->port;

	return a == b || (p->type == PORT_RING && strcmp(p->peer, b->section->name) == 0);
}

static bool placement_is_on(const struct device *v, const struct lcore_loop *loop)
{
	for (unsigned i = 0; i < loop->hca_count; i++) {
		if (loop->hcas[i] == v->hca)
			return true;
	}
	return false;
}

static unsigned placement_lcores_of(const struct lcores *l, const struct device *v)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->count; i++)
		n += placement_is_on(v, &l->loops[i]);
	return n;
}

static bool loops_meet(const struct lcore_loop *a, const struct lcore_loop *b,
		       const struct device *devices, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; placement_is_on(&devices[i], a) && k < count; k++) {
			if (placement_is_on(&devices[k], b) &&
			    devices_meet(&devices[i], &devices[k]))
				return true;
		}
	}
	return false;
}

static bool engine_on_one_lcore(const int16_t cpus[STAGE_COUNT])
{
	for (unsigned s = 1; s < STAGE_COUNT; s++) {
		if (cpus[s] != cpus[0])
			return false;
	}
	return true;
}

/* The driver of another type of port may free sent frames in a thread of its own. */
static void note_alone(struct lcores *l, const struct device *v)
{
	const struct lcore_loop *loop = loop_on(l, v->section->cpu[0][0]);

	for (unsigned e = 0; e < v->section->engines; e++) {
		if (engine_on_one_lcore(v->section->cpu[e]))
			hca_engine_on_one_lcore(v->hca, e);
	}
	if (placement_lcores_of(l, v) == 1)
		hca_on_one_lcore(v->hca, v->section->port.type == PORT_RING && !loop->peer_count);
}

void placement_connect(struct lcores *l, const struct device *devices, unsigned count)
{
	for (unsigned a = 0; a < l->count; a++) {
		struct lcore_loop *loop = &l->loops[a];

		loop->peer_count = 0;
		for (unsigned b = 0; b < l->count; b++) {
			if (a != b && loops_meet(loop, &l->loops[b], devices, count))
				loop->peers[loop->peer_count++] = &l->loops[b];
		}
	}
	for (unsigned i = 0; i < count; i++)
		if (devices[i].hca)
			note_alone(l, &devices[i]);
}
