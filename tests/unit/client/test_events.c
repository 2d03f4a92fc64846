/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of libsofthca against a whole daemon, for users who acknowledge them: an object exists
 * until its events are acknowledged, and a destroyed one has none. */
#include <fcntl.h>
#include <pthread.h>
#include "context.h"
#include "events.h"
#include "pair.h"

/* The peer, p->qp[1], reports an access violation. Waits until it is there to be taken. */
static void provoke(struct pair *p, struct pollfd *fd)
{
	struct softhca_sge sge = sge_of(p, 0, 8);
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED,
				     .wr.rdma = {(uintptr_t)p->memory, p->mr->rkey ^ 0x800u}};

	*fd = (struct pollfd){.fd = softhca_async_fd(p->ctx), .events = POLLIN};
	assert_int_equal(softhca_post_send(p->qp[0], &wr, NULL), 0);
	assert_int_equal(poll(fd, 1, 5000), 1);
}

static void open_acknowledging(struct pair *p)
{
	pair_open_quiet(p, SOFTHCA_QP_RC);
	softhca_acknowledge_async_events(p->ctx);
}

/* The other QP goes, too, and all the rest. */
static void close_without(struct pair *p)
{
	assert_int_equal(softhca_destroy_qp(p->qp[0]), 0);
	assert_int_equal(softhca_close(p->ctx), 0);
}

static struct {
	bool acknowledged, destroyed, too_early; /* atomic */
} waits;

static void *destroy(void *qp)
{
	int rc = softhca_destroy_qp(qp);

	waits.too_early = rc || !__atomic_load_n(&waits.acknowledged, __ATOMIC_ACQUIRE);
	__atomic_store_n(&waits.destroyed, true, __ATOMIC_RELEASE);
	return NULL;
}

#undef TEST
#define TEST(name) TEST_STATE(name, start, stop, NULL)

TEST(destruction__waits_for_the_acknowledgement)
{
	struct softhca_event e;
	pthread_t thread;
	struct pollfd fd;
	struct pair p;

	open_acknowledging(&p);
	provoke(&p, &fd);
	assert_int_equal(softhca_get_async_event(p.ctx, &e), 0);
	assert_int_equal(e.type, SOFTHCA_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(e.qp, p.qp[1]);
	memset(&waits, 0, sizeof(waits));
	assert_int_equal(pthread_create(&thread, NULL, destroy, p.qp[1]), 0);
	/* A while in which it would come back if it did not wait. */
	for (double end = seconds() + 0.05; seconds() < end; sched_yield())
		assert_false(__atomic_load_n(&waits.destroyed, __ATOMIC_ACQUIRE));
	assert_int_equal(softhca_qp_number(e.qp), e.number);
	__atomic_store_n(&waits.acknowledged, true, __ATOMIC_RELEASE);
	softhca_ack_async_event(&e);
	pthread_join(thread, NULL);
	assert_false(waits.too_early);
	close_without(&p);
}

/* It was not taken: it never will be, and the descriptor does not become readable for it. */
TEST(destruction__takes_back_what_was_not_taken)
{
	struct softhca_event e;
	struct pollfd fd;
	struct pair p;

	open_acknowledging(&p);
	provoke(&p, &fd);
	assert_int_equal(softhca_destroy_qp(p.qp[1]), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(fcntl(fd.fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(softhca_get_async_event(p.ctx, &e), -EAGAIN);
	close_without(&p);
}

/* A user who does not acknowledge gets the event without its object, and waits for nothing. */
TEST(destruction__without_acknowledgements)
{
	struct softhca_event e;
	struct pollfd fd;
	struct pair p;

	pair_open_quiet(&p, SOFTHCA_QP_RC);
	provoke(&p, &fd);
	assert_int_equal(softhca_destroy_qp(p.qp[1]), 0);
	assert_int_equal(softhca_get_async_event(p.ctx, &e), 0);
	assert_int_equal(e.type, SOFTHCA_EVENT_QP_ACCESS_ERR);
	assert_null(e.qp);
	softhca_ack_async_event(&e);
	close_without(&p);
}

/* A daemon that raises events on and on fills no more than this; that it has died is always heard. */
TEST(events__that_nobody_takes)
{
	uint32_t kept;
	struct pair p;

	pair_open_quiet(&p, SOFTHCA_QP_RC);
	kept = EQ_ENTRIES + 8 * p.ctx->node_count;
	for (uint32_t i = 0; i < 4 * kept; i++) {
		p.ctx->page->eq[p.ctx->eq_taken % EQ_ENTRIES] = (struct eqe){
			.type = EQE_GID_CHANGE, .owner = (p.ctx->eq_taken / EQ_ENTRIES & 1) ^ 1};
		events_drain(p.ctx);
	}
	assert_int_equal(p.ctx->async.count, kept);
	events_dead(p.ctx);
	assert_int_equal(p.ctx->async.count, kept + 1);
	close_without(&p);
}
