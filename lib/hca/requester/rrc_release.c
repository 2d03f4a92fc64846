/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl: takes what is outstanding out of MultiQueue, in order: acknowledged packets
 * and answered READs, which complete their requests, and everything when the queue pair fails
 * (state FLUSH). Writes qp.rrc and the consumer's side of qp.mq. Stage requester_recv.
 */
#include "outstanding.h"
#include "pipeline/frames.h"
#include "retransmission.h"
#include "rrc_early.h"
#include "rrc_release.h"
#include "scatter_entry_manager.h"
#include "send_completion.h"

void rrc_advance(struct engine *e, struct qp *q, uint32_t unacked)
{
	uint32_t acked;

	if (unacked == q->rrc.unacked_psn)
		return;
	acked = psn_sub(unacked, q->rrc.unacked_psn);
	__atomic_store_n(&q->rrc.answered_ns, engine_now(e), __ATOMIC_RELAXED);
	__atomic_store_n(&q->rrc.unacked_psn, unacked, __ATOMIC_RELEASE);
	qp_progress(e, q);
	__atomic_store_n(&q->rrc.proven, 1, __ATOMIC_RELAXED);
	q->rrc.retry_left = q->retry_cnt;
	q->rrc.rnr_left = q->rnr_retry;
	retransmit_acked(e, q, acked);
}

/* Our references to acknowledged packets. They are freed in batches: each is in cache lines that
 * have not been touched since it was sent, and the misses of a batch overlap. */
struct released {
	struct rte_mbuf *m[BURST];
	unsigned count;
};

static void released_free(struct engine *e, struct released *r)
{
	if (r->count)
		frames_free(e, r->m, r->count);
	r->count = 0;
}

static inline void released_add(struct engine *e, struct released *r, struct rte_mbuf *m)
{
	if (unlikely(!m)) /* a local operation */
		return;
	if (unlikely(r->count == BURST))
		released_free(e, r);
	rte_prefetch0(m);
	r->m[r->count++] = m;
}

void rrc_release(struct engine *e, struct qp *q, uint32_t upto)
{
	uint32_t unacked = q->rrc.unacked_psn, left = mq_count(&q->mq.sw), n = 0;
	struct rd_element *rd = rd_head(e->mq, &q->mq.rd);
	const struct sw_element *sw = sw_head(e->mq, &q->mq.sw);
	struct send_completions completions;
	struct released done;

	done.count = 0;
	completions_begin(&completions, q);
	while (n < left && psn_before_eq(sw->psn, upto) && !read_is_older(sw, rd)) {
		if (unlikely(psn_after(sw_last_psn(sw), upto))) { /* the rest of a train stays */
			unacked = psn_add(upto, 1);
			break;
		}
		released_add(e, &done, sw->m);
		completions_add(e, q, &completions, sw->flags, sw->wqe_offset, sw->opcode,
				sw->length);
		unacked = psn_add(sw_last_psn(sw), 1);
		if (++n < left)
			sw = &e->mq->sw[sw->next];
	}
	completions_post(e, q, &completions);
	if (n)
		sw_pop_run(e->mq, &q->mq.sw, n);
	released_free(e, &done);
	mq_discharge(&e->mq->sw_free, q, n);
	if (rd && psn_before_eq(rd->psn, upto))
		unacked = psn_add(rd->psn, q->rrc.read_packets);
	rrc_advance(e, q, unacked);
}

bool rrc_read_in_the_way(struct engine *e, const struct qp *q, uint32_t upto)
{
	const struct rd_element *rd = rd_head(e->mq, &q->mq.rd);

	return rd && psn_before_eq(rd->psn, upto);
}

void rrc_release_local(struct engine *e, struct qp *q)
{
	if (!mq_count(&q->mq.sw))
		return;
	rrc_release(e, q, psn_sub(q->rrc.unacked_psn, 1));
}

static void drop_packet(struct engine *e, struct qp *q)
{
	sw_pop(e->mq, &q->mq.sw);
	mq_discharge(&e->mq->sw_free, q, 1);
}

static void drop_read(struct engine *e, struct qp *q)
{
	rd_pop(e->mq, &q->mq.rd);
	mq_discharge(&e->mq->rd_free, q, 1);
}

/* Has what follows the READ been acknowledged while it waited for responses? */
static __rte_noinline void release_behind(struct engine *e, struct qp *q)
{
	uint32_t psn = psn_sub(q->repeat.ack_behind, 1);

	if (psn_sub(psn, q->rrc.unacked_psn) < qp_outstanding(q))
		rrc_release(e, q, psn);
	if (!rrc_read_in_the_way(e, q, psn))
		q->repeat.ack_behind = 0;
}

void rrc_complete_read(struct engine *e, struct qp *q, struct rd_element *rd,
		       struct send_completions *completions)
{
	completions_add(e, q, completions, rd->flags, rd->wqe_offset, rd->opcode, rd->length);
	sem_pop(e, q, rd->entries);
	rd_pop(e->mq, &q->mq.rd);
}

void rrc_release_reads(struct engine *e, struct qp *q, uint32_t reads, uint32_t entries,
		       uint32_t unacked)
{
	sem_released(e, q, entries);
	mq_discharge(&e->mq->rd_free, q, reads);
	__atomic_store_n(&q->rrc.read_packets, 0, __ATOMIC_RELAXED);
	q->rrc.read_asked = 0;
	q->rrc.gap_psn = 0;
	__atomic_store_n(&q->rrc.reads_done, q->rrc.reads_done + reads, __ATOMIC_RELEASE);
	rrc_advance(e, q, unacked);
	if (unlikely(q->repeat.ack_behind))
		release_behind(e, q);
	rrc_release_local(e, q);
}

void rrc_release_read(struct engine *e, struct qp *q, struct rd_element *rd)
{
	uint32_t entries = rd->entries, unacked = psn_add(rd->psn, rd->packets);
	struct send_completions completion;

	completions_begin(&completion, q);
	rrc_complete_read(e, q, rd, &completion);
	completions_post(e, q, &completion);
	sem_note(e, 1);
	rrc_release_reads(e, q, 1, entries, unacked);
}

/*
 * The QP is in ERR: completes a request, or one packet of it, that will not be executed; `last`:
 * nothing of it follows. The first one completes as `first`, the others as flushed. A request of
 * several packets completes once: the one that failed, with the packet that did; others with their
 * last packet or, if that was never sent, as a bad request later. Packets that follow belong to the
 * same request until its last one.
 */
static void complete_failed(struct engine *e, struct qp *q, enum wire_outcome first,
			    uint32_t offset, uint8_t opcode, bool last)
{
	bool reported = q->rrc.fatal;

	q->rrc.flushed = 1;
	if (first != OUTCOME_FLUSH || (last && !reported))
		requester_complete(e, q, first, offset, opcode, 0);
	if (first != OUTCOME_FLUSH || reported)
		q->rrc.fatal = !last;
}

/*
 * The context's numbers are no longer updated: ERR is left only through RST.
 *
 * RequesterTransControl may be in the middle of a visit that began before ERR: it puts an element,
 * then moves NPSN past it, and at the end wakes us if NPSN is not UPSN. So NPSN is read before the
 * lists: an element that comes too late for them leaves the two different.
 */
enum rrc_state rrc_step_flush(struct rrc_work *w)
{
	struct engine *e = w->e;
	struct qp *q = w->q;
	enum wire_outcome first = w->outcome;
	uint32_t next_psn = qp_next_psn(q);
	struct sw_element *sw;
	struct rd_element *rd;

	rrc_drop_early(e, q);
	if (!q->rrc.flushed) /* else a local operation was added after the others were flushed */
		rrc_release_local(e, q);
	while (mq_heads(e->mq, &q->mq.sw, &q->mq.rd, &sw, &rd)) {
		if (read_is_older(sw, rd)) {
			complete_failed(e, q, first, rd->wqe_offset, rd->opcode, true);
			sem_release(e, q, rd->entries);
			drop_read(e, q);
		} else {
			/* Each time: RequesterTransControl may have added it just now. */
			qp_payload_ends(q);
			complete_failed(e, q, first, sw->wqe_offset, sw->opcode,
					sw->flags & ELEMENT_LAST);
			rte_pktmbuf_free(sw->m);
			drop_packet(e, q);
		}
		first = OUTCOME_FLUSH;
	}
	__atomic_store_n(&q->rrc.unacked_psn, next_psn, __ATOMIC_RELEASE);
	return RRC_IDLE;
}

void rrc_release_all(struct engine *e, struct qp *q)
{
	struct sw_element *sw;

	while ((sw = sw_head(e->mq, &q->mq.sw))) {
		rte_pktmbuf_free(sw->m);
		drop_packet(e, q);
	}
	while (mq_count(&q->mq.rd))
		drop_read(e, q);
	while (mq_count(&q->mq.re))
		sem_take(e, q);
}
