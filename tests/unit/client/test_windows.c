/* SPDX-License-Identifier: BSD-3-Clause */
/* libsofthca against a whole daemon: memory windows of both types, local invalidate, fast
 * registration, re-registration. */
#include "pair.h"

/* Of the pair, QP 0 is the peer, 1 owns the windows. */
enum { BYTES = MEMORY_BYTES, PAGE = 4096, RIGHTS = PAIR_RIGHTS };

/* After an error: resets and reconnects both QPs, drops the completions. */
static void pair_again(struct pair *p)
{
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};
	struct softhca_wc wc;

	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_modify_qp(p->qp[i], &reset, SOFTHCA_QP_STATE), 0);
	while (softhca_poll_cq(p->cq, 1, &wc) > 0)
		;
	pair_connect(p);
}

static void expect(struct pair *p, uint32_t status, uint32_t opcode)
{
	struct softhca_wc wc;

	wait_for(p, 1, &wc);
	assert_int_equal(wc.status, status);
	if (!status)
		assert_int_equal(wc.opcode, opcode);
}

static void post(struct pair *p, int qp, struct softhca_send_wr *wr)
{
	wr->send_flags |= SOFTHCA_SEND_SIGNALED;
	assert_int_equal(softhca_post_send(p->qp[qp], wr, NULL), 0);
}

/* The peer writes eight bytes from the beginning of the memory. */
static void peer_writes(struct pair *p, uint32_t rkey, uint64_t at, uint32_t status)
{
	struct softhca_sge sge = {(uintptr_t)p->memory, 8, p->mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .wr.rdma = {at, rkey}};

	post(p, 0, &wr);
	expect(p, status, SOFTHCA_WC_RDMA_WRITE);
	if (status)
		pair_again(p);
}

static struct softhca_mw_bind_info second_page(struct pair *p, uint32_t access)
{
	return (struct softhca_mw_bind_info){
		.mr = p->mr, .addr = (uintptr_t)p->memory + PAGE, .length = PAGE, .access = access};
}

static void invalidate(struct pair *p, int qp, uint32_t rkey)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_LOCAL_INV, .invalidate_rkey = rkey};

	post(p, qp, &wr);
}

TEST_PAIR_BY(type_1__bound_moved_and_deallocated, pair_open_quiet(p, SOFTHCA_QP_RC))
{
	struct softhca_mw *mw, *two;
	struct softhca_mw_bind bind = {.wr_id = 7, .send_flags = SOFTHCA_SEND_SIGNALED};
	uint32_t first;
	uint64_t at = (uintptr_t)p->memory + PAGE;

	memset(p->memory, 0x5a, 8);
	assert_fails(softhca_alloc_mw(p->pd, 3), EINVAL);
	mw = softhca_alloc_mw(p->pd, SOFTHCA_MW_TYPE_1);
	two = softhca_alloc_mw(p->pd, SOFTHCA_MW_TYPE_2);
	assert_non_null(mw);
	bind.bind_info = second_page(p, SOFTHCA_ACCESS_REMOTE_WRITE);
	assert_int_equal(softhca_bind_mw(p->qp[1], two, &bind), -EINVAL);
	assert_int_equal(softhca_dealloc_mw(two), 0);
	assert_int_equal(softhca_bind_mw(p->qp[1], mw, &bind), 0);
	expect(p, 0, SOFTHCA_WC_BIND_MW);
	first = mw->rkey;
	peer_writes(p, first, at, SOFTHCA_WC_SUCCESS);
	assert_memory_equal(p->memory + PAGE, p->memory, 8);
	peer_writes(p, first, at - 1, SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_dereg_mr(p->mr), -EBUSY);
	assert_int_equal(softhca_rereg_mr(p->mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 -EBUSY);
	bind.bind_info.addr += PAGE;
	assert_int_equal(softhca_bind_mw(p->qp[1], mw, &bind), 0);
	expect(p, 0, SOFTHCA_WC_BIND_MW);
	assert_int_equal(mw->rkey, softhca_inc_rkey(first));
	peer_writes(p, mw->rkey, at + PAGE, SOFTHCA_WC_SUCCESS);
	peer_writes(p, first, at, SOFTHCA_WC_REM_ACCESS_ERR);
	first = mw->rkey;
	assert_int_equal(softhca_dealloc_mw(mw), 0);
	peer_writes(p, first, at + PAGE, SOFTHCA_WC_REM_ACCESS_ERR);
}

/* As libibverbs' ibv_inc_rkey(), which programs have inline. */
TEST(inc_rkey__changes_eight_bits)
{
	assert_int_equal(softhca_inc_rkey(0x12345678), 0x12345679);
	assert_int_equal(softhca_inc_rkey(0x123456ff), 0x12345600);
	assert_int_equal(softhca_inc_rkey(0xffffffff), 0xffffff00);
}

TEST_PAIR_BY(type_2__bound_and_invalidated, pair_open_quiet(p, SOFTHCA_QP_RC))
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_BIND_MW};
	struct softhca_mw *mw = softhca_alloc_mw(p->pd, SOFTHCA_MW_TYPE_2);

	wr.wr.bind_mw.mw = mw;
	wr.wr.bind_mw.rkey = softhca_inc_rkey(mw->rkey);
	wr.wr.bind_mw.bind_info =
		second_page(p, SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_ZERO_BASED);
	post(p, 1, &wr);
	expect(p, 0, SOFTHCA_WC_BIND_MW);
	memset(p->memory, 0x66, 8);
	peer_writes(p, wr.wr.bind_mw.rkey, 16, SOFTHCA_WC_SUCCESS);
	assert_memory_equal(p->memory + PAGE + 16, p->memory, 8);
	post(p, 1, &wr); /* is bound */
	expect(p, SOFTHCA_WC_MW_BIND_ERR, 0);
	pair_again(p);
	invalidate(p, 1, wr.wr.bind_mw.rkey);
	expect(p, 0, SOFTHCA_WC_LOCAL_INV);
	peer_writes(p, wr.wr.bind_mw.rkey, 16, SOFTHCA_WC_REM_ACCESS_ERR);
	invalidate(p, 1, wr.wr.bind_mw.rkey);
	expect(p, SOFTHCA_WC_MW_BIND_ERR, 0);
	pair_again(p);
	wr.wr.bind_mw.bind_info.mr = NULL;
	assert_int_equal(softhca_post_send(p->qp[1], &wr, NULL), -EINVAL);
	assert_int_equal(softhca_dealloc_mw(mw), 0);
}

TEST_PAIR_BY(fast__registered_by_a_work_request, pair_open_quiet(p, SOFTHCA_QP_RC))
{
	struct softhca_mr *mr;
	uint64_t page[2];
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_REG_MR};

	assert_fails(softhca_alloc_mr(p->pd, 0), EINVAL);
	mr = softhca_alloc_mr(p->pd, 2);
	assert_non_null(mr);
	assert_null(mr->addr);
	page[0] = (uintptr_t)p->memory + 2 * PAGE;
	page[1] = page[0] + PAGE;
	wr.wr.reg_mr.key = softhca_inc_rkey(mr->lkey);
	wr.wr.reg_mr.access = SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE;
	wr.wr.reg_mr.memory = p->mr;
	wr.wr.reg_mr.iova = 0x123000;
	wr.wr.reg_mr.length = 2 * PAGE;
	wr.wr.reg_mr.page = page;
	wr.wr.reg_mr.pages = 2;
	wr.wr.reg_mr.log_page = 12;
	post(p, 1, &wr);
	expect(p, 0, SOFTHCA_WC_REG_MR);
	memset(p->memory, 0x77, 8);
	peer_writes(p, wr.wr.reg_mr.key, 0x124000, SOFTHCA_WC_SUCCESS);
	assert_memory_equal(p->memory + 3 * PAGE, p->memory, 8);
	assert_int_equal(softhca_dereg_mr(p->mr), -EBUSY);
	invalidate(p, 1, wr.wr.reg_mr.key);
	expect(p, 0, SOFTHCA_WC_LOCAL_INV);
	peer_writes(p, wr.wr.reg_mr.key, 0x124000, SOFTHCA_WC_REM_ACCESS_ERR);
	/* any pages, in any order: a write over the border goes to both */
	wr.wr.reg_mr.key = softhca_inc_rkey(wr.wr.reg_mr.key);
	page[0] += 2 * PAGE;
	page[1] -= PAGE;
	post(p, 1, &wr);
	expect(p, 0, SOFTHCA_WC_REG_MR);
	memset(p->memory, 0x88, 8);
	peer_writes(p, wr.wr.reg_mr.key, 0x123ffc, SOFTHCA_WC_SUCCESS);
	assert_memory_equal(p->memory + 5 * PAGE - 4, p->memory, 4);
	assert_memory_equal(p->memory + 2 * PAGE, p->memory, 4);
	assert_int_not_equal(p->memory[5 * PAGE], 0x88);
	invalidate(p, 1, wr.wr.reg_mr.key);
	expect(p, 0, SOFTHCA_WC_LOCAL_INV);
	wr.wr.reg_mr.pages = 100; /* longer than an entry of this queue */
	assert_int_equal(softhca_post_send(p->qp[1], &wr, NULL), -EINVAL);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 -EINVAL);
	assert_int_equal(softhca_dereg_mr(mr), 0);
}

TEST_PAIR_BY(rereg__rights_range_and_domain, pair_open_quiet(p, SOFTHCA_QP_RC))
{
	struct softhca_pd *pd = softhca_alloc_pd(p->ctx);
	uint64_t at = (uintptr_t)p->memory + PAGE;
	struct softhca_mr *mr = softhca_reg_mr(p->pd, p->memory + PAGE, PAGE, 0);

	assert_non_null(mr);
	peer_writes(p, mr->rkey, at, SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0xf),
			 0);
	peer_writes(p, mr->rkey, at, SOFTHCA_WC_SUCCESS);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL,
					  p->memory + 2 * PAGE, PAGE, 0),
			 0);
	assert_ptr_equal(mr->addr, p->memory + 2 * PAGE);
	peer_writes(p, mr->rkey, at + PAGE, SOFTHCA_WC_SUCCESS);
	peer_writes(p, mr->rkey, at, SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	peer_writes(p, mr->rkey, at + PAGE, SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(softhca_rereg_mr(mr, 0, NULL, NULL, 0, 0), -EINVAL);
	assert_int_equal(softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 -EINVAL);
	assert_int_equal(
		softhca_rereg_mr(mr, SOFTHCA_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, PAGE, 0),
		-EFAULT);
	assert_int_equal(softhca_free_pd(pd), -EBUSY);
	assert_int_equal(softhca_dereg_mr(mr), 0);
	assert_int_equal(softhca_free_pd(pd), 0);
}

/* A client that goes with windows bound, and one that closes with all of it. */
TEST(end__with_everything_bound)
{
	for (int round = 0; round < 10; round++) {
		struct pair p;
		struct softhca_mw_bind bind = {.send_flags = SOFTHCA_SEND_SIGNALED};

		pair_open_quiet(&p, SOFTHCA_QP_RC);
		bind.bind_info = second_page(&p, SOFTHCA_ACCESS_REMOTE_READ);
		for (int i = 0; i < 8; i++)
			assert_int_equal(softhca_bind_mw(p.qp[1],
							 softhca_alloc_mw(p.pd, SOFTHCA_MW_TYPE_1),
							 &bind),
					 0);
		if (round % 2)
			expect(&p, 0, SOFTHCA_WC_BIND_MW);
		assert_int_equal(softhca_close(p.ctx), 0);
		assert_true(fixture_wait_clients(&f, 0));
	}
}
