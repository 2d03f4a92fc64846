/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions without memory: they send zeros, and data received into them are dropped. */
#include "pair.h"

enum { FAR = 0x10000, LONG = 100000 };

/* The lists of both sides: 16 bytes of the region, 100000 of none, 16 of the region. */
static void list_of(struct pair *p, struct ibv_mr *none, size_t at, struct ibv_sge sge[3])
{
	sge[0] = sge_of(p, at, 16);
	sge[1] = (struct ibv_sge){.addr = 0xfffffffffff00000, .length = LONG, .lkey = none->lkey};
	sge[2] = sge_of(p, at + 16, 16);
}

/* A pair with 'x' in all its memory, and a region of none; finish() undoes it. */
static struct ibv_mr *begin(struct pair *p)
{
	struct ibv_mr *mr;

	pair_open(p, IBV_QPT_RC);
	memset(p->memory, 'x', PAIR_BYTES);
	mr = ibv_alloc_null_mr(p->pd);
	assert_non_null(mr);
	assert_int_equal(mr->length, 0);
	assert_ptr_equal(mr->pd, p->pd);
	return mr;
}

static void finish(struct pair *p, struct ibv_mr *none)
{
	assert_int_equal(ibv_dereg_mr(none), 0);
	pair_close(p);
}

static void operate(struct pair *p, enum ibv_wr_opcode op, struct ibv_sge *sge, int n,
		    uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = op, .sg_list = sge, .num_sge = n}, *bad;
	struct ibv_wc wc[1];

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = (uintptr_t)p->memory + FAR;
	wr.wr.rdma.rkey = rkey;
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	wait_for(p, 1, wc);
}

TEST(null__is_read_as_zeroes)
{
	struct ibv_sge sge[3];
	struct ibv_mr *none;
	struct pair p;

	none = begin(&p);
	list_of(&p, none, 0, sge);
	operate(&p, IBV_WR_RDMA_WRITE, sge, 3, p.mr->rkey);
	assert_int_equal(p.memory[FAR + 15], 'x');
	for (int i = 0; i < LONG; i++)
		assert_int_equal(p.memory[FAR + 16 + i], 0);
	assert_int_equal(p.memory[FAR + 16 + LONG], 'x');
	finish(&p, none);
}

TEST(null__discards_what_is_read_into_it)
{
	struct ibv_sge sge[3];
	struct ibv_mr *none;
	struct pair p;

	none = begin(&p);
	memset(p.memory + FAR, 'a', 16);
	memset(p.memory + FAR + 16, 'b', LONG);
	memset(p.memory + FAR + 16 + LONG, 'c', 16);
	list_of(&p, none, 0, sge);
	operate(&p, IBV_WR_RDMA_READ, sge, 3, p.mr->rkey);
	assert_memory_equal(p.memory, "aaaaaaaaaaaaaaaacccccccccccccccc", 32);
	assert_int_equal(p.memory[32], 'x');
	/* Data written to it cannot be read back. */
	operate(&p, IBV_WR_RDMA_WRITE, &sge[1], 1, p.mr->rkey);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(p.memory[FAR + i], 0);
	finish(&p, none);
}

TEST(null__takes_a_message)
{
	struct ibv_recv_wr wr = {.num_sge = 3}, *bad;
	struct ibv_sge sge[3], from;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1},
			   *bad_send;
	struct ibv_wc wc[2];
	struct ibv_mr *none;
	struct pair p;

	none = begin(&p);
	memset(p.memory + FAR, 'a', 16);
	memset(p.memory + FAR + 16 + LONG, 'c', 16);
	list_of(&p, none, 0, sge);
	wr.sg_list = sge;
	assert_int_equal(ibv_post_recv(p.qp[1], &wr, &bad), 0);
	from = sge_of(&p, FAR, 32 + LONG);
	send.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p.qp[0], &send, &bad_send), 0);
	wait_for(&p, 2, wc);
	assert_memory_equal(p.memory, "aaaaaaaaaaaaaaaacccccccccccccccc", 32);
	assert_int_equal(p.memory[32], 'x');
	finish(&p, none);
}

/* It is for its owner's own lists. */
TEST(null__is_nothing_to_peers)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1}, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc = {0};
	struct ibv_mr *none;
	struct pair p;
	double end = seconds() + 10;

	none = begin(&p);
	sge = sge_of(&p, 0, 16);
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.rkey = none->rkey;
	assert_int_equal(ibv_post_send(p.qp[0], &wr, &bad), 0);
	while (ibv_poll_cq(ibv_cq_ex_to_cq(p.cq), 1, &wc) == 0 && seconds() < end)
		;
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_rereg_mr(none, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_READ),
			 IBV_REREG_MR_ERR_INPUT);
	finish(&p, none);
}
