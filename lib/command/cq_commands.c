/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on completion queues. Control thread. */
#include "ceu_priv.h"

enum ceu_status ceu_cq_make(struct ceu *ceu, uint32_t cqn, const struct ceu_cq *in)
{
	if (!in->buffer || !in->record || in->client >= CLIENTS_MAX || cqn >> 24)
		return CEU_BAD_PARAM;
	return ceu_status_of(cq_write(
		ceu->config.completion, cqn, in->client, in->buffer, in->log_entries, in->record));
}

enum ceu_status ceu_cq_free(struct ceu *ceu, uint32_t cqn)
{
	if (cq_remove(ceu->config.completion, cqn))
		return CEU_BAD_PARAM;
	ceu_settle(ceu);
	return CEU_OK;
}
