/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_CLASSIFY_H
#define PMD_GLUE_CLASSIFY_H
/*
 * Classifies received frames by comparing a handful of fields, since each RoCE frame passes here.
 * The result is the name of a counter: rx_roce is for the HCA, rx_arp, rx_icmp, rx_icmpv6, rx_igmp
 * and rx_mld for the control thread, the rest are drops. Reads nothing beyond data_len; never
 * writes. What follows the UDP header of a RoCE frame is the HCA's business. Queue's lcore.
 */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "port_internal.h"

enum {
	ROCE_UDP_PORT = 4791,
	IP_UDP = 17,
	IP_HOP_BY_HOP = 0,
	IP_ICMP = 1,
	IP_IGMP = 2,
	IP_ICMPV6 = 58,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	VLAN_BYTES = 4,
	ROCE_BYTES_MIN = 8 + 12 + 4, /* UDP, BTH, ICRC */
};

#define MAC_MASK 0x0000ffffffffffffu

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The first 6 bytes at p as a little-endian number; 8 must be readable. */
static inline uint64_t load_mac(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return rte_le_to_cpu_64(v) & MAC_MASK;
}

static inline bool filter_has_v4(const struct port_filter *f, uint32_t ip_be)
{
	for (unsigned int i = 0; i < f->n_v4; i++) {
		if (f->v4_be[i] == ip_be)
			return true;
	}
	return (ip_be & rte_cpu_to_be_32(0xf0000000)) == rte_cpu_to_be_32(0xe0000000);
}

static inline bool filter_has_v6(const struct port_filter *f, const uint8_t *ip)
{
	for (unsigned int i = 0; i < f->n_v6; i++) {
		if (memcmp(f->v6[i], ip, 16) == 0)
			return true;
	}
	return ip[0] == 0xff;
}

/* ip: IPv4 header with `room` bytes from there to the end of the frame. */
static inline enum port_counter_id classify_v4(const struct port_filter *f, const uint8_t *ip,
					       uint32_t room)
{
	uint16_t total;

	if (unlikely(room < IPV4_BYTES + 8))
		return PORT_COUNTER_drop_rx_short;
	total = rte_be_to_cpu_16(load16(ip + 2));
	if (unlikely(ip[9] != IP_UDP)) {
		if (ip[9] != IP_ICMP)
			return ip[9] == IP_IGMP ? PORT_COUNTER_rx_igmp : PORT_COUNTER_drop_rx_other;
		return filter_has_v4(f, load32(ip + 16)) ? PORT_COUNTER_rx_icmp
							 : PORT_COUNTER_drop_rx_not_our_ip;
	}
	if (unlikely(ip[0] != 0x45 || (load16(ip + 6) & rte_cpu_to_be_16(0x3fff)) != 0))
		return PORT_COUNTER_drop_rx_fragment;
	if (unlikely(load16(ip + IPV4_BYTES + 2) != rte_cpu_to_be_16(ROCE_UDP_PORT)))
		return PORT_COUNTER_drop_rx_other;
	if (unlikely(total > room || total < IPV4_BYTES + ROCE_BYTES_MIN))
		return PORT_COUNTER_drop_rx_short;
	return likely(filter_has_v4(f, load32(ip + 16))) ? PORT_COUNTER_rx_roce
							 : PORT_COUNTER_drop_rx_not_our_ip;
}

static inline enum port_counter_id classify_v6(const struct port_filter *f, const uint8_t *ip,
					       uint32_t room)
{
	uint16_t payload;

	if (unlikely(room < IPV6_BYTES + 8))
		return PORT_COUNTER_drop_rx_short;
	payload = rte_be_to_cpu_16(load16(ip + 4));
	if (unlikely(ip[6] != IP_UDP)) {
		if (ip[6] == IP_HOP_BY_HOP && ip[24] == 0xff)
			return PORT_COUNTER_rx_mld;
		if (ip[6] != IP_ICMPV6)
			return PORT_COUNTER_drop_rx_other;
		return filter_has_v6(f, ip + 24) ? PORT_COUNTER_rx_icmpv6
						 : PORT_COUNTER_drop_rx_not_our_ip;
	}
	if (unlikely(load16(ip + IPV6_BYTES + 2) != rte_cpu_to_be_16(ROCE_UDP_PORT)))
		return PORT_COUNTER_drop_rx_other;
	if (unlikely(payload + (uint32_t)IPV6_BYTES > room || payload < ROCE_BYTES_MIN))
		return PORT_COUNTER_drop_rx_short;
	return likely(filter_has_v6(f, ip + 24)) ? PORT_COUNTER_rx_roce
						 : PORT_COUNTER_drop_rx_not_our_ip;
}

static inline enum port_counter_id classify(const struct port_filter *f, const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t l2 = RTE_ETHER_HDR_LEN;
	uint16_t type;

	if (unlikely(m->nb_segs != 1))
		return PORT_COUNTER_drop_rx_segments;
	if (unlikely(m->data_len < RTE_ETHER_HDR_LEN + VLAN_BYTES))
		return PORT_COUNTER_drop_rx_short;
	if (unlikely(load_mac(p) != f->mac && !(p[0] & 1)))
		return PORT_COUNTER_drop_rx_not_our_mac;
	type = load16(p + 12);
	if (unlikely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))) {
		/* VLAN id 0 is only a priority tag: treat as untagged. */
		if ((load16(p + 14) & rte_cpu_to_be_16(0x0fff)) != f->vlan_be)
			return PORT_COUNTER_drop_rx_not_our_vlan;
		type = load16(p + 16);
		l2 += VLAN_BYTES;
	} else if (unlikely(f->vlan_be)) {
		return PORT_COUNTER_drop_rx_not_our_vlan;
	}
	if (likely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)))
		return classify_v4(f, p + l2, m->data_len - l2);
	if (likely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)))
		return classify_v6(f, p + l2, m->data_len - l2);
	return type == rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP) ? PORT_COUNTER_rx_arp
							    : PORT_COUNTER_drop_rx_other;
}

/* Offset of the UDP header of a frame whose IP header has the usual length; 0: not UDP. */
static inline unsigned udp_offset(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned l3 = RTE_ETHER_HDR_LEN;
	uint16_t type;

	if (m->data_len < RTE_ETHER_HDR_LEN + VLAN_BYTES + IPV4_BYTES)
		return 0;
	type = load16(frame + 12);
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN)) {
		type = load16(frame + 16);
		l3 += VLAN_BYTES;
	}
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return frame[l3 + 9] == IP_UDP ? l3 + IPV4_BYTES : 0;
	return type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) && frame[l3 + 6] == IP_UDP
		       ? l3 + IPV6_BYTES
		       : 0;
}

/*
 * Did the sender put zeros in place of this RoCE frame's ICRC? A real ICRC is 0 once in 2^32
 * frames, and is not checked then.
 */
static inline bool lacks_icrc(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned udp = udp_offset(m);

	return udp && udp + ROCE_BYTES_MIN <= m->data_len &&
	       load16(frame + udp + 2) == rte_cpu_to_be_16(ROCE_UDP_PORT) &&
	       udp + rte_be_to_cpu_16(load16(frame + udp + 4)) == m->data_len &&
	       load32(frame + m->data_len - sizeof(uint32_t)) == 0;
}

#endif
