/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_RESP_ORDER_H
#define RESPONDER_RESP_ORDER_H
/*
 * The order of one QP's answers (C9-63, C9-101, C9-104, C9-110): a list in PSN order of what waits
 * in RespPktGen, the READ being answered at its head. A waiting answer is a copy of a few words in
 * one of the QP's own places: it holds no packet buffer, and QPs take nothing from each other.
 * There is always a place for a new READ or atomic, as max_dest_rd_atomic bounds them (an answer
 * that replaces others holds their resources); for acknowledgements and duplicates there are
 * order_others_max() more. Stage responder_exec.
 */
#include "base/counters.h"
#include "context/qp_context.h"
#include "pipeline/message.h"
#include "wire/psn.h"

/* Places for answers that hold no resource: duplicates of all that the peer may have outstanding,
 * and as many acknowledgements between them. */
static inline unsigned order_others_max(const struct qp *qp)
{
	return 2u * RTE_MAX(qp->max_dest_rd_atomic, 16);
}

/* Puts a copy of an answer in its place, or drops it (counted) if its kind has none left. The
 * packet stays the caller's. */
void order_put(const struct qp_table *t, struct counters *c, struct qp *qp,
	       const struct arrival *a);

/* The head is answered: takes it off and frees its resources. The list is not empty. */
void order_pop(struct qp *qp);

/* Drops all of it. */
void order_purge(struct qp *qp);

/* Does the list, which is not empty, end with a NAK after which nothing more follows? */
bool order_ends_in_fatal_nak(const struct qp *qp);

/* PSN of the next packet that this answer needs. */
static inline uint32_t order_next_psn(const struct answer *a)
{
	return psn_add(a->psn, a->done_packets);
}

#endif
