/* SPDX-License-Identifier: BSD-3-Clause */
/* The CEU's commands on event queues. Control thread. */
#include "ceu_priv.h"

#define UNMAP (1u << 31)

enum ceu_status ceu_eq_map(
	struct ceu *ceu, uint32_t modifier, const struct ceu_eq *in, uint32_t in_bytes)
{
	uint32_t client = modifier & ~UNMAP;

	if (client >= CLIENTS_MAX || in_bytes != (modifier & UNMAP ? 0 : sizeof(*in)))
		return CEU_BAD_PARAM;
	if (modifier & UNMAP) {
		eq_remove(ceu->config.completion, client);
		ceu_settle(ceu);
		return CEU_OK;
	}
	if (!in->page)
		return CEU_BAD_PARAM;
	if (ceu->config.completion->eqs[client].page)
		return CEU_BAD_SYS_STATE;
	eq_write(ceu->config.completion, client, in->page, in->eventfd);
	return CEU_OK;
}
