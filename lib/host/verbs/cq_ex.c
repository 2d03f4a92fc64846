/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended completion queues: one completion at a time, field by field (hot). From a successful
 * start_poll() until end_poll() this thread holds the queue, unless it is for a single thread.
 */
#include <sched.h>
#include "cq.h"
#include "handles.h"

static struct shca_cq *ex_cq(struct ibv_cq_ex *cq)
{
	return container(cq, struct shca_cq, ex);
}

/* 0, ENOENT: the queue is empty; EIO: and will stay empty. */
static inline int cq_ex_take(struct shca_cq *cq)
{
	int done = softhca_poll_cq(cq->cq, 1, &cq->now);

	if (unlikely(done != 1))
		return done == 0 ? ENOENT : EIO;
	cq->ex.status = (enum ibv_wc_status)cq->now.status;
	cq->ex.wr_id = cq->now.wr_id;
	return 0;
}

static int start_single(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return unlikely(attr && attr->comp_mask) ? EINVAL : cq_ex_take(ex_cq(ex));
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return cq_ex_take(ex_cq(ex));
}

static void end_single(struct ibv_cq_ex *ex)
{
	(void)ex;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	__atomic_store_n(&ex_cq(ex)->polled, 0, __ATOMIC_RELEASE);
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int rc;

	while (unlikely(__atomic_exchange_n(&ex_cq(ex)->polled, 1, __ATOMIC_ACQUIRE)))
		sched_yield();
	rc = start_single(ex, attr);
	if (rc)
		end_poll(ex);
	return rc;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)ex_cq(ex)->now.opcode;
}

#define READS(type, name, field)                                                                   \
	static type name(struct ibv_cq_ex *ex)                                                     \
	{                                                                                          \
		return ex_cq(ex)->now.field;                                                       \
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
	ex->end_poll = cq->single_thread ? end_single : end_poll;
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
