/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports over a DPDK ethdev: af_packet, af_xdp, tap, memif, PCI. Bring-up asks for nothing that a
 * driver may lack: no offloads, no interrupts, no MAC change, no MTU call unless it matters.
 *
 * Frames sent may have more than one owner. Drivers only read them (the virtual ones copy, devices
 * fetch) and give back one reference, provided that fast free, which assumes refcnt 1 and one
 * pool, is off: it is, like every other transmit offload but frames in pieces (referring.h).
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "base/log.h"
#include "control.h"
#include "data_path.h"
#include "eth_args.h"
#include "memif_gate.h"
#include "memif_listener.h"
#include "pipeline/icrc.h"
#include "referring.h"

enum { ETH_DESCRIPTORS = 1024 };

/* ---- data path ---- */

static inline uint16_t eth_device_of(const struct port_queue *q, unsigned which)
{
	return __atomic_load_n(&q->eth_id[which], __ATOMIC_RELAXED);
}

/* Multicast over UDP, of which the HCA must get only one copy. */
static bool is_group_datagram(const struct rte_mbuf *m)
{
	return *rte_pktmbuf_mtod(m, const uint8_t *) & 1 && udp_offset(m);
}

/*
 * Receives from the other device, too: if two cables connect two hosts, the other host may have
 * failed over alone, and sends there. In one network both devices receive what is sent to a group;
 * with active-backup the copy is dropped. With balance-xor the switch or the peer sends it over one
 * of the two.
 */
static __rte_noinline uint16_t spare_rx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t spare = __atomic_load_n(&q->spare_id, __ATOMIC_RELAXED), kept = 0;

	n = rte_eth_rx_burst(spare, q->id, frames, n);
	for (uint16_t i = 0; i < n; i++) {
		if (!q->spare_copies || !is_group_datagram(frames[i])) {
			frames[kept++] = frames[i];
			continue;
		}
		rte_pktmbuf_free(frames[i]);
		queue_count(q, PORT_COUNTER_drop_rx_spare, 1);
	}
	return kept;
}

/* Clears the marks that a driver may leave in a buffer: the ICRC has to be checked. */
static uint16_t eth_raw_rx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t first = unlikely(q->has_spare) ? spare_rx(q, frames, n / 2) : 0;

	n = first + rte_eth_rx_burst(eth_device_of(q, 0), q->id, frames + first, n - first);
	for (uint16_t i = 0; i < n; i++)
		frames[i]->ol_flags &= ~FRAME_MARKS;
	return n;
}

/* Marks frames that the peer sent without ICRC. */
static uint16_t memif_raw_rx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	n = eth_raw_rx(q, frames, n);
	for (uint16_t i = 0; q->icrc_omitted && i < n; i++)
		if (lacks_icrc(frames[i]))
			frames[i]->ol_flags |= ICRC_OMITTED;
	return n;
}

/* Which of two devices sends the frame: the first if it is not UDP. */
static unsigned tx_device(const struct rte_mbuf *m)
{
	unsigned udp = udp_offset(m);

	if (!udp || m->data_len < udp + sizeof(uint16_t))
		return 0;
	return bond_device(rte_be_to_cpu_16(load16(rte_pktmbuf_mtod(m, const uint8_t *) + udp)));
}

static inline uint16_t device_tx(struct port_queue *q, uint16_t id, struct rte_mbuf **frames,
				 uint16_t n)
{
	if (q->referring)
		return referring_tx(q, id, frames, n);
	return rte_eth_tx_burst(id, q->id, frames, n);
}

static __rte_noinline uint16_t balanced_tx(struct port_queue *q, struct rte_mbuf **frames,
					   uint16_t n)
{
	uint16_t done = 0, run, sent;

	do {
		unsigned which = tx_device(frames[done]);

		for (run = 1; done + run < n && tx_device(frames[done + run]) == which; run++)
			;
		sent = device_tx(q, eth_device_of(q, which), frames + done, run);
		done += sent;
	} while (sent == run && done < n);
	return done;
}

static uint16_t eth_raw_tx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t id = eth_device_of(q, 0);

	if (unlikely(id != eth_device_of(q, 1) && n))
		return balanced_tx(q, frames, n);
	return device_tx(q, id, frames, n);
}

static uint16_t eth_tx_plain(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	return tx_frames_plain(q, frames, n, eth_raw_tx);
}

static uint16_t eth_rx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			     uint16_t n)
{
	struct port *port = (struct port *)link;

	return rx_frames(&port->queue[queue], frames, n, eth_raw_rx);
}

static uint16_t eth_tx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			     uint16_t n)
{
	struct port *port = (struct port *)link;

	return tx_frames(&port->queue[queue], frames, n, eth_raw_tx);
}

/* While a window of the memif gate is open the wire looks idle. */
static uint16_t memif_rx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			       uint16_t n)
{
	struct port_queue *q = &((struct port *)link)->queue[queue];
	uint16_t got;

	if (unlikely(!memif_enter(q)))
		return 0;
	got = rx_frames(q, frames, n, memif_raw_rx);
	memif_leave(q);
	return got;
}

static uint16_t memif_tx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			       uint16_t n)
{
	struct port_queue *q = &((struct port *)link)->queue[queue];
	uint16_t sent;

	if (unlikely(!memif_enter(q)))
		return 0;
	sent = tx_frames(q, frames, n, eth_raw_tx);
	memif_leave(q);
	return sent;
}

/* ---- bring-up ---- */

static int eth_refused(const struct port *port, const char *what, int error)
{
	LOG(ERR, "port %s: %s: %s: %s", port->config.name, port->eth[port->eth_now].name, what,
	    strerror(error < 0 ? -error : error));
	return -EIO;
}

/* Finds the device, or makes EAL find it. */
static int eth_find_device(struct port *port, struct eth_device *d)
{
	char args[ETH_ARGS_BYTES];
	const char *bus = port->config.type == PORT_PCI ? "pci" : "vdev";
	int error;

	eth_args_name(port, d, d->name);
	eth_args(port, d->device, args);
	if (rte_eth_dev_get_port_by_name(d->name, &d->id) == 0) {
		if (port->config.type == PORT_PCI)
			return 0;
		LOG(ERR, "port %s: device %s exists already", port->config.name, d->name);
		return -EEXIST;
	}
	error = rte_eal_hotplug_add(bus, d->name, args);
	if (error == 0)
		d->added = true;
	if (error || rte_eth_dev_get_port_by_name(d->name, &d->id) != 0) {
		LOG(ERR, "port %s: %s on '%s' cannot be brought up: %s", port->config.name, d->name,
		    d->device,
		    error ? strerror(error < 0 ? -error : error) : "it is not an Ethernet device");
		return -ENODEV;
	}
	return 0;
}

/* The interface MTU, and for a device of our own what to configure it to. With two devices, the
 * smaller one. */
static int choose_mtu(struct port *port, const struct eth_device *d,
		      const struct rte_eth_dev_info *info)
{
	uint32_t wanted = port->config.mtu_bytes;
	uint32_t room = rte_pktmbuf_data_room_size(port->rx_pool) - RTE_PKTMBUF_HEADROOM -
			RTE_ETHER_HDR_LEN - VLAN_BYTES;
	uint32_t most = RTE_MIN(room, info->max_mtu ? info->max_mtu : (uint32_t)UINT16_MAX);
	int kernel = kernel_shares(port->config.type) ? kernel_mtu(d->device) : 0;

	if (kernel < 0)
		return eth_refused(port, "MTU", kernel);
	if (port->config.type == PORT_TAP)
		most = RTE_ETHER_MTU; /* DPDK 22.11's tap neither reports nor sends more */
	if (kernel && wanted && wanted != (uint32_t)kernel) {
		int error = kernel_set_mtu(d->device, wanted);

		if (error)
			return eth_refused(port, "setting the interface's MTU", error);
	} else if (kernel) {
		wanted = kernel;
		most = RTE_MAX(most, wanted); /* longer frames come cut and are counted */
	}
	if (wanted > most) {
		LOG(ERR, "port %s: MTU %u is too large, the maximum is %u", port->config.name,
		    wanted, most);
		return -ENOTSUP;
	}
	if (!wanted)
		wanted = RTE_MIN((uint32_t)MTU_FOR_ROCE_4096, most);
	/* The port's MTU is no larger than buffers can hold, whatever the kernel's is. */
	wanted = RTE_MIN(wanted, room);
	if (d == &port->eth[0] || wanted < port->mtu_bytes)
		port->mtu_bytes = (uint16_t)wanted;
	return 0;
}

/*
 * How the drivers of DPDK 22.11 read what they send. memif and af_packet: piece by piece, with
 * memcpy(), before they return. tap: likewise, but by writev(), which fails if memory has vanished,
 * and with it the burst. af_xdp: the first piece only. Of PCI: by DMA, later.
 */
static bool copies_pieces(const struct port *port, const struct rte_eth_dev_info *info)
{
	enum port_type type = port->config.type;

	return (type == PORT_MEMIF || type == PORT_AF_PACKET) &&
	       info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
}

int port_refer(struct port *port, port_payload_place *find)
{
	struct rte_eth_dev_info info;
	int error = 0;

	for (unsigned int i = 0; i < port->eths; i++)
		if (rte_eth_dev_info_get(port->eth[i].id, &info) || !copies_pieces(port, &info))
			return -ENOTSUP;
	for (unsigned int i = 0; port->eths && i < port->config.queues && !error; i++)
		error = referring_create(&port->queue[i], find);
	return error;
}

static int configure(struct port *port, const struct eth_device *d,
		     const struct rte_eth_dev_info *info)
{
	uint16_t queues = port->config.queues;
	struct rte_eth_conf conf = {0};
	int error;

	if (queues > info->max_rx_queues || queues > info->max_tx_queues) {
		LOG(ERR, "port %s: %s has no more than %u queues", port->config.name, d->name,
		    RTE_MIN(info->max_rx_queues, info->max_tx_queues));
		return -ENOTSUP;
	}
	/* Virtual drivers misreport the kernel's MTU (af_packet claims 1500 at most). */
	if (port->config.type == PORT_PCI)
		conf.rxmode.mtu = port->mtu_bytes;
	if (copies_pieces(port, info))
		conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (queues > 1 && info->flow_type_rss_offloads) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info->flow_type_rss_offloads;
	}
	error = rte_eth_dev_configure(d->id, queues, queues, &conf);
	return error ? eth_refused(port, "configuration", error) : 0;
}

static int set_up_queues(struct port *port, const struct eth_device *d,
			 const struct rte_eth_dev_info *info)
{
	uint16_t n_rx = ETH_DESCRIPTORS, n_tx = ETH_DESCRIPTORS;
	struct rte_eth_rxconf rx = info->default_rxconf;
	struct rte_eth_txconf tx = info->default_txconf;
	int error = rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &n_rx, &n_tx);

	if (error)
		return eth_refused(port, "descriptors", error);
	rx.offloads = 0;
	tx.offloads = 0;
	for (uint16_t q = 0; q < port->config.queues && !error; q++) {
		int socket = port->config.socket;

		error = rte_eth_rx_queue_setup(d->id, q, n_rx, socket, &rx, port->rx_pool);
		if (error)
			return eth_refused(port, "receive queue", error);
		error = rte_eth_tx_queue_setup(d->id, q, n_tx, socket, &tx);
		if (error)
			return eth_refused(port, "transmit queue", error);
	}
	return 0;
}

static bool wants_mac_of_its_own(const struct port *port)
{
	static const uint8_t none[6];

	return memcmp(port->config.mac, none, 6) != 0;
}

static void enable_promiscuous(struct port *port, const struct eth_device *d)
{
	int error = rte_eth_promiscuous_enable(d->id);

	if (error)
		LOG(WARNING, "port %s: not promiscuous (%s): some frames may not arrive",
		    port->config.name, strerror(-error));
}

/* Whether a kernel or device filters by MAC in front of us. */
static bool is_filtered(enum port_type type)
{
	return type == PORT_PCI || kernel_shares(type);
}

/*
 * Sets the source MAC address: on a backup the same as on the device. On tap the device's own
 * address belongs to the kernel at the other end, and on memif it is the one passed as argument:
 * both keep what choose_mac() chose.
 */
static int set_mac(struct port *port, const struct eth_device *d)
{
	struct rte_ether_addr device;
	int error;

	if (!is_filtered(port->config.type))
		return 0;
	error = rte_eth_macaddr_get(d->id, &device);
	if (error)
		return eth_refused(port, "MAC address", error);
	if (!wants_mac_of_its_own(port) && d == &port->eth[0]) {
		memcpy(port->mac, &device, 6);
		return 0;
	}
	if (memcmp(port->mac, &device, 6) == 0)
		return 0;
	/* The address of a shared interface is the kernel's: leave it, and listen to all. */
	if (kernel_shares(port->config.type) ||
	    rte_eth_dev_default_mac_addr_set(d->id, (struct rte_ether_addr *)port->mac) != 0)
		enable_promiscuous(port, d);
	return 0;
}

static void enable_allmulticast(struct port *port, struct eth_device *d)
{
	d->hears_groups = true;
	if (rte_eth_allmulticast_enable(d->id) != 0)
		enable_promiscuous(port, d);
}

/* Admits the groups joined, and those to which general queries are sent. */
static void filter_groups(struct port *port, struct eth_device *d)
{
	static const uint8_t always[2][16] = {{[10] = 0xff, [11] = 0xff, 224, 0, 0, 1},
					      {0xff, 0x02, [15] = 1}};
	const struct memberships *g = &port->groups;
	struct rte_ether_addr *mac;
	unsigned int n = 0;

	if (d->hears_groups || !is_filtered(port->config.type))
		return;
	mac = calloc(g->count + 2, sizeof(*mac));
	for (unsigned int i = 0; mac && i < 2; i++)
		multicast_mac(always[i], mac[n++].addr_bytes);
	for (unsigned int i = 0; mac && i < g->count; i++)
		if (g->entry[i].users)
			multicast_mac(g->entry[i].ip, mac[n++].addr_bytes);
	if (!mac || rte_eth_dev_set_mc_addr_list(d->id, mac, n) != 0)
		enable_allmulticast(port, d);
	free(mac);
}

static void set_group_filter(struct port *port)
{
	for (unsigned int i = 0; i < port->eths; i++)
		filter_groups(port, &port->eth[i]);
}

/* Neighbour solicitations are multicast; drivers without allmulticast become promiscuous. */
static void receive_groups(struct port *port)
{
	bool v6 = false;

	for (unsigned int i = 0; i < port->n_own; i++)
		v6 |= port->own[i].v6 && !port->kernel_has[i];
	for (unsigned int i = 0; v6 && is_filtered(port->config.type) && i < port->eths; i++)
		enable_allmulticast(port, &port->eth[i]);
}

static int eth_bring_up(struct port *port, struct eth_device *d)
{
	struct rte_eth_dev_info info;
	int error = eth_find_device(port, d);

	if (error)
		return error;
	error = rte_eth_dev_info_get(d->id, &info);
	if (error)
		return eth_refused(port, "information", error);
	snprintf(port->driver_name, sizeof(port->driver_name), "%s", info.driver_name);
	error = choose_mtu(port, d, &info);
	if (!error)
		error = configure(port, d, &info);
	if (!error)
		error = set_up_queues(port, d, &info);
	return error ? error : set_mac(port, d);
}

/* Makes the queues use these devices. The lcores may be polling. */
static void use_devices(struct port *port, unsigned int used)
{
	unsigned int first = used & 1 ? 0 : 1, second = used == 3 ? 1 : first;
	unsigned int other = port->eths > 1 ? !first : first;

	port->eth_now = first;
	for (unsigned int i = 0; i < port->config.queues; i++) {
		struct port_queue *q = &port->queue[i];

		__atomic_store_n(&q->eth_id[0], port->eth[first].id, __ATOMIC_RELAXED);
		__atomic_store_n(&q->eth_id[1], port->eth[second].id, __ATOMIC_RELAXED);
		__atomic_store_n(&q->spare_id, port->eth[other].id, __ATOMIC_RELAXED);
	}
}

static int eth_create(struct port *port)
{
	int error = 0;

	port->eth[0].device = port->config.device;
	port->eth[1].device = port->config.backup;
	port->eths = port->config.backup[0] ? 2 : 1;
	port->rx_pool = eth_rx_pool(port);
	if (!port->rx_pool)
		return -ENOMEM;
	for (unsigned int i = 0; i < port->eths && !error; i++) {
		port->eth_now = i; /* which eth_refused() names */
		error = eth_bring_up(port, &port->eth[i]);
	}
	bond_begin(&port->bond, &port->config);
	use_devices(port, port->bond.used);
	for (unsigned int i = 0; i < port->config.queues; i++) {
		port->queue[i].icrc_omitted = port->config.icrc_omitted;
		port->queue[i].has_spare = port->eths > 1;
		port->queue[i].spare_copies = port->config.bond_mode == BOND_ACTIVE_BACKUP;
	}
	return error;
}

static void eth_destroy(struct port *port)
{
	for (unsigned int i = 0; i < port->eths; i++) {
		if (!port->eth[i].added)
			continue;
		rte_eth_dev_close(port->eth[i].id);
		rte_eal_hotplug_remove(port->config.type == PORT_PCI ? "pci" : "vdev",
				       port->eth[i].name);
	}
	for (unsigned int i = 0; i < port->config.queues; i++)
		referring_destroy(&port->queue[i]);
	if (port->rx_pool != port->packet_pool)
		rte_mempool_free(port->rx_pool);
}

static bool device_is_up(const struct port *port, const struct eth_device *d)
{
	struct rte_eth_link link;

	if (kernel_shares(port->config.type))
		return kernel_is_running(d->device);
	return rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* The devices that carry traffic, by name. */
static const char *carriers(const struct port *port)
{
	return port->bond.used == 3 ? "both devices" : port->eth[port->eth_now].device;
}

/*
 * MAC address, GIDs and neighbours stay the same when traffic moves to the other device, so that
 * connections go on; what we send teaches switches where the MAC address is now.
 */
static void announce_move(struct port *port)
{
	kernel_refresh(port);
	for (unsigned int i = 0; i < port->n_own; i++)
		if (!port->kernel_has[i])
			announce(port, &port->own[i]);
	membership_announce(&port->groups, port_now_ms());
}

static void check_bond(struct port *port, unsigned int up)
{
	unsigned int changes = bond_update(&port->bond, &port->config, up, port_now_ms());

	if (!changes)
		return;
	use_devices(port, port->bond.used);
	LOG(NOTICE, "port %s: goes on over %s", port->config.name, carriers(port));
	if (!(changes & BOND_LEFT)) {
		control_count(port, PORT_COUNTER_failbacks);
		return;
	}
	control_count(port, PORT_COUNTER_failovers);
	port_relinked(port);
	announce_move(port);
}

static void check_links(struct port *port)
{
	unsigned int up = 0;

	for (unsigned int i = 0; i < port->eths; i++)
		up |= (unsigned int)device_is_up(port, &port->eth[i]) << i;
	if (port->eths > 1)
		check_bond(port, up);
	port_set_link(port, up != 0);
}

static int start_device(struct port *port, struct eth_device *d)
{
	int error = rte_eth_dev_start(d->id);

	if (error)
		return eth_refused(port, "start", error);
	/* tap passes this on to the kernel's end. */
	if (port->config.type == PORT_TAP) {
		error = rte_eth_dev_set_mtu(d->id, port->mtu_bytes);
		if (error) {
			rte_eth_dev_stop(d->id);
			return eth_refused(port, "MTU", error);
		}
	}
	pause_find(d->id, &d->pause);
	return 0;
}

static void eth_stop(struct port *port)
{
	for (unsigned int i = 0; i < port->eths; i++) {
		int error = rte_eth_dev_stop(port->eth[i].id);

		if (error)
			eth_refused(port, "stop", error);
	}
}

static int eth_start(struct port *port)
{
	for (unsigned int i = 0; i < port->eths; i++) {
		int error = start_device(port, &port->eth[i]);

		if (error)
			return error;
	}
	receive_groups(port);
	check_links(port);
	if (!port_link_is_up(port) && kernel_shares(port->config.type))
		LOG(WARNING, "port %s: interface %s is down or has no carrier", port->config.name,
		    port->config.device);
	return 0;
}

static void store(struct port *port, enum port_counter_id which, uint64_t value)
{
	__atomic_store_n(&port->control_count[which], value, __ATOMIC_RELAXED);
}

static void read_driver_counters(struct port *port)
{
	struct rte_eth_stats sum = {0}, stats;
	uint64_t paused[PAUSE_KINDS] = {0};

	for (unsigned int i = 0; i < port->eths; i++) {
		if (rte_eth_stats_get(port->eth[i].id, &stats) != 0)
			return;
		pause_add(port->eth[i].id, &port->eth[i].pause, paused);
		sum.imissed += stats.imissed;
		sum.ierrors += stats.ierrors;
		sum.rx_nombuf += stats.rx_nombuf;
		sum.oerrors += stats.oerrors;
	}
	store(port, PORT_COUNTER_driver_rx_missed, sum.imissed);
	store(port, PORT_COUNTER_driver_rx_errors, sum.ierrors);
	store(port, PORT_COUNTER_driver_rx_no_buffer, sum.rx_nombuf);
	store(port, PORT_COUNTER_driver_tx_errors, sum.oerrors);
	store(port, PORT_COUNTER_driver_rx_pause, paused[PAUSE_RX]);
	store(port, PORT_COUNTER_driver_tx_pause, paused[PAUSE_TX]);
}

static void eth_poll(struct port *port, uint64_t now_ms)
{
	if (now_ms >= port->next_link_ms) {
		port->next_link_ms =
			now_ms + (port->eths > 1 ? port->config.failover_ms : LINK_POLL_MS);
		check_links(port);
	}
	if (now_ms >= port->next_stats_ms) {
		port->next_stats_ms = now_ms + STATS_POLL_MS;
		read_driver_counters(port);
	}
}

static uint32_t device_speed(const struct eth_device *d)
{
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(d->id, &link) != 0 ||
	    link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

static uint32_t eth_speed(struct port *port)
{
	uint32_t mbps = 0;

	for (unsigned int i = 0; i < port->eths; i++)
		if (port->bond.used & 1u << i)
			mbps += device_speed(&port->eth[i]);
	return mbps;
}

const struct port_driver eth_port_driver = {
	.create = eth_create,
	.destroy = eth_destroy,
	.start = eth_start,
	.stop = eth_stop,
	.poll = eth_poll,
	.speed_mbps = eth_speed,
	.update_groups = set_group_filter,
	.rx_burst = eth_rx_burst,
	.tx_burst = eth_tx_burst,
	.tx_plain = eth_tx_plain,
};

/* ---- memif ---- */

/* A stale socket file would keep the driver from creating its own. */
static void remove_stale_socket(const struct port *port)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(port->config.device) >= sizeof(address.sun_path))
		return; /* the driver will refuse it */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	strcpy(address.sun_path, port->config.device);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno == ECONNREFUSED)
		unlink(port->config.device);
	close(fd);
}

static int memif_create(struct port *port)
{
	int error = memif_gate_join(port);

	if (!error && port->config.memif_server && !memif_listener_kept(port->config.device))
		remove_stale_socket(port);
	if (!error)
		error = eth_create(port);
	if (error || !port->config.memif_server)
		return error;
	error = memif_listener_keep(port->config.device);
	return error ? eth_refused(port, "listener", error) : 0;
}

static void memif_destroy(struct port *port)
{
	memif_gate_shut();
	eth_destroy(port);
	memif_gate_leave(port);
}

/* A client starts only if its server answers; until then starting is retried periodically. */
static void memif_try(struct port *port)
{
	port->eth_waiting = rte_eth_dev_start(port->eth[0].id) != 0;
}

/* When to give up on memif_try(); the longer time lets a handshake complete. */
static uint64_t next_kick(const struct port *port, uint64_t now_ms)
{
	enum { CONNECT_MS = 100, HANDSHAKE_MS = 2000 };

	return now_ms + (port->eth_waiting ? CONNECT_MS : HANDSHAKE_MS);
}

static int memif_start(struct port *port)
{
	memif_gate_shut();
	memif_exclude(port);
	memif_try(port);
	memif_admit(port);
	port->next_kick_ms = next_kick(port, port_now_ms());
	if (!port->eth_waiting)
		return 0;
	if (port->config.memif_server)
		return eth_refused(port, "start", EIO);
	LOG(NOTICE, "port %s: waiting for a server at %s", port->config.name, port->config.device);
	return 0;
}

static void memif_stop(struct port *port)
{
	memif_gate_shut();
	if (!port->eth_waiting)
		eth_stop(port);
	port->eth_waiting = false;
}

/* A client without a server (any more): stop what is left and reconnect. */
static void memif_reconnect(struct port *port)
{
	memif_exclude(port);
	if (!port->eth_waiting)
		eth_stop(port);
	memif_try(port);
	memif_admit(port);
}

static void memif_poll(struct port *port, uint64_t now_ms)
{
	bool gone;

	if (!memif_gate_poll(now_ms))
		return;
	eth_poll(port, now_ms);
	gone = !port->config.memif_server && !port_link_is_up(port);
	if (gone && now_ms < port->next_kick_ms)
		return;
	if (gone)
		memif_reconnect(port);
	port->next_kick_ms = next_kick(port, now_ms);
}

/* The speed of memory, not of a wire; found without the driver, whatever the gate does. */
static uint32_t memif_speed(struct port *port)
{
	(void)port;
	return 100000;
}

const struct port_driver memif_port_driver = {
	.create = memif_create,
	.destroy = memif_destroy,
	.start = memif_start,
	.stop = memif_stop,
	.poll = memif_poll,
	.speed_mbps = memif_speed,
	.rx_burst = memif_rx_burst,
	.tx_burst = memif_tx_burst,
	.tx_plain = eth_tx_plain,
};
