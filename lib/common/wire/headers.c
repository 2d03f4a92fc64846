/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes and reads BTH and extension headers, driven by the opcode table. Touches only what it is
 * handed; keeps no state. Stages: header_parse (read), segmentation and responder_exec (write).
 */
#include "wire/headers.h"
#include "wire/run.h"

#include "base/assert.h"
#include "bytes.h"

enum {
	BTH_SE = 0x80,
	BTH_MIGREQ = 0x40,
	BTH_FECN = 0x80,
	BTH_BECN = 0x40,
	MASK24 = 0xffffff,
};

static void write_bth(uint8_t *p, const struct wire_headers *h)
{
	p[0] = h->opcode;
	p[1] = (uint8_t)((h->se ? BTH_SE : 0) | (h->migreq ? BTH_MIGREQ : 0) | (h->pad & 3) << 4 |
			 (h->tver & 15));
	put_be16(p + 2, h->pkey);
	put_be32(p + 4, (h->dest_qp & MASK24) | (uint32_t)(h->fecn ? BTH_FECN : 0) << 24 |
				(uint32_t)(h->becn ? BTH_BECN : 0) << 24);
	put_be32(p + 8, (h->psn & MASK24) | (uint32_t)(h->ackreq ? WIRE_BTH_ACKREQ : 0) << 24);
}

static inline void write_deth(uint8_t *p, const struct wire_headers *h)
{
	put_be32(p, h->qkey);
	put_be32(p + 4, h->src_qp & MASK24);
}

static inline void write_reth(uint8_t *p, const struct wire_headers *h)
{
	put_be64(p, h->va);
	put_be32(p + 8, h->rkey);
	put_be32(p + 12, h->dma_len);
}

static inline void write_flush(uint8_t *p, const struct wire_headers *h)
{
	put_be32(p, (uint32_t)h->compare);
	put_be64(p + 4, h->va);
	put_be32(p + 12, h->rkey);
	put_be32(p + 16, (uint32_t)h->swap_add);
}

static inline void write_atomic(uint8_t *p, const struct wire_headers *h)
{
	put_be64(p, h->va);
	put_be32(p + 8, h->rkey);
	put_be64(p + 12, h->swap_add);
	put_be64(p + 20, h->compare);
}

static inline void write_aeth(uint8_t *p, const struct wire_headers *h)
{
	put_be32(p, (uint32_t)h->syndrome << 24 | (h->msn & MASK24));
}

static inline void write_atomic_ack(uint8_t *p, const struct wire_headers *h)
{
	put_be64(p, h->orig);
}

static inline void write_imm(uint8_t *p, const struct wire_headers *h)
{
	memcpy(p, &h->imm, WIRE_IMM_BYTES);
}

static inline void write_ieth(uint8_t *p, const struct wire_headers *h)
{
	put_be32(p, h->invalidate_rkey);
}

#define WRITE_IF(headers, id, name, bytes)                                                         \
	if ((headers)&WIRE_HAS_##id) {                                                             \
		write_##name(p, h);                                                                \
		p += (bytes);                                                                      \
	}

static void write_all(uint8_t *p, uint16_t headers, const struct wire_headers *h)
{
	WIRE_EXTENSIONS(WRITE_IF, headers)
}

/* Most packets carry one RETH, or nothing. */
enum { HAS_EXTENSIONS = WIRE_HAS_PAYLOAD - 1 };
_Static_assert(WIRE_PLACE_PAYLOAD == WIRE_PLACES - 1, "all others are extensions");

static inline void write_extensions(uint8_t *p, uint16_t headers, const struct wire_headers *h)
{
	headers &= HAS_EXTENSIONS;
	if (headers == WIRE_HAS_RETH)
		write_reth(p, h);
	else if (headers)
		write_all(p, headers, h);
}

unsigned int wire_write_transport(uint8_t *dst, const struct wire_headers *h)
{
	const struct wire_opcode *op = &wire_opcodes[h->opcode];

	ASSERT(op->defined);
	write_bth(dst, h);
	write_extensions(dst + WIRE_BTH_BYTES, op->headers, h);
	return op->header_bytes;
}

void wire_write_differing(uint8_t *p, const struct wire_headers *h)
{
	put_be32(p + WIRE_BTH_ALIKE_BYTES,
		 (h->psn & MASK24) | (uint32_t)(h->ackreq ? WIRE_BTH_ACKREQ : 0) << 24);
	write_extensions(p + WIRE_BTH_BYTES, wire_opcodes[h->opcode].headers, h);
}

void wire_write_extensions(uint8_t *p, const struct wire_headers *h)
{
	write_extensions(p, wire_opcodes[h->opcode].headers, h);
}

static void read_bth(const uint8_t *p, struct wire_headers *h)
{
	uint32_t word1 = get_be32(p + 4);
	uint32_t word2 = get_be32(p + 8);

	h->opcode = p[0];
	h->se = p[1] >> 7;
	h->migreq = (p[1] >> 6) & 1;
	h->pad = (p[1] >> 4) & 3;
	h->tver = p[1] & 15;
	h->pkey = get_be16(p + 2);
	h->fecn = word1 >> 31;
	h->becn = (word1 >> 30) & 1;
	h->dest_qp = word1 & MASK24;
	h->ackreq = word2 >> 31;
	h->psn = word2 & MASK24;
}

static inline void read_deth(const uint8_t *p, struct wire_headers *h)
{
	h->qkey = get_be32(p);
	h->src_qp = get_be32(p + 4) & MASK24;
}

static inline void read_reth(const uint8_t *p, struct wire_headers *h)
{
	h->va = get_be64(p);
	h->rkey = get_be32(p + 8);
	h->dma_len = get_be32(p + 12);
}

/* The reserved bits of the FETH are ignored. */
static inline void read_flush(const uint8_t *p, struct wire_headers *h)
{
	h->compare = get_be32(p) & (WIRE_FLUSH_PLACEMENTS | WIRE_FLUSH_LEVELS);
	h->va = get_be64(p + 4);
	h->rkey = get_be32(p + 12);
	h->swap_add = get_be32(p + 16);
}

static inline void read_atomic(const uint8_t *p, struct wire_headers *h)
{
	h->va = get_be64(p);
	h->rkey = get_be32(p + 8);
	h->swap_add = get_be64(p + 12);
	h->compare = get_be64(p + 20);
}

static inline void read_aeth(const uint8_t *p, struct wire_headers *h)
{
	h->syndrome = p[0];
	h->msn = get_be32(p) & MASK24;
}

static inline void read_atomic_ack(const uint8_t *p, struct wire_headers *h)
{
	h->orig = get_be64(p);
}

static inline void read_imm(const uint8_t *p, struct wire_headers *h)
{
	memcpy(&h->imm, p, WIRE_IMM_BYTES);
}

static inline void read_ieth(const uint8_t *p, struct wire_headers *h)
{
	h->invalidate_rkey = get_be32(p);
}

#define READ_IF(headers, id, name, bytes)                                                          \
	if ((headers)&WIRE_HAS_##id) {                                                             \
		read_##name(p, h);                                                                 \
		p += (bytes);                                                                      \
	}

static void wire_read_all(const uint8_t *p, uint16_t headers, struct wire_headers *h)
{
	WIRE_EXTENSIONS(READ_IF, headers)
}

/* All of them are known to be present. */
static inline void read_extensions(const uint8_t *p, uint16_t headers, struct wire_headers *h)
{
	headers &= HAS_EXTENSIONS;
	if (headers == WIRE_HAS_RETH)
		read_reth(p, h);
	else if (headers)
		wire_read_all(p, headers, h);
}

void wire_read_differing(const uint8_t *p, struct wire_headers *h)
{
	uint32_t word = get_be32(p + WIRE_BTH_ALIKE_BYTES);

	h->ackreq = word >> 31;
	h->psn = word & MASK24;
	read_extensions(p + WIRE_BTH_BYTES, wire_opcodes[h->opcode].headers, h);
}

void wire_read_extensions(const uint8_t *p, struct wire_headers *h)
{
	read_extensions(p, wire_opcodes[h->opcode].headers, h);
}

enum wire_error wire_read_transport(const uint8_t *p, unsigned int bytes, struct wire_headers *h,
				    unsigned int *header_bytes)
{
	const struct wire_opcode *op;

	memset(h, 0, sizeof(*h));
	*header_bytes = 0;
	if (bytes < WIRE_BTH_BYTES)
		return WIRE_ERR_TRUNCATED;
	op = &wire_opcodes[p[0]];
	if (op->defined && bytes < op->header_bytes)
		return WIRE_ERR_TRUNCATED;
	read_bth(p, h);
	*header_bytes = WIRE_BTH_BYTES;
	if (!op->defined)
		return WIRE_ERR_OPCODE;
	if (h->tver)
		return WIRE_ERR_TVER;
	*header_bytes = op->header_bytes;
	read_extensions(p + WIRE_BTH_BYTES, op->headers, h);
	return WIRE_OK;
}
