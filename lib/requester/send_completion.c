/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion of a send descriptor: RequesterTransControl writes it for UC and UD (stage
 * segmentation), RequesterRecvControl for RC (stage requester_recv).
 */
#include "requester_priv.h"

void requester_complete(struct engine *e, const struct qp *q, enum stage_id stage,
	enum wire_outcome outcome, uint32_t wqe_offset, uint8_t user_opcode, uint32_t length)
{
	uint32_t qpn = __atomic_load_n(&q->qpn, __ATOMIC_RELAXED);
	struct cqe cqe = {
		.my_qpn = qpn,
		.remote_qpn = q->dest_qpn,
		.wqe_offset = wqe_offset,
		.byte_count = length,
		.opcode = user_opcode,
		.is_send = 1,
	};

	if (unlikely(!qpn)) /* the CEU is just taking the QP away: nobody asks any more */
		return;
	if (unlikely(outcome != OUTCOME_OK)) {
		cqe.opcode = USER_INVALID;
		cqe.imm_or_error = wire_outcomes[outcome].cqe_syndrome;
	}
	cq_post(e->completion, stage_counters(e, stage), q->cqn_snd, &cqe, false);
}
