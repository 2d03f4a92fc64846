/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request resolution: see request_resolution.h; its table of transitions is request_resolution.def.
 * Writes only the request, and what CompletionQueueMgt writes for it. Stage segmentation.
 *
 * The place in the CQ is reserved when the message has been sent, not before: one that stayed empty
 * for as long as a message takes would hold up the completions of all other QPs behind it.
 */
#include "completion/completion.h"
#include "request_resolution.h"
#include "pipeline/machine.h"
#include "send_completion.h"

#define MACHINE	      rr_machine
#define MACHINE_NAME  "RequestResolution"
#define MACHINE_ID(s) RR_##s
#define MACHINE_DEF   "request_resolution.def"
#include "pipeline/machine_define.h"

static inline enum rr_state go(struct request *r, enum rr_state next)
{
	MACHINE_STEP(rr_machine, r->resolution, next);
	r->resolution = (uint8_t)next;
	return next;
}

void resolution_begin(struct request *r)
{
	if (r->outcome != OUTCOME_OK || r->flags & REQUEST_SIGNALED)
		go(r, RR_CQ_REQ);
}

static struct counters *counters_of(struct engine *e)
{
	return stage_counters(e, STAGE_SEGMENTATION);
}

/* Where the CQ's answer leads from `now`. */
static inline enum rr_state after(enum completion_answer answer, enum rr_state now,
				  enum rr_state next)
{
	if (likely(answer == COMPLETION_READY))
		return next;
	return answer == COMPLETION_NOT_READY ? now : RR_IDLE;
}

static enum rr_state cq_req(struct engine *e, struct qp *q, struct request *r)
{
	enum completion_answer answer;

	if (unlikely(qp_closing(q))) /* it is no longer needed */
		return RR_IDLE;
	answer = cq_place(e->completion, counters_of(e), q->cqn_snd, &r->cq_place);
	if (unlikely(answer == COMPLETION_LOST))
		qp_completion_lost(e, counters_of(e), q);
	return after(answer, RR_CQ_REQ, RR_FETCH_CQ_MR);
}

static enum rr_state fetch_cq_mr(struct engine *e, const struct qp *q, const struct request *r)
{
	struct cqe cqe;

	requester_cqe(&cqe, q, r->qpn, r->outcome, r->wqe_offset, r->opcode, r->length);
	return after(cq_fill(e->completion, counters_of(e), q->cqn_snd, r->cq_place, &cqe, false),
		     RR_FETCH_CQ_MR, RR_IDLE);
}

enum rr_state resolution_step(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	struct request *r = request_of(m);

	switch ((enum rr_state)r->resolution) {
	case RR_CQ_REQ:
		return go(r, cq_req(e, q, r));
	case RR_FETCH_CQ_MR:
		return go(r, fetch_cq_mr(e, q, r));
	case RR_IDLE:
		break;
	}
	return RR_IDLE;
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

	if (r->resolution == RR_FETCH_CQ_MR)
		return resolution_step(e, q, m) == RR_IDLE;
	if (r->resolution != RR_IDLE)
		go(r, RR_IDLE);
	return true;
}
