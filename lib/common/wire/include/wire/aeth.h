/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_AETH_H
#define WIRE_AETH_H
/*
 * The AETH syndrome (rules C9-119, C9-120, C9-129, C9-158), the codes in it, and the code of the
 * path MTU.
 *
 *   7    6:5   4:0
 *   0    00    ACK, credit code (31: no credits given)
 *   0    01    RNR NAK, timer code
 *   0    11    NAK, NAK code 0..4
 *
 * All else is reserved; receivers drop the packet.
 */
#include <stdint.h>

enum aeth_kind {
	AETH_ACK,
	AETH_RNR,
	AETH_NAK,
	AETH_RESERVED,
};

enum aeth_nak {
	AETH_NAK_SEQUENCE = 0,
	AETH_NAK_INVALID_REQUEST = 1,
	AETH_NAK_REMOTE_ACCESS = 2,
	AETH_NAK_REMOTE_OPERATION = 3,
	AETH_NAK_INVALID_RD_REQUEST = 4, /* RD only; defined, never sent by us */
	AETH_NAK_CODES = 5,
};

enum {
	AETH_VALUE_MASK = 0x1f,
	AETH_CREDIT_INVALID = 31, /* credit code: the responder grants no credits (SRQ) */
};

/* aeth_credits() of AETH_CREDIT_INVALID: no limit. */
#define AETH_CREDITS_UNLIMITED UINT32_MAX

/* Kind of a received syndrome: AETH_RESERVED also for a NAK code that is not defined. */
static inline enum aeth_kind aeth_kind(uint8_t syndrome)
{
	switch (syndrome >> 5) {
	case 0:
		return AETH_ACK;
	case 1:
		return AETH_RNR;
	case 3:
		return (syndrome & AETH_VALUE_MASK) < AETH_NAK_CODES ? AETH_NAK : AETH_RESERVED;
	}
	return AETH_RESERVED;
}

/* Credit, timer or NAK code of a syndrome, as its kind says: 0..31. */
static inline uint8_t aeth_value(uint8_t syndrome)
{
	return syndrome & AETH_VALUE_MASK;
}

/* Syndrome of an ACK with a credit code 0..31. */
static inline uint8_t aeth_ack(uint8_t credit_code)
{
	return credit_code & AETH_VALUE_MASK;
}

/* Syndrome of an RNR NAK with a timer code 0..31. */
static inline uint8_t aeth_rnr(uint8_t timer_code)
{
	return 0x20 | (timer_code & AETH_VALUE_MASK);
}

/* Syndrome of a NAK. */
static inline uint8_t aeth_nak(enum aeth_nak code)
{
	return 0x60 | ((uint8_t)code & AETH_VALUE_MASK);
}

/*
 * Credit count of each code, doc/transport.md#credits: added to the MSN it gives the LSN.
 * aeth_credit_table[31] is AETH_CREDITS_UNLIMITED.
 */
extern const uint32_t aeth_credit_table[32];

/* The wait in ns requested by each RNR timer code (C9-129): 10 us .. 655.36 ms (code 0). */
extern const uint32_t aeth_rnr_ns_table[32];

/* Credits of a code (low 5 bits count). */
static inline uint32_t aeth_credits(uint8_t credit_code)
{
	return aeth_credit_table[credit_code & AETH_VALUE_MASK];
}

/* Greatest code that grants no more than `posted` receive WQEs: 0..30. Never 31. */
static inline uint8_t aeth_credit_code(uint32_t posted)
{
	unsigned int top;

	if (posted < 2)
		return (uint8_t)posted;
	if (posted >= 32768)
		return 30;
	top = 31 - (unsigned int)__builtin_clz(posted);
	return (uint8_t)(2 * top + ((posted >> (top - 1)) & 1));
}

/* Wait in ns of an RNR timer code (low 5 bits count). */
static inline uint32_t aeth_rnr_ns(uint8_t timer_code)
{
	return aeth_rnr_ns_table[timer_code & AETH_VALUE_MASK];
}

/* Path MTU in bytes of the code 1..5 (256..4096); 0 for any other code. */
static inline uint32_t wire_mtu_bytes(unsigned int code)
{
	return code >= 1 && code <= 5 ? 128u << code : 0;
}

/* Code 1..5 of a path MTU in bytes; 0: no such MTU. */
static inline unsigned int wire_mtu_code(uint32_t bytes)
{
	if (bytes < 256 || bytes > 4096 || (bytes & (bytes - 1)))
		return 0;
	return (unsigned int)__builtin_ctz(bytes) - 7;
}

/*
 * Code of the largest path MTU for an interface that carries IP packets of if_mtu_bytes: it must
 * fit into if_mtu_bytes - 80 (tests/golden/README.md). 0: not even 256 fits.
 */
static inline unsigned int wire_mtu_code_of_port(uint32_t if_mtu_bytes)
{
	unsigned int code = 5;

	while (code && wire_mtu_bytes(code) + 80 > if_mtu_bytes)
		code--;
	return code;
}

#endif
