/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes descriptors from shared receive queues. Reads the ring and the count in the client's
 * record, each once; writes the SRQ's part of its context and qp->rwm. Stage responder_exec. Never
 * waits, never believes a count.
 */
#include "completion/completion.h"
#include "context/srq.h"
#include "srq_take.h"

/* Tells the client, unless the CEU has given up the queue since the packet came. */
static void raise_event(struct counters *c, const struct srq *s, enum eqe_type type)
{
	uint32_t srqn = __atomic_load_n(&s->srqn, __ATOMIC_RELAXED);

	if (likely(srqn))
		eq_post(s->completion, c, s->client, type, srqn);
}

/* The client's counts for this queue cannot be trusted any more. Its other queues continue. */
static enum rwm_result give_up(struct counters *c, struct srq *s)
{
	count(c, COUNTER_srq_errors);
	__atomic_store_n(&s->state, SRQ_ERROR, __ATOMIC_RELAXED);
	raise_event(c, s, EQE_SRQ_ERROR);
	return RWM_BAD_QUEUE;
}

enum rwm_result srq_take(struct counters *c, struct qp *qp)
{
	struct srq *s = qp->srq;
	uint32_t claimed = srq_claimed(s);

	if (unlikely(s->state == SRQ_ERROR))
		return RWM_BAD_QUEUE;
	if (claimed == 0)
		return RWM_INVALID_WQE;
	if (unlikely(claimed > s->entries))
		return give_up(c, s);
	memcpy(qp->rwm.buffer, s->ring + (size_t)(s->consumed & (s->entries - 1)) * s->stride,
	       s->stride);
	__atomic_store_n(&s->consumed, s->consumed + 1, __ATOMIC_RELEASE);
	qp->rwm.fetched = qp->rwm.consumed + 1;
	qp->rwm.unit = 0;
	count(c, COUNTER_srq_taken);
	if (unlikely(srq_limit_reached(s, claimed - 1))) {
		count(c, COUNTER_srq_limits);
		raise_event(c, s, EQE_SRQ_LIMIT);
	}
	return RWM_VALID_ENTRY;
}
