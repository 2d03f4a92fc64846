/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on shared receive queues. Control thread. Writes the CEU's fields of struct
 * srq; those of the data path only while no queue pair uses it.
 */
#include "ceu_priv.h"

bool ceu_receive_ring_ok(uint32_t entries, uint32_t stride)
{
	return entries && !(entries & (entries - 1)) && stride >= 3 * WQE_UNIT_BYTES &&
	       stride <= RQ_FETCH_BYTES && stride % WQE_UNIT_BYTES == 0;
}

struct srq *ceu_srq_find(const struct ceu *ceu, uint32_t srqn)
{
	return ceu->config.srqs ? srq_find(ceu->config.srqs, srqn) : NULL;
}

enum ceu_status ceu_srq_make(struct ceu *ceu, uint32_t srqn, const struct ceu_srq *in)
{
	struct srq *s;

	if (!ceu->config.srqs || srqn == 0 || srqn >> QPN_BITS || !in->ring || !in->record ||
	    in->engine >= ceu->config.engine_count || in->client >= CLIENTS_MAX ||
	    !ceu_receive_ring_ok(in->entries, in->stride))
		return CEU_BAD_PARAM;
	s = &ceu->config.srqs->srqs[srqn & ceu->config.srqs->mask];
	if (!icm_ready(&ceu->config.srqs->icm, srqn & ceu->config.srqs->mask) || s->srqn != 0)
		return CEU_BAD_SYS_STATE;
	icm_use(&ceu->config.srqs->icm, srqn & ceu->config.srqs->mask);
	eq_forget(ceu->config.completion, EVENT_OF_SRQ, srqn & ceu->config.srqs->mask);
	*s = (struct srq){.pd = in->pd,
			  .client = in->client,
			  .engine = in->engine,
			  .stride = in->stride,
			  .entries = in->entries,
			  .ring = in->ring,
			  .record = in->record,
			  .completion = ceu->config.completion};
	__atomic_store_n(&s->srqn, srqn, __ATOMIC_RELEASE);
	return CEU_OK;
}

/* Queue pairs that used the SRQ are given up; any that still execute something have finished once
 * all lcores have polled. */
enum ceu_status ceu_srq_free(struct ceu *ceu, uint32_t srqn)
{
	struct srq *s = ceu_srq_find(ceu, srqn);

	if (!s)
		return CEU_BAD_PARAM;
	if (s->users)
		return CEU_BAD_SYS_STATE;
	__atomic_store_n(&s->srqn, 0, __ATOMIC_RELEASE);
	ceu_context_leave(ceu, CEU_CONTEXT_SRQ, srqn & ceu->config.srqs->mask);
	ceu_settle(ceu);
	return CEU_OK;
}

/* Descriptors in the queue; an impossible count of the client's is not believed. */
static uint32_t available(const struct srq *s)
{
	uint32_t claimed = srq_claimed(s);

	return claimed < s->entries ? claimed : s->entries;
}

enum ceu_status ceu_srq_arm(struct ceu *ceu, uint32_t srqn, const struct ceu_srq_limit *in)
{
	struct srq *s = ceu_srq_find(ceu, srqn);

	if (!s || in->limit > s->entries)
		return CEU_BAD_PARAM;
	__atomic_store_n(&s->limit, in->limit, __ATOMIC_SEQ_CST);
	if (in->limit == 0)
		return CEU_OK;
	/* Afterwards, a stage that took descriptors before it saw the limit has counted them: the
	 * queue may be below the limit already, without anything more being taken. */
	ceu_quiesce(ceu);
	if (srq_limit_reached(s, available(s))) {
		count(ceu->config.counters, COUNTER_srq_limits);
		eq_post(s->completion, ceu->config.counters, s->client, EQE_SRQ_LIMIT, srqn);
		completion_round(s->completion, ceu->config.counters);
	}
	return CEU_OK;
}

enum ceu_status ceu_srq_query(struct ceu *ceu, uint32_t srqn, struct control_srq_attr *out)
{
	const struct srq *s = ceu_srq_find(ceu, srqn);

	if (!s)
		return CEU_BAD_PARAM;
	*out = (struct control_srq_attr){.entries = s->entries,
					 .limit = __atomic_load_n(&s->limit, __ATOMIC_RELAXED),
					 .available = available(s),
					 .error = __atomic_load_n(&s->state, __ATOMIC_RELAXED) ==
						  SRQ_ERROR};
	return CEU_OK;
}
