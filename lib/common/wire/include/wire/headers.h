/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_HEADERS_H
#define WIRE_HEADERS_H
/*
 * BTH and extension headers, parsed, in host byte order. Big-endian forms never leave this folder.
 */
#include <stdint.h>
#include "wire/error.h"
#include "wire/opcode.h"

/*
 * One structure for all opcodes; wire_opcodes[opcode].headers says which fields are valid, the
 * others are 0 after parsing and ignored when writing. Hot fields first.
 */
struct wire_headers {
	/* BTH */
	uint8_t opcode;	  /* enum wire_opcode_id, or a reserved one */
	uint8_t ackreq;	  /* 0 or 1 */
	uint8_t se;	  /* solicited event, 0 or 1 */
	uint8_t pad;	  /* pad bytes after the payload, 0..3 */
	uint32_t psn;	  /* 24 bits */
	uint32_t dest_qp; /* 24 bits */
	uint16_t pkey;
	uint8_t tver;	/* 0..15, 0 on everything that is accepted */
	uint8_t migreq; /* 0 or 1 */
	/* AETH */
	uint8_t syndrome; /* see aeth.h */
	uint8_t fecn;	  /* BTH: 0 or 1 */
	uint8_t becn;	  /* BTH: 0 or 1 */
	uint8_t reserved;
	uint32_t msn; /* 24 bits */
	/* RETH; AtomicETH: va and rkey */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len; /* bytes */
	/* ImmDt: the four bytes as on the wire, never swapped, like ibverbs' imm_data */
	uint32_t imm;
	uint32_t invalidate_rkey; /* IETH */
	/* DETH */
	uint32_t qkey;
	uint32_t src_qp; /* 24 bits */
	/* AtomicETH; the operands of other operations: opcode.h */
	uint64_t swap_add; /* CmpSwap: the new value; FetchAdd: the addend */
	uint64_t compare;
	/* AtomicAckETH */
	uint64_t orig; /* the value before the operation */
};

_Static_assert(sizeof(struct wire_headers) <= 96, "parsed headers fit the metadata of an mbuf");

/*
 * Writes the BTH and the extension headers of h->opcode to dst, which has room for
 * WIRE_TRANSPORT_BYTES_MAX. h->opcode must be a defined one (our own choice, asserted). Reserved
 * bits are written as 0. Returns the number of bytes written, 12..40; none beyond are touched.
 */
unsigned int wire_write_transport(uint8_t *dst, const struct wire_headers *h);

/*
 * Reads BTH and extension headers from p, of which `bytes` may be read (excluding the ICRC). Fills
 * the caller's *h and *header_bytes (12..40).
 *   WIRE_OK             all headers of the opcode are present
 *   WIRE_ERR_TRUNCATED  fewer bytes than the headers need; *h is all 0
 *   WIRE_ERR_OPCODE     opcode not defined: only the BTH fields are filled, *header_bytes is 12
 *   WIRE_ERR_TVER       the same for a transport version other than 0
 */
enum wire_error wire_read_transport(const uint8_t *p, unsigned int bytes, struct wire_headers *h,
				    unsigned int *header_bytes);

#endif
