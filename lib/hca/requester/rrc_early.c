/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl: responses that came early. See the header. Stage requester_recv.
 */
#include "pipeline/frames.h"
#include "rrc_early.h"

/* PSN of the next response; false: no READ or atomic is outstanding. */
static bool next_response(struct engine *e, const struct qp *q, uint32_t *psn)
{
	const struct rd_element *rd = rd_head(e->mq, &q->mq.rd);

	if (rd)
		*psn = psn_add(rd->psn, q->rrc.read_packets);
	return rd;
}

void rrc_keep_early(struct rrc_work *w)
{
	uint32_t psn = w->a->headers.psn, next;
	struct qp *q = w->q;

	if (engine_setting(w->e, loss_recovery) == LOSS_RECOVERY_STANDARD ||
	    !next_response(w->e, q, &next) ||
	    !early_keep(w->e, w->e->rrc->early, q, w->m, psn, next))
		return;
	arrival_of(w->m)->icrc_bytes = 0; /* it is intact */
	w->kept = true;
	q->rrc.early_waits = 1;
	count(w->c, COUNTER_responses_kept);
}

void rrc_look_early(struct engine *e, struct qp *q)
{
	struct rrc *rrc = e->rrc;
	uint32_t next;

	if (likely(!q->rrc.early_waits))
		return;
	if (!next_response(e, q, &next) || !early_pass(rrc->early, q, next))
		rrc_drop_early(e, q);
	else if (early_has(rrc->early, q, next))
		qp_list_add(&rrc->filled, q);
}

void rrc_drop_early(struct engine *e, struct qp *q)
{
	early_drop(e->rrc->early, q);
	qp_list_remove(&e->rrc->filled, q);
	q->rrc.early_waits = 0;
}

unsigned rrc_take_early(struct engine *e)
{
	struct rte_mbuf *m, *over[BURST];
	struct rrc *rrc = e->rrc;
	unsigned n = 0;
	uint32_t next;
	struct qp *q;

	while (n < BURST && !rrc->holds && (q = qp_list_take(&rrc->filled))) {
		if (!next_response(e, q, &next) || !(m = early_take(rrc->early, q, next)))
			continue;
		if (rrc_take_one(e, m))
			over[n++] = m;
		else
			rrc->held[rrc->holds++] = m;
	}
	frames_free(e, over, n);
	return n + rrc->holds;
}
