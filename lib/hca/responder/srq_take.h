/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_SRQ_TAKE_H
#define RESPONDER_SRQ_TAKE_H
/*
 * RQWQEManager's source of descriptors for queue pairs with a shared receive queue (IBTA volume 1,
 * 10.2.9). Stage responder_exec of the engine that the SRQ and all its queue pairs belong to.
 *
 * A queue pair takes one descriptor when a message opens, none ahead, so that no queue pair holds a
 * descriptor that another could use. It belongs to the queue pair until it completes; an abandoned
 * message (UC, UD) leaves it to the next one. If the queue pair is reset or destroyed before that,
 * the descriptor is lost without a completion, as the standard allows (10.3.1): a client that wants
 * it back moves the queue pair to ERR first and waits for EQE_LAST_WQE.
 */
#include "rq_wqe_manager.h"

/* Does the queue pair hold a descriptor that it has taken and not completed? */
static inline bool srq_held(const struct qp *qp)
{
	return qp->rwm.fetched != qp->rwm.consumed;
}

/*
 * Copies the next descriptor of qp->srq into the queue pair's buffer. RWM_VALID_ENTRY;
 * RWM_INVALID_WQE: none is posted; RWM_BAD_QUEUE: the SRQ is in error, or has just been found to
 * be. Raises EQE_SRQ_LIMIT and EQE_SRQ_ERROR.
 */
enum rwm_result srq_take(struct counters *c, struct qp *qp);

#endif
