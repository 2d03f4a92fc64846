/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine's steps off the fast path: duplicates, refusals, and flushing receive
 * descriptors when a QP is in ERR. Stage responder_exec.
 */
#include "completion/completion.h"
#include "ee_work.h"
#include "execution_engine.h"
#include "resp_pkt_gen.h"
#include "srq_take.h"
#include "virt-to-phys/v2p.h"

static void complete_error(struct engine *e, struct counters *c, struct qp *qp, uint8_t syndrome)
{
	struct cqe cqe = {.opcode = USER_INVALID, .imm_or_error = syndrome};

	ee_complete(e, c, qp, &cqe, true);
}

/* Rights and memory of a duplicate READ; errors are silent (C9-108). */
static bool duplicate_read(struct ee_work *w)
{
	enum v2p_state s;

	if (!request_check_duplicate_read(w->qp, w->a))
		return false;
	w->respond = RESPONSE_READ;
	s = ee_check_read(w->e, w->qp, &w->a->headers);
	if (s == V2P_PENDING)
		w->then = EE_AGAIN;
	return s == V2P_SUCCESS;
}

/* The saved result, never a second execution (o9-66). One that is 2^24 PSNs old is of another
 * request (o9-67). */
static bool duplicate_result(struct ee_work *w)
{
	const struct atomic_result *result;
	uint64_t psn = ee_long_psn(w->qp, w->a->headers.psn);

	w->respond = answer_of(w->op);
	for (unsigned i = 0; i < w->qp->ee.results_used; i++) {
		result = qp_result(w->e->qps, w->qp, i);
		if (result->psn == psn) {
			w->a->orig = result->orig;
			return true;
		}
	}
	return false;
}

/* What came before it has been placed since (oA19-14, oA19-15). */
static bool duplicate_flush(struct ee_work *w)
{
	w->respond = answer_of(w->op);
	return true;
}

enum ee_state step_duplicate(struct ee_work *w)
{
	bool answer = false;

	w->duplicate = true;
	ee_came_twice(w->qp, w->a->headers.psn);
	w->respond = RESPONSE_ACK;
	if (w->op->kind == WIRE_KIND_READ)
		answer = duplicate_read(w);
	else if (w->op->kind == WIRE_KIND_FLUSH)
		answer = duplicate_flush(w);
	else if (w->op->flags & WIRE_ANSWERED)
		answer = duplicate_result(w);
	else
		answer = w->op->flags & WIRE_REQUEST;
	if (unlikely(w->then == EE_AGAIN))
		return EE_IDLE;
	if (!answer) {
		count(w->c, COUNTER_drop_duplicate);
		return EE_DROP;
	}
	count(w->c, COUNTER_duplicate_requests);
	return EE_GEN_RESP;
}

/* A local error: fatal to the QP, whatever its service. */
static bool is_local(enum wire_outcome o)
{
	return o == OUTCOME_LOCAL_PROT || o == OUTCOME_LOCAL_QP_OP;
}

/* Completes the receive descriptor in use, moves the QP to ERR, raises the event. */
static void fail_qp(struct ee_work *w)
{
	struct qp *qp = w->qp;

	if (qp->rwm.open) {
		complete_error(w->e, w->c, qp, wire_outcomes[w->outcome].recv_cqe_syndrome);
		rwm_release_wqe(qp);
	}
	qp->ee.message = EE_MESSAGE_NONE;
	if (!qp_set_error(w->e, qp))
		return;
	if (w->bad_queue)
		eq_post(w->e->completion, w->c, qp->client, EQE_WQ_CATAS_ERROR, qp_number(qp));
	else if (w->outcome == OUTCOME_REMOTE_ACCESS || w->outcome == OUTCOME_BAD_INVALIDATE)
		eq_post(w->e->completion, w->c, qp->client, EQE_WQ_ACCESS_ERROR, qp_number(qp));
	else if (!is_local(w->outcome))
		eq_post(w->e->completion, w->c, qp->client, EQE_WQ_INVAL_REQ_ERROR, qp_number(qp));
}

/* RC: everything before is done; the NAK, if one is due, carries the expected PSN (C9-87, C9-111).
 */
static void refuse_rc(struct ee_work *w)
{
	const struct wire_outcome_info *info = &wire_outcomes[w->outcome];
	uint8_t syndrome = info->aeth_syndrome;

	if (w->outcome == OUTCOME_RNR) {
		/* The rest of the message in flight must not draw a NAK that would cut short the
		 * wait, nor must what came before it. */
		ee_wait_no_more(w->e, w->qp);
		w->qp->ee.gap |= EE_GAP_RNR;
		syndrome = aeth_rnr(w->qp->min_rnr_timer);
	}
	send_ack(w->e, w->ee, w->qp);
	if (syndrome == WIRE_NO_SYNDROME)
		free_packet(w);
	else
		hand_over(w->ee, w->qp, w->m, RESPONSE_ACK, w->qp->ee.expected_psn, syndrome);
	if (info->responder_fails)
		fail_qp(w);
}

static void count_quiet_drop(struct ee_work *w)
{
	if (w->outcome == OUTCOME_RNR)
		count(w->c, COUNTER_drop_no_receive);
	else if (w->qp->service == SERVICE_UD)
		count(w->c, COUNTER_drop_ud_length);
	else
		count(w->c, COUNTER_drop_uc_request);
}

/* The request is to blame, not what it found here: no memory, no receive, a lost packet. */
static bool is_refusal(enum wire_outcome o)
{
	return o == OUTCOME_REMOTE_ACCESS || o == OUTCOME_BAD_INVALIDATE ||
	       o == OUTCOME_INVALID_REQUEST;
}

enum ee_state step_async_error(struct ee_work *w)
{
	w->qp->ee.refused += is_refusal(w->outcome);
	if (w->qp->service == SERVICE_RC) {
		refuse_rc(w);
		return EE_IDLE;
	}
	if (is_local(w->outcome)) {
		fail_qp(w);
	} else {
		abandon_message(w);
		count_quiet_drop(w);
	}
	free_packet(w);
	return EE_IDLE;
}

/* With an SRQ: flushes the one descriptor that the QP may hold, then raises EQE_LAST_WQE,
 * once. Returns what was written, 0 or 1. */
static unsigned flush_shared(struct engine *e, struct counters *c, struct qp *qp, unsigned budget)
{
	qp->ee.message = EE_MESSAGE_NONE;
	if (qp->ee.flushed == EE_FLUSHED)
		return 0;
	if (budget == 0) {
		wake_post(&e->wake[WAKE_EE], &qp->wake[WAKE_EE], qp->index);
		return 0;
	}
	if (srq_held(qp)) {
		complete_error(e, c, qp, SYNDROME_WR_FLUSH);
		rwm_release_wqe(qp);
	}
	__atomic_store_n(&qp->ee.flushed, EE_FLUSHED, __ATOMIC_RELEASE); /* the CEU may wait */
	if (!__atomic_load_n(&qp->leaving, __ATOMIC_RELAXED))
		eq_post(e->completion, c, qp->client, EQE_LAST_WQE, qp_number(qp));
	return 1;
}

/* Flushes posted receive descriptors, the open one first. Returns how many, at most `budget`. */
static unsigned ee_flush_receives(struct engine *e, struct counters *c, struct qp *qp,
				  unsigned budget)
{
	uint32_t claimed = rwm_claimed(qp);
	unsigned n;

	qp->ee.message = EE_MESSAGE_NONE;
	if (claimed > qp->rq_entries) {
		count(c, COUNTER_bad_recv_wqe);
		qp->rwm.open = 0;
		qp->rwm.consumed += claimed;
		qp->rwm.fetched = qp->rwm.consumed;
		return 0;
	}
	for (n = 0; n < claimed && n < budget; n++) {
		complete_error(e, c, qp, SYNDROME_WR_FLUSH);
		rwm_skip_wqe(qp);
	}
	if (n < claimed)
		wake_post(&e->wake[WAKE_EE], &qp->wake[WAKE_EE], qp->index);
	return n;
}

/*
 * The numbers of queue pairs that leave may be reused at once. So requests for them are dropped,
 * and their answers still in EE_RESPG become RESPONSE_NONE, which RespPktGen drops later: the CEU
 * must not wait for it, as it may be paused or have no room. It runs on this stage. (An answer
 * keeps its number: the frame may pass HeaderParser once more, which writes the number again.)
 */
static void forget_packets(struct engine *e)
{
	const struct rte_ring *r = e->channel[CHANNEL_EE_RESPG].ring;

	qp_disown_ring(e->qps, e->channel[CHANNEL_HP_EE].ring);
	for (unsigned i = 0; i < e->ee->held_count; i++)
		qp_disown(e->qps, e->ee->held[i]);
	for (uint32_t i = r->cons.tail; i != r->prod.tail; i++) {
		struct arrival *a = arrival_of(ring_slots(r)[i & r->mask]);

		if (!qp_find(e->qps, a->qpn))
			a->response = RESPONSE_NONE;
	}
}

/* The CEU has destroyed the QP. */
static void ee_release(struct engine *e, struct qp *qp)
{
	respg_forget(e, qp);
	ee_close_gap(e, qp);
	ee_forget_credits(e, qp);
	qp_close(qp, WAKE_EE);
}

unsigned ee_wakes(struct engine *e)
{
	struct counters *c = stage_counters(e, STAGE_RESPONDER_EXEC);
	uint32_t index = wake_take(&e->wake[WAKE_EE]);
	bool forgotten = false; /* in this poll: one look serves all that leave */
	unsigned written = 0;

	while (unlikely(index != WAKE_END)) {
		struct qp *qp = qp_at(e->qps, index);
		enum qp_state state;

		index = wake_next(&qp->wake[WAKE_EE]);
		state = qp_state(qp);
		if (state == QP_ERR)
			ee_close_gap(e, qp);
		if (unlikely(qp_closing(qp))) {
			if (!forgotten)
				forget_packets(e);
			forgotten = true;
			ee_release(e, qp);
		} else if (state == QP_ERR && qp->srq) {
			written += flush_shared(e, c, qp, EE_FLUSH_BUDGET - written);
		} else if (state == QP_ERR) {
			written += ee_flush_receives(e, c, qp, EE_FLUSH_BUDGET - written);
		} else if (qp_receives(state)) {
			ee_watch_credits(e, qp);
			respg_take_news(e, qp);
		}
	}
	return written;
}
