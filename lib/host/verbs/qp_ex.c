/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended queue pairs: requests built by calls between wr_start() and wr_complete() (hot), during
 * which this thread holds the send queue. Each call is libsofthca's for that piece of a request. An
 * error is reported by wr_complete(), which then posts nothing. Never allocates.
 */
#include "host-abi/wqe.h"
#include "handles.h"
#include "qp.h"

static_assert(sizeof(struct softhca_buffer) == sizeof(struct ibv_data_buf) &&
		      offsetof(struct softhca_buffer, addr) ==
			      offsetof(struct ibv_data_buf, addr) &&
		      offsetof(struct softhca_buffer, length) ==
			      offsetof(struct ibv_data_buf, length),
	      "buffers of a list");

static inline struct softhca_qp *ex_qp(struct ibv_qp_ex *ex)
{
	return container(ex, struct shca_qp, ex)->qp;
}

/* ---- a batch ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
	softhca_post_start(ex_qp(ex));
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	return verbs_status(softhca_post_end(ex_qp(ex)));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	softhca_post_abort(ex_qp(ex));
}

/* ---- requests ---- */

static inline void rdma(struct ibv_qp_ex *ex, enum softhca_wr_opcode opcode, uint32_t rkey,
			uint64_t remote_addr)
{
	softhca_post_begin(ex_qp(ex), opcode, ex->wr_id, ex->wr_flags, remote_addr, rkey);
}

/* One without remote address. imm_data: or the key to invalidate. */
static inline void local(struct ibv_qp_ex *ex, enum softhca_wr_opcode opcode, uint32_t imm_data)
{
	rdma(ex, opcode, 0, 0);
	softhca_post_imm(ex_qp(ex), imm_data);
}

static inline void atomic(struct ibv_qp_ex *ex, enum softhca_wr_opcode opcode, uint32_t rkey,
			  uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	rdma(ex, opcode, rkey, remote_addr);
	softhca_post_operands(ex_qp(ex), compare_add, swap);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	rdma(ex, SOFTHCA_WR_SEND, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	local(ex, SOFTHCA_WR_SEND_WITH_IMM, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	local(ex, SOFTHCA_WR_SEND_WITH_INV, rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, SOFTHCA_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	rdma(ex, SOFTHCA_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	softhca_post_imm(ex_qp(ex), imm_data);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(ex, SOFTHCA_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	atomic(ex, SOFTHCA_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	atomic(ex, SOFTHCA_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	rdma(ex, SOFTHCA_WR_ATOMIC_WRITE, rkey, remote_addr);
	softhca_post_inline(ex_qp(ex), atomic_wr, sizeof(uint64_t));
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	bool good = len <= UINT32_MAX && type < SOFTHCA_FLUSH_REGION;

	atomic(ex, good ? SOFTHCA_WR_FLUSH : NO_OPCODE, rkey, remote_addr,
	       type | (uint64_t)level * SOFTHCA_FLUSH_REGION, len);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct softhca_send_wr wr = {.wr_id = ex->wr_id,
				     .opcode = SOFTHCA_WR_BIND_MW,
				     .send_flags = ex->wr_flags,
				     .wr.bind_mw = {.mw = to_shca_mw(mw)->mw, .rkey = rkey}};

	bind_info_convert(bind_info, &wr.wr.bind_mw.bind_info);
	softhca_post_add(ex_qp(ex), &wr);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	local(ex, SOFTHCA_WR_LOCAL_INV, rkey);
}

/* ---- addresses and data ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	softhca_post_address(ex_qp(ex), to_shca_ah(ah)->ah, remote_qpn, remote_qkey);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	softhca_post_sge(ex_qp(ex), lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	softhca_post_sge_list(ex_qp(ex), num_sge, (const struct softhca_sge *)list);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	softhca_post_inline(ex_qp(ex), addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *list)
{
	softhca_post_inline_list(ex_qp(ex), num_buf, (const struct softhca_buffer *)list);
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
