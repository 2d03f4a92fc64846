/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings doorbells. Hot path: no system call except to wake a sleeping daemon. Any thread.
 *
 * Posting never waits. While the doorbell FIFO is full the requests of a queue pair form one chain
 * in its queue, whose doorbell is rung once there is room: by the next post, by the next poll of a
 * CQ, or by the dispatcher.
 */
#include <unistd.h>
#include "context.h"
#include "doorbell.h"
#include "events.h"

enum { KICKS = 64 }; /* between two looks whether the daemon is alive */

/* `rung`: doorbells so far. A dead daemon, which may have died asleep, takes kicks, too. */
static void kick(struct softhca_context *ctx, uint32_t rung)
{
	static const uint64_t one = 1;

	if (rung % KICKS == 0 && ctx_gone(ctx))
		return;
	if (write(ctx->kick, &one, sizeof(one)) < 0)
		return; /* full: so many kicks have not been counted */
}

/* Its lock is held. */
static inline bool fifo_has_room(struct doorbell_fifo *f)
{
	if (likely(f->produced - f->consumed < UAR_DOORBELLS))
		return true;
	f->consumed = __atomic_load_n(&f->page->consumer_index, __ATOMIC_ACQUIRE);
	return f->produced - f->consumed < UAR_DOORBELLS;
}

bool ring(struct softhca_qp *qp, uint32_t word0, uint32_t word1)
{
	struct doorbell_fifo *f = qp->fifo;
	struct uar_page *uar = f->page;
	uint32_t phase, rung;

	spin_lock(&f->lock);
	if (unlikely(!fifo_has_room(f))) {
		spin_unlock(&f->lock);
		return false;
	}
	publish_cpu(uar);
	phase = f->produced / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;
	/* An exchange, because it is also the fence between the doorbell and the read of
	 * daemon_asleep. */
	__atomic_exchange_n(&uar->doorbell[f->produced % UAR_DOORBELLS],
			    (uint64_t)word1 << 32 | word0 | phase, __ATOMIC_SEQ_CST);
	rung = ++f->produced;
	spin_unlock(&f->lock);
	if (unlikely(__atomic_load_n(&uar->daemon_asleep, __ATOMIC_RELAXED)))
		kick(qp->node.ctx, rung);
	return true;
}

/* ---- doorbells for which there was no room ---- */

void unrung_add(struct softhca_qp *qp)
{
	__atomic_fetch_add(&qp->fifo->unrung, 1, __ATOMIC_RELAXED);
	if (__atomic_fetch_add(&qp->node.ctx->unrung, 1, __ATOMIC_RELAXED) == 0)
		events_wake(qp->node.ctx);
}

static void unrung_remove(struct softhca_qp *qp)
{
	__atomic_fetch_sub(&qp->fifo->unrung, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&qp->node.ctx->unrung, 1, __ATOMIC_RELAXED);
}

void ring_for_receives(struct softhca_qp *qp)
{
	if (!ring(qp, USER_NOP, qp->number << DOORBELL_QPN_SHIFT) &&
	    !__atomic_exchange_n(&qp->receives_unrung, 1, __ATOMIC_RELAXED))
		unrung_add(qp);
}

void chain_rung(struct softhca_qp *qp)
{
	if (!qp->unrung.before)
		return;
	qp->unrung.before = NULL;
	unrung_remove(qp);
}

/* sq.lock is held. */
static void ring_chain(struct softhca_qp *qp)
{
	if (qp->unrung.before && ring(qp, qp->unrung.word0, qp->unrung.word1))
		chain_rung(qp);
}

void unrung_forget(struct softhca_qp *qp)
{
	if (__atomic_exchange_n(&qp->receives_unrung, 0, __ATOMIC_RELAXED))
		unrung_remove(qp);
	chain_rung(qp);
}

/* Is there room for some doorbell that waits? */
static bool some_may_ring(struct softhca_context *ctx)
{
	bool room = false;

	for (struct doorbell_fifo *f = ctx->fifo; !room && f < ctx->fifo + UAR_PAGES; f++) {
		if (!__atomic_load_n(&f->unrung, __ATOMIC_RELAXED))
			continue;
		spin_lock(&f->lock);
		room = fifo_has_room(f);
		spin_unlock(&f->lock);
	}
	return room;
}

void ring_unrung(struct softhca_context *ctx)
{
	/* Do not wait: the holder of the context's lock may keep it for long, and a poller tries
	 * again. */
	if (!some_may_ring(ctx) || pthread_mutex_trylock(&ctx->lock))
		return;
	for (struct node *at = ctx->nodes[NODE_QP]; at; at = at->next) {
		struct softhca_qp *qp = (struct softhca_qp *)at;

		if (__atomic_exchange_n(&qp->receives_unrung, 0, __ATOMIC_RELAXED)) {
			unrung_remove(qp);
			ring_for_receives(qp);
		}
		if (!spin_trylock(&qp->sq.lock))
			continue; /* it is being posted to */
		ring_chain(qp);
		spin_unlock(&qp->sq.lock);
	}
	pthread_mutex_unlock(&ctx->lock);
}
