/* SPDX-License-Identifier: BSD-3-Clause */
/* NAKs: of each kind, at each place; retransmission; both retry counters (C9-120, C9-128, C9-130,
 * C9-132, C9-135, C9-137). */
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU, REQUESTS = 3, PACKETS = 2 };

/* How long after the retry with this number a NAK of the same is news, at least. */
#define PATIENCE(retry) (MS << (retry))

static struct sim_wr sent[REQUESTS];

/* Three requests of two packets each, all outstanding; with these retry counters. */
static struct sim *three(uint8_t retry_cnt, uint8_t rnr_retry)
{
	struct sim_params p = peer_params();
	struct sim *s;

	p.retry_cnt = retry_cnt;
	p.rnr_retry = rnr_retry;
	s = peer_create(&p);
	for (unsigned i = 0; i < REQUESTS; i++) {
		sent[i] = peer_wr(i == 1 ? USER_SEND_IMM : USER_RDMA_WRITE, MTU + 7 * i + 1);
		sent[i].sge[0].offset = i * 4096;
		sent[i].imm += i;
		sent[i].solicited = i == 1;
		sim_post(s, 0, 0, &sent[i]);
	}
	for (unsigned i = 0; i < REQUESTS; i++)
		peer_expect(s, &sent[i], PSN + i * PACKETS, NULL);
	return s;
}

/* Everything from packet `from` on is sent again, unchanged. */
static void expect_again(struct sim *s, unsigned from)
{
	for (unsigned i = from / PACKETS; i < REQUESTS; i++)
		peer_expect_from(s, &sent[i], PSN + i * PACKETS,
				 i == from / PACKETS ? from % PACKETS : 0, NULL);
}

static void expect_good(struct sim *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		rig_expect_cqe(s, sent[i].opcode, 0, i * SIM_STRIDE);
}

/* The peer acknowledges all; those from number `from` on had not completed. */
static void all_well(struct sim *s, unsigned from)
{
	peer_ack(s, PSN + REQUESTS * PACKETS - 1, REQUESTS);
	expect_good(s, from, REQUESTS);
}

/* ---- each kind at each place ---- */

TEST(c9_135__sequence_error_at_each_place)
{
	for (unsigned at = 0; at < REQUESTS * PACKETS; at++) {
		struct sim *s = three(7, 7);

		peer_nak(s, PSN + at, AETH_NAK_SEQUENCE, at / PACKETS);
		expect_again(s, at);
		rig_silent(s, MS);
		expect_good(s, 0, at / PACKETS); /* earlier requests are acknowledged */
		rig_no_cqe(s);
		all_well(s, at / PACKETS);
		assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 6 - at);
		rig_end(s);
	}
}

/* Behind what is refused, a request that is bad itself is flushed as the good ones are. */
static void fatal(uint8_t code, uint8_t syndrome)
{
	struct sim_wr worse = {.opcode = 0x1f};

	for (unsigned at = 0; at < REQUESTS * PACKETS; at++) {
		struct sim *s = three(7, 7);
		unsigned bad = at / PACKETS;

		sim_post(s, 0, 0, &worse);
		rig_silent(s, 10 * US);
		peer_nak(s, PSN + at, code, bad);
		expect_good(s, 0, bad);
		peer_expect_failed(s, syndrome, bad, REQUESTS + 1);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
		sim_post(s, 0, 0, &sent[0]);
		peer_expect_error(s, SYNDROME_WR_FLUSH, (REQUESTS + 1) * SIM_STRIDE);
		s->step_ns = 20 * US;
		/* neither a retransmission, nor the new one, nor a timer */
		rig_quiet(s, 300 * MS);
		rig_end(s);
	}
}

TEST(c9_135__fatal_errors_at_each_place)
{
	fatal(AETH_NAK_INVALID_REQUEST, SYNDROME_REMOTE_INVAL_REQ);
	fatal(AETH_NAK_REMOTE_ACCESS, SYNDROME_REMOTE_ACCESS);
	fatal(AETH_NAK_REMOTE_OPERATION, SYNDROME_REMOTE_OP);
}

TEST(c9_128__rnr_at_each_place_then_the_same_request)
{
	for (unsigned at = 0; at < REQUESTS * PACKETS; at++) {
		struct sim *s = three(7, 7);

		peer_rnr(s, PSN + at, 14, at / PACKETS); /* 1.28 ms */
		rig_silent(s, MS);
		expect_good(s, 0, at / PACKETS);
		rig_no_cqe(s);
		expect_again(s, at);
		rig_silent(s, MS);
		all_well(s, at / PACKETS);
		rig_end(s);
	}
}

/* Any kind of request may be answered so. */
TEST(c9_128__rnr_of_reads_and_atomics)
{
	static const uint8_t opcodes[] = {USER_RDMA_READ, USER_ATOMIC_CS, USER_ATOMIC_FA};

	for (unsigned i = 0; i < 3; i++) {
		struct sim *s = peer_make();
		struct sim_wr rd = peer_wr(opcodes[i], 2 * MTU), wr = peer_wr(USER_SEND, 1);
		uint32_t next;

		peer_posts(s, &rd, &wr);
		next = peer_expect(s, &rd, PSN, NULL);
		peer_expect(s, &wr, next, NULL);
		peer_rnr(s, PSN, 14, 0);
		rig_silent(s, MS);
		peer_expect_all(s, PSN, &rd, &wr);
		if (i)
			peer_atomic_response(s, PSN, 3, 1);
		else
			peer_read_responses(s, PSN, 2 * MTU, 0, 1, 1);
		peer_ack(s, next, 2);
		rig_expect_cqe(s, opcodes[i], 0, 0);
		rig_expect_cqe(s, USER_SEND, 0, SIM_STRIDE);
		rig_end(s);
	}
}

/* A NAK behind a READ without answer is first of all an implied NAK of the READ. */
TEST(c9_134__a_nak_behind_a_read)
{
	static const uint8_t syndromes[] = {0x60, 0x61, 0x62, 0x63};

	for (unsigned i = 0; i < sizeof(syndromes); i++) {
		struct sim *s = peer_make();
		struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU), wr = peer_wr(USER_SEND, 1);

		peer_sends(s, PSN, &wr, &rd, &wr);
		rig_ack(s, 0, PSN + 3, syndromes[i], 2);
		rig_expect_cqe(s, USER_SEND, 0, 0);
		peer_expect_all(s, PSN + 1, &rd, &wr);
		rig_no_cqe(s);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_RTS);
		peer_read_responses(s, PSN + 1, 2 * MTU, 0, 1, 2);
		rig_expect_cqe(s, USER_RDMA_READ, 0, SIM_STRIDE);
		peer_ack(s, PSN + 3, 3);
		rig_expect_cqe(s, USER_SEND, 0, 2 * SIM_STRIDE);
		rig_end(s);
	}
}

/* ---- what is reserved ---- */

static void dropped(struct sim *s, uint8_t syndrome)
{
	struct qp *q = sim_context(s, 0, 0);

	for (unsigned at = 0; at < REQUESTS * PACKETS; at++)
		rig_ack(s, 0, PSN + at, syndrome, 1);
	rig_quiet(s, 700 * US);
	assert_int_equal(qp_state(q), QP_RTS);
	assert_int_equal(q->rrc.unacked_psn, PSN);
	assert_int_equal(q->rrc.retry_left, 7);
	assert_int_equal(q->rrc.rnr_waiting, 0);
}

RIG_TEST(c9_120__reserved_nak_codes_are_dropped, three(7, 7))
{
	for (unsigned code = 5; code < 32; code++)
		dropped(s, 0x60 | code);
	dropped(s, 0x64); /* invalid RD request: not on a reliable connection */
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_ack_syndrome), 28 * 6);
	all_well(s, 0);
}

RIG_TEST(c9_135__reserved_syndromes_are_dropped, three(7, 7))
{
	for (unsigned i = 0; i < 32; i += 5) {
		dropped(s, 0x40 | i); /* bits 6:5 = 10: reserved */
		dropped(s, 0x80 | i); /* the top bit is reserved, whatever the rest says */
		dropped(s, 0xa0 | i);
		dropped(s, 0xe0 | i);
	}
	all_well(s, 0);
}

/* ---- C9-132: the RNR counter ---- */

TEST(c9_132__the_rnr_counter_ends_it)
{
	for (uint8_t most = 0; most < 7; most++) {
		struct sim *s = three(7, most);

		for (unsigned i = 0; i < most; i++) {
			peer_rnr(s, PSN + 3, 1, 1);
			expect_again(s, 3);
		}
		peer_rnr(s, PSN + 3, 1, 1);
		rig_expect_cqe(s, sent[0].opcode, 0, 0);
		peer_expect_failed(s, SYNDROME_RNR_RETRY_EXC, 1, 3);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
		assert_int_equal(sim_counter(s, 0, COUNTER_rnr_retry_exceeded), 1);
		rig_silent(s, 10 * MS);
		rig_end(s);
	}
}

RIG_TEST(c9_132__of_7_is_for_ever, three(7, 7))
{
	for (unsigned i = 0; i < 40; i++) {
		peer_rnr(s, PSN, 1, 0);
		expect_again(s, 0);
	}
	all_well(s, 0);
}

RIG_TEST(c9_132__it_is_loaded_again_when_a_request_clears, three(7, 2))
{
	for (unsigned request = 0; request < REQUESTS; request++)
		for (unsigned i = 0; i < 2; i++) {
			peer_rnr(s, PSN + PACKETS * request, 1, request);
			expect_again(s, PACKETS * request);
		}
	expect_good(s, 0, 2);
	peer_rnr(s, PSN + 4, 1, 2);
	peer_expect_error(s, SYNDROME_RNR_RETRY_EXC, 2 * SIM_STRIDE);
}

/* The two counters are not one. */
RIG_TEST(c9_132__timeouts_do_not_count, three(2, 2))
{
	for (unsigned i = 0; i < 2; i++) {
		peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
		expect_again(s, 0);
		rig_silent(s, MS);
		peer_rnr(s, PSN, 1, 0);
		expect_again(s, 0);
	}
	all_well(s, 0);
}

/* The rest of an RNR NAKed message draws sequence errors: they change nothing. */
RIG_TEST(c9_130__sequence_errors_do_not_shorten_the_wait, three(7, 7))
{
	peer_rnr(s, PSN + 2, 18, 1); /* 5.12 ms */
	peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
	rig_silent(s, 5 * MS);
	rig_expect_cqe(s, sent[0].opcode, 0, 0);
	expect_again(s, 2);
	assert_int_equal(sim_context(s, 0, 0)->rrc.retry_left, 7);
	all_well(s, 1);
}

/* ---- C9-137: the retry counter ---- */

TEST(c9_137__sequence_errors_count_down)
{
	for (uint8_t most = 0; most <= 7; most++) {
		struct sim *s = three(most, 7);

		for (unsigned i = 0; i < most; i++) {
			peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
			expect_again(s, 2);
			rig_silent(s, PATIENCE(i));
		}
		peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
		rig_expect_cqe(s, sent[0].opcode, 0, 0);
		peer_expect_failed(s, SYNDROME_RETRY_EXC, 1, 3);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
		assert_int_equal(sim_counter(s, 0, COUNTER_retry_exceeded), 1);
		s->step_ns = 20 * US;
		rig_silent(s, 300 * MS);
		rig_end(s);
	}
}

RIG_TEST(c9_137__reloaded_whenever_a_request_clears, three(1, 7))
{
	for (unsigned request = 0; request < REQUESTS; request++) {
		peer_nak(s, PSN + PACKETS * request, AETH_NAK_SEQUENCE, request);
		expect_again(s, PACKETS * request);
		rig_silent(s, MS);
	}
	expect_good(s, 0, 2);
	peer_nak(s, PSN + 4, AETH_NAK_SEQUENCE, 2);
	peer_expect_error(s, SYNDROME_RETRY_EXC, 2 * SIM_STRIDE);
}

/* One counter for both: a timeout uses up what a NAK left. */
RIG_TEST(c9_137__naks_and_timeouts_share_the_counter, three(2, 7))
{
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	expect_again(s, 0);
	sim_run(s, 67 * MS);
	expect_again(s, 0);
	rig_silent(s, MS);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	peer_expect_failed(s, SYNDROME_RETRY_EXC, 0, 3);
}

/* Implied NAKs are retries as well. */
TEST_PEER_WITH(c9_137__implied_naks_count_down, p.retry_cnt = 2)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 1), wr = peer_wr(USER_RDMA_WRITE, 1);

	peer_posts(s, &rd, &wr);
	for (unsigned i = 0; i < 3; i++) {
		peer_expect_all(s, PSN, &rd, &wr);
		rig_quiet(s, PATIENCE(i));
		peer_ack(s, PSN + 1, 2);
	}
	peer_expect_failed(s, SYNDROME_RETRY_EXC, 0, 2);
}

/* A slow peer: for a long time it acknowledges one by one what it had received before the repeated
 * READ, and none of these acknowledgements concerns the second READ. */
TEST(c9_137__a_slow_peer_is_no_lost_one)
{
	struct sim_params p = peer_params();
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 1), wr = peer_wr(USER_RDMA_WRITE, 1);
	struct sim *s = peer_create(&p);
	struct rig_packet again;

	peer_sends(s, PSN, &rd, &wr);
	for (unsigned i = 0; i < 50; i++) {
		sim_run(s, 600 * US);
		peer_ack(s, PSN + 1, 2);
	}
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_RTS);
	assert_true(sim_context(s, 0, 0)->rrc.retry_left > 0);
	while (rig_recv(s, &again, MS))
		;
	peer_read_responses(s, PSN, 1, 0, 0, 1);
	peer_ack(s, PSN + 1, 2);
	rig_expect_done(s, 0, USER_RDMA_READ, USER_RDMA_WRITE);
	rig_end(s);
}

/* A slow peer that was asked for much: a response is lost, and the others come one by one, in no order if the network likes, for
 * longer than all tries would take. None of them shows that the repeated request was in vain; one that comes again does. */
static void responses_on_their_way(unsigned stride)
{
	enum { RESPONSES = 61 };
	struct sim_params p = peer_params();
	struct sim_wr rd = peer_wr(USER_RDMA_READ, RESPONSES * MTU);
	struct sim *s = peer_create(&p);
	struct qp *q = sim_context(s, 0, 0);
	struct rig_packet again;
	uint32_t index = 0;

	peer_sends(s, PSN, &rd);
	for (unsigned i = 1; i < RESPONSES; i++) {
		index = i * stride % RESPONSES;
		peer_read_responses(s, PSN, RESPONSES * MTU, index, index, 1);
		sim_run(s, MS);
	}
	assert_int_equal(q->rrc.retry_left, p.retry_cnt - 1);
	while (rig_recv(s, &again, MS))
		;
	peer_read_responses(s, PSN, RESPONSES * MTU, 1, 1, 1);
	assert_true(rig_recv(s, &again, MS));
	assert_int_equal(q->rrc.retry_left, p.retry_cnt - 2);
	peer_read_responses(s, PSN, RESPONSES * MTU, 0, RESPONSES - 1, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	rig_end(s);
}

TEST(c9_137__responses_on_their_way_are_no_loss)
{
	static const unsigned strides[] = {1, 7, 40, 60}; /* RESPONSES is a prime */

	for (unsigned i = 0; i < RTE_DIM(strides); i++)
		responses_on_their_way(strides[i]);
}

/* Duplicates on their way draw the same NAK again: each round of packets is sent once. */
RIG_TEST(c9_137__one_loss_is_one_retry, three(1, 7))
{
	peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
	expect_again(s, 2);
	peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
	rig_silent(s, 100 * US);
	peer_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 1);
	rig_silent(s, 100 * US);
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_RTS);
	peer_nak(s, PSN + 4, AETH_NAK_SEQUENCE, 2); /* another place is another loss, at once */
	expect_again(s, 4);
	all_well(s, 0);
}

/* ---- many packets: more than one turn of everything ---- */

/* After a loss the window is halved: that many packets are sent again, up to one that requests an
 * acknowledgement; when that arrives, more follow. */
TEST_PEER(retransmission__of_more_than_a_burst)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 150 * MTU), late = peer_wr(USER_SEND, 1);
	struct rig_packet got = {0};
	uint32_t psn = PSN + 3, from;

	peer_sends(s, PSN, &wr);
	peer_nak(s, PSN + 3, AETH_NAK_SEQUENCE, 0);
	sim_run(s, 2 * US);
	sim_post(s, 0, 0, &late); /* in order behind it */
	while (psn != PSN + 151) {
		for (from = psn; rig_recv(s, &got, 20 * US); psn++)
			assert_int_equal(got.h.psn, psn);
		assert_int_equal(got.h.ackreq, 1);
		assert_in_range(psn - from, 1, 147 / 2 + 16);
		peer_ack(s, psn - 1, (psn >= PSN + 150) + (psn == PSN + 151));
	}
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_SEND);
}

/* Packets that are acknowledged during the retransmission are neither sent again nor lost. */
TEST(retransmission__overtaken_by_its_acknowledgement)
{
	for (unsigned delay = 0; delay < 5; delay++) {
		struct sim *s = peer_make();
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 200 * MTU),
			      late = peer_wr(USER_SEND, 1);
		struct rig_packet got;

		peer_sends(s, PSN, &wr);
		peer_nak(s, PSN + 3, AETH_NAK_SEQUENCE, 0);
		sim_run(s, delay * US);
		peer_ack(s, PSN + 199, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		while (rig_recv(s, &got, 100 * US))
			assert_true(psn_in(got.h.psn, PSN + 3, 197));
		peer_sends(s, PSN + 200, &late);
		peer_ack(s, PSN + 200, 2);
		rig_expect_cqe(s, USER_SEND, 0, SIM_STRIDE);
		rig_end(s);
	}
}

/* The first part of a message fails: it completes once, though the rest was never sent. */
TEST(c9_135__a_message_that_is_not_all_sent_completes_once)
{
	static const uint8_t codes[] = {AETH_NAK_REMOTE_ACCESS, AETH_NAK_INVALID_REQUEST};

	for (unsigned i = 0; i < 2; i++) {
		struct sim *s = peer_make();
		struct rig_packet got;

		sim_context(s, 0, 0)->rrc.proven = 0; /* it stops after some packets */
		peer_post(s, USER_RDMA_WRITE, 100 * MTU);
		peer_post(s, USER_RDMA_WRITE, 1);
		while (rig_recv(s, &got, 20 * US))
			;
		assert_true(psn_before(got.h.psn, PSN + 99));
		peer_nak(s, PSN + i, codes[i], 0);
		peer_expect_error(s, i ? SYNDROME_REMOTE_INVAL_REQ : SYNDROME_REMOTE_ACCESS, 0);
		peer_expect_error(s, SYNDROME_WR_FLUSH, SIM_STRIDE);
		rig_quiet(s, MS);
		rig_end(s);
	}
}

/* Errors and flushed requests complete although they were unsignalled. */
TEST_PEER(c9_135__unsignaled_requests_fail_aloud)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1), rd = peer_wr(USER_RDMA_READ, 1);

	wr.unsignaled = rd.unsignaled = true;
	peer_posts(s, &wr, &wr, &rd, &wr);
	for (unsigned i = 0; i < 4; i++)
		rig_expect(s, i == 2 ? WIRE_RC_READ_REQUEST : WIRE_RC_WRITE_ONLY, PSN + i);
	peer_nak(s, PSN + 1, AETH_NAK_REMOTE_ACCESS, 1);
	peer_expect_failed(s, SYNDROME_REMOTE_ACCESS, 1, 4);
	rig_no_cqe(s);
}

/* Posted while it waits: it comes behind what is outstanding, never in its place. */
RIG_TEST(c9_128__nothing_new_under_an_old_psn, three(7, 7))
{
	struct sim_wr late = peer_wr(USER_RDMA_WRITE, 3);

	peer_rnr(s, PSN + 2, 14, 1);
	sim_run(s, 100 * US);
	sim_post(s, 0, 0, &late);
	rig_silent(s, MS);
	expect_again(s, 2);
	peer_expect(s, &late, PSN + 6, NULL);
	rig_silent(s, MS);
	peer_ack(s, PSN + 6, 4);
	expect_good(s, 0, 3);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 3 * SIM_STRIDE);
}

/* The same with an RNR NAK: the READ is requested again, now or later, but the refused request
 * waits its time. */
TEST_PEER(c9_130__rnr_behind_an_unanswered_read)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU), wr = peer_wr(USER_SEND, 1);
	struct rig_packet got;
	bool again = false;
	uint64_t start;

	peer_sends(s, PSN, &rd, &wr);
	peer_rnr(s, PSN + 2, 14, 1);
	start = s->now_ns;
	while (rig_recv(s, &got, 20 * MS)) {
		again = again || got.h.opcode == WIRE_RC_READ_REQUEST;
		if (got.h.opcode == WIRE_RC_SEND_ONLY && s->now_ns - start < 1280 * US)
			fail_msg("sent again after %lu ns", s->now_ns - start);
	}
	assert_true(again);
	peer_read_responses(s, PSN, 2 * MTU, 0, 1, 1);
	peer_ack(s, PSN + 2, 2);
	rig_expect_done(s, 0, USER_RDMA_READ, USER_SEND);
}
