/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library against memory instead of a daemon: what lies in the send queue, the receive queue
 * and the doorbell FIFO after posts; what polling makes of completions that the test writes.
 */
#include <poll.h>

#include "rings.h"
#include "this_cpu.h"

TEST_WITH(send__write_with_list_of_entries, setup, teardown)
{
	struct softhca_send_wr wr = {.wr_id = 77,
				     .sg_list = sges,
				     .num_sge = 4,
				     .opcode = SOFTHCA_WR_RDMA_WRITE_WITH_IMM,
				     .send_flags = SOFTHCA_SEND_SIGNALED | SOFTHCA_SEND_SOLICITED |
						   SOFTHCA_SEND_FENCE,
				     .imm_data = 0x55667788,
				     .wr.rdma = {0x1122334455667788, 0xabcd}};
	const struct wqe_next *next = unit(0, 0);
	const struct wqe_raddr *raddr = unit(0, 1);
	const struct wqe_data *data = unit(0, 2);
	uint64_t doorbell;

	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(next->nda_nop, 0);
	assert_int_equal(next->ee_nds, 0);
	assert_int_equal(next->flags, WQE_SIGNALED | WQE_SOLICITED);
	assert_int_equal(next->imm, 0x55667788);
	assert_int_equal(raddr->addr, 0x1122334455667788);
	assert_int_equal(raddr->rkey, 0xabcd);
	/* the empty entry is left out */
	assert_int_equal(data[2].length, 40);
	assert_int_equal(data[2].addr, 0x4000);
	assert_int_equal(data[2].lkey, 4);
	doorbell = take_doorbell();
	assert_int_equal((uint32_t)doorbell, USER_RDMA_WRITE_IMM | DOORBELL_FENCE);
	assert_int_equal(doorbell >> 32, NUMBER << 8 | 5);
	assert_false(doorbell_waits());
}

TEST_WITH(send__atomics, setup, teardown)
{
	struct softhca_send_wr wr = {
		.sg_list = sges,
		.num_sge = 1,
		.opcode = SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {
			.remote_addr = 0x10, .compare_add = 0x20, .swap = 0x30, .rkey = 0x40}};
	const struct wqe_raddr *raddr = unit(0, 1);
	const struct wqe_atomic *atomic = unit(0, 2);

	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(raddr->addr, 0x10);
	assert_int_equal(raddr->rkey, 0x40);
	assert_int_equal(atomic->swap_add, 0x30);
	assert_int_equal(atomic->compare, 0x20);
	assert_int_equal(take_doorbell() >> 32, NUMBER << 8 | 4);
	wr.opcode = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;
	atomic = unit(1, 2);
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(atomic->swap_add, 0x20);
}

TEST_WITH(send__inline, setup, teardown)
{
	static const uint8_t bytes[100] = {1, 2, 3, 4, 5, 6, 7, [99] = 99};
	struct softhca_sge parts[2] = {{(uintptr_t)bytes, 3, 0}, {(uintptr_t)bytes + 3, 97, 0}};
	struct softhca_send_wr wr = {.sg_list = parts,
				     .num_sge = 2,
				     .opcode = SOFTHCA_WR_SEND,
				     .send_flags = SOFTHCA_SEND_INLINE};
	const struct wqe_inline *data = unit(0, 1);

	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(data->length, WQE_INLINE | 100);
	assert_memory_equal(data + 1, bytes, 100);
	/* next, and 4 + 100 bytes in whole units */
	assert_int_equal(take_doorbell() >> 32, NUMBER << 8 | (1 + 7));
	parts[0].length = 4;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), -EINVAL);
	parts[0].length = parts[1].length = 0;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(take_doorbell() >> 32, NUMBER << 8 | 1);
	wr.opcode = SOFTHCA_WR_RDMA_READ;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), -EINVAL);
	assert_false(doorbell_waits());
}

TEST_WITH(send__datagram, setup, teardown)
{
	struct softhca_ah ah = {
		.ud = {.port = 1, .hop_limit = 9, .dmac = {1, 2, 3, 4, 5, 6}, .flow_label = 7}};
	struct softhca_send_wr wr = {.sg_list = sges,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_SEND,
				     .wr.ud = {&ah, 0x456, 0x80000000}};
	const struct wqe_ud *ud = unit(0, 1);

	qp->type = SOFTHCA_QP_UD;
	qp->qkey = 0x1234;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(ud->qpn, 0x456);
	assert_int_equal(ud->qkey, 0x1234);
	assert_int_equal(ud->hop_limit, 9);
	assert_int_equal(take_doorbell() >> 32, NUMBER << 8 | 5);
	wr.wr.ud.ah = NULL;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), -EINVAL);
	wr.wr.ud.ah = &ah;
	wr.opcode = SOFTHCA_WR_RDMA_WRITE;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), -EINVAL);
}

/* A list is one doorbell; each descriptor names the next, around the end of the queue. */
TEST_WITH(send__list_is_a_chain, setup, teardown)
{
	struct softhca_send_wr wr[4];
	struct softhca_wc wc[8];

	for (int i = 0; i < 4; i++)
		wr[i] = (struct softhca_send_wr){.wr_id = (uint64_t)i,
						 .next = i < 3 ? &wr[i + 1] : NULL,
						 .sg_list = sges,
						 .num_sge = i % 3,
						 .opcode = i == 2 ? SOFTHCA_WR_RDMA_READ
								  : SOFTHCA_WR_SEND,
						 .send_flags = i == 1 ? SOFTHCA_SEND_FENCE : 0};
	for (uint32_t round = 0; round < 5; round++) {
		uint32_t first = round * 4 % ENTRIES;
		uint64_t doorbell;

		assert_int_equal(softhca_post_send(qp, wr, NULL), 0);
		doorbell = take_doorbell();
		assert_false(doorbell_waits());
		assert_int_equal((uint32_t)doorbell, (first << SHIFT) / 16 << 8 | USER_SEND);
		for (uint32_t i = 0; i < 4; i++) {
			const struct wqe_next *next = unit((first + i) % ENTRIES, 0);
			uint32_t after = ((first + i + 1) % ENTRIES) << SHIFT;

			assert_int_equal(next->nda_nop,
					 i == 3 ? 0
						: after | (i == 1 ? (uint32_t)USER_RDMA_READ
								  : (uint32_t)USER_SEND));
			assert_int_equal(next->ee_nds, i == 0	? (WQE_NEXT_F | 2)
						       : i == 1 ? 4u
						       : i == 2 ? 1u
								: 0u);
		}
		complete(USER_SEND, true, first + 3); /* implies the three before */
		assert_int_equal(softhca_poll_cq(cq, 8, wc), 1);
		assert_int_equal(wc[0].wr_id, 3);
	}
}

TEST_WITH(send__full_queue_and_bad_request_in_a_list, setup, teardown)
{
	struct softhca_send_wr wr[ENTRIES + 1], *bad;

	for (int i = 0; i <= ENTRIES; i++)
		wr[i] = (struct softhca_send_wr){.next = i < ENTRIES ? &wr[i + 1] : NULL,
						 .opcode = SOFTHCA_WR_SEND};
	wr[2].opcode = 10; /* there is none */
	assert_int_equal(softhca_post_send(qp, wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(qp->sq.head, 2);
	take_doorbell();
	wr[2].opcode = SOFTHCA_WR_SEND;
	assert_int_equal(softhca_post_send(qp, wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[ENTRIES - 2]);
	assert_int_equal(qp->sq.head, ENTRIES);
	take_doorbell();
	assert_int_equal(softhca_post_send(qp, wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[0]);
	assert_false(doorbell_waits());
	for (uint32_t opcode = 0; opcode < 40; opcode++) {
		/* No bind without a window, no REG_MR without memory. */
		static const uint64_t known =
			0x2ff | 1 << SOFTHCA_WR_FLUSH | 1 << SOFTHCA_WR_ATOMIC_WRITE;

		qp->sq.tail = qp->sq.head;
		wr[ENTRIES].opcode = opcode;
		assert_int_equal(softhca_post_send(qp, &wr[ENTRIES], &bad),
				 known >> opcode & 1 ? 0 : -EINVAL);
	}
	wr[ENTRIES] =
		(struct softhca_send_wr){.opcode = SOFTHCA_WR_SEND, .num_sge = 5, .sg_list = sges};
	assert_int_equal(softhca_post_send(qp, &wr[ENTRIES], NULL), -EINVAL);
	wr[ENTRIES].num_sge = -1;
	assert_int_equal(softhca_post_send(qp, &wr[ENTRIES], NULL), -EINVAL);
	qp->state = SOFTHCA_QPS_RTR;
	wr[ENTRIES].num_sge = 1;
	assert_int_equal(softhca_post_send(qp, &wr[ENTRIES], NULL), -EINVAL);
}

TEST_WITH(doorbells__phase_over_many_rounds_and_kick, setup, teardown)
{
	const uint64_t all = UINT64_MAX - 1;
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	uint64_t kicks;

	for (int i = 0; i < 3 * UAR_DOORBELLS + 5; i++) {
		qp->sq.tail = qp->sq.head;
		assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
		take_doorbell();
	}
	assert_int_equal(read(ctx->kick, &kicks, sizeof(kicks)), -1);
	ctx->page->uar->daemon_asleep = 1;
	qp->sq.tail = qp->sq.head;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(read(ctx->kick, &kicks, sizeof(kicks)), sizeof(kicks));
	assert_true(kicks == 1);
	/* as full as can be: no error, no waiting */
	assert_int_equal(write(ctx->kick, &all, sizeof(all)), sizeof(all));
	qp->sq.tail = qp->sq.head;
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
}

static void fill_fifo(void)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};

	for (int i = 0; i < UAR_DOORBELLS; i++) {
		qp->sq.tail = qp->sq.head;
		assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	}
	qp->sq.tail = qp->sq.head;
}

/* What is posted while the FIFO is full becomes a chain with one doorbell. Batches that are aborted
 * or fail leave no trace in it. */
TEST_WITH(doorbells__full_fifo, setup, teardown)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND}, bad = {.opcode = 255};
	uint32_t first, requests = 0;
	struct softhca_wc wc;

	fill_fifo();
	first = qp->sq.head & qp->sq.mask;
	for (int i = 0; i < ENTRIES - 2; i++)
		assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	softhca_post_start(qp);
	assert_int_equal(softhca_post_add(qp, &wr), 0);
	softhca_post_abort(qp);
	softhca_post_start(qp);
	assert_int_equal(softhca_post_add(qp, &wr), 0);
	assert_int_equal(softhca_post_add(qp, &bad), -EINVAL);
	assert_int_equal(softhca_post_end(qp), -EINVAL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(softhca_post_send(qp, &wr, NULL), i < 2 ? 0 : -ENOMEM);
	assert_int_equal(ctx->unrung, 1);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(ctx->unrung, 1);
	take_doorbell();
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(ctx->unrung, 0);
	for (int i = 1; i < UAR_DOORBELLS; i++)
		take_doorbell();
	assert_int_equal((uint32_t)take_doorbell(), (first << SHIFT) / 16 << 8 | USER_SEND);
	assert_false(doorbell_waits());
	for (const struct wqe_next *at = NULL;; requests++) {
		uint32_t offset = at ? at->nda_nop & ~(uint32_t)(USER_OPCODES - 1) : first << SHIFT;

		at = (const struct wqe_next *)(qp->sq.buffer + offset);
		if (!at->nda_nop)
			break;
	}
	assert_int_equal(requests + 1, ENTRIES);
}

/* What waits is forgotten by a reset, but not by one that the daemon refuses. */
TEST_WITH(doorbells__of_a_queue_pair_that_is_reset, setup, teardown)
{
	const struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RESET};
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct control_header reply = {.type = CONTROL_MODIFY_QP};

	pthread_mutex_init(&ctx->lock, NULL);
	fill_fifo();
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	for (int refused = 1; refused >= 0; refused--) {
		assert_int_equal(ctx->unrung, 1);
		reply.status = refused ? -EINVAL : 0;
		assert_int_equal(send(far_end, &reply, sizeof(reply), 0), sizeof(reply));
		assert_int_equal(softhca_modify_qp(qp, &attr, SOFTHCA_QP_STATE), reply.status);
	}
	assert_int_equal(ctx->unrung, 0);
	assert_true(TAILQ_EMPTY(&qp->fifo->waiting));
}

/* One that fails flushes once there is room. */
TEST_WITH(doorbells__of_a_failed_queue_pair_wait_for_room, setup, teardown)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_wc wc;

	fill_fifo();
	qp_failed(qp, SOFTHCA_QPS_ERR);
	qp->state = SOFTHCA_QPS_RTS;
	qp_failed(qp, SOFTHCA_QPS_ERR);
	assert_int_equal(ctx->unrung, 1);
	take_doorbell();
	softhca_poll_cq(cq, 1, &wc);
	assert_int_equal(ctx->unrung, 0);
	for (int i = 1; i < UAR_DOORBELLS; i++)
		take_doorbell();
	assert_int_equal((uint32_t)take_doorbell(), USER_NOP);
	assert_false(doorbell_waits());
	fill_fifo();
	ring_for_receives(qp);
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(ctx->unrung, 2);
	unrung_forget(qp);
	assert_int_equal(ctx->unrung + qp->waits, 0);
	assert_true(TAILQ_EMPTY(&qp->fifo->waiting));
	/* one that is forgotten just when it begins to wait */
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	qp->unrung.before = NULL;
	take_doorbell();
	softhca_poll_cq(cq, 1, &wc);
	assert_int_equal(ctx->unrung + qp->waits, 0);
}

/* Once there is room, that of the queue pair comes first that has waited longest; one that is being
 * posted to holds up no other. */
TEST_WITH(doorbells__wait_in_turn, setup, teardown)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND};
	struct softhca_qp other = *qp;
	struct softhca_wc wc;

	other.number = NUMBER + 1;
	fill_fifo();
	other.sq.tail = other.sq.head;
	ring_for_receives(&other);
	ring_for_receives(qp);
	take_doorbell();
	softhca_poll_cq(cq, 1, &wc);
	assert_int_equal(softhca_post_send(&other, &wr, NULL), 0);
	assert_int_equal(ctx->unrung, 2);
	take_doorbell();
	softhca_poll_cq(cq, 1, &wc);
	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	for (int i = 2; i < UAR_DOORBELLS; i++)
		take_doorbell();
	spin_lock(&other.sq.lock);
	softhca_poll_cq(cq, 1, &wc);
	spin_unlock(&other.sq.lock);
	assert_int_equal(ctx->unrung, 1);
	softhca_poll_cq(cq, 1, &wc);
	assert_int_equal(ctx->unrung, 0);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(take_doorbell() >> 32 >> DOORBELL_QPN_SHIFT, NUMBER + !(n % 3));
	assert_false(doorbell_waits());
}

TEST_WITH(doorbells__full_fifo_of_a_dead_daemon, setup, teardown)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND}, *bad = NULL;
	uint32_t head;

	fill_fifo();
	head = qp->sq.head;
	close(far_end);
	far_end = -1;
	assert_int_equal(softhca_post_send(qp, &wr, &bad), -EIO);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(qp->sq.head, head);
	assert_int_equal(softhca_post_send(qp, &wr, NULL), -EIO);
}

TEST_WITH(receive__entries_terminator_and_count, setup, teardown)
{
	struct softhca_recv_wr wr[2] = {{.wr_id = 5, .next = &wr[1], .sg_list = sges, .num_sge = 4},
					{.wr_id = 6}};
	const struct wqe_data *data = (const struct wqe_data *)(qp->rq.buffer + 16);
	const uint8_t zeros[16] = {0};
	struct softhca_recv_wr *bad;

	assert_int_equal(softhca_post_recv(qp, wr, NULL), 0);
	assert_int_equal((uint32_t)take_doorbell(), USER_NOP); /* only the first ones ring */
	assert_int_equal(qp->record->rq_posted, 2);
	assert_int_equal(((const struct wqe_next *)qp->rq.buffer)->ee_nds, STRIDE / 16);
	assert_int_equal(data[2].length, 40);
	assert_memory_equal(&data[3], zeros, 16);
	assert_memory_equal(qp->rq.buffer + STRIDE + 16, zeros, 16);
	for (int i = 0; i < 3; i++)
		assert_int_equal(softhca_post_recv(qp, wr, NULL), 0);
	assert_int_equal(softhca_post_recv(qp, wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[0]);
	assert_int_equal(qp->record->rq_posted, ENTRIES);
	assert_false(doorbell_waits());
	wr[0].num_sge = 5;
	qp->rq.tail = qp->rq.head;
	assert_int_equal(softhca_post_recv(qp, wr, &bad), -EINVAL);
	qp->state = SOFTHCA_QPS_RESET;
	assert_int_equal(softhca_post_recv(qp, &wr[1], &bad), -EINVAL);
}

TEST_WITH(poll__every_kind_of_completion, setup, teardown)
{
	static const struct {
		uint8_t user;
		bool is_send;
		uint32_t opcode, flags;
	} kinds[] = {
		{USER_RDMA_WRITE, true, SOFTHCA_WC_RDMA_WRITE, 0},
		{USER_RDMA_WRITE_IMM, true, SOFTHCA_WC_RDMA_WRITE, 0},
		{USER_SEND, true, SOFTHCA_WC_SEND, 0},
		{USER_SEND_IMM, true, SOFTHCA_WC_SEND, 0},
		{USER_SEND_INV, true, SOFTHCA_WC_SEND, 0},
		{USER_RDMA_READ, true, SOFTHCA_WC_RDMA_READ, 0},
		{USER_ATOMIC_CS, true, SOFTHCA_WC_COMP_SWAP, 0},
		{USER_ATOMIC_FA, true, SOFTHCA_WC_FETCH_ADD, 0},
		{USER_RECV, false, SOFTHCA_WC_RECV, 0},
		{USER_RECV_IMM, false, SOFTHCA_WC_RECV, SOFTHCA_WC_WITH_IMM},
		{USER_RECV_RDMA_IMM, false, SOFTHCA_WC_RECV_RDMA_WITH_IMM, SOFTHCA_WC_WITH_IMM},
		{USER_RECV_INV, false, SOFTHCA_WC_RECV, SOFTHCA_WC_WITH_INV},
	};
	struct softhca_wc wc;

	for (uint32_t i = 0; i < 5 * sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint32_t k = i % (sizeof(kinds) / sizeof(kinds[0])), index = i % ENTRIES;
		struct cqe *e;

		(kinds[k].is_send ? &qp->sq : &qp->rq)->wr_id[index] = 1000 + i;
		e = complete(kinds[k].user, kinds[k].is_send, index);
		e->byte_count = i;
		e->imm_or_error = ~i;
		e->remote_qpn = 0x99;
		e->rlid_flags = i & 1 ? CQE_HAS_GRH : 0;
		assert_int_equal(softhca_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 1000 + i);
		assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(wc.opcode, kinds[k].opcode);
		assert_int_equal(wc.wc_flags, kinds[k].flags | (i & 1 ? SOFTHCA_WC_GRH : 0));
		assert_int_equal(wc.byte_len, i);
		assert_int_equal(wc.imm_data, ~i);
		assert_int_equal(wc.src_qp, 0x99);
		assert_int_equal(e->owner, CQE_OWNER_HW);
		assert_int_equal(cq->record->consumer_index, i + 1);
	}
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
}

TEST_WITH(poll__error_fails_the_qp_and_asks_for_the_flush, setup, teardown)
{
	static const uint8_t syndromes[][2] = {
		{SYNDROME_LOCAL_LENGTH, SOFTHCA_WC_LOC_LEN_ERR},
		{SYNDROME_LOCAL_QP_OP, SOFTHCA_WC_LOC_QP_OP_ERR},
		{SYNDROME_LOCAL_EEC_OP, SOFTHCA_WC_LOC_EEC_OP_ERR},
		{SYNDROME_LOCAL_PROT, SOFTHCA_WC_LOC_PROT_ERR},
		{SYNDROME_WR_FLUSH, SOFTHCA_WC_WR_FLUSH_ERR},
		{SYNDROME_MW_BIND, SOFTHCA_WC_MW_BIND_ERR},
		{SYNDROME_BAD_RESP, SOFTHCA_WC_BAD_RESP_ERR},
		{SYNDROME_LOCAL_ACCESS, SOFTHCA_WC_LOC_ACCESS_ERR},
		{SYNDROME_REMOTE_INVAL_REQ, SOFTHCA_WC_REM_INV_REQ_ERR},
		{SYNDROME_REMOTE_ACCESS, SOFTHCA_WC_REM_ACCESS_ERR},
		{SYNDROME_REMOTE_OP, SOFTHCA_WC_REM_OP_ERR},
		{SYNDROME_RETRY_EXC, SOFTHCA_WC_RETRY_EXC_ERR},
		{SYNDROME_RNR_RETRY_EXC, SOFTHCA_WC_RNR_RETRY_EXC_ERR},
		{SYNDROME_REMOTE_ABORTED, SOFTHCA_WC_REM_ABORT_ERR},
		{0xfe, SOFTHCA_WC_GENERAL_ERR},
	};
	struct softhca_recv_wr recv_wr = {.wr_id = 1};
	struct softhca_wc wc;

	for (uint32_t i = 0; i < sizeof(syndromes) / sizeof(syndromes[0]); i++) {
		complete(USER_INVALID, true, 0)->imm_or_error = 0x4200u | syndromes[i][0];
		assert_int_equal(softhca_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.status, syndromes[i][1]);
		assert_int_equal(wc.vendor_err, 0x42);
		assert_int_equal(softhca_qp_current_state(qp), SOFTHCA_QPS_ERR);
	}
	assert_int_equal(take_doorbell(), (uint64_t)NUMBER << 40 | USER_NOP);
	assert_false(doorbell_waits());
	assert_int_equal(softhca_post_recv(qp, &recv_wr, NULL), 0);
	assert_int_equal(take_doorbell(), (uint64_t)NUMBER << 40 | USER_NOP);
	/* of UD a failed send stops only the send queue */
	qp->type = SOFTHCA_QP_UD;
	qp->state = SOFTHCA_QPS_RTS;
	complete(USER_INVALID, true, 0);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(softhca_qp_current_state(qp), SOFTHCA_QPS_SQE);
	assert_false(doorbell_waits());
}

TEST_WITH(poll__completions_of_nobody_are_skipped, setup, teardown)
{
	struct softhca_wc wc[4];

	complete(USER_SEND, true, 0)->my_qpn = NUMBER ^ 0x100; /* an earlier user of the place */
	complete(USER_SEND, true, 0);
	complete(USER_RECV, false, 1);
	cq_forget(cq, qp);
	complete(USER_RECV, false, 2);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 1);
	assert_int_equal(cq->record->consumer_index, 4);
	/* without receive queue a receive means nothing */
	free(qp->rq.buffer);
	qp->rq.buffer = NULL;
	complete(USER_RECV, false, 2);
	assert_int_equal(softhca_poll_cq(cq, 4, wc), 0);
}

/* An SRQ as softhca_create_srq() makes it, and the QP receives through it. */
static struct softhca_srq *use_srq(void)
{
	struct softhca_srq *srq = zeroed(sizeof(*srq));

	*srq = (struct softhca_srq){.node.ctx = ctx,
				    .mask = ENTRIES - 1,
				    .shift = SHIFT,
				    .max_wr = ENTRIES,
				    .max_sge = 4,
				    .ring = zeroed(ENTRIES * STRIDE),
				    .record = zeroed(sizeof(*srq->record)),
				    .wr_id = zeroed(ENTRIES * 8),
				    .free_tags = zeroed(ENTRIES * 4),
				    .free_count = ENTRIES};
	memset(srq->ring, 0xee, ENTRIES * STRIDE);
	for (uint32_t i = 0; i < ENTRIES; i++)
		srq->free_tags[i] = ENTRIES - 1 - i;
	free(qp->rq.buffer);
	qp->rq.buffer = NULL;
	qp->srq = srq;
	return srq;
}

static void srq_unmake(struct softhca_srq *srq)
{
	free(srq->ring);
	free(srq->record);
	srq_free(srq);
}

/* The tag that the n-th descriptor posted carries. */
static uint32_t tag_of(const struct softhca_srq *srq, uint32_t n)
{
	return ((const struct wqe_next *)(srq->ring + ((n & srq->mask) << SHIFT)))->imm;
}

static void complete_tag(uint32_t tag)
{
	complete(USER_RECV, false, 0)->wqe_offset = tag;
}

TEST_WITH(srq__tags_find_requests_in_any_order, setup, teardown)
{
	struct softhca_srq *srq = use_srq();
	struct softhca_recv_wr wr[ENTRIES + 1], *bad;
	struct softhca_wc wc[ENTRIES];
	uint32_t tags[ENTRIES];

	for (uint32_t i = 0; i <= ENTRIES; i++)
		wr[i] = (struct softhca_recv_wr){.wr_id = 100 + i,
						 .next = i < ENTRIES ? &wr[i + 1] : NULL,
						 .sg_list = sges,
						 .num_sge = 2};
	assert_int_equal(softhca_post_srq_recv(srq, wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[ENTRIES]);
	assert_int_equal(srq->record->posted, ENTRIES);
	for (uint32_t i = 0; i < ENTRIES; i++)
		tags[i] = tag_of(srq, i);
	/* The daemon has taken all; the last one completes first. */
	for (uint32_t i = ENTRIES; i-- > 0;) {
		const struct wqe_data *data;

		complete_tag(tags[i]);
		assert_int_equal(softhca_poll_cq(cq, 4, wc), 1);
		assert_int_equal(wc->wr_id, 100 + i);
		assert_int_equal(wc->opcode, SOFTHCA_WC_RECV);
		/* its tag serves the next one, in the place that is oldest */
		wr[0] = (struct softhca_recv_wr){.wr_id = 200 + i, .sg_list = sges, .num_sge = 2};
		assert_int_equal(softhca_post_srq_recv(srq, wr, NULL), 0);
		assert_int_equal(tag_of(srq, srq->record->posted - 1), tags[i]);
		data = (const struct wqe_data *)(srq->ring + ((ENTRIES - 1 - i) << SHIFT) + 16);
		assert_int_equal(data[1].length, 20);
		assert_int_equal(data[2].length + data[2].lkey, 0);
		assert_int_equal(softhca_post_srq_recv(srq, wr, NULL), -ENOMEM);
	}
	assert_false(doorbell_waits());
	srq_unmake(srq);
}

TEST_WITH(srq__refused_requests, setup, teardown)
{
	struct softhca_srq *srq = use_srq();
	struct softhca_recv_wr wr[2] = {{.wr_id = 1, .next = &wr[1], .sg_list = sges, .num_sge = 4},
					{.wr_id = 2, .sg_list = sges, .num_sge = 5}};
	struct softhca_recv_wr *bad;

	assert_int_equal(softhca_post_recv(qp, &wr[1], NULL), -EINVAL); /* it has an SRQ */
	assert_int_equal(softhca_post_srq_recv(srq, wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(srq->record->posted, 1);
	assert_int_equal(srq->free_count, ENTRIES - 1);
	wr[1].num_sge = -1;
	assert_int_equal(softhca_post_srq_recv(srq, &wr[1], &bad), -EINVAL);
	ctx->dead = 1;
	wr[1].num_sge = 0;
	assert_int_equal(softhca_post_srq_recv(srq, &wr[1], &bad), -EIO);
	srq_unmake(srq);
}

TEST_WITH(srq__tags_of_forgotten_completions_come_back, setup, teardown)
{
	struct softhca_srq *srq = use_srq();
	struct softhca_recv_wr wr = {.wr_id = 7};
	struct softhca_wc wc;

	for (int i = 0; i < 3; i++)
		assert_int_equal(softhca_post_srq_recv(srq, &wr, NULL), 0);
	complete_tag(tag_of(srq, 0));
	complete(USER_SEND, true, 0); /* no receive */
	complete_tag(tag_of(srq, 2));
	cq_forget(cq, qp);
	assert_int_equal(srq->free_count, ENTRIES - 1);
	cq_forget(cq, qp);
	assert_int_equal(srq->free_count, ENTRIES - 1);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	srq_unmake(srq);
}

TEST_WITH(poll__dead_daemon_is_noticed, setup, teardown)
{
	struct softhca_wc wc;
	int rc = 0;

	for (int i = 0; i < 100000; i++) {
		if (i == 50000)
			softhca_yield_when_empty(cq); /* changes nothing else */
		assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	}
	close(far_end);
	far_end = -1;
	for (int i = 0; i < 100000 && !rc; i++)
		rc = softhca_poll_cq(cq, 1, &wc);
	assert_int_equal(rc, -EIO);
	/* entries already written still arrive */
	complete(USER_SEND, true, 0);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), -EIO);
}

/* From both queues, around their ends, as many as requested; then there are no more. */
TEST_WITH(poll__dead_daemon_flushes, setup, teardown)
{
	struct softhca_send_wr send = {.opcode = SOFTHCA_WR_RDMA_WRITE};
	struct softhca_recv_wr recv = {0};
	struct softhca_wc wc[8];

	ctx->nodes[NODE_QP] = &qp->node;
	qp->send_cq = qp->recv_cq = cq;
	qp->sq.head = qp->sq.tail = qp->rq.head = qp->rq.tail = ENTRIES - 1;
	for (uint64_t i = 0; i < 3; i++) {
		send.wr_id = i;
		recv.wr_id = 100 + i;
		assert_int_equal(softhca_post_send(qp, &send, NULL), 0);
		assert_int_equal(softhca_post_recv(qp, &recv, NULL), 0);
	}
	close(far_end);
	far_end = -1;
	ctx->dead = 1;
	assert_int_equal(softhca_poll_cq(cq, 0, wc), 0);
	assert_int_equal(softhca_poll_cq(cq, 2, wc), 2);
	assert_int_equal(softhca_poll_cq(cq, 6, wc + 2), 4);
	assert_int_equal(softhca_poll_cq(cq, 1, wc + 6), -EIO);
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(wc[i].status, SOFTHCA_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[i].qp_num, NUMBER);
		assert_int_equal(wc[i].opcode, i < 3 ? SOFTHCA_WC_SEND : SOFTHCA_WC_RECV);
		assert_int_equal(wc[i].wr_id, i < 3 ? i : 97 + i);
	}
	assert_int_equal(softhca_qp_current_state(qp), SOFTHCA_QPS_ERR);
	ctx->nodes[NODE_QP] = NULL;
}

/* The daemon may say so: a queue takes no more than it has places for, and nothing is flushed that is not there. */
TEST_WITH(poll__completions_of_what_was_never_posted, setup, teardown)
{
	struct softhca_send_wr send[ENTRIES + 1], *bad_send;
	struct softhca_recv_wr recv[ENTRIES + 1], *bad_recv;
	struct softhca_wc wc[2];

	ctx->nodes[NODE_QP] = &qp->node;
	for (int i = 0; i <= ENTRIES; i++) {
		send[i] = (struct softhca_send_wr){.next = i < ENTRIES ? &send[i + 1] : NULL};
		recv[i] = (struct softhca_recv_wr){.next = i < ENTRIES ? &recv[i + 1] : NULL};
	}
	for (int round = 0; round < 2; round++) {
		complete(USER_SEND, true, ENTRIES - 1);
		complete(USER_RECV, false, ENTRIES - 1);
		assert_int_equal(softhca_poll_cq(cq, 2, wc), 2);
		if (round)
			break;
		assert_int_equal(softhca_post_send(qp, send, &bad_send), -ENOMEM);
		assert_ptr_equal(bad_send, &send[ENTRIES]);
		assert_int_equal(softhca_post_recv(qp, recv, &bad_recv), -ENOMEM);
		assert_ptr_equal(bad_recv, &recv[ENTRIES]);
	}
	close(far_end);
	far_end = -1;
	ctx->dead = 1;
	assert_int_equal(softhca_poll_cq(cq, 2, wc), -EIO);
	ctx->nodes[NODE_QP] = NULL;
}

TEST_WITH(bell__on_which_the_daemon_has_hung_up, setup, teardown)
{
	struct pollfd fatal = {.events = POLLIN};
	int pair[2];

	assert_int_equal(event_queue_create(&ctx->async), 0);
	fatal.fd = ctx->async.fd;
	pthread_mutex_init(&ctx->lock, NULL);
	ctx->wake = -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ctx->bell = pair[0];
	close(pair[1]);
	assert_int_equal(events_start(ctx), 0);
	assert_int_equal(poll(&fatal, 1, 10000), 1);
	events_stop(ctx);
	event_queue_destroy(&ctx->async);
	close(ctx->wake);
}

static void assert_armed(uint32_t next, uint32_t solicited)
{
	assert_int_equal(cq->record->arm_next, next);
	assert_int_equal(cq->record->arm_solicited, solicited);
}

TEST_WITH(arm__each_kind_is_counted, setup, teardown)
{
	assert_int_equal(softhca_req_notify_cq(cq, 0), 0);
	assert_armed(1, 0);
	assert_int_equal(softhca_req_notify_cq(cq, 1), 0);
	assert_armed(1, 1); /* and still for any */
	assert_int_equal(softhca_req_notify_cq(cq, 1), 0);
	assert_armed(1, 2);
	cq->channel = NULL;
	assert_int_equal(softhca_req_notify_cq(cq, 0), -EINVAL);
}

TEST(words__for_every_number)
{
	for (uint32_t i = 0; i <= SOFTHCA_WC_GENERAL_ERR; i++)
		assert_string_not_equal(softhca_wc_status_str(i), "unknown");
	for (uint32_t i = 0; i <= SOFTHCA_QPS_ERR; i++)
		assert_string_not_equal(softhca_qp_state_str(i), "unknown");
	assert_string_equal(softhca_wc_status_str(UINT32_MAX), "unknown");
	assert_string_equal(softhca_event_type_str(UINT32_MAX), "unknown");
	for (uint32_t i = SOFTHCA_EVENT_SRQ_ERR; i <= SOFTHCA_EVENT_QP_LAST_WQE; i++)
		assert_string_not_equal(softhca_event_type_str(i), "unknown");
	assert_string_equal(softhca_event_type_str(SOFTHCA_EVENT_DEVICE_FATAL),
			    "the HCA or the daemon has gone");
}

/* Memory may begin where another piece ends: the address is the one, not the other. */
TEST_WITH(memory__freed_beside_another_piece, setup, teardown)
{
	struct control_header reply = {.type = CONTROL_DROP_PIECE};
	uint8_t *at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	for (int i = 1; i >= 0; i--) {
		struct region *r = zeroed(sizeof(*r));

		*r = (struct region){.next = ctx->regions, .addr = at + i * 4096, .bytes = 4096};
		ctx->regions = r;
	}
	for (int i = 1; i >= 0; i--) {
		assert_int_equal(send(far_end, &reply, sizeof(reply), 0), sizeof(reply));
		assert_int_equal(softhca_free(ctx, at + i * 4096), 0);
	}
	assert_null(ctx->regions);
}

/* Polling an empty CQ on the daemon's CPU yields, which the page shows until a completion comes; a
 * doorbell publishes the CPU it was rung on. */
TEST_WITH(poll__leaves_the_daemon_its_cpu, setup, teardown)
{
	struct softhca_send_wr wr = {.opcode = SOFTHCA_WR_SEND, .wr_id = 7};
	struct uar_page *uar = ctx->page->uar;
	struct softhca_wc wc;
	cpu_set_t all = stay_on_this_cpu();

	assert_int_equal(softhca_post_send(qp, &wr, NULL), 0);
	assert_int_equal(uar->client_cpu, sched_getcpu() + 1);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(uar->client_yields, 0); /* the daemon's CPU is not known */
	uar->daemon_cpu = sched_getcpu() + 1;
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(uar->client_yields, 1);
	complete(USER_SEND, true, 0);
	assert_int_equal(softhca_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(uar->client_yields, 0);
	sched_setaffinity(0, sizeof(all), &all);
}
