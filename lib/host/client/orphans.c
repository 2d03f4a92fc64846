/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completes the requests that were outstanding when the daemon died as flushed, as a driver does
 * when its device is lost. Receives of an SRQ stay posted. Any thread, never hot.
 */
#include "context.h"
#include "orphans.h"
#include "qp.h"

/* Flushes one queue; the poller's lock is held, so that no one else retires its requests. */
static int orphans_flush_queue(struct softhca_qp *qp, struct work_queue *q,
			       enum softhca_wc_opcode opcode, int n, struct softhca_wc *wc)
{
	int done = 0;
	uint32_t left;

	spin_lock(&q->lock);
	left = outstanding(q);
	spin_unlock(&q->lock);
	for (; done < n && left; left--) {
		wc[done++] = (struct softhca_wc){.wr_id = q->wr_id[q->tail & q->mask],
						 .status = SOFTHCA_WC_WR_FLUSH_ERR,
						 .opcode = opcode,
						 .qp_num = qp->number};
		__atomic_store_n(&q->tail, q->tail + 1, __ATOMIC_RELEASE);
	}
	if (done)
		qp_failed(qp, SOFTHCA_QPS_ERR);
	return done;
}

int flush_orphans(struct softhca_cq *cq, int n, struct softhca_wc *wc)
{
	struct softhca_context *ctx = cq->node.ctx;
	int done = 0;

	pthread_mutex_lock(&ctx->lock);
	spin_lock(&cq->lock);
	for (struct node *at = ctx->nodes[NODE_QP]; at; at = at->next) {
		struct softhca_qp *qp = (struct softhca_qp *)at;

		if (qp->send_cq == cq)
			done += orphans_flush_queue(qp, &qp->sq, SOFTHCA_WC_SEND, n - done,
						    wc + done);
		if (qp->recv_cq == cq && qp->rq.buffer)
			done += orphans_flush_queue(qp, &qp->rq, SOFTHCA_WC_RECV, n - done,
						    wc + done);
	}
	spin_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->lock);
	return done;
}
