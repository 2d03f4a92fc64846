/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors from a shared receive queue: taken one at a time, named by tags, flushed, refused;
 * the limit; credits. */
#include "context/srq.h"
#include "responder_fixture.h"
#include "rq_wqe_manager.h"
#include "srq_take.h"

enum { SRQN = 0x789a01, ENTRIES = 4, STRIDE = 64, TAG = 0x40 };

static struct counters *c;
static struct srq srq;
static struct srq_record record;

static void use_srq(void)
{
	c = stage_counters(&fx->e, STAGE_RESPONDER_EXEC);
	record = (struct srq_record){0};
	srq = (struct srq){.srqn = SRQN,
			   .pd = FX_PD,
			   .client = FX_CLIENT,
			   .stride = STRIDE,
			   .entries = ENTRIES,
			   .ring = fx->rq,
			   .record = &record,
			   .completion = &fx->completion};
	for (int i = 0; i < 2; i++) {
		struct qp *q = i ? fx->qp2 : fx->qp;

		q->rq = NULL;
		q->rq_entries = 0;
		q->srq = &srq;
		q->rq_stride = STRIDE;
	}
}

/* Posts a descriptor of one entry; its tag is TAG plus how many were posted before. */
static void post(uint32_t offset, uint32_t bytes)
{
	uint8_t *wqe = fx->rq + record.posted % ENTRIES * STRIDE;
	struct wqe_next next = {.imm = TAG + record.posted};
	struct wqe_data d = {.length = bytes, .lkey = FX_KEY, .addr = FX_VA + offset};

	memset(wqe, 0, STRIDE);
	memcpy(wqe, &next, sizeof(next));
	memcpy(wqe + sizeof(next), &d, sizeof(d));
	record.posted++;
}

static void assert_cqe(uint32_t qpn, uint8_t opcode, uint32_t error, uint32_t tag)
{
	const struct cqe *e = fx_cqe();

	assert_non_null(e);
	assert_int_equal(e->my_qpn, qpn);
	assert_int_equal(e->opcode, opcode);
	if (opcode == USER_INVALID)
		assert_int_equal(e->imm_or_error, error);
	assert_int_equal(e->wqe_offset, tag);
}

TEST(open__takes_one_and_never_ahead)
{
	use_srq();
	assert_int_equal(rwm_open(c, fx->qp), RWM_INVALID_WQE);
	for (uint32_t i = 0; i < 3; i++)
		post(0, i + 1);
	assert_int_equal(responder_receives(fx->qp), 3);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(responder_receives(fx->qp2), 2);
	assert_int_equal(srq.consumed, 1);
	assert_int_equal(rwm_open(c, fx->qp2), RWM_VALID_ENTRY);
	assert_int_equal(srq.consumed, 2);
	assert_int_equal(fx->qp->rwm.length, 1);
	assert_int_equal(fx->qp2->rwm.length, 2);
	assert_int_equal(rwm_wqe_offset(fx->qp), TAG);
	assert_int_equal(rwm_wqe_offset(fx->qp2), TAG + 1);
	rwm_release_wqe(fx->qp2); /* completes first */
	assert_false(srq_held(fx->qp2));
	assert_true(srq_held(fx->qp));
	assert_int_equal(rwm_open(c, fx->qp2), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp2->rwm.length, 3);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY); /* the one it has */
	assert_int_equal(srq.consumed, 3);
	fx_assert_counter(srq_taken, 3);
}

TEST(open__counts_wrap)
{
	use_srq();
	record.posted = srq.consumed = UINT32_MAX;
	fx->qp->rwm.consumed = fx->qp->rwm.fetched = UINT32_MAX;
	post(0, 11);
	post(0, 22);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
		assert_int_equal(fx->qp->rwm.length, 11 + 11 * i);
		rwm_release_wqe(fx->qp);
	}
	assert_int_equal(rwm_open(c, fx->qp), RWM_INVALID_WQE);
}

TEST(open__impossible_count_ends_the_srq_for_good)
{
	use_srq();
	post(0, 100);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	record.posted = ENTRIES + 2;
	assert_int_equal(rwm_open(c, fx->qp2), RWM_BAD_QUEUE);
	record.posted = 2;
	assert_int_equal(rwm_open(c, fx->qp2), RWM_BAD_QUEUE);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY); /* the descriptor taken is valid */
	fx_assert_event(EQE_SRQ_ERROR, SRQN);
	fx_assert_no_event();
	fx_assert_counter(srq_errors, 1);
}

TEST(open__srq_that_was_given_up_has_no_event)
{
	use_srq();
	post(0, 100);
	srq.limit = 1;
	srq.srqn = 0; /* its queue pairs may still be in a poll */
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	fx_assert_counter(srq_limits, 1);
	record.posted = ENTRIES + 2;
	assert_int_equal(rwm_open(c, fx->qp2), RWM_BAD_QUEUE);
	fx_assert_counter(srq_errors, 1);
	fx_assert_no_event();
}

static void send(uint32_t qpn, uint8_t opcode, uint32_t n, uint32_t bytes)
{
	fx_send_to(qpn,
		   (struct wire_headers){
			   .opcode = opcode, .psn = (FX_PSN + n) & PSN_MASK, .ackreq = 1},
		   bytes, 1);
}

TEST(message__impossible_count_fails_the_queue_pair)
{
	use_srq();
	record.posted = UINT32_MAX;
	send(FX_QPN, WIRE_RC_SEND_ONLY, 0, 100);
	fx_poll(3);
	fx_assert_no_cqe();
	fx_assert_event(EQE_SRQ_ERROR, SRQN);
	fx_assert_event(EQE_WQ_CATAS_ERROR, FX_QPN);
	fx_assert_event(EQE_LAST_WQE, FX_QPN);
	fx_assert_no_event();
	assert_int_equal(qp_state(fx->qp), QP_ERR);
}

static void wake(void)
{
	wake_post(&fx->e.wake[WAKE_EE], &fx->qp->wake[WAKE_EE], fx->qp->index);
	fx_poll(1);
}

TEST(flush__gives_back_what_it_holds_then_says_it_was_the_last)
{
	use_srq();
	post(0, 1000);
	post(0, 1000);
	send(FX_QPN, WIRE_RC_SEND_FIRST, 0, FX_MTU);
	fx_poll(1);
	wake(); /* it receives: nothing is flushed */
	fx_assert_no_cqe();
	fx_assert_no_event();
	assert_true(qp_set_error(&fx->e, fx->qp));
	fx_poll(1);
	assert_cqe(FX_QPN, USER_INVALID, SYNDROME_WR_FLUSH, TAG);
	fx_assert_no_cqe();
	fx_assert_event(EQE_LAST_WQE, FX_QPN);
	assert_false(srq_held(fx->qp));
	assert_int_equal(srq.consumed, 1); /* the other one stays for the others */
	wake();				   /* looked at again */
	fx_assert_no_cqe();
	fx_assert_no_event();
}

/* Another queue pair's receive queue uses up what a poll may write. */
TEST(flush__waits_for_its_turn)
{
	unsigned polls = 0;

	use_srq();
	fx->qp2->srq = NULL;
	fx->qp2->rq = fx->rq;
	fx->qp2->rq_entries = 128;
	fx->qp2->record->rq_posted = 128;
	qp_set_error(&fx->e, fx->qp);
	qp_set_error(&fx->e, fx->qp2); /* looked at first */
	fx_poll(1);
	fx_assert_no_event();
	while (fx_poll(1))
		polls++;
	assert_in_range(polls, 1, 3);
	fx_assert_event(EQE_LAST_WQE, FX_QPN);
	fx_assert_no_event();
	assert_int_equal(fx->qp2->rwm.consumed, 128);
}
