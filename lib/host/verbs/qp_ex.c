/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended queue pairs: requests built by calls between wr_start() and wr_complete() (hot), during
 * which this thread holds the send queue. A request is written into it once complete: when its data
 * is known or, on UD and for requests without data, when the next begins or the batch ends. An
 * error is reported by wr_complete(), which then posts nothing. Allocates only when the QP is
 * created.
 */
#include <stdlib.h>
#include <string.h>
#include "host-abi/wqe.h"
#include "handles.h"
#include "qp.h"

/* The request being built. */
struct shca_batch {
	struct softhca_send_wr wr;
	bool pending; /* not yet written */
	bool is_ud;
	uint32_t max_sge, max_inline;
	struct softhca_qp *qp;
	struct softhca_sge *sge; /* room for max_sge (at least 1): wr.sg_list */
	uint8_t *data;		 /* max_inline bytes: its inline data, while pending */
};

static inline struct shca_qp *ex_qp(struct ibv_qp_ex *ex)
{
	return container(ex, struct shca_qp, ex);
}

/* ---- a batch ---- */

static inline void batch_put(struct shca_batch *b)
{
	b->pending = false;
	softhca_post_add(b->qp, &b->wr);
}

static inline void put_pending(struct shca_batch *b)
{
	if (unlikely(b->pending))
		batch_put(b);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	softhca_post_start(ex_qp(ex)->qp);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct shca_batch *b = ex_qp(ex)->batch;

	put_pending(b);
	return verbs_status(softhca_post_end(b->qp));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct shca_qp *qp = ex_qp(ex);

	qp->batch->pending = false;
	softhca_post_abort(qp->qp);
}

/* Begins the next request. */
static inline struct softhca_send_wr *wr_begin(struct ibv_qp_ex *ex, enum softhca_wr_opcode opcode,
					       uint32_t imm)
{
	struct shca_batch *b = ex_qp(ex)->batch;

	put_pending(b);
	b->pending = true;
	b->wr.wr_id = ex->wr_id;
	b->wr.num_sge = 0;
	b->wr.opcode = opcode;
	b->wr.send_flags = ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE;
	b->wr.imm_data = imm;
	if (b->is_ud)
		b->wr.wr.ud.ah = NULL; /* refused until set */
	return &b->wr;
}

/* The request is invalid: makes the batch fail. */
static void spoil(struct shca_batch *b)
{
	b->wr.num_sge = -1;
}

/* ---- requests ---- */

static void wr_send(struct ibv_qp_ex *ex)
{
	wr_begin(ex, SOFTHCA_WR_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	wr_begin(ex, SOFTHCA_WR_SEND_WITH_IMM, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	wr_begin(ex, SOFTHCA_WR_SEND_WITH_INV, rkey);
}

static inline void rdma_begin(struct ibv_qp_ex *ex, enum softhca_wr_opcode opcode, uint32_t rkey,
			      uint64_t remote_addr, uint32_t imm)
{
	struct softhca_send_wr *wr = wr_begin(ex, opcode, imm);

	wr->wr.rdma.remote_addr = remote_addr;
	wr->wr.rdma.rkey = rkey;
}

/* Behind a request that has no data. */
static __attribute__((noinline)) void rdma_behind(struct ibv_qp_ex *ex,
						  enum softhca_wr_opcode opcode, uint32_t rkey,
						  uint64_t remote_addr, uint32_t imm)
{
	rdma_begin(ex, opcode, rkey, remote_addr, imm);
}

/* Where nothing is pending it calls nothing, so needs to save no registers. */
static inline void rdma(struct ibv_qp_ex *ex, enum softhca_wr_opcode opcode, uint32_t rkey,
			uint64_t remote_addr, uint32_t imm)
{
	if (unlikely(ex_qp(ex)->batch->pending))
		rdma_behind(ex, opcode, rkey, remote_addr, imm);
	else
		rdma_begin(ex, opcode, rkey, remote_addr, imm);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, SOFTHCA_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	rdma(ex, SOFTHCA_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, SOFTHCA_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct softhca_send_wr *wr = wr_begin(ex, SOFTHCA_WR_ATOMIC_CMP_AND_SWP, 0);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
	wr->wr.atomic.rkey = rkey;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct softhca_send_wr *wr = wr_begin(ex, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, 0);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = add;
	wr->wr.atomic.rkey = rkey;
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct shca_batch *b = ex_qp(ex)->batch;

	rdma(ex, SOFTHCA_WR_ATOMIC_WRITE, rkey, remote_addr, 0);
	b->wr.send_flags |= SOFTHCA_SEND_INLINE;
	b->wr.num_sge = 1;
	b->sge[0] = (struct softhca_sge){.addr = (uintptr_t)atomic_wr, .length = sizeof(uint64_t)};
	batch_put(b);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct softhca_send_wr *wr = wr_begin(ex, SOFTHCA_WR_FLUSH, 0);

	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.swap = len;
	wr->wr.atomic.compare_add = type | (uint64_t)level * SOFTHCA_FLUSH_REGION;
	wr->wr.atomic.rkey = rkey;
	if (unlikely(len > UINT32_MAX || type >= SOFTHCA_FLUSH_REGION))
		spoil(ex_qp(ex)->batch);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct softhca_send_wr *wr = wr_begin(ex, SOFTHCA_WR_BIND_MW, 0);

	wr->wr.bind_mw.mw = to_shca_mw(mw)->mw;
	wr->wr.bind_mw.rkey = rkey;
	bind_info_convert(bind_info, &wr->wr.bind_mw.bind_info);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	wr_begin(ex, SOFTHCA_WR_LOCAL_INV, rkey);
}

/* ---- addresses and data ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct softhca_send_wr *wr = &ex_qp(ex)->batch->wr;

	wr->wr.ud.ah = to_shca_ah(ah)->ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct shca_batch *b = ex_qp(ex)->batch;

	if (unlikely(num_sge > b->max_sge)) {
		spoil(b);
		return;
	}
	b->wr.num_sge = (int)num_sge;
	if (!b->is_ud) {
		b->wr.sg_list = (struct softhca_sge *)list;
		batch_put(b);
		b->wr.sg_list = b->sge;
		return;
	}
	memcpy(b->sge, list, num_sge * sizeof(*list));
}

/* The request's only entry. */
static inline void set_one(struct shca_batch *b, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct softhca_sge *sge = b->sge;

	sge->addr = addr;
	sge->length = length;
	sge->lkey = lkey;
	b->wr.num_sge = 1;
	if (!b->is_ud)
		batch_put(b);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	set_one(ex_qp(ex)->batch, addr, length, lkey);
}

/* Inline data, in one piece. */
static inline void set_inline(struct shca_batch *b, const void *data, size_t bytes)
{
	b->wr.send_flags |= SOFTHCA_SEND_INLINE;
	set_one(b, (uintptr_t)data, (uint32_t)bytes, 0);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	struct shca_batch *b = ex_qp(ex)->batch;
	size_t bytes = 0;

	for (size_t i = 0; i < num_buf; i++) {
		if (unlikely(list[i].length > b->max_inline - bytes)) {
			spoil(b);
			return;
		}
		memcpy(b->data + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	set_inline(b, b->data, bytes);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct shca_batch *b = ex_qp(ex)->batch;

	if (unlikely(length > b->max_inline)) {
		spoil(b);
		return;
	}
	if (b->is_ud)
		addr = memcpy(b->data, addr, length);
	set_inline(b, addr, length);
}

/* ---- setup ---- */

/* The operations that queue pairs of a type have. */
static uint64_t possible(enum ibv_qp_type type)
{
	uint8_t on = (uint8_t)(1 << (type - IBV_QPT_RC)); /* enum user_service */
	uint64_t ops = 0;

#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	if ((services)&on)                                                                         \
		ops |= IBV_QP_EX_WITH_##wr;
#define NATIVE_OPERATION(...)
#include "host-abi/user_opcodes.def"
	return type == IBV_QPT_RC ? ops | LATER_QP_EX_WITH_FLUSH : ops;
}

static struct shca_batch *batch_new(const struct shca_qp *qp)
{
	uint32_t entries = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
	struct shca_batch *b =
		calloc(1, sizeof(*b) + entries * sizeof(b->sge[0]) + qp->cap.max_inline_data);

	if (!b)
		return NULL;
	b->is_ud = qp->ibv.qp_type == IBV_QPT_UD;
	b->max_sge = qp->cap.max_send_sge;
	b->max_inline = qp->cap.max_inline_data;
	b->qp = qp->qp;
	b->sge = (struct softhca_sge *)(b + 1);
	b->wr.sg_list = b->sge;
	b->data = (uint8_t *)(b->sge + entries);
	return b;
}

static void fill_requests(struct ibv_qp_ex *ex, uint64_t ops)
{
#define OPERATION(id, code, services, traits, packets, wr, wc, call)                               \
	if (ops & IBV_QP_EX_WITH_##wr)                                                             \
		ex->wr_##call = wr_##call;
#define NATIVE_OPERATION(...)
#include "host-abi/user_opcodes.def"
}

int qp_ex_fill(struct shca_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	if (ops & ~possible(qp->ibv.qp_type))
		return EOPNOTSUPP;
	qp->batch = batch_new(qp);
	if (!qp->batch)
		return ENOMEM;
	fill_requests(ex, ops);
	if (ops & LATER_QP_EX_WITH_FLUSH)
		qp->later.wr_flush = wr_flush;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	qp->is_ex = true;
	return 0;
}

void qp_ex_free(struct shca_qp *qp)
{
	free(qp->batch);
}
