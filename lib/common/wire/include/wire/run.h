/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_RUN_H
#define WIRE_RUN_H
/*
 * Runs: consecutive packets whose headers differ only in IPv4 identification and checksum, AckReq,
 * PSN and extension headers, so that most of the work is done once, for the first one. Any lcore.
 */
#include "wire/encap.h"

enum {
	WIRE_BTH_ALIKE_BYTES = 8, /* leading bytes of the BTH that are equal in a run */
	WIRE_BTH_ACKREQ = 0x80,	  /* in the byte behind them; the other bits of it are reserved */
};

/*
 * Parses the next received frame, which is as long as `before`. *f describes `before`: set by this
 * function, or by wire_parse_frame() with WIRE_OK or WIRE_ERR_OPCODE. True: the frame continues the
 * run, the same result holds for it, and *f now describes it, except that what
 * wire_read_differing() reads is still the first packet's. False: *f is unchanged; call
 * wire_parse_frame().
 */
bool wire_parse_next(const uint8_t *frame, const uint8_t *before, struct wire_frame *f);

/* Read the parts of a transport header that may differ from p into *h, which is of another packet
 * of the run, or write them to p. All extension headers of h->opcode must fit there. */
void wire_read_differing(const uint8_t *p, struct wire_headers *h);
void wire_write_differing(uint8_t *p, const struct wire_headers *h);

/* The extension headers of h->opcode alone. */
void wire_read_extensions(const uint8_t *p, struct wire_headers *h);
void wire_write_extensions(uint8_t *p, const struct wire_headers *h);

static inline unsigned int wire_extension_bytes(uint8_t opcode)
{
	return wire_opcodes[opcode].header_bytes - (unsigned int)WIRE_BTH_BYTES;
}

/*
 * Turns a private copy of the headers of a train's frame (pipeline/train.h), from the IP header to
 * the BTH at least, into those of its packet `index`: sets PSN, AckReq, IPv4 identification and
 * checksum.
 */
void wire_take_place(uint8_t *l3, bool ipv6, uint32_t index, bool last);

/*
 * CRC states (wire/crc.h) after the headers of n >= 1 packets of a train from packet `index` on,
 * whose frame has the header_bytes at l3, from the IP header on. end: the last of them is the
 * train's last. With extension headers, index must be 0 and n 1. Costs little more than one
 * packet's.
 */
void wire_icrc_headers_run(const uint8_t *l3, unsigned int header_bytes, bool ipv6, uint32_t index,
			   uint32_t n, bool end, uint32_t *states);

/* Where the BTH is, from the IP header on. */
static inline unsigned int wire_bth_at(bool ipv6)
{
	return (ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES) + WIRE_UDP_BYTES;
}

/* Gives a copied IPv4 header another identification (host order). */
static inline void wire_renumber(uint8_t *l3, uint16_t ip_id)
{
	uint16_t id, checksum;
	uint32_t sum;

	memcpy(&id, l3 + 4, sizeof(id));
	memcpy(&checksum, l3 + 10, sizeof(checksum));
	/* RFC 1624, equation 3 */
	sum = (uint16_t)~__builtin_bswap16(checksum) + (uint16_t)~__builtin_bswap16(id) + ip_id;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	wire_put_be16(l3 + 4, ip_id);
	wire_put_be16(l3 + 10, ~sum);
}

#endif
