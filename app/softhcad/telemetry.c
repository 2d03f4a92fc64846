/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's state as DPDK telemetry commands, for `softhca` and dpdk-telemetry.py alike. Runs in
 * telemetry's own threads, under the daemon's lock; reads, never changes anything. The data path's
 * counters may be a moment old.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rte_mempool.h>
#include "base/nodes.h"
#include "cm_view.h"
#include "daemon.h"
#include "dict.h"
#include "held.h"
#include "node_view.h"
#include "qp_view.h"
#include "telemetry.h"
#include "wire/crc.h"

enum { TEXT_BYTES = 128, QPS_LISTED_MAX = 48, CLIENTS_LISTED_MAX = 32 };

static struct daemon *served; /* NULL: not running */
static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;

/* The daemon, locked; or NULL. */
static struct daemon *enter(void)
{
	pthread_mutex_lock(&served_lock);
	if (served)
		pthread_mutex_lock(&served->lock);
	else
		pthread_mutex_unlock(&served_lock);
	return served;
}

static void leave(struct daemon *d)
{
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&served_lock);
}

/* The device that the first parameter names; none named: the first. NULL: there is no such one. */
static struct device *find_device(struct daemon *d, const char *params)
{
	size_t length = params ? strcspn(params, ",") : 0;

	if (length == 0)
		return &d->devices[0];
	for (unsigned i = 0; i < d->device_count; i++) {
		const char *name = d->devices[i].section->name;

		if (strlen(name) == length && memcmp(name, params, length) == 0)
			return &d->devices[i];
	}
	return NULL;
}

/* The second parameter as a number, or `otherwise`. */
static uint32_t second_number(const char *params, uint32_t otherwise)
{
	const char *comma = params ? strchr(params, ',') : NULL;

	return comma ? strtoul(comma + 1, NULL, 0) : otherwise;
}

static void address_text(const struct port_address *a, char text[TEXT_BYTES])
{
	char ip[INET6_ADDRSTRLEN];

	inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->v6 ? a->ip : a->ip + 12, ip, sizeof(ip));
	snprintf(text, TEXT_BYTES, "%s/%u", ip, a->prefix_len);
}

static struct rte_tel_data *addresses_of(const struct port_info *info)
{
	struct rte_tel_data *a = array_new(RTE_TEL_STRING_VAL);
	char text[TEXT_BYTES];

	for (unsigned i = 0; a && i < info->n_addresses; i++) {
		address_text(&info->address[i], text);
		rte_tel_data_add_array_string(a, text);
	}
	return a;
}

/* Chunks of contexts that have memory; of how many. */
static void put_contexts(const struct device *v, struct rte_tel_data *to)
{
	const struct {
		const char *name;
		const struct icm *icm;
	} tables[] = {{"qps", &v->hca->qps.icm},
		      {"srqs", &v->hca->srqs.icm},
		      {"cqs", &v->hca->completion.icm}};
	struct rte_tel_data *d = dict_new();

	for (unsigned i = 0; d && i < RTE_DIM(tables); i++) {
		struct rte_tel_data *t = dict_new();

		if (!t)
			continue;
		rte_tel_data_add_dict_u64(t, "chunks", tables[i].icm->chunks);
		rte_tel_data_add_dict_u64(
			t, "mapped", __atomic_load_n(&tables[i].icm->mapped, __ATOMIC_RELAXED));
		dict_put(d, tables[i].name, t);
	}
	dict_put(to, v->section->name, d);
}

static struct rte_tel_data *port_of(struct device *v)
{
	struct rte_tel_data *p = dict_new();
	struct port_info info;
	char text[TEXT_BYTES];

	if (!p)
		return NULL;
	port_info(v->port, &info);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", info.mac[0], info.mac[1],
		 info.mac[2], info.mac[3], info.mac[4], info.mac[5]);
	rte_tel_data_add_dict_string(p, "type", port_type_name(v->section->port.type));
	rte_tel_data_add_dict_string(p, "device", v->section->port.device);
	rte_tel_data_add_dict_string(p, "peer", v->section->port.peer);
	rte_tel_data_add_dict_string(p, "link", info.link_up ? "up" : "down");
	rte_tel_data_add_dict_u64(p, "speed_mbps", info.link_speed_mbps);
	rte_tel_data_add_dict_u64(p, "mtu", info.mtu_bytes);
	rte_tel_data_add_dict_u64(p, "path_mtu", info.path_mtu_bytes);
	rte_tel_data_add_dict_u64(p, "vlan", info.vlan);
	rte_tel_data_add_dict_string(p, "mac", text);
	node_put(p, v->section);
	dict_put(p, "addresses", addresses_of(&info));
	return p;
}

static struct rte_tel_data *stages_of(const struct lcore_loop *l)
{
	struct rte_tel_data *a = array_new(RTE_TEL_STRING_VAL);
	char text[TEXT_BYTES];

	for (unsigned i = 0; a && i < l->stage_count; i++) {
		const struct engine *e = l->stages[i].engine;

		for (unsigned k = 0; k < l->hca_count; k++) {
			if (e->peers != l->hcas[k]->engines)
				continue;
			snprintf(text, sizeof(text), "%s.%u.%s", l->hcas[k]->config.name, e->index,
				 stage_infos[l->stages[i].id].name);
			rte_tel_data_add_array_string(a, text);
		}
	}
	return a;
}

static struct rte_tel_data *lcore_of(const struct daemon *d, unsigned i)
{
	struct rte_tel_data *p = dict_new();
	const struct lcore_loop *l = &d->lcores.loops[i];

	if (!p)
		return NULL;
	rte_tel_data_add_dict_u64(p, "busy_permille", d->lcores.busy_permille[i]);
	rte_tel_data_add_dict_u64(p, "rounds", __atomic_load_n(&l->rounds, __ATOMIC_RELAXED));
	rte_tel_data_add_dict_u64(p, "sleeps", __atomic_load_n(&l->sleeps, __ATOMIC_RELAXED));
	rte_tel_data_add_dict_string(p, "poll", l->adaptive ? "adaptive" : "busy");
	rte_tel_data_add_dict_int(p, "node", node_of_cpu(l->cpu));
	dict_put(p, "stages", stages_of(l));
	return p;
}

static struct rte_tel_data *client_of(const struct control_client_info *c)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return NULL;
	rte_tel_data_add_dict_int(p, "pid", c->pid);
	rte_tel_data_add_dict_u64(p, "uid", c->uid);
	rte_tel_data_add_dict_string(p, "hca", c->device);
	rte_tel_data_add_dict_u64(p, "qps", c->qps);
	rte_tel_data_add_dict_u64(p, "cqs", c->cqs);
	rte_tel_data_add_dict_u64(p, "srqs", c->srqs);
	rte_tel_data_add_dict_u64(p, "mrs", c->mrs);
	rte_tel_data_add_dict_u64(p, "pieces", c->pieces);
	rte_tel_data_add_dict_u64(p, "bytes", c->bytes);
	return p;
}

static void put_clients(struct daemon *d, struct rte_tel_data *to)
{
	struct control_client_info info[CLIENTS_LISTED_MAX];
	struct rte_tel_data *a = dict_new();
	unsigned count = control_clients(d->control, info, CLIENTS_LISTED_MAX);

	rte_tel_data_add_dict_u64(to, "client_count", count);
	for (unsigned i = 0; a && i < RTE_MIN(count, (unsigned)CLIENTS_LISTED_MAX); i++)
		dict_put_numbered(a, i, client_of(&info[i]));
	dict_put(to, "clients", a);
}

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

static void put_pool(struct rte_tel_data *to, int node, const struct rte_mempool *pool)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return;
	rte_tel_data_add_dict_u64(p, "buffers", pool->populated_size);
	rte_tel_data_add_dict_u64(p, "free", rte_mempool_avail_count(pool));
	rte_tel_data_add_dict_int(p, "node", node);
	dict_put(to, pool->name, p);
}

static void put_memory(const struct daemon *d, struct rte_tel_data *to)
{
	struct rte_tel_data *m = dict_new(), *contexts = m ? dict_new() : NULL;
	struct rte_tel_data *buffers = m ? dict_new() : NULL;

	if (!m)
		return;
	rte_tel_data_add_dict_u64(m, "resident_kib", resident_kib());
	rte_tel_data_add_dict_string(m, "hugepages", d->memory_mib ? "no" : "yes");
	rte_tel_data_add_dict_u64(m, "reserved_mib", d->memory_mib);
	for (unsigned i = 0; contexts && i < d->device_count; i++)
		put_contexts(&d->devices[i], contexts);
	dict_put(m, "contexts", contexts);
	for (unsigned i = 0; buffers && i < d->pools.count; i++) {
		put_pool(buffers, d->pools.set[i].node, d->pools.set[i].packets);
		put_pool(buffers, d->pools.set[i].node, d->pools.set[i].descriptors);
		put_pool(buffers, d->pools.set[i].node, d->pools.set[i].clones);
	}
	dict_put(m, "buffers", buffers);
	dict_put(to, "memory", m);
}

static void put_status(struct daemon *d, struct rte_tel_data *to)
{
	struct rte_tel_data *ports = dict_new(), *lcores = dict_new();

	rte_tel_data_add_dict_string(to, "version", SOFTHCA_VERSION);
	rte_tel_data_add_dict_int(to, "pid", getpid());
	rte_tel_data_add_dict_string(to, "socket", d->config.daemon.socket);
	rte_tel_data_add_dict_u64(to, "uptime_s", clock_now_ns(&d->lcores.clock) / 1000000000);
	rte_tel_data_add_dict_u64(to, "nodes", nodes_count());
	rte_tel_data_add_dict_string(to, "crc", wire_crc_name());
	for (unsigned i = 0; ports && i < d->device_count; i++)
		dict_put(ports, d->devices[i].section->name, port_of(&d->devices[i]));
	for (unsigned i = 0; lcores && i < d->lcores.count; i++)
		dict_put_numbered(lcores, d->lcores.loops[i].cpu, lcore_of(d, i));
	dict_put(to, "ports", ports);
	dict_put(to, "lcores", lcores);
	put_memory(d, to);
	put_clients(d, to);
}

static int answer_status(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = enter();

	rte_tel_data_start_dict(to);
	if (!d)
		return -ENODEV;
	put_status(d, to);
	leave(d);
	return 0;
}

static const char *const state_names[] = {"RST", "INIT", "RTR", "RTS", "SQE", "SQD", "ERR"};
static const char *const service_names[] = {"RC", "UC", "UD"};

static struct rte_tel_data *qp_of(const struct qp *q)
{
	struct rte_tel_data *p = dict_new();
	unsigned state = qp_state(q);

	if (!p)
		return NULL;
	rte_tel_data_add_dict_u64(p, "qpn", qp_number(q));
	rte_tel_data_add_dict_string(p, "state",
				     state < RTE_DIM(state_names) ? state_names[state] : "?");
	rte_tel_data_add_dict_string(p, "service",
				     q->service < RTE_DIM(service_names) ? service_names[q->service]
									 : "?");
	rte_tel_data_add_dict_u64(p, "client", q->client);
	rte_tel_data_add_dict_u64(p, "engine", q->engine);
	rte_tel_data_add_dict_u64(p, "dest_qpn", q->dest_qpn);
	rte_tel_data_add_dict_u64(p, "mtu", q->mtu_bytes);
	rte_tel_data_add_dict_u64(p, "next_psn",
				  __atomic_load_n(&q->rtc.next_psn, __ATOMIC_RELAXED));
	rte_tel_data_add_dict_u64(p, "unacked_psn",
				  __atomic_load_n(&q->rrc.unacked_psn, __ATOMIC_RELAXED));
	rte_tel_data_add_dict_u64(p, "parked", __atomic_load_n(&q->rtc.parked, __ATOMIC_RELAXED));
	return p;
}

/*
 * The next QP in use from index `from` on, or NULL. Looks only at pages that are in memory: most of
 * the table has never been touched, and looking at it would make it take memory.
 */
static const struct qp *next_qp(const struct qp_table *t, uint32_t from)
{
	uintptr_t page_bytes = sysconf(_SC_PAGESIZE), page = 0;
	unsigned char resident = 0;

	for (uint32_t i = from; i < t->count; i++) {
		const struct qp *q = qp_at(t, i);
		uintptr_t at = (uintptr_t)&q->qpn & ~(page_bytes - 1);

		if (at != page && mincore((void *)at, page_bytes, &resident))
			resident = 0;
		page = at;
		if ((resident & 1) && __atomic_load_n(&q->qpn, __ATOMIC_ACQUIRE) != 0)
			return q;
	}
	return NULL;
}

static int list_qps(const struct device *v, struct rte_tel_data *to)
{
	struct rte_tel_data *a = dict_new();
	const struct qp *q = next_qp(&v->hca->qps, 0);
	unsigned count = 0;

	for (; a && q; q = next_qp(&v->hca->qps, q->index + 1)) {
		if (count++ < QPS_LISTED_MAX)
			dict_put_numbered(a, qp_number(q), qp_of(q));
	}
	rte_tel_data_add_dict_u64(to, "qp_count", count);
	dict_put(to, "qps", a);
	return 0;
}

static int show_qp(const struct device *v, uint32_t qpn, struct rte_tel_data *to)
{
	const struct qp *q = next_qp(&v->hca->qps, qpn & v->hca->qps.mask);

	if (!q || qp_number(q) != qpn)
		return -ENOENT;
	dict_put(to, "qp", qp_of(q));
	qp_view_put(to, q, clock_now_ns(&v->lcores->clock));
	return 0;
}

static int answer_qp(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = enter();
	uint32_t qpn = second_number(params, 0);
	struct device *v = d ? find_device(d, params) : NULL;
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	if (v) {
		rte_tel_data_add_dict_string(to, "hca", v->section->name);
		ret = qpn ? show_qp(v, qpn, to) : list_qps(v, to);
	}
	if (d)
		leave(d);
	return ret;
}

static struct rte_tel_data *channel_of(const struct channel *c)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return NULL;
	rte_tel_data_add_dict_u64(p, "depth", channel_infos[c->id].depth);
	rte_tel_data_add_dict_u64(p, "used", ring_used(c->ring));
	rte_tel_data_add_dict_u64(p, "high_water", c->high_water);
	rte_tel_data_add_dict_u64(p, "put", c->put);
	rte_tel_data_add_dict_u64(p, "full", c->full);
	rte_tel_data_add_dict_u64(p, "empty", c->empty);
	return p;
}

static struct rte_tel_data *stage_of(const struct engine *e, unsigned s)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return NULL;
	rte_tel_data_add_dict_u64(p, "polls", e->stage[s].polls);
	rte_tel_data_add_dict_u64(p, "busy_polls", e->stage[s].busy_polls);
	return p;
}

static void put_engine(const struct engine *e, struct rte_tel_data *to)
{
	struct rte_tel_data *channels = dict_new();
	struct rte_tel_data *stages = dict_new(), *calls = dict_new();

	rte_tel_data_add_dict_u64(to, "engine", e->index);
	rte_tel_data_add_dict_u64(to, "engines", e->count);
	for (unsigned i = 0; channels && i < CHANNEL_COUNT; i++)
		dict_put(channels, channel_infos[i].name, channel_of(&e->channel[i]));
	for (unsigned i = 0; stages && i < STAGE_COUNT; i++)
		dict_put(stages, stage_infos[i].name, stage_of(e, i));
	for (unsigned i = 0; calls && i < CALL_COUNT; i++)
		rte_tel_data_add_dict_u64(
			calls, call_infos[i].name,
			e->stage[module_infos[call_infos[i].caller].stage].calls[i]);
	dict_put(to, "fifos", channels);
	dict_put(to, "calls", calls);
	dict_put(to, "stages", stages);
}

static int answer_fifos(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = enter();
	uint32_t engine = second_number(params, 0);
	struct device *v = d ? find_device(d, params) : NULL;
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	if (v && engine < v->section->engines) {
		rte_tel_data_add_dict_string(to, "hca", v->section->name);
		put_engine(&v->hca->engines[engine], to);
		ret = 0;
	}
	if (d)
		leave(d);
	return ret;
}

static void put_counters(const struct device *v, struct rte_tel_data *to)
{
	struct rte_tel_data *hca = dict_new(), *port = dict_new();

	for (unsigned i = 0; hca && i < COUNTER_COUNT; i++)
		rte_tel_data_add_dict_u64(hca, counter_name(i), hca_counter(v->hca, i));
	for (unsigned i = 0; port && i < PORT_COUNTER_COUNT; i++)
		rte_tel_data_add_dict_u64(port, port_counter_name(i), port_counter(v->port, i));
	rte_tel_data_add_dict_string(to, "hca", v->section->name);
	dict_put(to, "counters", hca);
	dict_put(to, "port_counters", port);
}

static int answer_counters(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = enter();
	struct device *v = d ? find_device(d, params) : NULL;

	rte_tel_data_start_dict(to);
	if (v)
		put_counters(v, to);
	if (d)
		leave(d);
	return v ? 0 : -ENODEV;
}

static int answer_held(const char *command, const char *params, struct rte_tel_data *to)
{
	struct daemon *d = enter();
	struct device *v = d ? find_device(d, params) : NULL;

	rte_tel_data_start_dict(to);
	if (v)
		held_put(v, to);
	if (d)
		leave(d);
	return v ? 0 : -ENODEV;
}

/* Without the daemon's lock: the connection manager's thread may be waiting for the control thread,
 * and we shall wait for it. */
static int answer_cm(const char *command, const char *params, struct rte_tel_data *to)
{
	int ret = -ENODEV;

	rte_tel_data_start_dict(to);
	pthread_mutex_lock(&served_lock);
	if (served) {
		cm_put(served, to);
		ret = 0;
	}
	pthread_mutex_unlock(&served_lock);
	return ret;
}

static struct rte_tel_data *edge_of(const struct channel_info *c)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return NULL;
	rte_tel_data_add_dict_string(p, "from", module_infos[c->producer].name);
	rte_tel_data_add_dict_string(p, "to", module_infos[c->consumer].name);
	rte_tel_data_add_dict_u64(p, "depth", c->depth);
	rte_tel_data_add_dict_string(p, "fifos", c->fifos);
	rte_tel_data_add_dict_string(p, "full", c->full);
	return p;
}

static struct rte_tel_data *call_of(const struct call_info *c)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return NULL;
	rte_tel_data_add_dict_string(p, "from", module_infos[c->caller].name);
	rte_tel_data_add_dict_string(p, "to", module_infos[c->called].name);
	rte_tel_data_add_dict_string(p, "fifos", c->fifos);
	rte_tel_data_add_dict_string(p, "asks", c->text);
	return p;
}

static struct rte_tel_data *node_of(const struct module_info *m)
{
	struct rte_tel_data *p = dict_new();

	if (!p)
		return NULL;
	rte_tel_data_add_dict_string(p, "module", m->design_name);
	rte_tel_data_add_dict_string(p, "stage", stage_infos[m->stage].name);
	return p;
}

static int answer_topology(const char *command, const char *params, struct rte_tel_data *to)
{
	struct rte_tel_data *modules = dict_new();
	struct rte_tel_data *channels = dict_new(), *calls = dict_new();
	struct daemon *d = enter();

	rte_tel_data_start_dict(to);
	if (d) {
		engines_put(to, d->devices, d->device_count);
		leave(d);
	}
	for (unsigned i = 0; modules && i < MODULE_COUNT; i++)
		dict_put(modules, module_infos[i].name, node_of(&module_infos[i]));
	for (unsigned i = 0; channels && i < CHANNEL_COUNT; i++)
		dict_put(channels, channel_infos[i].name, edge_of(&channel_infos[i]));
	dict_put(to, "modules", modules);
	for (unsigned i = 0; calls && i < CALL_COUNT; i++)
		dict_put(calls, call_infos[i].name, call_of(&call_infos[i]));
	dict_put(to, "channels", channels);
	dict_put(to, "calls", calls);
	return 0;
}

int telemetry_start(struct daemon *d)
{
	static const struct {
		const char *command, *help;
		telemetry_cb answer;
	} commands[] = {
		{"/softhca/status", "Ports, lcores, memory, clients. No parameters", answer_status},
		{"/softhca/qp", "Queue pairs. Parameters: HCA[,QPN]", answer_qp},
		{"/softhca/fifos", "Channels of an engine. Parameters: HCA[,ENGINE]", answer_fifos},
		{"/softhca/counters", "Counters of an HCA and its port. Parameters: HCA",
		 answer_counters},
		{"/softhca/held", "What an HCA holds for its clients. Parameters: HCA",
		 answer_held},
		{"/softhca/cm", "The connection manager. No parameters", answer_cm},
		{"/softhca/topology", "Modules, channels, where they run. No parameters",
		 answer_topology},
	};
	int ret = 0;

	for (unsigned i = 0; i < RTE_DIM(commands) && !ret; i++)
		ret = rte_telemetry_register_cmd(commands[i].command, commands[i].answer,
						 commands[i].help);
	pthread_mutex_lock(&served_lock);
	served = d;
	pthread_mutex_unlock(&served_lock);
	return ret;
}

void telemetry_stop(void)
{
	pthread_mutex_lock(&served_lock);
	served = NULL;
	pthread_mutex_unlock(&served_lock);
}
