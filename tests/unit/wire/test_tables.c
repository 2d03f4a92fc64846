/* SPDX-License-Identifier: BSD-3-Clause */
/* Opcode, outcome, credit, RNR and MTU tables, all rows; PSN arithmetic around the wrap. */
#include "test.h"
#include "wire/aeth.h"
#include "wire/error.h"
#include "wire/opcode.h"
#include "wire/psn.h"

static unsigned int bits(unsigned int v)
{
	return (unsigned int)__builtin_popcount(v);
}

TEST(opcode__every_row_is_consistent)
{
	unsigned int defined = 0;
	unsigned int i;

	for (i = 0; i < 256; i++) {
		const struct wire_opcode *op = &wire_opcodes[i];

		if (!op->defined) {
			assert_int_equal(op->header_bytes, 0);
			assert_int_equal(op->flags, 0);
			assert_string_equal(wire_opcode_name((uint8_t)i), "reserved");
			continue;
		}
		defined++;
		assert_string_equal(wire_opcode_name((uint8_t)i), op->name);
		assert_int_equal(
			bits(op->flags & (WIRE_FIRST | WIRE_MIDDLE | WIRE_LAST | WIRE_ONLY)), 1);
		assert_true(op->header_bytes >= WIRE_BTH_BYTES);
		assert_true(op->header_bytes <= WIRE_TRANSPORT_BYTES_MAX);
		assert_int_equal(op->header_bytes % 4, 0);
		if (op->service == WIRE_SERVICE_NONE)
			continue;
		assert_int_equal(bits(op->flags & (WIRE_REQUEST | WIRE_RESPONSE)), 1);
		/* the upper three bits of an opcode name the service: RC 0, UC 1, UD 3 */
		assert_int_equal(i >> 5, op->service == SERVICE_UD ? 3 : op->service);
	}
	assert_int_equal(defined, 25 + 12 + 2 + 1 + 1);
}

TEST(opcode__uc_is_rc_without_responses)
{
	unsigned int i;

	for (i = 0; i <= WIRE_RC_WRITE_ONLY_IMM; i++) {
		assert_int_equal(wire_opcodes[i].headers, wire_opcodes[i | 0x20].headers);
		assert_int_equal(wire_opcodes[i].flags, wire_opcodes[i | 0x20].flags);
		assert_int_equal(wire_opcodes[i].kind, wire_opcodes[i | 0x20].kind);
	}
}

TEST(opcode__header_bytes_as_specified)
{
	static const struct {
		uint8_t opcode;
		uint8_t bytes;
	} rows[] = {
		{WIRE_RC_SEND_FIRST, 12},
		{WIRE_RC_SEND_LAST_IMM, 16},
		{WIRE_RC_WRITE_FIRST, 28},
		{WIRE_RC_WRITE_ONLY_IMM, 32},
		{WIRE_RC_WRITE_LAST_IMM, 16},
		{WIRE_RC_READ_REQUEST, 28},
		{WIRE_RC_READ_RESP_FIRST, 16},
		{WIRE_RC_READ_RESP_MIDDLE, 12},
		{WIRE_RC_ACK, 16},
		{WIRE_RC_ATOMIC_ACK, 24},
		{WIRE_RC_CMP_SWAP, 40},
		{WIRE_RC_FETCH_ADD, 40},
		{WIRE_RC_SEND_ONLY_INV, 16},
		{WIRE_RC_FLUSH, 32},
		{WIRE_RC_ATOMIC_WRITE, 28},
		{WIRE_UD_SEND_ONLY, 20},
		{WIRE_UD_SEND_ONLY_IMM, 24},
		{WIRE_CNP, 12},
		{WIRE_SACK, 12},
	};
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(wire_opcodes[rows[i].opcode].header_bytes, rows[i].bytes);
}

TEST(opcode__who_consumes_a_receive)
{
	unsigned int i;

	for (i = 0; i < 256; i++) {
		const struct wire_opcode *op = &wire_opcodes[i];
		int imm_write = op->kind == WIRE_KIND_WRITE && (op->headers & WIRE_HAS_IMM);

		if (op->defined)
			assert_int_equal(!!(op->flags & WIRE_CONSUMES_RECV),
					 op->kind == WIRE_KIND_SEND || imm_write);
	}
}

TEST(outcome__every_row_is_filled)
{
	unsigned int i;

	for (i = 0; i < OUTCOME_COUNT; i++) {
		const struct wire_outcome_info *o = &wire_outcomes[i];

		if (o->aeth_syndrome != WIRE_NO_SYNDROME)
			assert_int_not_equal(aeth_kind(o->aeth_syndrome), AETH_RESERVED);
	}
}

TEST(outcome__nak_codes_come_back)
{
	unsigned int i;

	for (i = OUTCOME_SEQUENCE; i <= OUTCOME_REMOTE_OPERATION; i++) {
		uint8_t syndrome = wire_outcomes[i].aeth_syndrome;

		assert_int_equal(aeth_kind(syndrome), AETH_NAK);
		assert_int_equal(wire_outcome_of_nak(aeth_value(syndrome)), i);
	}
	for (i = AETH_NAK_INVALID_RD_REQUEST; i < 32; i++)
		assert_int_equal(wire_outcome_of_nak((uint8_t)i), OUTCOME_BAD_RESP);
}

TEST(error__every_one_has_a_name)
{
	unsigned int i;

	for (i = 0; i < WIRE_ERR_COUNT; i++)
		assert_non_null(wire_error_name((enum wire_error)i));
	assert_string_equal(wire_error_name(WIRE_ERR_COUNT), "wire_error?");
}

/* Bits 7:5 decide, and for NAKs the code (rules C9-119, C9-120). */
TEST(aeth__all_256_syndromes)
{
	unsigned int s;

	for (s = 0; s < 256; s++) {
		enum aeth_kind kind = aeth_kind((uint8_t)s);
		uint8_t value = aeth_value((uint8_t)s);

		if (s < 0x20)
			assert_true(kind == AETH_ACK && aeth_ack(value) == s);
		else if (s < 0x40)
			assert_true(kind == AETH_RNR && aeth_rnr(value) == s);
		else if (s >= 0x60 && s < 0x65)
			assert_true(kind == AETH_NAK && aeth_nak(value) == s);
		else
			assert_int_equal(kind, AETH_RESERVED);
	}
}

TEST(aeth__credit_table)
{
	static const uint32_t seed[31] = {0,	1,    2,    3,	   4,	  6,	 8,    12,
					  16,	24,   32,   48,	   64,	  96,	 128,  192,
					  256,	384,  512,  768,   1024,  1536,	 2048, 3072,
					  4096, 6144, 8192, 12288, 16384, 24576, 32768};
	uint32_t posted;
	unsigned int code;

	for (code = 0; code < 31; code++) {
		assert_int_equal(aeth_credits((uint8_t)code), seed[code]);
		assert_int_equal(aeth_credit_code(seed[code]), code);
	}
	assert_int_equal(aeth_credits(AETH_CREDIT_INVALID), AETH_CREDITS_UNLIMITED);
	for (posted = 0; posted < 70000; posted++) {
		code = aeth_credit_code(posted);
		assert_true(code <= 30 && seed[code] <= posted);
		assert_true(code == 30 || seed[code + 1] > posted);
	}
	assert_int_equal(aeth_credit_code(UINT32_MAX), 30);
}

/* Codes 1.. in units of 10 us as IBTA lists them; code 0 is the longest. */
TEST(aeth__rnr_table)
{
	static const uint32_t units[32] = {65536, 1,	2,    3,     4,	    6,	   8,	  12,
					   16,	  24,	32,   48,    64,    96,	   128,	  192,
					   256,	  384,	512,  768,   1024,  1536,  2048,  3072,
					   4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
	unsigned int code;

	for (code = 0; code < 32; code++)
		assert_int_equal(aeth_rnr_ns((uint8_t)code), units[code] * 10000u);
}

TEST(mtu__codes_and_bytes)
{
	unsigned int code;
	uint32_t bytes;

	for (code = 1; code <= 5; code++)
		assert_int_equal(wire_mtu_code(wire_mtu_bytes(code)), code);
	assert_int_equal(wire_mtu_bytes(1), 256);
	assert_int_equal(wire_mtu_bytes(5), 4096);
	assert_int_equal(wire_mtu_bytes(0), 0);
	assert_int_equal(wire_mtu_bytes(6), 0);
	assert_int_equal(wire_mtu_bytes(UINT32_MAX), 0);
	for (bytes = 0; bytes < 10000; bytes++)
		assert_true(!wire_mtu_code(bytes) || wire_mtu_bytes(wire_mtu_code(bytes)) == bytes);
	assert_int_equal(wire_mtu_code_of_port(1500), 3);
	assert_int_equal(wire_mtu_code_of_port(9000), 5);
	assert_int_equal(wire_mtu_code_of_port(4096 + 80), 5);
	assert_int_equal(wire_mtu_code_of_port(4096 + 79), 4);
	assert_int_equal(wire_mtu_code_of_port(335), 0);
}

TEST(psn__wraps_at_24_bits)
{
	assert_int_equal(psn_add(0xffffff, 1), 0);
	assert_int_equal(psn_sub(0, 1), 0xffffff);
	assert_int_equal(psn_add(0xfffff0, 0x20), 0x10);
	assert_int_equal(psn_diff(0, 0xffffff), 1);
	assert_int_equal(psn_diff(0xffffff, 0), -1);
	assert_int_equal(psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(psn_diff(0xff000005, 0x3), 2);
}

TEST(psn__order_around_the_wrap)
{
	uint32_t base;
	uint32_t a;

	for (base = 0xfffff0; base != 0x10; base = psn_add(base, 1)) {
		a = psn_add(base, 7);
		assert_true(psn_after(a, base) && psn_after_eq(a, base) && psn_before(base, a));
		assert_true(psn_before_eq(base, a) && !psn_before_eq(a, base));
		assert_true(psn_before_eq(a, a) && psn_after_eq(a, a));
		assert_true(!psn_before(a, a) && !psn_after(a, a));
		assert_true(psn_in(a, base, 8) && !psn_in(a, base, 7));
		assert_true(psn_in(base, base, 1) && !psn_in(base, base, 0));
		assert_false(psn_in(psn_sub(base, 1), base, 8));
	}
}

TEST(psn__packets_of_a_message)
{
	uint32_t mtu;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		assert_int_equal(psn_packets(0, mtu), 1);
		assert_int_equal(psn_packets(1, mtu), 1);
		assert_int_equal(psn_packets(mtu, mtu), 1);
		assert_int_equal(psn_packets(mtu + 1, mtu), 2);
		assert_int_equal(psn_packets(1u << 31, mtu), (1u << 31) / mtu);
	}
}
