/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMIT_FRAME_H
#define LIMIT_FRAME_H
/*
 * The frames of the models: Ethernet, IPv4, UDP, BTH and RETH or AETH at fixed places. Not the
 * product's headers (lib/common/wire) on purpose: a limit must not grow slower together with them.
 * Only the CRC is lib/common/wire's, since the machine's CRC is the limit. Internal to bench/limit.
 */
#include <stdint.h>
#include <string.h>
#include <rte_byteorder.h>

enum {
	LIMIT_L3_OFFSET = 14,
	LIMIT_REQUEST_BYTES = 70, /* Ethernet .. RETH */
	LIMIT_ACK_BYTES = 58,	  /* Ethernet .. AETH */
	LIMIT_ICRC_BYTES = 4,
	LIMIT_UDP_PORT = 4791,
	LIMIT_OPCODE_WRITE_ONLY = 0x0a,
	LIMIT_OPCODE_ACK = 0x11,
	LIMIT_PSN_MASK = 0xffffff,
};

/* Every number is big-endian. */
struct limit_headers {
	uint8_t macs[12];
	uint16_t ethertype;
	uint8_t version;
	uint8_t tos;
	uint16_t ip_bytes;
	uint32_t id_fragment;
	uint8_t ttl;
	uint8_t protocol;
	uint16_t ip_checksum;
	uint32_t addresses[2];
	uint16_t sport;
	uint16_t dport;
	uint16_t udp_bytes;
	uint16_t udp_checksum;
	uint8_t opcode;
	uint8_t flags;
	uint16_t pkey;
	uint32_t dest_qp;
	uint32_t ack_psn; /* top bit: AckReq */
	union {
		struct {
			uint64_t va;
			uint32_t rkey;
			uint32_t bytes;
		} __attribute__((packed)) reth;
		uint32_t aeth;
	};
} __attribute__((packed));

_Static_assert(sizeof(struct limit_headers) == LIMIT_REQUEST_BYTES, "no holes on the wire");

/* Headers as they are stored with a QP: padded, so that copies are whole registers. */
union limit_template {
	struct limit_headers headers;
	uint8_t bytes[128];
} __attribute__((aligned(64)));

/* header_bytes: LIMIT_REQUEST_BYTES or LIMIT_ACK_BYTES. */
static inline void limit_template_build(union limit_template *t, uint8_t opcode, uint32_t dest_qp,
					unsigned int header_bytes, unsigned int payload_bytes)
{
	unsigned int ip_bytes = header_bytes - LIMIT_L3_OFFSET + payload_bytes + LIMIT_ICRC_BYTES;
	struct limit_headers *h = &t->headers;

	memset(t, 0, sizeof(*t));
	memset(h->macs, 0x22, sizeof(h->macs));
	h->ethertype = RTE_BE16(0x0800);
	h->version = 0x45;
	h->ttl = 64;
	h->protocol = 17;
	h->ip_bytes = rte_cpu_to_be_16((uint16_t)ip_bytes);
	h->sport = RTE_BE16(0xc000);
	h->dport = RTE_BE16(LIMIT_UDP_PORT);
	h->udp_bytes = rte_cpu_to_be_16((uint16_t)(ip_bytes - 20));
	h->opcode = opcode;
	h->pkey = RTE_BE16(0xffff);
	h->dest_qp = rte_cpu_to_be_32(dest_qp);
}

/* The checks a receiver must make before it may trust the rest. */
static inline int limit_is_roce(const struct limit_headers *h, uint8_t opcode)
{
	return h->ethertype == RTE_BE16(0x0800) && h->protocol == 17 &&
	       h->dport == RTE_BE16(LIMIT_UDP_PORT) && h->opcode == opcode;
}

#endif
