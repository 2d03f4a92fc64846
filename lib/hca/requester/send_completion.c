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

void requester_complete(struct engine *e, struct qp *q, enum stage_id stage,
			enum wire_outcome outcome, uint32_t wqe_offset, uint8_t user_opcode,
			uint32_t length)
{
	uint32_t qpn = __atomic_load_n(&q->qpn, __ATOMIC_RELAXED);
	struct cqe cqe;

	if (unlikely(!qpn)) /* the CEU is removing the QP: nobody waits for the completion */
		return;
	requester_cqe(&cqe, q, qpn, outcome, wqe_offset, user_opcode, length);
	if (unlikely(!cq_post(e->completion, stage_counters(e, stage), q->cqn_snd, &cqe, false)))
		qp_completion_lost(e, stage_counters(e, stage), q);
}
