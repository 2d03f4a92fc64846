/* SPDX-License-Identifier: BSD-3-Clause */
/* MLDv2 (RFC 3810): reports as a Linux host sends them, queries of both versions. Control thread.
 */
#include <string.h>

#include <rte_ip.h>

#include "control.h"
#include "groups.h"
#include "nd.h"

enum {
	MLD_QUERY = 130,
	MLD_V2_REPORT = 143,
	MLD_HEADER_BYTES = 8, /* up to where the group of a query or the records begin */
	MLD_V1_QUERY_BYTES = 24,
	MLD_V2_QUERY_BYTES = 28,
	OPTION_ROUTER_ALERT = 5,
	OPTION_PAD1 = 0,
};

struct mld_record {
	uint8_t type;
	uint8_t aux_words;
	uint16_t sources;
	uint8_t group[16];
} __attribute__((packed));

/* From the IPv6 header on. */
struct mld_report {
	struct rte_ipv6_hdr ip;
	uint8_t hop_by_hop[8]; /* router alert (RFC 2711) and two bytes of padding */
	uint8_t type;
	uint8_t code;
	uint16_t checksum;
	uint16_t reserved;
	uint16_t records_be;
	struct mld_record record[];
} __attribute__((packed));

_Static_assert(sizeof(struct mld_report) == 56 && sizeof(struct mld_record) == 20,
	       "as on the wire");

/* The sum over pseudo header and message; 0xffff if the message has its checksum in it. */
static uint16_t icmpv6_sum(const struct rte_ipv6_hdr *ip, const void *icmp, uint16_t bytes)
{
	struct rte_ipv6_hdr pseudo = *ip;
	uint32_t sum;

	pseudo.proto = IPPROTO_ICMPV6;
	pseudo.payload_len = rte_cpu_to_be_16(bytes);
	sum = rte_raw_cksum(icmp, bytes);
	sum += rte_ipv6_phdr_cksum(&pseudo, 0);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void mld_finish(struct mld_report *r, uint16_t total, const uint8_t from[16],
		       const uint8_t to[16])
{
	static const uint8_t router_alert[8] = {
		IPPROTO_ICMPV6, 0, OPTION_ROUTER_ALERT, 2, 0, 0, 1, 0};

	r->ip.vtc_flow = rte_cpu_to_be_32(0x60000000);
	r->ip.payload_len = rte_cpu_to_be_16(total - sizeof(r->ip));
	r->ip.proto = IPPROTO_HOPOPTS;
	r->ip.hop_limits = 1;
	memcpy(r->ip.src_addr, from, 16);
	memcpy(r->ip.dst_addr, to, 16);
	memcpy(r->hop_by_hop, router_alert, sizeof(router_alert));
	r->type = MLD_V2_REPORT;
	r->checksum = ~icmpv6_sum(&r->ip, &r->type, total - sizeof(r->ip) - sizeof(router_alert));
}

void mld_report(struct port *port, const struct membership_record *records, unsigned int n)
{
	static const uint8_t to[16] = {0xff, 0x02, [15] = 0x16};
	uint16_t total = sizeof(struct mld_report) + n * sizeof(struct mld_record);
	struct mld_report *r;
	struct rte_mbuf *m;
	uint8_t mac[6];
	void *l3;

	multicast_mac(to, mac);
	m = control_frame(port, mac, RTE_ETHER_TYPE_IPV6, total, &l3);
	if (!m)
		return;
	r = l3;
	r->records_be = rte_cpu_to_be_16(n);
	for (unsigned int i = 0; i < n; i++) {
		r->record[i].type = records[i].type;
		memcpy(r->record[i].group, records[i].ip, 16);
	}
	mld_finish(r, total, port->own[0].ip, to); /* the link-local address */
	control_send(port, m);
	control_count(port, PORT_COUNTER_reports_sent);
}

/* Does a hop-by-hop header of `bytes` bytes contain the router alert option? RFC 3810 5.1.14
 * requires it of queries. */
static bool alerts(const uint8_t *options, uint32_t bytes)
{
	for (uint32_t i = 2; i < bytes;) {
		if (options[i] == OPTION_PAD1) {
			i++;
			continue;
		}
		if (options[i] == OPTION_ROUTER_ALERT)
			return true;
		if (i + 1 >= bytes)
			break;
		i += 2u + options[i + 1];
	}
	return false;
}

/* The ICMPv6 message behind a hop-by-hop header; NULL: it is none, or lengths or checksum are
 * wrong. */
static const uint8_t *mld_parse(const uint8_t *l3, uint32_t bytes, uint16_t *icmp_bytes)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)l3;
	const uint8_t *options = l3 + sizeof(*ip);
	uint32_t payload, header;

	if (bytes < sizeof(*ip) + 8)
		return NULL;
	payload = rte_be_to_cpu_16(ip->payload_len);
	header = (options[1] + 1u) * 8;
	if (sizeof(*ip) + payload > bytes || payload < header + MLD_HEADER_BYTES ||
	    options[0] != IPPROTO_ICMPV6 || !alerts(options, header))
		return NULL;
	*icmp_bytes = payload - header;
	return icmpv6_sum(ip, options + header, *icmp_bytes) == 0xffff ? options + header : NULL;
}

static uint32_t mld_delay_ms(const uint8_t *query, bool v2)
{
	uint32_t code = (uint32_t)query[4] << 8 | query[5];

	if (v2 && code >= 0x8000) /* RFC 3810 5.1.3 */
		code = ((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3);
	return code;
}

static bool query_is_sane(const struct rte_ipv6_hdr *ip, uint16_t bytes)
{
	return ip_is_link_local(ip->src_addr) && ip->hop_limits == 1 &&
	       (bytes == MLD_V1_QUERY_BYTES || bytes >= MLD_V2_QUERY_BYTES);
}

void take_mld(struct port *port, const uint8_t *l3, uint32_t bytes)
{
	static const uint8_t everything[16];
	uint16_t n;
	const uint8_t *query = mld_parse(l3, bytes, &n), *group;
	bool v2;

	if (!query ||
	    (query[0] == MLD_QUERY && !query_is_sane((const struct rte_ipv6_hdr *)l3, n))) {
		control_count(port, PORT_COUNTER_drop_group_malformed);
		return;
	}
	if (query[0] != MLD_QUERY) {
		control_count(port, PORT_COUNTER_drop_control_other);
		return;
	}
	v2 = n >= MLD_V2_QUERY_BYTES;
	group = query + MLD_HEADER_BYTES;
	control_count(port, PORT_COUNTER_queries);
	membership_query(&port->groups, true, memcmp(group, everything, 16) ? group : NULL,
			 v2 ? query[24] & 7 : 0, mld_delay_ms(query, v2), port_now_ms());
}
