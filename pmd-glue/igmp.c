/* SPDX-License-Identifier: BSD-3-Clause */
/* IGMPv3 (RFC 3376): reports as a Linux host sends them, queries of all versions. Control thread.
 */
#include <string.h>

#include <rte_ip.h>

#include "control.h"
#include "groups.h"

enum {
	IGMP_QUERY = 0x11,
	IGMP_V3_REPORT = 0x22,
	IGMP_BYTES_MIN = 8,
	IGMP_V3_QUERY_BYTES = 12,
	IGMP_TOS = 0xc0, /* internetwork control */
	IGMP_V1_DELAY_MS = 10000,
};

struct igmp_record {
	uint8_t type;
	uint8_t aux_words;
	uint16_t sources;
	uint32_t group_be;
} __attribute__((packed));

/* From the IP header on. */
struct igmp_report {
	struct rte_ipv4_hdr ip;
	uint8_t router_alert[4]; /* RFC 2113: routers shall look at it */
	uint8_t type;
	uint8_t reserved;
	uint16_t checksum;
	uint16_t reserved2;
	uint16_t records_be;
	struct igmp_record record[];
} __attribute__((packed));

_Static_assert(sizeof(struct igmp_report) == 32 && sizeof(struct igmp_record) == 8,
	       "as on the wire");

static const uint8_t report_to[16] = {[10] = 0xff, [11] = 0xff, 224, 0, 0, 22};

/* Header and option are one checksum, the message another. */
static void igmp_finish(struct igmp_report *r, uint16_t total, const struct port_address *from)
{
	const uint16_t header = sizeof(r->ip) + sizeof(r->router_alert);

	r->ip.version_ihl = 0x40 | header / 4;
	r->ip.type_of_service = IGMP_TOS;
	r->ip.total_length = rte_cpu_to_be_16(total);
	r->ip.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
	r->ip.time_to_live = 1;
	r->ip.next_proto_id = IPPROTO_IGMP;
	memcpy(&r->ip.src_addr, from->ip + 12, 4);
	memcpy(&r->ip.dst_addr, report_to + 12, 4);
	r->router_alert[0] = 0x94;
	r->router_alert[1] = 4;
	r->ip.hdr_checksum = ~rte_raw_cksum(r, header);
	r->type = IGMP_V3_REPORT;
	r->checksum = ~rte_raw_cksum(&r->type, total - header);
}

void igmp_report(struct port *port, const struct membership_record *records, unsigned int n)
{
	const struct port_address *from = route_source(port, report_to);
	uint16_t total = sizeof(struct igmp_report) + n * sizeof(struct igmp_record);
	struct igmp_report *r;
	struct rte_mbuf *m;
	uint8_t mac[6];
	void *l3;

	if (!from)
		return;
	multicast_mac(report_to, mac);
	m = control_frame(port, mac, RTE_ETHER_TYPE_IPV4, total, &l3);
	if (!m)
		return;
	r = l3;
	r->records_be = rte_cpu_to_be_16(n);
	for (unsigned int i = 0; i < n; i++) {
		r->record[i].type = records[i].type;
		memcpy(&r->record[i].group_be, records[i].ip + 12, 4);
	}
	igmp_finish(r, total, from);
	control_send(port, m);
	control_count(port, PORT_COUNTER_reports_sent);
}

/* Behind the IP header, if that and both checksums hold and it is no fragment; else NULL. */
static const uint8_t *igmp_parse(const uint8_t *l3, uint32_t bytes, uint16_t *igmp_bytes)
{
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)l3;
	uint32_t header = (l3[0] & 0xf) * 4u, total;

	if (l3[0] >> 4 != 4 || header < sizeof(*ip) || header + IGMP_BYTES_MIN > bytes)
		return NULL;
	total = rte_be_to_cpu_16(ip->total_length);
	if (total > bytes || total < header + IGMP_BYTES_MIN ||
	    (ip->fragment_offset & rte_cpu_to_be_16(0x3fff)))
		return NULL;
	*igmp_bytes = total - header;
	if (rte_raw_cksum(l3, header) != 0xffff ||
	    rte_raw_cksum(l3 + header, *igmp_bytes) != 0xffff)
		return NULL;
	return l3 + header;
}

/* The time within which an answer is due. */
static uint32_t igmp_delay_ms(const uint8_t *query, bool v3)
{
	uint32_t code = query[1];

	if (!v3)
		return code ? code * 100 : IGMP_V1_DELAY_MS;
	if (code >= 128) /* RFC 3376 4.1.1 */
		code = ((code & 0xf) | 0x10) << ((code >> 4 & 7) + 3);
	return code * 100;
}

/* We are a host: the reports of others mean nothing to us. */
void take_igmp(struct port *port, const uint8_t *l3, uint32_t bytes)
{
	static const uint8_t everything[4];
	uint8_t group[16];
	uint16_t n;
	const uint8_t *query = igmp_parse(l3, bytes, &n);
	bool v3, general;

	if (!query || (query[0] == IGMP_QUERY && n > IGMP_BYTES_MIN && n < IGMP_V3_QUERY_BYTES)) {
		control_count(port, PORT_COUNTER_drop_group_malformed);
		return;
	}
	if (query[0] != IGMP_QUERY) {
		control_count(port, PORT_COUNTER_drop_control_other);
		return;
	}
	v3 = n >= IGMP_V3_QUERY_BYTES;
	ip_map_v4(query + 4, group);
	general = memcmp(query + 4, everything, 4) == 0;
	control_count(port, PORT_COUNTER_queries);
	membership_query(&port->groups, false, general ? NULL : group, v3 ? query[8] & 7 : 0,
			 igmp_delay_ms(query, v3), port_now_ms());
}
