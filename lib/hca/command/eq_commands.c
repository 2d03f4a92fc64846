/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on event queues. Each client has one, under its index: an event goes to the
 * queue of the client whose object it is about, if its type is mapped there. Control thread.
 */
#include "ceu_priv.h"

#define UNMAP (1u << 31)

static bool exists(const struct ceu *ceu, uint32_t eqn)
{
	return eqn < CLIENTS_MAX && ceu->config.completion->eqs[eqn].page;
}

enum ceu_status ceu_eq_make(struct ceu *ceu, uint32_t eqn, const struct ceu_eq *in)
{
	struct completion *c = ceu->config.completion;

	if (eqn >= CLIENTS_MAX || !in->page)
		return CEU_BAD_PARAM;
	if (exists(ceu, eqn))
		return CEU_BAD_SYS_STATE;
	eq_write(c, eqn, in->page, in->eventfd);
	eq_map(c, eqn, 0);
	return CEU_OK;
}

enum ceu_status ceu_eq_free(struct ceu *ceu, uint32_t eqn)
{
	if (!exists(ceu, eqn))
		return CEU_BAD_PARAM;
	eq_remove(ceu->config.completion, eqn);
	ceu_settle(ceu);
	return CEU_OK;
}

enum ceu_status ceu_eq_map(struct ceu *ceu, uint32_t modifier, const struct ceu_event_mask *in)
{
	uint32_t eqn = modifier & ~UNMAP, mask;

	if (!exists(ceu, eqn) || in->types & ~(uint64_t)CEU_EVENTS_ALL)
		return CEU_BAD_PARAM;
	mask = ceu->config.completion->eqs[eqn].mask;
	mask = modifier & UNMAP ? mask & ~(uint32_t)in->types : mask | (uint32_t)in->types;
	eq_map(ceu->config.completion, eqn, mask);
	return CEU_OK;
}
