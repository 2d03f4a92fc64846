/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose queue pair fails or is destroyed: each completes once, in order. */
#include "recv_fixture.h"
#include "send_completion.h"

/* Whose completion finds no place is in error: nobody would ever hear of its requests. */
TEST(rrc_poll__completion_lost)
{
	struct cqe entry = {.opcode = USER_SEND, .is_send = 1};

	while (cq_post(&fx->h->completion, stage_counters(fx->e, STAGE_SEGMENTATION), FX_CQN,
		       &entry, false))
		;
	sends(1);
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	respond_ack(0, P(0));
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
	assert_int_equal(qp_state(fx->qp[1]), QP_RTS);
}

/* A request whose queue pair has been reset, or replaced by another one, completes nowhere. */
TEST(rrc_poll__stale_bad_request)
{
	for (unsigned i = 0; i < 2; i++) {
		struct rte_mbuf *m = fx_request(0, USER_SEND, 8, 0);

		request_of(m)->outcome = OUTCOME_LOCAL_QP_OP;
		if (i)
			request_of(m)->qpn ^= 0x800000;
		else
			request_of(m)->epoch++;
		fx_put(CHANNEL_RTC_RRC, m);
	}
	rrc_poll(fx->e);
	fx_assert_counter(drop_stale_wqe, 2);
	fx_assert_no_cqe();
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
}

static void bad_request(unsigned qp, uint32_t wqe_offset)
{
	struct rte_mbuf *m = fx_request(qp, USER_SEND, 8, wqe_offset);

	request_of(m)->outcome = OUTCOME_LOCAL_QP_OP;
	fx_put(CHANNEL_RTC_RRC, m);
	rrc_poll(fx->e);
}

/* Completions of a queue pair that the CEU is just removing are not wanted any more. */
TEST(requester_complete__without_a_number)
{
	struct qp *q = fx->qp[0];
	uint32_t qpn = q->qpn;

	q->qpn = 0;
	requester_complete(fx->e, q, OUTCOME_FLUSH, 0, USER_SEND, 0);
	q->qpn = qpn;
	fx_assert_no_cqe();
}

/* ---- the queue pair goes away ---- */

static bool closed(unsigned qp)
{
	return fx->qp[qp]->closed & 1u << WAKE_RRC;
}

static void close_qp(unsigned qp)
{
	__atomic_store_n(&fx->qp[qp]->qpn, 0, __ATOMIC_SEQ_CST);
	hca_close_qp(fx->h, fx->qp[qp]);
	rrc_poll(fx->e);
}

/* Packets, READs, their entries, a bad request, a timer: nothing of them is left, nothing
 * completes.
 */
TEST(rrc_release_qp__with_everything_outstanding)
{
	struct qp *q = fx->qp[0];

	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_RDMA_READ, 8, 64);
	segmentation_poll(fx->e);
	bad_request(0, 128);
	tc_poll(fx->e);
	assert_true(requester_timers_armed(fx->e));
	assert_int_equal(requester_elements(fx->e), 3);
	assert_non_null(q->rrc.bad_head);
	close_qp(0);
	assert_true(closed(0));
	assert_false(requester_timers_armed(fx->e));
	assert_int_equal(requester_elements(fx->e), 0);
	assert_null(q->rrc.bad_head);
	fx_assert_no_cqe();
}

/* It leaves the list of those that retransmit, whether or not there is room for what it has begun. */
TEST(rrc_release_qp__that_retransmits)
{
	sends(2);
	fx_fill(CHANNEL_RRC_RPG, 0);
	expire(0, TIMER_LOSS);
	assert_int_equal(fx->qp[0]->rrc.retransmit.listed, 1);
	close_qp(0);
	assert_true(closed(0));
	assert_int_equal(fx->qp[0]->rrc.retransmit.listed, 0);
	fx_unfill(CHANNEL_RRC_RPG);
	rrc_poll(fx->e);
	assert_no_retransmission();
}
