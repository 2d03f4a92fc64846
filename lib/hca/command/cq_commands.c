/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on completion queues. Control thread. */
#include <stdlib.h>
#include "ceu_priv.h"

enum ceu_status ceu_cq_make(struct ceu *ceu, uint32_t cqn, const struct ceu_cq *in)
{
	struct completion *c = ceu->config.completion;
	int err;

	if (!in->buffer || !in->record || in->client >= CLIENTS_MAX || cqn >> CQN_BITS)
		return CEU_BAD_PARAM;
	if (!icm_ready(&c->icm, cqn & c->cq_mask))
		return CEU_BAD_SYS_STATE;
	err = cq_write(c, cqn, in->client, in->buffer, in->log_entries, in->record);
	if (!err) {
		icm_use(&c->icm, cqn & c->cq_mask);
		eq_forget(c, EVENT_OF_CQ, cqn & c->cq_mask);
	}
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

/* Moves a held CQ to its new buffer and, moved or not, releases it. */
static enum ceu_status move_cq(struct ceu *ceu, uint32_t cqn, const struct ceu_resize_cq *in)
{
	int err;

	ceu_quiesce(ceu);
	err = cq_resize(ceu->config.completion, cqn, in->buffer, in->log_entries);
	cq_release(ceu->config.completion, ceu->config.counters, cqn);
	completion_round(ceu->config.completion, ceu->config.counters);
	return ceu_status_of(err);
}

/* Meanwhile callers that cannot wait complete into the backlog, which has as many places as the
 * larger of the old and the new CQ. */
enum ceu_status ceu_cq_resize(struct ceu *ceu, uint32_t cqn, const struct ceu_resize_cq *in)
{
	struct completion *c = ceu->config.completion;
	const struct cq *q = &c->cqs[cqn & c->cq_mask];
	enum ceu_status status = CEU_BAD_PARAM;
	uint32_t entries;
	struct cqe *backlog;

	if (!in->buffer || in->reserved || in->log_entries > CQ_LOG_MAX || cqn == 0 ||
	    q->cqn != cqn)
		return CEU_BAD_PARAM;
	entries = 1u << in->log_entries;
	entries = entries > q->mask ? entries : q->mask + 1;
	backlog = calloc(entries, sizeof(*backlog));
	if (!backlog)
		return CEU_BAD_NVMEM;
	if (cq_hold(c, cqn, backlog, entries) == 0)
		status = move_cq(ceu, cqn, in);
	free(backlog);
	return status;
}
