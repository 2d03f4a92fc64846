/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_PAIR_H
#define CLIENT_PAIR_H
/* Two queue pairs of one client, connected to each other through a whole daemon. */
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "../control/hca_test.h"
#include "softhca/softhca.h"

struct pair {
	bool quiet; /* nobody waits for events: no channel */
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_channel *channel;
	struct softhca_cq *cq;
	struct softhca_srq *srq; /* both QPs receive through it; NULL: each its own queue */
	struct softhca_qp *qp[2];
	uint8_t *memory;
	struct softhca_mr *mr;
};

enum { MEMORY_BYTES = 1 << 20, PAIR_RIGHTS = 0xf | SOFTHCA_ACCESS_MW_BIND };

static inline void pair_connect(struct pair *p)
{
	struct softhca_endpoint end[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_local_endpoint(p->qp[i], 0, &end[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_connect_qp(p->qp[i], &end[i], &end[!i], NULL), 0);
}

/* Of one client over the looped wire. Work queues have `depth` entries. */
static inline void pair_open_deep(struct pair *p, enum softhca_qp_type type, uint32_t srq_entries,
				  uint32_t depth)
{
	struct softhca_srq_init_attr srq = {.user = p, .max_wr = srq_entries, .max_sge = 2};
	struct softhca_qp_init_attr init = {.type = type,
					    .cap = {.max_send_wr = depth,
						    .max_recv_wr = depth,
						    .max_send_sge = 4,
						    .max_recv_sge = 4,
						    .max_inline_data = 128}};

	if (srq_entries) /* then they say nothing, whatever they are */
		init.cap.max_recv_wr = init.cap.max_recv_sge = UINT32_MAX;
	p->ctx = softhca_open(f.path, NULL);
	assert_non_null(p->ctx);
	p->pd = softhca_alloc_pd(p->ctx);
	assert_non_null(p->pd);
	p->channel = p->quiet ? NULL : softhca_create_channel(p->ctx);
	assert_true(p->channel || p->quiet);
	p->cq = softhca_create_cq(p->ctx, 4 * depth, p, p->channel);
	assert_non_null(p->cq);
	p->memory = softhca_alloc(p->ctx, MEMORY_BYTES);
	assert_non_null(p->memory);
	p->mr = softhca_reg_mr(p->pd, p->memory, MEMORY_BYTES, PAIR_RIGHTS);
	assert_non_null(p->mr);
	p->srq = srq_entries ? softhca_create_srq(p->pd, &srq) : NULL;
	assert_true(p->srq || !srq_entries);
	init.srq = p->srq;
	init.send_cq = init.recv_cq = p->cq;
	for (int i = 0; i < 2; i++) {
		p->qp[i] = softhca_create_qp(p->pd, &init);
		assert_non_null(p->qp[i]);
		if (p->srq)
			assert_int_equal(init.cap.max_recv_wr, 0);
	}
	pair_connect(p);
}

static inline void pair_open_with(struct pair *p, enum softhca_qp_type type, uint32_t srq_entries)
{
	pair_open_deep(p, type, srq_entries, 64);
}

static inline void pair_open(struct pair *p, enum softhca_qp_type type)
{
	p->quiet = false;
	pair_open_with(p, type, 0);
}

static inline void pair_open_quiet(struct pair *p, enum softhca_qp_type type)
{
	p->quiet = true;
	pair_open_with(p, type, 0);
}

static inline void pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_destroy_qp(p->qp[i]), 0);
	if (p->srq)
		assert_int_equal(softhca_destroy_srq(p->srq), 0);
	assert_int_equal(softhca_dereg_mr(p->mr), 0);
	assert_int_equal(softhca_free(p->ctx, p->memory), 0);
	assert_int_equal(softhca_destroy_cq(p->cq), 0);
	if (p->channel)
		assert_int_equal(softhca_destroy_channel(p->channel), 0);
	assert_int_equal(softhca_free_pd(p->pd), 0);
	assert_int_equal(softhca_close(p->ctx), 0);
}

static inline double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Polls until n completions came; fails after five seconds. */
static inline void wait_for(struct pair *p, int n, struct softhca_wc *wc)
{
	double end = seconds() + 5;
	int got = 0;

	while (got < n) {
		int r = softhca_poll_cq(p->cq, n - got, wc + got);

		assert_true(r >= 0);
		got += r;
		if (!r)
			sched_yield();
		if (seconds() > end)
			fail_msg("%d of %d completions", got, n);
	}
}

static inline struct softhca_sge sge_of(struct pair *p, size_t offset, uint32_t length)
{
	return (struct softhca_sge){
		.addr = (uintptr_t)p->memory + offset, .length = length, .lkey = p->mr->lkey};
}

static inline void put(struct pair *p, struct softhca_send_wr *wr, struct softhca_wc *wc)
{
	wr->send_flags |= SOFTHCA_SEND_SIGNALED;
	assert_int_equal(softhca_post_send(p->qp[0], wr, NULL), 0);
	wait_for(p, 1, wc);
	assert_int_equal(wc->status, SOFTHCA_WC_SUCCESS);
	assert_int_equal(wc->wr_id, wr->wr_id);
}

/* The next event but COMM_EST; fails after five seconds. */
static inline struct softhca_event next_event(struct pair *p)
{
	struct pollfd fd = {.fd = softhca_async_fd(p->ctx), .events = POLLIN};
	struct softhca_event e;

	do {
		if (poll(&fd, 1, 5000) != 1)
			fail_msg("no event");
		assert_int_equal(softhca_get_async_event(p->ctx, &e), 0);
	} while (e.type == SOFTHCA_EVENT_COMM_EST);
	return e;
}

/* A case on its own pair, p, that `opened` opens. */
#define TEST_PAIR_BY(name, opened)                                                                 \
	static void name##_on(struct pair *p);                                                     \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct pair pair, *p = &pair;                                                      \
                                                                                                   \
		opened;                                                                            \
		name##_on(p);                                                                      \
		pair_close(p);                                                                     \
	}                                                                                          \
	static void name##_on(struct pair *p)
#define TEST_PAIR(name, type) TEST_PAIR_BY(name, pair_open(p, type))

#endif
