/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion of a send descriptor: RequesterRecvControl writes it for RC (stage
 * requester_recv); for UC and UD the request-resolution machine does (stage segmentation).
 */
#include "completion/completion.h"
#include "host-abi/wqe.h"
#include "send_completion.h"

void requester_cqe(struct cqe *out, const struct qp *q, uint32_t qpn, enum wire_outcome outcome,
		   uint32_t wqe_offset, uint8_t user_opcode, uint32_t length)
{
	*out = (struct cqe){
		.my_qpn = qpn,
		.remote_qpn = q->dest_qpn,
		.wqe_offset = wqe_offset,
		.byte_count = length,
		.opcode = user_opcode,
		.is_send = 1,
	};
	if (unlikely(outcome != OUTCOME_OK)) {
		out->opcode = USER_INVALID;
		out->imm_or_error = wire_outcomes[outcome].cqe_syndrome;
	}
}

static void post(struct engine *e, struct qp *q, const struct cqe *cqe, uint32_t n)
{
	struct counters *c = stage_counters(e, STAGE_REQUESTER_RECV);

	if (unlikely(!cq_post_burst(e->completion, c, q->cqn_snd, cqe, n, false)))
		qp_completion_lost(e, c, q);
}

void completions_post(struct engine *e, struct qp *q, struct send_completions *s)
{
	if (s->count && likely(s->qpn))
		post(e, q, s->cqe, s->count);
	s->count = 0;
}

void requester_complete(struct engine *e, struct qp *q, enum wire_outcome outcome,
			uint32_t wqe_offset, uint8_t user_opcode, uint32_t length)
{
	uint32_t qpn = qp_number(q);
	struct cqe cqe;

	if (unlikely(!qpn)) /* as in completions_post() */
		return;
	requester_cqe(&cqe, q, qpn, outcome, wqe_offset, user_opcode, length);
	post(e, q, &cqe, 1);
}
