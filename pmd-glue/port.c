/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a port, and the control thread's turn on it. struct port_driver has what depends on
 * the type of port; data_path.h has the data path. Control thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_random.h>

#include "base/log.h"
#include "capture.h"
#include "control.h"
#include "data_path.h"
#include "groups.h"
#include "impairment.h"
#include "pipeline/icrc.h"
#include "port_check.h"

static struct port *ports[PORTS_MAX];

static const char *const type_names[PORT_TYPE_COUNT] = {
	[PORT_RING] = "ring", [PORT_MEMIF] = "memif",	[PORT_AF_PACKET] = "af_packet",
	[PORT_TAP] = "tap",   [PORT_AF_XDP] = "af_xdp", [PORT_PCI] = "pci",
};

static const struct port_driver *const drivers[PORT_TYPE_COUNT] = {
	[PORT_RING] = &ring_port_driver,     [PORT_MEMIF] = &memif_port_driver,
	[PORT_AF_PACKET] = &eth_port_driver, [PORT_TAP] = &eth_port_driver,
	[PORT_AF_XDP] = &eth_port_driver,    [PORT_PCI] = &eth_port_driver,
};

const char *port_type_name(enum port_type type)
{
	return (unsigned int)type < PORT_TYPE_COUNT ? type_names[type] : NULL;
}

struct port *port_at(unsigned int i)
{
	return ports[i];
}

uint64_t port_now_ms(void)
{
	return rte_get_timer_cycles() / (rte_get_timer_hz() / 1000);
}

static int find_slot(const char *name)
{
	int slot = -ENOMEM;

	for (int i = PORTS_MAX - 1; i >= 0; i--) {
		if (!ports[i])
			slot = i;
		else if (strcmp(ports[i]->config.name, name) == 0)
			return -EEXIST;
	}
	return slot;
}

static struct rte_ring *make_ring(const struct port *port, const char *what, unsigned int queue,
				  unsigned int frames)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "port%u_%s%u", port->index, what, queue);
	return rte_ring_create(name, frames, port->config.socket,
			       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

/* As the configuration says. The queue's lcore may be using it. 0, -ENOMEM. */
static int set_impairment(struct port *port, struct port_queue *q)
{
	const struct port_impairment *c = &port->config.impairment;
	struct impairment *made;

	if (q->impair)
		impairment_set(q->impair, c);
	if (q->impair || !impairment_wanted(c))
		return 0;
	__atomic_store_n(&port->link.unannounced, 1, __ATOMIC_RELAXED);
	made = impairment_create(c, q->id, port->packet_pool, q->count, rte_get_tsc_hz());
	__atomic_store_n(&q->impair, made, __ATOMIC_RELEASE);
	return made ? 0 : -ENOMEM;
}

int port_set_impairment(struct port *port, const struct port_impairment *impairment)
{
	int error = 0;

	port->config.impairment = *impairment;
	for (unsigned int i = 0; i < port->config.queues && !error; i++)
		error = set_impairment(port, &port->queue[i]);
	return error;
}

void port_set_gateways(struct port *port, const struct port_gateways *gateways)
{
	port->config.gateways = *gateways;
}

static int make_queue(struct port *port, uint16_t id)
{
	struct port_queue *q = &port->queue[id];

	q->port = port;
	q->id = id;
	q->sources.key = rte_rand() | 1;
	rte_spinlock_init(&q->poll_lock);
	q->to_control = make_ring(port, "to_control", id, CONTROL_RING_FRAMES);
	q->loop = make_ring(port, "loop", id, LOOP_RING_FRAMES);
	if (id == 0)
		q->from_control = make_ring(port, "from_control", id, CONTROL_RING_FRAMES);
	if (!q->to_control || !q->loop || (id == 0 && !q->from_control))
		return -ENOMEM;
	return set_impairment(port, q);
}

static void drain_and_free(struct rte_ring *ring)
{
	void *m;

	while (ring && rte_ring_sc_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

static void free_queue(struct port_queue *q)
{
	impairment_destroy(q->impair);
	drain_and_free(q->to_control);
	drain_and_free(q->from_control);
	drain_and_free(q->loop);
}

static void make_filter(struct port *port)
{
	struct port_filter *f = &port->filter;
	uint8_t padded[8] = {0};

	f->n_v4 = f->n_v6 = 0;
	memcpy(padded, port->mac, 6);
	f->mac = load_mac(padded);
	f->vlan_be = rte_cpu_to_be_16(port->config.vlan);
	/* The link-local address is rarely looked up, so it comes last. */
	for (unsigned int i = 1; i <= port->n_own; i++) {
		const struct port_address *a = &port->own[i % port->n_own];

		if (a->v6)
			memcpy(f->v6[f->n_v6++], a->ip, 16);
		else
			memcpy(&f->v4_be[f->n_v4++], a->ip + 12, 4);
	}
}

/* FNV-1a: nothing depends on it but that different addresses rarely collide. */
static uint64_t hash(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (n-- > 0)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}

/*
 * The configured MAC, else a locally administered one made from the first IP address, so that it is
 * the same after a restart and neighbours need not learn a new one; without address a random one.
 * Drivers that have a MAC replace it.
 */
static void choose_mac(struct port *port)
{
	static const uint8_t none[6];
	uint64_t h;

	if (memcmp(port->config.mac, none, 6) != 0) {
		memcpy(port->mac, port->config.mac, 6);
		return;
	}
	rte_eth_random_addr(port->mac);
	if (port->config.addresses.count == 0)
		return;
	h = hash(port->config.addresses.at[0].ip, 16);
	memcpy(port->mac + 1, &h, 5);
	port->mac[0] = 0x02;
}

/* The MAC is known. A configured address that we have already counts once. */
static void list_own_addresses(struct port *port)
{
	const uint8_t *mac = port->mac;

	port->own[0] = (struct port_address){.v6 = true,
					     .prefix_len = 64,
					     .ip = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2],
						    0xff, 0xfe, mac[3], mac[4], mac[5]}};
	port->n_own = 1;
	for (unsigned int i = 0; i < port->config.addresses.count; i++) {
		if (memcmp(port->config.addresses.at[i].ip, port->own[0].ip, 16) != 0)
			port->own[port->n_own++] = port->config.addresses.at[i];
	}
}

bool port_moves(const struct port *port, const struct port_addresses *to)
{
	const struct port_addresses *now = &port->config.addresses;

	return to->count != now->count ||
	       memcmp(to->at, now->at, to->count * sizeof(to->at[0])) != 0;
}

static bool was_own(const struct port_info *before, const uint8_t ip[16])
{
	for (unsigned int i = 0; i < before->n_addresses; i++) {
		if (memcmp(before->address[i].ip, ip, 16) == 0)
			return true;
	}
	return false;
}

static void list_addresses(const struct port *port, struct port_info *info)
{
	memcpy(info->address, port->own, sizeof(info->address));
	info->n_addresses = port->n_own;
}

void port_move(struct port *port, const struct port_addresses *to, struct port_info *info)
{
	port->config.addresses = *to;
	list_own_addresses(port);
	make_filter(port);
	list_addresses(port, info);
}

void port_moved(struct port *port, const struct port_info *before)
{
	kernel_refresh(port);
	if (port->driver->update_groups)
		port->driver->update_groups(port);
	for (unsigned int i = 0; i < port->n_own; i++) {
		if (!port->kernel_has[i] && !was_own(before, port->own[i].ip))
			announce(port, &port->own[i]);
	}
}

static void set_stopped(struct port *port)
{
	port->link.rx_burst = stopped_rx_burst;
	port->link.rx_pending = NULL;
	port->link.tx_burst = stopped_tx_burst;
}

static int port_build(struct port *port)
{
	int error = 0;

	choose_mac(port);
	set_stopped(port);
	for (uint16_t i = 0; i < port->config.queues && !error; i++)
		error = make_queue(port, i);
	if (error) {
		LOG(ERR, "port %s: no memory for its rings", port->config.name);
		return error;
	}
	error = port->driver->create(port);
	if (error)
		return error;
	list_own_addresses(port);
	make_filter(port);
	kernel_refresh(port);
	return port->config.capture_path[0] ? capture_file_open(port) : 0;
}

/* Nothing else in this process gives the bits another meaning. */
static int reserve_mark(const char *name, int bit)
{
	struct rte_mbuf_dynflag mark = {.flags = 0};

	snprintf(mark.name, sizeof(mark.name), "%s", name);
	if (rte_mbuf_dynflag_register_bitnum(&mark, bit) == bit)
		return 0;
	LOG(ERR, "bit %d of mbuf flags is not free: %s", bit, rte_strerror(rte_errno));
	return -rte_errno;
}

static int reserve_marks(void)
{
	int error = reserve_mark("softhca_icrc_omitted", ICRC_OMITTED_BIT);

	if (!error)
		error = reserve_mark("softhca_payload_ref", PAYLOAD_REF_BIT);
	return error ? error : reserve_mark("softhca_train", FRAME_TRAIN_BIT);
}

int port_create(const struct port_config *config, struct rte_mempool *packet_pool,
		struct rte_mempool *clone_pool, struct port **out)
{
	struct port *port;
	int slot, error;

	error = port_check_config(config);
	if (!error)
		error = port_check_pools(config, packet_pool, clone_pool);
	if (!error)
		error = reserve_marks();
	if (error)
		return error;
	slot = find_slot(config->name);
	if (slot < 0) {
		LOG(ERR, "port %s: %s", config->name,
		    slot == -EEXIST ? "the name is in use" : "too many ports");
		return slot;
	}
	port = rte_zmalloc_socket("port", sizeof(*port), RTE_CACHE_LINE_SIZE, config->socket);
	if (!port)
		return -ENOMEM;
	port->config = *config;
	port->index = slot;
	port->driver = drivers[config->type];
	port->packet_pool = packet_pool;
	port->clone_pool = clone_pool;
	port->link.unannounced = config->type != PORT_RING;
	ports[slot] = port;
	error = port_build(port);
	if (error) {
		port_destroy(port);
		return error;
	}
	*out = port;
	return 0;
}

int port_start(struct port *port)
{
	int error;

	if (port->started)
		return 0;
	error = port->driver->start(port);
	if (error)
		return error;
	port->started = true;
	port->link.rx_burst = port->driver->rx_burst;
	port->link.rx_pending = port->driver->rx_pending;
	port->link.tx_burst = port->driver->tx_burst;
	return 0;
}

void port_stop(struct port *port)
{
	if (!port->started)
		return;
	set_stopped(port);
	port->driver->stop(port);
	port->started = false;
	port_set_link(port, false);
	port_capture_flush(port);
}

void port_destroy(struct port *port)
{
	if (!port)
		return;
	port_stop(port);
	capture_file_close(port);
	port->driver->destroy(port);
	for (unsigned int i = 0; i < port->config.queues; i++)
		free_queue(&port->queue[i]);
	membership_free(&port->groups);
	ports[port->index] = NULL;
	rte_free(port);
}

struct link_port *port_link(struct port *port)
{
	return &port->link;
}

void port_relinked(struct port *port)
{
	__atomic_store_n(&port->link.relinked, port->link.relinked + 1, __ATOMIC_RELEASE);
}

void port_set_link(struct port *port, bool up)
{
	if (port_link_is_up(port) == up)
		return;
	__atomic_store_n(&port->link_up, up, __ATOMIC_RELAXED);
	control_count(port, PORT_COUNTER_link_changes);
	/* The peer may be another one when the link returns. */
	if (up) {
		membership_announce(&port->groups, port_now_ms());
		port_relinked(port);
	} else {
		neighbour_forget(&port->neighbours);
	}
	LOG(NOTICE, "port %s: link %s", port->config.name, up ? "up" : "down");
}

static uint16_t path_mtu(uint16_t mtu_bytes)
{
	uint16_t path = 4096;

	while (path >= 256 && path + PORT_ROCE_OVERHEAD > mtu_bytes)
		path /= 2;
	return path >= 256 ? path : 0;
}

void port_info(struct port *port, struct port_info *info)
{
	memset(info, 0, sizeof(*info));
	memcpy(info->mac, port->mac, 6);
	info->link_up = port_link_is_up(port);
	info->carriers = port->eths > 1 ? port->bond.used : 1;
	info->link_speed_mbps = port->driver->speed_mbps(port);
	info->mtu_bytes = port->mtu_bytes;
	info->path_mtu_bytes = path_mtu(port->mtu_bytes);
	info->vlan = port->config.vlan;
	memcpy(info->driver, port->driver_name, sizeof(info->driver));
	list_addresses(port, info);
}

/* Dispatches one frame from the data path to whatever answers it. */
static void take_frame(struct port *port, const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint8_t *l3 = (const uint8_t *)(ether + 1);
	uint32_t bytes = m->data_len - RTE_ETHER_HDR_LEN;
	uint16_t type = ether->ether_type;

	/* classify() has checked the lengths of both headers. */
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN)) {
		type = load16(l3 + 2);
		l3 += VLAN_BYTES;
		bytes -= VLAN_BYTES;
	}
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP))
		answer_arp(port, ether, l3, bytes);
	else if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) && l3[9] == IP_IGMP)
		take_igmp(port, l3, bytes);
	else if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		answer_icmp(port, ether, l3, bytes);
	else if (l3[6] == IP_HOP_BY_HOP)
		take_mld(port, l3, bytes);
	else
		answer_icmpv6(port, ether, l3, bytes);
}

static void take_frames(struct port *port, struct port_queue *q)
{
	unsigned int left = ring_used(q->to_control);
	void *m;

	while (left-- > 0 && rte_ring_sc_dequeue(q->to_control, &m) == 0) {
		take_frame(port, m);
		rte_pktmbuf_free(m);
	}
}

static void ask_again(struct port *port, uint64_t now_ms)
{
	unsigned int failed = port->neighbours.failed;
	unsigned int cursor = 0;
	const struct neighbour *e;

	while ((e = neighbour_due(&port->neighbours, &cursor, now_ms)) != NULL)
		ask_for(port, e->ip);
	while (failed++ != port->neighbours.failed)
		control_count(port, PORT_COUNTER_neighbour_failed);
}

void port_poll_control(struct port *port)
{
	uint64_t now_ms = port_now_ms();

	if (!port->started)
		return;
	if (now_ms >= port->next_kernel_ms) {
		port->next_kernel_ms = now_ms + KERNEL_POLL_MS;
		kernel_refresh(port);
	}
	port->driver->poll(port, now_ms);
	for (unsigned int i = 0; i < port->config.queues; i++)
		take_frames(port, &port->queue[i]);
	ask_again(port, now_ms);
	groups_turn(port, now_ms);
	port_capture_flush(port);
}

bool port_control_waits(const struct port *port)
{
	return !ring_empty(port->queue[0].from_control);
}
