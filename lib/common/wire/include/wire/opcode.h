/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H
/*
 * The BTH opcodes of RC, UC and UD, the congestion notification packet, and one of the
 * manufacturers' range (11xxxxxx), which is used only between queue pairs that have agreed on it.
 * ONE table says which headers each opcode carries, and which part of which message it is. (IBTA
 * volume 1, 9.2; rules C9-67, C9-68.)
 */
#include <stdbool.h>
#include <stdint.h>
#include "host-abi/wqe.h"

/* wire_opcode.service of a CNP, which belongs to no queue pair's service, and of a SACK, so that
 * queue pairs that have not agreed on it see a packet of another service. */
#define WIRE_SERVICE_NONE 0xff

/* The kind of message that a packet belongs to. */
enum wire_kind {
	WIRE_KIND_SEND,
	WIRE_KIND_WRITE,
	WIRE_KIND_READ,		/* READ request */
	WIRE_KIND_READ_RESP,	/* READ response */
	WIRE_KIND_ATOMIC,	/* CmpSwap, FetchAdd */
	WIRE_KIND_ATOMIC_ACK,	/* its response */
	WIRE_KIND_ATOMIC_WRITE, /* annex A19; its response: that of a READ of nothing */
	WIRE_KIND_FLUSH,	/* the same */
	WIRE_KIND_ACK,		/* ACK, NAK, RNR NAK */
	WIRE_KIND_CNP,
	WIRE_KIND_SACK, /* ours: what is kept behind a gap */
	WIRE_KIND_COUNT,
};

/* clang-format off */
/* The extension headers, in the order in which they follow the BTH: ROW(arg, id, name, bytes).
 * headers.c has a function to write and one to read each. */
#define WIRE_EXTENSIONS(ROW, arg)                                                     \
	ROW(arg, DETH, deth, 8)                /* Q_Key, source QP */                 \
	ROW(arg, RETH, reth, 16)               /* VA, R_Key, DMA length */            \
	ROW(arg, FLUSH, flush, 20)             /* FETH, RETH; see enum wire_flush */  \
	ROW(arg, ATOMIC, atomic, 28)           /* VA, R_Key, swap/add, compare */     \
	ROW(arg, AETH, aeth, 4)                /* syndrome, MSN */                    \
	ROW(arg, ATOMIC_ACK, atomic_ack, 8)    /* the value before the operation */   \
	ROW(arg, IMM, imm, 4)                  /* immediate data */                   \
	ROW(arg, IETH, ieth, 4)                /* R_Key to invalidate */
/* clang-format on */

#define WIRE_EXTENSION_PLACE(arg, id, name, bytes) WIRE_PLACE_##id,
#define WIRE_EXTENSION_MASK(arg, id, name, bytes)  WIRE_HAS_##id = 1 << WIRE_PLACE_##id,
#define WIRE_EXTENSION_BYTES(arg, id, name, bytes) WIRE_##id##_BYTES = bytes,

enum wire_header_place { WIRE_EXTENSIONS(WIRE_EXTENSION_PLACE, ) WIRE_PLACE_PAYLOAD, WIRE_PLACES };

/* wire_opcode.headers: extension headers and payload. */
enum wire_header_mask {
	WIRE_EXTENSIONS(WIRE_EXTENSION_MASK, )	    /* and: */
	WIRE_HAS_PAYLOAD = 1 << WIRE_PLACE_PAYLOAD, /* payload may follow; its length may be 0 */
};
_Static_assert(WIRE_PLACES <= 16, "wire_opcode.headers has a bit for each");

/* wire_opcode.flags. Exactly one of FIRST, MIDDLE, LAST, ONLY is set. */
enum wire_opcode_flag {
	WIRE_FIRST = 1 << 0,
	WIRE_MIDDLE = 1 << 1,
	WIRE_LAST = 1 << 2,
	WIRE_ONLY = 1 << 3,
	WIRE_REQUEST = 1 << 4,	     /* to the responder (ExecutionEngine) */
	WIRE_RESPONSE = 1 << 5,	     /* to the requester (RequesterRecvControl) */
	WIRE_CONSUMES_RECV = 1 << 6, /* the message needs a receive WQE because of this packet:
					      * every SEND packet, a last or only WRITE with imm */
	WIRE_ANSWERED = 1 << 7,	     /* has a separate response, for which the responder keeps a
				      * resource (C9-86) */
	WIRE_START = WIRE_FIRST | WIRE_ONLY, /* test with &: begins a message */
	WIRE_END = WIRE_LAST | WIRE_ONLY,    /* test with &: ends a message */
};

/* What a FLUSH asks for: its FETH, the second operand (wire_headers.compare); the first (swap_add)
 * is the length in its RETH. */
enum wire_flush {
	WIRE_FLUSH_GLOBAL = 1 << 0,	/* placement type: visible to everybody */
	WIRE_FLUSH_PERSISTENT = 1 << 1, /* stored for good */
	WIRE_FLUSH_PLACEMENTS = 0xf,
	WIRE_FLUSH_REGION = 1 << 4, /* selectivity level: all of the key's memory; 0: a range */
	WIRE_FLUSH_LEVELS = 3 << 4,
};

enum wire_opcode_id {
	WIRE_RC_SEND_FIRST = 0x00,
	WIRE_RC_SEND_MIDDLE = 0x01,
	WIRE_RC_SEND_LAST = 0x02,
	WIRE_RC_SEND_LAST_IMM = 0x03,
	WIRE_RC_SEND_ONLY = 0x04,
	WIRE_RC_SEND_ONLY_IMM = 0x05,
	WIRE_RC_WRITE_FIRST = 0x06,
	WIRE_RC_WRITE_MIDDLE = 0x07,
	WIRE_RC_WRITE_LAST = 0x08,
	WIRE_RC_WRITE_LAST_IMM = 0x09,
	WIRE_RC_WRITE_ONLY = 0x0a,
	WIRE_RC_WRITE_ONLY_IMM = 0x0b,
	WIRE_RC_READ_REQUEST = 0x0c,
	WIRE_RC_READ_RESP_FIRST = 0x0d,
	WIRE_RC_READ_RESP_MIDDLE = 0x0e,
	WIRE_RC_READ_RESP_LAST = 0x0f,
	WIRE_RC_READ_RESP_ONLY = 0x10,
	WIRE_RC_ACK = 0x11,
	WIRE_RC_ATOMIC_ACK = 0x12,
	WIRE_RC_CMP_SWAP = 0x13,
	WIRE_RC_FETCH_ADD = 0x14,
	WIRE_RC_SEND_LAST_INV = 0x16,
	WIRE_RC_SEND_ONLY_INV = 0x17,
	WIRE_RC_FLUSH = 0x1c,
	WIRE_RC_ATOMIC_WRITE = 0x1d,

	WIRE_UC_SEND_FIRST = 0x20,
	WIRE_UC_SEND_MIDDLE = 0x21,
	WIRE_UC_SEND_LAST = 0x22,
	WIRE_UC_SEND_LAST_IMM = 0x23,
	WIRE_UC_SEND_ONLY = 0x24,
	WIRE_UC_SEND_ONLY_IMM = 0x25,
	WIRE_UC_WRITE_FIRST = 0x26,
	WIRE_UC_WRITE_MIDDLE = 0x27,
	WIRE_UC_WRITE_LAST = 0x28,
	WIRE_UC_WRITE_LAST_IMM = 0x29,
	WIRE_UC_WRITE_ONLY = 0x2a,
	WIRE_UC_WRITE_ONLY_IMM = 0x2b,

	WIRE_UD_SEND_ONLY = 0x64,
	WIRE_UD_SEND_ONLY_IMM = 0x65,

	WIRE_CNP = 0x81,
	WIRE_SACK = 0xd3, /* doc/transport.md#selective-acknowledgements */
};

enum {
	WIRE_BTH_BYTES = 12,
	WIRE_EXTENSIONS(WIRE_EXTENSION_BYTES, ) /* and: */
	WIRE_ICRC_BYTES = 4,
	WIRE_TRANSPORT_BYTES_MAX = WIRE_BTH_BYTES + WIRE_ATOMIC_BYTES, /* the longest: atomics */
	WIRE_CNP_RESERVED_BYTES = 16, /* zero bytes that a CNP carries as if they were payload */
	WIRE_SACK_BYTES =
		32, /* its map, as if it were payload: a bit for each PSN behind its own */
};

struct wire_opcode {
	const char *name;     /* as IBTA spells it; NULL when not defined */
	bool defined;	      /* false: everything else is 0 */
	uint8_t service;      /* enum qp_service, or WIRE_SERVICE_NONE */
	uint8_t kind;	      /* enum wire_kind */
	uint8_t flags;	      /* enum wire_opcode_flag */
	uint16_t headers;     /* enum wire_header_mask */
	uint8_t header_bytes; /* BTH and all extension headers */
};
_Static_assert(sizeof(struct wire_opcode) == 16, "found by a shift");

/* Indexed by the BTH's opcode byte: all 256 are valid indices, most are not defined. Read only. */
extern const struct wire_opcode wire_opcodes[256];

/* Name of an opcode byte for logs and counters, "reserved" when not defined; static storage. */
const char *wire_opcode_name(uint8_t opcode);

#endif
