/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: writes descriptors into the queues, for which doorbells are rung (doorbell.c). Hot path:
 * no division, and no system call but those of doorbell.c. Any thread.
 */
#include <string.h>
#include "context.h"
#include "doorbell.h"
#include "post.h"

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

static inline uint8_t *slot(const struct work_queue *q, uint32_t head)
{
	return q->buffer + ((size_t)(head & q->mask) << q->shift);
}

enum { LINE = 64 };

/* Prefetches the slot AHEAD places further on, if it is free, for a descriptor as long as the one at
 * head: its lines from byte `from` on. They are in the cache of the daemon, which has read the last
 * descriptor there; the locked instructions of a post, and the stores behind, would wait for them. */
static inline void prefetch_slot(const struct work_queue *q, uint32_t head, uint32_t room,
				 uint32_t from, uint32_t bytes)
{
	enum { AHEAD = 4 };
	const uint8_t *place = slot(q, head + AHEAD);

	if (unlikely(room <= AHEAD))
		return;
	if (from == 0)
		prefetch_write(place);
	for (uint32_t at = from ? from : LINE; unlikely(at < bytes); at += LINE)
		prefetch_write(place + at);
}

/* ---- send ---- */

static_assert((int)SOFTHCA_QP_RC == (int)SERVICE_RC && (int)SOFTHCA_QP_UC == (int)SERVICE_UC &&
		      (int)SOFTHCA_QP_UD == (int)SERVICE_UD,
	      "the same numbers");

/* What has no inline data: behind operands there need be no room for them. */
enum { NEVER_INLINE = USER_SCATTERS | USER_OPERANDS };

/* By work request. */
static const struct operation {
	uint8_t user;	/* enum user_opcode */
	uint8_t traits; /* enum user_trait */
} operations[16] = {
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	[SOFTHCA_WR_##wr] = {USER_##id, traits},
#include "host-abi/user_opcodes.def"
};

/* The work requests that a service has, a bit for each. */
static const uint32_t opcodes_of[] = {
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	| ((services)&USER_ON_RC ? 1u << SOFTHCA_WR_##wr : 0)
	[SOFTHCA_QP_RC] = 0
#include "host-abi/user_opcodes.def"
	,
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	| ((services)&USER_ON_UC ? 1u << SOFTHCA_WR_##wr : 0)
	[SOFTHCA_QP_UC] = 0
#include "host-abi/user_opcodes.def"
	,
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	| ((services)&USER_ON_UD ? 1u << SOFTHCA_WR_##wr : 0)
	[SOFTHCA_QP_UD] = 0
#include "host-abi/user_opcodes.def"
};

static inline bool is_one_of(uint32_t opcodes, uint32_t opcode)
{
	return opcode < 32 && opcodes >> opcode & 1;
}

/* ---- units ---- */

/* Two neighbouring fields by one store: a chain is as long as the stores that it takes, which wait
 * for the slots' lines, in order. */
static inline void put_two(void *at, uint32_t first, uint32_t second)
{
	*(uint64_t *)at = first | (uint64_t)second << 32;
}

static inline void put_next(const struct softhca_qp *qp, struct wqe_next *next, uint32_t send_flags,
			    uint32_t imm)
{
	uint32_t flags = 0;

	if ((send_flags & SOFTHCA_SEND_SIGNALED) || qp->signal_all)
		flags |= WQE_SIGNALED;
	if (send_flags & SOFTHCA_SEND_SOLICITED)
		flags |= WQE_SOLICITED;
	put_two(&next->nda_nop, 0, 0);
	put_two(&next->flags, flags, imm);
}

static inline void put_raddr(struct wqe_raddr *raddr, uint64_t addr, uint32_t rkey)
{
	raddr->addr = addr;
	put_two(&raddr->rkey, rkey, 0);
}

static inline void put_operands(struct wqe_atomic *atomic, const struct operation *op,
				uint64_t compare_add, uint64_t swap)
{
	bool one = op->user == USER_ATOMIC_FA;

	atomic->swap_add = one ? compare_add : swap;
	atomic->compare = one ? 0 : compare_add;
}

static inline void put_address(const struct softhca_qp *qp, struct wqe_ud *ud,
			       const struct softhca_ah *ah, uint32_t remote_qpn,
			       uint32_t remote_qkey)
{
	*ud = ah->ud;
	ud->qpn = remote_qpn;
	/* The top bit selects the QP's own Q_Key. */
	ud->qkey = remote_qkey >> 31 ? qp->qkey : remote_qkey;
}

static inline void put_entry(struct wqe_data *data, uint32_t lkey, uint64_t addr, uint32_t length)
{
	put_two(&data->length, length, lkey);
	data->addr = addr;
}

/* Writes the units between next and data. Returns where the data begins. */
static inline uint8_t *put_headers(const struct softhca_qp *qp, const struct softhca_send_wr *wr,
				   const struct operation *op, uint8_t *at)
{
	if (op->traits & USER_RADDR) {
		/* Both forms begin with the address. */
		put_raddr((struct wqe_raddr *)at, wr->wr.rdma.remote_addr,
			  op->traits & USER_OPERANDS ? wr->wr.atomic.rkey : wr->wr.rdma.rkey);
		at += sizeof(struct wqe_raddr);
	}
	if (op->traits & USER_OPERANDS) {
		put_operands((struct wqe_atomic *)at, op, wr->wr.atomic.compare_add,
			     wr->wr.atomic.swap);
		at += sizeof(struct wqe_atomic);
	}
	if (qp->type == SOFTHCA_QP_UD) {
		put_address(qp, (struct wqe_ud *)at, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
			    wr->wr.ud.remote_qkey);
		at += sizeof(struct wqe_ud);
	}
	return at;
}

/* Inline data of that many bytes lie behind their header. Returns the units of both; none is needed
 * for no bytes. */
static inline uint32_t end_inline(struct wqe_inline *header, uint32_t bytes)
{
	if (bytes == 0)
		return 0;
	header->length = WQE_INLINE | bytes;
	return ((uint32_t)sizeof(*header) + bytes + UNIT_BYTES - 1) / UNIT_BYTES;
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
	return (uint8_t *)header + (size_t)end_inline(header, bytes) * UNIT_BYTES;
}

static inline uint8_t *put_data(const struct softhca_sge *sge, int n, uint8_t *at)
{
	for (int i = 0; i < n; i++) {
		if (unlikely(sge[i].length == 0))
			continue;
		put_entry((struct wqe_data *)at, sge[i].lkey, sge[i].addr, sge[i].length);
		at += sizeof(struct wqe_data);
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
	uint8_t *end;

	if (unlikely(wr->num_sge < 0 ||
		     ((uint32_t)wr->num_sge > qp->sq.max_sge &&
		      !(wr->send_flags & SOFTHCA_SEND_INLINE)) ||
		     (qp->type == SOFTHCA_QP_UD && !wr->wr.ud.ah)))
		return 0;
	end = put_headers(qp, wr, op, wqe + sizeof(struct wqe_next));
	if (unlikely(op->traits & USER_LOCAL)) {
		end = put_local(qp, wr, end);
		if (!end)
			return 0;
	} else if (wr->send_flags & SOFTHCA_SEND_INLINE) {
		end = op->traits & NEVER_INLINE ? NULL : put_inline(qp, wr, end);
		if (unlikely(!end))
			return 0;
	} else {
		end = put_data(wr->sg_list, wr->num_sge, end);
	}
	put_next(qp, (struct wqe_next *)wqe, wr->send_flags, wr->imm_data);
	return (uint32_t)(end - wqe) / UNIT_BYTES;
}

/* ---- a posting ---- */

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
	p->end = p->head + sq->max_wr - outstanding(sq);
	p->rc = send_state(qp);
}

/*
 * Adds the request at the queue's next place to the chain: `units` of it are written, more may
 * follow. Returns where its size stands, in the lowest bits: in the descriptor before it, or in
 * the doorbell.
 */
static inline uint32_t *posting_link(struct softhca_qp *qp, struct posting *p, uint64_t wr_id,
				     uint8_t user, uint32_t send_flags, uint32_t units)
{
	struct work_queue *sq = &qp->sq;
	struct wqe_next *before = p->before;
	uint32_t index = p->head & sq->mask, offset = index << sq->shift, *size;
	bool fence = send_flags & SOFTHCA_SEND_FENCE;

	p->before = (struct wqe_next *)(sq->buffer + offset);
	p->head++;
	sq->wr_id[index] = wr_id;
	if (before) {
		put_two(&before->nda_nop, offset | user, units | (fence ? WQE_NEXT_F : 0));
		size = &before->ee_nds;
	} else {
		p->word0 = (offset / UNIT_BYTES) << DOORBELL_OFFSET_SHIFT | user |
			   (fence ? DOORBELL_FENCE : 0);
		p->word1 = qp->number << DOORBELL_QPN_SHIFT | units;
		size = &p->word1;
	}
	return size;
}

/* Adds one request, of `opcodes`. 0, or an error, which p->rc keeps. */
static inline __attribute__((always_inline)) int posting_add(struct softhca_qp *qp,
							     struct posting *p, uint32_t opcodes,
							     const struct softhca_send_wr *wr)
{
	struct work_queue *sq = &qp->sq;
	const struct operation *op = &operations[wr->opcode & 15];
	uint8_t *wqe = slot(sq, p->head);
	uint32_t units;

	if (unlikely(p->head == p->end))
		return p->rc = -ENOMEM;
	units = likely(is_one_of(opcodes, wr->opcode)) ? put_wqe(qp, wr, op, wqe) : 0;
	if (unlikely(units == 0))
		return p->rc = -EINVAL;
	prefetch_slot(sq, p->head, p->end - p->head, 0, units * UNIT_BYTES);
	posting_link(qp, p, wr->wr_id, op->user, wr->send_flags, units);
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
	if (!qp->unrung.before && ctx_gone(qp->node.ctx))
		return -EIO;
	qp->unrung = *p;
	chain_waits(qp);
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
	const uint32_t these = opcodes_of[qp->type] & opcodes;
	struct softhca_send_wr *first = wr;
	struct posting p;
	int rung;

	spin_lock(&qp->sq.lock);
	posting_begin(qp, &p);
	for (; wr && !p.rc; wr = wr->next)
		if (unlikely(posting_add(qp, &p, these, wr)))
			break;
	rung = posting_ring(qp, &p);
	spin_unlock(&qp->sq.lock);
	if (likely(!rung && !p.rc))
		return 0;
	if (rung)
		wr = first;
	else if (wr && p.rc == -EINVAL && !(opcodes >> (wr->opcode & 31) & 1))
		p.rc = -EOPNOTSUPP;
	if (bad_wr)
		*bad_wr = wr;
	return rung ? rung : p.rc;
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

/* ---- a batch, and its requests in pieces ---- */

/* softhca_qp.batch.rc while the datagram begun last has no address. */
enum { NO_ADDRESS = 1 };

/* No request is open: there is nothing that a piece could belong to. */
static inline void close_request(struct softhca_qp *qp)
{
	qp->open.size = NULL;
	qp->open.data = NULL;
}

static __attribute__((noinline, cold)) int batch_fail(struct softhca_qp *qp, int rc)
{
	struct posting *p = &qp->batch;

	close_request(qp);
	if (p->rc >= 0)
		p->rc = p->rc == NO_ADDRESS ? -EINVAL : rc;
	return p->rc;
}

void softhca_post_start(struct softhca_qp *qp)
{
	spin_lock(&qp->sq.lock);
	posting_begin(qp, &qp->batch);
	close_request(qp);
}

int softhca_post_add(struct softhca_qp *qp, const struct softhca_send_wr *wr)
{
	if (unlikely(qp->batch.rc))
		return batch_fail(qp, -EINVAL);
	close_request(qp);
	return posting_add(qp, &qp->batch, opcodes_of[qp->type], wr);
}

int softhca_post_end(struct softhca_qp *qp)
{
	int rc = qp->batch.rc;

	if (likely(!rc)) {
		rc = posting_ring(qp, &qp->batch);
	} else {
		rc = batch_fail(qp, rc);
		posting_drop(qp);
	}
	spin_unlock(&qp->sq.lock);
	return rc;
}

void softhca_post_abort(struct softhca_qp *qp)
{
	posting_drop(qp);
	spin_unlock(&qp->sq.lock);
}

/* The request is linked at once, as one without data; its pieces are put behind what is there. */
void softhca_post_begin(struct softhca_qp *qp, uint32_t opcode, uint64_t wr_id, uint32_t send_flags,
			uint64_t remote_addr, uint32_t rkey)
{
	static const uint32_t in_one_piece = 1u << SOFTHCA_WR_BIND_MW | 1u << SOFTHCA_WR_REG_MR;
	const struct operation *op = &operations[opcode & 15];
	struct open_request *open = &qp->open;
	struct posting *p = &qp->batch;
	uint8_t *wqe = slot(&qp->sq, p->head), *at = wqe + sizeof(struct wqe_next);

	if (unlikely(p->rc || p->head == p->end ||
		     !is_one_of(opcodes_of[qp->type] & ~in_one_piece, opcode))) {
		batch_fail(qp, p->head == p->end ? -ENOMEM : -EINVAL);
		return;
	}
	prefetch_slot(&qp->sq, p->head, p->end - p->head, 0, 0);
	if (likely(op->traits & USER_RADDR)) {
		put_raddr((struct wqe_raddr *)at, remote_addr, rkey);
		at += sizeof(struct wqe_raddr);
	}
	if (unlikely(op->traits & USER_OPERANDS)) {
		*(struct wqe_atomic *)at = (struct wqe_atomic){0};
		at += sizeof(struct wqe_atomic);
	}
	if (unlikely(qp->type == SOFTHCA_QP_UD)) {
		at += sizeof(struct wqe_ud);
		p->rc = NO_ADDRESS;
	}
	put_next(qp, (struct wqe_next *)wqe, send_flags, 0);
	open->op = op;
	open->data = unlikely(op->traits & USER_LOCAL) ? NULL : at; /* they have none */
	open->size =
		posting_link(qp, p, wr_id, op->user, send_flags, (uint32_t)(at - wqe) / UNIT_BYTES);
}

void softhca_post_imm(struct softhca_qp *qp, uint32_t imm)
{
	if (likely(qp->open.size))
		qp->batch.before->imm = imm;
	else
		batch_fail(qp, -EINVAL);
}

void softhca_post_operands(struct softhca_qp *qp, uint64_t compare_add, uint64_t swap)
{
	/* Behind next and raddr, as every operation that has them. */
	if (likely(qp->open.size && qp->open.op->traits & USER_OPERANDS))
		put_operands((struct wqe_atomic *)(qp->batch.before + 2), qp->open.op, compare_add,
			     swap);
	else
		batch_fail(qp, -EINVAL);
}

void softhca_post_address(struct softhca_qp *qp, const struct softhca_ah *ah, uint32_t remote_qpn,
			  uint32_t remote_qkey)
{
	if (unlikely(!qp->open.size || qp->type != SOFTHCA_QP_UD || !ah)) {
		batch_fail(qp, -EINVAL);
		return;
	}
	/* Right behind next: no operation of datagrams has other headers. */
	put_address(qp, (struct wqe_ud *)(qp->batch.before + 1), ah, remote_qpn, remote_qkey);
	qp->batch.rc = 0;
}

/* `units` of data have been written; there is no more. */
static inline void end_data(struct softhca_qp *qp, uint32_t units)
{
	*qp->open.size += units;
	qp->open.data = NULL;
}

void softhca_post_sge(struct softhca_qp *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct wqe_data *data = (struct wqe_data *)qp->open.data;

	if (unlikely(!data || qp->sq.max_sge == 0)) {
		batch_fail(qp, -EINVAL);
		return;
	}
	put_entry(data, lkey, addr, length);
	end_data(qp, length != 0);
}

void softhca_post_sge_list(struct softhca_qp *qp, size_t n, const struct softhca_sge *list)
{
	uint8_t *data = qp->open.data;

	if (unlikely(!data || n > qp->sq.max_sge)) {
		batch_fail(qp, -EINVAL);
		return;
	}
	end_data(qp, (uint32_t)(put_data(list, (int)n, data) - data) / UNIT_BYTES);
}

/* Where inline data go, NULL: refused. */
static inline struct wqe_inline *inline_place(struct softhca_qp *qp)
{
	if (likely(qp->open.data && !(qp->open.op->traits & NEVER_INLINE)))
		return (struct wqe_inline *)qp->open.data;
	batch_fail(qp, -EINVAL);
	return NULL;
}

/* That many bytes have been copied. */
static inline void inline_end(struct softhca_qp *qp, struct wqe_inline *header, uint32_t bytes)
{
	const struct posting *p = &qp->batch;
	uint32_t units = end_inline(header, bytes);

	/* As softhca_post_begin() did for the first line. */
	prefetch_slot(&qp->sq, p->head - 1, p->end - p->head + 1, LINE,
		      (uint32_t)((uint8_t *)header - (uint8_t *)p->before) + units * UNIT_BYTES);
	end_data(qp, units);
}

void softhca_post_inline(struct softhca_qp *qp, const void *data, size_t bytes)
{
	struct wqe_inline *header = inline_place(qp);

	if (unlikely(!header))
		return;
	if (unlikely(bytes > qp->sq.max_inline)) {
		batch_fail(qp, -EINVAL);
		return;
	}
	memcpy(header + 1, data, bytes);
	inline_end(qp, header, (uint32_t)bytes);
}

void softhca_post_inline_list(struct softhca_qp *qp, size_t n, const struct softhca_buffer *list)
{
	struct wqe_inline *header = inline_place(qp);
	size_t bytes = 0;

	if (unlikely(!header))
		return;
	for (size_t i = 0; i < n; i++) {
		if (unlikely(list[i].length > qp->sq.max_inline - bytes)) {
			batch_fail(qp, -EINVAL);
			return;
		}
		memcpy((uint8_t *)(header + 1) + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	inline_end(qp, header, (uint32_t)bytes);
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
		prefetch_slot(rq, head, room, 0, 0);
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
