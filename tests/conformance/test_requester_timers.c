/* SPDX-License-Identifier: BSD-3-Clause */
/* The Loss timer and the RNR timer, in virtual time (C9-130, C9-139 to C9-143). */
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU };

/* Ttr of a local ACK timeout, C9-140; written out again on purpose. */
static uint64_t ttr_ns(uint8_t timeout)
{
	return 4096ull << timeout;
}

static struct sim *make(uint8_t timeout, uint8_t retry_cnt)
{
	struct sim_params p = peer_params();

	p.timeout = timeout;
	p.retry_cnt = retry_cnt;
	return peer_create(&p);
}

/* Waits coarsely until the next packet leaves. Returns how long that took, at most `most`. */
static uint64_t wait_packet(struct sim *s, struct rig_packet *got, uint64_t most, uint64_t step)
{
	uint64_t start = s->now_ns, normal = s->step_ns;
	bool came;

	s->step_ns = step > normal ? step : normal;
	came = rig_recv(s, got, most);
	s->step_ns = normal;
	if (!came)
		fail_msg("nothing came within %lu ns", most);
	return s->now_ns - start;
}

/* Nothing leaves for that long. */
static void wait_silent(struct sim *s, uint64_t ns, uint64_t step)
{
	uint64_t normal = s->step_ns;

	s->step_ns = step > normal ? step : normal;
	rig_silent(s, ns);
	s->step_ns = normal;
}

static void assert_detected(uint8_t timeout, uint64_t after)
{
	if (after < ttr_ns(timeout) || after > 4 * ttr_ns(timeout))
		fail_msg("timeout %u: detected after %lu ns, Ttr is %lu", timeout, after,
			 ttr_ns(timeout));
}

/* ---- C9-139 to C9-141 ---- */

/* Every timeout but the shortest, of which a part of a tick is more than 4 Ttr. */
TEST(c9_141__loss_is_detected_between_1_and_4_ttr)
{
	static const uint8_t timeouts[] = {2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 24, 28, 31};

	for (unsigned i = 0; i < sizeof(timeouts); i++) {
		uint64_t ttr = ttr_ns(timeouts[i]), step = ttr / 64;
		struct sim *s = make(timeouts[i], 3);
		struct rig_packet got;

		peer_post(s, USER_RDMA_WRITE, MTU);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
		for (unsigned k = 0; k < 3; k++) {
			assert_detected(timeouts[i], wait_packet(s, &got, 5 * ttr, step));
			assert_int_equal(got.h.opcode, WIRE_RC_WRITE_ONLY);
			assert_int_equal(got.h.psn, PSN);
			assert_int_equal(got.h.ackreq, 1);
		}
		peer_ack(s, PSN, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		wait_silent(s, 20 * ttr, step);
		rig_end(s);
	}
}

/* The same with a round trip measured, when probes send again long before: they are not the
 * timer, which counts the retries, and do not put it off. */
TEST(c9_141__between_1_and_4_ttr_with_a_measured_round_trip)
{
	static const uint8_t timeouts[] = {8, 10, 14, 17};

	for (unsigned i = 0; i < sizeof(timeouts); i++) {
		uint64_t ttr = ttr_ns(timeouts[i]), start;
		struct sim *s = make(timeouts[i], 7);
		struct rig_packet got;

		for (uint32_t k = 0; k < 5; k++) { /* the last one goes without an answer */
			peer_post(s, USER_RDMA_WRITE, MTU);
			rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + k);
			if (k == 0)
				continue;
			peer_ack(s, PSN + k - 1, k);
			rig_expect_cqe(s, USER_RDMA_WRITE, 0, (k - 1) * SIM_STRIDE);
		}
		assert_true(sim_context(s, 0, 0)->rrc.srtt_ns > 0);
		for (uint32_t k = 1; k <= 3; k++) {
			start = s->now_ns;
			while (sim_counter(s, 0, COUNTER_loss_timeouts) < k)
				if (rig_recv(s, &got, ttr / 64))
					assert_int_equal(got.h.psn, PSN + 4);
			assert_detected(timeouts[i], s->now_ns - start);
			assert_int_equal(sim_context(s, 0, 0)->rrc.retry_left, 7 - k);
		}
		assert_true(sim_counter(s, 0, COUNTER_loss_probes) > 0);
		peer_ack(s, PSN + 4, 5);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 4 * SIM_STRIDE);
		rig_end(s);
	}
}

/* A NAK that comes shortly before it expires starts it again with what is sent again. */
RIG_TEST(c9_141__starts_again_with_each_retry, make(14, 7))
{
	uint64_t ttr = ttr_ns(14), step = ttr / 64;
	struct rig_packet got;

	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	wait_silent(s, ttr - ttr / 8, step);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	assert_detected(14, wait_packet(s, &got, 5 * ttr, step));
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

RIG_TEST(c9_140__timeout_0_is_off, make(0, 0))
{
	peer_post(s, USER_RDMA_WRITE, MTU);
	peer_post(s, USER_RDMA_READ, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 1);
	wait_silent(s, 40000000 * MS, 20000 * MS); /* more than 4 times the longest */
	rig_no_cqe(s);
	peer_ack(s, PSN, 1);
	peer_read_responses(s, PSN + 1, MTU, 0, 0, 2);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_RDMA_READ);
}

/* Each kind of request starts it. */
TEST(c9_139__every_kind_of_request_is_timed)
{
	static const uint8_t opcodes[] = {USER_SEND,	   USER_SEND_IMM,	USER_SEND_INV,
					  USER_RDMA_WRITE, USER_RDMA_WRITE_IMM, USER_RDMA_READ,
					  USER_ATOMIC_CS,  USER_ATOMIC_FA};

	for (unsigned i = 0; i < 8; i++) {
		struct sim *s = make(8, 7);
		struct sim_wr wr = peer_wr(opcodes[i], 2 * MTU);
		struct rig_packet got;

		peer_sends(s, PSN, &wr);
		assert_detected(8, wait_packet(s, &got, 5 * ttr_ns(8), 0));
		assert_int_equal(got.h.psn, PSN);
		if (!(sim_traits[opcodes[i]] & USER_SCATTERS))
			peer_expect_from(s, &wr, PSN, 1, NULL);
		peer_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
		peer_expect_error(s, SYNDROME_REMOTE_OP, 0);
		rig_end(s);
	}
}

/* Everything from the oldest on is sent again, in order, what is acknowledged is not. */
RIG_TEST(c9_139__the_oldest_and_all_behind_it_again, make(8, 7))
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 2 * MTU), rd = peer_wr(USER_RDMA_READ, 2 * MTU);
	struct rig_packet got;

	peer_sends(s, PSN, &wr, &rd, &wr);
	peer_ack(s, PSN, 0);
	sim_run(s, 2 * US);
	assert_detected(8, wait_packet(s, &got, 5 * ttr_ns(8), 0));
	assert_int_equal(got.h.opcode, WIRE_RC_WRITE_LAST);
	assert_int_equal(got.h.psn, PSN + 1);
	peer_expect_all(s, PSN + 2, &rd, &wr);
	rig_silent(s, ttr_ns(8) / 2);
	peer_read_responses(s, PSN + 2, 2 * MTU, 0, 1, 2);
	peer_ack(s, PSN + 5, 3);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_RDMA_READ, USER_RDMA_WRITE);
}

/* Every packet buffer waits for an acknowledgement, or is needed to answer one, and so no frames
 * are taken from the port: unacknowledged requests fail all the same, and everything continues. */
enum { QPS = 6, READS = 128 };

TEST_PEER_WITH(c9_139__expires_while_the_port_is_not_looked_at, p.timeout = 12, p.retry_cnt = 1,
	       p.qps = QPS, p.max_rd_atomic = READS, p.packets = 1100)
{
	struct rig_packet got;
	uint32_t wqe, n = 0;

	wqe = peer_post(s, USER_RDMA_WRITE, 600 * MTU);
	while (rig_recv(s, &got, 10 * US))
		;
	for (; rte_mempool_avail_count(s->packets); n++)
		rig_request(s, 1 + n / READS, WIRE_RC_FETCH_ADD, PSN + n % READS, 0, 8, 0);
	peer_expect_error(s, SYNDROME_RETRY_EXC, wqe);
	sim_run(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_executed), n);
	for (unsigned i = 0; i < QPS; i++)
		rig_reconnect(s, i);
}

RIG_TEST(c9_139__an_acknowledgement_restarts_it, make(8, 7))
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 10 * MTU);
	struct rig_packet got;
	uint64_t after;

	peer_sends(s, PSN, &wr);
	for (unsigned i = 0; i < 9; i++) {
		rig_silent(s, ttr_ns(8) * 3 / 4);
		peer_ack(s, PSN + i, 0);
	}
	sim_run(s, 2 * US);
	after = wait_packet(s, &got, 5 * ttr_ns(8), 0);
	assert_detected(8, after + 2 * US);
	assert_int_equal(got.h.psn, PSN + 9);
	peer_ack(s, PSN + 9, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

RIG_TEST(c9_139__read_responses_restart_it, make(8, 7))
{
	peer_post(s, USER_RDMA_READ, 10 * MTU);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	for (unsigned i = 0; i < 10; i++) {
		rig_silent(s, ttr_ns(8) * 3 / 4);
		peer_read_responses(s, PSN, 10 * MTU, i, i, 1);
	}
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
}

/* It rests while nothing is outstanding: a request posted at any time afterwards has its full
 * time. */
TEST(c9_139__a_request_has_its_full_time)
{
	for (unsigned i = 1; i <= 12; i++) {
		struct sim *s = make(8, 7);
		struct rig_packet got;

		peer_post(s, USER_RDMA_WRITE, 1);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
		peer_ack(s, PSN, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		rig_silent(s, ttr_ns(8) * i / 8);
		peer_post(s, USER_RDMA_WRITE, 1);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 1);
		assert_detected(8, wait_packet(s, &got, 5 * ttr_ns(8), 0));
		assert_int_equal(got.h.psn, PSN + 1);
		peer_ack(s, PSN + 1, 2);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, SIM_STRIDE);
		rig_end(s);
	}
}

/* Later requests do not delay it. */
RIG_TEST(c9_139__new_requests_do_not_postpone_it, make(8, 7))
{
	struct rig_packet got;
	uint64_t start = 0;
	unsigned sent = 0;

	for (;;) {
		peer_post(s, USER_RDMA_WRITE, 1);
		rig_recv(s, &got, MS);
		if (sent && got.h.psn == PSN)
			break; /* the first one again, in place of the new one */
		assert_int_equal(got.h.psn, PSN + sent);
		if (!sent++)
			start = s->now_ns;
		if (rig_recv(s, &got, ttr_ns(8) / 4))
			break;
		assert_true(sent < 17);
	}
	assert_int_equal(got.h.psn, PSN);
	assert_detected(8, s->now_ns - start);
	while (rig_recv(s, &got, 20 * US))
		;
	peer_ack(s, got.h.psn, sent);
	sim_run(s, 10 * US);
	while (sim_poll_cq(s, 0, &(struct cqe){0}))
		sent--;
	assert_true(sent == 0 || sent == -1u);
}

/* One timer for each send queue: those of other queue pairs continue. */
TEST_PEER_WITH(c9_139__each_send_queue_has_its_own, p.timeout = 8, p.qps = 4)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 1);
	struct rig_packet got;
	uint64_t start[4];

	for (unsigned q = 0; q < 4; q++) {
		sim_post(s, 0, q, &wr);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
		start[q] = s->now_ns;
		rig_silent(s, ttr_ns(8) / 8);
	}
	rig_ack(s, 2, PSN, 0x1f, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	for (unsigned q = 0; q < 4; q++) {
		if (q == 2)
			continue;
		wait_packet(s, &got, 5 * ttr_ns(8), 0);
		assert_int_equal(got.h.dest_qp, s->node[1].qp[q].qpn);
		assert_detected(8, s->now_ns - start[q]);
	}
	for (unsigned q = 0; q < 4; q++)
		rig_ack(s, q, PSN, 0x1f, 1);
	for (unsigned q = 0; q < 3; q++)
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* ---- C9-142, C9-143 ---- */

TEST(c9_143__as_many_times_as_the_counter_says)
{
	for (uint8_t most = 0; most <= 7; most++) {
		struct sim *s = make(8, most);
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 2 * MTU);
		uint64_t start;
		struct cqe c;

		for (unsigned i = 0; i < 3; i++)
			sim_post(s, 0, 0, &wr);
		for (unsigned i = 0; i <= most; i++)
			for (unsigned k = 0; k < 3; k++)
				for (unsigned n = 0; n < 2; n++) {
					struct rig_packet got;

					assert_true(rig_recv(s, &got, 4 * ttr_ns(8)));
					assert_int_equal(got.h.psn, PSN + 2 * k + n);
				}
		start = s->now_ns;
		rig_quiet(s, ttr_ns(8) - 10 * US);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_RTS);
		assert_true(sim_wait(s, 0, &c, 5 * ttr_ns(8)));
		assert_detected(8, s->now_ns - start);
		assert_int_equal(c.imm_or_error & 0xff, SYNDROME_RETRY_EXC);
		assert_int_equal(c.opcode, USER_INVALID);
		assert_int_equal(c.wqe_offset, 0);
		for (unsigned i = 1; i < 3; i++)
			peer_expect_error(s, SYNDROME_WR_FLUSH, i * SIM_STRIDE);
		assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
		assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), most + 1);
		sim_post(s, 0, 0, &wr);
		peer_expect_error(s, SYNDROME_WR_FLUSH, 3 * SIM_STRIDE);
		rig_quiet(s, 20 * ttr_ns(8));
		rig_end(s);
	}
}

RIG_TEST(c9_142__reloaded_when_a_request_clears, make(8, 2))
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, MTU);
	struct rig_packet got;

	for (unsigned i = 0; i < 4; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned round = 0; round < 3; round++)
			for (unsigned k = i; k < 4; k++) {
				if (i && !round)
					continue;
				assert_true(rig_recv(s, &got, 4 * ttr_ns(8)));
				assert_int_equal(got.h.psn, PSN + k);
			}
		if (i < 3) {
			peer_ack(s, PSN + i, i + 1);
			rig_expect_cqe(s, USER_RDMA_WRITE, 0, i * SIM_STRIDE);
		}
	}
	peer_expect_error(s, SYNDROME_RETRY_EXC, 3 * SIM_STRIDE);
}

/* A READ that moves on has not failed, however often a part of it is lost. */
RIG_TEST(c9_142__reloaded_by_each_read_response, make(8, 1))
{
	struct rig_packet got;

	peer_post(s, USER_RDMA_READ, 6 * MTU);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	for (unsigned i = 0; i < 6; i++) {
		assert_detected(8, wait_packet(s, &got, 5 * ttr_ns(8), 0));
		assert_int_equal(got.h.psn, PSN + i);
		peer_read_responses(s, PSN, 6 * MTU, i, i, 1);
		sim_run(s, 2 * US);
	}
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
}

/* Duplicates and ghosts are no progress. */
RIG_TEST(c9_142__not_reloaded_by_duplicates, make(8, 2))
{
	struct rig_packet got;

	for (unsigned i = 0; i < 3; i++) {
		if (!i)
			peer_post(s, USER_RDMA_WRITE, MTU);
		assert_true(rig_recv(s, &got, 4 * ttr_ns(8)));
		peer_ack(s, PSN - 1, 0);
		peer_ack(s, PSN + 1, 1);
	}
	peer_expect_error(s, SYNDROME_RETRY_EXC, 0);
}

/* Retry counters of a queue pair that was idle are full. */
RIG_TEST(c9_142__reloaded_by_the_last_acknowledgement, make(8, 1))
{
	struct rig_packet got;

	for (unsigned i = 0; i < 4; i++) {
		peer_post(s, USER_RDMA_WRITE, MTU);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
		assert_detected(8, wait_packet(s, &got, 5 * ttr_ns(8), 0));
		peer_ack(s, PSN + i, i + 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, i * SIM_STRIDE);
	}
}

/* An answer in time ends everything, whatever has been sent again by then. */
RIG_TEST(c9_142__a_late_answer_counts, make(8, 7))
{
	struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
	struct rig_packet got;

	peer_sends(s, PSN, &wr);
	wait_packet(s, &got, 5 * ttr_ns(8), 0);
	peer_ack(s, PSN + 1, 1); /* of the first time */
	rig_expect_cqe(s, USER_SEND, 0, 0);
	peer_ack(s, PSN + 1, 1); /* of the second */
	while (rig_recv(s, &got, 10 * US))
		;
	rig_quiet(s, 20 * ttr_ns(8));
}

/* ---- C9-130: the RNR timer ---- */

/* Table 50, in 10 µs; code 0 is the longest. */
static const uint32_t rnr_table[32] = {65536, 1,    2,	  3,	 4,	6,     8,     12,
				       16,    24,   32,	  48,	 64,	96,    128,   192,
				       256,   384,  512,  768,	 1024,	1536,  2048,  3072,
				       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

TEST(c9_130__it_waits_at_least_that_long)
{
	for (uint8_t code = 0; code < 32; code++) {
		uint64_t wait = rnr_table[code] * 10 * US, start, after;
		struct sim *s = make(14, 7);
		struct sim_wr wr = peer_wr(USER_SEND, 2 * MTU);
		struct rig_packet got;

		peer_sends(s, PSN, &wr);
		peer_rnr(s, PSN, code, 0);
		start = s->now_ns;
		wait_packet(s, &got, 2 * wait + MS, wait / 500);
		after = s->now_ns - start;
		if (after < wait || after > wait + wait / 10 + 50 * US)
			fail_msg("code %u: waited %lu ns", code, after);
		assert_int_equal(got.h.psn, PSN);
		peer_expect_from(s, &wr, PSN, 1, NULL);
		peer_ack(s, PSN + 1, 1);
		rig_expect_cqe(s, USER_SEND, 0, 0);
		rig_end(s);
	}
}

/* The Loss timer does not interfere: nothing is sent, nothing is counted. */
TEST(c9_130__the_loss_timer_does_not_shorten_it)
{
	struct sim *s = make(4, 1); /* Ttr 65 µs */
	struct rig_packet got;

	peer_post(s, USER_SEND, 1);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN);
	peer_rnr(s, PSN, 20, 0); /* 10.24 ms */
	rig_silent(s, 10240 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN);
	assert_detected(4, wait_packet(s, &got, 5 * ttr_ns(4), 0)); /* and then it runs again */
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	rig_end(s);
}

/* A second RNR NAK begins a new wait. */
RIG_TEST(c9_130__each_nak_has_its_own_time, make(14, 7))
{
	struct rig_packet got;
	uint64_t after;

	peer_post(s, USER_SEND, 1);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN);
	for (uint8_t code = 10; code < 20; code += 3) {
		peer_rnr(s, PSN, code, 0);
		after = wait_packet(s, &got, 20 * MS, 0);
		assert_true(after >= rnr_table[code] * 10 * US);
		assert_true(after <= rnr_table[code] * 11 * US + 50 * US);
	}
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
}

/* The queue pair fails while its RNR timer runs: nothing is sent afterwards. */
RIG_TEST(c9_130__nothing_after_an_error, make(8, 7))
{
	peer_post(s, USER_SEND, 1);
	peer_post(s, USER_SEND, 1);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN + 1);
	peer_rnr(s, PSN, 20, 0);
	sim_run(s, 100 * US);
	peer_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
	peer_expect_failed(s, SYNDROME_REMOTE_OP, 0, 2);
	rig_quiet(s, 50 * MS);
}

/* ---- others have the CPU ---- */

/* A quarter of the time is ours, until the next packet leaves. Returns how long that took. */
static uint64_t wait_interrupted(struct sim *s, struct rig_packet *got)
{
	uint64_t start = s->now_ns;

	s->step_ns = 20 * US;
	while (!rig_recv(s, got, 4 * MS))
		sim_steal(s, 12 * MS);
	s->step_ns = 1 * US;
	return s->now_ns - start;
}

/* Timers follow real time, whoever has the CPU. */
TEST(c9_139__on_time_on_a_busy_machine)
{
	struct sim *s = make(18, 7); /* 1.07 s */
	struct rig_packet got;

	peer_post(s, USER_SEND, 1);
	rig_expect(s, WIRE_RC_SEND_ONLY, PSN);
	assert_in_range(wait_interrupted(s, &got), ttr_ns(18), ttr_ns(18) + 13 * MS);
	peer_rnr(s, PSN, 24, 0); /* 40.96 ms */
	assert_in_range(wait_interrupted(s, &got), 40960 * US, 54 * MS);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_SEND, 0, 0);
	rig_end(s);
}

/* The answers came while others had the CPU: they are looked at before any timer expires, however
 * many lie before one. */
enum { BEFORE = 100, TIMEOUT = 8 };

TEST_PEER_WITH(c9_139__answers_that_lie_there_come_first, p.timeout = TIMEOUT, p.qps = 2)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, 1, .remote = 1 << 20);
	struct rig_packet got;

	for (unsigned i = 0; i < BEFORE; i++)
		sim_post(s, 0, 0, &wr);
	sim_post(s, 0, 1, &wr);
	for (unsigned i = 0; i <= BEFORE; i++)
		assert_true(rig_recv(s, &got, MS));
	for (unsigned i = 0; i < BEFORE; i++)
		rig_ack(s, 0, PSN + i, aeth_ack(31), i + 1);
	rig_ack(s, 1, PSN, aeth_ack(31), 1);
	sim_steal(s, 20 * ttr_ns(TIMEOUT));
	rig_silent(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_acks), BEFORE + 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
	for (unsigned i = 0; i <= BEFORE; i++)
		assert_true(sim_poll_cq(s, 0, &(struct cqe){0}));
}
