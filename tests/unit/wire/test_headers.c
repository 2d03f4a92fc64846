/* SPDX-License-Identifier: BSD-3-Clause */
/* BTH and extension headers: every opcode × every length, there and back; the bytes of a few. */
#include "test.h"
#include "guard.h"
#include "wire/headers.h"

/* All fields set, every one different, all bits that exist in use. */
static void fill(struct wire_headers *h, uint8_t opcode)
{
	memset(h, 0, sizeof(*h));
	h->opcode = opcode;
	h->ackreq = h->se = h->migreq = h->fecn = h->becn = 1;
	h->pad = 3;
	h->psn = 0xfedcba;
	h->dest_qp = 0x923456;
	h->pkey = 0x7fff;
	h->syndrome = 0x65;
	h->msn = 0xabcdef;
	h->va = 0x1122334455667788;
	h->rkey = 0xcafebabe;
	h->dma_len = 0x80000000;
	memcpy(&h->imm, "\x01\x02\x03\x04", 4);
	h->invalidate_rkey = 0x99aabbcc;
	h->qkey = 0x80010000;
	h->src_qp = 0xf00001;
	h->swap_add = 0xdeadbeef00c0ffee;
	h->compare = 0x0123456789abcdef;
	h->orig = 0xfedcba9876543210;
}

/* Filled headers after a trip over the wire: only the fields that the opcode carries. */
static void keep_carried(struct wire_headers *h)
{
	unsigned int has = wire_opcodes[h->opcode].headers;

	if (!(has & WIRE_HAS_DETH))
		h->qkey = h->src_qp = 0;
	if (!(has & (WIRE_HAS_RETH | WIRE_HAS_FLUSH | WIRE_HAS_ATOMIC)))
		h->va = h->rkey = 0;
	if (!(has & WIRE_HAS_RETH))
		h->dma_len = 0;
	if (has & WIRE_HAS_FLUSH) {
		h->swap_add &= UINT32_MAX;
		h->compare &= 0x3f;
	} else if (!(has & WIRE_HAS_ATOMIC)) {
		h->swap_add = h->compare = 0;
	}
	if (!(has & WIRE_HAS_AETH))
		h->syndrome = h->msn = 0;
	if (!(has & WIRE_HAS_ATOMIC_ACK))
		h->orig = 0;
	if (!(has & WIRE_HAS_IMM))
		h->imm = 0;
	if (!(has & WIRE_HAS_IETH))
		h->invalidate_rkey = 0;
}

TEST(headers__there_and_back)
{
	struct wire_headers h;
	struct wire_headers back;
	unsigned int bytes;
	unsigned int i;
	uint8_t wire[64];

	for (i = 0; i < 256; i++) {
		if (!wire_opcodes[i].defined)
			continue;
		fill(&h, (uint8_t)i);
		memset(wire, 0x5a, sizeof(wire));
		assert_int_equal(wire_write_transport(wire, &h), wire_opcodes[i].header_bytes);
		assert_int_equal(wire[wire_opcodes[i].header_bytes], 0x5a);
		assert_int_equal(wire_read_transport(wire, sizeof(wire), &back, &bytes), WIRE_OK);
		assert_int_equal(bytes, wire_opcodes[i].header_bytes);
		keep_carried(&h);
		assert_memory_equal(&back, &h, sizeof(h));
	}
}

TEST(headers__opcode_times_length)
{
	uint8_t *guard = guard_new();
	struct wire_headers h;
	unsigned int header_bytes;
	unsigned int bytes;
	unsigned int i;
	uint8_t wire[64] = {0};
	enum wire_error want;

	for (i = 0; i < 256; i++) {
		for (bytes = 0; bytes <= sizeof(wire); bytes++) {
			uint8_t *heap = malloc(bytes ? bytes : 1);

			assert_non_null(heap);
			wire[0] = (uint8_t)i;
			memcpy(heap, wire, bytes);
			want = wire_opcodes[i].defined ? WIRE_OK : WIRE_ERR_OPCODE;
			if (bytes < WIRE_BTH_BYTES || bytes < wire_opcodes[i].header_bytes)
				want = WIRE_ERR_TRUNCATED;
			assert_int_equal(wire_read_transport(heap, bytes, &h, &header_bytes), want);
			assert_true(header_bytes <= bytes);
			free(heap);
			assert_int_equal(wire_read_transport(guard_copy(guard, wire, bytes), bytes,
							     &h, &header_bytes),
					 want);
		}
	}
	guard_free(guard);
}

/* Rule C9-84 wants an answer to a reserved opcode, so the BTH must be there. */
TEST(headers__reserved_opcode_gives_bth)
{
	static const uint8_t wire[12] = {0x15, 0x80, 0xff, 0xff, 0,    0,
					 0x01, 0x23, 0x80, 0,	 0x45, 0x67};
	struct wire_headers h;
	unsigned int bytes;

	assert_int_equal(wire_read_transport(wire, sizeof(wire), &h, &bytes), WIRE_ERR_OPCODE);
	assert_int_equal(bytes, 12);
	assert_int_equal(h.opcode, 0x15);
	assert_int_equal(h.dest_qp, 0x123);
	assert_int_equal(h.psn, 0x4567);
	assert_int_equal(h.ackreq, 1);
}

TEST(headers__version_must_be_zero)
{
	uint8_t wire[16] = {WIRE_RC_ACK};
	struct wire_headers h;
	unsigned int bytes;
	uint8_t tver;

	for (tver = 0; tver < 16; tver++) {
		wire[1] = tver;
		assert_int_equal(wire_read_transport(wire, sizeof(wire), &h, &bytes),
				 tver ? WIRE_ERR_TVER : WIRE_OK);
		assert_int_equal(h.tver, tver);
	}
}

TEST(headers__bytes_of_a_write_with_immediate)
{
	static const uint8_t want[32] = {0x0b, 0xf0, 0x7f, 0xff, 0xc0, 0x92, 0x34, 0x56,
					 0x80, 0xfe, 0xdc, 0xba, 0x11, 0x22, 0x33, 0x44,
					 0x55, 0x66, 0x77, 0x88, 0xca, 0xfe, 0xba, 0xbe,
					 0x80, 0,    0,	   0,	 1,    2,    3,	   4};
	struct wire_headers h;
	uint8_t wire[40];

	fill(&h, WIRE_RC_WRITE_ONLY_IMM);
	assert_int_equal(wire_write_transport(wire, &h), sizeof(want));
	assert_memory_equal(wire, want, sizeof(want));
}
