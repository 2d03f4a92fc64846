/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests in lists: what arrives, what is refused, and which of a list was. */
#include <arpa/inet.h>
#include "pair.h"

enum { FAR = 0x10000, MANY = 40 };

/* ---- what arrives ---- */

TEST_PAIR(rc__every_operation, IBV_QPT_RC)
{
	struct ibv_sge from[6];
	struct ibv_send_wr wr[6], *bad = NULL;
	struct ibv_wc wc[4];
	uint64_t *far = (uint64_t *)(p->memory + FAR);

	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < 6; i++) {
		memset(p->memory + 16 * i, 'a' + i, 16);
		from[i] = sge_of(p, 16u * (unsigned int)i, 8);
		wr[i] = (struct ibv_send_wr){
			.wr_id = (uint64_t)i, .sg_list = &from[i], .num_sge = 1};
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
		wr[i].wr.rdma.remote_addr = (uintptr_t)&far[i];
		wr[i].wr.rdma.rkey = p->mr->rkey;
	}
	far[2] = 0x7070707070707070;
	far[3] = 5;
	far[4] = 6;
	wr[0].opcode = IBV_WR_RDMA_WRITE;
	wr[1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr[1].imm_data = htonl(0x11111);
	wr[2].opcode = IBV_WR_RDMA_READ;
	wr[3].opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr[3].wr.atomic.compare_add = 5;
	wr[3].wr.atomic.swap = 55;
	wr[4].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr[4].wr.atomic.compare_add = 60;
	wr[3].wr.atomic.rkey = wr[4].wr.atomic.rkey = p->mr->rkey;
	wr[5].opcode = IBV_WR_SEND_WITH_IMM;
	wr[5].imm_data = htonl(0x22222);
	wr[5].send_flags = IBV_SEND_SIGNALED;
	receive(p, 0x20000, 0, 100);
	receive(p, 0x20000, 64, 101);
	assert_int_equal(ibv_post_send(p->qp[0], wr, &bad), 0);
	wait_for(p, 3, wc);
	assert_memory_equal(&far[0], "aaaaaaaa", 8);
	assert_memory_equal(&far[1], "bbbbbbbb", 8);
	assert_memory_equal(p->memory + 32, "pppppppp", 8);
	assert_int_equal(far[3], 55);
	assert_int_equal(*(uint64_t *)(p->memory + 48), 5);
	assert_int_equal(far[4], 66);
	assert_int_equal(*(uint64_t *)(p->memory + 64), 6);
	assert_memory_equal(p->memory + 0x20000, "ffffffff", 8);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wc[i].qp_num, p->qp[wc[i].wr_id >= 100]->qp_num);
		if (wc[i].wr_id == 5)
			assert_int_equal(wc[i].opcode, IBV_WC_SEND);
		if (wc[i].wr_id == 100) {
			assert_int_equal(wc[i].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
			assert_int_equal(wc[i].byte_len, 8);
			assert_int_equal(wc[i].imm_data, htonl(0x11111));
		}
		if (wc[i].wr_id == 101) {
			assert_int_equal(wc[i].opcode, IBV_WC_RECV);
			assert_int_equal(wc[i].wc_flags, IBV_WC_WITH_IMM);
			assert_int_equal(wc[i].imm_data, htonl(0x22222));
		}
	}
	wr[5].opcode = IBV_WR_ATOMIC_WRITE;
	assert_int_equal(ibv_post_send(p->qp[0], &wr[5], &bad), 0);
	wait_for(p, 1, wc);
	assert_int_equal(wc[0].opcode, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(&far[5], "ffffffff", 8);
	nothing_more(p);
}

/* One request of `length` bytes from `lkey` to `rkey`: how it completes. */
static enum ibv_wc_status outcome(struct pair *p, enum ibv_wr_opcode opcode, uint32_t length,
				  uint32_t lkey, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->memory, .length = length, .lkey = lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)p->memory + FAR, rkey}},
			   *bad;
	struct ibv_wc wc;
	double end = seconds() + 10;

	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	while (ibv_poll_cq(ibv_cq_ex_to_cq(p->cq), 1, &wc) == 0)
		assert_true(seconds() < end);
	return wc.status;
}

/* A region of no bytes has a key, for requests of no bytes. */
TEST(region__of_no_length)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
		bool local, remote; /* by the key of the empty region */
		enum ibv_wc_status status;
	} rows[] = {
		{IBV_WR_RDMA_WRITE, 0, true, true, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_READ, 0, true, true, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_WRITE, 1, true, false, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_READ, 1, true, false, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_WRITE, 1, false, true, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_READ, 1, false, true, IBV_WC_REM_ACCESS_ERR},
	};
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_mr *empty;
		struct pair p;

		pair_open(&p, IBV_QPT_RC);
		empty = ibv_reg_mr(p.pd, i % 2 ? NULL : p.memory + FAR, 0, all);
		assert_non_null(empty);
		assert_int_equal(empty->length, 0);
		assert_int_equal(outcome(&p, rows[i].opcode, rows[i].length,
					 rows[i].local ? empty->lkey : p.mr->lkey,
					 rows[i].remote ? empty->rkey : p.mr->rkey),
				 rows[i].status);
		assert_int_equal(ibv_dereg_mr(empty), 0);
		pair_close(&p);
	}
}

/* A window of type 1: its new key stands in it as soon as the bind is posted, and is the only one. */
TEST_PAIR(rc__window_of_type_1, IBV_QPT_RC)
{
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	uint32_t old;
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_1);

	assert_non_null(mw);
	bind.bind_info = (struct ibv_mw_bind_info){p->mr, (uintptr_t)p->memory + FAR, 64,
						   IBV_ACCESS_REMOTE_WRITE};
	for (int i = 0; i < 2; i++) {
		old = mw->rkey;
		assert_int_equal(ibv_bind_mw(p->qp[1], mw, &bind), 0);
		assert_int_not_equal(mw->rkey, old);
		wait_for(p, 1, &wc);
		assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
		assert_int_equal(outcome(p, IBV_WR_RDMA_WRITE, 64, p->mr->lkey, mw->rkey),
				 IBV_WC_SUCCESS);
	}
	assert_int_equal(outcome(p, IBV_WR_RDMA_WRITE, 64, p->mr->lkey, old),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* A window of type 2: bound, used, invalidated by a send, all by requests in one list. Some
 * programs give the new tag alone in the bind's key. */
TEST_PAIR(rc__windows_in_a_list, IBV_QPT_RC)
{
	struct ibv_sge sge;
	struct ibv_wc wc[3];
	struct ibv_send_wr wr[2], around[2], *bad = NULL;
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);

	assert_non_null(mw);
	sge = sge_of(p, 0, 8);
	memset(p->memory, 'w', 8);
	memset(wr, 0, sizeof(wr));
	/* To ourselves goes what we have bound: through the other QP. */
	wr[0] = (struct ibv_send_wr){
		.wr_id = 1,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey) & 0xff,
			    .bind_info = {.mr = p->mr,
					  .addr = (uintptr_t)p->memory + FAR,
					  .length = 64,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
							     IBV_ACCESS_LOCAL_WRITE}}};
	/* A bind is posted in another way than what is before and behind it. */
	around[0] = (struct ibv_send_wr){.wr_id = 0,
					 .next = &wr[0],
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)p->memory + FAR, p->mr->rkey}};
	around[1] = around[0];
	around[1].wr_id = 2;
	around[1].next = NULL;
	wr[0].next = &around[1];
	assert_int_equal(ibv_post_send(p->qp[1], around, &bad), 0);
	assert_null(bad);
	wait_for(p, 3, wc);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].opcode, i == 1 ? IBV_WC_BIND_MW : IBV_WC_RDMA_WRITE);
	}
	wr[0] = (struct ibv_send_wr){
		.wr_id = 2,
		.next = &wr[1],
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)p->memory + FAR, ibv_inc_rkey(mw->rkey)}};
	wr[1] = (struct ibv_send_wr){.wr_id = 3,
				     .opcode = IBV_WR_SEND_WITH_INV,
				     .send_flags = IBV_SEND_SIGNALED,
				     .invalidate_rkey = ibv_inc_rkey(mw->rkey)};
	receive(p, 0x20000, 64, 100);
	assert_int_equal(ibv_post_send(p->qp[0], wr, &bad), 0);
	wait_for(p, 2, wc);
	assert_memory_equal(p->memory + FAR, "wwwwwwww", 8);
	for (int i = 0; i < 2; i++) {
		if (wc[i].wr_id == 100) {
			assert_int_equal(wc[i].wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc[i].invalidated_rkey, ibv_inc_rkey(mw->rkey));
		}
	}
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* Datagrams are posted some at a time; all of a list arrive, in order. */
TEST_PAIR(ud__long_lists, IBV_QPT_UD)
{
	struct ibv_sge sge[MANY];
	struct ibv_send_wr wr[MANY], *bad = NULL;
	struct ibv_wc wc[MANY + 1];
	int next = 0;

	for (int i = 0; i < MANY; i++) {
		p->memory[i] = (uint8_t)(i + 1);
		receive(p, FAR + (size_t)i * 64, 64, (uint64_t)(100 + i));
		sge[i] = sge_of(p, (size_t)i, 1);
		wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
					     .next = i + 1 < MANY ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = i + 1 == MANY ? IBV_SEND_SIGNALED : 0,
					     .wr.ud = {p->ah, p->qp[1]->qp_num, PAIR_QKEY}};
	}
	assert_int_equal(ibv_post_send(p->qp[0], wr, &bad), 0);
	wait_for(p, MANY + 1, wc);
	for (int i = 0; i <= MANY; i++) {
		if (wc[i].wr_id < 100)
			continue;
		assert_int_equal(wc[i].wr_id, 100 + next);
		assert_int_equal(wc[i].byte_len, 41);
		assert_int_equal(wc[i].src_qp, p->qp[0]->qp_num);
		assert_int_equal(wc[i].wc_flags & IBV_WC_GRH, IBV_WC_GRH);
		assert_int_equal(p->memory[FAR + next * 64 + 40], next + 1);
		next++;
	}
	assert_int_equal(next, MANY);
}

/* To a group: only to those attached, including the sender's own queue pair. */
TEST_PAIR(ud__to_a_group, IBV_QPT_UD)
{
	union ibv_gid mgid = {.raw = {[10] = 0xff, [11] = 0xff, 239, 1, 2, 3}}, bad = {{0}};
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = mgid}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_send_wr wr, *refused;
	struct ibv_wc wc[3];
	struct ibv_sge sge = sge_of(p, 0, 5);
	uint16_t vid;
	uint8_t mac[6];

	wr = (struct ibv_send_wr){.sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = {ibv_create_ah(p->pd, &to), 0xffffff, PAIR_QKEY}};
	assert_non_null(wr.wr.ud.ah);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(p->ctx, &to, mac, &vid), 0);
	memcpy(p->memory, "hello", 5);
	assert_int_equal(ibv_attach_mcast(p->qp[1], &bad, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(p->qp[1], &mgid, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(p->qp[1], &mgid, 0), 0);
	assert_int_equal(ibv_attach_mcast(p->qp[1], &mgid, 0), 0);
	receive(p, FAR, 64, 100);
	receive(p, FAR + 64, 64, 101);
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &refused), 0);
	wait_for(p, 2, wc);
	assert_memory_equal(p->memory + FAR + 40, "hello", 5);
	assert_memory_equal(p->memory + FAR + 36, mgid.raw + 12, 4);
	assert_int_equal(p->memory[FAR + 28], 1); /* hops, if the address does not say */
	/* from a queue pair that is attached itself */
	memset(p->memory + FAR, 0, 128);
	assert_int_equal(ibv_post_send(p->qp[1], &wr, &refused), 0);
	wait_for(p, 2, wc);
	assert_memory_equal(p->memory + FAR + 64 + 40, "hello", 5);
	nothing_more(p);
	assert_int_equal(ibv_destroy_qp(p->qp[1]), EBUSY);
	assert_int_equal(ibv_modify_qp(p->qp[1], &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_detach_mcast(p->qp[1], &mgid, 0), 0);
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
}

TEST_PAIR(srq__many_at_once, IBV_QPT_RC)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 2}};
	struct ibv_recv_wr wr[65], *bad = NULL;
	struct ibv_sge sge[5];
	uint32_t room;
	struct ibv_srq *srq = ibv_create_srq(p->pd, &init);

	assert_non_null(srq);
	room = init.attr.max_wr;
	assert_true(room < 64);
	for (int i = 0; i < 5; i++)
		sge[i] = sge_of(p, 0, 8);
	for (uint32_t i = 0; i < 65; i++)
		wr[i] = (struct ibv_recv_wr){.wr_id = i,
					     .next = i < 64 ? &wr[i + 1] : NULL,
					     .sg_list = sge,
					     .num_sge = 1};
	wr[2].num_sge = (int)init.attr.max_sge + 1;
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	wr[2].num_sge = 1;
	assert_int_equal(ibv_post_srq_recv(srq, &wr[2], &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[room]);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* ---- what is refused ---- */

static void refuses(struct pair *p, struct ibv_send_wr *wr, int err)
{
	struct ibv_send_wr *bad = NULL;

	assert_int_equal(ibv_post_send(p->qp[0], wr, &bad), err);
	assert_ptr_equal(bad, wr);
}

TEST_PAIR(post__requests_that_cannot_be, IBV_QPT_RC)
{
	static const int none[] = {IBV_WR_TSO, IBV_WR_DRIVER1, 12, 13, 14, 16, 1 << 20, -1};
	struct ibv_sge sge[64];
	struct ibv_send_wr good, wr;

	for (int i = 0; i < 64; i++)
		sge[i] = sge_of(p, 0, 1);
	good = (struct ibv_send_wr){.sg_list = sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_WRITE,
				    .wr.rdma = {(uintptr_t)p->memory + FAR, p->mr->rkey}};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		wr = good;
		wr.opcode = none[i];
		refuses(p, &wr, EINVAL);
	}
	wr = good;
	wr.num_sge = (int)p->cap.max_send_sge + 1;
	refuses(p, &wr, EINVAL);
	wr.num_sge = -1;
	refuses(p, &wr, EINVAL);
	wr = good;
	wr.send_flags = IBV_SEND_INLINE;
	sge[0].length = p->cap.max_inline_data + 1;
	refuses(p, &wr, EINVAL);
	nothing_more(p);
}

TEST_PAIR(ud__requests_that_cannot_be, IBV_QPT_UD)
{
	static const int none[] = {
		IBV_WR_RDMA_WRITE,  IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_BIND_MW,	    IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV,
		IBV_WR_ATOMIC_WRITE};
	struct ibv_send_wr good, wr;

	good = (struct ibv_send_wr){.opcode = IBV_WR_SEND,
				    .wr.ud = {p->ah, p->qp[1]->qp_num, PAIR_QKEY}};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		wr = good;
		wr.opcode = none[i];
		refuses(p, &wr, EINVAL);
	}
	wr = good;
	wr.wr.ud.ah = NULL;
	refuses(p, &wr, EINVAL);
}

/* Those before the bad one are posted, wherever in the list it is: the connections' lists go
 * through as they are, datagrams' in pieces. */
TEST(post__the_bad_one_of_a_list)
{
	for (int kind = 0; kind < 2; kind++) {
		struct pair p;
		struct ibv_send_wr wr[MANY], *bad;
		struct ibv_wc wc[MANY];

		pair_open(&p, kind ? IBV_QPT_UD : IBV_QPT_RC);
		for (int at = 0; at < MANY; at += 3) {
			for (int i = 0; i < MANY; i++) {
				wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
							     .next = i + 1 < MANY ? &wr[i + 1]
										  : NULL,
							     .opcode = i == at ? IBV_WR_TSO
								       : kind  ? IBV_WR_SEND
									       : IBV_WR_RDMA_WRITE,
							     .send_flags = IBV_SEND_SIGNALED};
				if (kind) {
					wr[i].wr.ud.ah = p.ah;
					wr[i].wr.ud.remote_qpn = 0xfffffe; /* nobody */
				} else {
					wr[i].wr.rdma.remote_addr = (uintptr_t)p.memory;
					wr[i].wr.rdma.rkey = p.mr->rkey;
				}
			}
			bad = NULL;
			assert_int_equal(ibv_post_send(p.qp[0], wr, &bad), EINVAL);
			assert_ptr_equal(bad, &wr[at]);
			wait_for(&p, at, wc);
			for (int i = 0; i < at; i++)
				assert_int_equal(wc[i].wr_id, i);
			nothing_more(&p);
		}
		pair_close(&p);
	}
}

TEST_PAIR(post__queue_full, IBV_QPT_RC)
{
	struct ibv_send_wr wr[200], *bad = NULL;
	struct ibv_recv_wr recv[200], *bad_recv = NULL;

	assert_true(p->cap.max_send_wr < 200 && p->cap.max_recv_wr < 200);
	for (int i = 0; i < 200; i++) {
		/* Unsignaled: none leaves the queue. */
		wr[i] = (struct ibv_send_wr){.next = i < 199 ? &wr[i + 1] : NULL,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .wr.rdma = {(uintptr_t)p->memory, p->mr->rkey}};
		recv[i] = (struct ibv_recv_wr){.next = i < 199 ? &recv[i + 1] : NULL};
	}
	assert_int_equal(ibv_post_send(p->qp[0], wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[p->cap.max_send_wr]);
	assert_int_equal(ibv_post_recv(p->qp[0], recv, &bad_recv), ENOMEM);
	assert_ptr_equal(bad_recv, &recv[p->cap.max_recv_wr]);
}

TEST_PAIR(post__states, IBV_QPT_RC)
{
	struct ibv_sge sge[16];
	struct ibv_send_wr send = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_recv_wr recv = {.num_sge = 0, .sg_list = sge}, *bad_recv = NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	recv.num_sge = (int)p->cap.max_recv_sge + 1;
	assert_int_equal(ibv_post_recv(p->qp[0], &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	recv.num_sge = 0;
	assert_int_equal(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_post_recv(p->qp[0], &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(p->qp[0], &send, &bad), EINVAL);
	assert_int_equal(ibv_post_send(p->qp[0], NULL, &bad), EINVAL);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
	assert_int_equal(
		ibv_modify_qp(p->qp[0], &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	assert_int_equal(ibv_post_recv(p->qp[0], &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(p->qp[0], &send, &bad), EINVAL);
}
