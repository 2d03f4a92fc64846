/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to neighbour discovery (RFC 4861) and ICMPv6 echo (RFC 4443). Everything received is
 * checked before use and nothing malformed draws an answer. Control thread. */
#include <string.h>

#include <rte_ip.h>

#include "control.h"
#include "nd.h"

/* A received ICMPv6 message, checked for lengths and checksum. */
struct message {
	const struct rte_ether_hdr *ether;
	const struct rte_ipv6_hdr *ip;
	const struct icmpv6_header *icmp;
	uint16_t bytes; /* from the ICMPv6 header on */
};

enum { ND_FIXED_BYTES = sizeof(struct icmpv6_header) + 16 };

static const uint8_t *nd_target(const struct message *msg)
{
	return (const uint8_t *)(msg->icmp + 1);
}

/*
 * The link-layer address option of `type` behind the target, or NULL. *sane: false if an option has
 * length 0 or exceeds the message, which makes all of it invalid.
 */
static const uint8_t *find_mac(const struct message *msg, uint8_t type, bool *sane)
{
	const uint8_t *p = (const uint8_t *)msg->icmp + ND_FIXED_BYTES;
	uint32_t left = msg->bytes - ND_FIXED_BYTES;
	const uint8_t *mac = NULL;

	*sane = true;
	while (left > 0) {
		uint32_t bytes = left >= 2 ? p[1] * 8u : 0;

		if (bytes == 0 || bytes > left) {
			*sane = false;
			return NULL;
		}
		if (p[0] == type && bytes == 8)
			mac = p + 2;
		p += bytes;
		left -= bytes;
	}
	return mac;
}

static bool is_unspecified(const uint8_t ip[16])
{
	static const uint8_t zero[16];

	return memcmp(ip, zero, 16) == 0;
}

/* The checks of RFC 4861 7.1.1 and 7.1.2 that both messages share. */
static bool nd_is_sane(const struct message *msg)
{
	return msg->ip->hop_limits == ND_HOP_LIMIT && msg->icmp->code == 0 &&
	       msg->bytes >= ND_FIXED_BYTES && !ip_is_multicast(nd_target(msg)) &&
	       !ip_is_multicast(msg->ip->src_addr);
}

static void send_advertisement(struct port *port, const struct message *msg)
{
	bool probe = is_unspecified(msg->ip->src_addr); /* duplicate address detection */

	if (advertise(port, nd_target(msg), probe ? NULL : msg->ip->src_addr,
		      msg->ether->src_addr.addr_bytes))
		control_count(port, PORT_COUNTER_nd_answered);
}

static void take_solicitation(struct port *port, const struct message *msg)
{
	bool sane;
	const uint8_t *mac = find_mac(msg, ND_OPTION_SOURCE_MAC, &sane);
	bool probe = is_unspecified(msg->ip->src_addr);
	int own;

	if (!sane || (probe && (mac || !ip_is_multicast(msg->ip->dst_addr)))) {
		control_count(port, PORT_COUNTER_drop_nd_malformed);
		return;
	}
	own = route_own_address(port, nd_target(msg));
	if (own < 0) {
		control_count(port, PORT_COUNTER_drop_control_other);
		return;
	}
	if (mac && !probe)
		learn(port, msg->ip->src_addr, mac, true);
	if (port->kernel_has[own])
		control_count(port, PORT_COUNTER_left_to_kernel);
	else
		send_advertisement(port, msg);
}

static void take_advertisement(struct port *port, const struct message *msg)
{
	bool sane;
	const uint8_t *mac = find_mac(msg, ND_OPTION_TARGET_MAC, &sane);

	if (!sane || (ip_is_multicast(msg->ip->dst_addr) && (msg->icmp->flags & ND_SOLICITED))) {
		control_count(port, PORT_COUNTER_drop_nd_malformed);
		return;
	}
	/* An answer to a unicast question may omit the option; then the frame's source is the
	 * MAC. */
	learn(port, nd_target(msg), mac ? mac : msg->ether->src_addr.addr_bytes, false);
}

static void v6_send_echo_reply(struct port *port, const struct message *msg)
{
	uint16_t total = sizeof(*msg->ip) + msg->bytes;
	struct rte_ipv6_hdr *ip;
	struct icmpv6_header *icmp;
	void *l3;
	struct rte_mbuf *m = control_frame(port, msg->ether->src_addr.addr_bytes,
					   RTE_ETHER_TYPE_IPV6, total, &l3);

	if (!m)
		return;
	ip = l3;
	memcpy(ip, msg->ip, total);
	memcpy(ip->src_addr, msg->ip->dst_addr, 16);
	memcpy(ip->dst_addr, msg->ip->src_addr, 16);
	ip->hop_limits = 64;
	icmp = (struct icmpv6_header *)(ip + 1);
	icmp->type = ICMPV6_ECHO_REPLY;
	icmp->checksum = 0;
	icmp->checksum = rte_ipv6_udptcp_cksum(ip, icmp);
	control_send(port, m);
	control_count(port, PORT_COUNTER_ping_answered);
}

static void take_echo_request(struct port *port, const struct message *msg)
{
	int own = route_own_address(port, msg->ip->dst_addr);

	if (own < 0 || msg->icmp->code != 0 || ip_is_multicast(msg->ip->src_addr) ||
	    is_unspecified(msg->ip->src_addr))
		control_count(port, PORT_COUNTER_drop_control_other);
	else if (port->kernel_has[own])
		control_count(port, PORT_COUNTER_left_to_kernel);
	else
		v6_send_echo_reply(port, msg);
}

static bool icmpv6_parse(struct message *msg, uint32_t bytes)
{
	uint32_t sum;

	if (bytes < sizeof(*msg->ip) + sizeof(*msg->icmp))
		return false;
	msg->bytes = rte_be_to_cpu_16(msg->ip->payload_len);
	if (msg->bytes < sizeof(*msg->icmp) || sizeof(*msg->ip) + msg->bytes > bytes)
		return false;
	/* Sum over pseudo header and message, checksum included: all ones if nothing is wrong. */
	sum = rte_raw_cksum(msg->icmp, msg->bytes);
	sum += rte_ipv6_phdr_cksum(msg->ip, 0);
	return (uint16_t)((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

void answer_icmpv6(struct port *port, const struct rte_ether_hdr *ether, const uint8_t *l3,
		   uint32_t bytes)
{
	struct message msg = {
		.ether = ether,
		.ip = (const struct rte_ipv6_hdr *)l3,
		.icmp = (const struct icmpv6_header *)(l3 + sizeof(struct rte_ipv6_hdr)),
	};
	bool nd;

	if (!icmpv6_parse(&msg, bytes)) {
		control_count(port, PORT_COUNTER_drop_icmp_malformed);
		return;
	}
	nd = msg.icmp->type == ND_SOLICITATION || msg.icmp->type == ND_ADVERTISEMENT;
	if (nd && !nd_is_sane(&msg))
		control_count(port, PORT_COUNTER_drop_nd_malformed);
	else if (msg.icmp->type == ND_SOLICITATION)
		take_solicitation(port, &msg);
	else if (msg.icmp->type == ND_ADVERTISEMENT)
		take_advertisement(port, &msg);
	else if (msg.icmp->type == ICMPV6_ECHO_REQUEST)
		take_echo_request(port, &msg);
	else
		control_count(port, PORT_COUNTER_drop_control_other);
}
