/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and events of libsofthca against a whole daemon: resized under load, overrun,
 * armed again and again, and events that come late. */
#include <pthread.h>
#include "client_priv.h"
#include "pair.h"

enum { IN_FLIGHT = 24, MESSAGES = 6000 };

/* Signaled writes of 8 bytes; wr_id counts them. */
static int post_write(struct pair *p, int qp, uint64_t wr_id, uint32_t rkey)
{
	struct softhca_sge sge = sge_of(p, 0, 8);
	struct softhca_send_wr wr = {.wr_id = wr_id,
				     .sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED,
				     .wr.rdma = {(uintptr_t)p->memory + 4096, rkey}};

	return softhca_post_send(p->qp[qp], &wr, NULL);
}

static struct poller {
	struct pair *p;
	uint32_t done; /* atomic */
	uint32_t wrong;
	bool stop; /* atomic */
} poller;

/* As softhca_poll_cq(). */
static int poll_in_pieces(struct softhca_cq *cq, int n, struct softhca_wc *wc)
{
	int rc = softhca_start_poll(cq, &wc->wr_id, &wc->status), done = 0;

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	do
		softhca_polled_wc(cq, &wc[done++]);
	while (done < n && !softhca_next_poll(cq, &wc[done].wr_id, &wc[done].status));
	softhca_end_poll(cq);
	return done;
}

/* Now in one way, now in the other. */
static void *poll_on(void *arg)
{
	struct softhca_wc wc[8];

	for (int round = 0; !__atomic_load_n(&poller.stop, __ATOMIC_RELAXED); round++) {
		int n = (round % 8 ? poll_in_pieces : softhca_poll_cq)(poller.p->cq, 5, wc);

		for (int i = 0; i < n; i++)
			poller.wrong += wc[i].status != SOFTHCA_WC_SUCCESS ||
					wc[i].wr_id != poller.done + (uint32_t)i;
		if (n > 0)
			__atomic_store_n(&poller.done, poller.done + (uint32_t)n, __ATOMIC_RELEASE);
		else
			sched_yield();
	}
	return NULL;
}

/* Every completion once, in order, while another thread polls and the size changes all the time. */
TEST_PAIR(resize__under_load, SOFTHCA_QP_RC)
{
	static const uint32_t sizes[] = {32, 4096, 64, 1024, 128};
	double end = seconds() + 40;
	pthread_t thread;
	uint32_t resized = 0;

	poller = (struct poller){.p = p};
	assert_int_equal(pthread_create(&thread, NULL, poll_on, NULL), 0);
	for (uint32_t i = 0; i < MESSAGES && seconds() < end;) {
		if (i - __atomic_load_n(&poller.done, __ATOMIC_ACQUIRE) < IN_FLIGHT) {
			assert_int_equal(post_write(p, 0, i, p->mr->rkey), 0);
			i++;
		} else {
			sched_yield();
		}
		if (i % 50 == 0) {
			assert_int_equal(softhca_resize_cq(p->cq, sizes[resized % 5]), 0);
			assert_int_equal(softhca_cq_entries(p->cq), sizes[resized++ % 5]);
		}
	}
	while (__atomic_load_n(&poller.done, __ATOMIC_ACQUIRE) < MESSAGES && seconds() < end)
		sched_yield();
	__atomic_store_n(&poller.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(poller.done, MESSAGES);
	assert_int_equal(poller.wrong, 0);
	assert_true(resized > 100);
	assert_int_equal(fixture_counter(&f, COUNTER_cq_overruns), 0);
}

enum { POLLERS = 3 };

static uint32_t polled[MESSAGES]; /* how often each was; atomic */

static void *poll_beside(void *arg)
{
	struct softhca_wc wc[3];

	while (__atomic_load_n(&poller.done, __ATOMIC_RELAXED) < MESSAGES) {
		int n = (arg ? poll_in_pieces : softhca_poll_cq)(poller.p->cq, 3, wc);

		for (int i = 0; i < n; i++)
			__atomic_fetch_add(&polled[wc[i].wr_id], 1, __ATOMIC_RELAXED);
		if (n > 0)
			__atomic_fetch_add(&poller.done, (uint32_t)n, __ATOMIC_RELAXED);
		else
			sched_yield();
	}
	return NULL;
}

/* Every completion once, to any of several threads, two of which poll in pieces; other QPs of the CQ
 * come and go. */
TEST_PAIR(poll__of_several_threads, SOFTHCA_QP_RC)
{
	struct softhca_qp_init_attr other = {.send_cq = p->cq,
					     .recv_cq = p->cq,
					     .cap = {.max_send_wr = 1, .max_send_sge = 1},
					     .type = SOFTHCA_QP_RC};
	pthread_t thread[POLLERS];

	poller = (struct poller){.p = p};
	memset(polled, 0, sizeof(polled));
	for (uintptr_t i = 0; i < POLLERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poll_beside, (void *)i), 0);
	for (uint32_t i = 0; i < MESSAGES;) {
		struct softhca_qp *qp = NULL;

		if (i % 100 == 0)
			assert_non_null(qp = softhca_create_qp(p->pd, &other));
		if (i - __atomic_load_n(&poller.done, __ATOMIC_ACQUIRE) < IN_FLIGHT)
			i += post_write(p, 0, i, p->mr->rkey) == 0;
		else
			sched_yield();
		if (qp)
			assert_int_equal(softhca_destroy_qp(qp), 0);
	}
	for (int i = 0; i < POLLERS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < MESSAGES; i++)
		assert_int_equal(polled[i], 1);
}

/* Waits until that many entries have been written, polled or not. */
static void wait_written(uint64_t n)
{
	double end = seconds() + 10;

	while (fixture_counter(&f, COUNTER_cqes) < n)
		if (seconds() > end)
			fail_msg("%u of %u entries", (unsigned)fixture_counter(&f, COUNTER_cqes),
				 (unsigned)n);
}

TEST_PAIR(resize__keeps_what_was_not_polled, SOFTHCA_QP_RC)
{
	struct softhca_wc wc[40];

	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(post_write(p, 0, i, p->mr->rkey), 0);
	wait_written(40);
	assert_int_equal(softhca_poll_cq(p->cq, 3, wc), 3);
	assert_int_equal(softhca_resize_cq(p->cq, 32), -EBUSY); /* 37 are left */
	assert_int_equal(softhca_cq_entries(p->cq), 256);
	assert_int_equal(softhca_resize_cq(p->cq, 0), -EINVAL);
	assert_int_equal(softhca_resize_cq(p->cq, UINT32_MAX), -EINVAL);
	assert_int_equal(softhca_resize_cq(p->cq, 40), 0);
	assert_int_equal(softhca_cq_entries(p->cq), 64);
	assert_int_equal(softhca_resize_cq(p->cq, 64), 0); /* nothing to do */
	assert_int_equal(softhca_poll_cq(p->cq, 5, wc), 5);
	assert_int_equal(wc[0].wr_id, 3);
	assert_int_equal(softhca_resize_cq(p->cq, 1), -EBUSY);
	assert_int_equal(softhca_resize_cq(p->cq, 20), 0); /* 32 for 32 */
	for (uint32_t i = 8; i < 40; i++) {
		assert_int_equal(softhca_poll_cq(p->cq, 1, wc), 1);
		assert_int_equal(wc[0].wr_id, i);
	}
	assert_int_equal(softhca_poll_cq(p->cq, 1, wc), 0);
	assert_int_equal(softhca_resize_cq(p->cq, 16), 0);
	assert_int_equal(softhca_resize_cq(p->cq, 512), 0);
	assert_int_equal(post_write(p, 0, 77, p->mr->rkey), 0);
	wait_for(p, 1, wc);
	assert_int_equal(wc[0].wr_id, 77);
	assert_null(p->cq->next); /* the buffer may go, so none looks at it without the lock */
}

/* Completions to come count as if they were there: the answer does not depend on timing.
 * Unsignalled requests produce none. */
TEST_PAIR(resize__leaves_room_for_what_is_underway, SOFTHCA_QP_RC)
{
	struct softhca_wc wc[8];
	struct softhca_sge sge = sge_of(p, 0, 1 << 16);

	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .wr.rdma = {(uintptr_t)p->memory + (1 << 17), p->mr->rkey}};
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 16; i++) {
			wr.send_flags = i & 1 ? SOFTHCA_SEND_SIGNALED : 0;
			assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), 0);
		}
		assert_int_equal(softhca_resize_cq(p->cq, 4), -EBUSY);
		assert_int_equal(softhca_resize_cq(p->cq, 8), 0);
		wait_for(p, 8, wc);
		assert_int_equal(softhca_resize_cq(p->cq, 4), 0);
		assert_int_equal(softhca_resize_cq(p->cq, 64), 0);
	}
}

/* A completion that finds no place: the CQ is in error, and so is the QP that has lost it. */
static void overrun(enum softhca_qp_type type)
{
	struct softhca_qp_attr attr;
	struct softhca_event e[2];
	struct softhca_wc wc;
	struct pair p;

	pair_open(&p, type);
	assert_int_equal(softhca_resize_cq(p.cq, 16), 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(post_write(&p, 0, i, p.mr->rkey), 0);
	for (int i = 0; i < 2; i++)
		e[i] = next_event(&p);
	assert_int_equal(e[0].type, SOFTHCA_EVENT_CQ_ERR);
	assert_ptr_equal(e[0].cq, p.cq);
	assert_int_equal(e[1].type, SOFTHCA_EVENT_QP_FATAL);
	assert_ptr_equal(e[1].qp, p.qp[0]);
	assert_int_equal(softhca_query_qp(p.qp[0], &attr), 0);
	assert_int_equal(attr.state, SOFTHCA_QPS_ERR);
	assert_int_equal(softhca_qp_current_state(p.qp[0]), SOFTHCA_QPS_ERR);
	assert_int_equal(softhca_qp_current_state(p.qp[1]), SOFTHCA_QPS_RTS);
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(softhca_poll_cq(p.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(softhca_poll_cq(p.cq, 1, &wc), 0);
	pair_close(&p);
}

TEST(overrun__ends_the_cq_and_the_qp)
{
	overrun(SOFTHCA_QP_RC);
	overrun(SOFTHCA_QP_UC);
}

/* Of receives, too. */
TEST_PAIR(overrun__of_receives, SOFTHCA_QP_RC)
{
	struct softhca_event e[2];
	struct softhca_sge sge = sge_of(p, 0, 8);
	struct softhca_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
	struct softhca_send_wr send = {
		.sg_list = &sge, .num_sge = 1, .opcode = SOFTHCA_WR_SEND}; /* no completion */

	assert_int_equal(softhca_resize_cq(p->cq, 16), 0);
	for (uint32_t i = 0; i < 17; i++)
		assert_int_equal(softhca_post_recv(p->qp[1], &recv, NULL), 0);
	for (uint32_t i = 0; i < 17; i++)
		assert_int_equal(softhca_post_send(p->qp[0], &send, NULL), 0);
	for (int i = 0; i < 2; i++)
		e[i] = next_event(p);
	assert_int_equal(e[0].type, SOFTHCA_EVENT_CQ_ERR);
	assert_int_equal(e[1].type, SOFTHCA_EVENT_QP_FATAL);
	assert_ptr_equal(e[1].qp, p->qp[1]);
	assert_int_equal(softhca_qp_current_state(p->qp[1]), SOFTHCA_QPS_ERR);
}

/* An event of a QP's former life, not yet looked at when it is reset, says nothing of the next. */
TEST_PAIR_BY(events__of_a_former_life, pair_open_quiet(p, SOFTHCA_QP_RC))
{
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};
	struct softhca_endpoint end[2];
	struct softhca_event e;
	struct softhca_wc wc;

	assert_int_equal(post_write(p, 0, 1, p->mr->rkey ^ 0x80000000u), 0);
	wait_for(p, 1, &wc);
	assert_int_equal(wc.status, SOFTHCA_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(softhca_modify_qp(p->qp[i], &reset, SOFTHCA_QP_STATE), 0);
		assert_int_equal(softhca_local_endpoint(p->qp[i], 0, &end[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_connect_qp(p->qp[i], &end[i], &end[!i], NULL), 0);
	e = next_event(p); /* from now on events are read */
	assert_int_equal(e.type, SOFTHCA_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(e.qp, p->qp[1]);
	assert_int_equal(softhca_qp_current_state(p->qp[1]), SOFTHCA_QPS_RTS);
	assert_int_equal(post_write(p, 1, 2, p->mr->rkey), 0);
	wait_for(p, 1, &wc);
	assert_int_equal(wc.status, SOFTHCA_WC_SUCCESS);
}

static void *post_all(void *arg)
{
	struct pair *p = arg;
	double end = seconds() + 40;

	for (uint32_t i = 0; i < MESSAGES && seconds() < end;) {
		if (i - __atomic_load_n(&poller.done, __ATOMIC_ACQUIRE) < 1 + i % IN_FLIGHT)
			i += post_write(p, 0, i, p->mr->rkey) == 0;
		else
			sched_yield();
	}
	return NULL;
}

/* Armed, polled once more, asleep until the event: the sleeper is woken. */
TEST_PAIR(arm__no_wake_up_is_lost, SOFTHCA_QP_RC)
{
	struct pollfd fd = {.events = POLLIN};
	struct softhca_wc wc[8];
	struct softhca_cq *cq;
	uint32_t sleeps = 0;
	pthread_t thread;

	poller = (struct poller){.p = p};
	fd.fd = softhca_channel_fd(p->channel);
	assert_int_equal(pthread_create(&thread, NULL, post_all, p), 0);
	while (poller.done < MESSAGES) {
		int n;

		assert_int_equal(softhca_req_notify_cq(p->cq, 0), 0);
		while ((n = softhca_poll_cq(p->cq, 8, wc)) > 0)
			__atomic_store_n(&poller.done, poller.done + (uint32_t)n, __ATOMIC_RELEASE);
		if (poller.done == MESSAGES)
			break;
		if (poll(&fd, 1, 10000) != 1)
			fail_msg("asleep after %u completions", poller.done);
		assert_int_equal(softhca_get_cq_event(p->channel, &cq, NULL), 0);
		softhca_ack_cq_events(cq, 1);
		sleeps++;
	}
	pthread_join(thread, NULL);
	assert_true(sleeps > 10);
}
