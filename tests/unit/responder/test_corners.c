/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicates without an answer, refusals, and the end of queue pairs: what is freed, which events
 * are raised, and when they are released. */
#include "responder_fixture.h"

/* Is it answered, as one that has been executed already? A READ with a bad key is not: the answer
 * that waits must not be given up for one that cannot be given (C9-108). */
TEST(duplicate__answered_or_not)
{
	static const struct {
		struct wire_headers h;
		bool answered;
	} rows[] = {
		{{.opcode = 0x15}, false}, /* reserved */
		{{.opcode = WIRE_RC_ACK}, false},
		{{.opcode = WIRE_RC_SEND_ONLY}, true},
		{{.opcode = WIRE_RC_WRITE_ONLY}, true},
		{{.opcode = WIRE_RC_READ_REQUEST, .va = FX_VA, .rkey = 0x99, .dma_len = 4}, false},
	};

	for (unsigned i = 0, answered = 0; i < RTE_DIM(rows); i++) {
		struct wire_headers h = rows[i].h;

		h.psn = psn_sub(FX_PSN, 1);
		fx_send_to(FX_QPN, h, 0, 0);
		fx_poll(1);
		answered += rows[i].answered;
		assert_int_equal(fx->frame_count, answered);
		fx_assert_counter(drop_duplicate, i + 1 - answered);
		fx_assert_counter(duplicate_requests, answered);
	}
}

static void wake(struct qp *q)
{
	wake_post(&fx->e.wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
}

static void overrun_cq(void)
{
	struct cqe entry = {.opcode = USER_RECV};

	while (cq_post(&fx->completion, stage_counters(&fx->e, STAGE_RESPONDER_EXEC), FX_CQN,
		       &entry, false))
		;
}

/* The message has arrived, but will not be reported: the queue pair is in error. */
TEST(completion__lost)
{
	overrun_cq();
	fx_post_simple(0, 100);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(1);
	assert_int_equal(qp_state(fx->qp), QP_ERR);
}

/* A request is refused, and the completion that says so is lost: the queue pair fails once. */
TEST(completion__lost_of_a_refusal)
{
	overrun_cq();
	fx_assert_event(EQE_CQ_ERROR, FX_CQN);
	fx_post_simple(0, 4);
	fx_send(8, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(1);
	assert_int_equal(qp_state(fx->qp), QP_ERR);
	fx_assert_event(EQE_WQ_CATAS_ERROR, FX_QPN);
	fx_assert_no_event();
}

/* As completions name them: of the QP's own queue, of none. */
TEST(receives__that_are_left)
{
	assert_int_equal(responder_receives(fx->qp), 0);
	for (unsigned i = 0; i < 3; i++)
		fx_post_simple(0, 100);
	assert_int_equal(responder_receives(fx->qp), 3);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(1);
	assert_int_equal(responder_receives(fx->qp), 2);
	fx->qp->rq = NULL;
	assert_int_equal(responder_receives(fx->qp), 0);
}

TEST(flush__of_a_full_queue)
{
	for (unsigned i = 0; i < FX_RQ_ENTRIES; i++)
		fx_post_simple(0, 100);
	qp_set_error(&fx->e, fx->qp);
	assert_int_equal(fx_poll(1), FX_RQ_ENTRIES);
	for (unsigned i = 0; i < FX_RQ_ENTRIES; i++)
		fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, i * FX_RQ_STRIDE);
	fx_assert_no_cqe();
	fx_assert_counter(bad_recv_wqe, 0);
	assert_int_equal(wake_take(&fx->e.wake[WAKE_EE]), WAKE_END); /* it is done */
}

TEST(flush__of_an_impossible_count)
{
	fx->record.rq_posted = FX_RQ_ENTRIES + 1;
	qp_set_error(&fx->e, fx->qp);
	assert_int_equal(fx_poll(2), 0);
	fx_assert_no_cqe();
	fx_assert_counter(bad_recv_wqe, 1);
}

TEST(wake__of_a_queue_pair_that_receives_flushes_nothing)
{
	static const uint8_t states[] = {QP_RTR, QP_RTS, QP_SQD, QP_SQE, QP_INIT};

	fx_post_simple(0, 100);
	for (unsigned i = 0; i < sizeof(states); i++) {
		fx->qp->state = states[i];
		wake(fx->qp);
		assert_int_equal(fx_poll(1), 0);
	}
	fx_assert_no_cqe();
	fx_assert_no_event();
}

TEST(refusal__completes_no_receive_that_is_not_in_use)
{
	fx_post_simple(0, 100);
	fx_send(4, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = 0x99,
		.dma_len = 4);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_nak(AETH_NAK_REMOTE_ACCESS), 0);
	fx_poll(1);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, 0);
	fx_assert_no_cqe();
}

TEST(refusal__local_errors_raise_no_event)
{
	const struct wqe_data d[2] = {{.length = WQE_INLINE | 4, .lkey = FX_KEY, .addr = FX_VA},
				      {.length = 100, .lkey = 0x99, .addr = FX_VA}};

	for (unsigned i = 0; i < 4; i++) { /* RC and UC */
		if (i) {
			fx_teardown(state);
			fx_setup(state);
		}
		fx->qp->service = i < 2 ? SERVICE_RC : SERVICE_UC;
		fx_post(1, &d[i % 2]);
		fx_send(4, 1, .opcode = i < 2 ? WIRE_RC_SEND_ONLY : WIRE_UC_SEND_ONLY,
			.psn = FX_PSN);
		fx_poll(2);
		assert_int_equal(fx->qp->state, QP_ERR);
		fx_assert_cqe(USER_INVALID, 0, i % 2 ? SYNDROME_LOCAL_PROT : SYNDROME_LOCAL_QP_OP,
			      0);
		fx_assert_no_cqe();
		fx_assert_no_event();
		assert_int_equal(fx->frame_count, i < 2);
	}
}

TEST(refusal__uc_of_an_impossible_count)
{
	fx->qp->service = SERVICE_UC;
	fx->record.rq_posted = FX_RQ_ENTRIES + 1;
	fx_send(4, 1, .opcode = WIRE_UC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(2);
	assert_int_equal(fx->qp->state, QP_ERR);
	fx_assert_event(EQE_WQ_CATAS_ERROR, FX_QPN);
	fx_assert_no_event();
	fx_assert_no_frame();
}

/* An MR whose address is odd against its memory: the CPU has no atomic for it. */
TEST(atomic__memory_that_is_not_aligned)
{
	struct mpt_entry odd = {.key = 0x3303,
				.pd = FX_PD,
				.access = ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE,
				.start = FX_VA,
				.length = 64};

	odd.phys = fx->memory + 4;
	assert_int_equal(v2p_write_mpt(&fx->v2p, &odd), 0);
	fx_send(0, 0, .opcode = WIRE_RC_FETCH_ADD, .psn = FX_PSN, .va = FX_VA, .rkey = odd.key,
		.swap_add = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_nak(AETH_NAK_INVALID_REQUEST), 0);
	assert_int_equal(fx->memory[4], 0xee);
	assert_int_equal(fx->qp->state, QP_ERR);
}

TEST(send__that_fills_its_buffer)
{
	fx_post_simple(0, 100);
	fx_send(100, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(1);
	assert_int_equal(fx->cq[0].remote_qpn, FX_DEST_QPN);
	assert_int_equal(fx->cq[0].rlid_flags, 0); /* a GRH is in front of datagrams alone */
	fx_assert_cqe(USER_RECV, 100, 0, 0);
	fx_assert_pattern(fx->memory, 100, 1);
	assert_int_equal(fx->memory[100], 0xee);
}
