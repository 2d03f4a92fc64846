/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_resolve, its requests on the wire, and the path of the control thread's frames to the data
 * path. Control thread.
 */
#include <errno.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_ip.h>

#include "control.h"
#include "nd.h"

struct rte_mbuf *control_frame(struct port *port, const uint8_t dst_mac[6], uint16_t type,
			       uint16_t bytes, void **l3)
{
	uint16_t vlan = port->config.vlan;
	uint16_t l2 = vlan ? RTE_ETHER_HDR_LEN + sizeof(struct rte_vlan_hdr) : RTE_ETHER_HDR_LEN;
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->packet_pool);
	struct rte_ether_hdr *ether;

	if (!m || !rte_pktmbuf_append(m, l2 + bytes)) {
		rte_pktmbuf_free(m);
		control_count(port, PORT_COUNTER_control_no_buffer);
		return NULL;
	}
	ether = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	memset(ether, 0, l2 + bytes);
	memcpy(&ether->dst_addr, dst_mac, 6);
	memcpy(&ether->src_addr, port->mac, 6);
	ether->ether_type = rte_cpu_to_be_16(vlan ? RTE_ETHER_TYPE_VLAN : type);
	if (vlan) {
		struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(ether + 1);

		tag->vlan_tci = rte_cpu_to_be_16(vlan);
		tag->eth_proto = rte_cpu_to_be_16(type);
	}
	*l3 = (uint8_t *)ether + l2;
	return m;
}

void control_send(struct port *port, struct rte_mbuf *m)
{
	if (rte_ring_sp_enqueue(port->queue[0].from_control, m) == 0)
		return;
	control_count(port, PORT_COUNTER_control_no_buffer);
	rte_pktmbuf_free(m);
}

/* To everybody; an announcement (RFC 5227 3) if ip is the source's own. */
static void ask_arp(struct port *port, const uint8_t ip[16], const struct port_address *source)
{
	static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct rte_arp_hdr *arp;
	void *l3;
	struct rte_mbuf *m = control_frame(port, everybody, RTE_ETHER_TYPE_ARP, sizeof(*arp), &l3);

	if (!m)
		return;
	arp = l3;
	arp->arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = 6;
	arp->arp_plen = 4;
	arp->arp_opcode = rte_cpu_to_be_16(RTE_ARP_OP_REQUEST);
	memcpy(&arp->arp_data.arp_sha, port->mac, 6);
	memcpy(&arp->arp_data.arp_sip, source->ip + 12, 4);
	memcpy(&arp->arp_data.arp_tip, ip + 12, 4);
	control_send(port, m);
}

static void ask_nd(struct port *port, const uint8_t ip[16], const struct port_address *source)
{
	/* Solicited-node group of the target (RFC 4291 2.7.1). */
	uint8_t group[16] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
	uint8_t mac[6];
	struct nd_frame *nd;
	void *l3;
	struct rte_mbuf *m;

	memcpy(group + 13, ip + 13, 3);
	multicast_mac(group, mac);
	m = control_frame(port, mac, RTE_ETHER_TYPE_IPV6, sizeof(*nd), &l3);
	if (!m)
		return;
	nd = l3;
	nd->icmp.type = ND_SOLICITATION;
	memcpy(nd->target, ip, 16);
	nd->option_type = ND_OPTION_SOURCE_MAC;
	nd_finish(nd, source->ip, group, port->mac);
	control_send(port, m);
}

void ask_for(struct port *port, const uint8_t ip[16])
{
	const struct port_address *source = route_source(port, ip);

	if (!source)
		return;
	control_count(port, PORT_COUNTER_neighbour_asked);
	if (source->v6)
		ask_nd(port, ip, source);
	else
		ask_arp(port, ip, source);
}

bool advertise(struct port *port, const uint8_t ip[16], const uint8_t to[16], const uint8_t mac[6])
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	uint8_t all_nodes_mac[6];
	struct nd_frame *nd;
	void *l3;
	struct rte_mbuf *m;

	multicast_mac(all_nodes, all_nodes_mac);
	m = control_frame(port, to ? mac : all_nodes_mac, RTE_ETHER_TYPE_IPV6, sizeof(*nd), &l3);
	if (!m)
		return false;
	nd = l3;
	nd->icmp.type = ND_ADVERTISEMENT;
	nd->icmp.flags = ND_OVERRIDE | (to ? ND_SOLICITED : 0);
	memcpy(nd->target, ip, 16);
	nd->option_type = ND_OPTION_TARGET_MAC;
	nd_finish(nd, ip, to ? to : all_nodes, port->mac);
	control_send(port, m);
	return true;
}

void announce(struct port *port, const struct port_address *own)
{
	control_count(port, PORT_COUNTER_announced);
	if (own->v6)
		advertise(port, own->ip, NULL, NULL);
	else
		ask_arp(port, own->ip, own);
}

void learn(struct port *port, const uint8_t ip[16], const uint8_t mac[6], bool create)
{
	static const uint8_t zero[6];

	if ((mac[0] & 1) || memcmp(mac, zero, 6) == 0 || memcmp(mac, port->mac, 6) == 0)
		return;
	if (ip_is_multicast(ip) || route_own_address(port, ip) >= 0)
		return;
	if (neighbour_learn(&port->neighbours, ip, mac, create && route_is_on_link(port, ip),
			    port_now_ms()))
		control_count(port, PORT_COUNTER_neighbour_learnt);
}

/* The next hop to resolve for ip, which is neither ours nor a group; NULL: no route. */
static const uint8_t *whom_to_ask(const struct port *port, const uint8_t ip[16])
{
	const uint8_t *hop = route_next_hop(port, ip);

	return hop && route_own_address(port, hop) < 0 ? hop : NULL;
}

int port_resolve(struct port *port, const uint8_t ip[16], uint8_t mac_out[6])
{
	const uint8_t *hop;
	int result;

	if (route_own_address(port, ip) >= 0) {
		memcpy(mac_out, port->mac, 6);
		return 0;
	}
	if (ip_is_multicast(ip)) {
		multicast_mac(ip, mac_out);
		return 0;
	}
	hop = whom_to_ask(port, ip);
	if (!hop)
		return -EHOSTUNREACH;
	result = neighbour_find(&port->neighbours, hop, port_now_ms(), mac_out);
	if (result == -ENOSPC) {
		control_count(port, PORT_COUNTER_neighbour_full);
		return -EAGAIN;
	}
	return result;
}

bool port_would_ask(struct port *port, const uint8_t ip[16])
{
	const uint8_t *hop;

	if (route_own_address(port, ip) >= 0 || ip_is_multicast(ip))
		return false;
	hop = whom_to_ask(port, ip);
	return hop && !neighbour_has(&port->neighbours, hop);
}
