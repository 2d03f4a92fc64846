/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: writes descriptors into the queues and rings doorbells. Hot path: no division, and no
 * system call except to wake a sleeping daemon. Any thread.
 *
 * Posting never waits. While the doorbell FIFO is full the requests of a queue pair form one chain
 * in its queue, whose doorbell is rung once there is room: by the next post, by the next poll of a
 * CQ, or by the dispatcher.
 */
#include <string.h>
#include <unistd.h>
#include "context.h"
#include "events.h"
#include "post.h"

/* ---- doorbells ---- */

static void kick(struct softhca_context *ctx)
{
	static const uint64_t one = 1;

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
	uint32_t phase;

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
	f->produced++;
	spin_unlock(&f->lock);
	if (unlikely(__atomic_load_n(&uar->daemon_asleep, __ATOMIC_RELAXED)))
		kick(qp->node.ctx);
	return true;
}

/* ---- doorbells for which there was no room ---- */

/* One more doorbell waits; the dispatcher, if there is one, sees to it from now on. */
static void doorbell_waits(struct softhca_qp *qp)
{
	__atomic_fetch_add(&qp->fifo->unrung, 1, __ATOMIC_RELAXED);
	if (__atomic_fetch_add(&qp->node.ctx->unrung, 1, __ATOMIC_RELAXED) == 0)
		events_wake(qp->node.ctx);
}

static void doorbell_rung(struct softhca_qp *qp)
{
	__atomic_fetch_sub(&qp->fifo->unrung, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&qp->node.ctx->unrung, 1, __ATOMIC_RELAXED);
}

void ring_for_receives(struct softhca_qp *qp)
{
	if (!ring(qp, USER_NOP, qp->number << DOORBELL_QPN_SHIFT) &&
	    !__atomic_exchange_n(&qp->receives_unrung, 1, __ATOMIC_RELAXED))
		doorbell_waits(qp);
}

/* The chain, if there is one, waits no more. */
static void chain_rung(struct softhca_qp *qp)
{
	if (!qp->unrung.before)
		return;
	qp->unrung.before = NULL;
	doorbell_rung(qp);
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
		doorbell_rung(qp);
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
			doorbell_rung(qp);
			ring_for_receives(qp);
		}
		if (!spin_trylock(&qp->sq.lock))
			continue; /* it is being posted to */
		ring_chain(qp);
		spin_unlock(&qp->sq.lock);
	}
	pthread_mutex_unlock(&ctx->lock);
}

/* ---- slots ---- */

/* Prefetches for writing. __builtin_prefetch() does so only where the target is known to have
 * PREFETCHW; a processor without it does nothing. */
static inline void prefetch_write(const void *p)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* Prefetches the slot AHEAD places further on, if it is free, for a descriptor as long as the one at
 * head. Its lines are in the cache of the daemon, which has read the last descriptor there; the locked
 * instructions of a post, and the stores behind, would wait for them. */
static inline void prefetch_slot(const struct work_queue *q, uint32_t head, uint32_t room,
				 uint32_t bytes)
{
	enum { AHEAD = 4, LINE = 64 };
	const uint8_t *slot = q->buffer + ((size_t)((head + AHEAD) & q->mask) << q->shift);

	if (unlikely(room <= AHEAD))
		return;
	prefetch_write(slot);
	for (uint32_t at = LINE; unlikely(at < bytes); at += LINE)
		prefetch_write(slot + at);
}

/* ---- send ---- */

static_assert((int)SOFTHCA_QP_RC == (int)SERVICE_RC && (int)SOFTHCA_QP_UC == (int)SERVICE_UC &&
		      (int)SOFTHCA_QP_UD == (int)SERVICE_UD,
	      "the same numbers");

/* By work request; those without a row have no service. */
static const struct operation {
	uint8_t user;	  /* enum user_opcode */
	uint8_t services; /* enum user_service */
	uint8_t traits;	  /* enum user_trait */
} operations[16] = {
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	[SOFTHCA_WR_##wr] = {USER_##id, services, traits},
#include "host-abi/user_opcodes.def"
};

/* Writes the units between next and data. Returns where the data begins. */
static inline uint8_t *post_put_headers(const struct softhca_qp *qp,
					const struct softhca_send_wr *wr,
					const struct operation *op, uint8_t *at)
{
	if (op->traits & USER_RADDR) {
		struct wqe_raddr *raddr = (struct wqe_raddr *)at;

		/* Both forms begin with the address. */
		raddr->addr = wr->wr.rdma.remote_addr;
		raddr->rkey = op->traits & USER_OPERANDS ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
		raddr->reserved = 0;
		at += sizeof(*raddr);
	}
	if (op->traits & USER_OPERANDS) {
		struct wqe_atomic *atomic = (struct wqe_atomic *)at;
		bool one = op->user == USER_ATOMIC_FA;

		atomic->swap_add = one ? wr->wr.atomic.compare_add : wr->wr.atomic.swap;
		atomic->compare = one ? 0 : wr->wr.atomic.compare_add;
		at += sizeof(*atomic);
	}
	if (qp->type == SOFTHCA_QP_UD) {
		struct wqe_ud *ud = (struct wqe_ud *)at;

		*ud = wr->wr.ud.ah->ud;
		ud->qpn = wr->wr.ud.remote_qpn;
		/* The top bit selects the QP's own Q_Key. */
		ud->qkey = wr->wr.ud.remote_qkey >> 31 ? qp->qkey : wr->wr.ud.remote_qkey;
		at += sizeof(*ud);
	}
	return at;
}

/* Returns the end of the WQE, NULL: longer than the QP supports. */
static uint8_t *put_inline(const struct softhca_qp *qp, const struct softhca_send_wr *wr,
			   uint8_t *at)
{
	struct wqe_inline *header = (struct wqe_inline *)at;
	uint32_t bytes = 0;

	at += sizeof(*header);
	for (int i = 0; i < wr->num_sge; i++) {
		const struct softhca_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->sq.max_inline - bytes)
			return NULL;
		memcpy(at + bytes, (const void *)(uintptr_t)sge->addr, sge->length);
		bytes += sge->length;
	}
	if (bytes == 0)
		return (uint8_t *)header;
	header->length = WQE_INLINE | bytes;
	return (uint8_t *)header + ((sizeof(*header) + bytes + 15) & ~15u);
}

static inline uint8_t *put_data(const struct softhca_sge *sge, int n, uint8_t *at)
{
	for (int i = 0; i < n; i++) {
		struct wqe_data *data = (struct wqe_data *)at;

		if (unlikely(sge[i].length == 0))
			continue;
		data->length = sge[i].length;
		data->lkey = sge[i].lkey;
		data->addr = sge[i].addr;
		at += sizeof(*data);
	}
	return at;
}

static uint8_t *put_register(const struct softhca_qp *qp, const struct softhca_send_wr *wr,
			     uint8_t *at)
{
	struct wqe_register *u = (struct wqe_register *)at;
	uint32_t bytes = (uint32_t)(sizeof(*u) + wr->wr.reg_mr.pages * sizeof(u->page[0]));

	if (!wr->wr.reg_mr.memory || !wr->wr.reg_mr.page || bytes + 16 > 1u << qp->sq.shift)
		return NULL;
	*u = (struct wqe_register){.key = wr->wr.reg_mr.key,
				   .lkey = wr->wr.reg_mr.memory->lkey,
				   .access = wr->wr.reg_mr.access,
				   .log_page = wr->wr.reg_mr.log_page,
				   .pages = wr->wr.reg_mr.pages,
				   .iova = wr->wr.reg_mr.iova,
				   .length = wr->wr.reg_mr.length};
	memcpy(u->page, wr->wr.reg_mr.page, wr->wr.reg_mr.pages * sizeof(u->page[0]));
	return at + ((bytes + 15) & ~15u);
}

/* The units of a request that changes a key. Returns the end of the WQE, NULL: invalid. */
static uint8_t *put_local(const struct softhca_qp *qp, const struct softhca_send_wr *wr,
			  uint8_t *at)
{
	const struct softhca_mw_bind_info *info = &wr->wr.bind_mw.bind_info;
	const struct softhca_mw *mw = wr->wr.bind_mw.mw;
	struct wqe_bind *u = (struct wqe_bind *)at;

	if (wr->opcode == SOFTHCA_WR_LOCAL_INV)
		return at;
	if (wr->opcode == SOFTHCA_WR_REG_MR)
		return put_register(qp, wr, at);
	if (!mw || (info->length && !info->mr))
		return NULL;
	*u = (struct wqe_bind){.key = (mw->rkey & ~0xffu) | (wr->wr.bind_mw.rkey & 0xff),
			       .lkey = info->mr ? info->mr->lkey : 0,
			       .access = info->access,
			       .addr = info->addr,
			       .length = info->length};
	return at + sizeof(*u);
}

/* Writes a whole WQE. Returns its size in units; 0: the QP does not support the request. */
static inline uint32_t put_wqe(const struct softhca_qp *qp, const struct softhca_send_wr *wr,
			       const struct operation *op, uint8_t *wqe)
{
	struct wqe_next *next = (struct wqe_next *)wqe;
	uint32_t flags = 0;
	uint8_t *end;

	if (unlikely(!(op->services & 1u << qp->type) || wr->num_sge < 0 ||
		     ((uint32_t)wr->num_sge > qp->sq.max_sge &&
		      !(wr->send_flags & SOFTHCA_SEND_INLINE)) ||
		     (qp->type == SOFTHCA_QP_UD && !wr->wr.ud.ah)))
		return 0;
	end = post_put_headers(qp, wr, op, wqe + sizeof(*next));
	if (unlikely(op->traits & USER_LOCAL)) {
		end = put_local(qp, wr, end);
		if (!end)
			return 0;
	} else if (wr->send_flags & SOFTHCA_SEND_INLINE) {
		end = op->traits & USER_SCATTERS ? NULL : put_inline(qp, wr, end);
		if (unlikely(!end))
			return 0;
	} else {
		end = put_data(wr->sg_list, wr->num_sge, end);
	}
	if ((wr->send_flags & SOFTHCA_SEND_SIGNALED) || qp->signal_all)
		flags |= WQE_SIGNALED;
	if (wr->send_flags & SOFTHCA_SEND_SOLICITED)
		flags |= WQE_SOLICITED;
	next->nda_nop = 0;
	next->ee_nds = 0;
	next->flags = flags;
	next->imm = wr->imm_data;
	return (uint32_t)(end - wqe) / 16;
}

static int send_state(const struct softhca_qp *qp)
{
	if (unlikely(ctx_dead(qp->node.ctx)))
		return -EIO;
	return __atomic_load_n(&qp->state, __ATOMIC_RELAXED) >= SOFTHCA_QPS_RTS ? 0 : -EINVAL;
}

/* sq.lock is held until the end of the posting. */
static inline void posting_begin(const struct softhca_qp *qp, struct posting *p)
{
	const struct work_queue *sq = &qp->sq;

	*p = qp->unrung; /* a chain that it continues, or none */
	p->head = sq->head;
	p->room = sq->max_wr - outstanding(sq);
	p->rc = send_state(qp);
}

/* Adds one request. 0, or an error, which p->rc keeps. */
static inline __attribute__((always_inline)) int
posting_add(struct softhca_qp *qp, struct posting *p, const struct softhca_send_wr *wr)
{
	struct work_queue *sq = &qp->sq;
	const struct operation *op = &operations[wr->opcode & 15];
	uint32_t index = p->head & sq->mask, offset = index << sq->shift, units;
	uint8_t *wqe = sq->buffer + offset;

	if (unlikely(p->room == 0))
		return p->rc = -ENOMEM;
	units = unlikely(wr->opcode > 15) ? 0 : put_wqe(qp, wr, op, wqe);
	if (unlikely(units == 0))
		return p->rc = -EINVAL;
	prefetch_slot(sq, p->head, p->room, units * UNIT_BYTES);
	sq->wr_id[index] = wr->wr_id;
	if (p->before) {
		p->before->nda_nop = offset | op->user;
		p->before->ee_nds = units | (wr->send_flags & SOFTHCA_SEND_FENCE ? WQE_NEXT_F : 0);
	} else {
		p->word0 = (offset / 16) << DOORBELL_OFFSET_SHIFT | op->user |
			   (wr->send_flags & SOFTHCA_SEND_FENCE ? DOORBELL_FENCE : 0);
		p->word1 = qp->number << DOORBELL_QPN_SHIFT | units;
	}
	p->before = (struct wqe_next *)wqe;
	p->head++;
	p->room--;
	return 0;
}

/* Posts none of them: the chain that waits for its doorbell ends where it did before. */
static void posting_drop(struct softhca_qp *qp)
{
	if (likely(!qp->unrung.before))
		return;
	qp->unrung.before->nda_nop = 0;
	qp->unrung.before->ee_nds = 0;
}

/* The FIFO is full, because the daemon waits for this queue pair's peer or another's, or for
 * itself. The program must be able to go on: its peer may wait for what it does next. */
static __attribute__((noinline)) int posting_wait(struct softhca_qp *qp, const struct posting *p)
{
	bool first = !qp->unrung.before;

	if (first && ctx_gone(qp->node.ctx))
		return -EIO;
	qp->unrung = *p;
	if (first)
		doorbell_waits(qp);
	return 0;
}

/* Rings the doorbell for them, now or later. 0; -EIO: none is posted. */
static inline int posting_ring(struct softhca_qp *qp, const struct posting *p)
{
	int rc = 0;

	if (unlikely(!p->before))
		return 0;
	if (unlikely(!ring(qp, p->word0, p->word1))) {
		rc = posting_wait(qp, p);
	} else if (unlikely(qp->unrung.before)) {
		chain_rung(qp);
	}
	if (likely(!rc))
		qp->sq.head = p->head;
	return rc;
}

#define ALL_OPCODES UINT32_MAX

/* `opcodes`: as softhca_post_send_of() has it, or ALL_OPCODES. */
static inline __attribute__((always_inline)) int post_send(struct softhca_qp *qp, uint32_t opcodes,
							   struct softhca_send_wr *wr,
							   struct softhca_send_wr **bad_wr)
{
	struct softhca_send_wr *first = wr;
	struct posting p;
	int rung;

	spin_lock(&qp->sq.lock);
	posting_begin(qp, &p);
	for (; wr && !p.rc; wr = wr->next) {
		if (opcodes != ALL_OPCODES && unlikely(!(opcodes >> (wr->opcode & 31) & 1)))
			p.rc = -EOPNOTSUPP;
		else
			posting_add(qp, &p, wr);
		if (unlikely(p.rc))
			break;
	}
	rung = posting_ring(qp, &p);
	spin_unlock(&qp->sq.lock);
	if (unlikely(rung))
		wr = first;
	else
		rung = p.rc;
	if (unlikely(rung) && bad_wr)
		*bad_wr = wr;
	return rung;
}

int softhca_post_send(struct softhca_qp *qp, struct softhca_send_wr *wr,
		      struct softhca_send_wr **bad_wr)
{
	return post_send(qp, ALL_OPCODES, wr, bad_wr);
}

int softhca_post_send_of(struct softhca_qp *qp, uint32_t opcodes, struct softhca_send_wr *wr,
			 struct softhca_send_wr **bad_wr)
{
	return post_send(qp, opcodes, wr, bad_wr);
}

void softhca_post_start(struct softhca_qp *qp)
{
	spin_lock(&qp->sq.lock);
	posting_begin(qp, &qp->batch);
}

int softhca_post_add(struct softhca_qp *qp, const struct softhca_send_wr *wr)
{
	return unlikely(qp->batch.rc) ? qp->batch.rc : posting_add(qp, &qp->batch, wr);
}

int softhca_post_end(struct softhca_qp *qp)
{
	int rc = qp->batch.rc;

	if (likely(!rc))
		rc = posting_ring(qp, &qp->batch);
	else
		posting_drop(qp);
	spin_unlock(&qp->sq.lock);
	return rc;
}

void softhca_post_abort(struct softhca_qp *qp)
{
	posting_drop(qp);
	spin_unlock(&qp->sq.lock);
}

/* ---- receive ---- */

void put_receive(const struct softhca_recv_wr *wr, uint8_t shift, uint32_t tag, uint8_t *wqe)
{
	struct wqe_next *next = (struct wqe_next *)wqe;
	uint8_t *end = put_data(wr->sg_list, wr->num_sge, wqe + sizeof(*next));
	struct wqe_data *terminator = (struct wqe_data *)end;

	next->ee_nds = 1u << (shift - 4);
	next->imm = tag;
	*terminator = (struct wqe_data){0};
}

int softhca_post_recv(struct softhca_qp *qp, struct softhca_recv_wr *wr,
		      struct softhca_recv_wr **bad_wr)
{
	struct work_queue *rq = &qp->rq;
	uint32_t head, room, before;
	uint8_t state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
	int rc = unlikely(ctx_dead(qp->node.ctx)) ? -EIO : state == SOFTHCA_QPS_RESET ? -EINVAL : 0;

	if (unlikely(!rq->buffer))
		rc = qp->srq ? -EINVAL : -ENOMEM;
	spin_lock(&rq->lock);
	before = head = rq->head;
	room = rq->max_wr - outstanding(rq);
	for (; wr && !rc; wr = wr->next) {
		uint32_t index = head & rq->mask;

		if (unlikely(room == 0 || wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)) {
			rc = room == 0 ? -ENOMEM : -EINVAL;
			break;
		}
		prefetch_slot(rq, head, room, 0);
		put_receive(wr, rq->shift, 0, rq->buffer + ((size_t)index << rq->shift));
		rq->wr_id[index] = wr->wr_id;
		head++;
		room--;
	}
	rq->head = head;
	/* Post first, then look at the state: a thread that sets it to error looks at the queue
	 * afterwards. */
	__atomic_store_n(&qp->record->rq_posted, head, __ATOMIC_RELEASE);
	spin_unlock(&rq->lock);
	if (unlikely(rc) && bad_wr)
		*bad_wr = wr;
	state = __atomic_load_n(&qp->state, __ATOMIC_SEQ_CST);
	if (unlikely(state == SOFTHCA_QPS_ERR ||
		     (before == 0 && head != before &&
		      (state == SOFTHCA_QPS_RTS || state == SOFTHCA_QPS_SQD))))
		ring_for_receives(qp);
	return rc;
}
