/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules on READ responses: PSNs, opcodes, AETHs, lengths, failures between them,
 * and answers that wait behind them (C9-96 to C9-101, C9-112, C9-117, C9-118). */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, MTU = 1024, BIG = 1 << 20 };

static void write_on(struct sim *s, unsigned qp, uint32_t psn, uint64_t at, uint32_t bytes)
{
	rig_request(s, qp, WIRE_RC_WRITE_ONLY, psn, at, bytes, bytes);
}

static void read_on(struct sim *s, unsigned qp, uint32_t psn, uint64_t at, uint32_t bytes)
{
	rig_request(s, qp, WIRE_RC_READ_REQUEST, psn, at, bytes, 0);
}

static void read_with(struct sim *s, uint32_t key, uint32_t psn, uint64_t at, uint32_t bytes)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_READ_REQUEST, psn, at, bytes);

	h.rkey = key;
	rig_send(s, h, NULL, 0);
}

static void fill(struct sim *s, uint64_t at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->node[0].memory[at + i] = (uint8_t)(i * 13 + (i >> 8) + 1);
}

static uint32_t packets_of(uint32_t bytes, uint32_t mtu)
{
	return bytes ? (bytes + mtu - 1) / mtu : 1;
}

/* Packet n of the answer: opcode by its place, length by its opcode, AETH with that MSN, payload as
 * in memory, pad to words. */
static void check_packet(struct sim *s, const struct rig_packet *p, uint32_t n, uint64_t at,
			 uint32_t bytes, uint32_t mtu, uint32_t msn)
{
	uint32_t packets = packets_of(bytes, mtu), length = RTE_MIN(bytes - n * mtu, mtu);
	uint8_t opcode = packets == 1	    ? WIRE_RC_READ_RESP_ONLY
			 : n == 0	    ? WIRE_RC_READ_RESP_FIRST
			 : n + 1 == packets ? WIRE_RC_READ_RESP_LAST
					    : WIRE_RC_READ_RESP_MIDDLE;

	assert_int_equal(p->h.opcode, opcode);
	assert_int_equal(p->bytes, length);
	assert_int_equal(p->h.pad, -length & 3);
	assert_memory_equal(p->payload, s->node[0].memory + at + n * mtu, length);
	for (unsigned i = 0; i < p->h.pad; i++)
		assert_int_equal(p->payload[length + i], 0);
	if (opcode != WIRE_RC_READ_RESP_MIDDLE) {
		assert_int_equal(aeth_kind(p->h.syndrome), AETH_ACK);
		assert_int_equal(p->h.msn, msn);
	}
}

static void expect_read(struct sim *s, uint32_t psn, uint64_t at, uint32_t bytes, uint32_t msn)
{
	uint32_t mtu = wire_mtu_bytes(s->params.mtu);

	for (uint32_t n = 0; n < packets_of(bytes, mtu); n++) {
		struct rig_packet p;

		assert_true(rig_recv(s, &p, MS));
		assert_int_equal(p.h.psn, (psn + n) & PSN_MASK);
		assert_int_equal(p.h.dest_qp, s->node[1].qp[0].qpn);
		check_packet(s, &p, n, at, bytes, mtu, msn);
	}
}

/* ---- shape of the answer ---- */

static void all_lengths(uint8_t mtu_code, uint32_t psn)
{
	struct sim_params params = SIM_PARAMS_DEFAULT;
	uint32_t mtu = wire_mtu_bytes(mtu_code);
	const uint32_t lengths[] = {
		0,	 1,   2,       3,	    4,	     255,	  256,	   257,
		mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu, 20 * mtu + 7};
	struct sim *s;

	params.mtu = mtu_code;
	params.psn = psn;
	params.no_credits = true;
	s = rig_create(&params);
	fill(s, AT, 21 * mtu);
	for (unsigned i = 0; i < sizeof(lengths) / 4; i++) {
		read_on(s, 0, psn, AT, lengths[i]);
		expect_read(s, psn, AT, lengths[i], i + 1);
		rig_silent(s, 5 * US);
		psn = (psn + packets_of(lengths[i], mtu)) & PSN_MASK;
		assert_int_equal(rig_epsn(s, 0), psn);
	}
	rig_end(s);
}

TEST(c9_096__psns_follow_each_other_past_the_wrap)
{
	for (uint32_t psn = 0xffffd0; psn <= 0xffffff; psn += 7)
		all_lengths(1, psn);
}

TEST_RC(c9_097__aeth_in_the_first_and_the_last_packet)
{
	struct rig_packet p;

	write_on(s, 0, PSN, AT, 4);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	read_on(s, 0, PSN + 1, AT, 4 * MTU);
	p = rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN + 1);
	assert_int_equal(p.h.syndrome, AETH_CREDIT_INVALID);
	assert_in_range(p.h.msn, 1, 2); /* the READ may count already */
	rig_expect(s, WIRE_RC_READ_RESP_MIDDLE, PSN + 2);
	rig_expect(s, WIRE_RC_READ_RESP_MIDDLE, PSN + 3);
	p = rig_expect(s, WIRE_RC_READ_RESP_LAST, PSN + 4);
	assert_int_equal(p.h.syndrome, AETH_CREDIT_INVALID);
	assert_int_equal(p.h.msn, 2);
}

TEST(c9_099__lengths_at_each_mtu)
{
	for (uint8_t mtu = 1; mtu <= 5; mtu++)
		all_lengths(mtu, PSN);
}

/* A long one, packet by packet. */
TEST_RC(c9_117__long_answer_is_whole_and_in_order)
{
	fill(s, 0, BIG + 5);
	read_on(s, 0, PSN, 0, BIG + 5);
	expect_read(s, PSN, 0, BIG + 5, 1);
	rig_silent(s, 10 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_read_response_packets), BIG / MTU + 1);
}

TEST_RC(c9_118__many_short_reads_each_with_an_aeth)
{
	fill(s, AT, 64 * 16);
	for (uint32_t i = 0; i < 16; i++)
		read_on(s, 0, PSN + i, AT + 64 * i, 60 + i % 5);
	for (uint32_t i = 0; i < 16; i++)
		expect_read(s, PSN + i, AT + 64 * i, 60 + i % 5, i + 1);
}

/* ---- C9-100, C9-112: the memory goes while it is read ---- */

TEST_RC(c9_100__error_midway_ends_the_answer_with_a_nak)
{
	uint32_t key = rig_region(s, 0, BIG, ACCESS_REMOTE_READ, 0), next;

	fill(s, 0, BIG);
	read_with(s, key, PSN, 0, BIG);
	assert_int_equal(rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN).h.msn, 1);
	next = rig_revoke_midway(s, key, PSN, 1);
	/* C9-112: the PSN of the packet that failed; the MSN as FIRST said */
	assert_int_equal(rig_expect_nak(s, next, AETH_NAK_REMOTE_ACCESS, 1).bytes, 0);
	rig_silent(s, 100 * US);
	assert_int_equal(rig_state(s, 0), QP_ERR);
	rig_expect_event(s, EQE_WQ_ACCESS_ERROR, s->node[0].qp[0].qpn);
	rig_no_event(s);
}

/* Its key is revoked while it waits behind another one: the NAK has its first PSN, and comes in its
 * turn; requests executed behind it are not acknowledged. */
TEST_RC(c9_112__nak_has_the_psn_of_the_response_that_failed)
{
	uint32_t key = rig_region(s, 0, BIG, ACCESS_REMOTE_READ, 0), packets = BIG / MTU;

	fill(s, 0, BIG);
	read_on(s, 0, PSN, 0, BIG);
	read_with(s, key, PSN + packets, 0, 4 * MTU);
	write_on(s, 0, PSN + packets + 4, AT, 64);
	sim_run(s, 2 * US);
	rig_revoke(s, key);
	expect_read(s, PSN, 0, BIG, 1);
	rig_expect_nak(s, PSN + packets, AETH_NAK_REMOTE_ACCESS, 1);
	rig_silent(s, 100 * US);
	assert_int_equal(rig_state(s, 0), QP_ERR);
}

/* ---- C9-101: requests behind a READ ---- */

TEST_RC(c9_101__read_is_validated_before_later_requests_run)
{
	read_with(s, 0x1234, PSN, 0, MTU);
	write_on(s, 0, PSN + 1, AT, 64);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_REMOTE_ACCESS, 0);
	rig_untouched(s, AT, 64);
	rig_reconnect(s, 0);
	read_on(s, 0, PSN, s->node[0].memory_bytes - BIG + 1, BIG); /* its last byte is outside */
	write_on(s, 0, PSN + BIG / MTU, AT, 64);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_REMOTE_ACCESS, 0);
	rig_untouched(s, AT, 64);
}

/* WRITEs, SENDs, an atomic and a NAK behind a READ: executed, answered when its turn comes. */
TEST_RC(c9_101__later_requests_wait_for_their_acknowledgement)
{
	uint32_t next = PSN + BIG / MTU;

	sim_post_recv(s, 0, 0, 2 << 20, 1000);
	fill(s, 0, BIG);
	read_on(s, 0, PSN, 0, BIG);
	write_on(s, 0, next, 3 << 20, 64);
	sim_run(s, 2 * US);
	rig_holds_pattern(s, 3 << 20, 64); /* executed */
	rig_request(s, 0, WIRE_RC_SEND_ONLY, next + 1, 0, 0, 64);
	sim_run(s, 2 * US);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, next + 2, (3 << 20) + 1024, 0, 0);
	write_on(s, 0, next + 3, 3 << 20, 64);
	sim_run(s, 2 * US);
	write_on(s, 0, next + 5, 3 << 20, 64); /* a gap */
	expect_read(s, PSN, 0, BIG, 1);
	rig_expect_ack(s, next + 1, aeth_ack(0), 3);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, next + 2);
	rig_expect_nak(s, next + 4, AETH_NAK_SEQUENCE, 5);
	rig_silent(s, 100 * US);
}

/* Nor may an unsolicited acknowledgement overtake it. */
TEST(c9_101__unsolicited_acknowledgements_wait_too)
{
	struct sim_params params = SIM_PARAMS_DEFAULT;
	struct sim *s = rig_create(&params);

	fill(s, 0, BIG);
	read_on(s, 0, PSN, 0, BIG);
	sim_run(s, 2 * US);
	sim_post_recv(s, 0, 0, 2 << 20, 1000);
	expect_read(s, PSN, 0, BIG, 1);
	rig_expect_ack(s, PSN + BIG / MTU - 1, aeth_ack(1), 1);
	rig_end(s);
}

/* ---- turns, shortage, and the end of a QP with answers waiting ---- */

TEST_RIG_WITH(reads__two_queue_pairs_take_turns, p.qps = 2, p.no_credits = true)
{
	uint32_t got[2] = {0, 0}, turns = 0, last = 2;
	struct rig_packet p;

	fill(s, 0, BIG);
	read_on(s, 0, PSN, 0, BIG);
	read_on(s, 1, PSN, 0, BIG);
	while (rig_recv(s, &p, 100 * US)) {
		uint32_t qp = p.h.dest_qp == s->node[1].qp[1].qpn;

		assert_int_equal(p.h.psn, PSN + got[qp]);
		check_packet(s, &p, got[qp]++, 0, BIG, MTU, 1);
		turns += qp != last;
		last = qp;
	}
	assert_int_equal(got[0], BIG / MTU);
	assert_int_equal(got[1], BIG / MTU);
	assert_true(turns > 4);
}

/* No packet buffer is free for a while: the answer continues where it stopped. */
TEST_RIG_WITH(reads__continue_after_a_shortage_of_buffers, p.packets = 255, p.no_credits = true)
{
	struct rte_mbuf *held[255];
	unsigned n = 0;

	fill(s, AT, 20 * MTU);
	read_on(s, 0, PSN, AT, 20 * MTU);
	while (n < 255 && (held[n] = rte_pktmbuf_alloc(s->packets)))
		n++;
	rig_silent(s, 20 * US);
	assert_true(sim_counter(s, 0, COUNTER_packet_empty) > 0);
	rte_pktmbuf_free_bulk(held, n);
	expect_read(s, PSN, AT, 20 * MTU, 1);
}

TEST_RC(reads__stop_with_their_queue_pair)
{
	static const enum qp_state ends[] = {QP_RST, QP_ERR};

	for (unsigned i = 0; i < 2; i++) {
		struct rig_packet p;
		uint32_t n = 0;

		rig_reconnect(s, 0);
		read_on(s, 0, PSN, 0, BIG);
		read_on(s, 0, PSN + BIG / MTU, 0, BIG);
		rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN);
		sim_modify(s, 0, 0, ends[i], 0);
		while (rig_recv(s, &p, 100 * US))
			n++;
		assert_true(n < BIG / MTU);
	}
}

/* ---- atomics ---- */

static void atomic(struct sim *s, uint8_t opcode, uint32_t psn, uint64_t at, uint64_t value,
		   uint64_t compare)
{
	struct wire_headers h = rig_headers(s, 0, opcode, psn, at, 0);

	h.swap_add = value;
	h.compare = compare;
	rig_send(s, h, NULL, 0);
}

TEST_RC(c9_063__atomics_do_what_they_say)
{
	static const struct {
		uint8_t opcode;
		uint64_t value, compare, after;
	} rows[] = {
		{WIRE_RC_FETCH_ADD, 5, 99, 5},
		{WIRE_RC_FETCH_ADD, 0xffffffffffull, 0, 0x10000000004ull},
		{WIRE_RC_CMP_SWAP, 7, 6, 0x10000000004ull},
		{WIRE_RC_CMP_SWAP, 7, 0x10000000004ull, 7},
		{WIRE_RC_FETCH_ADD, UINT64_MAX, 0, 6},
		{WIRE_RC_CMP_SWAP, 0, 6, 0},
	};
	uint64_t *p = (uint64_t *)(s->node[0].memory + AT), before = 0;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_packet got;

		atomic(s, rows[i].opcode, PSN + i, AT, rows[i].value, rows[i].compare);
		got = rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + i);
		assert_true(got.h.orig == before);
		assert_int_equal(got.h.msn, i + 1);
		assert_true(*p == rows[i].after);
		before = *p;
	}
	rig_untouched(s, AT - 8, 8);
	rig_untouched(s, AT + 8, 8);
}

/* Addresses that are no multiple of 8 are refused, nothing is written. */
TEST_RC(c9_093__atomics_are_aligned)
{
	for (unsigned odd = 1; odd < 8; odd++) {
		rig_reconnect(s, 0);
		atomic(s, odd & 1 ? WIRE_RC_FETCH_ADD : WIRE_RC_CMP_SWAP, PSN, AT + odd, 1, 0);
		rig_expect_refusal(s, 0, PSN, AETH_NAK_INVALID_REQUEST, 0);
		rig_untouched(s, AT, 16);
	}
}
