/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_ENCAP_H
#define WIRE_ENCAP_H
/*
 * RoCEv2 encapsulation: Ethernet, optional VLAN tag, IPv4 or IPv6, UDP port 4791.
 * Sending: a path is converted once to a template (per connected QP or address handle), which is
 * stamped in front of each packet. Receiving: a whole frame is parsed and checked.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/ip.h"
#include "wire/error.h"
#include "wire/headers.h"

enum {
	WIRE_UDP_PORT = 4791,
	WIRE_ETHERNET_BYTES = 14,
	WIRE_VLAN_BYTES = 4,
	WIRE_IPV4_BYTES = 20,
	WIRE_IPV6_BYTES = 40,
	WIRE_UDP_BYTES = 8,
	WIRE_ENCAP_BYTES_MIN = WIRE_ETHERNET_BYTES + WIRE_IPV4_BYTES + WIRE_UDP_BYTES, /* 42 */
	WIRE_ENCAP_BYTES_MAX =
		WIRE_ETHERNET_BYTES + WIRE_VLAN_BYTES + WIRE_IPV6_BYTES + WIRE_UDP_BYTES, /* 66 */
	WIRE_TTL_DEFAULT = 64,
};

enum { WIRE_PCP_SHIFT = 13, WIRE_PCP_MAX = 7 };

/* The lower two bits of a traffic class (RFC 3168). */
enum {
	WIRE_ECN_BITS = 3,
	WIRE_ECN_ECT0 = 2, /* the sender listens to notifications */
	WIRE_ECN_CE = 3,   /* the network has marked the packet: a queue was long */
};

/* Where packets go, in host byte order, except the addresses, which are byte strings. */
struct wire_path {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	bool has_vlan;
	bool is_ipv6;
	uint16_t vlan_tci;   /* PCP (from WIRE_PCP_SHIFT on), DEI, VLAN ID; used with has_vlan */
	uint16_t sport;	     /* UDP source port, see wire_udp_source_port() */
	uint8_t tos;	     /* traffic class of the address handle */
	uint8_t ttl;	     /* hop limit */
	uint32_t flow_label; /* 20 bits, IPv6 only; Linux peers send 0 */
	/* An IPv4 address is ::ffff:a.b.c.d. */
	uint8_t src_ip[16];
	uint8_t dst_ip[16];
};

/* The header bytes of a path, ready to copy. Built once, then read only. */
struct wire_template {
	uint8_t encap_bytes; /* Ethernet .. UDP header: 42, 46, 62 or 66 */
	uint8_t l3_offset;   /* of the IP header: 14 or 18 */
	uint8_t is_ipv6;     /* 0 or 1 */
	uint8_t to_self;     /* 1: the source's MAC address is the destination's */
	uint32_t ip_sum; /* IPv4: ones' complement sum of the header without length, id, checksum */
	uint8_t bytes[72];
};

_Static_assert(sizeof(struct wire_template) <= 96, "a template is small");
_Static_assert(WIRE_ENCAP_BYTES_MAX <= sizeof(((struct wire_template *)0)->bytes), "it fits");

/* Builds a template from a path. Cannot fail. Slow path. */
void wire_template_build(struct wire_template *t, const struct wire_path *path);

/* Gives a template another traffic class. Any stage. */
void wire_template_set_tos(struct wire_template *t, uint8_t tos);
/* Gives a template another 802.1p priority, 0..7, if it has a VLAN tag. Any stage. */
void wire_template_set_priority(struct wire_template *t, uint8_t priority);

/* Stores a 16-bit number big-endian at p, of any alignment. */
static inline void wire_put_be16(uint8_t *p, uint32_t value)
{
	uint16_t be = __builtin_bswap16((uint16_t)value);

	memcpy(p, &be, sizeof(be));
}

/*
 * Writes the t->encap_bytes bytes in front of a packet, and no byte before or after them (the
 * payload may be in place), with the lengths and the IPv4 checksum of this packet. bytes_after_udp:
 * BTH .. ICRC, both included. ip_id: IPv4 identification, host order; ignored for IPv6. The UDP
 * checksum is 0.
 */
static inline void wire_stamp(uint8_t *l2_start, const struct wire_template *t,
			      unsigned int bytes_after_udp, uint16_t ip_id)
{
	unsigned int n = t->encap_bytes;
	unsigned int udp_bytes = bytes_after_udp + WIRE_UDP_BYTES;
	uint8_t *l3 = l2_start + t->l3_offset;
	uint32_t sum;

	/* Three overlapping copies of fixed size cover any of the four lengths exactly. */
	memcpy(l2_start, t->bytes, 32);
	memcpy(l2_start + n / 2 - 8, t->bytes + n / 2 - 8, 16);
	memcpy(l2_start + n - 32, t->bytes + n - 32, 32);
	wire_put_be16(l2_start + n - 4, udp_bytes);
	if (t->is_ipv6) {
		wire_put_be16(l3 + 4, udp_bytes);
		return;
	}
	sum = t->ip_sum + udp_bytes + WIRE_IPV4_BYTES + ip_id;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	wire_put_be16(l3 + 2, udp_bytes + WIRE_IPV4_BYTES);
	wire_put_be16(l3 + 4, ip_id);
	wire_put_be16(l3 + 10, ~sum);
}

/* Gives a frame made by wire_stamp() the n-th UDP source port after its template's;
 * 0xc000..0xffff. */
static inline void wire_stamp_port(uint8_t *l2_start, const struct wire_template *t, unsigned n)
{
	unsigned at = t->encap_bytes - WIRE_UDP_BYTES;
	unsigned port = (unsigned)t->bytes[at] << 8 | t->bytes[at + 1];

	wire_put_be16(l2_start + at, 0xc000 | (port + n));
}

/* UDP source port of a connected QP (RC, UC); 0xc000..0xffff. Receivers ignore it; routers hash it.
 */
uint16_t wire_udp_source_port(uint32_t local_qpn, uint32_t remote_qpn);
/* The same from the address handle's 20-bit flow label. */
uint16_t wire_udp_source_port_of_flow(uint32_t flow_label);
/* The same for a UD QP. */
uint16_t wire_udp_source_port_ud(uint32_t local_qpn);

/* A parsed frame. Offsets count from the first byte of the Ethernet header. */
struct wire_frame {
	struct wire_headers h;
	uint16_t l3_offset;	   /* IP header: 14 or 18 */
	uint16_t transport_offset; /* BTH */
	uint16_t payload_offset;   /* after the last extension header */
	uint16_t payload_bytes;	   /* pad not counted */
	uint16_t transport_end;	   /* the ICRC: 4 bytes, little-endian */
	uint16_t vlan_tci;	   /* 0 when has_vlan is 0 */
	uint16_t sport;		   /* UDP source port, host order */
	uint8_t has_vlan;	   /* 0 or 1 */
	uint8_t is_ipv6;	   /* 0 or 1 */
	uint8_t tos;		   /* IPv6: traffic class */
	uint8_t ttl;		   /* IPv6: hop limit */
	uint8_t ip_bytes;	   /* length of an address: 4 or 16 */
	const uint8_t *src_ip;	   /* ip_bytes bytes inside the frame, valid as long as it */
	const uint8_t *dst_ip;
};

/*
 * Parses a whole Ethernet frame of `bytes` bytes. The IP and UDP lengths determine its end: padding
 * after it is ignored. Every length is checked before the bytes that it covers are read; nothing
 * outside frame[0..bytes) is read. Does NOT check the ICRC (wire/crc.h), the P_Key, the QP, or
 * whether the payload's length fits the opcode: those have their own responses (rules C9-92,
 * C9-93). Returns any value of enum wire_error. After WIRE_ERR_OPCODE and WIRE_ERR_TVER, *out is
 * filled, except the fields of extension headers; payload_offset and payload_bytes assume that the
 * BTH is the only header and include the pad. After any other error *out is undefined.
 */
enum wire_error wire_parse_frame(const uint8_t *frame, unsigned int bytes, struct wire_frame *out);

/* Where the IP header of a frame begins, and whether it is IPv6's, by its EtherType alone, which is
 * not checked: of a frame of ours, or for a guess. It has WIRE_ENCAP_BYTES_MIN bytes at least. */
static inline unsigned int wire_l3_at(const uint8_t *frame, bool *ipv6)
{
	enum { TYPE_AT = 12, TYPE_VLAN = 0x81, TYPE_IPV6 = 0x86 };
	unsigned int l3 = WIRE_ETHERNET_BYTES;

	if (frame[TYPE_AT] == TYPE_VLAN)
		l3 += WIRE_VLAN_BYTES;
	*ipv6 = frame[l3 - 2] == TYPE_IPV6;
	return l3;
}

/* Where a frame has the four bytes that end with its destination queue pair, if it is one of
 * RoCEv2, which is not checked: for prefetches. 0: it is too short. */
static inline unsigned int wire_guess_qpn_at(const uint8_t *frame, unsigned int bytes)
{
	enum { IN_BTH = 4, WORD_BYTES = 4 };
	unsigned int at;
	bool ipv6;

	if (bytes < WIRE_ENCAP_BYTES_MIN)
		return 0;
	at = wire_l3_at(frame, &ipv6) + WIRE_UDP_BYTES + IN_BTH;
	at += ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES;
	return bytes < at + WORD_BYTES ? 0 : at;
}

/*
 * Marks a frame as a congested network does (ECN: CE), if its sender allows that (ECT). The frame
 * is a private copy; its checksum follows, its ICRC does not cover the mark. False: nothing
 * changed. Any thread.
 */
bool wire_mark_congested(uint8_t *frame, unsigned int bytes);

/* An address of a parsed frame as 16 bytes (IPv4 as ::ffff:a.b.c.d), comparable with a path's. */
static inline void wire_address16(uint8_t dst[16], const uint8_t *ip, bool is_ipv6)
{
	if (is_ipv6)
		memcpy(dst, ip, 16);
	else
		ip_map_v4(ip, dst);
}

#endif
