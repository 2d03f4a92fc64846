/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_ND_H
#define PMD_GLUE_ND_H
/* Neighbour discovery as it lies on the wire (RFC 4861 4.3, 4.4). Control thread. */
#include <stdint.h>
#include <string.h>

#include <rte_ip.h>

enum {
	ICMPV6_ECHO_REQUEST = 128,
	ICMPV6_ECHO_REPLY = 129,
	ND_SOLICITATION = 135,
	ND_ADVERTISEMENT = 136,
	ND_OPTION_SOURCE_MAC = 1,
	ND_OPTION_TARGET_MAC = 2,
	ND_HOP_LIMIT = 255, /* proves that it was not forwarded */
	ND_SOLICITED = 0x40,
	ND_OVERRIDE = 0x20,
};

struct icmpv6_header {
	uint8_t type;
	uint8_t code;
	uint16_t checksum; /* network order */
	uint8_t flags;	   /* advertisement: router, solicited, override */
	uint8_t reserved[3];
} __attribute__((packed));

/* A solicitation or advertisement with one link-layer address option, from the IPv6 header on. */
struct nd_frame {
	struct rte_ipv6_hdr ip;
	struct icmpv6_header icmp;
	uint8_t target[16];
	uint8_t option_type;
	uint8_t option_units; /* of 8 bytes */
	uint8_t mac[6];
} __attribute__((packed));

_Static_assert(sizeof(struct nd_frame) == 72, "as on the wire");

/* Fills in what all of them share, checksum last. */
static inline void nd_finish(struct nd_frame *nd, const uint8_t source[16],
			     const uint8_t destination[16], const uint8_t mac[6])
{
	nd->ip.vtc_flow = rte_cpu_to_be_32(0x60000000);
	nd->ip.payload_len = rte_cpu_to_be_16(sizeof(*nd) - sizeof(nd->ip));
	nd->ip.proto = IPPROTO_ICMPV6;
	nd->ip.hop_limits = ND_HOP_LIMIT;
	memcpy(nd->ip.src_addr, source, 16);
	memcpy(nd->ip.dst_addr, destination, 16);
	nd->option_units = 1;
	memcpy(nd->mac, mac, 6);
	nd->icmp.checksum = 0;
	nd->icmp.checksum = rte_ipv6_udptcp_cksum(&nd->ip, &nd->icmp);
}

#endif
