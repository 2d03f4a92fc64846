/* SPDX-License-Identifier: BSD-3-Clause */
/* End-to-end flow control on the requester's side (C9-144, C9-153, C9-156,
 * C9-159 to C9-164). */
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU };

static const uint8_t consuming[] = {USER_SEND, USER_SEND_IMM, USER_SEND_INV, USER_RDMA_WRITE_IMM};

/* An acknowledgement with a credit code, IBTA table 52. */
static void ack(struct sim *s, uint32_t psn, uint8_t code, uint32_t msn)
{
	rig_ack(s, 0, psn, code, msn);
}

/* The peer gave these initial credits: an unsolicited ACK with the initial PSN
 * - 1. */
static struct sim *make(uint8_t code)
{
	struct sim_params p = peer_params();
	struct sim *s = peer_create_without_credits(&p);

	ack(s, PSN - 1, code, 0);
	sim_run(s, 10 * US);
	return s;
}

/* The next packet is the first one of that SEND (of several), asks for an
 * acknowledgement, and is the only one. */
static void expect_first_only(struct sim *s, const struct sim_wr *wr, uint32_t psn)
{
	struct rig_packet p = rig_expect(s, WIRE_RC_SEND_FIRST, psn);

	assert_true(peer_length(wr) > MTU);
	assert_memory_equal(p.payload, s->node[0].memory + wr->sge[0].offset, MTU);
	assert_int_equal(p.bytes, MTU);
	assert_int_equal(p.h.ackreq, 1);
	rig_quiet(s, MS);
}

/* ---- C9-153, C9-156 ---- */

RIG_TEST(c9_153__credits_are_obeyed, make(3))
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 6; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 3; i++)
		psn = peer_expect(s, &wr, psn, NULL);
	expect_first_only(s, &wr, psn); /* the fourth is limited */
	ack(s, PSN + 5, 2, 3);		/* LSN 5 */
	ack(s, PSN + 3, 0, 2);		/* which it has overtaken: counts for nothing */
	rig_expect_same(s, 0, 3, USER_SEND);
	peer_expect_from(s, &wr, psn, 1, NULL);
	psn = peer_expect(s, &wr, psn + 2, NULL);
	expect_first_only(s, &wr, psn);
	ack(s, psn, 31, 5); /* and without limit from now on */
	peer_expect_from(s, &wr, psn, 1, NULL);
	ack(s, psn + 1, 31, 6);
	rig_expect_same(s, 3, 6, USER_SEND);
}

/* As announced in the peer's REQ or REP, before any acknowledgement. */
TEST_PEER_SILENT(c9_153__none_announced_when_connected_send_at_will)
{
	uint32_t psn = PSN;

	ceu_peer_gives_no_credits(s->node[0].ceu, s->node[0].qp[0].qpn);
	for (unsigned i = 0; i < 4; i++)
		peer_post(s, consuming[i], 3 * MTU);
	for (unsigned i = 0; i < 4; i++) {
		struct sim_wr wr = peer_wr(consuming[i], 3 * MTU);

		psn = peer_expect(s, &wr, psn, NULL);
	}
	ack(s, psn - 1, 31, 4);
	for (unsigned i = 0; i < 4; i++)
		rig_expect_cqe(s, consuming[i], 0, i * SIM_STRIDE);
	ack(s, psn - 1, 0, 4); /* once without limit, always */
	rig_silent(s, 10 * US);
	peer_post(s, USER_SEND, 3 * MTU);
	for (unsigned i = 0; i < 3; i++)
		rig_expect(s, WIRE_RC_SEND_FIRST + i, psn + i);
	ack(s, psn + 2, 31, 5);
	rig_expect_cqe(s, USER_SEND, 0, 4 * SIM_STRIDE);
}

TEST_PEER_SILENT(c9_156__no_initial_credits_is_limited)
{
	struct sim_wr wr = peer_wr(USER_SEND, 3 * MTU);

	peer_posts(s, &wr, &wr);
	expect_first_only(s, &wr, PSN);
	ack(s, PSN - 1, 1, 0); /* the initial credits come after all */
	peer_expect_from(s, &wr, PSN, 1, NULL);
	expect_first_only(s, &wr, PSN + 3); /* the second request has none */
	ack(s, PSN + 2, 1, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	peer_expect_from(s, &wr, PSN + 3, 1, NULL);
	ack(s, PSN + 5, 0, 2);
	rig_expect_cqe(s, USER_SEND, 0, SIM_STRIDE);
}

/* The peer may be in RTS first: initial credits that come to a queue pair in RTR count. */
TEST_PEER_SILENT(c9_156__initial_credits_while_in_rtr)
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);

	sim_modify(s, 0, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_INIT, 0);
	sim_modify(s, 0, 0, QP_RTR, 0);
	ack(s, PSN - 1, 2, 0);
	sim_run(s, 10 * US);
	sim_modify(s, 0, 0, QP_RTS, 0);
	s->node[0].qp[0].posted = 0;
	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &wr);
	peer_expect_all(s, PSN, &wr, &wr);
	expect_first_only(s, &wr, PSN + 4);
	ack(s, PSN + 4, 31, 2);
	peer_expect_from(s, &wr, PSN + 4, 1, NULL);
	ack(s, PSN + 5, 31, 3);
	rig_expect_same(s, 0, 3, USER_SEND);
}

/* ---- C9-159 ---- */

TEST(c9_159__without_credits_one_consuming_request_at_a_time)
{
	for (unsigned i = 0; i < 4; i++) {
		struct sim *s = make(0);
		struct sim_wr wr = peer_wr(consuming[i], 1), more = peer_wr(USER_SEND, 1);
		struct rig_packet last;

		peer_posts(s, &wr, &more);
		peer_expect(s, &wr, PSN, &last); /* limited: it goes, alone */
		assert_int_equal(last.h.ackreq, 1);
		rig_silent(s, MS);
		ack(s, PSN, 0, 1);
		rig_expect_cqe(s, consuming[i], 0, 0);
		peer_expect(s, &more, PSN + 1, NULL);
		ack(s, PSN + 1, 0, 2);
		rig_expect_cqe(s, USER_SEND, 0, SIM_STRIDE);
		rig_end(s);
	}
}

TEST(c9_159__what_consumes_no_receive_needs_no_credit)
{
	static const uint8_t free[] = {USER_RDMA_WRITE, USER_RDMA_READ, USER_ATOMIC_CS,
				       USER_ATOMIC_FA, USER_RDMA_WRITE};
	struct sim_params p = peer_params();

	for (unsigned initial = 0; initial < 2; initial++) {
		struct sim *s = initial ? make(0) : peer_create_without_credits(&p);
		uint32_t psn = PSN;

		for (unsigned i = 0; i < 5; i++)
			peer_post(s, free[i], 3 * MTU);
		for (unsigned i = 0; i < 5; i++) {
			struct sim_wr wr = peer_wr(free[i], 3 * MTU);

			psn = peer_expect(s, &wr, psn, NULL);
		}
		ack(s, PSN + 2, 0, 1);
		peer_read_responses(s, PSN + 3, 3 * MTU, 0, 2, 2);
		peer_atomic_response(s, PSN + 6, 1, 3);
		peer_atomic_response(s, PSN + 7, 1, 4);
		ack(s, PSN + 10, 0, 5);
		for (unsigned i = 0; i < 5; i++)
			rig_expect_cqe(s, free[i], 0, i * SIM_STRIDE);
		rig_end(s);
	}
}

/* ---- C9-160 ---- */

TEST(c9_160__nothing_passes_a_limited_request)
{
	static const uint8_t behind[] = {USER_RDMA_WRITE, USER_RDMA_READ, USER_ATOMIC_CS,
					 USER_RDMA_WRITE_IMM, USER_SEND};

	for (unsigned i = 0; i < 5; i++)
		for (unsigned packets = 1; packets <= 2; packets++) {
			struct sim *s = make(0);
			struct sim_wr snd = peer_wr(USER_SEND, packets * MTU);
			struct sim_wr wr = peer_wr(behind[i], 1);
			uint32_t psn;

			peer_posts(s, &snd, &wr);
			rig_expect(s, packets == 1 ? WIRE_RC_SEND_ONLY : WIRE_RC_SEND_FIRST, PSN);
			rig_silent(s, MS);
			ack(s, PSN - 1, 1, 0);
			psn = peer_expect_from(s, &snd, PSN, 1, NULL);
			psn = peer_expect(s, &wr, psn, NULL);
			ack(s, PSN + packets - 1, 1, 1);
			rig_expect_cqe(s, USER_SEND, 0, 0);
			if (behind[i] == USER_RDMA_READ)
				peer_read_responses(s, psn - 1, 1, 0, 0, 2);
			else if (behind[i] == USER_ATOMIC_CS)
				peer_atomic_response(s, psn - 1, 1, 2);
			else
				ack(s, psn - 1, 0, 2);
			rig_expect_cqe(s, behind[i], 0, SIM_STRIDE);
			rig_end(s);
		}
}

/* ---- C9-161 ---- */

/* Table 52, written out again on purpose. */
static const uint16_t credit_table[31] = {0,	1,    2,    3,	   4,	  6,	 8,    12,
					  16,	24,   32,   48,	   64,	  96,	 128,  192,
					  256,	384,  512,  768,   1024,  1536,	 2048, 3072,
					  4096, 6144, 8192, 12288, 16384, 24576, 32768};

/* An MSN so far back that MSN + credits = 3, for each code; none is ahead of what was sent. */
TEST(c9_161__lsn_is_msn_plus_credits)
{
	for (uint8_t code = 0; code < 31; code++) {
		struct sim_params p = peer_params();
		struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
		struct sim *s = peer_create_without_credits(&p);
		uint32_t psn = PSN, lsn = RTE_MIN(credit_table[code], 3u);

		ack(s, PSN - 1, code, psn_sub(lsn, credit_table[code]));
		sim_run(s, 10 * US);
		for (unsigned i = 0; i < 5; i++)
			sim_post(s, 0, 0, &wr);
		for (unsigned i = 0; i < lsn; i++)
			psn = peer_expect(s, &wr, psn, NULL);
		expect_first_only(s, &wr, psn);
		peer_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
		peer_expect_failed(s, SYNDROME_REMOTE_OP, 0, 5);
		rig_end(s);
	}
}

TEST(c9_161__what_consumes_no_receive_adds_one)
{
	static const uint8_t free[] = {USER_RDMA_WRITE, USER_RDMA_READ, USER_ATOMIC_CS,
				       USER_ATOMIC_FA};

	for (unsigned i = 0; i < 4; i++) {
		struct sim *s = make(2);
		struct sim_wr wr = peer_wr(free[i], 1), snd = peer_wr(USER_SEND, 2 * MTU);

		sim_post(s, 0, 0, &snd); /* 1: of the two credits */
		sim_post(s, 0, 0, &wr);	 /* 2: LSN 3 */
		sim_post(s, 0, 0, &wr);	 /* 3: LSN 4 */
		sim_post(s, 0, 0, &snd); /* 4: the other credit */
		sim_post(s, 0, 0, &wr);	 /* 5: LSN 5 */
		sim_post(s, 0, 0, &snd); /* 6: limited */
		sim_post(s, 0, 0, &wr);
		peer_expect_all(s, PSN, &snd, &wr, &wr, &snd, &wr);
		expect_first_only(s, &snd, PSN + 7);
		peer_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
		peer_expect_failed(s, SYNDROME_REMOTE_OP, 0, 7);
		rig_end(s);
	}
}

/* Note 11: a newer acknowledgement takes the additions back. */
RIG_TEST(c9_161__a_newer_lsn_takes_the_place_of_the_old, make(2))
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1), snd = peer_wr(USER_SEND, 2 * MTU);

	sim_post(s, 0, 0, &snd);
	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &wr);
	peer_expect(s, &snd, PSN, NULL);
	for (unsigned i = 0; i < 3; i++)
		peer_expect(s, &wr, PSN + 2 + i, NULL);
	ack(s, PSN - 1, 3, 0); /* LSN 3, which was 5 */
	rig_silent(s, 10 * US);
	sim_post(s, 0, 0, &snd); /* SSN 5 */
	expect_first_only(s, &snd, PSN + 5);
	ack(s, PSN + 4, 1, 4); /* LSN 5 */
	for (unsigned i = 0; i < 4; i++)
		rig_expect_cqe(s, i ? USER_RDMA_WRITE : USER_SEND, 0, i * SIM_STRIDE);
	peer_expect_from(s, &snd, PSN + 5, 1, NULL);
	ack(s, PSN + 6, 0, 5);
	rig_expect_cqe(s, USER_SEND, 0, 4 * SIM_STRIDE);
}

TEST(c9_161__ssn_msn_and_lsn_wrap)
{
	for (uint32_t before = 0; before < 5; before++) {
		struct sim_params p = peer_params();
		struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
		struct sim *s = peer_create_without_credits(&p);
		uint32_t psn = PSN, ssn = psn_sub(1, before);

		sim_context(s, 0, 0)->rtc.ssn = ssn;
		ack(s, PSN - 1, 3, psn_sub(ssn, 1)); /* of three */
		sim_run(s, 10 * US);
		for (unsigned i = 0; i < 5; i++)
			sim_post(s, 0, 0, &wr);
		for (unsigned i = 0; i < 3; i++)
			psn = peer_expect(s, &wr, psn, NULL);
		expect_first_only(s, &wr, psn);
		ack(s, psn - 1, 2, psn_add(ssn, 2));
		peer_expect_from(s, &wr, psn, 1, NULL);
		peer_expect(s, &wr, psn + 2, NULL);
		ack(s, psn + 3, 0, psn_add(ssn, 4));
		rig_expect_same(s, 0, 5, USER_SEND);
		rig_end(s);
	}
}

/* The MSN counts requests of ours: one that names a request which was not sent cannot be. Its
 * credits would carry the LSN anywhere; from half of the numbers on, every later acknowledgement
 * would be taken for an older one. */
TEST(c9_161__an_msn_that_cannot_be_gives_no_credits)
{
	static const uint32_t msn[] = {1, 2, 100, 0x7ffffe, 0x7fffff};

	for (unsigned i = 0; i < RTE_DIM(msn); i++) {
		struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
		struct sim *s = make(0);

		peer_posts(s, &wr, &wr);
		expect_first_only(s, &wr, PSN);
		ack(s, PSN - 1, 4, msn[i]); /* not even the first one is sent as a whole */
		rig_silent(s, MS);
		assert_int_equal(sim_counter(s, 0, COUNTER_ack_msn_ahead), 1);
		ack(s, PSN, 1, 0);
		peer_expect_from(s, &wr, PSN, 1, NULL);
		expect_first_only(s, &wr, PSN + 2);
		ack(s, PSN + 1, 4, 2); /* the second one is not, either */
		rig_expect_cqe(s, USER_SEND, 0, 0);
		rig_silent(s, MS);
		assert_int_equal(sim_counter(s, 0, COUNTER_ack_msn_ahead), 2);
		ack(s, PSN + 1, 1, 1);
		peer_expect_from(s, &wr, PSN + 2, 1, NULL);
		ack(s, PSN + 3, 0, 2);
		rig_expect_cqe(s, USER_SEND, 0, SIM_STRIDE);
		assert_int_equal(sim_counter(s, 0, COUNTER_ack_msn_ahead), 2);
		rig_end(s);
	}
}

/* ---- C9-162, C9-163 ---- */

TEST(c9_163__a_limited_send_is_one_packet)
{
	for (unsigned i = 0; i < 3; i++)
		for (unsigned packets = 2; packets <= 4; packets++) {
			struct sim *s = make(0);
			struct sim_wr wr = peer_wr(consuming[i], packets * MTU);

			sim_post(s, 0, 0, &wr);
			expect_first_only(s, &wr, PSN);
			ack(s, PSN, 1, 0); /* a receive is there */
			peer_expect_from(s, &wr, PSN, 1, NULL);
			rig_no_cqe(s);
			ack(s, PSN + packets - 1, 0, 1);
			rig_expect_cqe(s, consuming[i], 0, 0);
			rig_end(s);
		}
}

/* The receive that the first packet took no longer counts as posted: the request
 * continues all the same, if need be with one packet for each acknowledgement. */
RIG_TEST(c9_163__it_continues_when_its_receive_was_the_last, make(0))
{
	struct sim_wr wr = peer_wr(USER_SEND, 4 * MTU);
	struct rig_packet got;
	uint32_t psn = PSN;

	sim_post(s, 0, 0, &wr);
	expect_first_only(s, &wr, PSN);
	while (psn != PSN + 3) {
		ack(s, psn, 0, 0);
		assert_true(rig_recv(s, &got, MS));
		do {
			assert_int_equal(got.h.psn, ++psn);
		} while (rig_recv(s, &got, 20 * US));
		assert_int_equal(got.h.ackreq, 1);
	}
	ack(s, psn, 0, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
}

TEST(c9_162__a_limited_write_with_immediate_goes_whole)
{
	for (unsigned packets = 1; packets <= 5; packets++) {
		struct sim *s = make(0);
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE_IMM, packets * MTU);
		struct sim_wr next = peer_wr(USER_RDMA_WRITE, 1);
		struct rig_packet last;

		peer_posts(s, &wr, &next);
		peer_expect(s, &wr, PSN, &last);
		assert_int_equal(last.h.ackreq, 1);
		rig_silent(s, MS);
		if (packets > 1) {
			ack(s, PSN, 0, 0); /* not all of it */
			rig_silent(s, MS);
		}
		ack(s, PSN + packets - 1, 0, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE_IMM, 0, 0);
		peer_expect(s, &next, PSN + packets, NULL);
		ack(s, PSN + packets, 0, 2);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, SIM_STRIDE);
		rig_end(s);
	}
}

/* Earlier requests may still be outstanding; their acknowledgement is not the
 * SEND's. */
RIG_TEST(c9_162__acknowledgements_of_what_is_before_it, make(0))
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 2 * MTU), snd = peer_wr(USER_SEND, 2 * MTU);

	peer_posts(s, &wr, &snd, &wr);
	peer_expect(s, &wr, PSN, NULL);
	expect_first_only(s, &snd, PSN + 2);
	ack(s, PSN, 0, 0);
	rig_silent(s, MS);
	ack(s, PSN + 1, 0, 1);
	rig_silent(s, MS);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	ack(s, PSN + 1, 1, 1); /* LSN 2: its own credit */
	peer_expect_from(s, &snd, PSN + 2, 1, NULL);
	peer_expect(s, &wr, PSN + 4, NULL);
	ack(s, PSN + 5, 0, 3);
	rig_expect_done(s, 1, USER_SEND, USER_RDMA_WRITE);
}

/* Credits of a message that is under way do not matter any more. */
RIG_TEST(c9_162__a_message_that_began_with_credit_ends, make(1))
{
	struct sim_wr wr = peer_wr(USER_SEND, 6 * MTU);

	sim_context(s, 0, 0)->rrc.proven = 0;
	wr.sge[0].length = 40 * MTU; /* stops for buffers midway */
	sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 16; i++)
		rig_expect(s, i ? WIRE_RC_SEND_MIDDLE : WIRE_RC_SEND_FIRST, PSN + i);
	rig_silent(s, 100 * US);
	ack(s, PSN + 15, 0, 0); /* its receive is taken, LSN 0 */
	peer_expect_from(s, &wr, PSN, 16, NULL);
	ack(s, PSN + 39, 0, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
}

/* ---- C9-144, C9-164 ---- */

RIG_TEST(c9_144__credits_of_duplicate_acknowledgements, make(0))
{
	struct sim_wr one = peer_wr(USER_SEND, 1), wr = peer_wr(USER_SEND, 2 * MTU);

	peer_sends(s, PSN, &one);
	ack(s, PSN, 0, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &wr);
	expect_first_only(s, &wr, PSN + 1);
	ack(s, PSN, 3, 1); /* the same PSN and MSN, and three credits */
	peer_expect_from(s, &wr, PSN + 1, 1, NULL);
	peer_expect_all(s, PSN + 3, &wr, &wr);
	rig_no_cqe(s);
	ack(s, PSN + 6, 0, 4);
	rig_expect_same(s, 1, 4, USER_SEND);
}

/* Nothing but credits is taken of an unsolicited acknowledgement, at any time.
 */
RIG_TEST(c9_164__always_ready_for_unsolicited_acknowledgements, make(1))
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
	struct qp *q = sim_context(s, 0, 0);
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 5; i++) {
		for (unsigned k = 0; k < 3; k++)
			ack(s, psn - 1, 1, i);
		rig_quiet(s, 100 * US);
		assert_int_equal(q->rrc.unacked_psn, psn);
		peer_sends(s, psn, &wr);
		ack(s, psn - 1, 1, i);
		rig_quiet(s, 100 * US);
		psn += 2;
		ack(s, psn - 1, 1, i + 1);
		rig_expect_cqe(s, USER_SEND, 0, i * SIM_STRIDE);
	}
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
}

/* A ghost that is not the initial one gives nothing. */
RIG_TEST(c9_136__ghosts_give_no_credits, make(0))
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);

	sim_post(s, 0, 0, &wr);
	expect_first_only(s, &wr, PSN);
	ack(s, PSN + 1, 10, 0);
	ack(s, PSN + 5, 10, 0);
	rig_silent(s, MS);
	ack(s, PSN, 1, 0);
	peer_expect_from(s, &wr, PSN, 1, NULL);
	ack(s, PSN + 1, 0, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
}

/* AETHs of read responses and atomic acknowledgements carry credits as well. */
static void aeth_of(uint8_t opcode, uint8_t request)
{
	struct sim *s = make(0);
	struct sim_wr rd = peer_wr(request, opcode == WIRE_RC_READ_RESP_FIRST ? 2 * MTU : 4);
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
	struct wire_headers h = rig_headers(s, 0, opcode, PSN, 0, 0);
	uint32_t next;

	peer_posts(s, &rd, &wr);
	next = peer_expect(s, &rd, PSN, NULL);
	expect_first_only(s, &wr, next);
	h.syndrome = 2;
	h.msn = 1;
	rig_send(s, h, NULL,
		 opcode == WIRE_RC_READ_RESP_FIRST ? MTU
		 : opcode == WIRE_RC_ATOMIC_ACK	   ? 0
						   : 4);
	peer_expect_from(s, &wr, next, 1, NULL);
	peer_nak(s, next, AETH_NAK_REMOTE_OPERATION, 1);
	if (opcode != WIRE_RC_READ_RESP_FIRST)
		rig_expect_cqe(s, request, 0, 0);
	else
		peer_nak(s, PSN + 1, AETH_NAK_REMOTE_OPERATION, 1);
	sim_run(s, 10 * US);
	while (sim_poll_cq(s, 0, &(struct cqe){0}))
		;
	while (rig_recv(s, &(struct rig_packet){0}, 10 * US))
		;
	rig_end(s);
}

TEST(c9_161__every_aeth_carries_credits)
{
	aeth_of(WIRE_RC_READ_RESP_FIRST, USER_RDMA_READ);
	aeth_of(WIRE_RC_READ_RESP_ONLY, USER_RDMA_READ);
	aeth_of(WIRE_RC_ATOMIC_ACK, USER_ATOMIC_CS);
}

/* The low bits of a NAK or an RNR NAK are no credits. */
RIG_TEST(c9_161__naks_carry_no_credits, make(0))
{
	struct sim_wr wr = peer_wr(USER_SEND, 3 * MTU);

	sim_post(s, 0, 0, &wr);
	expect_first_only(s, &wr, PSN);
	peer_rnr(s, PSN, 14, 5);
	rig_silent(s, MS);
	expect_first_only(s, &wr, PSN);
	rig_silent(s, MS);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 5);
	expect_first_only(s, &wr, PSN);
	ack(s, PSN, 1, 0);
	peer_expect_from(s, &wr, PSN, 1, NULL);
	ack(s, PSN + 2, 0, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
}

/* A limited SEND whose packet is lost is sent again by the timer, and counted as
 * usual. */
TEST_PEER_SILENT(c9_164__a_limited_send_is_repeated_without_credit, p.timeout = 8, p.retry_cnt = 3)
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
	struct rig_packet got;

	ack(s, PSN - 1, 0, 0);
	sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(rig_recv(s, &got, 5 * MS));
		assert_int_equal(got.h.opcode, WIRE_RC_SEND_FIRST);
		assert_int_equal(got.h.psn, PSN);
		assert_int_equal(got.h.ackreq, 1);
	}
	peer_expect_error(s, SYNDROME_RETRY_EXC, 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 4);
}

/* A request sent with credit is sent again even if there is none left. */
RIG_TEST(c9_164__retransmission_needs_no_credit, make(3))
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);

	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 3; i++)
		peer_expect(s, &wr, PSN + 2 * i, NULL);
	ack(s, PSN + 1, 0, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
	peer_expect_all(s, PSN + 2, &wr, &wr);
	ack(s, PSN + 5, 0, 3);
	rig_expect_done(s, 1, USER_SEND, USER_SEND);
}
