/* SPDX-License-Identifier: BSD-3-Clause */
/* RequesterTransControl alone, the UC and UD half: a request that fails stops its queue (SQE), the
 * queue is taken up again; the address unit of datagrams. */
#include "requester_fixture.h"

/* The CEU's part of SQERR2RTS. */
static void sqerr2rts(void)
{
	fx->qp[0]->sq_epoch++;
	fx->qp[0]->state = QP_RTS;
}

/* Its client sees the state not later than the completion. */
TEST(rtc_poll__sqe_before_its_completion)
{
	struct cqe backlog[1 << FX_CQ_LOG];
	struct rte_mbuf *m;

	assert_int_equal(cq_hold(&fx->h->completion, FX_CQN, backlog, 1 << FX_CQ_LOG), 0);
	fx_service(0, SERVICE_UC);
	m = fx_request(0, USER_SEND, 8, 0);
	request_of(m)->outcome = OUTCOME_LOCAL_PROT;
	fx_put(CHANNEL_DP_RTC, m);
	rtc_poll(fx->e);
	fx_assert_no_cqe();
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
	cq_release(&fx->h->completion, stage_counters(fx->e, STAGE_SEGMENTATION), FX_CQN);
	rtc_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_PROT, 0);
}

static void datagram_to(uint8_t mac, uint8_t gid_index, bool ipv6)
{
	struct rte_mbuf *m;
	struct wqe_ud *u;

	fx_service(0, SERVICE_UD);
	m = fx_request(0, USER_SEND, 8, 64);
	request_of(m)->ud_offset = 32;
	u = (struct wqe_ud *)(request_wqe(m) + 32);
	*u = (struct wqe_ud){
		.gid_index = gid_index, .is_ipv6 = ipv6, .dmac = {[5] = mac}, .qpn = 0xff123456};
	fx_put(CHANNEL_DP_RTC, m);
	rtc_poll(fx->e);
}

TEST(rtc_poll__datagram_from_no_address_of_ours)
{
	static const struct {
		uint8_t gid;
		bool ipv6;
	} rows[] = {{0, true}, {1, false}, {2, false}, {255, true}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		datagram_to(1, rows[i].gid, rows[i].ipv6);
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
	datagram_to(0, 0, false);
	fx_assert_error(SYNDROME_LOCAL_QP_OP, 64);
	fx_assert_counter(bad_wqe_address, 1);
	fx_assert_counter(request_packets, 0);
}
