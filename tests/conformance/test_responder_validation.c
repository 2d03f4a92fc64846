/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules on what a request must be: opcode, sequence of opcodes, functions of the
 * QP, pad, lengths, resources; and which fault wins if a request has two (C9-73, C9-81 to C9-94).
 */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, MTU = 1024, BAD_KEY = 0x1234 };

enum progress { NOTHING, SEND, WRITE };

/* Every request opcode of RC: its place in a message, and a valid length. */
static const struct kind {
	uint8_t opcode;
	bool begins;
	enum progress continues; /* the message that must be in progress unless it begins one */
	uint32_t bytes;
} kinds[] = {
	{WIRE_RC_SEND_FIRST, true, NOTHING, MTU},    {WIRE_RC_SEND_MIDDLE, false, SEND, MTU},
	{WIRE_RC_SEND_LAST, false, SEND, 100},	     {WIRE_RC_SEND_LAST_IMM, false, SEND, 100},
	{WIRE_RC_SEND_LAST_INV, false, SEND, 100},   {WIRE_RC_SEND_ONLY, true, NOTHING, 100},
	{WIRE_RC_SEND_ONLY_IMM, true, NOTHING, 100}, {WIRE_RC_SEND_ONLY_INV, true, NOTHING, 100},
	{WIRE_RC_WRITE_FIRST, true, NOTHING, MTU},   {WIRE_RC_WRITE_MIDDLE, false, WRITE, MTU},
	{WIRE_RC_WRITE_LAST, false, WRITE, 100},     {WIRE_RC_WRITE_LAST_IMM, false, WRITE, 100},
	{WIRE_RC_WRITE_ONLY, true, NOTHING, 100},    {WIRE_RC_WRITE_ONLY_IMM, true, NOTHING, 100},
	{WIRE_RC_READ_REQUEST, true, NOTHING, 0},    {WIRE_RC_CMP_SWAP, true, NOTHING, 0},
	{WIRE_RC_FETCH_ADD, true, NOTHING, 0},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct kind *kind_of(uint8_t opcode)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (kinds[i].opcode == opcode)
			return &kinds[i];
	return NULL;
}

static bool is_first(uint8_t opcode)
{
	return opcode == WIRE_RC_SEND_FIRST || opcode == WIRE_RC_WRITE_FIRST;
}

static bool is_middle(uint8_t opcode)
{
	return opcode == WIRE_RC_SEND_MIDDLE || opcode == WIRE_RC_WRITE_MIDDLE;
}

static struct sim *make(uint8_t mtu)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.mtu = mtu;
	p.packets = 1023;
	p.no_credits = true;
	return rig_create(&p);
}

/* A QP that has just begun, two receives of 64 KiB posted. */
static void begin(struct sim *s)
{
	rig_reconnect(s, 0);
	sim_post_recv(s, 0, 0, 1 << 20, 1 << 16);
	sim_post_recv(s, 0, 0, 1 << 20, 1 << 16);
}

/* Begins a message of that kind with `packets` packets; `last` bytes of a WRITE are still to come.
 * Returns the next PSN. */
static uint32_t advance_to(struct sim *s, enum progress what, unsigned packets, uint32_t mtu,
			   uint32_t last)
{
	uint32_t psn = PSN;

	for (unsigned i = 0; what != NOTHING && i < packets; i++, psn++) {
		uint8_t opcode = what == SEND ? (i ? WIRE_RC_SEND_MIDDLE : WIRE_RC_SEND_FIRST)
					      : (i ? WIRE_RC_WRITE_MIDDLE : WIRE_RC_WRITE_FIRST);

		rig_request(s, 0, opcode, psn, 2 << 20, packets * mtu + last, mtu);
		rig_expect_ack(s, psn, aeth_ack(0), 0);
	}
	return psn;
}

/* Sends it, to AT where it says so itself. */
static void send_one(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	uint32_t more = is_first(opcode) ? 3 * MTU : 0;

	rig_request(s, 0, opcode, psn, AT, opcode == WIRE_RC_READ_REQUEST ? 100 : bytes + more,
		    bytes);
}

static void expect_done(struct sim *s, uint8_t opcode, uint32_t psn)
{
	bool continues = is_first(opcode) || is_middle(opcode);

	if (opcode == WIRE_RC_READ_REQUEST)
		rig_expect(s, WIRE_RC_READ_RESP_ONLY, psn);
	else if (opcode == WIRE_RC_CMP_SWAP || opcode == WIRE_RC_FETCH_ADD)
		rig_expect(s, WIRE_RC_ATOMIC_ACK, psn);
	else
		rig_expect_ack(s, psn, aeth_ack(0), !continues);
	assert_int_equal(rig_epsn(s, 0), psn + 1);
	assert_int_equal(rig_state(s, 0), QP_RTS);
}

/* ---- C9-81: the sequence of opcodes ---- */

static void try_in_sequence(struct sim *s, const struct kind *r, enum progress what,
			    unsigned packets)
{
	bool right = what == NOTHING ? r->begins : r->continues == what;
	uint32_t psn;

	begin(s);
	psn = advance_to(s, what, packets, MTU, is_middle(r->opcode) ? 2 * MTU : 100);
	send_one(s, r->opcode, psn, r->bytes);
	if (right)
		expect_done(s, r->opcode, psn);
	else
		rig_expect_refusal(s, 0, psn, AETH_NAK_INVALID_REQUEST, 0);
	if (!right)
		rig_untouched(s, AT, MTU);
	memset(s->node[0].memory + AT, 0, MTU);
}

RIG_TEST(c9_081__each_opcode_in_each_state_of_a_message, make(3))
{
	for (unsigned i = 0; i < KINDS; i++) {
		try_in_sequence(s, &kinds[i], NOTHING, 0);
		for (unsigned packets = 1; packets <= 2; packets++) {
			try_in_sequence(s, &kinds[i], SEND, packets);
			try_in_sequence(s, &kinds[i], WRITE, packets);
		}
	}
}

/* After the end of any message a new one may begin, and none may continue. */
RIG_TEST(c9_081__after_a_message_has_ended, make(3))
{
	static const uint8_t ends[] = {WIRE_RC_SEND_LAST,    WIRE_RC_SEND_ONLY_IMM,
				       WIRE_RC_WRITE_LAST,   WIRE_RC_WRITE_LAST_IMM,
				       WIRE_RC_READ_REQUEST, WIRE_RC_FETCH_ADD};

	for (unsigned e = 0; e < sizeof(ends); e++) {
		for (unsigned i = 0; i < KINDS; i++) {
			const struct kind *last = kind_of(ends[e]), *r = &kinds[i];
			struct rig_packet p;
			uint32_t psn;

			begin(s);
			psn = advance_to(s, last->continues, 1, MTU, last->bytes);
			send_one(s, last->opcode, psn++, last->bytes);
			assert_true(rig_recv(s, &p, MS));
			memset(s->node[0].memory + AT, 0, MTU);
			send_one(s, r->opcode, psn, r->bytes);
			if (!r->begins) {
				rig_expect_refusal(s, 0, psn, AETH_NAK_INVALID_REQUEST, 1);
				continue;
			}
			assert_true(rig_recv(s, &p, MS));
			assert_int_equal(p.h.psn, psn);
			assert_int_equal(aeth_kind(p.h.syndrome), AETH_ACK);
			assert_int_equal(rig_epsn(s, 0), psn + 1);
		}
	}
}

/* The receive that the broken message had taken completes in error, the others are flushed. */
RIG_TEST(c9_081__receive_of_a_broken_message_completes_in_error, make(3))
{
	begin(s);
	send_one(s, WIRE_RC_SEND_ONLY, PSN + advance_to(s, SEND, 1, MTU, 0) - PSN, 100);
	rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_INVALID_REQUEST, 0);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_QP_OP, 0);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_WR_FLUSH, SIM_RQ_STRIDE);
	rig_no_cqe(s);
}

/* ---- C9-82, C9-83: functions of the QP ---- */

static uint8_t right_for(uint8_t opcode)
{
	if (opcode >= WIRE_RC_WRITE_FIRST && opcode <= WIRE_RC_WRITE_ONLY_IMM)
		return ACCESS_REMOTE_WRITE;
	if (opcode == WIRE_RC_READ_REQUEST)
		return ACCESS_REMOTE_READ;
	if (opcode == WIRE_RC_CMP_SWAP || opcode == WIRE_RC_FETCH_ADD)
		return ACCESS_REMOTE_ATOMIC;
	return 0; /* SEND needs none */
}

/* Every function is enabled by its own right, and by no other. */
RIG_TEST(c9_082__each_function_needs_its_own_right, make(3))
{
	for (unsigned i = 0; i < KINDS; i++) {
		const struct kind *r = &kinds[i];
		uint8_t right = right_for(r->opcode);

		if (!r->begins)
			continue;
		s->params.access = right;
		begin(s);
		send_one(s, r->opcode, PSN, r->bytes);
		expect_done(s, r->opcode, PSN);
		memset(s->node[0].memory + AT, 0, MTU);
		if (!right)
			continue;
		s->params.access = 0xe & ~right;
		begin(s);
		send_one(s, r->opcode, PSN, r->bytes);
		rig_expect_refusal(s, 0, PSN, AETH_NAK_INVALID_REQUEST, 0);
		rig_untouched(s, AT, MTU);
	}
}

/* The QP's right to WRITE is removed in the middle of a message. */
RIG_TEST(c9_083__function_disabled_meanwhile, make(3))
{
	static const uint8_t rest[] = {WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST,
				       WIRE_RC_WRITE_LAST_IMM};

	for (unsigned i = 0; i < sizeof(rest); i++) {
		uint32_t bytes = rest[i] == WIRE_RC_WRITE_MIDDLE ? MTU : 100;

		s->params.access = 0xe;
		begin(s);
		advance_to(s, WRITE, 1, MTU, rest[i] == WIRE_RC_WRITE_MIDDLE ? 2 * MTU : 100);
		s->params.access = ACCESS_REMOTE_READ;
		sim_modify(s, 0, 0, QP_RTS, QP_ATTR_ACCESS);
		rig_request(s, 0, rest[i], PSN + 1, 0, 0, bytes);
		rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_INVALID_REQUEST, 0);
		rig_untouched(s, (2 << 20) + MTU, MTU);
	}
}

/* ---- C9-84: reserved opcodes ---- */

RIG_TEST(c9_084__reserved_opcode_of_the_rc_range, make(3))
{
	static const uint8_t reserved[] = {0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1e, 0x1f};

	for (unsigned i = 0; i < sizeof(reserved); i++) {
		for (enum progress what = NOTHING; what <= WRITE; what++) {
			uint32_t psn;

			begin(s);
			psn = advance_to(s, what, 1, MTU, 100);
			send_one(s, reserved[i], psn, 100);
			rig_expect_refusal(s, 0, psn, AETH_NAK_INVALID_REQUEST, 0);
		}
	}
}

/* ---- C9-85, C9-92, C9-93: pad and lengths ---- */

static bool length_fits(uint8_t opcode, uint32_t bytes, uint32_t mtu)
{
	if (is_first(opcode) || is_middle(opcode))
		return bytes == mtu;
	if (!kind_of(opcode)->begins && bytes == 0) /* the last packet of a message */
		return false;
	return bytes <= mtu;
}

static void try_length(struct sim *s, const struct kind *r, uint32_t bytes, uint32_t mtu)
{
	uint32_t more = is_first(r->opcode) || is_middle(r->opcode) ? 100 : 0;
	struct wire_headers h;
	struct rig_packet p;
	uint32_t psn;

	begin(s);
	/* A WRITE's last packet without payload: one byte is missing. */
	psn = advance_to(s, r->continues, 1, mtu, bytes + more ? bytes + more : 1);
	h = rig_headers(s, 0, r->opcode, psn, AT, bytes + more);
	h.ackreq = 1;
	rig_send(s, h, NULL, bytes);
	if (!length_fits(r->opcode, bytes, mtu)) {
		rig_expect_refusal(s, 0, psn, AETH_NAK_INVALID_REQUEST, 0);
		rig_untouched(s, AT, mtu + 4);
		return;
	}
	assert_true(rig_recv(s, &p, MS));
	assert_int_equal(p.h.psn, psn);
	assert_int_equal(aeth_kind(p.h.syndrome), AETH_ACK);
	assert_int_equal(rig_epsn(s, 0), psn + 1);
	memset(s->node[0].memory + AT, 0, mtu + 4);
}

static void all_lengths(uint8_t mtu_code)
{
	uint32_t mtu = wire_mtu_bytes(mtu_code);
	const uint32_t lengths[] = {0, 1, 2, 3, 4, mtu - 4, mtu - 1, mtu, mtu + 1, mtu + 4};
	struct sim *s = make(mtu_code);

	for (unsigned i = 0; i < KINDS; i++)
		for (unsigned k = 0; k < sizeof(lengths) / 4; k++)
			if (kinds[i].bytes)
				try_length(s, &kinds[i], lengths[k], mtu);
	rig_end(s);
}

TEST(c9_092__lengths_by_opcode_and_mtu)
{
	all_lengths(1);
	all_lengths(3);
	all_lengths(5);
}

RIG_TEST(c9_093__requests_without_payload_bring_none, make(3))
{
	static const uint8_t opcodes[] = {WIRE_RC_READ_REQUEST, WIRE_RC_CMP_SWAP,
					  WIRE_RC_FETCH_ADD};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		begin(s);
		rig_request(s, 0, opcodes[i], PSN, AT, 8, 4);
		rig_expect_refusal(s, 0, PSN, AETH_NAK_INVALID_REQUEST, 0);
		rig_untouched(s, AT, 8);
	}
}

/* The packets of a WRITE carry exactly the length in its RETH. */
RIG_TEST(c9_093__write_is_as_long_as_its_reth_says, make(3))
{
	static const struct {
		uint32_t dma_len;
		uint8_t opcodes[3];
		uint32_t bytes[3];
		unsigned bad; /* the packet that is refused */
	} rows[] = {
		{99, {WIRE_RC_WRITE_ONLY}, {100}, 0},
		{101, {WIRE_RC_WRITE_ONLY}, {100}, 0},
		{0, {WIRE_RC_WRITE_ONLY}, {4}, 0},
		{4, {WIRE_RC_WRITE_ONLY_IMM}, {0}, 0},
		{MTU, {WIRE_RC_WRITE_FIRST}, {MTU}, 0},
		{MTU - 1, {WIRE_RC_WRITE_FIRST}, {MTU}, 0},
		{MTU + 100, {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_LAST}, {MTU, 99}, 1},
		{MTU + 100, {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_LAST_IMM}, {MTU, 101}, 1},
		{MTU + 100, {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE}, {MTU, MTU}, 1},
		{2 * MTU, {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE}, {MTU, MTU}, 1},
		{3 * MTU,
		 {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST},
		 {MTU, MTU, MTU - 1},
		 2},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned k;

		begin(s);
		for (k = 0; k < rows[i].bad; k++) {
			rig_request(s, 0, rows[i].opcodes[k], PSN + k, AT, rows[i].dma_len,
				    rows[i].bytes[k]);
			rig_expect_ack(s, PSN + k, aeth_ack(0), 0);
		}
		rig_request(s, 0, rows[i].opcodes[k], PSN + k, AT, rows[i].dma_len,
			    rows[i].bytes[k]);
		rig_expect_refusal(s, 0, PSN + k, AETH_NAK_INVALID_REQUEST, 0);
		rig_untouched(s, AT + k * MTU, MTU);
		memset(s->node[0].memory + AT, 0, 3 * MTU);
	}
}

RIG_TEST(c9_093__write_of_more_than_2_to_the_31, make(3))
{
	begin(s);
	rig_request(s, 0, WIRE_RC_WRITE_FIRST, PSN, AT, (1u << 31) + 1, MTU);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_INVALID_REQUEST, 0);
	rig_untouched(s, AT, MTU);
	begin(s); /* 2^31 is allowed, if the region is that large */
	rig_request(s, 0, WIRE_RC_WRITE_FIRST, PSN, AT, 1u << 31, MTU);
	rig_expect_ack(s, PSN, aeth_ack(0), 0);
}

RIG_TEST(c9_094__read_of_more_than_2_to_the_31, make(3))
{
	begin(s);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, (1u << 31) + 1, 0);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_INVALID_REQUEST, 0);
	begin(s);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, UINT32_MAX, 0);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_INVALID_REQUEST, 0);
	assert_int_equal(sim_context(s, 0, 0)->ee.refused, 1);
	begin(s); /* 2^31 is allowed, though not by this region */
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, 1u << 31, 0);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_REMOTE_ACCESS, 0);
	assert_int_equal(sim_context(s, 0, 0)->ee.refused, 1);
}

/* First and middle packets have no pad. The length that goes with a pad is wrong as well: a packet
 * is a whole number of words. */
RIG_TEST(c9_085__pad_in_first_and_middle, make(3))
{
	static const uint8_t opcodes[] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE,
					  WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		const struct kind *r = kind_of(opcodes[i]);

		for (unsigned pad = 1; pad <= 3; pad++) {
			for (int shorter = 0; shorter <= 1; shorter++) {
				uint32_t psn, bytes = MTU + (shorter ? 0 : 4) - pad;

				begin(s);
				psn = advance_to(s, r->continues, 1, MTU, 2 * MTU);
				rig_force_pad(s, pad);
				send_one(s, r->opcode, psn, bytes);
				rig_expect_refusal(s, 0, psn, AETH_NAK_INVALID_REQUEST, 0);
			}
		}
	}
}

/* The other packets may have one, and it is no part of the message. */
RIG_TEST(c9_085__pad_elsewhere_is_cut_off, make(3))
{
	struct cqe c;

	for (unsigned pad = 0; pad <= 3; pad++) {
		begin(s);
		rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64 - pad, 64 - pad);
		rig_expect_ack(s, PSN, aeth_ack(0), 1);
		rig_holds_pattern(s, AT, 64 - pad);
		rig_untouched(s, AT + 64 - pad, 64);
		rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN + 1, 0, 0, 64 - pad);
		rig_expect_ack(s, PSN + 1, aeth_ack(0), 2);
		c = rig_expect_cqe(s, USER_RECV, 0, 0);
		assert_int_equal(c.byte_count, 64 - pad);
		memset(s->node[0].memory + AT, 0, 128);
	}
}

/* ---- C9-73: the order of the checks ---- */

/* A request with two faults, and what it draws. */
struct faults {
	const char *name;
	uint8_t opcode;
	int32_t ahead; /* of the expected PSN */
	uint32_t rkey; /* 0: the right one */
	uint32_t dma_len, bytes;
	enum progress progress;
	uint16_t access;
	bool no_receive;
	uint8_t reads; /* max_dest_rd_atomic; 0: 16, 0xff: 0 */
	uint8_t syndrome;
};

#define SEQUENCE aeth_nak(AETH_NAK_SEQUENCE)
#define INVALID	 aeth_nak(AETH_NAK_INVALID_REQUEST)
#define ACCESS	 aeth_nak(AETH_NAK_REMOTE_ACCESS)

static void try_faults(struct sim *s, const struct faults *f)
{
	struct wire_headers h;
	struct rig_packet p;
	uint32_t psn;

	s->params.access = f->access;
	s->params.max_rd_atomic = f->reads == 0xff ? 0 : 16;
	rig_reconnect(s, 0);
	if (!f->no_receive)
		sim_post_recv(s, 0, 0, 1 << 20, 1 << 16);
	psn = advance_to(s, f->progress, 1, MTU, 100);
	h = rig_headers(s, 0, f->opcode, psn + (uint32_t)f->ahead, AT, f->dma_len);
	h.ackreq = 1;
	if (f->rkey)
		h.rkey = f->rkey;
	rig_send(s, h, NULL, f->bytes);
	assert_true(rig_recv(s, &p, MS));
	if (p.h.psn != psn || p.h.syndrome != f->syndrome)
		fail_msg("%s: PSN %#x syndrome %#x", f->name, p.h.psn, p.h.syndrome);
	rig_silent(s, 10 * US);
	rig_untouched(s, AT, 2 * MTU);
	assert_int_equal(rig_epsn(s, 0), psn);
	assert_int_equal(rig_state(s, 0), f->syndrome == SEQUENCE ? QP_RTS : QP_ERR);
}

RIG_TEST(c9_073__of_two_faults_the_earlier_check_wins, make(3))
{
	const struct faults rows[] = {
		{"PSN, reserved", 0x1f, 1, 0, 0, 0, NOTHING, 0xe, false, 0, SEQUENCE},
		{"PSN, sequence", WIRE_RC_WRITE_MIDDLE, 1, 0, 0, MTU, NOTHING, 0xe, false, 0,
		 SEQUENCE},
		{"PSN, disabled", WIRE_RC_WRITE_ONLY, 1, 0, 64, 64, NOTHING, 0, false, 0, SEQUENCE},
		{"PSN, length", WIRE_RC_SEND_FIRST, 5, 0, 0, 64, NOTHING, 0xe, false, 0, SEQUENCE},
		{"PSN, resources", WIRE_RC_READ_REQUEST, 1, 0, 64, 0, NOTHING, 0xe, false, 0xff,
		 SEQUENCE},
		{"PSN, key", WIRE_RC_WRITE_ONLY, 1, BAD_KEY, 64, 64, NOTHING, 0xe, false, 0,
		 SEQUENCE},
		{"PSN, no receive", WIRE_RC_SEND_ONLY, 1, 0, 0, 64, NOTHING, 0xe, true, 0,
		 SEQUENCE},
		{"PSN, within a message", WIRE_RC_SEND_ONLY, 1, 0, 0, 64, WRITE, 0xe, true, 0,
		 SEQUENCE},
		{"sequence, key", WIRE_RC_WRITE_ONLY, 0, BAD_KEY, 64, 64, WRITE, 0xe, false, 0,
		 INVALID},
		{"sequence, no receive", WIRE_RC_SEND_LAST, 0, 0, 0, 64, NOTHING, 0xe, true, 0,
		 INVALID},
		{"reserved, no receive", 0x15, 0, 0, 0, 64, NOTHING, 0xe, true, 0, INVALID},
		{"disabled, key", WIRE_RC_WRITE_ONLY, 0, BAD_KEY, 64, 64, NOTHING, 4, false, 0,
		 INVALID},
		{"disabled, key", WIRE_RC_READ_REQUEST, 0, BAD_KEY, 64, 0, NOTHING, 2, false, 0,
		 INVALID},
		{"disabled, key", WIRE_RC_FETCH_ADD, 0, BAD_KEY, 0, 0, NOTHING, 6, false, 0,
		 INVALID},
		{"disabled, no receive", WIRE_RC_WRITE_ONLY_IMM, 0, 0, 64, 64, NOTHING, 4, true, 0,
		 INVALID},
		{"pad and length, key", WIRE_RC_WRITE_FIRST, 0, BAD_KEY, 2 * MTU, MTU - 1, NOTHING,
		 0xe, false, 0, INVALID},
		{"length, no receive", WIRE_RC_SEND_FIRST, 0, 0, 0, MTU - 4, NOTHING, 0xe, true, 0,
		 INVALID},
		{"length, no receive", WIRE_RC_SEND_ONLY, 0, 0, 0, MTU + 4, NOTHING, 0xe, true, 0,
		 INVALID},
		{"DMA length, key", WIRE_RC_READ_REQUEST, 0, BAD_KEY, (1u << 31) + 1, 0, NOTHING,
		 0xe, false, 0, INVALID},
		{"DMA length, key", WIRE_RC_WRITE_ONLY, 0, BAD_KEY, 65, 64, NOTHING, 0xe, false, 0,
		 INVALID},
		{"resources, key", WIRE_RC_READ_REQUEST, 0, BAD_KEY, 64, 0, NOTHING, 0xe, false,
		 0xff, INVALID},
		{"resources, key", WIRE_RC_CMP_SWAP, 0, BAD_KEY, 0, 0, NOTHING, 0xe, false, 0xff,
		 INVALID},
		{"key alone", WIRE_RC_READ_REQUEST, 0, BAD_KEY, 64, 0, NOTHING, 0xe, false, 0,
		 ACCESS},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		try_faults(s, &rows[i]);
	}
}

/* ---- C9-86, C9-87 ---- */

RIG_TEST(c9_086__one_read_or_atomic_too_many, make(3))
{
	static const uint8_t limits[] = {0, 1, 4, 16};
	static const uint8_t last[] = {WIRE_RC_READ_REQUEST, WIRE_RC_CMP_SWAP, WIRE_RC_FETCH_ADD};

	for (unsigned l = 0; l < sizeof(limits); l++) {
		for (unsigned k = 0; k < sizeof(last); k++) {
			unsigned limit = limits[l];

			s->params.max_rd_atomic = limit;
			begin(s);
			for (unsigned i = 0; i < limit; i++)
				send_one(s, i & 1 ? WIRE_RC_READ_REQUEST : WIRE_RC_FETCH_ADD,
					 PSN + i, 0);
			send_one(s, last[k], PSN + limit, 0);
			for (unsigned i = 0; i < limit; i++)
				rig_expect(s, i & 1 ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_ATOMIC_ACK,
					   PSN + i);
			rig_expect_refusal(s, 0, PSN + limit, AETH_NAK_INVALID_REQUEST, limit);
		}
	}
}

/* Answered requests free their resource; WRITEs need none. */
RIG_TEST(c9_086__answered_reads_make_room, make(3))
{
	s->params.max_rd_atomic = 2;
	begin(s);
	for (uint32_t i = 0; i < 900; i += 3) {
		send_one(s, WIRE_RC_READ_REQUEST, PSN + i, 0);
		send_one(s, WIRE_RC_FETCH_ADD, PSN + i + 1, 0);
		send_one(s, WIRE_RC_WRITE_ONLY, PSN + i + 2, 100);
		rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN + i);
		rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + i + 1);
		rig_expect_ack(s, PSN + i + 2, aeth_ack(0), i + 3);
	}
}

/* All that precedes is done when the NAK leaves, and READs and atomics are answered in front of
 * it. */
RIG_TEST(c9_087__what_precedes_is_done_before_the_nak, make(3))
{
	struct wire_headers h;

	begin(s);
	h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 200);
	rig_send(s, h, NULL, 200);
	h = rig_headers(s, 0, WIRE_RC_SEND_ONLY, PSN + 1, 0, 0);
	rig_send(s, h, NULL, 300);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN + 2, 0, 2 * MTU + 1, 0);
	h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN + 5, AT + 1024, 64);
	rig_send(s, h, NULL, 64);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 6, AT + 2048, 0, 0);
	rig_request(s, 0, 0x1f, PSN + 7, 0, 0, 0);
	rig_expect_responses(s, PSN + 2, 3);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 6);
	rig_holds_pattern(s, AT, 200);
	rig_holds_pattern(s, 1 << 20, 300);
	rig_holds_pattern(s, AT + 1024, 64);
	rig_expect_cqe(s, USER_RECV, 0, 0);
	rig_expect_refusal(s, 0, PSN + 7, AETH_NAK_INVALID_REQUEST, 5);
}

/* ---- C9-88 ---- */

RIG_TEST(c9_088__no_key_is_looked_at_without_a_length, make(3))
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_ONLY, WIRE_RC_WRITE_ONLY_IMM,
					  WIRE_RC_READ_REQUEST};
	static const uint64_t addresses[] = {0, 1, UINT64_MAX, (uint64_t)1 << 63};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		for (unsigned k = 0; k < 4; k++) {
			struct wire_headers h;

			begin(s);
			h = rig_headers(s, 0, opcodes[i], PSN, 0, 0);
			h.rkey = k & 1 ? 0 : BAD_KEY;
			h.va = addresses[k];
			h.ackreq = 1;
			rig_send(s, h, NULL, 0);
			expect_done(s, opcodes[i], PSN);
			if (opcodes[i] == WIRE_RC_WRITE_ONLY_IMM)
				assert_int_equal(
					rig_expect_cqe(s, USER_RECV_RDMA_IMM, 0, 0).byte_count, 0);
		}
	}
}
