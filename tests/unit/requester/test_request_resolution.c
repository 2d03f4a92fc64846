/* SPDX-License-Identifier: BSD-3-Clause */
/* Request resolution: each row of its table of transitions; a CQ that is held is not ready. */
#include "requester_fixture.h"
#include "request_resolution.h"

#define CQ_ENTRIES (1u << FX_CQ_LOG)

static struct cqe backlog[CQ_ENTRIES];

static void hold_cq(void)
{
	assert_int_equal(cq_hold(&fx->h->completion, FX_CQN, backlog, CQ_ENTRIES), 0);
}

static void release_cq(void)
{
	struct counters *c = stage_counters(fx->e, STAGE_SEGMENTATION);

	assert_int_equal(cq_release(&fx->h->completion, c, FX_CQN), 0);
}

/* A UC request, by hand; freed by the caller. */
static struct rte_mbuf *request(uint8_t flags)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND, 8, 192);

	fx_service(0, SERVICE_UC);
	request_of(m)->service = SERVICE_UC;
	request_of(m)->flags = flags;
	return m;
}

static void assert_state(struct rte_mbuf *m, enum rr_state state)
{
	assert_int_equal(request_of(m)->resolution, state);
}

static void step(struct rte_mbuf *m, enum rr_state next)
{
	assert_int_equal(resolution_step(fx->e, fx->qp[0], m), next);
	assert_state(m, next);
}

/* One that has been sent and now asks for its completion. */
static struct rte_mbuf *sent(void)
{
	struct rte_mbuf *m = request(REQUEST_SIGNALED);

	resolution_begin(request_of(m));
	assert_state(m, RR_CQ_REQ);
	return m;
}

/* ---- alone ---- */

/* Signalled and failed requests need a completion, local operations included. */
TEST(begin__need_cpl)
{
	static const struct {
		uint8_t flags;
		enum wire_outcome outcome;
		enum rr_state to;
	} rows[] = {
		{REQUEST_SIGNALED, OUTCOME_OK, RR_CQ_REQ},
		{0, OUTCOME_OK, RR_IDLE},
		{REQUEST_INLINE | REQUEST_SIGNALED, OUTCOME_OK, RR_CQ_REQ},
		{REQUEST_INLINE, OUTCOME_OK, RR_IDLE},
		{REQUEST_LOCAL, OUTCOME_OK, RR_IDLE},
		{0, OUTCOME_FLUSH, RR_CQ_REQ},
		{0, OUTCOME_LOCAL_PROT, RR_CQ_REQ},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rte_mbuf *m = request(rows[i].flags);

		request_of(m)->outcome = rows[i].outcome;
		resolution_begin(request_of(m));
		assert_state(m, rows[i].to);
		rte_mbuf_raw_free(m);
	}
}

TEST(cq__all_states_to_idle)
{
	struct rte_mbuf *m = sent();

	step(m, RR_FETCH_CQ_MR);
	fx_assert_no_cqe();
	step(m, RR_IDLE);
	fx_assert_cqe(USER_SEND, 192);
	step(m, RR_IDLE); /* stays */
	fx_assert_no_cqe();
	rte_mbuf_raw_free(m);
}

TEST(cq__each_state_waits_until_it_is_ready)
{
	struct rte_mbuf *m = sent();

	for (enum rr_state s = RR_CQ_REQ; s <= RR_FETCH_CQ_MR; s++) {
		hold_cq();
		step(m, s);
		step(m, s);
		release_cq();
		step(m, s == RR_FETCH_CQ_MR ? RR_IDLE : s + 1);
	}
	fx_assert_counter(cq_not_ready, 4);
	fx_assert_cqe(USER_SEND, 192);
	fx_assert_no_cqe();
	rte_mbuf_raw_free(m);
}

static void fill_cq(unsigned leave)
{
	struct cqe entry = {.opcode = USER_SEND, .is_send = 1};

	for (unsigned i = leave; i < CQ_ENTRIES; i++)
		assert_true(cq_post(&fx->h->completion, stage_counters(fx->e, STAGE_SEGMENTATION),
				    FX_CQN, &entry, false));
}

TEST(cq__lost_when_it_is_full)
{
	struct rte_mbuf *m = sent();

	fill_cq(0);
	step(m, RR_IDLE); /* its overrun */
	fx_assert_counter(cq_overruns, 1);
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR); /* whose completion it was */
	rte_mbuf_raw_free(m);
	m = sent();
	step(m, RR_IDLE); /* and the CQ accepts no more */
	fx_assert_counter(cq_overruns, 2);
	rte_mbuf_raw_free(m);
}

TEST(cq__gone)
{
	struct rte_mbuf *m = sent();

	step(m, RR_FETCH_CQ_MR);
	assert_int_equal(cq_remove(&fx->h->completion, FX_CQN), 0);
	step(m, RR_IDLE);
	rte_mbuf_raw_free(m);
}

/* ---- reset ---- */

TEST(reset__from_any_state)
{
	for (enum rr_state s = RR_IDLE; s <= RR_FETCH_CQ_MR; s++) {
		struct rte_mbuf *m = s == RR_IDLE ? request(REQUEST_SIGNALED) : sent();

		if (s == RR_FETCH_CQ_MR)
			step(m, RR_FETCH_CQ_MR);
		assert_true(resolution_abandon(fx->e, fx->qp[0], m));
		assert_state(m, RR_IDLE);
		if (s == RR_FETCH_CQ_MR) /* its place is not left empty */
			fx_assert_cqe(USER_SEND, 192);
		fx_assert_no_cqe();
		rte_mbuf_raw_free(m);
	}
}

/* A queue pair that goes away does not leave a hole in a CQ that is just held: it waits. */
TEST(reset__waits_for_a_held_cq)
{
	struct qp *q = fx->qp[0];
	struct rte_mbuf *m = sent();

	step(m, RR_FETCH_CQ_MR);
	fx_put(CHANNEL_DP_RTC, m);
	hold_cq();
	rtc_poll(fx->e);
	assert_ptr_equal(q->rtc.head, m);
	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	hca_close_qp(fx->h, q);
	rtc_poll(fx->e);
	assert_int_equal(q->closed & 1u << WAKE_RTC, 0);
	release_cq();
	rtc_poll(fx->e);
	assert_int_equal(q->closed & 1u << WAKE_RTC, 1u << WAKE_RTC);
	fx_assert_cqe(USER_SEND, 192);
	assert_int_equal(rte_mempool_in_use_count(fx->descriptors), 0);
}

/* One whose place is not reserved yet loses its completion: it is not wanted any more. */
TEST(reset__before_a_place_is_reserved)
{
	struct qp *q = fx->qp[0];
	struct rte_mbuf *m = sent();

	__atomic_store_n(&q->qpn, 0, __ATOMIC_SEQ_CST);
	step(m, RR_IDLE);
	fx_assert_no_cqe();
	rte_mbuf_raw_free(m);
}

/* ---- with RequesterTransControl ---- */

static void unreliable(unsigned qp, uint32_t length, uint32_t wqe_offset)
{
	fx_service(qp, SERVICE_UC);
	send_request(qp, USER_SEND, length, wqe_offset);
}

/* Its message has been sent; it does not send it again, and later requests wait. */
TEST(rtc_poll__waits_for_its_cq)
{
	hold_cq();
	unreliable(0, 8, 0);
	unreliable(0, 8, 64);
	for (unsigned i = 0; i < 3; i++)
		rtc_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 1);
	assert_int_equal(fx->qp[0]->rtc.consumed, 0);
	release_cq();
	rtc_poll(fx->e);
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_cqe(USER_SEND, 64);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 2);
	assert_int_equal(fx->qp[0]->rtc.consumed, 2);
}

/* The outcome is what it was when the message had been sent, whatever becomes of the QP since. */
TEST(rtc_poll__error_while_it_waits_for_its_cq)
{
	hold_cq();
	unreliable(0, 8, 0);
	unreliable(0, 8, 64);
	rtc_poll(fx->e);
	qp_set_error(fx->e, fx->qp[0]);
	rtc_poll(fx->e);
	release_cq();
	rtc_poll(fx->e);
	fx_assert_cqe(USER_SEND, 0);
	fx_assert_error(SYNDROME_WR_FLUSH, 64);
}

/* A QP whose CQ is held does not stop others. */
TEST(rtc_poll__others_continue)
{
	fx->qp[0]->cqn_snd = FX_CQN + 1;
	assert_int_equal(
		cq_write(&fx->h->completion, FX_CQN + 1, FX_CLIENT, backlog, 4, &fx->cq_record), 0);
	assert_int_equal(cq_hold(&fx->h->completion, FX_CQN + 1, backlog + 16, 16), 0);
	unreliable(0, 8, 0);
	unreliable(1, 8, 64);
	rtc_poll(fx->e);
	fx_assert_cqe(USER_SEND, 64);
	fx_assert_no_cqe();
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 2);
	assert_int_equal(cq_remove(&fx->h->completion, FX_CQN + 1), 0);
}

/* The place is reserved when the message has been sent: one that is stuck in the middle of it holds
 * up nobody's completions. */
TEST(rtc_poll__no_place_before_all_is_sent)
{
	struct cqe entry = {.opcode = USER_RECV};

	fx_fill(CHANNEL_RTC_RPG, 1);
	unreliable(0, 2 * FX_MTU, 0);
	rtc_poll(fx->e);
	assert_state(fx->qp[0]->rtc.head, RR_IDLE);
	assert_true(cq_post(&fx->h->completion, stage_counters(fx->e, STAGE_SEGMENTATION), FX_CQN,
			    &entry, false));
	assert_non_null(fx_cqe());
	fx_unfill(CHANNEL_RTC_RPG);
	rtc_poll(fx->e);
	fx_assert_cqe(USER_SEND, 0);
}
