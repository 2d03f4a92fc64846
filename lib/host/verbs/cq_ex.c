/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended completion queues: one completion at a time, field by field (hot). From a successful
 * start_poll() until end_poll() this thread polls the queue alone; other threads that start wait.
 */
#include "cq.h"
#include "handles.h"

static_assert(sizeof(enum ibv_wc_status) == sizeof(uint32_t), "as libsofthca fills it");

static inline struct shca_cq *ex_cq(struct ibv_cq_ex *cq)
{
	return container(cq, struct shca_cq, ex);
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (unlikely(attr && attr->comp_mask))
		return EINVAL;
	rc = softhca_start_poll(ex_cq(ex)->cq, &ex->wr_id, (uint32_t *)&ex->status);
	if (!rc)
		ex_cq(ex)->now_read = false;
	return -rc;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	int rc = softhca_next_poll(ex_cq(ex)->cq, &ex->wr_id, (uint32_t *)&ex->status);

	if (!rc)
		ex_cq(ex)->now_read = false;
	return -rc;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	softhca_end_poll(ex_cq(ex)->cq);
}

/* A queue for a single thread has no other to wait for: it may start before it has ended. */
static int start_single(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	end_poll(ex);
	return start_poll(ex, attr);
}

/* ---- fields ---- */

/* All of them are read when the program asks for the first. */
static inline const struct softhca_wc *now(struct ibv_cq_ex *ex)
{
	struct shca_cq *cq = ex_cq(ex);

	if (!cq->now_read)
		softhca_polled_wc(cq->cq, &cq->now);
	cq->now_read = true;
	return &cq->now;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)now(ex)->opcode;
}

#define READS(type, name, field)                                                                   \
	static type name(struct ibv_cq_ex *ex)                                                     \
	{                                                                                          \
		return now(ex)->field;                                                             \
	}
READS(uint32_t, read_vendor_err, vendor_err)
READS(uint32_t, read_byte_len, byte_len)
READS(__be32, read_imm_data, imm_data)
READS(uint32_t, read_qp_num, qp_num)
READS(uint32_t, read_src_qp, src_qp)
READS(unsigned int, read_wc_flags, wc_flags)
READS(uint32_t, read_slid, slid)
READS(uint8_t, read_sl, sl)
READS(uint8_t, read_dlid_path_bits, dlid_path_bits)

void cq_ex_fill(struct shca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = cq->single_thread ? start_single : start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
}
