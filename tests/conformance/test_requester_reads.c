/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses and atomic results: where they are written, what is lost, what
 * does not fit (C9-133 to C9-136, C9-146). */
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU, RESPONSES = 5, BYTES = 4 * MTU + 33 };

static void assert_read(struct sim *s, uint32_t bytes)
{
	assert_memory_equal(s->node[0].memory + PEER_INTO, s->node[1].memory + PEER_FAR, bytes);
}

/* Byte `at` of the memory as peer_create() filled it. */
static uint8_t untouched(uint64_t at)
{
	return (uint8_t)((at >> 8) * 31 + at * 7);
}

static void assert_untouched(struct sim *s, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		if (s->node[0].memory[from] != untouched(from))
			fail_msg("byte %lu was written to", from);
}

/* ---- where the data goes ---- */

TEST_PEER(c9_146__read_data_arrives_intact)
{
	static const uint32_t lengths[] = {0, 1, 2, 3, MTU - 1, MTU, MTU + 1, 2 * MTU, 3 * MTU + 5};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 9; i++) {
		struct sim_wr rd = peer_wr(USER_RDMA_READ, lengths[i]);
		uint32_t at, next;
		struct cqe c;

		for (unsigned k = 0; k < 4 * MTU; k++)
			s->node[0].memory[PEER_INTO + k] = untouched(PEER_INTO + k);
		at = sim_post(s, 0, 0, &rd);
		next = peer_expect(s, &rd, psn, NULL);
		peer_read_responses(s, psn, lengths[i], 0, next - psn - 1, i + 1);
		c = rig_expect_cqe(s, USER_RDMA_READ, 0, at);
		assert_int_equal(c.byte_count, lengths[i]);
		assert_read(s, lengths[i]);
		assert_untouched(s, PEER_INTO + lengths[i], PEER_INTO + 4 * MTU);
		psn = next;
	}
	assert_int_equal(sim_counter(s, 0, COUNTER_read_bytes), 6 + 8 * MTU + 5);
}

/* Scatter entries that end within packets, and packets that end within entries.
 */
TEST_PEER(scatter__entries_that_packets_share)
{
	static const uint32_t cuts[][4] = {{1, 2, 3, 600},   {255, 2, 255, 1}, {256, 256, 256, 256},
					   {0, 300, 0, 300}, {300, 0, 0, 1},   {0, 0, 0, 5},
					   {0, 0, 0, 0},     {513, 1, 1, 1},   {100, 156, 356, 0}};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 9; i++) {
		struct sim_wr rd = peer_wr(USER_RDMA_READ, 0);
		const uint8_t *from = s->node[1].memory + PEER_FAR;
		uint32_t next, bytes;

		rd.sges = 4;
		for (unsigned k = 0; k < 4; k++)
			rd.sge[k] =
				(struct sim_sge){PEER_INTO + i * 8192 + k * 1000, cuts[i][k], 0};
		bytes = peer_length(&rd);
		next = peer_sends(s, psn, &rd);
		peer_read_responses(s, psn, bytes, 0, next - psn - 1, i + 1);
		rig_expect_cqe(s, USER_RDMA_READ, 0, i * SIM_STRIDE);
		for (unsigned k = 0; k < 4; k++) {
			assert_memory_equal(s->node[0].memory + rd.sge[k].offset, from,
					    rd.sge[k].length);
			assert_untouched(s, rd.sge[k].offset + rd.sge[k].length,
					 rd.sge[k].offset + 1000);
			from += rd.sge[k].length;
		}
		psn = next;
	}
}

/* Several READs outstanding: each into its own entries. */
TEST_PEER(scatter__entries_of_several_reads)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 0);

	rd.sges = 2;
	for (unsigned i = 0; i < 4; i++) {
		rd.sge[0] = (struct sim_sge){PEER_INTO + i * 2000, 300, 0};
		rd.sge[1] = (struct sim_sge){PEER_INTO + i * 2000 + 1000, 200, 0};
		sim_post(s, 0, 0, &rd);
	}
	for (unsigned i = 0; i < 4; i++)
		peer_expect(s, &rd, PSN + 2 * i, NULL);
	for (unsigned i = 0; i < 4; i++)
		peer_read_responses(s, PSN + 2 * i, 500, 0, 1, i + 1);
	for (unsigned i = 0; i < 4; i++) {
		rig_expect_cqe(s, USER_RDMA_READ, 0, i * SIM_STRIDE);
		assert_memory_equal(s->node[0].memory + PEER_INTO + i * 2000,
				    s->node[1].memory + PEER_FAR, 300);
		assert_memory_equal(s->node[0].memory + PEER_INTO + i * 2000 + 1000,
				    s->node[1].memory + PEER_FAR + 300, 200);
	}
}

TEST_PEER(scatter__local_memory_that_is_not_allowed)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, MTU);

	sim_post(s, 0, 0, &rd);
	rd.sge[0].key = 0x777;
	sim_post(s, 0, 0, &rd);
	rd.sge[0].key = 0;
	peer_sends(s, PSN, &rd);
	rig_silent(s, 100 * US);
	peer_read_responses(s, PSN, MTU, 0, 0, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	peer_expect_failed(s, SYNDROME_LOCAL_PROT, 1, 3);
	rig_silent(s, 100 * US);
}

TEST_PEER(atomics__results_of_several)
{
	uint64_t got;

	for (unsigned i = 0; i < 4; i++) {
		struct sim_wr wr = peer_wr(i & 1 ? USER_ATOMIC_CS : USER_ATOMIC_FA, 8);

		wr.sge[0].offset = PEER_INTO + 32 * i;
		peer_sends(s, PSN + i, &wr);
	}
	for (unsigned i = 0; i < 4; i++)
		peer_atomic_response(s, PSN + i, 0xfedcba9800000000 + i, i + 1);
	for (unsigned i = 0; i < 4; i++) {
		rig_expect_cqe(s, i & 1 ? USER_ATOMIC_CS : USER_ATOMIC_FA, 0, i * SIM_STRIDE);
		memcpy(&got, s->node[0].memory + PEER_INTO + 32 * i, 8);
		assert_true(got == 0xfedcba9800000000 + i);
		assert_untouched(s, PEER_INTO + 32 * i + 8, PEER_INTO + 32 * i + 32);
	}
}

/* The result over two entries; nothing beyond 8 bytes is written. */
TEST_PEER(atomics__result_over_two_entries)
{
	struct sim_wr wr = peer_wr(USER_ATOMIC_FA, 8);
	uint64_t orig = 0x1122334455667788;

	wr.sges = 2;
	wr.sge[0].length = 3;
	wr.sge[1] = (struct sim_sge){PEER_INTO + 100, 16, 0};
	sim_post(s, 0, 0, &wr);
	rig_expect(s, WIRE_RC_FETCH_ADD, PSN);
	peer_atomic_response(s, PSN, orig, 1);
	rig_expect_cqe(s, USER_ATOMIC_FA, 0, 0);
	assert_memory_equal(s->node[0].memory + PEER_INTO, &orig, 3);
	assert_memory_equal(s->node[0].memory + PEER_INTO + 100, (uint8_t *)&orig + 3, 5);
	assert_untouched(s, PEER_INTO + 3, PEER_INTO + 100);
	assert_untouched(s, PEER_INTO + 105, PEER_INTO + 200);
}

/* ---- loss ---- */

/* The READ is asked for again from response `from` on: address, length and PSN
 * of what is missing.
 */
static void expect_rest(struct sim *s, uint32_t psn, uint32_t bytes, uint32_t from)
{
	struct rig_packet p = rig_expect(s, WIRE_RC_READ_REQUEST, psn + from);

	assert_int_equal(p.h.va, (uintptr_t)s->node[1].memory + PEER_FAR + from * MTU);
	assert_int_equal(p.h.dma_len, bytes - from * MTU);
	assert_int_equal(p.h.rkey, s->node[1].key);
	assert_int_equal(p.bytes, 0);
	assert_int_equal(p.h.dest_qp, s->node[1].qp[0].qpn);
	assert_int_equal(p.h.pkey, 0xffff);
}

/* The responses to such a request: the responder may start over, with FIRST or
 * ONLY, or continue where it was. */
static void answer_rest(struct sim *s, uint32_t psn, uint32_t bytes, uint32_t from, bool anew)
{
	uint32_t last = (bytes + MTU - 1) / MTU - 1;
	const uint8_t *data = s->node[1].memory + PEER_FAR + from * MTU;

	if (anew) {
		rig_read_response(s, 0,
				  from == last ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_READ_RESP_FIRST,
				  psn + from, 9, data, from == last ? bytes - from * MTU : MTU);
		from++;
	}
	if (from <= last)
		peer_read_responses(s, psn, bytes, from, last, 9);
}

/* Response `lost` of five never comes; the next one reveals it. */
TEST(c9_134__a_lost_response_is_asked_for_again)
{
	for (uint32_t i = 0; i < 2 * (RESPONSES - 1); i++) {
		uint32_t lost = i / 2;
		struct sim *s = peer_make();
		struct sim_wr rd = peer_wr(USER_RDMA_READ, BYTES);
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE, MTU + 1);

		peer_sends(s, PSN, &wr, &rd, &wr);
		if (lost) /* the first one acknowledges what is in front of the READ */
			peer_read_responses(s, PSN + 2, BYTES, 0, lost - 1, 2);
		else
			peer_ack(s, PSN + 1, 1);
		peer_read_responses(s, PSN + 2, BYTES, lost + 1, RESPONSES - 1, 2);
		expect_rest(s, PSN + 2, BYTES, lost);
		peer_expect(s, &wr, PSN + 7, NULL); /* and what is behind it */
		rig_silent(s, 100 * US);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		rig_no_cqe(s);
		assert_int_equal(sim_context(s, 0, 0)->rrc.unacked_psn, PSN + 2 + lost);
		answer_rest(s, PSN + 2, BYTES, lost, i & 1);
		rig_expect_cqe(s, USER_RDMA_READ, 0, SIM_STRIDE);
		assert_read(s, BYTES);
		peer_ack(s, PSN + 8, 3);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
		rig_end(s);
	}
}

/* All of them are lost: the first one of the next READ reveals it. */
TEST_PEER(c9_134__the_next_read_reveals_a_lost_response)
{
	const struct sim_wr rd = peer_wr(USER_RDMA_READ, BYTES);

	for (unsigned i = 0; i < 2; i++) {
		peer_sends(s, PSN + i * RESPONSES, &rd);
	}
	peer_read_responses(s, PSN + RESPONSES, BYTES, 0, 0, 2);
	for (unsigned i = 0; i < 2; i++)
		expect_rest(s, PSN + i * RESPONSES, BYTES, 0);
	for (unsigned i = 0; i < 2; i++) {
		rig_no_cqe(s);
		peer_read_responses(s, PSN + i * RESPONSES, BYTES, 0, RESPONSES - 1, i + 1);
		rig_expect_cqe(s, USER_RDMA_READ, 0, i * SIM_STRIDE);
	}
}

enum revealed { BY_ACK, BY_NAK, BY_TIMER };

/* All from one response on are lost: from each of them, answered anew or where it was. */
static void the_rest_is_lost(enum revealed how)
{
	for (uint32_t i = 0; i < 2 * RESPONSES; i++) {
		uint32_t got = i / 2;
		struct sim *s = peer_make();
		struct sim_wr rd = peer_wr(USER_RDMA_READ, BYTES), wr = peer_wr(USER_SEND, 1);

		peer_sends(s, PSN, &rd, &wr);
		if (got)
			peer_read_responses(s, PSN, BYTES, 0, got - 1, 1);
		if (how == BY_ACK)
			peer_ack(s, PSN + RESPONSES, 2);
		else if (how == BY_NAK)
			peer_nak(s, PSN + got, AETH_NAK_SEQUENCE, 0);
		else
			sim_run(s, 67 * MS);
		expect_rest(s, PSN, BYTES, got);
		peer_expect(s, &wr, PSN + RESPONSES, NULL);
		rig_quiet(s, 100 * US);
		answer_rest(s, PSN, BYTES, got, i & 1);
		rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
		assert_read(s, BYTES);
		rig_no_cqe(s);
		peer_ack(s, PSN + RESPONSES, 2);
		rig_expect_cqe(s, USER_SEND, 0, SIM_STRIDE);
		rig_end(s);
	}
}

TEST(c9_134__an_acknowledgement_behind_lost_responses)
{
	the_rest_is_lost(BY_ACK);
}

TEST(c9_137__a_nak_of_the_read_or_within_it)
{
	the_rest_is_lost(BY_NAK);
}

TEST(c9_139__lost_responses_by_the_timer)
{
	the_rest_is_lost(BY_TIMER);
}

/* Responses that come ahead of a missing one are kept: when it has come, they need not come again. */
TEST_PEER(c9_134__responses_that_come_early_are_kept)
{
	peer_post(s, USER_RDMA_READ, BYTES);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	for (uint32_t i = RESPONSES; i-- > 1;)
		peer_read_responses(s, PSN, BYTES, i, i, 1);
	expect_rest(s, PSN, BYTES, 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_responses_kept), RESPONSES - 1);
	rig_no_cqe(s);
	peer_read_responses(s, PSN, BYTES, 0, 0, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	assert_read(s, BYTES);
	peer_read_responses(s, PSN, BYTES, 1, RESPONSES - 1, 1); /* duplicates */
	rig_silent(s, 100 * US);
}

static struct sim *impatient(void)
{
	struct sim_params p = peer_params();

	p.retry_cnt = 0;
	return peer_create(&p);
}

/* A response behind a missing one takes a try, as a NAK does. */
RIG_TEST(c9_137__a_missing_response_when_all_tries_are_used, impatient())
{
	peer_post(s, USER_RDMA_READ, BYTES);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	peer_read_responses(s, PSN, BYTES, 1, 1, 1);
	peer_expect_error(s, SYNDROME_RETRY_EXC, 0);
}

/* In their turn they pass every check: one of a wrong length fails the READ then, and not before. */
TEST_PEER(c9_133__an_early_response_is_checked_in_its_turn)
{
	peer_post(s, USER_RDMA_READ, BYTES);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_MIDDLE, PSN + 1, 1, NULL, MTU - 4);
	expect_rest(s, PSN, BYTES, 0);
	rig_no_cqe(s);
	peer_read_responses(s, PSN, BYTES, 0, 0, 1);
	peer_expect_error(s, SYNDROME_BAD_RESP, 0);
}

/* A part of the rest is lost, and a part of that. */
TEST_PEER(c9_134__rests_of_rests)
{
	s->node[0].hca->engines[0].settings.loss_recovery = LOSS_RECOVERY_STANDARD;
	peer_post(s, USER_RDMA_READ, BYTES);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	for (uint32_t i = 0; i < RESPONSES - 1; i++) {
		peer_read_responses(s, PSN, BYTES, i + 1, i + 1, 1);
		expect_rest(s, PSN, BYTES, i);
		peer_read_responses(s, PSN, BYTES, i, i, 1);
		sim_run(s, 10 * US);
	}
	rig_no_cqe(s);
	peer_read_responses(s, PSN, BYTES, RESPONSES - 1, RESPONSES - 1, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	assert_read(s, BYTES);
}

TEST_PEER(c9_134__an_atomic_whose_answer_is_lost_is_repeated_as_it_was)
{
	struct sim_wr cs = peer_wr(USER_ATOMIC_CS, 8), wr = peer_wr(USER_RDMA_WRITE, 1);

	peer_sends(s, PSN, &cs, &wr);
	peer_ack(s, PSN + 1, 2);
	peer_expect_all(s, PSN, &cs, &wr);
	peer_atomic_response(s, PSN, 5, 2);
	rig_expect_cqe(s, USER_ATOMIC_CS, 0, 0);
	rig_no_cqe(s);
	peer_ack(s, PSN + 1, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, SIM_STRIDE);
}

/* ---- duplicates ---- */

TEST_PEER(c9_145__duplicate_responses_write_nothing)
{
	static uint8_t garbage[MTU];

	memset(garbage, 0xee, sizeof(garbage));
	peer_post(s, USER_RDMA_READ, BYTES);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	peer_read_responses(s, PSN, BYTES, 0, 2, 1);
	rig_read_response(s, 0, 0x0d, PSN, 1, garbage, MTU);
	rig_read_response(s, 0, 0x0e, PSN + 1, 1, garbage, MTU);
	rig_read_response(s, 0, 0x0e, PSN + 2, 1, garbage, MTU);
	rig_silent(s, 100 * US);
	peer_read_responses(s, PSN, BYTES, 3, 4, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	rig_read_response(s, 0, 0x0f, PSN + 4, 1, garbage, 33);
	rig_read_response(s, 0, 0x0d, PSN, 1, garbage, MTU);
	rig_quiet(s, MS);
	assert_read(s, BYTES);
}

/* ---- what does not fit ---- */

/* A response whose opcode or length cannot be: nothing completes as good, nothing is written; if
 * the queue pair fails, it fails with BAD_RESP, else the right responses are taken. */
static void misfit(const struct sim_wr *wr, uint32_t before, uint8_t opcode, uint32_t index,
		   uint32_t bytes)
{
	struct sim *s = peer_make();
	uint32_t got = before * MTU, length = peer_length(wr);
	bool failed;
	struct cqe c;

	sim_post(s, 0, 0, wr);
	peer_expect(s, wr, PSN, NULL);
	if (before)
		peer_read_responses(s, PSN, length, 0, before - 1, 1);
	rig_read_response(s, 0, opcode, PSN + index, 1, NULL, bytes);
	rig_silent(s, 100 * US);
	assert_read(s, got);
	assert_untouched(s, PEER_INTO + got, PEER_INTO + BYTES + MTU);
	failed = sim_poll_cq(s, 0, &c);
	if (failed) {
		assert_int_equal(c.opcode, USER_INVALID);
		assert_int_equal(c.imm_or_error & 0xff, SYNDROME_BAD_RESP);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
	} else {
		peer_read_responses(s, PSN, length, before, length ? (length - 1) / MTU : 0, 1);
		rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
		assert_read(s, length);
	}
	rig_end(s);
}

TEST(c9_135__read_responses_of_a_wrong_length)
{
	const struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU + 8);
	const struct sim_wr none = peer_wr(USER_RDMA_READ, 0), one = peer_wr(USER_RDMA_READ, 8);

	misfit(&rd, 0, 0x0d, 0, MTU - 4);
	misfit(&rd, 0, 0x0d, 0, MTU + 4);
	misfit(&rd, 0, 0x0d, 0, 0);
	misfit(&rd, 1, 0x0e, 1, MTU - 1);
	misfit(&rd, 1, 0x0e, 1, MTU + 4);
	misfit(&rd, 2, 0x0f, 2, 7);
	misfit(&rd, 2, 0x0f, 2, 9);
	misfit(&rd, 2, 0x0f, 2, MTU);
	misfit(&none, 0, 0x10, 0, 4);
	misfit(&one, 0, 0x10, 0, 0);
	misfit(&one, 0, 0x10, 0, 7);
	misfit(&one, 0, 0x10, 0, 9);
}

TEST_PEER(c9_135__a_wrong_length_is_a_bad_response)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1);

	sim_post(s, 0, 0, &wr);
	peer_post(s, USER_RDMA_READ, 8);
	sim_post(s, 0, 0, &wr);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 1);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 2);
	rig_read_response(s, 0, 0x10, PSN + 1, 2, NULL, 12);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	peer_expect_failed(s, SYNDROME_BAD_RESP, 1, 3);
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_resp_length), 1);
}

/* A response of the wrong kind, with the right PSN: it completes nothing as
 * good and writes nothing; the right one, if it is still taken, does. */
static void wrong_kind(uint8_t asked, uint8_t answered)
{
	struct sim *s = peer_make();
	struct sim_wr wr = peer_wr(asked, 8);
	struct cqe c;
	bool failed;

	peer_sends(s, PSN, &wr);
	if (answered == WIRE_RC_ACK)
		peer_ack(s, PSN, 1);
	else if (answered == WIRE_RC_ATOMIC_ACK)
		peer_atomic_response(s, PSN, 0xdddddddddddddddd, 1);
	else
		rig_read_response(s, 0, answered, PSN, 1, NULL, 8);
	sim_run(s, 100 * US);
	assert_untouched(s, PEER_INTO, PEER_INTO + 16);
	failed = sim_poll_cq(s, 0, &c);
	if (failed) {
		assert_int_equal(c.opcode, USER_INVALID);
		assert_int_equal(c.imm_or_error & 0xff, SYNDROME_BAD_RESP);
	} else if (asked == USER_RDMA_READ) {
		peer_read_responses(s, PSN, 8, 0, 0, 1);
	} else if (sim_traits[asked] & USER_SCATTERS) {
		peer_atomic_response(s, PSN, 1, 1);
	} else {
		peer_ack(s, PSN, 1);
	}
	if (!failed)
		rig_expect_cqe(s, asked, 0, 0);
	while (rig_recv(s, &(struct rig_packet){0}, 10 * US))
		;
	rig_end(s);
}

TEST(c9_135__responses_of_the_wrong_kind)
{
	wrong_kind(USER_RDMA_READ, WIRE_RC_ACK);
	wrong_kind(USER_RDMA_READ, WIRE_RC_ATOMIC_ACK);
	wrong_kind(USER_ATOMIC_CS, WIRE_RC_ACK);
	wrong_kind(USER_ATOMIC_FA, WIRE_RC_READ_RESP_ONLY);
	wrong_kind(USER_ATOMIC_CS, WIRE_RC_READ_RESP_FIRST);
	wrong_kind(USER_RDMA_WRITE, WIRE_RC_READ_RESP_ONLY);
	wrong_kind(USER_SEND, WIRE_RC_ATOMIC_ACK);
	wrong_kind(USER_RDMA_WRITE, WIRE_RC_ATOMIC_ACK);
}

/* Nor behind a right one, in the same burst. */
TEST(c9_135__wrong_kind_behind_a_right_one)
{
	struct sim *s = peer_make();
	struct sim_wr wr = peer_wr(USER_ATOMIC_FA, 8);

	peer_sends(s, PSN, &wr, &wr);
	peer_atomic_response(s, PSN, 5, 1);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_ONLY, PSN + 1, 2, NULL, 0);
	sim_run(s, 20 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_resp_opcode), 1);
	peer_atomic_response(s, PSN + 1, 6, 2);
	rig_expect_done(s, 0, USER_ATOMIC_FA, USER_ATOMIC_FA);
	rig_end(s);
}

/* The response to a READ of two packets is not one, however long. */
TEST(c9_135__one_response_for_two)
{
	struct sim *s = peer_make();
	struct sim_wr wr = peer_wr(USER_RDMA_READ, MTU + 50);

	peer_sends(s, PSN, &wr);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_ONLY, PSN, 1, NULL, MTU + 50);
	sim_run(s, 20 * US);
	rig_no_cqe(s);
	peer_read_responses(s, PSN, MTU + 50, 0, 1, 1);
	rig_expect_done(s, 0, USER_RDMA_READ);
	rig_end(s);
}

/* Loses the response to the third READ of QP 0, once. */
static bool loses_third(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	unsigned *left = arg;
	struct wire_frame f;

	return from == 1 && wire_parse_frame(frame, bytes, &f) == WIRE_OK &&
	       f.h.dest_qp == s->node[0].qp[0].qpn && f.h.opcode == WIRE_RC_READ_RESP_ONLY &&
	       f.h.psn == psn_add(s->params.psn, 2) && (*left)-- == 1;
}

/* A response with the PSN that one queue pair expects is not its own if it is another's. */
TEST(c9_061__each_connection_has_its_own_responses)
{
	enum { FIRST_AT = 1 << 20, SECOND_AT = 2 << 20 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	unsigned left = 1;
	struct sim *s;

	p.qps = 2;
	s = sim_create(&p);
	memset(s->node[1].memory + FIRST_AT, 1, 64);
	memset(s->node[1].memory + SECOND_AT, 2, 64);
	for (unsigned i = 0; i < 2; i++)
		sim_post(s, 0, 1, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = 0));
	assert_true(sim_settle(s, 100 * MS));
	s->tap = loses_third;
	s->tap_arg = &left;
	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &SIM_WR(USER_RDMA_READ, 64 * i, 64, .remote = FIRST_AT));
	sim_post(s, 0, 1, &SIM_WR(USER_RDMA_READ, 4096, 64, .remote = SECOND_AT));
	assert_true(sim_settle(s, 60000 * MS));
	for (unsigned i = 0; i < 3 * 64; i++)
		assert_int_equal(s->node[0].memory[i], 1);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(s->node[0].memory[4096 + i], 2);
	sim_destroy(s);
}

/* A response for a WRITE in front of a READ is none for the READ. */
TEST_PEER(c9_135__read_responses_for_a_write_in_front)
{
	peer_post(s, USER_RDMA_WRITE, 1);
	peer_post(s, USER_RDMA_READ, 8);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 1);
	rig_read_response(s, 0, 0x10, PSN, 1, NULL, 8);
	sim_run(s, 100 * US);
	assert_untouched(s, PEER_INTO, PEER_INTO + 16);
	rig_no_cqe(s);
	peer_read_responses(s, PSN + 1, 8, 0, 0, 2);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_RDMA_READ);
	assert_read(s, 8);
}

/* An error within a READ's responses comes as an Acknowledge with a NAK code
 * (C9-100). */
TEST(c9_135__a_nak_in_place_of_a_response)
{
	for (uint32_t got = 0; got < 3; got++) {
		struct sim *s = peer_make();
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1);

		sim_post(s, 0, 0, &wr);
		peer_post(s, USER_RDMA_READ, 3 * MTU);
		sim_post(s, 0, 0, &wr);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
		rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 1);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 4);
		if (got)
			peer_read_responses(s, PSN + 1, 3 * MTU, 0, got - 1, 2);
		peer_nak(s, PSN + 1 + got, AETH_NAK_REMOTE_OPERATION, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		peer_expect_failed(s, SYNDROME_REMOTE_OP, 1, 3);
		rig_silent(s, 100 * US);
		rig_end(s);
	}
}

TEST(c9_135__read_responses_in_a_wrong_order)
{
	const struct sim_wr rd = peer_wr(USER_RDMA_READ, 3 * MTU),
			    one = peer_wr(USER_RDMA_READ, MTU);

	misfit(&rd, 0, 0x0e, 0, MTU); /* middle, last, only instead of first */
	misfit(&rd, 0, 0x0f, 0, MTU);
	misfit(&rd, 0, 0x10, 0, MTU);
	misfit(&rd, 1, 0x0d, 1, MTU); /* first, last, only instead of middle */
	misfit(&rd, 1, 0x0f, 1, MTU);
	misfit(&rd, 1, 0x10, 1, MTU);
	misfit(&rd, 2, 0x0d, 2, MTU); /* first, middle, only instead of last */
	misfit(&rd, 2, 0x0e, 2, MTU);
	misfit(&rd, 2, 0x10, 2, MTU);
	misfit(&one, 0, 0x0d, 0, MTU); /* first, middle, last instead of only */
	misfit(&one, 0, 0x0e, 0, MTU);
	misfit(&one, 0, 0x0f, 0, MTU);
}
