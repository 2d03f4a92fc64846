/* SPDX-License-Identifier: BSD-3-Clause */
/* One HCA of the daemon: its port, its tables and pipeline, its command unit. Control thread. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rte_memory.h>
#include "base/log.h"
#include "base/nodes.h"
#include "device.h"
#include "lcores.h"
#include "pools.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/encap.h"

enum { RELEASE_WAITS_MAX = 10000 }; /* quiescent states of all lcores */

uint8_t device_mtu_code(uint16_t bytes)
{
	uint8_t code = 0;

	for (unsigned mtu = MTU_BYTES_MIN; mtu <= MTU_BYTES_MAX && mtu <= bytes; mtu *= 2)
		code++;
	return code;
}

static unsigned fill_gids(struct wire_path *gids, const struct port_info *info)
{
	for (unsigned i = 0; i < info->n_addresses; i++) {
		gids[i] = (struct wire_path){.is_ipv6 = info->address[i].v6,
					     .has_vlan = info->vlan != 0,
					     .vlan_tci = info->vlan,
					     .ttl = WIRE_TTL_DEFAULT};
		memcpy(gids[i].src_mac, info->mac, 6);
		memcpy(gids[i].src_ip, info->address[i].ip, 16);
	}
	return info->n_addresses;
}

/* The admitted peers, if not everyone: the configured ones and the port itself. */
static struct peer_list list_peers(const struct hca_section *s, const struct port_info *info)
{
	struct peer_list l = s->admitted;

	_Static_assert((int)PORT_OWN_MAX <= (int)PEERS_OWN_MAX, "all own addresses fit");
	for (unsigned i = 0; s->admitted.count && i < info->n_addresses; i++, l.count++) {
		memcpy(l.prefix[l.count].ip, info->address[i].ip, 16);
		l.prefix[l.count].bits = 128;
	}
	return l;
}

/* Takes its part of the buffers, near each engine. */
static int take_buffers(struct device *v)
{
	for (unsigned e = 0; e < v->section->engines; e++) {
		const struct config_buffers part = config_buffers_of(v->section, e);

		v->buffers[e] = pools_take(v->pools, v->section->engine_node[e], &part);
		if (!v->buffers[e])
			return -ENOMEM;
	}
	return 0;
}

static void give_buffers(struct device *v)
{
	for (unsigned e = 0; e < ENGINES_MAX && v->buffers[e]; e++) {
		const struct config_buffers part = config_buffers_of(v->section, e);

		pools_give(v->pools, v->buffers[e], &part);
	}
}

/* The buffers for what all engines share: those on its node, if there are any. */
static const struct node_pools *shared_buffers(const struct device *v)
{
	for (unsigned e = 0; e < v->section->engines; e++)
		if (v->buffers[e]->node == v->section->node)
			return v->buffers[e];
	return v->buffers[0];
}

/* Creates the HCA on the nodes chosen by placement; anywhere if they have too few hugepages. */
static int create_near(struct device *v, struct hca_config *c)
{
	const struct hca_section *s = v->section;
	const struct node_pools *own = shared_buffers(v);
	int ret;

	c->socket = s->node;
	c->packets = own->packets;
	c->descriptors = own->descriptors;
	c->clones = own->clones;
	for (unsigned e = 0; e < s->engines; e++) {
		const struct node_pools *p = v->buffers[e];

		c->place[e] = (struct engine_place){s->engine_node[e], p->packets, p->descriptors,
						    p->clones};
	}
	ret = hca_create(c, &v->hca);
	if (ret != -ENOMEM || nodes_count() == 1)
		return ret;
	LOG(WARNING, "hca %s: not enough memory on its nodes, using others", s->name);
	c->socket = SOCKET_ID_ANY;
	for (unsigned e = 0; e < s->engines; e++)
		c->place[e].socket = SOCKET_ID_ANY;
	return hca_create(c, &v->hca);
}

static int make_hca(struct device *v, const struct port_info *info)
{
	const struct hca_section *s = v->section;
	struct hca_config c;

	hca_config_defaults(&c);
	memcpy(c.name, s->name, sizeof(s->name));
#define HCA_SETTING(key, kind, field, unit, def, min, max, change, doc) c.field = s->field;
#include "hca/settings.def"
	c.settings.icrc = s->settings.icrc; /* what config_check() derived */
	c.settings.payload_refs = s->settings.payload_refs;
	c.link = port_link(v->port);
	c.gid_count = fill_gids(c.gids, info);
	c.admitted = list_peers(s, info);
	return create_near(v, &c);
}

static int make_ceu(struct device *v, const struct port_info *info)
{
	const struct ceu_config c = {.qps = &v->hca->qps,
				     .srqs = &v->hca->srqs,
				     .multicast = &v->hca->multicast,
				     .v2p = &v->hca->v2p,
				     .completion = &v->hca->completion,
				     .engines = v->hca->engines,
				     .engine_count = v->section->engines,
				     .counters = &v->hca->counters,
				     .mtu_code_max = device_mtu_code(info->path_mtu_bytes),
				     .hooks = {.ctx = v->lcores, .quiesce = lcores_quiesce}};

	int ret = ceu_create(&c, &v->ceu);

	if (ret)
		return ret;
	ceu_set_cc_rules(v->ceu, &v->section->cc_for);
	return ceu_errno(ceu_start(v->ceu));
}

static int device_failed(struct device *v, const char *what, int error)
{
	LOG(ERR, "hca %s: %s: %s", v->section->name, what, strerror(-error));
	device_destroy(v);
	return error;
}

static int make_port(struct device *v)
{
	const struct node_pools *own = shared_buffers(v);
	int ret = port_create(&v->section->port, own->packets, own->clones, &v->port);

	if (ret)
		return ret;
	ret = port_refer(v->port, payload_ref_find); /* settings may make it send them later */
	if (ret && (ret != -ENOTSUP || v->section->settings.payload_refs))
		return ret;
	return port_start(v->port);
}

static int make_kicks(struct device *v)
{
	struct epoll_event event = {.events = EPOLLIN};

	v->kicks = epoll_create1(EPOLL_CLOEXEC);
	v->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (v->kicks < 0 || v->kick_fd < 0)
		return -errno;
	return epoll_ctl(v->kicks, EPOLL_CTL_ADD, v->kick_fd, &event) ? -errno : 0;
}

int device_create(struct device *v, const struct hca_section *section, struct pools *pools,
		  struct lcores *lcores)
{
	struct port_info info;
	int ret;

	*v = (struct device){
		.section = section, .lcores = lcores, .pools = pools, .kicks = -1, .kick_fd = -1};
	ret = take_buffers(v);
	if (ret)
		return device_failed(v, "buffers", ret);
	ret = make_port(v);
	if (ret)
		return device_failed(v, "port", ret);
	port_info(v->port, &info);
	ret = make_hca(v, &info);
	if (ret)
		return device_failed(v, "tables and pipeline", ret);
	ret = make_ceu(v, &info);
	if (ret)
		return device_failed(v, "command unit", ret);
	ret = make_kicks(v);
	if (ret)
		return device_failed(v, "kicks", ret);
	LOG(INFO, "hca %s: %s%s%s, %02x:%02x:%02x:%02x:%02x:%02x, path MTU %u, %u engine%s, %u QPs",
	    section->name, port_type_name(section->port.type), section->port.device[0] ? " " : "",
	    section->port.device, info.mac[0], info.mac[1], info.mac[2], info.mac[3], info.mac[4],
	    info.mac[5], info.path_mtu_bytes, section->engines, section->engines == 1 ? "" : "s",
	    section->qps);
	return 0;
}

void device_destroy(struct device *v)
{
	if (v->ceu)
		ceu_destroy(v->ceu);
	if (v->hca)
		hca_destroy(v->hca);
	if (v->port)
		port_destroy(v->port);
	if (v->kick_fd >= 0)
		close(v->kick_fd);
	if (v->kicks >= 0)
		close(v->kicks);
	give_buffers(v);
	*v = (struct device){.kicks = -1, .kick_fd = -1};
}

/* Makes every module release what it holds for queue pairs, which belongs to the daemon's pools. */
static void release_queue_pairs(struct device *v)
{
	for (unsigned i = 0; ceu_tidy(v->ceu); i++) {
		if (i == RELEASE_WAITS_MAX) {
			LOG(ERR, "hca %s: %u queue pairs keep their packets", v->section->name,
			    (unsigned)ceu_leaving(v->ceu));
			return;
		}
		ceu_quiesce(v->ceu);
	}
}

/* Drops what one HCA has sent another, while neither is polled: such packets refer to the sender's
 * memory, or share buffers with its retransmission. */
static void cut_off(struct device *v, struct device *others, unsigned count)
{
	for (unsigned i = 0; i < v->lcores->count; i++)
		lcore_loop_remove(&v->lcores->loops[i], v->hca);
	for (unsigned i = 0; i < count; i++)
		if (others[i].hca && &others[i] != v)
			hca_drop_orphans(others[i].hca, v->hca);
	ceu_destroy(v->ceu);
	hca_destroy(v->hca);
	v->ceu = NULL;
	v->hca = NULL;
	if (v->section->port.type != PORT_RING)
		return; /* no other HCA here has its frames, and closing its device takes long */
	port_destroy(v->port);
	v->port = NULL;
}

void device_remove(struct device *v, struct device *others, unsigned count)
{
	release_queue_pairs(v);
	lcores_pause(v->lcores);
	cut_off(v, others, count);
	lcores_resume(v->lcores);
	device_destroy(v);
}

bool device_moves(const struct device *v)
{
	return port_moves(v->port, &v->section->port.addresses);
}

void device_move(struct device *v)
{
	struct wire_path gids[GID_TABLE_MAX];
	struct port_info before, info;

	port_info(v->port, &before);
	info = before;
	lcores_pause(v->lcores);
	port_move(v->port, &v->section->port.addresses, &info);
	hca_move(v->hca, gids, fill_gids(gids, &info));
	lcores_resume(v->lcores);
	port_moved(v->port, &before);
}

/* Turns off references to payload before it impairs frames. */
int device_change(struct device *v)
{
	const struct hca_section *s = v->section;
	struct port_info info;
	struct peer_list peers;

	port_info(v->port, &info);
	peers = list_peers(s, &info);
	port_set_gateways(v->port, &s->port.gateways);
	hca_change_settings(v->hca, &s->settings);
	ceu_set_cc_rules(v->ceu, &s->cc_for);
	if (memcmp(&peers, hca_admitted(v->hca), sizeof(peers)) != 0)
		hca_admit(v->hca, &peers, lcores_quiesce, v->lcores);
	return port_set_impairment(v->port, &s->port.impairment);
}

uint64_t device_guid(const struct device *v)
{
	const uint8_t *mac = v->hca->config.gids[0].src_mac;
	const uint8_t eui[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	uint64_t guid = 0;

	for (unsigned i = 0; i < sizeof(eui); i++)
		guid = guid << 8 | eui[i];
	return guid;
}

void device_settle(struct device *v)
{
	struct port_info info;

	port_info(v->port, &info);
	v->link_up = info.link_up;
}

void device_measure(struct device *v, unsigned engine)
{
	v->measured_until_ns[engine] = clock_now_ns(&v->lcores->clock) + MEASURED_S * 1000000000ull;
	engine_watch(&v->hca->engines[engine], WATCH_TIMED, true);
}

static void end_measurements(struct device *v)
{
	for (unsigned i = 0; i < v->section->engines; i++) {
		if (!v->measured_until_ns[i] ||
		    clock_now_ns(&v->lcores->clock) < v->measured_until_ns[i])
			continue;
		v->measured_until_ns[i] = 0;
		engine_watch(&v->hca->engines[i], WATCH_TIMED, false);
	}
}

bool device_poll(struct device *v)
{
	struct port_info info;

	end_measurements(v);
	port_poll_control(v->port);
	port_info(v->port, &info);
	if (info.link_up == v->link_up)
		return false;
	v->link_up = info.link_up;
	ceu_set_mtu_max(v->ceu, device_mtu_code(info.path_mtu_bytes));
	return true;
}
