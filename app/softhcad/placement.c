/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPU each stage instance runs on, and which lcores give work to which. Control thread,
 * before the lcores run. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "daemon.h"

/* The last CPU that the process may run on: the first one often has the interrupts. */
static unsigned last_cpu(const cpu_set_t *allowed)
{
	unsigned last = 0;

	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, allowed))
			last = cpu;
	}
	return last;
}

/* Engines without a place take the CPUs of the list in turn; all stages of an engine stay together.
 */
static void fill_auto(struct config *c, const struct config_cpus *spread)
{
	unsigned next = 0;

	for (unsigned i = 0; i < c->hcas; i++) {
		for (unsigned e = 0; e < c->hca[i].engines; e++) {
			unsigned cpu = spread->cpu[next % spread->count];
			bool used = false;

			for (unsigned s = 0; s < STAGE_COUNT; s++) {
				if (c->hca[i].cpu[e][s] != CONFIG_CPU_AUTO)
					continue;
				c->hca[i].cpu[e][s] = cpu;
				used = true;
			}
			next += used;
		}
	}
}

static int collect(struct config_cpus *cpus, unsigned cpu, const cpu_set_t *allowed)
{
	for (unsigned i = 0; i < cpus->count; i++) {
		if (cpus->cpu[i] == cpu)
			return 0;
	}
	if (cpus->count == LCORES_MAX || !CPU_ISSET(cpu, allowed)) {
		LOG(ERR, "CPU %u: %s", cpu,
			cpus->count == LCORES_MAX ? "too many CPUs in use"
						  : "this process may not run there");
		return -EINVAL;
	}
	cpus->cpu[cpus->count++] = cpu;
	return 0;
}

int placement_cpus(struct config *c, struct config_cpus *cpus)
{
	struct config_cpus spread = c->daemon.lcores;
	cpu_set_t allowed;
	int ret = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	if (spread.count == 0)
		spread.cpu[spread.count++] = last_cpu(&allowed);
	fill_auto(c, &spread);
	cpus->count = 0;
	for (unsigned i = 0; i < c->hcas; i++) {
		for (unsigned e = 0; e < c->hca[i].engines; e++) {
			for (unsigned s = 0; s < STAGE_COUNT && !ret; s++)
				ret = collect(cpus, c->hca[i].cpu[e][s], &allowed);
		}
	}
	return ret;
}

static struct lcore_loop *loop_on(struct daemon *d, unsigned cpu)
{
	for (unsigned i = 0; i < d->loop_count; i++) {
		if (d->loops[i].cpu == cpu)
			return &d->loops[i];
	}
	return NULL; /* not possible: placement_cpus() has listed it */
}

static int place_device(struct daemon *d, struct device *v)
{
	int ret = 0;

	for (unsigned e = 0; e < v->section->engines; e++) {
		for (unsigned s = 0; s < STAGE_COUNT && !ret; s++)
			ret = lcore_loop_place(loop_on(d, v->section->cpu[e][s]), v->hca,
				&v->hca->engines[e], s, v->kick_fd);
	}
	return ret;
}

/* HCAs joined by a ring give work to each other. */
static bool hcas_meet(const struct daemon *d, const struct hca *a, const struct hca *b)
{
	const struct device *va = NULL;

	if (a == b)
		return true;
	for (unsigned i = 0; i < d->device_count; i++) {
		if (d->devices[i].hca == a)
			va = &d->devices[i];
	}
	return va->section->port.type == PORT_RING &&
	       strcmp(va->section->port.peer, b->config.name) == 0;
}

static bool loops_meet(
	const struct daemon *d, const struct lcore_loop *a, const struct lcore_loop *b)
{
	for (unsigned i = 0; i < a->hca_count; i++) {
		for (unsigned k = 0; k < b->hca_count; k++) {
			if (hcas_meet(d, a->hcas[i], b->hcas[k]))
				return true;
		}
	}
	return false;
}

int placement_apply(struct daemon *d)
{
	int ret = 0;

	for (unsigned i = 0; i < d->device_count && !ret; i++)
		ret = place_device(d, &d->devices[i]);
	for (unsigned a = 0; a < d->loop_count; a++) {
		struct lcore_loop *l = &d->loops[a];

		for (unsigned b = 0; b < d->loop_count; b++) {
			if (a != b && loops_meet(d, l, &d->loops[b]))
				l->peers[l->peer_count++] = &d->loops[b];
		}
	}
	return ret;
}
