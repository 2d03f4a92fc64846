/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon at a glance: ports, lcores, memory, clients. Changes nothing. */
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>
#include <rte_mempool.h>
#include "base/nodes.h"
#include "daemon.h"
#include "node_view.h"
#include "status_view.h"
#include "views.h"
#include "wire/crc.h"

enum {
	ACTIVE_BYTES = 2 * PORT_DEVICE_BYTES,
	ADDRESS_BYTES = INET6_ADDRSTRLEN + 8,
	STAGE_BYTES = 128,
	CLIENTS_LISTED_MAX = 32
};

/* ---- ports ---- */

static void status_address_text(const struct port_address *a, char text[ADDRESS_BYTES])
{
	char ip[INET6_ADDRSTRLEN];

	inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->v6 ? a->ip : a->ip + 12, ip, sizeof(ip));
	snprintf(text, ADDRESS_BYTES, "%s/%u", ip, a->prefix_len);
}

static json_t *addresses_of(const struct port_info *info)
{
	json_t *a = array_new();
	char text[ADDRESS_BYTES];

	for (unsigned i = 0; a && i < info->n_addresses; i++) {
		status_address_text(&info->address[i], text);
		array_string(a, text);
	}
	return a;
}

/* Which frames have an ICRC. */
static const char *const icrc_names[] = {
	[ICRC_ALWAYS] = "all", [ICRC_TO_OTHERS] = "to others", [ICRC_NEVER] = "none"};

static const char *mac_text(char text[18], const uint8_t mac[6])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		 mac[5]);
	return text;
}

/* Which of two interfaces carry the traffic of the port. */
static const char *active_text(char text[ACTIVE_BYTES], const struct device *it,
			       const struct port_info *info)
{
	const struct port_config *p = &it->section->port;

	if (p->backup[0])
		snprintf(text, ACTIVE_BYTES, "%s%s%s", info->carriers & 1 ? p->device : "",
			 info->carriers == 3 ? " " : "", info->carriers & 2 ? p->backup : "");
	return text;
}

static json_t *status_port_of(const struct device *it)
{
	json_t *to = dict_new();
	struct port_info info;

	if (!to)
		return NULL;
	port_info(it->port, &info);
	PORT_VIEW(PUT)
	node_put(to, it->section);
	dict_put(to, "addresses", addresses_of(&info));
	return to;
}

/* ---- lcores ---- */

static json_t *stages_of(const struct lcore_loop *l)
{
	json_t *a = array_new();
	char text[STAGE_BYTES];

	for (unsigned i = 0; a && i < l->stage_count; i++) {
		const struct engine *e = l->stages[i].engine;

		for (unsigned k = 0; k < l->hca_count; k++) {
			if (e->peers != l->hcas[k]->engines)
				continue;
			snprintf(text, sizeof(text), "%s.%u.%s", l->hcas[k]->config.name, e->index,
				 stage_infos[l->stages[i].id].name);
			array_string(a, text);
		}
	}
	return a;
}

static json_t *lcore_of(const struct lcores *lcores, unsigned i)
{
	const struct lcore_loop *it = &lcores->loops[i];
	json_t *to = dict_new();

	if (!to)
		return NULL;
	LCORE_VIEW(PUT)
	dict_put(to, "stages", stages_of(it));
	return to;
}

/* ---- memory ---- */

static uint64_t resident_kib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

VIEW_OF(table_of, icm, CONTEXTS_VIEW)

static json_t *contexts_of(const struct hca *h)
{
	json_t *to = dict_new();

	if (!to)
		return NULL;
	dict_put(to, "qps", table_of(&h->qps.icm));
	dict_put(to, "srqs", table_of(&h->srqs.icm));
	dict_put(to, "cqs", table_of(&h->completion.icm));
	return to;
}

static void put_pool(json_t *pools, int node, const struct rte_mempool *it)
{
	json_t *to = dict_new();

	if (!to)
		return;
	POOL_VIEW(PUT)
	dict_put(pools, it->name, to);
}

static json_t *memory_of(const struct daemon *it)
{
	json_t *to = dict_new(), *contexts = dict_new(), *buffers = dict_new();

	if (!to)
		return NULL;
	MEMORY_VIEW(PUT)
	FOR_EACH_DEVICE (i, it)
		dict_put(contexts, it->devices[i].section->name, contexts_of(it->devices[i].hca));
	dict_put(to, "contexts", contexts);
	for (unsigned i = 0; buffers && i < it->pools.count; i++) {
		const struct node_pools *set = &it->pools.set[i];

		if (!set->packets)
			continue;
		put_pool(buffers, set->node, set->packets);
		put_pool(buffers, set->node, set->descriptors);
		put_pool(buffers, set->node, set->clones);
	}
	dict_put(to, "buffers", buffers);
	return to;
}

/* ---- clients ---- */

VIEW_OF(client_of, control_client_info, CLIENT_VIEW)

static void put_clients(const struct daemon *d, json_t *to)
{
	struct control_client_info info[CLIENTS_LISTED_MAX];
	json_t *a = dict_new();
	unsigned count = control_clients(d->control, info, CLIENTS_LISTED_MAX);

	dict_u64(to, "client_count", count);
	for (unsigned i = 0; a && i < RTE_MIN(count, (unsigned)CLIENTS_LISTED_MAX); i++)
		dict_put_numbered(a, i, client_of(&info[i]));
	dict_put(to, "clients", a);
}

void status_put(struct daemon *it, json_t *to)
{
	json_t *ports = dict_new(), *lcores = dict_new();

	STATUS_VIEW(PUT)
	FOR_EACH_DEVICE (i, it)
		dict_put(ports, it->devices[i].section->name, status_port_of(&it->devices[i]));
	for (unsigned i = 0; lcores && i < it->lcores.count; i++)
		dict_put_numbered(lcores, it->lcores.loops[i].cpu, lcore_of(&it->lcores, i));
	dict_put(to, "ports", ports);
	dict_put(to, "lcores", lcores);
	dict_put(to, "memory", memory_of(it));
	put_clients(it, to);
}
