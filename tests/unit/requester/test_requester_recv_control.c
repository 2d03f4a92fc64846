/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterRecvControl by itself, where whole HCAs do not show it: states, repetitions, full rings. What
 * responses complete, and what is sent again, is tested in tests/conformance. */
#include "recv_fixture.h"

/* ---- acknowledgements ---- */

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
	for (unsigned i = 0; i < 2; i++) {
		respond_ack(0, P(0));
		fx_assert_counter(ack_duplicate, i);
	}
	fx_assert_cqe(USER_SEND, 0);
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
		ns = i == 2 ? qp_probe_ns(fx->e, q) : 500000;
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

/* ---- the Loss timer ---- */

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
	send_request(0, USER_RDMA_READ, 8, 64);
	sent();
	fx_exhaust(fx->packets, 0);
	expire(0, TIMER_LOSS);
	assert_no_retransmission();
	assert_int_equal(fx->qp[0]->rrc.retransmitting, 1);
	fx_refill();
	rrc_poll(fx->e);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(0));
}
