/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests posted one by one under one doorbell: all or none. Lists of some opcodes. */
#include <pthread.h>
#include "pair.h"

enum { FAR = 0x10000 }; /* where in the memory the writes go */

/* An unsignaled write of the byte at `from` to FAR + `to`. */
static struct softhca_send_wr write_of(struct pair *p, struct softhca_sge *sge, size_t from,
				       size_t to, uint64_t wr_id)
{
	*sge = sge_of(p, from, 1);
	return (struct softhca_send_wr){.wr_id = wr_id,
					.sg_list = sge,
					.num_sge = 1,
					.opcode = SOFTHCA_WR_RDMA_WRITE,
					.wr.rdma = {(uintptr_t)p->memory + FAR + to, p->mr->rkey}};
}

/* The last of a list with a doorbell: everything before it has been done. */
static void put_last(struct pair *p, uint64_t wr_id)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = write_of(p, &sge, 0, FAR / 2, wr_id);
	struct softhca_wc wc;

	put(p, &wr, &wc);
}

#undef TEST
#define TEST(name) TEST_STATE(name, start, stop, NULL)

TEST_PAIR(batch__all_or_the_last_signaled, SOFTHCA_QP_RC)
{
	struct softhca_wc wc;

	for (uint64_t round = 0; round < 20; round++) { /* 140 requests: around a ring of 64 */
		memset(p->memory, (int)round + 1, 7);
		softhca_post_start(p->qp[0]);
		for (uint64_t i = 0; i < 7; i++) {
			struct softhca_sge sge;
			struct softhca_send_wr wr = write_of(p, &sge, i, i, round * 7 + i);

			wr.send_flags = i == 6 ? SOFTHCA_SEND_SIGNALED : 0;
			wr.next = &wr; /* not looked at */
			assert_int_equal(softhca_post_add(p->qp[0], &wr), 0);
			memset(&wr, 0xee, sizeof(wr)); /* nothing of it was kept */
			memset(&sge, 0xee, sizeof(sge));
		}
		assert_int_equal(softhca_post_end(p->qp[0]), 0);
		wait_for(p, 1, &wc);
		assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(wc.wr_id, round * 7 + 6);
		assert_memory_equal(p->memory, p->memory + FAR, 7);
	}
}

TEST_PAIR(batch__aborted_or_empty_is_nothing, SOFTHCA_QP_RC)
{
	struct softhca_sge sge;
	struct softhca_send_wr wr = write_of(p, &sge, 0, 0, 1);

	p->memory[0] = 0x55;
	for (int i = 0; i < 100; i++) { /* takes no room */
		softhca_post_start(p->qp[0]);
		assert_int_equal(softhca_post_add(p->qp[0], &wr), 0);
		softhca_post_abort(p->qp[0]);
		softhca_post_start(p->qp[0]);
		assert_int_equal(softhca_post_end(p->qp[0]), 0);
	}
	put_last(p, 2);
	assert_int_equal(p->memory[FAR], 0);
}

/* Those before the first one of another opcode are posted. */
TEST_PAIR(list__of_some_opcodes, SOFTHCA_QP_RC)
{
	const uint32_t writes = 1 << SOFTHCA_WR_RDMA_WRITE;
	struct softhca_send_wr wr[3], *bad = NULL;
	struct softhca_sge sge;
	struct softhca_wc wc[3];

	for (uint64_t i = 0; i < 3; i++) {
		wr[i] = write_of(p, &sge, 0, i, i);
		wr[i].send_flags = SOFTHCA_SEND_SIGNALED;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].opcode = SOFTHCA_WR_RDMA_READ;
	assert_int_equal(softhca_post_send_of(p->qp[0], writes, wr, &bad), -EOPNOTSUPP);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(softhca_post_send_of(p->qp[0], writes, bad, &bad), -EOPNOTSUPP);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(
		softhca_post_send_of(p->qp[0], writes | 1 << SOFTHCA_WR_RDMA_READ, bad, &bad), 0);
	wait_for(p, 3, wc);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(wc[i].status, SOFTHCA_WC_SUCCESS);
		assert_int_equal(wc[i].wr_id, i);
	}
	/* None, whatever its low bits are. */
	wr[2].opcode = 32 | SOFTHCA_WR_RDMA_WRITE;
	assert_int_equal(softhca_post_send_of(p->qp[0], writes, &wr[2], &bad), -EINVAL);
	assert_int_equal(softhca_poll_cq(p->cq, 1, wc), 0);
}

TEST_PAIR(batch__fails_as_a_whole, SOFTHCA_QP_RC)
{
	struct softhca_sge sge;
	struct softhca_send_wr good, bad;

	good = bad = write_of(p, &sge, 0, 0, 1);
	bad.opcode = 255; /* there is none */
	p->memory[0] = 0x55;
	softhca_post_start(p->qp[0]);
	assert_int_equal(softhca_post_add(p->qp[0], &good), 0);
	assert_int_equal(softhca_post_add(p->qp[0], &bad), -EINVAL);
	assert_int_equal(softhca_post_add(p->qp[0], &good), -EINVAL);
	assert_int_equal(softhca_post_end(p->qp[0]), -EINVAL);
	softhca_post_start(p->qp[0]);
	for (int i = 0; i < 64; i++)
		assert_int_equal(softhca_post_add(p->qp[0], &good), 0);
	assert_int_equal(softhca_post_add(p->qp[0], &good), -ENOMEM);
	assert_int_equal(softhca_post_add(p->qp[0], &bad), -ENOMEM); /* the first counts */
	assert_int_equal(softhca_post_end(p->qp[0]), -ENOMEM);
	put_last(p, 2);
	assert_int_equal(p->memory[FAR], 0);
}

TEST_PAIR(batch__queue_pair_not_ready, SOFTHCA_QP_RC)
{
	struct softhca_sge sge;
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};
	struct softhca_send_wr wr = write_of(p, &sge, 0, 0, 1);

	assert_int_equal(softhca_modify_qp(p->qp[0], &reset, SOFTHCA_QP_STATE), 0);
	softhca_post_start(p->qp[0]);
	assert_int_equal(softhca_post_add(p->qp[0], &wr), -EINVAL);
	assert_int_equal(softhca_post_end(p->qp[0]), -EINVAL);
}

enum { THREADS = 2, BATCHES = 200, OF_ONE = 3 };

/* Posts BATCHES batches, as soon as there is room for each. */
static void *poster(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < BATCHES;) {
		struct softhca_sge sge;
		struct softhca_send_wr wr = write_of(p, &sge, 0, 0, 1);
		int rc;

		wr.send_flags = SOFTHCA_SEND_SIGNALED;
		softhca_post_start(p->qp[0]);
		for (int k = 0; k < OF_ONE; k++)
			softhca_post_add(p->qp[0], &wr);
		rc = softhca_post_end(p->qp[0]);
		i += rc == 0;
		if (rc)
			sched_yield();
	}
	return NULL;
}

TEST_PAIR(batch__of_several_threads, SOFTHCA_QP_RC)
{
	pthread_t thread[THREADS];
	struct softhca_wc wc;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poster, p), 0);
	for (int i = 0; i < THREADS * BATCHES * OF_ONE; i++) {
		wait_for(p, 1, &wc);
		assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}
