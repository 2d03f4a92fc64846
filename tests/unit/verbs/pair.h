/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_PAIR_H
#define VERBS_PAIR_H
/* Two queue pairs of one context, connected to each other through a whole daemon. */
#include <sched.h>
#include <time.h>

#include <sys/mman.h>
#include "../../system/verbs/later.h"
#include "../control/hca_test.h"
#include "first.h"

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex; /* of qp[0] */
	struct ibv_qp_cap cap;
	uint8_t *memory; /* PAIR_BYTES of zeroes */
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* to ourselves */
};

enum { PAIR_BYTES = 1 << 18, PAIR_QKEY = 0x1234 };

static inline void pair_connect(struct pair *p, int side)
{
	struct ibv_qp *qp = p->qp[side];
	bool ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.qkey = PAIR_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL |
				   IBV_ACCESS_FLUSH_PERSISTENT,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = p->qp[!side]->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7};

	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
			 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE |
				      (ud ? 0
					  : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						       IBV_QP_RQ_PSN) |
				      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
		0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN |
				      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						       IBV_QP_MAX_QP_RD_ATOMIC
					  : 0)),
		0);
}

static inline void pair_open(struct pair *p, enum ibv_qp_type type)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = 256, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_qp_init_attr_ex init = {.cap = {.max_send_wr = 64,
						   .max_recv_wr = 64,
						   .max_send_sge = 4,
						   .max_recv_sge = 4,
						   .max_inline_data = 128},
					   .qp_type = type,
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	p->ctx = open_first();
	assert_non_null(p->ctx);
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq_ex(p->ctx, &cq);
	assert_non_null(p->cq);
	p->memory =
		mmap(NULL, PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p->mr = ibv_reg_mr(p->pd, p->memory, PAIR_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL);
	assert_non_null(p->mr);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(p->cq);
	init.pd = p->pd;
	init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	if (type != IBV_QPT_UD)
		init.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |
				       IBV_QP_EX_WITH_LOCAL_INV;
	if (type == IBV_QPT_RC)
		init.send_ops_flags |=
			IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |
			IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH;
	for (int i = 0; i < 2; i++) {
		p->qp[i] = ibv_create_qp_ex(p->ctx, &init);
		assert_non_null(p->qp[i]);
	}
	p->cap = init.cap;
	p->ex = ibv_qp_to_qp_ex(p->qp[0]);
	for (int i = 0; i < 2; i++)
		pair_connect(p, i);
	assert_int_equal(ibv_query_gid(p->ctx, 1, 0, &to.grh.dgid), 0);
	p->ah = ibv_create_ah(p->pd, &to);
	assert_non_null(p->ah);
}

static inline void pair_close(struct pair *p)
{
	assert_int_equal(ibv_destroy_ah(p->ah), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(p->qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(p->mr), 0);
	assert_int_equal(munmap(p->memory, PAIR_BYTES), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(p->cq)), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->ctx), 0);
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Polls until n completions came, all of them good; fails after ten seconds. */
static inline void wait_for(struct pair *p, int n, struct ibv_wc *wc)
{
	double end = seconds() + 10;

	for (int got = 0; got < n;) {
		int r = ibv_poll_cq(ibv_cq_ex_to_cq(p->cq), n - got, wc + got);

		assert_true(r >= 0);
		got += r;
		if (seconds() > end)
			fail_msg("%d of %d completions", got, n);
	}
	for (int i = 0; i < n; i++)
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
}

static inline void nothing_more(struct pair *p)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(p->cq), 1, &wc), 0);
}

static inline struct ibv_sge sge_of(struct pair *p, size_t offset, uint32_t length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)p->memory + offset, .length = length, .lkey = p->mr->lkey};
}

static inline void receive(struct pair *p, size_t offset, uint32_t length, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(p, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
}

/* A case on its own pair, p, of queue pairs of that type. */
#define TEST_PAIR(name, type)                                                                      \
	static void name##_on(struct pair *p);                                                     \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct pair pair, *p = &pair;                                                      \
                                                                                                   \
		pair_open(p, type);                                                                \
		name##_on(p);                                                                      \
		pair_close(p);                                                                     \
	}                                                                                          \
	static void name##_on(struct pair *p)

#endif
