/* SPDX-License-Identifier: BSD-3-Clause */
/* libsofthca against a whole daemon over a wire that leads back: long lists, errors, shared receive
 * queues, connections, the daemon's end. That each operation works is tested in ../verbs. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include "pair.h"

/* Lists longer than one doorbell's chain, unsignaled ones in between, many times around the queue.
 */
TEST_PAIR(rc__lists_around_the_ring, SOFTHCA_QP_RC)
{
	struct softhca_send_wr wr[16];
	struct softhca_sge sge[16];
	struct softhca_wc wc;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 16; i++) {
			p->memory[i] = (uint8_t)(round + i);
			sge[i] = sge_of(p, (size_t)i, 1);
			wr[i] = (struct softhca_send_wr){
				.wr_id = (uint64_t)(round * 16 + i),
				.next = i < 15 ? &wr[i + 1] : NULL,
				.sg_list = &sge[i],
				.num_sge = 1,
				.opcode = SOFTHCA_WR_RDMA_WRITE,
				.send_flags = i == 15 ? SOFTHCA_SEND_SIGNALED : 0,
				.wr.rdma = {(uintptr_t)p->memory + 4096 + (size_t)i, p->mr->rkey}};
		}
		assert_int_equal(softhca_post_send(p->qp[0], wr, NULL), 0);
		wait_for(p, 1, &wc);
		assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(wc.wr_id, round * 16 + 15);
		assert_memory_equal(p->memory, p->memory + 4096, 16);
	}
}

enum { DEPTH = 1024 }; /* more than doorbell FIFO and daemon take */

static void post_each(struct pair *p, int end, enum softhca_wr_opcode opcode, uint64_t wr_id,
		      int flags)
{
	struct softhca_sge sge = sge_of(p, (size_t)end * 8, 8);
	struct softhca_send_wr wr = {.wr_id = wr_id,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = opcode,
				     .send_flags = flags,
				     .wr.rdma = {(uintptr_t)p->memory + 64, p->mr->rkey}};

	assert_int_equal(softhca_post_send(p->qp[end], &wr, NULL), 0);
}

/* Two programs that post all that they may, one by one, before either posts a receive: a post that
 * waited for the peer would wait for ever. */
TEST_PAIR_BY(posts__never_wait_for_the_peer, p->quiet = true;
	     pair_open_deep(p, SOFTHCA_QP_RC, 0, DEPTH))
{
	struct softhca_recv_wr recv = {0};
	struct softhca_send_wr more = {.opcode = SOFTHCA_WR_SEND};
	static struct softhca_wc wc[4 * DEPTH];
	uint64_t next[2] = {0};

	for (int i = 0; i < DEPTH; i++)
		for (int end = 0; end < 2; end++)
			post_each(p, end, SOFTHCA_WR_SEND, (uint64_t)i, SOFTHCA_SEND_SIGNALED);
	for (int end = 0; end < 2; end++)
		assert_int_equal(softhca_post_send(p->qp[end], &more, NULL), -ENOMEM);
	struct softhca_sge sge = sge_of(p, 1024, 8);
	recv.sg_list = &sge;
	recv.num_sge = 1;
	for (int i = 0; i < DEPTH; i++)
		for (int end = 0; end < 2; end++)
			assert_int_equal(softhca_post_recv(p->qp[end], &recv, NULL), 0);
	wait_for(p, 4 * DEPTH, wc);
	for (int i = 0; i < 4 * DEPTH; i++) {
		assert_int_equal(wc[i].status, SOFTHCA_WC_SUCCESS);
		if (wc[i].opcode == SOFTHCA_WC_SEND)
			assert_int_equal(wc[i].wr_id,
					 next[wc[i].qp_num == softhca_qp_number(p->qp[1])]++);
	}
	assert_int_equal(next[0] + next[1], 2 * DEPTH);
}

/* The same while the program sleeps for a completion whose doorbell has not been rung yet. */
TEST_PAIR_BY(posts__doorbells_that_wait_are_rung_by_nobody_else, p->quiet = false;
	     pair_open_deep(p, SOFTHCA_QP_RC, 0, DEPTH))
{
	struct softhca_recv_wr recv = {0};
	struct softhca_wc wc;

	post_each(p, 0, SOFTHCA_WR_SEND, 0, 0); /* stops the others until there is a receive */
	for (uint64_t i = 1; i < DEPTH; i++)
		post_each(p, 0, SOFTHCA_WR_RDMA_WRITE, i,
			  i == DEPTH - 1 ? SOFTHCA_SEND_SIGNALED : 0);
	struct softhca_sge sge = sge_of(p, 1024, 8);
	recv.sg_list = &sge;
	recv.num_sge = 1;
	recv.wr_id = DEPTH;
	assert_int_equal(softhca_req_notify_cq(p->cq, 0), 0);
	assert_int_equal(softhca_post_recv(p->qp[1], &recv, NULL), 0);
	/* A completion between an event and the next arm raises none: poll until there is nothing. */
	for (int got = 0; got < 2;) {
		struct softhca_cq *cq;

		assert_int_equal(softhca_get_cq_event(p->channel, &cq, NULL), 0);
		softhca_ack_cq_events(cq, 1);
		assert_int_equal(softhca_req_notify_cq(p->cq, 0), 0);
		for (; softhca_poll_cq(p->cq, 1, &wc) == 1; got++) {
			assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
			assert_int_equal(wc.wr_id, got == 0 ? DEPTH : DEPTH - 1);
		}
	}
}

TEST_PAIR(rc__bad_rkey_then_flush_both_queues, SOFTHCA_QP_RC)
{
	struct softhca_wc wc[8];
	struct softhca_sge sge = sge_of(p, 0, 64);

	struct softhca_recv_wr recv = {.wr_id = 100, .sg_list = &sge, .num_sge = 1};
	assert_int_equal(softhca_post_recv(p->qp[0], &recv, NULL), 0);
	struct softhca_send_wr wr = {.wr_id = 1,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED,
				     .wr.rdma = {(uintptr_t)p->memory, p->mr->rkey ^ 0x80000000u}};
	assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), 0);
	wait_for(p, 2, wc);
	if (wc[0].wr_id != 1) {
		wc[2] = wc[0];
		wc[0] = wc[1];
		wc[1] = wc[2];
	}
	assert_int_equal(wc[0].status, SOFTHCA_WC_REM_ACCESS_ERR);
	assert_int_equal(wc[1].wr_id, 100);
	assert_int_equal(wc[1].status, SOFTHCA_WC_WR_FLUSH_ERR);
	assert_int_equal(softhca_qp_current_state(p->qp[0]), SOFTHCA_QPS_ERR);
	/* requests posted from now on are flushed, too */
	assert_int_equal(softhca_post_recv(p->qp[0], &recv, NULL), 0);
	wait_for(p, 1, wc);
	assert_int_equal(wc[0].status, SOFTHCA_WC_WR_FLUSH_ERR);
	assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), 0);
	wait_for(p, 1, wc);
	assert_int_equal(wc[0].status, SOFTHCA_WC_WR_FLUSH_ERR);
}

TEST_PAIR(rc__reset_and_connect_again, SOFTHCA_QP_RC)
{
	struct softhca_wc wc;
	struct softhca_endpoint end[2];
	struct softhca_sge sge = sge_of(p, 0, 64);
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};

	struct softhca_send_wr wr = {.wr_id = 1,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .wr.rdma = {(uintptr_t)p->memory + 4096, p->mr->rkey}};
	for (int round = 0; round < 20; round++) {
		put(p, &wr, &wc);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(softhca_modify_qp(p->qp[i], &reset, SOFTHCA_QP_STATE), 0);
			assert_int_equal(softhca_local_endpoint(p->qp[i], 0, &end[i]), 0);
		}
		assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), -EINVAL);
		for (int i = 0; i < 2; i++)
			assert_int_equal(softhca_connect_qp(p->qp[i], &end[i], &end[!i], NULL), 0);
	}
}

/* One queue pair is both ends: requester and responder of the same context, one wire. */
TEST_PAIR(rc__connected_to_itself, SOFTHCA_QP_RC)
{
	struct softhca_wc wc[2];
	struct softhca_sge in, out;
	struct softhca_endpoint end;
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};

	assert_int_equal(softhca_modify_qp(p->qp[0], &reset, SOFTHCA_QP_STATE), 0);
	assert_int_equal(softhca_local_endpoint(p->qp[0], 0, &end), 0);
	assert_int_equal(softhca_connect_qp(p->qp[0], &end, &end, NULL), 0);
	memset(p->memory, 0x5a, 20000);
	in = sge_of(p, 0x10000, 20000);
	out = sge_of(p, 0, 20000);
	struct softhca_recv_wr recv = {.wr_id = 1, .sg_list = &in, .num_sge = 1};
	struct softhca_send_wr send = {.wr_id = 2,
				       .sg_list = &out,
				       .num_sge = 1,
				       .opcode = SOFTHCA_WR_SEND,
				       .send_flags = SOFTHCA_SEND_SIGNALED};
	assert_int_equal(softhca_post_recv(p->qp[0], &recv, NULL), 0);
	assert_int_equal(softhca_post_send(p->qp[0], &send, NULL), 0);
	wait_for(p, 2, wc);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wc[i].status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(wc[i].wr_id, wc[i].opcode & SOFTHCA_WC_RECV ? 1 : 2);
	}
	assert_memory_equal(p->memory, p->memory + 0x10000, 20000);

	struct softhca_send_wr read = {.wr_id = 3,
				       .sg_list = &in,
				       .num_sge = 1,
				       .opcode = SOFTHCA_WR_RDMA_READ,
				       .wr.rdma = {(uintptr_t)p->memory + 0x30000, p->mr->rkey}};
	memset(p->memory + 0x30000, 0x33, 20000);
	put(p, &read, wc);
	assert_memory_equal(p->memory + 0x30000, p->memory + 0x10000, 20000);
}

static void post_srq(struct pair *p, uint32_t n, uint64_t wr_id)
{
	struct softhca_sge sge = sge_of(p, 0x10000 + 4096 * n, 4096);
	struct softhca_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(softhca_post_srq_recv(p->srq, &wr, NULL), 0);
}

/* Message `value` over QP `from`; its receive completes on the other one with that wr_id. */
static void send_shared(struct pair *p, int from, uint32_t value, uint64_t wr_id)
{
	struct softhca_wc wc[2];
	struct softhca_sge sge = {.addr = (uintptr_t)&value, .length = sizeof(value)};
	struct softhca_send_wr send = {.wr_id = 1,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = SOFTHCA_WR_SEND,
				       .send_flags = SOFTHCA_SEND_SIGNALED | SOFTHCA_SEND_INLINE};

	assert_int_equal(softhca_post_send(p->qp[from], &send, NULL), 0);
	wait_for(p, 2, wc);
	if (wc[0].opcode != SOFTHCA_WC_RECV)
		wc[0] = wc[1];
	assert_int_equal(wc[0].status, SOFTHCA_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, SOFTHCA_WC_RECV);
	assert_int_equal(wc[0].qp_num, softhca_qp_number(p->qp[!from]));
	assert_int_equal(wc[0].wr_id, wr_id);
}

TEST(srq__receives_limit_and_last_wqe)
{
	struct softhca_qp_attr error = {.state = SOFTHCA_QPS_ERR};
	struct softhca_srq_attr attr;
	struct softhca_event e;
	struct softhca_recv_wr recv = {.wr_id = 1};
	struct pair p = {0};

	pair_open_with(&p, SOFTHCA_QP_RC, 8);
	assert_int_equal(softhca_destroy_srq(p.srq), -EBUSY);
	assert_int_equal(softhca_post_recv(p.qp[0], &recv, NULL), -EINVAL);
	assert_int_equal(softhca_query_srq(p.srq, &attr), 0);
	assert_int_equal(attr.max_wr, 8);
	assert_true(attr.max_sge >= 2);
	assert_int_equal(softhca_arm_srq(p.srq, 9), -EINVAL);
	for (uint32_t i = 0; i < 8; i++)
		post_srq(&p, i, 500 + i);
	assert_int_equal(softhca_arm_srq(p.srq, 3), 0);
	for (uint32_t i = 0; i < 6; i++) {
		send_shared(&p, i & 1, i + 1000, 500 + i);
		assert_int_equal(*(uint32_t *)(p.memory + 0x10000 + 4096 * i), i + 1000);
	}
	e = next_event(&p);
	assert_int_equal(e.type, SOFTHCA_EVENT_SRQ_LIMIT);
	assert_ptr_equal(e.srq, p.srq);
	assert_ptr_equal(softhca_srq_user(e.srq), &p);
	assert_int_equal(e.number, softhca_srq_number(p.srq));
	assert_int_equal(softhca_query_srq(p.srq, &attr), 0);
	assert_int_equal(attr.available, 2);
	assert_int_equal(attr.limit + attr.error, 0);
	assert_int_equal(softhca_modify_qp(p.qp[1], &error, SOFTHCA_QP_STATE), 0);
	e = next_event(&p);
	assert_int_equal(e.type, SOFTHCA_EVENT_QP_LAST_WQE);
	assert_ptr_equal(e.qp, p.qp[1]);
	pair_close(&p);
}

/* Many times around the ring, with what completes unpolled when its QP goes. */
TEST(srq__continues_through_queue_pairs_that_come_and_go)
{
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};
	struct softhca_endpoint end[2];
	struct pair p = {0};

	pair_open_with(&p, SOFTHCA_QP_RC, 4);
	for (uint32_t round = 0; round < 20; round++) {
		struct softhca_send_wr send = {.opcode = SOFTHCA_WR_SEND};

		for (uint32_t i = 0; i < 4; i++)
			post_srq(&p, i, round * 10 + i);
		send_shared(&p, 0, round, round * 10);
		assert_int_equal(softhca_post_send(p.qp[0], &send, NULL), 0);
		assert_int_equal(softhca_post_send(p.qp[1], &send, NULL), 0);
		for (struct softhca_srq_attr attr = {.available = 3}; attr.available != 1;)
			assert_int_equal(softhca_query_srq(p.srq, &attr), 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(softhca_modify_qp(p.qp[i], &reset, SOFTHCA_QP_STATE), 0);
			assert_int_equal(softhca_local_endpoint(p.qp[i], 0, &end[i]), 0);
		}
		for (int i = 0; i < 2; i++)
			assert_int_equal(softhca_connect_qp(p.qp[i], &end[i], &end[!i], NULL), 0);
		send_shared(&p, 1, round, round * 10 + 3);
	}
	pair_close(&p);
}

TEST(connect__waits_for_the_next_hop)
{
	struct pair p;

	__atomic_store_n(&f.resolve_again, 20, __ATOMIC_RELAXED);
	pair_open(&p, SOFTHCA_QP_RC);
	assert_int_equal(__atomic_load_n(&f.resolve_again, __ATOMIC_RELAXED), 0);
	pair_close(&p);
}

TEST_PAIR(connect__nobody_there, SOFTHCA_QP_RC)
{
	struct softhca_endpoint end,
		peer = {.qpn = 5, .gid = {[10] = 0xff, [11] = 0xff, [12] = 10}};
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};

	assert_int_equal(softhca_modify_qp(p->qp[0], &reset, SOFTHCA_QP_STATE), 0);
	f.resolve_result = -EHOSTUNREACH;
	assert_int_equal(softhca_local_endpoint(p->qp[0], 0, &end), 0);
	assert_int_equal(softhca_connect_qp(p->qp[0], &end, &peer, NULL), -EHOSTUNREACH);
	f.resolve_result = 0;
}

TEST_PAIR(daemon__dies, SOFTHCA_QP_RC)
{
	struct softhca_event event;
	struct softhca_wc wc;
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_RDMA_WRITE};
	struct pollfd async = {.events = POLLIN};
	double end;
	int rc = 0;

	async.fd = softhca_async_fd(p->ctx);
	assert_true(async.fd >= 0);
	fixture_kill_control(&f);
	assert_int_equal(softhca_get_async_event(p->ctx, &event), 0);
	while (event.type == SOFTHCA_EVENT_COMM_EST)
		assert_int_equal(softhca_get_async_event(p->ctx, &event), 0);
	assert_int_equal(event.type, SOFTHCA_EVENT_DEVICE_FATAL);
	assert_int_equal(softhca_get_async_event(p->ctx, &event), -EIO);
	/* A poller is not woken for ever by a permanent condition. */
	assert_int_equal(poll(&async, 1, 0), 0);
	assert_int_equal(softhca_get_cq_event(p->channel, NULL, NULL), -EIO);
	assert_int_equal(softhca_query_gid(p->ctx, 0, event.number ? p->memory : p->memory),
			 -ENOTCONN);
	assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), -EIO);
	for (end = seconds() + 5; rc != -EIO && seconds() < end;)
		rc = softhca_poll_cq(p->cq, 1, &wc);
	assert_int_equal(rc, -EIO);
}

/* Posted requests complete as flushed, once, each queue in its order, those of SRQs not at all. */
TEST_PAIR(daemon__dies_with_work_to_do, SOFTHCA_QP_RC)
{
	struct softhca_wc wc[16];
	struct softhca_sge sge = sge_of(p, 0, 64);
	double end = seconds() + 10;
	int receives = 0;

	for (uint64_t i = 0; i < 5; i++) {
		struct softhca_recv_wr recv = {.wr_id = 100 + i, .sg_list = &sge, .num_sge = 1};

		assert_int_equal(softhca_post_recv(p->qp[0], &recv, NULL), 0);
	}
	fixture_kill_control(&f);
	while (seconds() < end) {
		int n = softhca_poll_cq(p->cq, 3, wc);

		if (n < 0)
			break;
		for (int i = 0; i < n; i++) {
			assert_int_equal(wc[i].status, SOFTHCA_WC_WR_FLUSH_ERR);
			assert_int_equal(wc[i].qp_num, softhca_qp_number(p->qp[0]));
			assert_int_equal(wc[i].opcode, SOFTHCA_WC_RECV);
			assert_int_equal(wc[i].wr_id, 100 + receives++);
		}
	}
	assert_int_equal(receives, 5);
	assert_int_equal(softhca_qp_current_state(p->qp[0]), SOFTHCA_QPS_ERR);
	assert_int_equal(softhca_qp_current_state(p->qp[1]), SOFTHCA_QPS_RTS);
	assert_int_equal(softhca_poll_cq(p->cq, 3, wc), -EIO);
}

/* In a separate process: posts without end, half of it to a key that does not exist, and never
 * polls. */
static void child_main(void)
{
	struct pair p;
	struct softhca_sge sge;
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED};

	pair_open(&p, SOFTHCA_QP_RC);
	sge = sge_of(&p, 0, 65536);
	wr.wr.rdma.remote_addr = (uintptr_t)p.memory + 0x20000;
	wr.wr.rdma.rkey = p.mr->rkey;
	for (;;) {
		struct softhca_wc wc[8];

		softhca_post_send(p.qp[0], &wr, NULL);
		softhca_poll_cq(p.cq, 8, wc);
	}
}

TEST_PAIR(client__killed_while_posting, SOFTHCA_QP_RC)
{
	struct softhca_wc wc;
	struct softhca_sge sge = sge_of(p, 0, 64);
	struct softhca_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = SOFTHCA_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = (uintptr_t)p->memory + 4096;
	wr.wr.rdma.rkey = p->mr->rkey;
	for (int round = 0; round < 10; round++) {
		pid_t child = fork();
		double end;

		if (child == 0)
			child_main();
		assert_true(fixture_wait_clients(&f, 2));
		for (end = seconds() + 0.1; seconds() < end;)
			put(p, &wr, &wc);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		for (end = seconds() + 0.02; seconds() < end;)
			put(p, &wr, &wc);
		assert_true(fixture_wait_clients(&f, 1));
	}
	assert_int_equal(fixture_counter(&f, COUNTER_clients_gone), 10);
}
