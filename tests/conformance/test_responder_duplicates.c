/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules on duplicates: which are answered again, which are executed again, which
 * are dropped silently (C9-102 to C9-110, C9-115, o9-66 to o9-68). */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, COUNTER = 1 << 16, MTU = 1024, LONG_MTU = 256 };

static void request(struct sim *s, uint8_t opcode, uint32_t psn, uint64_t at, uint32_t bytes)
{
	rig_request(s, 0, opcode, psn, at, bytes, bytes);
}

static void add_to(struct sim *s, uint32_t psn, uint64_t value)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_FETCH_ADD, psn, COUNTER, 0);

	h.swap_add = value;
	rig_send(s, h, NULL, 0);
}

static void swap(struct sim *s, uint32_t psn, uint64_t compare, uint64_t value)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_CMP_SWAP, psn, COUNTER, 0);

	h.compare = compare;
	h.swap_add = value;
	rig_send(s, h, NULL, 0);
}

static uint64_t *counter_of(struct sim *s)
{
	return (uint64_t *)(s->node[0].memory + COUNTER);
}

static void expect_atomic(struct sim *s, uint32_t psn, uint64_t orig, uint32_t msn)
{
	struct rig_packet p = rig_expect(s, WIRE_RC_ATOMIC_ACK, psn);

	assert_true(p.h.orig == orig);
	assert_int_equal(p.h.msn, msn);
	assert_int_equal(aeth_kind(p.h.syndrome), AETH_ACK);
}

/* The whole answer to a READ of that range, from that PSN on. */
static void expect_read(struct sim *s, uint32_t psn, uint64_t at, uint32_t bytes)
{
	for (uint32_t done = 0, n = 0; done < bytes || n == 0; n++) {
		bool last = bytes - done <= MTU;
		uint8_t opcode = n ? (last ? WIRE_RC_READ_RESP_LAST : WIRE_RC_READ_RESP_MIDDLE)
				   : (last ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_READ_RESP_FIRST);
		struct rig_packet p = rig_expect(s, opcode, psn + n);

		assert_int_equal(p.bytes, last ? bytes - done : MTU);
		assert_memory_equal(p.payload, s->node[0].memory + at + done, p.bytes);
		done += p.bytes;
	}
}

static void fill(struct sim *s, uint64_t at, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->node[0].memory[at + i] = (uint8_t)(i * 13 + seed + (i >> 8));
}

/* ---- SEND and WRITE ---- */

/* Acknowledged with the most recent PSN and MSN, and not executed again. */
TEST_RC(c9_105__duplicate_write_is_not_executed_again)
{
	rig_write(s, PSN, AT, 64);
	rig_write(s, PSN + 1, AT + 64, 64);
	rig_written(s, PSN + 2, AT + 128, 64, 3);
	memset(s->node[0].memory + AT, 0, 192);
	for (uint32_t i = 0; i < 3; i++) {
		rig_write(s, PSN + i, AT + 64 * i, 64);
		rig_expect_ack(s, PSN + 2, aeth_ack(0), 3);
	}
	rig_untouched(s, AT, 192);
	assert_int_equal(rig_epsn(s, 0), PSN + 3);
	assert_int_equal(sim_counter(s, 0, COUNTER_executed), 3);
}

TEST_RC(c9_105__duplicate_send_takes_no_receive)
{
	static const uint8_t opcodes[] = {WIRE_RC_SEND_ONLY, WIRE_RC_SEND_ONLY_IMM,
					  WIRE_RC_SEND_ONLY_INV, WIRE_RC_WRITE_ONLY_IMM};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < sizeof(opcodes); i++, psn++) {
		sim_post_recv(s, 0, 0, 1 << 20, 1000);
		request(s, opcodes[i], psn, AT, 64);
		rig_expect_ack(s, psn, aeth_ack(0), i + 1);
		assert_int_equal(sim_wait(s, 0, &(struct cqe){0}, MS), true);
		memset(s->node[0].memory + AT, 0, 64);
		memset(s->node[0].memory + (1 << 20), 0, 64);
		sim_post_recv(s, 0, 0, 1 << 20, 1000);
		request(s, opcodes[i], psn, AT, 64);
		rig_expect_ack(s, psn, aeth_ack(0), i + 1);
		rig_no_cqe(s);
		rig_untouched(s, AT, 64);
		rig_untouched(s, 1 << 20, 64);
		assert_int_equal(sim_context(s, 0, 0)->rwm.consumed, i + 1);
		s->node[0].qp[0].record->rq_posted = s->node[0].qp[0].rq_posted = i + 1;
	}
}

/* Without AckReq, too: the rule wants a response for the duplicate. */
TEST_RC(c9_102__valid_duplicates_without_ackreq_are_answered)
{
	rig_written(s, PSN, AT, 64, 1);
	rig_send(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64), NULL, 64);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
}

/* Duplicates within a message do not change its state. */
static void duplicates_within(struct sim *s, const uint8_t *opcodes, uint64_t at)
{
	for (uint32_t i = 0; i < 3; i++) {
		rig_request(s, 0, opcodes[i], PSN + i, at, 3 * MTU - 24, i == 2 ? MTU - 24 : MTU);
		rig_expect_ack(s, PSN + i, aeth_ack(0), i == 2);
		for (uint32_t k = 0; k <= i; k++) {
			memset(s->node[0].memory + at + k * MTU, 0, MTU);
			rig_request(s, 0, opcodes[k], PSN + k, at, 3 * MTU - 24,
				    k == 2 ? MTU - 24 : MTU);
			rig_expect_ack(s, PSN + i, aeth_ack(0), i == 2);
			rig_untouched(s, at + k * MTU, MTU);
		}
		assert_int_equal(rig_epsn(s, 0), PSN + i + 1);
	}
}

TEST_RC(c9_103__duplicates_within_a_message)
{
	static const uint8_t sends[] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST};
	static const uint8_t writes[] = {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE,
					 WIRE_RC_WRITE_LAST};

	duplicates_within(s, writes, AT);
	rig_reconnect(s, 0);
	sim_post_recv(s, 0, 0, AT, 4 * MTU);
	duplicates_within(s, sends, AT);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 3 * MTU - 24);
	rig_no_cqe(s);
}

/* In one burst with a new request: one acknowledgement, of the new one. */
TEST_RC(c9_105__duplicates_in_front_of_new_requests)
{
	rig_write(s, PSN, AT, 64);
	rig_written(s, PSN + 1, AT, 64, 2);
	rig_write(s, PSN, AT, 64);
	rig_write(s, PSN + 1, AT, 64);
	rig_written(s, PSN + 2, AT + 64, 64, 3);
	rig_holds_pattern(s, AT + 64, 64);
	rig_silent(s, 10 * US);
}

/* ---- errors of duplicates ---- */

/* A duplicate of what is no request is dropped, one of each SEND and WRITE opcode is acknowledged
 * (C9-102): the ACK says that the PSN was executed, not what lies in the duplicate. */
TEST_RC(c9_106__wrong_duplicates_are_dropped)
{
	uint32_t dropped = 0;

	rig_written(s, PSN, AT, 64, 1);
	for (unsigned opcode = 0; opcode <= 0x1f; opcode++) {
		const struct wire_opcode *op = &wire_opcodes[opcode];
		bool good = op->kind == WIRE_KIND_SEND || op->kind == WIRE_KIND_WRITE;

		if (op->defined && !good) /* READs and atomics: below; responses */
			continue;
		rig_request(s, 0, (uint8_t)opcode, PSN, AT, 64, 64);
		if (op->defined)
			rig_expect_ack(s, PSN, aeth_ack(0), 1);
		else
			dropped++;
		rig_silent(s, 10 * US);
		assert_int_equal(sim_counter(s, 0, COUNTER_drop_duplicate), dropped);
	}
	assert_int_equal(dropped, 7); /* 15h, 18h to 1bh, 1eh, 1fh */
	assert_int_equal(sim_counter(s, 0, COUNTER_executed), 1);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	assert_int_equal(rig_epsn(s, 0), PSN + 1);
}

/* The duplicate that was sent last is dropped, the n-th. */
static void expect_dropped(struct sim *s, unsigned n)
{
	rig_silent(s, 10 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_duplicate), n);
}

/* The request as it was, but with a key that is none. */
static void with_a_bad_key(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	struct wire_headers h = rig_headers(s, 0, opcode, psn, AT, 64);

	h.rkey = 0x1234;
	rig_send(s, h, NULL, bytes);
}

/* No NAK for a duplicate, even if it is out of sequence, of a wrong length, has a wrong key, or is
 * disabled by now. SENDs and WRITEs are acknowledged, an atomic's result is returned again, a READ
 * that cannot be answered is dropped. */
TEST_RC(c9_115__no_nak_for_a_duplicate)
{
	rig_read(s, PSN, AT, 3 * MTU);
	expect_read(s, PSN, AT, 3 * MTU);
	add_to(s, PSN + 3, 1);
	expect_atomic(s, PSN + 3, 0, 2);
	rig_written(s, PSN + 4, AT, 64, 3);
	request(s, WIRE_RC_WRITE_MIDDLE, PSN + 4, AT, MTU);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 3);
	request(s, WIRE_RC_SEND_FIRST, PSN + 4, AT, 64);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 3);
	request(s, WIRE_RC_SEND_ONLY, PSN + 4, AT, MTU + 4);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 3);
	with_a_bad_key(s, WIRE_RC_WRITE_ONLY, PSN + 4, 64);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 3);
	with_a_bad_key(s, WIRE_RC_READ_REQUEST, PSN, 0);
	expect_dropped(s, 1);
	rig_read(s, PSN, s->node[0].memory_bytes - 63, 64);
	expect_dropped(s, 2);
	rig_read(s, PSN, AT, UINT32_MAX);
	expect_dropped(s, 3);
	s->params.access = 0;
	sim_modify(s, 0, 0, QP_RTS, QP_ATTR_ACCESS);
	rig_read(s, PSN, AT, 64);
	expect_dropped(s, 4);
	add_to(s, PSN + 3, 1);
	expect_atomic(s, PSN + 3, 0, 3);
	rig_written(s, PSN + 4, AT, 64, 3);
	rig_silent(s, 100 * US);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	assert_int_equal(rig_epsn(s, 0), PSN + 5);
	assert_true(*counter_of(s) == 1);
	rig_no_event(s);
}

/* ---- READ ---- */

TEST_RC(c9_107__read_again_whole_and_in_part)
{
	static const struct {
		uint32_t packet, packets, bytes;
	} rows[] = {
		{0, 5, 4 * MTU + 100}, {0, 1, MTU}, {0, 2, 2 * MTU},
		{1, 4, 3 * MTU + 100}, {2, 1, 10},  {2, 2, 2 * MTU},
		{4, 1, 100},
	};
	struct rig_packet p;

	fill(s, AT, 5 * MTU, 1);
	rig_read(s, PSN, AT, 4 * MTU + 100);
	expect_read(s, PSN, AT, 4 * MTU + 100);
	rig_written(s, PSN + 5, 0, 64, 2);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fill(s, AT, 5 * MTU, 100 + i); /* the data is read again */
		rig_read(s, PSN + rows[i].packet, AT + rows[i].packet * MTU, rows[i].bytes);
		expect_read(s, PSN + rows[i].packet, AT + rows[i].packet * MTU, rows[i].bytes);
		rig_silent(s, 10 * US);
		assert_int_equal(rig_epsn(s, 0), PSN + 6);
	}
	rig_read(s, PSN, AT, 64);
	p = rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN);
	assert_int_equal(p.h.msn, 2); /* no message more */
}

TEST_RC(c9_107__zero_length_read_again)
{
	for (unsigned i = 0; i < 3; i++) {
		rig_read(s, PSN, AT, 0);
		assert_int_equal(rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN).h.msn, 1);
	}
	assert_int_equal(rig_epsn(s, 0), PSN + 1);
}

/* A request for more than was executed: that is no duplicate. */
TEST_RC(c9_108__read_beyond_what_was_executed)
{
	rig_read(s, PSN, AT, 3 * MTU);
	expect_read(s, PSN, AT, 3 * MTU);
	rig_read(s, PSN, AT, 3 * MTU + 1);
	rig_read(s, PSN + 1, AT, 3 * MTU);
	rig_read(s, PSN + 2, AT, MTU + 1);
	rig_silent(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_duplicate), 3);
	rig_read(s, PSN + 1, AT, 2 * MTU); /* up to the end is well */
	expect_read(s, PSN + 1, AT, 2 * MTU);
	assert_int_equal(rig_epsn(s, 0), PSN + 3);
}

/* The key has been revoked, or READ is disabled: silence, and the connection stays. */
TEST_RC(c9_108__read_that_is_refused_now)
{
	uint32_t key = rig_region(s, AT, 3 * MTU, ACCESS_REMOTE_READ, 0);
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, 3 * MTU);

	h.rkey = key;
	rig_send(s, h, NULL, 0);
	expect_read(s, PSN, AT, 3 * MTU);
	rig_revoke(s, key);
	rig_send(s, h, NULL, 0);
	rig_silent(s, 100 * US);
	s->params.access = ACCESS_REMOTE_WRITE;
	sim_modify(s, 0, 0, QP_RTS, QP_ATTR_ACCESS);
	rig_read(s, PSN, AT, 3 * MTU);
	rig_silent(s, 100 * US);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_no_event(s);
	rig_written(s, PSN + 3, AT, 64, 2);
}

/* The key goes while the answer is under way: it stops, without a NAK. */
TEST_RC(c9_109__read_refused_midway)
{
	uint32_t bytes = 1 << 20, packets = bytes / MTU;
	uint32_t key = rig_region(s, 0, bytes, ACCESS_REMOTE_READ, 0);
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_READ_REQUEST, PSN, 0, bytes);

	fill(s, 0, bytes, 1);
	h.rkey = key;
	rig_send(s, h, NULL, 0);
	expect_read(s, PSN, 0, bytes);
	rig_send(s, h, NULL, 0);
	rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN);
	rig_revoke_midway(s, key, PSN, packets + 1);
	rig_silent(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_duplicate), 1);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_no_event(s);
	rig_written(s, PSN + packets, AT, 64, 2);
}

/* ---- the order of answers ---- */

/* READs and atomics in front of the acknowledgement of what follows them. */
TEST_RC(c9_104__reads_and_atomics_before_the_ack_of_later_ones)
{
	unsigned later;

	for (later = 0; later < 2; later++) { /* in one burst, and in a second one */
		rig_reconnect(s, 0);
		*counter_of(s) = 0;
		rig_read(s, PSN, AT, 40 * MTU);
		add_to(s, PSN + 40, 1);
		rig_write(s, PSN + 41, 0, 64);
		expect_read(s, PSN, AT, 40 * MTU);
		expect_atomic(s, PSN + 40, 0, 2);
		rig_expect_ack(s, PSN + 41, aeth_ack(0), 3);
		rig_read(s, PSN, AT, 40 * MTU);
		add_to(s, PSN + 40, 1);
		if (later)
			sim_run(s, US);
		rig_write(s, PSN + 41, 0, 64);
		expect_read(s, PSN, AT, 40 * MTU);
		expect_atomic(s, PSN + 40, 0, 3);
		rig_expect_ack(s, PSN + 41, aeth_ack(0), 3);
		rig_silent(s, 10 * US);
	}
}

TEST_RC(c9_110__duplicates_are_answered_in_psn_order)
{
	rig_read(s, PSN, AT, 3 * MTU);
	add_to(s, PSN + 3, 5);
	rig_read(s, PSN + 4, AT, 2 * MTU);
	add_to(s, PSN + 6, 5);
	expect_read(s, PSN, AT, 3 * MTU);
	expect_atomic(s, PSN + 3, 0, 2);
	expect_read(s, PSN + 4, AT, 2 * MTU);
	expect_atomic(s, PSN + 6, 5, 4);

	rig_read(s, PSN + 4, AT, 2 * MTU);
	add_to(s, PSN + 6, 5);
	rig_read(s, PSN, AT, 3 * MTU);
	add_to(s, PSN + 3, 5);
	expect_read(s, PSN, AT, 3 * MTU);
	expect_atomic(s, PSN + 3, 0, 4);
	expect_read(s, PSN + 4, AT, 2 * MTU);
	expect_atomic(s, PSN + 6, 5, 4);
	rig_silent(s, 10 * US);
}

/* The next packets are MIDDLEs from *psn on. Returns the first that is none; *psn is what the next
 * MIDDLE would have had. */
static struct rig_packet behind_middles(struct sim *s, uint32_t *psn)
{
	struct rig_packet p;

	for (;; ++*psn) {
		assert_true(rig_recv(s, &p, MS));
		if (p.h.opcode != WIRE_RC_READ_RESP_MIDDLE)
			return p;
		assert_int_equal(p.h.psn, *psn);
	}
}

/* An earlier duplicate interrupts the answer in progress, which then continues where it stopped. */
static void interrupted(struct sim *s, bool is_new)
{
	uint32_t big = 1 << 20, packets = big / MTU, next = PSN + 4;
	struct rig_packet p;

	rig_read(s, PSN, AT, 3 * MTU);
	expect_read(s, PSN, AT, 3 * MTU);
	rig_read(s, PSN + 3, 0, big);
	if (!is_new) {
		expect_read(s, PSN + 3, 0, big);
		rig_read(s, PSN + 3, 0, big);
	}
	rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN + 3);
	rig_read(s, PSN, AT, 3 * MTU);
	p = behind_middles(s, &next);
	assert_int_equal(p.h.opcode, WIRE_RC_READ_RESP_FIRST);
	assert_int_equal(p.h.psn, PSN);
	rig_expect(s, WIRE_RC_READ_RESP_MIDDLE, PSN + 1);
	rig_expect(s, WIRE_RC_READ_RESP_LAST, PSN + 2);
	assert_in_range(next, PSN + 4, PSN + 1 + packets); /* midway */
	p = behind_middles(s, &next);
	assert_int_equal(p.h.opcode, WIRE_RC_READ_RESP_LAST);
	assert_int_equal(p.h.psn, PSN + 2 + packets);
	assert_int_equal(next, PSN + 2 + packets);
	rig_silent(s, 100 * US);
	assert_int_equal(rig_epsn(s, 0), PSN + 3 + packets);
}

TEST_RC(c9_110__earlier_duplicate_interrupts_a_duplicate)
{
	interrupted(s, false);
}

TEST_RC(c9_110__earlier_duplicate_interrupts_a_new_read)
{
	interrupted(s, true);
}

/* The peer asks again for the answer that is under way: it begins again where it asks. */
TEST_RC(c9_110__same_read_asked_for_again_while_it_is_answered)
{
	uint32_t big = 1 << 20, packets = big / MTU, from = 500, next = PSN + 1;
	struct rig_packet p;

	rig_read(s, PSN, 0, big);
	rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN);
	rig_read(s, PSN + from, from * MTU, big - from * MTU);
	p = behind_middles(s, &next);
	assert_int_equal(p.h.opcode, WIRE_RC_READ_RESP_FIRST);
	assert_int_equal(p.h.psn, PSN + from);
	next = PSN + from + 1;
	p = behind_middles(s, &next);
	assert_int_equal(p.h.opcode, WIRE_RC_READ_RESP_LAST);
	assert_int_equal(p.h.psn, PSN + packets - 1);
	assert_int_equal(next, PSN + packets - 1);
	rig_silent(s, 100 * US);
	rig_written(s, PSN + packets, AT, 64, 2);
}

/* A peer that repeats requests endlessly occupies no more of our memory than a few entries. */
TEST_RC(duplicates__flood_of_reads_is_bounded)
{
	uint32_t big = 1 << 20, packets = big / MTU;
	struct rig_packet p;

	for (unsigned i = 0; i < 2; i++) {
		rig_read(s, PSN + i * packets, 0, big);
		expect_read(s, PSN + i * packets, 0, big);
	}
	rig_read(s, PSN, 0, big); /* later answers wait behind it */
	for (unsigned i = 0; i < 600; i++)
		rig_read(s, PSN + 2 * packets - 1 - i, 0, MTU);
	expect_read(s, PSN, 0, big);
	while (rig_recv(s, &p, 100 * US))
		assert_int_equal(p.h.opcode, WIRE_RC_READ_RESP_ONLY);
	assert_true(sim_counter(s, 0, COUNTER_drop_duplicate) > 0);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_read(s, PSN + 1, MTU, MTU);
	expect_read(s, PSN + 1, MTU, MTU);
}

/* ---- atomics ---- */

TEST_RC(o9_066__result_is_replayed_not_executed)
{
	*counter_of(s) = 10;
	add_to(s, PSN, 5);
	expect_atomic(s, PSN, 10, 1);
	swap(s, PSN + 1, 15, 99);
	expect_atomic(s, PSN + 1, 15, 2);
	swap(s, PSN + 2, 15, 98); /* does not compare */
	expect_atomic(s, PSN + 2, 99, 3);
	*counter_of(s) = 1000;
	for (unsigned i = 0; i < 2; i++) {
		swap(s, PSN + 2, 15, 98);
		expect_atomic(s, PSN + 2, 99, 3);
		add_to(s, PSN, 5);
		expect_atomic(s, PSN, 10, 3);
		swap(s, PSN + 1, 15, 99);
		expect_atomic(s, PSN + 1, 15, 3);
	}
	assert_true(*counter_of(s) == 1000);
	assert_int_equal(rig_epsn(s, 0), PSN + 3);
}

/* As many as may be outstanding are remembered, past the wrap of PSNs. */
TEST(o9_066__all_results_that_may_be_outstanding)
{
	struct sim_params params = SIM_PARAMS_DEFAULT;
	struct sim *s;

	params.psn = 0xfffff8;
	params.no_credits = true;
	s = rig_create(&params);
	for (unsigned i = 0; i < 20; i++) {
		add_to(s, params.psn + i, 1);
		expect_atomic(s, params.psn + i, i, i + 1);
	}
	for (unsigned i = 4; i < 20; i++) {
		add_to(s, params.psn + i, 1);
		expect_atomic(s, params.psn + i, i, 20);
	}
	assert_true(*counter_of(s) == 20);
	rig_end(s);
}

/* ---- half the PSNs and all of them later ---- */

/* A rig with PSNs to spend: path MTU 256, and *key for 2^31 bytes at *at. */
static struct sim *make_long(uint64_t *at, uint32_t *key)
{
	struct sim_params params = SIM_PARAMS_DEFAULT;
	struct sim *s;

	params.mtu = 1;
	params.no_credits = true;
	s = rig_create(&params);
	*at = sim_map(s, 0, MESSAGE_BYTES_MAX, key);
	return s;
}

static void read_long(struct sim *s, uint32_t psn, uint64_t at, uint32_t key, uint32_t packets)
{
	struct wire_headers h =
		rig_headers(s, 0, WIRE_RC_READ_REQUEST, psn & PSN_MASK, at, packets * LONG_MTU);

	h.rkey = key;
	rig_send(s, h, NULL, 0);
}

/* A READ takes this many PSNs. A request for only its last response replaces all of them. */
static void spend(struct sim *s, uint32_t psn, uint64_t at, uint32_t key, uint32_t packets)
{
	uint32_t last = (psn + packets - 1) & PSN_MASK;
	struct rig_packet p = {0};

	read_long(s, psn, at, key, packets);
	read_long(s, last, at, key, 1);
	while (p.h.psn != last)
		assert_true(rig_recv(s, &p, MS));
	rig_silent(s, 10 * US);
	assert_int_equal(rig_epsn(s, 0), (last + 1) & PSN_MASK);
}

/* All of the 2^23 PSNs that may be outstanding (C9-61) were executed, no response arrived: the
 * oldest is sent again. */
TEST(c9_078__the_oldest_of_all_that_may_be_outstanding)
{
	uint64_t at;
	uint32_t key;
	struct sim *s = make_long(&at, &key);

	add_to(s, PSN, 1);
	expect_atomic(s, PSN, 0, 1);
	spend(s, PSN + 1, at, key, PSN_WINDOW - 1);
	add_to(s, PSN, 1);
	expect_atomic(s, PSN, 0, 2);
	spend(s, PSN + PSN_WINDOW, at, key, PSN_WINDOW);
	read_long(s, PSN + PSN_WINDOW, at, key, 1);
	rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN + PSN_WINDOW);
	assert_true(*counter_of(s) == 1);
	rig_end(s);
}

/* The PSN comes round: results of its earlier life are no answers to what has it now. */
TEST(o9_066__results_of_a_psn_that_came_round)
{
	uint64_t at;
	uint32_t key;
	struct sim *s = make_long(&at, &key);

	*counter_of(s) = 10;
	add_to(s, PSN, 1);
	expect_atomic(s, PSN, 10, 1);
	add_to(s, PSN + 1, 1);
	expect_atomic(s, PSN + 1, 11, 2);
	spend(s, PSN + 2, at, key, PSN_WINDOW - 2);
	spend(s, PSN + PSN_WINDOW, at, key, PSN_WINDOW);
	add_to(s, PSN, 1); /* executed */
	expect_atomic(s, PSN, 12, 5);
	rig_written(s, PSN + 1, AT, 64, 6);
	add_to(s, PSN, 1); /* o9-66 */
	expect_atomic(s, PSN, 12, 6);
	add_to(s, PSN + 1, 1); /* o9-67: that is a WRITE now */
	rig_silent(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_duplicate), 1);
	assert_true(*counter_of(s) == 13);
	rig_end(s);
}

TEST_RC(o9_067__unknown_atomics_are_dropped)
{
	rig_written(s, PSN, AT, 64, 1);
	add_to(s, PSN + 1, 1);
	expect_atomic(s, PSN + 1, 0, 2);
	rig_written(s, PSN + 2, AT, 64, 3);
	add_to(s, PSN, 1); /* that was no atomic */
	swap(s, PSN + 2, 1, 7);
	add_to(s, PSN - 1, 1); /* before the connection */
	rig_silent(s, 100 * US);
	assert_true(*counter_of(s) == 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_duplicate), 3);
	assert_int_equal(rig_state(s, 0), QP_RTS);
}

/* PSN 0 of a connection that has executed no atomic: nothing is remembered. */
TEST_RIG_WITH(o9_067__nothing_remembered_of_psn_0, p.psn = 0, p.no_credits = true)
{
	rig_written(s, 0, AT, 64, 1);
	add_to(s, 0, 1);
	rig_silent(s, 100 * US);
	assert_true(*counter_of(s) == 0);
}

/* A result that is not there any more cannot be given again. */
TEST_RC(o9_068__forgotten_result_is_dropped)
{
	for (unsigned i = 0; i < 17; i++) {
		add_to(s, PSN + i, 1);
		expect_atomic(s, PSN + i, i, i + 1);
	}
	add_to(s, PSN, 1);
	rig_silent(s, 100 * US);
	assert_true(*counter_of(s) == 17);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_no_event(s);
	add_to(s, PSN + 1, 1);
	expect_atomic(s, PSN + 1, 1, 17);
}

/* After a reset nothing is remembered. */
TEST_RC(o9_068__results_do_not_outlive_the_connection)
{
	add_to(s, PSN, 1);
	expect_atomic(s, PSN, 0, 1);
	rig_reconnect(s, 0);
	rig_written(s, PSN, AT, 64, 1);
	add_to(s, PSN, 1);
	rig_silent(s, 100 * US);
	assert_true(*counter_of(s) == 1);
}
