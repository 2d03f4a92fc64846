/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet, VLAN, IPv4, IPv6, UDP around a RoCE packet: templates for sending, the parser for
 * receiving. No state, keeps no pointers. Stage header_parse parses; all stages that build packets
 * stamp them (inline in the header); templates are built on the slow path.
 */
#include "wire/encap.h"
#include "wire/run.h"

#include "base/limits.h"
#include "bytes.h"
#include "wire/psn.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,
	IP_PROTOCOL_UDP = 17,
	IPV6_FRAGMENT_HEADER = 44,
	IPV4_DF = 0x4000,
	IPV4_MF_AND_OFFSET = 0x3fff,
	FLOW_LABEL_MASK = 0xfffff,
};

_Static_assert(WIRE_ENCAP_BYTES_MAX + WIRE_TRANSPORT_BYTES_MAX <= HEADROOM_BYTES,
	       "all headers fit in front of a payload");

/* Ones' complement sum of 16-bit big-endian words; an odd last byte is the upper half of a word. */
static uint64_t sum_words(const uint8_t *p, unsigned int bytes)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i + 1 < bytes; i += 2)
		sum += get_be16(p + i);
	if (bytes & 1)
		sum += (uint32_t)p[bytes - 1] << 8;
	return sum;
}

static uint16_t fold_sum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void build_ipv4(uint8_t *p, const struct wire_path *path)
{
	p[0] = 0x45;
	p[1] = path->tos;
	put_be16(p + 6, IPV4_DF);
	p[8] = path->ttl;
	p[9] = IP_PROTOCOL_UDP;
	memcpy(p + 12, path->src_ip + 12, 4);
	memcpy(p + 16, path->dst_ip + 12, 4);
}

static void build_ipv6(uint8_t *p, const struct wire_path *path)
{
	put_be32(p, 6u << 28 | (uint32_t)path->tos << 20 | (path->flow_label & FLOW_LABEL_MASK));
	p[6] = IP_PROTOCOL_UDP;
	p[7] = path->ttl;
	memcpy(p + 8, path->src_ip, 16);
	memcpy(p + 24, path->dst_ip, 16);
}

void wire_template_build(struct wire_template *t, const struct wire_path *path)
{
	uint8_t *p = t->bytes;

	memset(t, 0, sizeof(*t));
	memcpy(p, path->dst_mac, 6);
	memcpy(p + 6, path->src_mac, 6);
	p += 12;
	if (path->has_vlan) {
		put_be16(p, ETHERTYPE_VLAN);
		put_be16(p + 2, path->vlan_tci);
		p += WIRE_VLAN_BYTES;
	}
	put_be16(p, path->is_ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	p += 2;
	t->l3_offset = (uint8_t)(p - t->bytes);
	t->is_ipv6 = path->is_ipv6;
	t->to_self = memcmp(path->dst_mac, path->src_mac, sizeof(path->dst_mac)) == 0;
	if (path->is_ipv6) {
		build_ipv6(p, path);
		p += WIRE_IPV6_BYTES;
	} else {
		build_ipv4(p, path);
		t->ip_sum = fold_sum(sum_words(p, WIRE_IPV4_BYTES));
		p += WIRE_IPV4_BYTES;
	}
	put_be16(p, path->sport);
	put_be16(p + 2, WIRE_UDP_PORT);
	t->encap_bytes = (uint8_t)(p + WIRE_UDP_BYTES - t->bytes);
}

void wire_template_set_tos(struct wire_template *t, uint8_t tos)
{
	uint8_t *l3 = t->bytes + t->l3_offset;

	if (t->is_ipv6) {
		put_be16(l3, (uint16_t)((get_be16(l3) & 0xf00f) | tos << 4));
	} else {
		l3[1] = tos;
		t->ip_sum = fold_sum(sum_words(l3, WIRE_IPV4_BYTES));
	}
}

void wire_template_set_priority(struct wire_template *t, uint8_t priority)
{
	if (t->l3_offset != WIRE_ETHERNET_BYTES)
		t->bytes[14] = (uint8_t)((t->bytes[14] & 0x1f) | priority << 5);
}

uint16_t wire_udp_source_port_of_flow(uint32_t flow_label)
{
	uint32_t fl = flow_label & FLOW_LABEL_MASK;

	return (uint16_t)(0xc000 | ((fl & 0x3fff) ^ (fl >> 14)));
}

uint16_t wire_udp_source_port(uint32_t local_qpn, uint32_t remote_qpn)
{
	uint64_t v = (uint64_t)local_qpn * remote_qpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return wire_udp_source_port_of_flow((uint32_t)v & FLOW_LABEL_MASK);
}

uint16_t wire_udp_source_port_ud(uint32_t local_qpn)
{
	return (uint16_t)(0xc000 + ((local_qpn * 0x61c88647u) >> 18));
}

/* Ethernet and VLAN tag: sets l3_offset, is_ipv6 and the VLAN. */
static enum wire_error parse_l2(const uint8_t *frame, unsigned int bytes, struct wire_frame *out)
{
	unsigned int type;

	if (bytes < WIRE_ETHERNET_BYTES)
		return WIRE_ERR_TRUNCATED;
	type = get_be16(frame + 12);
	out->l3_offset = WIRE_ETHERNET_BYTES;
	out->has_vlan = type == ETHERTYPE_VLAN;
	out->vlan_tci = 0;
	if (out->has_vlan) {
		if (bytes < WIRE_ETHERNET_BYTES + WIRE_VLAN_BYTES)
			return WIRE_ERR_TRUNCATED;
		out->vlan_tci = get_be16(frame + 14);
		type = get_be16(frame + 16);
		out->l3_offset += WIRE_VLAN_BYTES;
	}
	out->is_ipv6 = type == ETHERTYPE_IPV6;
	return type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6 ? WIRE_OK : WIRE_ERR_NOT_ROCE;
}

/*
 * A ones' complement sum depends neither on byte order nor on the width of the addition: it is -0
 * when the plain sum, never 0 here, is a multiple of 2^16 - 1.
 */
static bool ipv4_checksum_ok(const uint8_t *l3)
{
	uint64_t sum = (uint64_t)get_be32(l3) + get_be32(l3 + 4) + get_be32(l3 + 8) +
		       get_be32(l3 + 12) + get_be32(l3 + 16);

	return sum % 0xffff == 0;
}

/* l3: `bytes` readable from there. *udp_bytes: the length of what follows, by the IP header. */
static enum wire_error parse_ipv4(const uint8_t *l3, unsigned int bytes, struct wire_frame *out,
				  unsigned int *udp_bytes)
{
	unsigned int total;

	if (bytes < WIRE_IPV4_BYTES)
		return WIRE_ERR_TRUNCATED;
	if (l3[0] >> 4 != 4)
		return WIRE_ERR_VERSION;
	if (l3[9] != IP_PROTOCOL_UDP)
		return WIRE_ERR_NOT_ROCE;
	if (l3[0] != 0x45) /* options, for which the ICRC is not defined */
		return WIRE_ERR_VERSION;
	if (get_be16(l3 + 6) & IPV4_MF_AND_OFFSET)
		return WIRE_ERR_FRAGMENT;
	if (!ipv4_checksum_ok(l3))
		return WIRE_ERR_CHECKSUM;
	total = get_be16(l3 + 2);
	if (total < WIRE_IPV4_BYTES + WIRE_UDP_BYTES)
		return WIRE_ERR_LENGTH;
	if (total > bytes)
		return WIRE_ERR_TRUNCATED;
	*udp_bytes = total - WIRE_IPV4_BYTES;
	out->tos = l3[1];
	out->ttl = l3[8];
	out->src_ip = l3 + 12;
	out->dst_ip = l3 + 16;
	out->ip_bytes = 4;
	return WIRE_OK;
}

static enum wire_error parse_ipv6(const uint8_t *l3, unsigned int bytes, struct wire_frame *out,
				  unsigned int *udp_bytes)
{
	if (bytes < WIRE_IPV6_BYTES)
		return WIRE_ERR_TRUNCATED;
	if (l3[0] >> 4 != 6)
		return WIRE_ERR_VERSION;
	if (l3[6] == IPV6_FRAGMENT_HEADER)
		return WIRE_ERR_FRAGMENT;
	if (l3[6] != IP_PROTOCOL_UDP)
		return WIRE_ERR_NOT_ROCE;
	*udp_bytes = get_be16(l3 + 4);
	if (*udp_bytes < WIRE_UDP_BYTES)
		return WIRE_ERR_LENGTH;
	if (*udp_bytes > bytes - WIRE_IPV6_BYTES)
		return WIRE_ERR_TRUNCATED;
	out->tos = (uint8_t)(get_be16(l3) >> 4);
	out->ttl = l3[7];
	out->src_ip = l3 + 8;
	out->dst_ip = l3 + 24;
	out->ip_bytes = 16;
	return WIRE_OK;
}

/* For the rare peer that sends a UDP checksum: pseudo header, UDP header, data. */
static bool udp_checksum_ok(const uint8_t *udp, unsigned int udp_bytes, const struct wire_frame *f)
{
	uint64_t sum = sum_words(f->src_ip, 2u * f->ip_bytes); /* the destination follows */

	sum += IP_PROTOCOL_UDP + udp_bytes;
	sum += sum_words(udp, udp_bytes);
	return fold_sum(sum) == 0xffff;
}

/* udp: udp_bytes (at least 8) readable from there. */
static enum wire_error parse_udp(const uint8_t *udp, unsigned int udp_bytes, struct wire_frame *out)
{
	if (get_be16(udp + 2) != WIRE_UDP_PORT)
		return WIRE_ERR_NOT_ROCE;
	if (get_be16(udp + 4) != udp_bytes)
		return WIRE_ERR_LENGTH;
	if (udp_bytes < WIRE_UDP_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return WIRE_ERR_TRUNCATED;
	if (get_be16(udp + 6) && !udp_checksum_ok(udp, udp_bytes, out))
		return WIRE_ERR_CHECKSUM;
	out->sport = get_be16(udp);
	return WIRE_OK;
}

/* BTH .. payload; the offsets of BTH and ICRC are known. */
static enum wire_error parse_transport(const uint8_t *frame, struct wire_frame *out)
{
	unsigned int bytes = out->transport_end - out->transport_offset;
	unsigned int header_bytes;
	enum wire_error error;

	error = wire_read_transport(frame + out->transport_offset, bytes, &out->h, &header_bytes);
	out->payload_offset = (uint16_t)(out->transport_offset + header_bytes);
	out->payload_bytes = (uint16_t)(bytes - header_bytes);
	if (error != WIRE_OK)
		return error;
	/* A packet is a whole number of words, hence the pad. */
	if (out->h.pad > out->payload_bytes || (out->payload_bytes & 3))
		return WIRE_ERR_LENGTH;
	out->payload_bytes -= out->h.pad;
	return WIRE_OK;
}

enum wire_error wire_parse_frame(const uint8_t *frame, unsigned int bytes, struct wire_frame *out)
{
	unsigned int udp_offset;
	unsigned int udp_bytes;
	enum wire_error error;

	error = parse_l2(frame, bytes, out);
	if (error != WIRE_OK)
		return error;
	if (out->is_ipv6)
		error = parse_ipv6(frame + out->l3_offset, bytes - out->l3_offset, out, &udp_bytes);
	else
		error = parse_ipv4(frame + out->l3_offset, bytes - out->l3_offset, out, &udp_bytes);
	if (error != WIRE_OK)
		return error;
	/* Offsets have 16 bits; no packet is longer than that. */
	if (udp_bytes > FRAME_BYTES_MAX)
		return WIRE_ERR_LENGTH;
	udp_offset = out->l3_offset + (out->is_ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);
	error = parse_udp(frame + udp_offset, udp_bytes, out);
	if (error != WIRE_OK)
		return error;
	out->transport_offset = (uint16_t)(udp_offset + WIRE_UDP_BYTES);
	out->transport_end = (uint16_t)(udp_offset + udp_bytes - WIRE_ICRC_BYTES);
	return parse_transport(frame, out);
}

static inline uint64_t differ32(const uint8_t *a, const uint8_t *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x ^ y;
}

static inline uint64_t differ64(const uint8_t *a, const uint8_t *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x ^ y;
}

/* Not 0: addresses, types or VLAN tags differ. */
static inline uint64_t l2_differs(const uint8_t *a, const uint8_t *b, const struct wire_frame *f)
{
	uint64_t d =
		differ64(a, b) | differ64(a + WIRE_ETHERNET_BYTES - 8, b + WIRE_ETHERNET_BYTES - 8);

	return f->has_vlan ? d | differ32(a + WIRE_ETHERNET_BYTES, b + WIRE_ETHERNET_BYTES) : d;
}

/* Ignores identification and checksum, except that they must change by opposite amounts: their sum
 * stays the same modulo 2^16 - 1. */
static inline uint64_t ipv4_differs(const uint8_t *a, const uint8_t *b)
{
	uint32_t moved = get_be16(a + 4) + get_be16(a + 10) + 2 * 0xffff - get_be16(b + 4) -
			 get_be16(b + 10);
	uint32_t folded = (moved & 0xffff) + (moved >> 16); /* a division would cost more */

	return differ32(a, b) | differ32(a + 6, b + 6) | differ64(a + 12, b + 12) |
	       (uint64_t)(folded != 0 && folded != 0xffff);
}

static inline uint64_t ipv6_differs(const uint8_t *a, const uint8_t *b)
{
	uint64_t d = 0;

	for (unsigned int i = 0; i < WIRE_IPV6_BYTES; i += 8)
		d |= differ64(a + i, b + i);
	return d;
}

/* Refuses frames with a UDP checksum, which covers the parts that may differ. */
bool wire_parse_next(const uint8_t *frame, const uint8_t *before, struct wire_frame *f)
{
	unsigned int l3 = f->l3_offset, bth = f->transport_offset, udp = bth - WIRE_UDP_BYTES;
	uint64_t d = l2_differs(frame, before, f) | differ64(frame + udp, before + udp) |
		     differ64(frame + bth, before + bth) | get_be16(frame + udp + 6);

	d |= f->is_ipv6 ? ipv6_differs(frame + l3, before + l3)
			: ipv4_differs(frame + l3, before + l3);
	if (d)
		return false;
	f->src_ip = frame + (f->src_ip - before);
	f->dst_ip = frame + (f->dst_ip - before);
	return true;
}

void wire_take_place(uint8_t *l3, bool ipv6, uint32_t index, bool last)
{
	uint8_t *p = l3 + wire_bth_at(ipv6) + WIRE_BTH_ALIKE_BYTES;
	uint32_t word = get_be32(p), ackreq = (uint32_t)WIRE_BTH_ACKREQ << 24;

	put_be32(p, ((word + index) & PSN_MASK) | (last ? word & ackreq : 0));
	if (!ipv6)
		wire_renumber(l3, (uint16_t)(get_be16(l3 + 4) + index));
}

bool wire_mark_congested(uint8_t *frame, unsigned int bytes)
{
	struct wire_frame f;
	uint8_t *l3;

	if (parse_l2(frame, bytes, &f) != WIRE_OK ||
	    bytes - f.l3_offset < (f.is_ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES))
		return false;
	l3 = frame + f.l3_offset;
	f.tos = f.is_ipv6 ? (uint8_t)(get_be16(l3) >> 4) : l3[1];
	if (!(f.tos & WIRE_ECN_BITS) || (f.tos & WIRE_ECN_BITS) == WIRE_ECN_CE)
		return false;
	if (f.is_ipv6) {
		put_be16(l3, get_be16(l3) | WIRE_ECN_CE << 4);
	} else {
		l3[1] |= WIRE_ECN_CE;
		put_be16(l3 + 10, 0);
		put_be16(l3 + 10, ~fold_sum(sum_words(l3, WIRE_IPV4_BYTES)));
	}
	return true;
}
