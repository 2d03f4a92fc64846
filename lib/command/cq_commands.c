/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on completion queues. Control thread. */
#include "ceu_priv.h"

enum ceu_status ceu_cq_make(struct ceu *ceu, uint32_t cqn, const struct ceu_cq *in)
{
	struct completion *c = ceu->config.completion;
	int err;

	if (!in->buffer || !in->record || in->client >= CLIENTS_MAX || cqn >> 24)
		return CEU_BAD_PARAM;
	if (!icm_ready(&c->icm, cqn & c->cq_mask))
		return CEU_BAD_SYS_STATE;
	err = cq_write(c, cqn, in->client, in->buffer, in->log_entries, in->record);
	if (!err)
		icm_use(&c->icm, cqn & c->cq_mask);
	return ceu_status_of(err);
}

enum ceu_status ceu_cq_free(struct ceu *ceu, uint32_t cqn)
{
	struct completion *c = ceu->config.completion;

	if (cq_remove(c, cqn))
		return CEU_BAD_PARAM;
	ceu_context_leave(ceu, CEU_CONTEXT_CQ, cqn & c->cq_mask);
	ceu_settle(ceu);
	return CEU_OK;
}
