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

void fifo_init(struct doorbell_fifo *f, struct uar_page *page)
{
	*f = (struct doorbell_fifo){.page = page};
	TAILQ_INIT(&f->waiting);
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

/* One more doorbell waits, or one fewer; the dispatcher, if there is one, sees to it. The two calls
 * for one doorbell may come in the other order, from two threads: then the second undoes the
 * first. */
static void unrung_add(struct softhca_qp *qp)
{
	struct doorbell_fifo *f = qp->fifo;

	spin_lock(&f->lock);
	if (qp->waits++ == 0) {
		TAILQ_INSERT_TAIL(&f->waiting, qp, waiting);
		__atomic_store_n(&f->waiting_qps, f->waiting_qps + 1, __ATOMIC_RELAXED);
	}
	spin_unlock(&f->lock);
	if (__atomic_fetch_add(&qp->node.ctx->unrung, 1, __ATOMIC_RELAXED) == 0)
		events_wake(qp->node.ctx);
}

static void unrung_remove(struct softhca_qp *qp)
{
	struct doorbell_fifo *f = qp->fifo;

	spin_lock(&f->lock);
	if (--qp->waits == 0) {
		TAILQ_REMOVE(&f->waiting, qp, waiting);
		__atomic_store_n(&f->waiting_qps, f->waiting_qps - 1, __ATOMIC_RELAXED);
	}
	spin_unlock(&f->lock);
	__atomic_fetch_sub(&qp->node.ctx->unrung, 1, __ATOMIC_RELAXED);
}

/* Each doorbell that waits has a flag, so that it is counted once, whoever posts, rings or forgets it
 * at the same time. */
static void waits(struct softhca_qp *qp, uint8_t *flag)
{
	if (!__atomic_exchange_n(flag, 1, __ATOMIC_RELAXED))
		unrung_add(qp);
}

static bool waits_no_more(struct softhca_qp *qp, uint8_t *flag)
{
	if (!__atomic_exchange_n(flag, 0, __ATOMIC_RELAXED))
		return false;
	unrung_remove(qp);
	return true;
}

void ring_for_receives(struct softhca_qp *qp)
{
	if (!ring(qp, USER_NOP, qp->number << DOORBELL_QPN_SHIFT))
		waits(qp, &qp->receives_unrung);
}

void chain_waits(struct softhca_qp *qp)
{
	waits(qp, &qp->chain_unrung);
}

void chain_rung(struct softhca_qp *qp)
{
	qp->unrung.before = NULL;
	waits_no_more(qp, &qp->chain_unrung);
}

/* sq.lock is held. */
static void ring_chain(struct softhca_qp *qp)
{
	/* None, if it was forgotten just when it began to wait. */
	if (!qp->unrung.before || ring(qp, qp->unrung.word0, qp->unrung.word1))
		chain_rung(qp);
}

void unrung_forget(struct softhca_qp *qp)
{
	waits_no_more(qp, &qp->receives_unrung);
	chain_rung(qp);
}

/* Can some doorbell be rung that waits there? */
static bool may_ring(struct doorbell_fifo *f)
{
	bool room;

	if (!__atomic_load_n(&f->waiting_qps, __ATOMIC_RELAXED))
		return false;
	spin_lock(&f->lock);
	room = fifo_has_room(f);
	spin_unlock(&f->lock);
	return room;
}

/* If a doorbell that waits there can be rung: the queue pair that waits longest. From now on it is
 * the one that waits shortest, in case its doorbell cannot be rung now. */
static struct softhca_qp *first_waiting(struct doorbell_fifo *f)
{
	struct softhca_qp *qp = NULL;

	spin_lock(&f->lock);
	if (!TAILQ_EMPTY(&f->waiting) && fifo_has_room(f)) {
		qp = TAILQ_FIRST(&f->waiting);
		TAILQ_REMOVE(&f->waiting, qp, waiting);
		TAILQ_INSERT_TAIL(&f->waiting, qp, waiting);
	}
	spin_unlock(&f->lock);
	return qp;
}

static void ring_waiting(struct softhca_qp *qp)
{
	if (waits_no_more(qp, &qp->receives_unrung))
		ring_for_receives(qp);
	if (!spin_trylock(&qp->sq.lock))
		return; /* it is being posted to */
	ring_chain(qp);
	spin_unlock(&qp->sq.lock);
}

static void ring_all_waiting(struct doorbell_fifo *f)
{
	struct softhca_qp *qp;

	for (uint32_t n = __atomic_load_n(&f->waiting_qps, __ATOMIC_RELAXED); n; n--) {
		qp = first_waiting(f);
		if (!qp)
			break;
		ring_waiting(qp);
	}
}

void ring_unrung(struct softhca_context *ctx)
{
	for (struct doorbell_fifo *f = ctx->fifo; f < ctx->fifo + UAR_PAGES; f++) {
		/* The lock, without which no queue pair goes away, is others', too: not in vain. And
		 * do not wait: its holder may keep it for long, and a poller tries again. */
		if (!may_ring(f) || pthread_mutex_trylock(&ctx->lock))
			continue;
		ring_all_waiting(f);
		pthread_mutex_unlock(&ctx->lock);
	}
}
