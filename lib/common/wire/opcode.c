/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The opcode table, generated from one list for RC and UC, so that they cannot drift apart.
 * Constant data and a name look-up; called on every stage that sees packets.
 */
#include "wire/opcode.h"

#include <stddef.h>

#define BYTES_IF(h, id, name, bytes) +((h)&WIRE_HAS_##id ? (bytes) : 0)

#define ROW(id, text, service_, kind_, headers_, flags_)                                           \
	[id] = {                                                                                   \
		.name = text,                                                                      \
		.defined = true,                                                                   \
		.service = SERVICE_##service_,                                                     \
		.kind = WIRE_KIND_##kind_,                                                         \
		.headers = (headers_),                                                             \
		.flags = (flags_),                                                                 \
		.header_bytes = WIRE_BTH_BYTES + (0 WIRE_EXTENSIONS(BYTES_IF, headers_)),          \
	}

#define SERVICE_NONE WIRE_SERVICE_NONE
#define PAY	     WIRE_HAS_PAYLOAD
#define IMM	     WIRE_HAS_IMM
#define RETH	     WIRE_HAS_RETH
#define RQ	     WIRE_REQUEST
#define RQ_RECV	     (WIRE_REQUEST | WIRE_CONSUMES_RECV)
#define RQ_ANSWERED  (WIRE_REQUEST | WIRE_ANSWERED)
#define RS	     WIRE_RESPONSE

/* Common to RC and UC, whose opcodes differ in the upper three bits. */
#define SEND_AND_WRITE(S)                                                                          \
	ROW(WIRE_##S##_SEND_FIRST, #S " SEND First", S, SEND, PAY, WIRE_FIRST | RQ_RECV),          \
		ROW(WIRE_##S##_SEND_MIDDLE, #S " SEND Middle", S, SEND, PAY,                       \
		    WIRE_MIDDLE | RQ_RECV),                                                        \
		ROW(WIRE_##S##_SEND_LAST, #S " SEND Last", S, SEND, PAY, WIRE_LAST | RQ_RECV),     \
		ROW(WIRE_##S##_SEND_LAST_IMM, #S " SEND Last with Immediate", S, SEND, IMM | PAY,  \
		    WIRE_LAST | RQ_RECV),                                                          \
		ROW(WIRE_##S##_SEND_ONLY, #S " SEND Only", S, SEND, PAY, WIRE_ONLY | RQ_RECV),     \
		ROW(WIRE_##S##_SEND_ONLY_IMM, #S " SEND Only with Immediate", S, SEND, IMM | PAY,  \
		    WIRE_ONLY | RQ_RECV),                                                          \
		ROW(WIRE_##S##_WRITE_FIRST, #S " RDMA WRITE First", S, WRITE, RETH | PAY,          \
		    WIRE_FIRST | RQ),                                                              \
		ROW(WIRE_##S##_WRITE_MIDDLE, #S " RDMA WRITE Middle", S, WRITE, PAY,               \
		    WIRE_MIDDLE | RQ),                                                             \
		ROW(WIRE_##S##_WRITE_LAST, #S " RDMA WRITE Last", S, WRITE, PAY, WIRE_LAST | RQ),  \
		ROW(WIRE_##S##_WRITE_LAST_IMM, #S " RDMA WRITE Last with Immediate", S, WRITE,     \
		    IMM | PAY, WIRE_LAST | RQ_RECV),                                               \
		ROW(WIRE_##S##_WRITE_ONLY, #S " RDMA WRITE Only", S, WRITE, RETH | PAY,            \
		    WIRE_ONLY | RQ),                                                               \
		ROW(WIRE_##S##_WRITE_ONLY_IMM, #S " RDMA WRITE Only with Immediate", S, WRITE,     \
		    RETH | IMM | PAY, WIRE_ONLY | RQ_RECV)

const struct wire_opcode wire_opcodes[256] = {
	SEND_AND_WRITE(RC),
	ROW(WIRE_RC_READ_REQUEST, "RC RDMA READ Request", RC, READ, RETH, WIRE_ONLY | RQ_ANSWERED),
	ROW(WIRE_RC_READ_RESP_FIRST, "RC RDMA READ Response First", RC, READ_RESP,
	    WIRE_HAS_AETH | PAY, WIRE_FIRST | RS),
	ROW(WIRE_RC_READ_RESP_MIDDLE, "RC RDMA READ Response Middle", RC, READ_RESP, PAY,
	    WIRE_MIDDLE | RS),
	ROW(WIRE_RC_READ_RESP_LAST, "RC RDMA READ Response Last", RC, READ_RESP,
	    WIRE_HAS_AETH | PAY, WIRE_LAST | RS),
	ROW(WIRE_RC_READ_RESP_ONLY, "RC RDMA READ Response Only", RC, READ_RESP,
	    WIRE_HAS_AETH | PAY, WIRE_ONLY | RS),
	ROW(WIRE_RC_ACK, "RC Acknowledge", RC, ACK, WIRE_HAS_AETH, WIRE_ONLY | RS),
	ROW(WIRE_RC_ATOMIC_ACK, "RC ATOMIC Acknowledge", RC, ATOMIC_ACK,
	    WIRE_HAS_AETH | WIRE_HAS_ATOMIC_ACK, WIRE_ONLY | RS),
	ROW(WIRE_RC_CMP_SWAP, "RC CmpSwap", RC, ATOMIC, WIRE_HAS_ATOMIC, WIRE_ONLY | RQ_ANSWERED),
	ROW(WIRE_RC_FETCH_ADD, "RC FetchAdd", RC, ATOMIC, WIRE_HAS_ATOMIC, WIRE_ONLY | RQ_ANSWERED),
	ROW(WIRE_RC_SEND_LAST_INV, "RC SEND Last with Invalidate", RC, SEND, WIRE_HAS_IETH | PAY,
	    WIRE_LAST | RQ_RECV),
	ROW(WIRE_RC_SEND_ONLY_INV, "RC SEND Only with Invalidate", RC, SEND, WIRE_HAS_IETH | PAY,
	    WIRE_ONLY | RQ_RECV),
	ROW(WIRE_RC_FLUSH, "RC FLUSH", RC, FLUSH, WIRE_HAS_FLUSH, WIRE_ONLY | RQ_ANSWERED),
	ROW(WIRE_RC_ATOMIC_WRITE, "RC ATOMIC WRITE", RC, ATOMIC_WRITE, RETH | PAY,
	    WIRE_ONLY | RQ_ANSWERED),
	SEND_AND_WRITE(UC),
	ROW(WIRE_UD_SEND_ONLY, "UD SEND Only", UD, SEND, WIRE_HAS_DETH | PAY, WIRE_ONLY | RQ_RECV),
	ROW(WIRE_UD_SEND_ONLY_IMM, "UD SEND Only with Immediate", UD, SEND,
	    WIRE_HAS_DETH | IMM | PAY, WIRE_ONLY | RQ_RECV),
	ROW(WIRE_CNP, "CNP", NONE, CNP, PAY, WIRE_ONLY),
	ROW(WIRE_SACK, "SACK", NONE, SACK, PAY, WIRE_ONLY | RS),
};

const char *wire_opcode_name(uint8_t opcode)
{
	const char *name = wire_opcodes[opcode].name;

	return name ? name : "reserved";
}
