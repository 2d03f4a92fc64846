/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_RELEASE_H
#define REQUESTER_RRC_RELEASE_H
/* RequesterRecvControl: releases the contents of MultiQueue, in order. Stage requester_recv. */
#include "rrc_work.h"
#include "send_completion.h"

/* Releases and completes packets up to and including PSN `upto`, or up to an unanswered READ or
 * atomic; advances UPSN, in the latter case to the first response missing. */
void rrc_release(struct engine *e, struct qp *q, uint32_t upto);

/* Is a READ or atomic with a PSN up to `upto` unanswered? */
bool rrc_read_in_the_way(struct engine *e, const struct qp *q, uint32_t upto);

/* RequesterTransControl has executed a local operation, perhaps after the acknowledgement of the
 * request before it: then it completes now. */
void rrc_release_local(struct engine *e, struct qp *q);

/* The READ or atomic at the head is answered: completes and releases it, and what may follow. */
void rrc_release_read(struct engine *e, struct qp *q, struct rd_element *rd);

/* The same for several: the completion of each is added to *completions, these are posted, then they
 * are released together, `reads` of them with `entries` scatter entries in all. `unacked`: UPSN
 * after them. */
void rrc_complete_read(struct engine *e, struct qp *q, struct rd_element *rd,
		       struct send_completions *completions);
void rrc_release_reads(struct engine *e, struct qp *q, uint32_t reads, uint32_t entries,
		       uint32_t unacked);

/* Sets UPSN to `unacked`. If that is an advance, retries are reloaded, timers restart and the
 * window grows. */
void rrc_advance(struct engine *e, struct qp *q, uint32_t unacked);

/* The state FLUSH: completes everything outstanding of a QP in ERR, in order: the oldest request as
 * w->outcome, the others as flushed. */
enum rrc_state rrc_step_flush(struct rrc_work *w);

/* Frees the elements of a QP that goes away; completes nothing. */
void rrc_release_all(struct engine *e, struct qp *q);

#endif
