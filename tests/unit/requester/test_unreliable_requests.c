/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterTransControl alone, the UC and UD half: a request that fails stops its queue (SQE), the
 * queue is taken up again; the address unit of datagrams. */
#include "requester_fixture.h"

/* A UC request, good or bad, rung for before (0) or after SQERR2RTS. */
static void unreliable(uint32_t wqe_offset, enum wire_outcome outcome, uint8_t sq_epoch)
{
	struct rte_mbuf *m;

	fx_service(0, SERVICE_UC);
	m = fx_request(0, USER_SEND, 8, wqe_offset);
	request_of(m)->outcome = outcome;
	request_of(m)->sq_epoch = sq_epoch;
	fx_put(CHANNEL_DP_RTC, m);
}

TEST(rtc_poll__unreliable_errors_complete_at_once)
{
	unreliable(64, OUTCOME_LOCAL_LENGTH, 0);
	unreliable(128, OUTCOME_OK, 0);
	unreliable(192, OUTCOME_LOCAL_QP_OP, 0); /* not the first: flushed, too */
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_LENGTH, 64);
	fx_assert_error(SYNDROME_WR_FLUSH, 128);
	fx_assert_error(SYNDROME_WR_FLUSH, 192);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
}

/* The CEU's part of SQERR2RTS. */
static void sqerr2rts(void)
{
	fx->qp[0]->sq_epoch++;
	fx->qp[0]->state = QP_RTS;
}

/* Requests posted before are flushed and do not stop the queue again; later ones are sent. */
TEST(rtc_poll__send_queue_taken_up_again)
{
	unreliable(0, OUTCOME_LOCAL_PROT, 0);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_PROT, 0);
	sqerr2rts();
	unreliable(64, OUTCOME_OK, 0);
	unreliable(128, OUTCOME_LOCAL_PROT, 0);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
	fx_assert_error(SYNDROME_WR_FLUSH, 128);
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 0);
	unreliable(192, OUTCOME_OK, 1);
	rtc_poll(fx->e);
	fx_assert_cqe(USER_SEND, 192);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
	unreliable(256, OUTCOME_LOCAL_QP_OP, 1); /* and a second time */
	unreliable(320, OUTCOME_OK, 1);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_QP_OP, 256);
	fx_assert_error(SYNDROME_WR_FLUSH, 320);
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
	sqerr2rts();
	unreliable(384, OUTCOME_LOCAL_LENGTH, 2); /* the first one may be bad */
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_LENGTH, 384);
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
}

/* Its client sees the state not later than the completion. */
TEST(rtc_poll__sqe_before_its_completion)
{
	struct cqe backlog[1 << FX_CQ_LOG];

	assert_int_equal(cq_hold(&fx->h->completion, FX_CQN, backlog, 1 << FX_CQ_LOG), 0);
	unreliable(0, OUTCOME_LOCAL_PROT, 0);
	rtc_poll(fx->e);
	fx_assert_no_cqe();
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
	cq_release(&fx->h->completion, stage_counters(fx->e, STAGE_SEGMENTATION), FX_CQN);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_PROT, 0);
}

/* In SQD what has begun continues; if it fails then, what is behind it is flushed, not held
 * back. */
TEST(rtc_poll__sqe_from_sqd)
{
	struct rte_mbuf *m;

	fx_service(0, SERVICE_UC);
	m = fx_request(0, USER_SEND, 2 * FX_MTU, 0);
	((struct wqe_data *)(request_wqe(m) + 16))->addr = FX_VA + FX_MEMORY_BYTES - FX_MTU - 1;
	fx_put(CHANNEL_DP_RTC, m);
	fx_fill(CHANNEL_RTC_RPG, 1);
	rtc_poll(fx->e);
	fx->qp[0]->state = QP_SQD;
	unreliable(64, OUTCOME_OK, 0);
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_PROT, 0);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
}

/* ERR stays ERR, where bad requests are flushed, too; a reliable QP never enters SQE. */
TEST(rtc_poll__never_sqe)
{
	struct rte_mbuf *m;

	fx->qp[0]->state = QP_ERR;
	unreliable(0, OUTCOME_LOCAL_PROT, 0);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_WR_FLUSH, 0);
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
	m = fx_request(1, USER_SEND, 8, 64);
	request_of(m)->outcome = OUTCOME_LOCAL_PROT;
	fx_put(CHANNEL_DP_RTC, m);
	rtc_poll(fx->e);
	m = fx_take(CHANNEL_RTC_RRC);
	assert_int_equal(request_of(m)->outcome, OUTCOME_LOCAL_PROT);
	rte_mbuf_raw_free(m);
	assert_int_equal(qp_state(fx->qp[1]), QP_RTS); /* RequesterRecvControl makes it ERR */
}

static void datagram_to(uint8_t mac, uint8_t gid_index, bool ipv6, uint32_t qkey)
{
	struct rte_mbuf *m;
	struct wqe_ud *u;

	fx_service(0, SERVICE_UD);
	m = fx_request(0, USER_SEND, 8, 64);
	request_of(m)->ud_offset = 32;
	u = (struct wqe_ud *)(request_wqe(m) + 32);
	*u = (struct wqe_ud){.gid_index = gid_index,
			     .is_ipv6 = ipv6,
			     .dmac = {[5] = mac},
			     .qkey = qkey,
			     .qpn = 0xff123456};
	fx_put(CHANNEL_DP_RTC, m);
	rtc_poll(fx->e);
}

static void datagram(uint8_t gid_index, bool ipv6, uint32_t qkey)
{
	datagram_to(1, gid_index, ipv6, qkey);
}

/* A Q_Key with the top bit set means that of the QP. */
TEST(rtc_poll__qkey_of_a_datagram)
{
	struct packet p = {0};

	datagram(0, false, 0x7fffffff);
	assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(p.headers.qkey, 0x7fffffff);
	assert_int_equal(p.headers.dest_qp, 0x123456);
	assert_int_equal(p.headers.src_qp, fx->qp[0]->qpn);
	datagram(1, true, 0x80000000);
	assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(p.headers.qkey, 0x11111111);
	assert_int_equal(p.ud_gid, 1);
	fx_assert_counter(multicast_requests, 0);
}

TEST(rtc_poll__datagram_from_no_address_of_ours)
{
	static const struct {
		uint8_t gid;
		bool ipv6;
	} rows[] = {{0, true}, {1, false}, {2, false}, {255, true}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		datagram(rows[i].gid, rows[i].ipv6, 0);
		fx_assert_error(SYNDROME_LOCAL_QP_OP, 64);
		assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
		sqerr2rts();
		fx->qp[0]->rtc.flushing = 0;
	}
	fx_assert_counter(bad_wqe_address, RTE_DIM(rows));
	fx_assert_counter(request_packets, 0);
}

/* Its client has not had the destination resolved. */
TEST(rtc_poll__datagram_to_no_address)
{
	datagram_to(0, 0, false, 0);
	fx_assert_error(SYNDROME_LOCAL_QP_OP, 64);
	fx_assert_counter(bad_wqe_address, 1);
	fx_assert_counter(request_packets, 0);
}
