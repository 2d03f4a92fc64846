/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request-resolution machine: see request_resolution.h; its table of transitions is
 * request_resolution.def. Writes the request alone, and what CompletionQueueMgt and EventQueueMgt
 * write for it. Stage segmentation.
 *
 * The place in the CQ is reserved when the message has been sent, not before: one that stayed empty
 * for as long as a message takes would hold up the completions of all other QPs behind it.
 */
#include "request_resolution.h"
#include "pipeline/machine.h"

#define MACHINE	      rr_machine
#define MACHINE_NAME  "RequestResolution"
#define MACHINE_ID(s) RR_##s
#define MACHINE_DEF   "request_resolution.def"
#include "pipeline/machine_define.h"

static inline void go(struct request *r, enum rr_state next)
{
	MACHINE_STEP(rr_machine, r->resolution, next);
	r->resolution = (uint8_t)next;
}

static inline enum rr_state data_state(const struct request *r)
{
	bool bypass = r->flags & (REQUEST_INLINE | REQUEST_LOCAL) || r->opcode == USER_RDMA_READ ||
		      r->outcome != OUTCOME_OK;

	return bypass ? RR_BYPASS : RR_FETCH_DATA_MR;
}

static inline bool need_cpl(const struct request *r)
{
	return r->outcome != OUTCOME_OK || r->flags & REQUEST_SIGNALED;
}

static inline bool need_event(struct rte_mbuf *m)
{
	return ((const struct wqe_next *)request_wqe(m))->flags & WQE_EVENT;
}

void resolution_judge(struct request *r)
{
	go(r, RR_JUDGE);
	go(r, data_state(r));
}

void resolution_data(struct request *r, bool done)
{
	if (done)
		go(r, need_cpl(r) ? RR_CQ_REQ : RR_IDLE);
	else
		go(r, (enum rr_state)r->resolution);
}

static struct counters *counters_of(struct engine *e)
{
	return stage_counters(e, STAGE_SEGMENTATION);
}

/* Where a neighbour's answer leads from `now`. */
static inline enum rr_state after(
	enum completion_answer answer, enum rr_state now, enum rr_state next)
{
	if (likely(answer == COMPLETION_READY))
		return next;
	return answer == COMPLETION_NOT_READY ? now : RR_IDLE;
}

/* The CQ's answer; a completion that is lost is the QP's end. */
static enum completion_answer told(struct engine *e, struct qp *q, enum completion_answer answer)
{
	if (unlikely(answer == COMPLETION_LOST))
		qp_completion_lost(e, counters_of(e), q);
	return answer;
}

static enum rr_state cq_req(struct engine *e, struct qp *q)
{
	if (unlikely(qp_closing(q))) /* nobody asks for it any more */
		return RR_IDLE;
	return after(told(e, q, cq_request(e->completion, counters_of(e), q->cqn_snd)), RR_CQ_REQ,
		RR_CQ_RESP);
}

static enum rr_state cq_resp(struct engine *e, struct qp *q, struct request *r)
{
	return after(told(e, q, cq_place(e->completion, counters_of(e), q->cqn_snd, &r->cq_place)),
		RR_CQ_RESP, RR_FETCH_CQ_MR);
}

static enum rr_state fetch_cq_mr(struct engine *e, const struct qp *q, struct rte_mbuf *m)
{
	const struct request *r = request_of(m);
	struct cqe cqe;

	requester_cqe(&cqe, q, r->qpn, r->outcome, r->wqe_offset, r->opcode, r->length);
	return after(cq_fill(e->completion, counters_of(e), q->cqn_snd, r->cq_place, &cqe, false),
		RR_FETCH_CQ_MR, need_event(m) ? RR_EQ_REQ : RR_IDLE);
}

static enum rr_state eq_req(struct engine *e, const struct qp *q)
{
	return after(eq_request(e->completion, counters_of(e), q->client), RR_EQ_REQ, RR_EQ_RESP);
}

static enum rr_state eq_resp(struct engine *e, const struct qp *q, struct request *r)
{
	return after(eq_place(e->completion, counters_of(e), q->client, &r->eq_place), RR_EQ_RESP,
		RR_FETCH_EQ_MR);
}

static enum rr_state fetch_eq_mr(struct engine *e, const struct qp *q, const struct request *r)
{
	return after(eq_fill(e->completion, counters_of(e), q->client, r->eq_place, EQE_COMPLETION,
			     q->cqn_snd),
		RR_FETCH_EQ_MR, RR_IDLE);
}

enum rr_state resolution_step(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	struct request *r = request_of(m);
	enum rr_state next = RR_IDLE;

	switch ((enum rr_state)r->resolution) {
	case RR_CQ_REQ:
		next = cq_req(e, q);
		break;
	case RR_CQ_RESP:
		next = cq_resp(e, q, r);
		break;
	case RR_FETCH_CQ_MR:
		next = fetch_cq_mr(e, q, m);
		break;
	case RR_EQ_REQ:
		next = eq_req(e, q);
		break;
	case RR_EQ_RESP:
		next = eq_resp(e, q, r);
		break;
	case RR_FETCH_EQ_MR:
		next = fetch_eq_mr(e, q, r);
		break;
	case RR_IDLE:
	case RR_JUDGE:
	case RR_BYPASS:
	case RR_FETCH_DATA_MR:
		return r->resolution;
	}
	go(r, next);
	return next;
}

bool resolution_complete(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	const struct request *r = request_of(m);

	while (r->resolution != RR_IDLE) {
		uint8_t before = r->resolution;

		if (unlikely(resolution_step(e, q, m) == before))
			return false;
	}
	return true;
}

bool resolution_abandon(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	struct request *r = request_of(m);

	if (r->resolution == RR_FETCH_CQ_MR || r->resolution == RR_FETCH_EQ_MR) {
		uint8_t before = r->resolution;

		if (resolution_step(e, q, m) == before)
			return false;
	}
	if (r->resolution != RR_IDLE)
		go(r, RR_IDLE);
	return true;
}
