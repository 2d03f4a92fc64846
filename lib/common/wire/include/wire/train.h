/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_TRAIN_H
#define WIRE_TRAIN_H
/*
 * Trains: packets that follow one another and have their headers in common, but for IPv4 identification and
 * checksum, AckReq, PSN and extension headers. What the first one costs the others need not cost again.
 * Any lcore.
 */
#include "wire/encap.h"

/* Bytes of the BTH that they have in common. */
enum { WIRE_BTH_ALIKE_BYTES = 8 };

/*
 * The next frame received. *f describes the frame `before`, by WIRE_OK or WIRE_ERR_OPCODE of
 * wire_parse_frame() or by this function; `frame` has as many bytes. True: it continues the train, the same
 * answer holds for it, and *f describes it now. False: *f has not changed; call wire_parse_frame().
 */
bool wire_parse_next(const uint8_t *frame, const uint8_t *before, struct wire_frame *f);

/* The parts of a transport header that may differ: read from p, into *h of another packet of the train, and written to p. All
 * extension headers of h->opcode can be read or written there. */
void wire_read_differing(const uint8_t *p, struct wire_headers *h);
void wire_write_differing(uint8_t *p, const struct wire_headers *h);

/* Gives a copy of an IPv4 header another identification (host order). */
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
