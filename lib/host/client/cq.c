/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: create, poll, arm. Polling is the hot path: an entry belongs to software while
 * its owner bit is clear. It is returned by setting the bit, and one store of the consumer index
 * returns all entries of a call. An empty CQ is found without a lock. Any thread.
 */
#include <stdlib.h>
#include <string.h>
#include "base/monotonic.h"
#include "context.h"
#include "cq.h"
#include "doorbell.h"
#include "events.h"
#include "orphans.h"
#include "qp.h"
#include "regions.h"
#include "srq.h"

enum {
	CQ_ENTRIES_MIN = 2,
	IDLE_POLLS = 1 << 15, /* empty polls between two checks of the socket */
	YIELD_POLLS = 1 << 9, /* and between two yields, of a CQ that yields: some microseconds */
	/* A yield that took longer than this let another thread run; one that took very long, a
	 * thread that does not yield. */
	YIELD_NS_RUN = 1000,
	YIELD_NS_HOGGED = 50000,
	AHEAD = 8, /* entries from the one that is taken to the one that is prefetched */
};

/* ---- create and destroy ---- */

static void give_all(struct cqe *buffer, uint32_t entries)
{
	for (uint32_t i = 0; i < entries; i++)
		buffer[i].owner = CQE_OWNER_HW;
}

static int cq_register(struct softhca_cq *cq)
{
	struct control_cq in = {
		.log_entries = (uint32_t)__builtin_ctz(cq->entries),
		.lkey = cq->memory.chunk->lkey,
		.buffer_va = (uintptr_t)cq->buffer,
		.record_va = (uintptr_t)cq->record,
	};

	give_all(cq->buffer, cq->entries);
	return ctx_call_for_number(cq->node.ctx, CONTROL_CREATE_CQ, &in, sizeof(in), &cq->number);
}

/* context.lock is held. */
static int cq_make(struct softhca_context *ctx, struct softhca_cq *cq)
{
	size_t buffer_bytes = (size_t)cq->entries * sizeof(struct cqe);
	int rc = queue_memory_get(ctx, sizeof(struct cq_record) + buffer_bytes, &cq->memory);

	if (rc)
		return rc;
	cq->node.ctx = ctx;
	/* The record comes first: it stays when the buffer is replaced. */
	cq->record = (struct cq_record *)cq->memory.addr;
	cq->buffer = (struct cqe *)(cq->record + 1);
	rc = cq_register(cq);
	if (rc) {
		queue_memory_put(ctx, &cq->memory);
		return rc;
	}
	node_add(ctx, &cq->node, NODE_CQ);
	if (cq->channel)
		cq->channel->node.users++;
	return 0;
}

struct softhca_cq *softhca_create_cq(struct softhca_context *ctx, uint32_t entries, void *user,
				     struct softhca_channel *channel)
{
	struct softhca_cq *cq;
	uint32_t n;
	int rc;

	if (entries == 0 || entries > ctx->hello.max_cqe) {
		errno = EINVAL;
		return NULL;
	}
	n = round_up(entries, CQ_ENTRIES_MIN);
	cq = aligned_alloc(64, sizeof(*cq));
	if (!cq)
		return NULL;
	memset(cq, 0, sizeof(*cq));
	cq->entries = n;
	cq->mask = n - 1;
	cq->idle_mask = IDLE_POLLS - 1;
	cq->user = user;
	cq->channel = channel;
	pthread_mutex_lock(&ctx->lock);
	rc = cq_make(ctx, cq);
	pthread_mutex_unlock(&ctx->lock);
	if (rc) {
		free(cq);
		errno = -rc;
		return NULL;
	}
	return cq;
}

void cq_free(struct softhca_cq *cq)
{
	free(cq);
}

int softhca_destroy_cq(struct softhca_cq *cq)
{
	struct softhca_context *ctx = cq->node.ctx;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = node_destroy(&cq->node, CONTROL_DESTROY_CQ, cq->number);
	if (!rc) {
		events_drain(ctx);
		node_remove(&cq->node);
		if (cq->channel)
			cq->channel->node.users--;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (rc)
		return rc;
	events_forget(&cq->node);
	pthread_mutex_lock(&ctx->lock);
	queue_memory_put(ctx, &cq->memory);
	queue_memory_put(ctx, &cq->moved);
	pthread_mutex_unlock(&ctx->lock);
	cq_free(cq);
	return 0;
}

void *softhca_cq_user(const struct softhca_cq *cq)
{
	return cq->user;
}

uint32_t softhca_cq_number(const struct softhca_cq *cq)
{
	return cq->number;
}

uint32_t softhca_cq_entries(const struct softhca_cq *cq)
{
	return __atomic_load_n(&cq->entries, __ATOMIC_RELAXED);
}

/* ---- poll ---- */

static const struct {
	uint8_t opcode; /* enum softhca_wc_opcode */
	uint8_t flags;
} successes[USER_OPCODES] = {
#define SOFTHCA_WC_WITH_NOTHING 0
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	[USER_##id] = {SOFTHCA_WC_##wc, 0},
#define COMPLETION(id, code, wc, flags) [USER_##id] = {SOFTHCA_WC_##wc, SOFTHCA_WC_WITH_##flags},
#include "host-abi/user_opcodes.def"
};

static uint32_t cq_status_of(uint8_t syndrome)
{
	switch (syndrome) {
	case SYNDROME_LOCAL_LENGTH:
		return SOFTHCA_WC_LOC_LEN_ERR;
	case SYNDROME_LOCAL_QP_OP:
		return SOFTHCA_WC_LOC_QP_OP_ERR;
	case SYNDROME_LOCAL_EEC_OP:
		return SOFTHCA_WC_LOC_EEC_OP_ERR;
	case SYNDROME_LOCAL_PROT:
		return SOFTHCA_WC_LOC_PROT_ERR;
	case SYNDROME_WR_FLUSH:
		return SOFTHCA_WC_WR_FLUSH_ERR;
	case SYNDROME_MW_BIND:
		return SOFTHCA_WC_MW_BIND_ERR;
	case SYNDROME_BAD_RESP:
		return SOFTHCA_WC_BAD_RESP_ERR;
	case SYNDROME_LOCAL_ACCESS:
		return SOFTHCA_WC_LOC_ACCESS_ERR;
	case SYNDROME_REMOTE_INVAL_REQ:
		return SOFTHCA_WC_REM_INV_REQ_ERR;
	case SYNDROME_REMOTE_ACCESS:
		return SOFTHCA_WC_REM_ACCESS_ERR;
	case SYNDROME_REMOTE_OP:
		return SOFTHCA_WC_REM_OP_ERR;
	case SYNDROME_RETRY_EXC:
		return SOFTHCA_WC_RETRY_EXC_ERR;
	case SYNDROME_RNR_RETRY_EXC:
		return SOFTHCA_WC_RNR_RETRY_EXC_ERR;
	case SYNDROME_REMOTE_ABORTED:
		return SOFTHCA_WC_REM_ABORT_ERR;
	default:
		return SOFTHCA_WC_GENERAL_ERR;
	}
}

/* The QP of a completion with an error. RC fails as a whole; on UC and UD a failed send stops only
 * the send queue. */
static void cq_fail(struct softhca_qp *qp, const struct cqe *e)
{
	qp_failed(qp, qp->type == SOFTHCA_QP_RC || !e->is_send ? SOFTHCA_QPS_ERR : SOFTHCA_QPS_SQE);
}

static inline bool failed(const struct cqe *e)
{
	return e->opcode == USER_INVALID;
}

/* All of it but wr_id. */
static inline void wc_of(const struct cqe *e, struct softhca_wc *wc)
{
	wc->qp_num = __atomic_load_n(&e->my_qpn, __ATOMIC_RELAXED);
	if (unlikely(failed(e))) {
		wc->status = cq_status_of((uint8_t)e->imm_or_error);
		wc->vendor_err = e->imm_or_error >> 8 & 0xff;
		wc->opcode = e->is_send ? SOFTHCA_WC_SEND : SOFTHCA_WC_RECV;
		wc->byte_len = 0;
		wc->wc_flags = 0;
		return;
	}
	wc->status = SOFTHCA_WC_SUCCESS;
	wc->opcode = successes[e->opcode & (USER_OPCODES - 1)].opcode;
	wc->vendor_err = 0;
	wc->byte_len = e->byte_count;
	wc->imm_data = e->imm_or_error;
	wc->src_qp = e->remote_qpn;
	wc->wc_flags = successes[e->opcode & (USER_OPCODES - 1)].flags |
		       (e->rlid_flags & CQE_HAS_GRH ? SOFTHCA_WC_GRH : 0);
	wc->pkey_index = 0;
	wc->slid = (uint16_t)(e->rlid_flags >> 16);
	wc->sl = (uint8_t)e->rlid_flags;
	wc->dlid_path_bits = 0;
}

/* The wr_id of the completed request. It and all earlier ones leave the queue. */
static inline uint64_t retire(struct work_queue *q, uint32_t offset)
{
	uint32_t index = offset >> q->shift & q->mask, tail = q->tail;

	__atomic_store_n(&q->tail, tail + ((index - tail) & q->mask) + 1, __ATOMIC_RELEASE);
	return q->wr_id[index];
}

/* The QP with that number. NULL: it has been destroyed, or completes into other CQs, so that its
 * destruction would not remove it from cq->last. */
static struct softhca_qp *completes_here(const struct softhca_cq *cq, uint32_t number)
{
	struct softhca_qp *qp = qp_lookup(cq->node.ctx, number);

	return qp && (qp->send_cq == cq || qp->recv_cq == cq) ? qp : NULL;
}

/* The request that has completed leaves its queue; *wr_id is its. Its QP; NULL: drop the completion. */
static inline struct softhca_qp *cq_retire(struct softhca_cq *cq, const struct cqe *e,
					   uint64_t *wr_id)
{
	struct softhca_qp *qp = cq->last;
	bool is_send = e->is_send;

	if (unlikely(!qp || qp->number != e->my_qpn)) {
		qp = completes_here(cq, e->my_qpn);
		if (!qp)
			return NULL;
		cq->last = qp;
	}
	if (unlikely(!is_send && !qp->rq.buffer)) {
		if (!qp->srq)
			return NULL;
		*wr_id = srq_retire(qp->srq, e->wqe_offset);
	} else {
		*wr_id = retire(is_send ? &qp->sq : &qp->rq, e->wqe_offset);
	}
	return qp;
}

/* False: drop the completion. */
static inline bool cq_take(struct softhca_cq *cq, const struct cqe *e, struct softhca_wc *wc)
{
	struct softhca_qp *qp = cq_retire(cq, e, &wc->wr_id);

	if (unlikely(!qp))
		return false;
	wc_of(e, wc);
	if (unlikely(failed(e)))
		cq_fail(qp, e);
	return true;
}

static inline bool ours(const struct cqe *e)
{
	/* opcode, is_send, reserved, owner: one word, written last */
	return !(__atomic_load_n((const uint32_t *)&e->opcode, __ATOMIC_ACQUIRE) &
		 (uint32_t)CQE_OWNER_HW << 24);
}

/* The page of the engine that the lowest bit stands for. */
static inline struct uar_page *page_of(const struct softhca_context *ctx, uint32_t engines)
{
	return &ctx->page->uar[__builtin_ctz(engines)];
}

/* Is the engine's lcore on that CPU, and its thread waiting for it? */
static inline bool waits_for(const struct uar_page *uar, uint32_t cpu)
{
	return cpu == __atomic_load_n(&uar->daemon_cpu, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&uar->daemon_asleep, __ATOMIC_RELAXED);
}

/* Is the lcore's thread of some engine with our QPs waiting for the CPU that we are on? */
static inline bool on_daemons_cpu(const struct softhca_context *ctx)
{
	uint32_t here = cpu_here(), left = __atomic_load_n(&ctx->engines, __ATOMIC_RELAXED);

	for (; here && left; left &= left - 1)
		if (waits_for(page_of(ctx, left), here))
			return true;
	return false;
}

/* The CQ is empty, and the daemon needs the CPU that we are on. It yields to us, too, while it sees
 * that we yield. */
static void tell_daemon(struct softhca_context *ctx)
{
	uint32_t left = __atomic_load_n(&ctx->engines, __ATOMIC_RELAXED);

	for (; left; left &= left - 1) {
		struct uar_page *uar = page_of(ctx, left);

		if (!waits_for(uar, cpu_here()))
			continue;
		publish_cpu(uar);
		if (!__atomic_load_n(&uar->client_yields, __ATOMIC_RELAXED))
			__atomic_store_n(&uar->client_yields, 1, __ATOMIC_RELAXED);
	}
	if (!__atomic_load_n(&ctx->yields, __ATOMIC_RELAXED))
		__atomic_store_n(&ctx->yields, 1, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) void yield_to_daemon(struct softhca_context *ctx)
{
	tell_daemon(ctx);
	sched_yield();
}

/* A completion has arrived, perhaps the one that we yielded for. */
static __attribute__((noinline)) void yield_no_more(struct softhca_context *ctx)
{
	__atomic_store_n(&ctx->yields, 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < UAR_PAGES; i++)
		if (__atomic_load_n(&ctx->page->uar[i].client_yields, __ATOMIC_RELAXED))
			__atomic_store_n(&ctx->page->uar[i].client_yields, 0, __ATOMIC_RELAXED);
}

/* A thread that polls on our CPU as we do, such as the peer that we poll for, would have to wait for
 * our time slice to end: while one runs when we yield, each empty poll yields. One that keeps the CPU
 * for long gets it no more often than before. */
static void yield_and_learn(struct softhca_cq *cq, uint32_t idle)
{
	uint64_t began_ns = monotonic_ns(), looked_ns = monotonic_ns() - began_ns, took_ns;
	uint32_t mask = YIELD_POLLS - 1;

	sched_yield();
	took_ns = monotonic_ns() - began_ns - 2 * looked_ns; /* some clocks are system calls */
	/* If nothing comes for long, that is not what we wait for. */
	if ((int64_t)took_ns > YIELD_NS_RUN && took_ns < YIELD_NS_HOGGED && idle < 2 * YIELD_POLLS)
		mask = 0;
	__atomic_store_n(&cq->idle_mask, mask, __ATOMIC_RELAXED);
}

/* The CQ has been empty for a while, or the daemon is dead. Is it? No lock is held. */
static __attribute__((noinline)) bool found_idle(struct softhca_cq *cq, uint32_t idle)
{
	struct softhca_context *ctx = cq->node.ctx;

	if (cq->yields) {
		if (on_daemons_cpu(ctx))
			tell_daemon(ctx);
		yield_and_learn(cq, idle);
	}
	return (idle % IDLE_POLLS == 0 || ctx_dead(ctx)) && !ctx_alive(ctx);
}

/* A poll has found nothing. True: nothing will come, the daemon is dead. Several threads may count
 * at once: that some polls are not counted does no harm. No lock is held. */
static inline bool found_empty(struct softhca_cq *cq)
{
	struct softhca_context *ctx = cq->node.ctx;
	uint32_t idle = __atomic_load_n(&cq->idle, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&cq->idle, idle, __ATOMIC_RELAXED);
	if (unlikely(!(idle & __atomic_load_n(&cq->idle_mask, __ATOMIC_RELAXED)) || ctx_dead(ctx)))
		return found_idle(cq, idle);
	if (unlikely(on_daemons_cpu(ctx)))
		yield_to_daemon(ctx);
	return false;
}

void softhca_yield_when_empty(struct softhca_cq *cq)
{
	cq->idle_mask = YIELD_POLLS - 1;
	cq->yields = true;
}

/* The entry to be polled next, if it can be looked at without the lock. cq.lock is held. */
static inline void show_next(struct softhca_cq *cq)
{
	const struct cqe *e = cq->resized ? NULL : &cq->buffer[cq->consumed & cq->mask];

	__atomic_store_n(&cq->next, e, __ATOMIC_RELAXED);
}

/* Entries are about to be returned, and so to look as if nobody had written them: who looks without
 * the lock must not take them for the next one. cq.lock is held. */
static inline void hide_next(struct softhca_cq *cq)
{
	__atomic_store_n(&cq->next, NULL, __ATOMIC_RELAXED);
}

/* Finds the usual empty CQ without its lock. False: look again, with it. */
static inline bool looks_empty(const struct softhca_cq *cq)
{
	const struct cqe *e = __atomic_load_n(&cq->next, __ATOMIC_RELAXED);

	return e && !ours(e) && __atomic_load_n(&cq->next, __ATOMIC_RELAXED) == e;
}

/* Returns an entry, after hide_next(). */
static inline void give(struct cqe *e)
{
	__atomic_store_n(&e->owner, CQE_OWNER_HW, __ATOMIC_RELEASE);
}

/* The entries before `consumed` have been returned, at least one. cq.lock is held. */
static inline void took(struct softhca_cq *cq, uint32_t consumed)
{
	cq->consumed = consumed;
	__atomic_store_n(&cq->idle, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&cq->record->consumer_index, consumed, __ATOMIC_RELEASE);
	if (unlikely(__atomic_load_n(&cq->node.ctx->yields, __ATOMIC_RELAXED)))
		yield_no_more(cq->node.ctx);
}

/* ---- a poll in pieces ---- */

/*
 * softhca_next_poll() takes no lock: what it returns are copies of entries, taken some at a time under
 * cq.lock. Only the thread that has opened the poll advances taken_at; while none has, the holder of
 * cq.lock does. What it leaves is returned by the next poll, of whichever kind.
 */

static inline uint32_t taken_left(const struct softhca_cq *cq)
{
	return cq->taken_end - __atomic_load_n(&cq->taken_at, __ATOMIC_RELAXED);
}

static inline bool is_open(const struct softhca_cq *cq)
{
	return __atomic_load_n(&cq->open, __ATOMIC_ACQUIRE);
}

/* Waits until no other thread has a poll open. cq.lock is held, but not meanwhile. */
static inline void wait_for_opener(struct softhca_cq *cq)
{
	while (unlikely(is_open(cq))) {
		spin_unlock(&cq->lock);
		sched_yield();
		spin_lock(&cq->lock);
	}
}

/* The next of those that were taken; NULL: there is none. The QPs of some may have been destroyed. */
static inline const struct taken *taken_next(struct softhca_cq *cq)
{
	uint32_t at = cq->taken_at;

	while (at != cq->taken_end) {
		const struct taken *t = &cq->taken[at++];

		__atomic_store_n(&cq->taken_at, at, __ATOMIC_RELAXED);
		if (likely(__atomic_load_n(&t->entry.my_qpn, __ATOMIC_RELAXED)))
			return t;
	}
	return NULL;
}

/* Takes entries, none being left of those before. One with an error is taken alone: its QP fails when
 * the program gets to it. Returns false if there is none. The caller has opened the poll; cq.lock is
 * held. */
static bool take_some(struct softhca_cq *cq)
{
	uint32_t consumed = cq->consumed, end = consumed + cq->mask + 1, n = 0;

	hide_next(cq);
	while (n < TAKEN_MAX && consumed != end) {
		struct cqe *e = &cq->buffer[consumed & cq->mask];
		struct taken *t = &cq->taken[n];
		struct softhca_qp *qp;

		if (!ours(e) || (unlikely(failed(e)) && n))
			break;
		__builtin_prefetch(&cq->buffer[(consumed + AHEAD) & cq->mask]);
		qp = cq_retire(cq, e, &t->wr_id);
		if (likely(qp)) {
			t->entry = *e;
			n++;
			if (unlikely(failed(e))) {
				cq_fail(qp, e);
				end = consumed + 1;
			}
		}
		give(e);
		consumed++;
	}
	if (consumed != cq->consumed)
		took(cq, consumed);
	if (!n) { /* taken[] still holds the completion found last */
		show_next(cq);
		return false;
	}
	__atomic_store_n(&cq->taken_at, 0, __ATOMIC_RELAXED);
	cq->taken_end = n;
	return true;
}

/* For softhca_poll_cq(): some were taken before, but not returned. While a poll is open they are its
 * own, and no other completion comes before them; another thread waits, since it may be about to
 * sleep until an event, of which they raise none. cq.lock is held. */
static __attribute__((noinline)) int poll_taken(struct softhca_cq *cq, int n, struct softhca_wc *wc)
{
	const struct taken *t;
	int done = 0;

	if (is_open(cq) && pthread_equal(cq->opener, pthread_self()))
		return 0;
	wait_for_opener(cq);
	while (done < n && (t = taken_next(cq))) {
		wc[done].wr_id = t->wr_id;
		wc_of(&t->entry, &wc[done++]);
	}
	return done;
}

/* The daemon is dead: takes a request that was outstanding. False: there is none. The caller has
 * opened the poll. */
static bool take_orphan(struct softhca_cq *cq)
{
	struct softhca_wc wc;

	if (!flush_orphans(cq, 1, &wc))
		return false;
	spin_lock(&cq->lock);
	cq->taken[0] = (struct taken){.wr_id = wc.wr_id,
				      .entry = {.my_qpn = wc.qp_num,
						.imm_or_error = SYNDROME_WR_FLUSH,
						.is_send = wc.opcode == SOFTHCA_WC_SEND,
						.opcode = USER_INVALID}};
	__atomic_store_n(&cq->taken_at, 0, __ATOMIC_RELAXED);
	cq->taken_end = 1;
	spin_unlock(&cq->lock);
	return true;
}

/* Fills what the program gets of a completion at once. */
static inline int poll_found(const struct taken *t, uint64_t *wr_id, uint32_t *status)
{
	*wr_id = t->wr_id;
	*status = likely(!failed(&t->entry)) ? SOFTHCA_WC_SUCCESS
					     : cq_status_of((uint8_t)t->entry.imm_or_error);
	return 0;
}

/* softhca_next_poll(), where none is left of those that were taken. */
static __attribute__((noinline)) int poll_more(struct softhca_cq *cq, uint64_t *wr_id,
					       uint32_t *status)
{
	const struct taken *t;
	bool some;

	do {
		spin_lock(&cq->lock);
		some = take_some(cq);
		spin_unlock(&cq->lock);
		if (unlikely(!some)) {
			if (likely(!found_empty(cq)))
				return -ENOENT;
			if (!take_orphan(cq))
				return -EIO;
		}
		t = taken_next(cq);
	} while (unlikely(!t));
	return poll_found(t, wr_id, status);
}

int softhca_next_poll(struct softhca_cq *cq, uint64_t *wr_id, uint32_t *status)
{
	const struct taken *t = taken_next(cq);

	return likely(t) ? poll_found(t, wr_id, status) : poll_more(cq, wr_id, status);
}

int softhca_start_poll(struct softhca_cq *cq, uint64_t *wr_id, uint32_t *status)
{
	int rc;

	if (unlikely(__atomic_load_n(&cq->node.ctx->unrung, __ATOMIC_RELAXED)))
		ring_unrung(cq->node.ctx);
	if (looks_empty(cq) && likely(!found_empty(cq)))
		return -ENOENT;
	spin_lock(&cq->lock);
	wait_for_opener(cq);
	cq->opener = pthread_self();
	__atomic_store_n(&cq->open, 1, __ATOMIC_RELAXED);
	if (taken_left(cq) == 0)
		take_some(cq);
	spin_unlock(&cq->lock);
	rc = softhca_next_poll(cq, wr_id, status);
	if (unlikely(rc))
		softhca_end_poll(cq);
	return rc;
}

void softhca_end_poll(struct softhca_cq *cq)
{
	__atomic_store_n(&cq->open, 0, __ATOMIC_RELEASE);
}

void softhca_polled_wc(const struct softhca_cq *cq, struct softhca_wc *wc)
{
	const struct taken *t = &cq->taken[cq->taken_at - 1];

	wc->wr_id = t->wr_id;
	wc_of(&t->entry, wc);
}

/* ---- a poll at once ---- */

/* softhca_poll_cq() of a CQ that is empty. */
static inline int poll_empty(struct softhca_cq *cq, int n, struct softhca_wc *wc)
{
	int done;

	if (likely(n <= 0 || !found_empty(cq)))
		return 0;
	done = flush_orphans(cq, n, wc);
	return done ? done : -EIO;
}

int softhca_poll_cq(struct softhca_cq *cq, int n, struct softhca_wc *wc)
{
	uint32_t consumed, end;
	int done = 0;

	if (unlikely(__atomic_load_n(&cq->node.ctx->unrung, __ATOMIC_RELAXED)))
		ring_unrung(cq->node.ctx);
	if (looks_empty(cq))
		return poll_empty(cq, n, wc);
	spin_lock(&cq->lock);
	if (unlikely(taken_left(cq))) {
		done = poll_taken(cq, n, wc);
		spin_unlock(&cq->lock);
		return done;
	}
	consumed = cq->consumed;
	end = consumed + cq->mask + 1; /* even if the daemon keeps writing */
	hide_next(cq);
	while (done < n && consumed != end) {
		struct cqe *e = &cq->buffer[consumed & cq->mask];

		if (!ours(e))
			break;
		__builtin_prefetch(&cq->buffer[(consumed + AHEAD) & cq->mask]);
		done += cq_take(cq, e, &wc[done]);
		give(e);
		consumed++;
	}
	end = cq->consumed;
	if (consumed != end)
		took(cq, consumed);
	show_next(cq);
	spin_unlock(&cq->lock);
	return consumed != end ? done : poll_empty(cq, n, wc);
}

/* ---- resize ---- */

/* The daemon already writes into the new buffer; move over what the old one holds, then poll the
 * new one. Completions that were due but unwritten when the daemon switched go to the new one. */
static void change_over(struct softhca_cq *cq, struct cqe *to, uint32_t mask)
{
	spin_lock(&cq->lock);
	for (uint32_t i = 0; i <= cq->mask; i++) {
		const struct cqe *e = &cq->buffer[(cq->consumed + i) & cq->mask];

		if (ours(e))
			to[(cq->consumed + i) & mask] = *e;
	}
	cq->buffer = to;
	cq->mask = mask;
	/* From now on the buffer may go away while someone looks at it without the lock. */
	cq->resized = true;
	show_next(cq);
	spin_unlock(&cq->lock);
}

/* Signaled requests of one send queue whose completions have not been polled. */
static uint32_t signaled(struct work_queue *sq)
{
	uint32_t n = 0;

	spin_lock(&sq->lock);
	for (uint32_t left = outstanding(sq); left; left--) {
		const size_t index = (sq->head - left) & sq->mask;
		const struct wqe_next *next =
			(const struct wqe_next *)(sq->buffer + (index << sq->shift));

		n += (next->flags & WQE_SIGNALED) != 0;
	}
	spin_unlock(&sq->lock);
	return n;
}

/* Completions of sends that are in the CQ or will be. context.lock is held. */
static uint32_t sends_due(const struct softhca_cq *cq)
{
	uint32_t n = 0;

	for (struct node *at = cq->node.ctx->nodes[NODE_QP]; at; at = at->next) {
		struct softhca_qp *qp = (struct softhca_qp *)at;

		if (qp->send_cq == cq)
			n += signaled(&qp->sq);
	}
	return n;
}

/* context.lock is held. */
static int cq_resize(struct softhca_cq *cq, uint32_t entries)
{
	struct softhca_context *ctx = cq->node.ctx;
	struct control_resize_cq in = {.cqn = cq->number,
				       .log_entries = (uint32_t)__builtin_ctz(entries)};
	struct queue_memory to;
	int rc = queue_memory_get(ctx, (size_t)entries * sizeof(struct cqe), &to);

	if (rc)
		return rc;
	give_all((struct cqe *)to.addr, entries);
	in.lkey = to.chunk->lkey;
	in.buffer_va = (uintptr_t)to.addr;
	rc = ctx_call(ctx, CONTROL_RESIZE_CQ, &in, sizeof(in), NULL, 0, -1, NULL);
	if (rc) {
		queue_memory_put(ctx, &to);
		return rc;
	}
	change_over(cq, (struct cqe *)to.addr, entries - 1);
	if (cq->moved.chunk)
		queue_memory_put(ctx, &cq->moved);
	else
		queue_memory_keep_first(&cq->memory);
	cq->moved = to;
	__atomic_store_n(&cq->entries, entries, __ATOMIC_RELAXED);
	return 0;
}

int softhca_resize_cq(struct softhca_cq *cq, uint32_t entries)
{
	struct softhca_context *ctx = cq->node.ctx;
	int rc = 0;

	if (entries == 0 || entries > ctx->hello.max_cqe)
		return -EINVAL;
	entries = round_up(entries, CQ_ENTRIES_MIN);
	pthread_mutex_lock(&ctx->lock);
	if (entries < cq->entries && sends_due(cq) > entries)
		rc = -EBUSY;
	else if (entries != cq->entries)
		rc = cq_resize(cq, entries);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* ---- arm ---- */

int softhca_req_notify_cq(struct softhca_cq *cq, int solicited_only)
{
	struct cq_record *record = cq->record;

	if (!cq->channel)
		return -EINVAL;
	__atomic_fetch_add(solicited_only ? &record->arm_solicited : &record->arm_next, 1,
			   __ATOMIC_SEQ_CST);
	/* Arm, then the caller polls once more: either it sees the completion or the daemon sees
	 * the request. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

void cq_forget(struct softhca_cq *cq, const struct softhca_qp *qp)
{
	spin_lock(&cq->lock);
	for (uint32_t i = cq->taken_end - taken_left(cq); i < cq->taken_end; i++)
		if (cq->taken[i].entry.my_qpn == qp->number)
			__atomic_store_n(&cq->taken[i].entry.my_qpn, 0, __ATOMIC_RELAXED);
	for (uint32_t i = cq->consumed; i - cq->consumed <= cq->mask; i++) {
		struct cqe *e = &cq->buffer[i & cq->mask];

		if (!ours(e))
			break;
		if (e->my_qpn != qp->number)
			continue;
		e->my_qpn = 0; /* no QP's */
		if (qp->srq && !e->is_send)
			srq_retire(qp->srq, e->wqe_offset);
	}
	if (cq->last == qp)
		cq->last = NULL;
	spin_unlock(&cq->lock);
}
