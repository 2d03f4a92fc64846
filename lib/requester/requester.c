/* SPDX-License-Identifier: BSD-3-Clause */
/* The segmentation and requester_recv stages, and the completion of send descriptors that both
 * write. */
#include <errno.h>
#include <rte_malloc.h>
#include "requester_priv.h"

int requester_create(struct engine *e, int socket)
{
	int err = mq_create(e, socket);

	if (!err)
		err = rtc_create(e);
	if (!err)
		err = rpg_create(e);
	if (!err)
		err = rrc_create(e);
	if (!err)
		err = tc_create(e, socket);
	return err;
}

void requester_destroy(struct engine *e)
{
	tc_destroy(e);
	rtc_destroy(e);
	for (unsigned i = MODULE_RTC; i <= MODULE_TC; i++) {
		rte_free(e->module[i]);
		e->module[i] = NULL;
	}
	mq_destroy(e);
}

unsigned segmentation_poll(struct engine *e)
{
	unsigned n = rtc_poll(e);

	return n + rpg_poll(e);
}

unsigned requester_recv_poll(struct engine *e)
{
	unsigned n = tc_poll(e);

	return n + rrc_poll(e);
}

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
