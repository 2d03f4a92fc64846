/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_SEND_COMPLETION_H
#define REQUESTER_SEND_COMPLETION_H
/* Completions of send descriptors. */
#include "context/qp_context.h"
#include "host-abi/cqe.h"
#include "multi_queue.h"
#include "pipeline/engine.h"
#include "wire/error.h"

/* Fills in the completion of a send WQE of queue pair `qpn`, which is *q. */
void requester_cqe(struct cqe *out, const struct qp *q, uint32_t qpn, enum wire_outcome outcome,
		   uint32_t wqe_offset, uint8_t user_opcode, uint32_t length);

/* Completions of an RC QP that are written into its CQ together, by cq_post_burst(). */
struct send_completions {
	uint32_t qpn; /* for all of them; 0: the CEU is removing the QP, nobody waits for them */
	uint32_t count;
	struct cqe cqe[BURST];
};

static inline void completions_begin(struct send_completions *s, const struct qp *q)
{
	s->qpn = qp_number(q);
	s->count = 0;
}

/* Writes them. A CQ without room has overrun: qp_completion_lost(). Stage requester_recv. */
void completions_post(struct engine *e, struct qp *q, struct send_completions *s);

/* Adds that of a successful WQE, if it is to have one. `flags`: of its element in MultiQueue. */
static inline void completions_add(struct engine *e, struct qp *q, struct send_completions *s,
				   uint8_t flags, uint32_t wqe_offset, uint8_t user_opcode,
				   uint32_t length)
{
	if (!(flags & ELEMENT_SIGNALED))
		return;
	if (unlikely(s->count == BURST))
		completions_post(e, q, s);
	requester_cqe(&s->cqe[s->count++], q, s->qpn, OUTCOME_OK, wqe_offset, user_opcode, length);
}

/* Writes that of one WQE. */
void requester_complete(struct engine *e, struct qp *q, enum wire_outcome outcome,
			uint32_t wqe_offset, uint8_t user_opcode, uint32_t length);

#endif
