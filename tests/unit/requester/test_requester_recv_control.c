/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterRecvControl: requests were sent, responses come in HP_RRC; what completes, what is sent
 * again (RRC_RPG), what becomes of the queue pair. */
#include "recv_fixture.h"

/* ---- acknowledgements ---- */

TEST(rrc_poll__ack_completes)
{
	sends(3);
	fx->e->now_ns += 5000;
	respond_ack(0, P(0));
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_no_cqe();
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(1));
	assert_true(fx->qp[0]->rrc.progress_ns == fx->e->now_ns);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 2);
	fx_assert_counter(acks, 1);
}

TEST(rrc_poll__ack_of_many)
{
	sends(20); /* over the PSN's wrap */
	respond_ack(0, P(18));
	for (unsigned i = 0; i < 19; i++)
		fx_assert_cqe(USER_SEND, 64 * i);
	fx_assert_no_cqe();
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(19));
	assert_int_equal(P(19), 3);
}

/* References are given up by the burst: none is kept, none twice. */
TEST(rrc_poll__ack_of_more_than_a_burst)
{
	sends(1);
	respond_ack(0, P(0));
	fx_assert_cqe(USER_SEND, 0);
	send_request(0, USER_RDMA_WRITE, (BURST + 3) * FX_MTU, 64);
	sent();
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), BURST + 3);
	respond_ack(0, P(BURST + 3));
	fx_assert_cqe(USER_RDMA_WRITE, 64);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 0);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), requester_stock(fx->e));
}

TEST(rrc_poll__unsignaled)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 16, 0);

	request_of(m)->flags = 0;
	fx_put(CHANNEL_DP_RTC, m);
	sent();
	respond_ack(0, P(0));
	fx_assert_no_cqe();
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 0);
}

/* In the middle of a message: released, not completed. */
TEST(rrc_poll__ack_within_a_message)
{
	send_request(0, USER_RDMA_WRITE, 4 * FX_MTU, 64);
	sent();
	respond_ack(0, P(2));
	fx_assert_no_cqe();
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 1);
	respond_ack(0, P(3));
	fx_assert_cqe(USER_RDMA_WRITE, 64);
}

TEST(rrc_poll__duplicate_ack)
{
	sends(3);
	respond_ack(0, P(1));
	respond_ack(0, P(0));
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_cqe(USER_SEND, 64);
	fx_assert_no_cqe();
	fx_assert_counter(ack_duplicate, 1);
}

TEST(rrc_poll__ghost_ack)
{
	sends(3);
	respond_ack(0, P(3));
	respond_ack(0, P(1000));
	fx_assert_no_cqe();
	fx_assert_counter(drop_ack_ghost, 2);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 3);
}

TEST(rrc_poll__reserved_syndromes)
{
	static const uint8_t syndromes[] = {0x40, 0x5f, 0x65, 0x7f, 0x80, 0xff, 0x64};

	sends(1);
	for (unsigned i = 0; i < RTE_DIM(syndromes); i++)
		respond(0, P(0), syndromes[i], 0);
	fx_assert_counter(drop_ack_syndrome, RTE_DIM(syndromes));
	fx_assert_no_cqe();
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 1);
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
}

TEST(rrc_poll__wakes_the_sender)
{
	sends(1);
	fx->qp[0]->rtc.parked = PARK_BUFFER;
	respond_ack(0, P(0));
	assert_int_equal(wake_take(&fx->e->wake[WAKE_RTC]), fx->qp[0]->index);
	wake_next(&fx->qp[0]->wake[WAKE_RTC]);
	sends(1);
	fx->qp[0]->rtc.parked = PARK_NONE;
	respond_ack(0, P(1));
	assert_int_equal(wake_take(&fx->e->wake[WAKE_RTC]), WAKE_END);
}

/* Before RTS an ACK can only carry credits, and only for a QP that uses them. */
TEST(rrc_poll__not_in_a_state_to_receive)
{
	static const enum qp_state states[] = {QP_INIT, QP_RTR, QP_ERR, QP_RTR};
	struct qp *q = fx->qp[0];

	sends(1);
	for (unsigned i = 0; i < RTE_DIM(states); i++) {
		q->state = states[i];
		q->service = i == 3 ? SERVICE_UC : SERVICE_RC;
		q->rrc.credits = 0;
		respond(0, P(0), aeth_ack(3), 0);
		fx_assert_counter(drop_qp_state, i + 1);
		assert_int_equal(q->rrc.credits != 0, i == 1);
	}
	fx_assert_no_cqe();
	q->state = QP_RTS;
	respond_ack(0, P(0));
	fx_assert_counter(drop_qp_state, (unsigned)RTE_DIM(states) + 1);
	q->service = SERVICE_RC;
}

/* A response whose ICRC HeaderParser left to us. */
TEST(rrc_poll__response_that_is_not_intact)
{
	enum { BYTES = 100 };

	sends(1);
	for (unsigned right = 0; right < 2; right++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);
		uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, BYTES + WIRE_ICRC_BYTES);

		memset(p, 7, BYTES);
		wire_icrc_store(p + BYTES, wire_icrc(p, BYTES, false) + !right);
		*arrival_of(m) = (struct arrival){
			.qpn = fx->qp[0]->qpn,
			.icrc_bytes = BYTES,
			.headers = {.opcode = WIRE_RC_ACK, .psn = P(0), .syndrome = aeth_ack(31)}};
		fx_put(CHANNEL_HP_RRC, m);
		rrc_poll(fx->e);
		fx_assert_counter(drop_rx_icrc, 1);
		fx_assert_counter(acks, right);
	}
	fx_assert_cqe(USER_SEND, 0);
}

TEST(rrc_poll__for_nobody)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);

	*arrival_of(m) = (struct arrival){.qpn = fx->qp[0]->qpn ^ 0x800000,
					  .headers = {.opcode = WIRE_RC_ACK, .psn = P(0)}};
	fx_put(CHANNEL_HP_RRC, m);
	sends(1);
	rrc_poll(fx->e);
	fx_assert_counter(drop_rx_qpn, 1);
	fx_assert_no_cqe();
}

/* ---- NAKs ---- */

TEST(rrc_poll__sequence_nak)
{
	sends(5);
	respond(0, P(2), aeth_nak(AETH_NAK_SEQUENCE), 0);
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_cqe(USER_SEND, 64);
	fx_assert_no_cqe();
	for (unsigned i = 2; i < 5; i++)
		assert_retransmission(WIRE_RC_SEND_ONLY, P(i));
	assert_no_retransmission();
	assert_int_equal(fx->qp[0]->rrc.retry_left, 2);
	assert_int_equal(fx->qp[0]->rrc.retransmitting, 1); /* until ReqPktGen has them all */
	rrc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rrc.retransmitting, 0);
	fx_assert_counter(retransmitted_packets, 3);
	/* The same once more, from a duplicate on its way, says nothing new */
	respond(0, P(2), aeth_nak(AETH_NAK_SEQUENCE), 0);
	assert_no_retransmission();
	assert_int_equal(fx->qp[0]->rrc.retry_left, 2);
	fx->e->now_ns += 1000000;
	respond(0, P(2), aeth_nak(AETH_NAK_SEQUENCE), 0);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 3);
	fx_assert_counter(nak_sequence_received, 3);
}

/* For how long the same NAK says nothing new: as an answer takes, but at least 500 us, and twice as
 * long after the next try. */
TEST(rrc_poll__repeated_nak)
{
	static const uint32_t srtt_ns[] = {0, 1000, 10000000};
	struct qp *q = fx->qp[0];

	for (unsigned i = 0; i < RTE_DIM(srtt_ns); i++) {
		uint64_t ns;

		q->rrc.srtt_ns = srtt_ns[i];
		q->timeout = 20;
		q->retry_cnt = q->rrc.retry_left = 7;
		ns = i == 2 ? qp_probe_ns(q, fx->e->settings.timer_tick_ns) : 500000;
		assert_true(ns >= 500000);
		sends(2);
		respond(0, P(2 * i), aeth_nak(AETH_NAK_SEQUENCE), 0);
		fx->e->now_ns += ns - 1;
		respond(0, P(2 * i), aeth_nak(AETH_NAK_SEQUENCE), 0);
		assert_int_equal(q->rrc.retry_left, 6);
		fx->e->now_ns += 1;
		respond(0, P(2 * i), aeth_nak(AETH_NAK_SEQUENCE), 0);
		assert_int_equal(q->rrc.retry_left, 5);
		fx->e->now_ns += i == 2 ? ns - 1 : 2 * ns - 1;
		respond(0, P(2 * i), aeth_nak(AETH_NAK_SEQUENCE), 0);
		assert_int_equal(q->rrc.retry_left, 5);
		fx->e->now_ns += 1;
		respond(0, P(2 * i), aeth_nak(AETH_NAK_SEQUENCE), 0);
		assert_int_equal(q->rrc.retry_left, 4);
		fx_unfill(CHANNEL_RRC_RPG);
		respond_ack(0, P(2 * i + 1));
	}
}

static void fatal(enum aeth_nak code, uint8_t syndrome, enum counter counter)
{
	sends(4);
	respond(0, P(1), aeth_nak(code), 0);
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_error(syndrome, 64);
	fx_assert_error(SYNDROME_WR_FLUSH, 128);
	fx_assert_error(SYNDROME_WR_FLUSH, 192);
	fx_assert_no_cqe();
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
	assert_int_equal(fx_counter(counter), 1);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 0);
	assert_no_retransmission();
}

TEST(rrc_poll__invalid_request_nak)
{
	fatal(AETH_NAK_INVALID_REQUEST, SYNDROME_REMOTE_INVAL_REQ, COUNTER_nak_invalid_received);
}

TEST(rrc_poll__remote_access_nak)
{
	fatal(AETH_NAK_REMOTE_ACCESS, SYNDROME_REMOTE_ACCESS, COUNTER_nak_access_received);
}

TEST(rrc_poll__remote_operation_nak)
{
	fatal(AETH_NAK_REMOTE_OPERATION, SYNDROME_REMOTE_OP, COUNTER_nak_operation_received);
}

TEST(rrc_poll__rnr_nak)
{
	struct rte_mbuf *m;

	sends(3);
	respond(0, P(1), aeth_rnr(12), 0);
	fx_assert_cqe(USER_SEND, 0);
	m = fx_take(CHANNEL_RRC_TC);
	assert_non_null(m);
	assert_int_equal(timer_event_of(m)->timer, TIMER_RNR);
	assert_int_equal(timer_event_of(m)->value_ns, aeth_rnr_ns(12));
	rte_mbuf_raw_free(m);
	assert_int_equal(fx->qp[0]->rrc.rnr_waiting, 1);
	assert_int_equal(fx->qp[0]->rrc.rnr_left, 1);
	/* NAKs provoked by the rest of the burst do not count */
	respond(0, P(1), aeth_nak(AETH_NAK_SEQUENCE), 0);
	assert_no_retransmission();
	assert_int_equal(fx->qp[0]->rrc.retry_left, 3);
	expire(0, TIMER_RNR);
	assert_int_equal(fx->qp[0]->rrc.rnr_waiting, 0);
	assert_retransmission(WIRE_RC_SEND_ONLY, P(1));
	assert_retransmission(WIRE_RC_SEND_ONLY, P(2));
	assert_no_retransmission();
}

TEST(rrc_poll__rnr_retries_run_out)
{
	sends(2);
	for (unsigned i = 0; i < 2; i++) {
		respond(0, P(0), aeth_rnr(1), 0);
		expire(0, TIMER_RNR);
		fx_unfill(CHANNEL_RRC_RPG);
		assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	}
	respond(0, P(0), aeth_rnr(1), 0);
	fx_assert_error(SYNDROME_RNR_RETRY_EXC, 0);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
	fx_assert_counter(rnr_retry_exceeded, 1);
}

TEST(rrc_poll__rnr_for_ever)
{
	fx->qp[0]->rnr_retry = fx->qp[0]->rrc.rnr_left = 7;
	sends(1);
	for (unsigned i = 0; i < 50; i++) {
		respond(0, P(0), aeth_rnr(1), 0);
		expire(0, TIMER_RNR);
		fx_unfill(CHANNEL_RRC_RPG);
		fx_unfill(CHANNEL_RRC_TC);
	}
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	respond_ack(0, P(0));
	fx_assert_cqe(USER_SEND, 0);
}

/* ---- the Loss timer ---- */

TEST(rrc_poll__loss_timer_sends_again_until_retries_run_out)
{
	sends(2);
	for (unsigned i = 0; i < 3; i++) {
		expire(0, TIMER_LOSS);
		assert_retransmission(WIRE_RC_SEND_ONLY, P(0));
		assert_retransmission(WIRE_RC_SEND_ONLY, P(1));
		assert_no_retransmission();
	}
	expire(0, TIMER_LOSS);
	fx_assert_error(SYNDROME_RETRY_EXC, 0);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
	fx_assert_no_cqe();
	fx_assert_counter(retry_exceeded, 1);
	fx_assert_counter(loss_timeouts, 4);
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
}

TEST(rrc_poll__progress_reloads_the_retries)
{
	sends(2);
	for (unsigned i = 0; i < 3; i++)
		expire(0, TIMER_LOSS);
	assert_int_equal(fx->qp[0]->rrc.retry_left, 0);
	respond_ack(0, P(0));
	assert_int_equal(fx->qp[0]->rrc.retry_left, 3);
}

TEST(rrc_poll__loss_timer_with_nothing_outstanding)
{
	sends(1);
	respond_ack(0, P(0));
	expire(0, TIMER_LOSS);
	fx_assert_counter(loss_timeouts, 0);
	assert_no_retransmission();
}

/* After a pause of the lcore responses and an expiry wait together: the responses count, although
 * they do not acknowledge everything. */
TEST(rrc_poll__loss_timer_disproved_by_what_came)
{
	struct qp *q = fx->qp[0];

	sends(3);
	for (unsigned i = 0; i < 2; i++) {
		put_expiry(0, TIMER_LOSS);
		respond(0, P(i), i ? aeth_rnr(1) : aeth_ack(AETH_CREDIT_INVALID), 0);
		assert_no_retransmission();
		fx_assert_counter(loss_timeouts, 0);
		assert_int_equal(q->rrc.retry_left, q->retry_cnt);
	}
}

/* More than the ring takes: the rest follows, in order, while the sender waits. */
TEST(rrc_poll__retransmission_ring_full)
{
	sends(5);
	fx_fill(CHANNEL_RRC_RPG, 2);
	expire(0, TIMER_LOSS);
	assert_int_equal(fx->qp[0]->rrc.retransmitting, 1);
	for (unsigned left = channel_infos[CHANNEL_RRC_RPG].depth - 2; left; left--)
		rte_pktmbuf_free(fx_take(CHANNEL_RRC_RPG));
	assert_retransmission(WIRE_RC_SEND_ONLY, P(0));
	assert_retransmission(WIRE_RC_SEND_ONLY, P(1));
	rrc_poll(fx->e);
	for (unsigned i = 2; i < 5; i++)
		assert_retransmission(WIRE_RC_SEND_ONLY, P(i));
	assert_no_retransmission();
	rrc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rrc.retransmitting, 0);
}

/* ---- READs and atomics ---- */

static void read_request(uint32_t bytes, uint32_t wqe_offset)
{
	send_request(0, USER_RDMA_READ, bytes, wqe_offset);
	sent();
}

static void read_response(uint8_t opcode, uint32_t psn, uint32_t bytes, uint8_t seed)
{
	respond_with(0,
		     (struct wire_headers){.opcode = opcode,
					   .psn = psn,
					   .syndrome = aeth_ack(AETH_CREDIT_INVALID)},
		     bytes, seed);
	rrc_poll(fx->e);
}

TEST(rrc_poll__read)
{
	read_request(2 * FX_MTU + 10, 64);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 1);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(1), FX_MTU, 2);
	fx_assert_no_cqe();
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(2));
	read_response(WIRE_RC_READ_RESP_LAST, P(2), 10, 3);
	fx_assert_cqe(USER_RDMA_READ, 64);
	fx_assert_pattern(fx->memory, FX_MTU, 1);
	fx_assert_pattern(fx->memory + FX_MTU, FX_MTU, 2);
	fx_assert_pattern(fx->memory + 2 * FX_MTU, 10, 3);
	assert_int_equal(fx->qp[0]->rrc.reads_done, 1);
	fx_assert_counter(read_bytes, 2 * FX_MTU + 10);
}

/* Scattered over entries, some of them empty, across packets. */
TEST(rrc_poll__read_into_entries)
{
	static const uint32_t lengths[] = {10, 0, FX_MTU, 0, FX_MTU - 10 + 5, 3};
	struct rte_mbuf *m = fx_request(0, USER_RDMA_READ, 2 * FX_MTU + 8, 0);
	uint32_t at = 0, done = 0;

	for (unsigned i = 0; i < RTE_DIM(lengths); i++) {
		struct wqe_data d = {lengths[i], FX_KEY, FX_VA + i * 4096};

		memcpy(request_wqe(m) + 16 + 16 * i, &d, sizeof(d));
	}
	request_of(m)->data_units = RTE_DIM(lengths);
	fx_put(CHANNEL_DP_RTC, m);
	sent();
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 1);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(1), FX_MTU, 1);
	read_response(WIRE_RC_READ_RESP_LAST, P(2), 8, 1);
	fx_assert_cqe(USER_RDMA_READ, 0);
	for (unsigned i = 0; i < RTE_DIM(lengths); i++)
		for (at = 0; at < lengths[i]; at++, done++)
			assert_int_equal(fx->memory[i * 4096 + at], fx_pattern(1, done % FX_MTU));
	assert_int_equal(mq_count(&fx->qp[0]->mq.re), 0);
}

TEST(rrc_poll__atomic)
{
	uint64_t orig = 0x1122334455667788;

	send_request(0, USER_ATOMIC_FA, 8, 64);
	sent();
	respond_with(0,
		     (struct wire_headers){.opcode = WIRE_RC_ATOMIC_ACK, .psn = P(0), .orig = orig},
		     0, 0);
	rrc_poll(fx->e);
	fx_assert_cqe(USER_ATOMIC_FA, 64);
	assert_memory_equal(fx->memory, &orig, 8);
}

/* The second of three is lost: the third draws a request from the missing one on. */
TEST(rrc_poll__read_response_lost)
{
	struct packet p;

	read_request(3 * FX_MTU - 24, 64);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 1);
	read_response(WIRE_RC_READ_RESP_LAST, P(2), FX_MTU - 24, 3);
	assert_true(take_packet(CHANNEL_RRC_RPG, &p));
	assert_int_equal(p.headers.opcode, WIRE_RC_READ_REQUEST);
	assert_int_equal(p.headers.psn, P(1));
	assert_true(p.headers.va == 0x1000 + FX_MTU);
	assert_int_equal(p.headers.dma_len, 2 * FX_MTU - 24);
	assert_int_equal(p.headers.rkey, 0x99);
	assert_no_retransmission();
	fx_assert_no_cqe();
	read_response(WIRE_RC_READ_RESP_FIRST, P(1), FX_MTU, 2);
	read_response(WIRE_RC_READ_RESP_LAST, P(2), FX_MTU - 24, 3);
	fx_assert_cqe(USER_RDMA_READ, 64);
	fx_assert_pattern(fx->memory + FX_MTU, FX_MTU, 2);
	fx_assert_no_cqe();
}

/* Later responses of the same gap ask once. */
TEST(rrc_poll__gap_asks_once)
{
	read_request(5 * FX_MTU, 64);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(1), FX_MTU, 1);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 1);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(2), FX_MTU, 1);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(3), FX_MTU, 1);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 1);
	assert_int_equal(fx->qp[0]->rrc.retry_left, 2);
}

/* Another gap in the same READ is asked for at once. */
TEST(rrc_poll__next_gap_asks_again)
{
	struct qp *q = fx->qp[0];

	read_request(5 * FX_MTU, 64);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(1), FX_MTU, 1);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(0));
	assert_int_equal(q->rrc.retry_left, 2);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 1);
	assert_int_equal(q->rrc.retry_left, 3);
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(2), FX_MTU, 1);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(1));
	assert_int_equal(q->rrc.retry_left, 2);
}

/* An ACK of a later request implies that the READ's response was lost. */
TEST(rrc_poll__implied_nak)
{
	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_RDMA_READ, 2 * FX_MTU, 64);
	send_request(0, USER_SEND, 8, 128);
	sent();
	respond_ack(0, P(3));
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_no_cqe(); /* nothing completes out of order */
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(1));
	assert_retransmission(WIRE_RC_READ_REQUEST, P(1));
	assert_retransmission(WIRE_RC_SEND_ONLY, P(3));
	assert_no_retransmission();
}

TEST(rrc_poll__read_response_acknowledges_what_is_before)
{
	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_RDMA_READ, 8, 64);
	send_request(0, USER_SEND, 8, 128);
	sent();
	read_response(WIRE_RC_READ_RESP_ONLY, P(1), 8, 1);
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_cqe(USER_RDMA_READ, 64);
	fx_assert_no_cqe();
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(2));
}

TEST(rrc_poll__duplicate_read_response)
{
	read_request(2 * FX_MTU, 0);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 1);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 9);
	fx_assert_counter(ack_duplicate, 1);
	fx_assert_pattern(fx->memory, FX_MTU, 1);
	assert_no_retransmission();
}

TEST(rrc_poll__nak_of_a_read)
{
	read_request(8, 64);
	respond(0, P(0), aeth_nak(AETH_NAK_REMOTE_ACCESS), 0);
	fx_assert_error(SYNDROME_REMOTE_ACCESS, 64);
	assert_int_equal(mq_count(&fx->qp[0]->mq.rd), 0);
	assert_int_equal(mq_count(&fx->qp[0]->mq.re), 0);
}

/* A READ that failed after some of its responses (C9-100). */
TEST(rrc_poll__nak_during_a_read)
{
	read_request(3 * FX_MTU, 64);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU, 1);
	respond(0, P(1), aeth_nak(AETH_NAK_REMOTE_OPERATION), 0);
	fx_assert_error(SYNDROME_REMOTE_OP, 64);
	fx_assert_no_cqe();
}

TEST(rrc_poll__response_of_the_wrong_length)
{
	read_request(2 * FX_MTU, 64);
	read_response(WIRE_RC_READ_RESP_FIRST, P(0), FX_MTU - 4, 1);
	fx_assert_error(SYNDROME_BAD_RESP, 64);
	fx_assert_counter(drop_resp_length, 1);
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
	assert_int_equal(fx->memory[0], 0);
}

TEST(rrc_poll__response_of_the_wrong_kind)
{
	struct wire_headers atomic = {.opcode = WIRE_RC_ATOMIC_ACK, .psn = P(0)};

	read_request(8, 64);
	respond_with(0, atomic, 0, 0);
	rrc_poll(fx->e);
	fx_assert_counter(drop_resp_opcode, 1);
	fx_assert_no_cqe();
	read_response(WIRE_RC_READ_RESP_ONLY, P(0), 8, 1);
	fx_assert_cqe(USER_RDMA_READ, 64);
	send_request(0, USER_ATOMIC_FA, 8, 128);
	sent();
	read_response(WIRE_RC_READ_RESP_ONLY, P(1), 8, 1);
	fx_assert_counter(drop_resp_opcode, 2);
	/* and data for a SEND */
	send_request(0, USER_SEND, 8, 192);
	sent();
	fx->qp[0]->rrc.unacked_psn = P(1);
	read_response(WIRE_RC_READ_RESP_ONLY, P(2), 8, 1);
	fx_assert_no_cqe();
}

TEST(rrc_poll__read_response_without_a_read)
{
	sends(1);
	read_response(WIRE_RC_READ_RESP_ONLY, P(0), 8, 1);
	fx_assert_counter(drop_resp_opcode, 1);
	fx_assert_no_cqe();
}

TEST(rrc_poll__read_into_memory_that_is_gone)
{
	read_request(8, 64);
	assert_int_equal(v2p_invalidate_mpt(fx->e->v2p, FX_KEY), 0);
	read_response(WIRE_RC_READ_RESP_ONLY, P(0), 8, 1);
	fx_assert_error(SYNDROME_LOCAL_PROT, 64);
	fx_assert_counter(v2p_key_error, 1);
}

/* ---- retry counters that run out ---- */

static void assert_retries_spent(unsigned wqe_offset)
{
	fx_assert_error(SYNDROME_RETRY_EXC, wqe_offset);
	fx_assert_counter(retry_exceeded, 1);
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
	assert_no_retransmission();
}

TEST(rrc_poll__sequence_naks_run_out)
{
	sends(1);
	fx->qp[0]->rrc.retry_left = 0;
	respond(0, P(0), aeth_nak(AETH_NAK_SEQUENCE), 0);
	assert_retries_spent(0);
}

TEST(rrc_poll__implied_naks_run_out)
{
	read_request(8, 0);
	send_request(0, USER_SEND, 8, 64);
	sent();
	fx->qp[0]->rrc.retry_left = 0;
	respond_ack(0, P(1));
	assert_retries_spent(0);
}

TEST(rrc_poll__missing_responses_run_out)
{
	read_request(3 * FX_MTU, 0);
	fx->qp[0]->rrc.retry_left = 0;
	read_response(WIRE_RC_READ_RESP_MIDDLE, P(1), FX_MTU, 1);
	assert_retries_spent(0);
}

/* A NAK of what lies behind an unanswered READ: the READ comes first. */
TEST(rrc_poll__nak_behind_a_lost_response)
{
	read_request(8, 0);
	send_request(0, USER_SEND, 8, 64);
	sent();
	respond(0, P(1), aeth_nak(AETH_NAK_REMOTE_OPERATION), 0);
	fx_assert_no_cqe();
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(0));
	assert_retransmission(WIRE_RC_SEND_ONLY, P(1));
}

/* But the wait that an RNR NAK asks for comes first (C9-130). */
TEST(rrc_poll__rnr_behind_a_lost_response)
{
	read_request(8, 0);
	send_request(0, USER_SEND, 8, 64);
	sent();
	respond(0, P(1), aeth_rnr(1), 0);
	assert_int_equal(fx->qp[0]->rrc.rnr_waiting, 1);
	assert_int_equal(fx->qp[0]->rrc.retry_left, 3);
	assert_no_retransmission();
	expire(0, TIMER_RNR);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(0));
}

TEST(rrc_poll__read_of_nothing)
{
	read_request(0, 64);
	read_response(WIRE_RC_READ_RESP_ONLY, P(0), 0, 0);
	fx_assert_cqe(USER_RDMA_READ, 64);
}

TEST(rrc_poll__atomic_without_room)
{
	struct rte_mbuf *m = fx_request(0, USER_ATOMIC_FA, 8, 64);
	struct wqe_data d = {4, FX_KEY, FX_VA};

	memcpy(request_wqe(m) + 16, &d, sizeof(d));
	fx_put(CHANNEL_DP_RTC, m);
	sent();
	respond_with(0, (struct wire_headers){.opcode = WIRE_RC_ATOMIC_ACK, .psn = P(0)}, 0, 0);
	rrc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_LENGTH, 64);
}

TEST(rrc_poll__no_packet_buffer_for_a_read)
{
	read_request(8, 64);
	fx_exhaust(fx->packets, 0);
	expire(0, TIMER_LOSS);
	assert_no_retransmission();
	assert_int_equal(fx->qp[0]->rrc.retransmitting, 1);
	fx_refill();
	rrc_poll(fx->e);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(0));
}
