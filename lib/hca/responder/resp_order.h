/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_RESP_ORDER_H
#define RESPONDER_RESP_ORDER_H
/*
 * The order of one QP's answers (C9-63, C9-101, C9-104, C9-110): a list in PSN order of what waits
 * in RespPktGen, the READ being answered at its head. Bounded: an acknowledgement that waits is
 * superseded by the next one, new READs and atomics are bounded by max_dest_rd_atomic, duplicates
 * by order_duplicates_max(). Stage responder_exec.
 */
#include "base/counters.h"
#include "context/qp_context.h"
#include "pipeline/message.h"
#include "wire/psn.h"

/* Entries of a QP's list beyond which duplicates are dropped: all that the peer may have
 * outstanding, and as many acknowledgements between them. */
static inline unsigned order_duplicates_max(const struct qp *qp)
{
	return 2u * RTE_MAX(qp->max_dest_rd_atomic, 16);
}

/* Puts an answer in its place. Takes ownership of m, which may be freed at once. Returns by how
 * many entries the list is longer now, less than 0: shorter. */
int order_put(struct counters *c, struct qp *qp, struct rte_mbuf *m);

/* The head is answered: takes it off, accounts for it, frees it. The list is not empty. */
void order_pop(struct qp *qp);

/* Gives all of it up; how many entries there were. */
unsigned order_purge(struct qp *qp);

/* A NAK behind which nothing comes any more waits at the end of the list, which is not empty. */
bool order_ends_in_fatal_nak(const struct qp *qp);

/* PSN of the next packet that this answer needs. */
static inline uint32_t order_next_psn(const struct arrival *a)
{
	return psn_add(a->response_psn, a->done_packets);
}

/* A READ or atomic is answered or given up: its resource is free again (C9-86). */
void order_account(struct qp *qp, const struct arrival *a);

#endif
