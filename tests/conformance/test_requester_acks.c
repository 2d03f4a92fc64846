/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledgements and what they complete; what may be sent before they arrive
 * (C9-60, C9-133 to C9-138, C9-145). */
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU };

/* ---- C9-60 ---- */

TEST(c9_060__a_push_completes_with_its_last_acknowledgement)
{
	static const uint8_t opcodes[] = {USER_SEND, USER_SEND_IMM, USER_SEND_INV, USER_RDMA_WRITE,
					  USER_RDMA_WRITE_IMM};

	for (unsigned i = 0; i < 5; i++) {
		struct sim *s = peer_make();
		struct sim_wr wr = peer_wr(opcodes[i], 3 * MTU);

		peer_sends(s, PSN, &wr);
		rig_quiet(s, MS);
		peer_ack(s, PSN, 0);
		rig_quiet(s, 100 * US);
		peer_ack(s, PSN + 1, 0);
		rig_quiet(s, 100 * US);
		peer_ack(s, PSN + 2, 1);
		rig_expect_cqe(s, opcodes[i], 0, 0);
		rig_quiet(s, 100 * US);
		rig_end(s);
	}
}

TEST_PEER(c9_060__a_read_completes_with_its_last_response)
{
	peer_post(s, USER_RDMA_READ, 4 * MTU);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	for (unsigned i = 0; i < 4; i++) {
		rig_quiet(s, 100 * US);
		peer_read_responses(s, PSN, 4 * MTU, i, i, 1);
	}
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	rig_quiet(s, 100 * US);
}

/* Later requests answered first complete nothing out of order. */
TEST_PEER(c9_060__completions_come_in_order)
{
	peer_post(s, USER_RDMA_WRITE, 10);
	peer_post(s, USER_RDMA_READ, MTU + 1);
	peer_post(s, USER_SEND, 10);
	peer_post(s, USER_ATOMIC_FA, 8);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 1);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN + 3);
	rig_expect(s, WIRE_RC_FETCH_ADD, PSN + 4);
	peer_read_responses(s, PSN + 1, MTU + 1, 0, 0, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0); /* implied by the first response */
	rig_quiet(s, 100 * US);
	peer_read_responses(s, PSN + 1, MTU + 1, 1, 1, 2);
	rig_expect_cqe(s, USER_RDMA_READ, 0, SIM_STRIDE);
	rig_quiet(s, 100 * US);
	peer_atomic_response(s, PSN + 4, 1, 4); /* acknowledges the SEND too */
	rig_expect_done(s, 2, USER_SEND, USER_ATOMIC_FA);
}

TEST_PEER(c9_060__unsignaled_requests_complete_silently)
{
	static const uint8_t opcodes[] = {USER_RDMA_WRITE, USER_RDMA_READ, USER_ATOMIC_CS,
					  USER_SEND};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 4; i++) {
		struct sim_wr wr = peer_wr(opcodes[i], 2 * MTU);

		wr.unsignaled = true;
		psn = peer_sends(s, psn, &wr);
	}
	peer_post(s, USER_SEND, 5);
	rig_expect(s, WIRE_RC_SEND_ONLY, psn);
	peer_read_responses(s, PSN + 2, 2 * MTU, 0, 1, 2);
	peer_atomic_response(s, PSN + 4, 1, 3);
	rig_quiet(s, 100 * US);
	peer_ack(s, PSN + 6, 4);
	rig_quiet(s, 100 * US);
	peer_ack(s, PSN + 7, 5);
	rig_expect_cqe(s, USER_SEND, 0, 4 * SIM_STRIDE);
	rig_no_cqe(s);
}

/* ---- the requester makes sure that a response will come ---- */

static bool asks(const struct rig_packet *p)
{
	return p->h.ackreq || p->h.opcode == WIRE_RC_READ_REQUEST ||
	       p->h.opcode == WIRE_RC_CMP_SWAP || p->h.opcode == WIRE_RC_FETCH_ADD;
}

/* Whatever is posted, when: whenever the wire falls silent with something
 * outstanding, the last packet has asked for a response. */
static void asked(uint64_t seed, struct engine_settings *settings)
{
	struct sim_params p = peer_params();
	struct sim *s;
	uint32_t posted = 0, done = 0, acked = PSN;
	struct rig_packet got, last = {.h.psn = PSN - 1};
	struct cqe c;

	p.settings = settings;
	s = peer_create(&p);
	s->rng = seed;
	for (unsigned i = 0; i < 150; i++) {
		for (unsigned k = sim_random(s) % 4; k && posted - done < 100; k--, posted++)
			peer_post(s, sim_random(s) & 1 ? USER_SEND : USER_RDMA_WRITE,
				  sim_random(s) % (24 * MTU));
		if (sim_random(s) & 1)
			continue; /* all at once with the next ones */
		while (rig_recv(s, &got, 20 * US))
			last = got;
		if (last.h.psn == psn_sub(acked, 1))
			continue;
		if (!asks(&last))
			fail_msg("seed %lu: PSN %#x is the last one and asks for nothing", seed,
				 last.h.psn);
		acked = psn_add(last.h.psn, 1);
		peer_ack(s, last.h.psn, 0);
		sim_run(s, 5 * US);
		while (sim_poll_cq(s, 0, &c))
			done++;
	}
	for (unsigned i = 0; i < 10000 && done < posted; i++) {
		while (rig_recv(s, &got, 5 * US))
			last = got;
		peer_ack(s, last.h.psn, 0);
		sim_run(s, 5 * US);
		while (sim_poll_cq(s, 0, &c))
			done++;
	}
	assert_int_equal(done, posted);
	rig_end(s);
}

TEST(c9_060__nothing_waits_for_an_ack_that_was_not_asked_for)
{
	struct engine_settings *settings = rig_settings();

	for (unsigned seed = 1; seed <= 6; seed++)
		asked(seed, NULL);
	settings->swpb_elements = 20; /* parks in the middle of messages */
	for (unsigned seed = 1; seed <= 6; seed++)
		asked(seed, settings);
	settings->quantum_bytes = 5 * MTU; /* short turns */
	settings->ack_interval = 3;
	for (unsigned seed = 1; seed <= 6; seed++)
		asked(seed, settings);
}

TEST_PEER_WITH(ack_request__at_least_every_interval, p.settings = rig_settings(),
	       p.settings->ack_interval = 5)
{
	struct rig_packet got;
	unsigned since = 0, asked_for = 0;

	peer_post(s, USER_RDMA_WRITE, 100 * MTU);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(rig_recv(s, &got, MS));
		since++;
		assert_true(since <= 5);
		if (got.h.ackreq) {
			since = 0;
			asked_for++;
		}
	}
	assert_int_equal(since, 0);
	assert_true(asked_for <= 22); /* and not with every packet */
	peer_ack(s, PSN + 99, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* A peer that has never answered does not get everything: the QP stops after requesting an
 * acknowledgement, and continues when it comes. */
TEST_PEER(ack_request__where_it_stops_for_buffers)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 40 * MTU);
	struct rig_packet got = {0};
	unsigned first = 0;

	sim_context(s, 0, 0)->rrc.proven = 0;
	sim_post(s, 0, 0, &wr);
	while (rig_recv(s, &got, 100 * US))
		first++;
	assert_true(first > 0 && first < 40);
	assert_true(got.h.ackreq);
	peer_ack(s, PSN + first - 1, 0);
	peer_expect_from(s, &wr, PSN, first, &got);
	assert_true(got.h.ackreq);
	peer_ack(s, PSN + 39, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* ---- what may be sent: fence, READs outstanding ---- */

TEST(fence__waits_for_reads_and_atomics_only)
{
	static const uint8_t slow[] = {USER_RDMA_READ, USER_ATOMIC_CS, USER_ATOMIC_FA};

	for (unsigned i = 0; i < 3; i++) {
		struct sim *s = peer_make();
		struct sim_wr rd = peer_wr(slow[i], MTU), wr = peer_wr(USER_RDMA_WRITE, MTU);

		sim_post(s, 0, 0, &wr);
		wr.fence = true;
		sim_post(s, 0, 0, &wr); /* a WRITE in front is nothing to wait for */
		peer_expect_all(s, PSN, &wr, &wr);
		peer_posts(s, &rd, &wr);
		peer_expect(s, &rd, PSN + 2, NULL);
		rig_silent(s, MS);
		peer_ack(s, PSN + 1, 2); /* not what it waits for */
		rig_silent(s, MS);
		if (i)
			peer_atomic_response(s, PSN + 2, 1, 3);
		else
			peer_read_responses(s, PSN + 2, MTU, 0, 0, 3);
		peer_expect(s, &wr, PSN + 3, NULL);
		peer_ack(s, PSN + 3, 4);
		for (unsigned k = 0; k < 4; k++)
			rig_expect_cqe(s, k == 2 ? slow[i] : USER_RDMA_WRITE, 0, k * SIM_STRIDE);
		rig_end(s);
	}
}

TEST_PEER(fence__waits_for_all_of_them)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU);

	for (unsigned i = 0; i < 3; i++) {
		rd.fence = i == 2; /* a READ may be fenced too */
		sim_post(s, 0, 0, &rd);
	}
	peer_expect_all(s, PSN, &rd, &rd);
	rig_silent(s, 100 * US);
	peer_read_responses(s, PSN, 2 * MTU, 0, 1, 1);
	rig_silent(s, 100 * US);
	peer_read_responses(s, PSN + 2, 2 * MTU, 0, 0, 2);
	rig_silent(s, 100 * US);
	peer_read_responses(s, PSN + 2, 2 * MTU, 1, 1, 2);
	peer_expect(s, &rd, PSN + 4, NULL);
	peer_read_responses(s, PSN + 4, 2 * MTU, 0, 1, 3);
	rig_expect_same(s, 0, 3, USER_RDMA_READ);
}

static struct sim *make_one_read(void)
{
	struct sim_params p = peer_params();

	p.max_rd_atomic = 1;
	return peer_create(&p);
}

/* Not even behind as many READs as may be outstanding. */
RIG_TEST(no_fence__overtakes_nothing_and_waits_for_nothing, make_one_read())
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, MTU), wr = peer_wr(USER_RDMA_WRITE, MTU);

	peer_sends(s, PSN, &rd, &wr);
	peer_read_responses(s, PSN, MTU, 0, 0, 1);
	peer_ack(s, PSN + 1, 2);
	rig_expect_done(s, 0, USER_RDMA_READ, USER_RDMA_WRITE);
}

static void max_rd_atomic(uint8_t most)
{
	struct sim_params p = peer_params();
	struct sim_wr rd = peer_wr(USER_RDMA_READ, MTU), fa = peer_wr(USER_ATOMIC_FA, 8);
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1);
	struct sim *s;

	p.max_rd_atomic = most;
	s = peer_create(&p);
	for (unsigned i = 0; i < most + 2u; i++)
		sim_post(s, 0, 0, i & 1 ? &fa : &rd);
	sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < most; i++)
		peer_expect(s, i & 1 ? &fa : &rd, PSN + i, NULL);
	for (unsigned i = 0; i < most + 2u; i++) {
		rig_silent(s, 100 * US); /* neither one more of them, nor a later request */
		if (i & 1)
			peer_atomic_response(s, PSN + i, 1, i + 1);
		else
			peer_read_responses(s, PSN + i, MTU, 0, 0, i + 1);
		if (i < 2)
			peer_expect(s, (i + most) & 1 ? &fa : &rd, PSN + i + most, NULL);
		if (i == 1)
			peer_expect(s, &wr, PSN + most + 2, NULL);
		rig_expect_cqe(s, i & 1 ? USER_ATOMIC_FA : USER_RDMA_READ, 0, i * SIM_STRIDE);
	}
	peer_ack(s, PSN + most + 2, most + 3);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, (most + 2) * SIM_STRIDE);
	rig_end(s);
}

TEST(max_rd_atomic__is_never_exceeded)
{
	max_rd_atomic(1);
	max_rd_atomic(2);
	max_rd_atomic(3);
	max_rd_atomic(16);
	max_rd_atomic(READS_MAX);
}

TEST_PEER_WITH(max_rd_atomic__of_0_refuses_them, p.max_rd_atomic = 0)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1);

	sim_post(s, 0, 0, &wr);
	peer_post(s, USER_RDMA_READ, 1);
	peer_sends(s, PSN, &wr);
	rig_quiet(s, MS); /* in its turn */
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	peer_expect_failed(s, SYNDROME_LOCAL_QP_OP, 1, 3);
	rig_quiet(s, MS);
}

/* A peer that has not answered yet holds one buffer for READs, however many may
 * be outstanding: dead peers leave the others theirs. */
TEST_PEER(max_rd_atomic__one_until_the_peer_has_answered)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, MTU), fa = peer_wr(USER_ATOMIC_FA, 8);

	sim_context(s, 0, 0)->rrc.proven = 0;
	peer_posts(s, &rd, &fa, &rd);
	peer_expect(s, &rd, PSN, NULL);
	rig_silent(s, MS);
	peer_read_responses(s, PSN, MTU, 0, 0, 1);
	peer_expect_all(s, PSN + 1, &fa, &rd);
	peer_atomic_response(s, PSN + 1, 1, 2);
	peer_read_responses(s, PSN + 2, MTU, 0, 0, 3);
	for (unsigned i = 0; i < 3; i++)
		rig_expect_cqe(s, i == 1 ? USER_ATOMIC_FA : USER_RDMA_READ, 0, i * SIM_STRIDE);
}

/* READs count to a queue pair's turn as well: another one comes in between. */
TEST_PEER_WITH(turns__of_queue_pairs_that_read, p.settings = rig_settings(),
	       p.settings->quantum_bytes = 256, p.qps = 2)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 1), wr = peer_wr(USER_RDMA_WRITE, 1);
	struct rig_packet got;
	unsigned before = 0;

	for (unsigned i = 0; i < 12; i++)
		sim_post(s, 0, 0, &rd);
	sim_post(s, 0, 1, &wr);
	for (;;) {
		assert_true(rig_recv(s, &got, MS));
		if (got.h.opcode == WIRE_RC_WRITE_ONLY)
			break;
		before++;
	}
	assert_true(before < 12);
	while (before++ < 12)
		assert_true(rig_recv(s, &got, MS));
	rig_ack(s, 1, PSN, 0x1f, 1);
	for (unsigned i = 0; i < 12; i++)
		peer_read_responses(s, PSN + i, 1, 0, 0, i + 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_expect_same(s, 0, 12, USER_RDMA_READ);
}

/* ---- C9-134: coalesced acknowledgements ---- */

TEST(c9_134__one_ack_for_many_requests)
{
	for (unsigned upto = 0; upto < 10; upto++) {
		struct sim *s = peer_make();
		unsigned done = 0;

		for (unsigned i = 0; i < 5; i++) /* two packets each */
			peer_post(s, i & 1 ? USER_SEND : USER_RDMA_WRITE, 2 * MTU);
		for (unsigned i = 0; i < 10; i++)
			rig_expect(s, (i >> 1 & 1 ? 0x00 : 0x06) + (i & 1 ? 2 : 0), PSN + i);
		peer_ack(s, PSN + upto, (upto + 1) / 2);
		for (; done < (upto + 1) / 2; done++)
			rig_expect_cqe(s, done & 1 ? USER_SEND : USER_RDMA_WRITE, 0,
				       done * SIM_STRIDE);
		rig_quiet(s, 100 * US);
		assert_int_equal(sim_context(s, 0, 0)->rrc.unacked_psn, PSN + upto + 1);
		peer_ack(s, PSN + 9, 5);
		for (; done < 5; done++)
			rig_expect_cqe(s, done & 1 ? USER_SEND : USER_RDMA_WRITE, 0,
				       done * SIM_STRIDE);
		rig_end(s);
	}
}

/* WRITE, READ or atomic, SEND: an acknowledgement of the SEND is a NAK of what
 * has no answer. */
static void implied(uint8_t opcode, uint32_t responses)
{
	struct sim *s = peer_make();
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 10), rd = peer_wr(opcode, responses * MTU);
	struct sim_wr snd = peer_wr(USER_SEND, MTU + 10);
	uint32_t behind = PSN + 1 + responses;

	peer_posts(s, &wr, &rd, &snd, &wr);
	for (unsigned again = 0; again < 2; again++) {
		if (!again)
			peer_expect(s, &wr, PSN, NULL);
		peer_expect_all(s, PSN + 1, &rd, &snd, &wr);
		if (!again)
			peer_ack(s, behind + 1, 3);
	}
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_quiet(s, MS);
	assert_int_equal(sim_context(s, 0, 0)->rrc.unacked_psn, PSN + 1);
	if (opcode == USER_RDMA_READ)
		peer_read_responses(s, PSN + 1, responses * MTU, 0, responses - 1, 4);
	else
		peer_atomic_response(s, PSN + 1, 9, 4);
	rig_expect_cqe(s, opcode, 0, SIM_STRIDE);
	rig_quiet(s, 100 * US);
	peer_ack(s, behind + 2, 4);
	rig_expect_done(s, 2, USER_SEND, USER_RDMA_WRITE);
	rig_end(s);
}

TEST(c9_134__an_ack_behind_a_read_is_an_implied_nak)
{
	implied(USER_RDMA_READ, 1);
	implied(USER_RDMA_READ, 3);
	implied(USER_ATOMIC_CS, 1);
	implied(USER_ATOMIC_FA, 1);
}

/* The oldest of several: only what is in front of it is acknowledged. */
TEST_PEER(c9_134__the_oldest_read_counts)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU), wr = peer_wr(USER_RDMA_WRITE, 1);

	for (unsigned i = 0; i < 3; i++) {
		peer_posts(s, &wr, &rd);
	}
	for (unsigned i = 0; i < 3; i++) {
		peer_expect_all(s, PSN + 3 * i, &wr, &rd);
	}
	peer_read_responses(s, PSN + 1, 2 * MTU, 0, 1, 2);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_RDMA_READ);
	peer_ack(s, PSN + 6, 5); /* of the third WRITE: the second READ has no answer */
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
	peer_expect_all(s, PSN + 4, &rd, &wr, &rd);
	rig_quiet(s, MS);
	peer_read_responses(s, PSN + 4, 2 * MTU, 0, 1, 6);
	peer_read_responses(s, PSN + 7, 2 * MTU, 0, 1, 6);
	rig_expect_done(s, 3, USER_RDMA_READ, USER_RDMA_WRITE, USER_RDMA_READ);
}

/* ---- ghosts and duplicates ---- */

/* Nothing of this may have an effect on one WRITE of two packets that is
 * outstanding. */
static void ineffective(struct sim *s, uint32_t psn)
{
	static const uint8_t syndromes[] = {0x1f, 0x60, 0x61, 0x62, 0x63, 0x2c};
	struct qp *q = sim_context(s, 0, 0);

	for (unsigned i = 0; i < sizeof(syndromes); i++)
		rig_ack(s, 0, psn, syndromes[i], 7);
	rig_read_response(s, 0, 0x10, psn, 7, NULL, 16);
	rig_read_response(s, 0, 0x0d, psn, 7, NULL, MTU);
	rig_read_response(s, 0, 0x0e, psn, 7, NULL, MTU);
	rig_read_response(s, 0, 0x0f, psn, 7, NULL, MTU);
	peer_atomic_response(s, psn, 1, 7);
	rig_quiet(s, 2 * MS);
	assert_int_equal(qp_state(q), QP_RTS);
	assert_int_equal(q->rrc.retry_left, 7);
	assert_int_equal(q->rrc.rnr_waiting, 0);
}

TEST_PEER(c9_136__ghost_acknowledgements_are_dropped)
{
	uint32_t ghosts[] = {PSN + 2, PSN + 3, PSN + 1000, PSN + 0x7ffffe};

	peer_post(s, USER_RDMA_WRITE, 2 * MTU);
	rig_expect(s, WIRE_RC_WRITE_FIRST, PSN);
	rig_expect(s, WIRE_RC_WRITE_LAST, PSN + 1);
	for (unsigned i = 0; i < 4; i++)
		ineffective(s, ghosts[i]);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_ack_ghost), 4 * 11);
	assert_int_equal(sim_context(s, 0, 0)->rrc.ghosts, 4 * 11);
	assert_int_equal(sim_context(s, 0, 0)->rrc.unacked_psn, PSN);
	peer_ack(s, PSN + 1, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

TEST_PEER(c9_136__with_nothing_outstanding_too)
{
	ineffective(s, PSN);
	ineffective(s, PSN + 1);
	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_quiet(s, MS);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	ineffective(s, PSN + 1);
}

TEST_PEER(c9_138__duplicate_acknowledgements_do_no_harm)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 2 * MTU);

	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 3; i++)
		peer_expect(s, &wr, PSN + 2 * i, NULL);
	peer_ack(s, PSN + 3, 2);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_RDMA_WRITE);
	for (unsigned i = 0; i < 5; i++) {
		peer_ack(s, PSN + 3, 2);
		peer_ack(s, PSN + i % 4, 1);
	}
	rig_quiet(s, 2 * MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	peer_ack(s, PSN + 5, 3);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
	for (unsigned i = 0; i < 6; i++)
		peer_ack(s, PSN + i, 3);
	rig_quiet(s, 2 * MS);
}

TEST_PEER(c9_145__duplicates_of_every_kind_are_dropped)
{
	uint32_t before[] = {PSN + 1, PSN, PSN - 1, PSN - 1000, PSN + 2 - 0x800000};

	peer_post(s, USER_RDMA_WRITE, 2 * MTU);
	peer_ack(s, PSN + 1, 1);
	rig_expect(s, WIRE_RC_WRITE_FIRST, PSN);
	rig_expect(s, WIRE_RC_WRITE_LAST, PSN + 1);
	sim_run(s, 10 * US);
	peer_ack(s, PSN + 1, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	peer_post(s, USER_RDMA_WRITE, 2 * MTU);
	rig_expect(s, WIRE_RC_WRITE_FIRST, PSN + 2);
	rig_expect(s, WIRE_RC_WRITE_LAST, PSN + 3);
	for (unsigned i = 0; i < 5; i++)
		ineffective(s, before[i]);
	peer_ack(s, PSN + 3, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, SIM_STRIDE);
}

/* ---- C9-133: invalid packets ---- */

TEST_PEER(c9_133__invalid_response_packets_are_dropped)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_ACK, PSN, 0, 0), bad;
	uint8_t *ip = s->node[1].ip;

	h.syndrome = 0x1f;
	h.msn = 1;
	peer_post(s, USER_RDMA_WRITE, 10);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_bad_icrc(s);
	rig_send(s, h, NULL, 0);
	bad = h;
	bad.pkey = 0x8123;
	rig_send(s, bad, NULL, 0);
	bad = h;
	bad.dest_qp ^= 0x010000;
	rig_send(s, bad, NULL, 0);
	bad = h;
	bad.tver = 1;
	rig_send(s, bad, NULL, 0);
	ip[15] ^= 0x40;
	rig_send(s, h, NULL, 0);
	ip[15] ^= 0x40;
	rig_quiet(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_icrc), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_pkey), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_qpn), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_tver), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_address), 1);
	rig_send(s, h, NULL, 0);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* Long responses have their ICRC checked late, right before the copy. */
TEST_PEER_WITH(c9_133__a_damaged_read_response_writes_nothing, p.mtu = 3)
{
	uint8_t before[2048];

	memcpy(before, s->node[0].memory + PEER_INTO, sizeof(before));
	peer_post(s, USER_RDMA_READ, 1024);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	rig_bad_icrc(s);
	peer_read_responses(s, PSN, 1024, 0, 0, 1);
	rig_quiet(s, MS);
	assert_memory_equal(before, s->node[0].memory + PEER_INTO, sizeof(before));
	peer_read_responses(s, PSN, 1024, 0, 0, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	assert_memory_equal(s->node[1].memory + PEER_FAR, s->node[0].memory + PEER_INTO, 1024);
}

/* Responses to a queue pair whose service knows none. */
TEST_PEER_WITH(c9_133__other_services_take_no_responses, p.service = SERVICE_UC)
{
	peer_post(s, USER_RDMA_WRITE, 10);
	rig_expect(s, WIRE_UC_WRITE_ONLY, PSN);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	peer_ack(s, PSN, 1);
	peer_nak(s, PSN, AETH_NAK_REMOTE_ACCESS, 1);
	rig_quiet(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_service), 2);
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_RTS);
}

TEST_PEER(c9_133__a_queue_pair_in_error_takes_no_responses)
{
	peer_post(s, USER_RDMA_WRITE, 10);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	peer_nak(s, PSN, AETH_NAK_REMOTE_ACCESS, 0);
	peer_expect_error(s, SYNDROME_REMOTE_ACCESS, 0);
	peer_ack(s, PSN, 1);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 1);
	rig_quiet(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_qp_state), 2);
}
