/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to ARP (RFC 826) and ICMP echo (RFC 792). Everything received is checked before use and
 * nothing malformed draws an answer. Control thread. */
#include <string.h>

#include <rte_arp.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "control.h"

static void send_arp_reply(struct port *port, const struct rte_arp_hdr *asked)
{
	const uint8_t *mac = asked->arp_data.arp_sha.addr_bytes;
	struct rte_arp_hdr *arp;
	void *l3;
	struct rte_mbuf *m = control_frame(port, mac, RTE_ETHER_TYPE_ARP, sizeof(*arp), &l3);

	if (!m)
		return;
	arp = l3;
	*arp = *asked;
	arp->arp_opcode = rte_cpu_to_be_16(RTE_ARP_OP_REPLY);
	memcpy(&arp->arp_data.arp_sha, port->mac, 6);
	arp->arp_data.arp_sip = asked->arp_data.arp_tip;
	arp->arp_data.arp_tha = asked->arp_data.arp_sha;
	arp->arp_data.arp_tip = asked->arp_data.arp_sip;
	control_send(port, m);
	control_count(port, PORT_COUNTER_arp_answered);
}

static bool arp_is_sane(const struct rte_ether_hdr *ether, const struct rte_arp_hdr *arp)
{
	uint16_t op = rte_be_to_cpu_16(arp->arp_opcode);

	return arp->arp_hardware == rte_cpu_to_be_16(RTE_ARP_HRD_ETHER) &&
	       arp->arp_protocol == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) && arp->arp_hlen == 6 &&
	       arp->arp_plen == 4 && (op == RTE_ARP_OP_REQUEST || op == RTE_ARP_OP_REPLY) &&
	       rte_is_valid_assigned_ether_addr(&arp->arp_data.arp_sha) &&
	       rte_is_same_ether_addr(&arp->arp_data.arp_sha, &ether->src_addr);
}

void answer_arp(struct port *port, const struct rte_ether_hdr *ether, const uint8_t *l3,
		uint32_t bytes)
{
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)l3;
	uint8_t sender[16], target[16];
	int own;

	if (bytes < sizeof(*arp) || !arp_is_sane(ether, arp)) {
		control_count(port, PORT_COUNTER_drop_arp_malformed);
		return;
	}
	if (memcmp(&arp->arp_data.arp_sha, port->mac, 6) == 0)
		return; /* the kernel's own, seen through a shared interface */
	ip_map_v4(&arp->arp_data.arp_sip, sender);
	ip_map_v4(&arp->arp_data.arp_tip, target);
	own = route_own_address(port, target);
	if (arp->arp_data.arp_sip != 0)
		learn(port, sender, arp->arp_data.arp_sha.addr_bytes, own >= 0);
	if (arp->arp_opcode != rte_cpu_to_be_16(RTE_ARP_OP_REQUEST))
		return;
	if (own < 0)
		control_count(port, PORT_COUNTER_drop_control_other);
	else if (port->kernel_has[own])
		control_count(port, PORT_COUNTER_left_to_kernel);
	else
		send_arp_reply(port, arp);
}

/* ip: a whole, valid echo request of `total` bytes. */
static void v4_send_echo_reply(struct port *port, const struct rte_ether_hdr *ether,
			       const struct rte_ipv4_hdr *asked, uint16_t total)
{
	struct rte_ipv4_hdr *ip;
	struct rte_icmp_hdr *icmp;
	void *l3;
	struct rte_mbuf *m =
		control_frame(port, ether->src_addr.addr_bytes, RTE_ETHER_TYPE_IPV4, total, &l3);

	if (!m)
		return;
	ip = l3;
	memcpy(ip, asked, total);
	ip->src_addr = asked->dst_addr;
	ip->dst_addr = asked->src_addr;
	ip->time_to_live = 64;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	icmp = (struct rte_icmp_hdr *)(ip + 1);
	icmp->icmp_type = RTE_IP_ICMP_ECHO_REPLY;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = ~rte_raw_cksum(icmp, total - sizeof(*ip));
	control_send(port, m);
	control_count(port, PORT_COUNTER_ping_answered);
}

/* Length of the datagram if header and ICMP checksum hold and it is no fragment; else 0. */
static uint16_t check_icmp(const struct rte_ipv4_hdr *ip, uint32_t bytes)
{
	uint16_t total;

	if (bytes < sizeof(*ip) + sizeof(struct rte_icmp_hdr) || ip->version_ihl != 0x45)
		return 0;
	total = rte_be_to_cpu_16(ip->total_length);
	if (total > bytes || total < sizeof(*ip) + sizeof(struct rte_icmp_hdr))
		return 0;
	if (ip->fragment_offset & rte_cpu_to_be_16(0x3fff))
		return 0;
	if (rte_raw_cksum(ip, sizeof(*ip)) != 0xffff)
		return 0;
	return rte_raw_cksum(ip + 1, total - sizeof(*ip)) == 0xffff ? total : 0;
}

void answer_icmp(struct port *port, const struct rte_ether_hdr *ether, const uint8_t *l3,
		 uint32_t bytes)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)l3;
	const struct rte_icmp_hdr *icmp = (const struct rte_icmp_hdr *)(ip + 1);
	uint16_t total = check_icmp(ip, bytes);
	uint8_t target[16];
	int own;

	if (total == 0) {
		control_count(port, PORT_COUNTER_drop_icmp_malformed);
		return;
	}
	ip_map_v4(&ip->dst_addr, target);
	own = route_own_address(port, target);
	if (own < 0 || icmp->icmp_type != RTE_IP_ICMP_ECHO_REQUEST || icmp->icmp_code != 0)
		control_count(port, PORT_COUNTER_drop_control_other);
	else if (port->kernel_has[own])
		control_count(port, PORT_COUNTER_left_to_kernel);
	else
		v4_send_echo_reply(port, ether, ip, total);
}
