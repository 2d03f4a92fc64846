/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_H
#define REQUESTER_RRC_H
/*
 * What the files of RequesterRecvControl share: requester_recv_control.c takes responses and bad
 * requests, rrc_timers.c expiries and wakes. Stage requester_recv.
 */
#include "context/qp_list.h"
#include "pipeline/message.h"
#include "wire/error.h"

enum rrc_state {
#define STATE(id, text) RRC_##id,
#include "requester_recv_control.def"
};

/* RequesterRecvControl's own state. */
struct rrc {
	uint8_t state;		      /* enum rrc_state; in debug builds only */
	bool again;		      /* VirtToPhys has a request of the response in hand pending */
	struct rte_mbuf *held[BURST]; /* responses that come again at the next poll, in order */
	unsigned holds;
	struct qp_list retransmit; /* queue pairs that retransmit */
};

/* As an outcome: the response comes again. */
#define RRC_AGAIN OUTCOME_COUNT

static inline struct counters *rrc_counters(struct engine *e)
{
	return stage_counters(e, STAGE_REQUESTER_RECV);
}

/* Debug builds: the machine goes on to that state. */
#ifdef SOFTHCA_DEBUG
void rrc_enter(struct engine *e, enum rrc_state next);
#else
static inline void rrc_enter(struct engine *e, enum rrc_state next)
{
	(void)e;
	(void)next;
}
#endif

/* From `psn` on again; a loss has shown. */
void rrc_send_again(struct engine *e, struct qp *q, uint32_t psn);

/* The same, counted down; the QP fails if that was spent. */
void rrc_retry(struct engine *e, struct qp *q, uint32_t psn);

/* Gives up everything outstanding of a QP in ERR, in order: the oldest request completes as
 * `first`, the others as flushed. */
void rrc_flush(struct engine *e, struct qp *q, enum wire_outcome first);

/* Completes the bad requests whose turn has come. */
void rrc_bad_requests(struct engine *e, struct qp *q);

/* RequesterTransControl has executed a local operation, perhaps after the acknowledgement of what
 * it stands behind: then it completes now. */
void rrc_release_local(struct engine *e, struct qp *q);

#endif
