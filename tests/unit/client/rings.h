/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_RINGS_H
#define CLIENT_RINGS_H
/* A queue pair and a CQ of libsofthca in memory, without a daemon: the test takes the doorbells and
 * writes the completions. */
#include "test.h"
#include <sys/mman.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include "context.h"
#include "cq.h"
#include "doorbell.h"
#include "events.h"
#include "qp.h"
#include "srq.h"

enum { NUMBER = 0x123405, ENTRIES = 8, SHIFT = 8, STRIDE = 1 << SHIFT, CQ_SIZE = 16 };

static struct softhca_context *ctx;
static struct softhca_qp *qp;
static struct softhca_cq *cq;
static struct softhca_channel channel;
static int far_end;
static uint32_t cq_produced;

static inline void *zeroed(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	assert_non_null(p);
	return memset(p, 0, bytes);
}

static inline void queue_make(struct work_queue *q)
{
	*q = (struct work_queue){.mask = ENTRIES - 1,
				 .shift = SHIFT,
				 .max_wr = ENTRIES,
				 .max_sge = 4,
				 .max_inline = 100,
				 .buffer = zeroed(ENTRIES * STRIDE),
				 .wr_id = zeroed(ENTRIES * 8)};
	memset(q->buffer, 0xee, ENTRIES * STRIDE);
}

static inline int setup(void **state)
{
	int pair[2];

	ctx = zeroed(sizeof(*ctx));
	ctx->page = zeroed(sizeof(*ctx->page));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ctx->fd = pair[0];
	far_end = pair[1];
	ctx->bell = -1;
	ctx->kick = eventfd(0, EFD_NONBLOCK);
	ctx->async.fd = -1;
	pthread_mutex_init(&ctx->event_lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	ctx->qp_mask = 15;
	ctx->qps = zeroed(16 * sizeof(void *));
	qp = zeroed(sizeof(*qp));
	qp->node.ctx = ctx;
	qp->fifo = ctx->fifo;
	fifo_init(qp->fifo, ctx->page->uar);
	ctx->engines = 1;
	qp->number = NUMBER;
	qp->state = SOFTHCA_QPS_RTS;
	qp->record = zeroed(sizeof(*qp->record));
	queue_make(&qp->sq);
	queue_make(&qp->rq);
	ctx->qps[NUMBER & 15] = qp;
	cq = zeroed(sizeof(*cq));
	cq->node.ctx = ctx;
	qp->send_cq = qp->recv_cq = cq;
	cq->channel = &channel;
	cq->mask = CQ_SIZE - 1;
	cq->idle_mask = (1 << 15) - 1;
	cq->buffer = zeroed(CQ_SIZE * sizeof(struct cqe));
	cq->record = zeroed(sizeof(*cq->record));
	for (int i = 0; i < CQ_SIZE; i++)
		cq->buffer[i].owner = CQE_OWNER_HW;
	cq_produced = 0;
	return 0;
}

static inline int teardown(void **state)
{
	close(ctx->fd);
	close(ctx->bell);
	close(ctx->kick);
	if (far_end >= 0)
		close(far_end);
	free(qp->sq.buffer);
	free(qp->sq.wr_id);
	free(qp->rq.buffer);
	free(qp->rq.wr_id);
	free(qp->record);
	free(qp);
	free(cq->buffer);
	free(cq->record);
	free(cq);
	free(ctx->qps);
	free(ctx->page);
	free(ctx);
	return 0;
}

/* The daemon's part: takes a doorbell. */
static inline uint64_t take_doorbell(void)
{
	struct uar_page *uar = ctx->page->uar;
	uint32_t c = uar->consumer_index;
	uint64_t doorbell = uar->doorbell[c % UAR_DOORBELLS];

	assert_int_equal(!!(doorbell & DOORBELL_PHASE), !(c / UAR_DOORBELLS & 1));
	uar->consumer_index = c + 1;
	return doorbell & ~(uint64_t)DOORBELL_PHASE;
}

static inline bool doorbell_waits(void)
{
	return ctx->page->uar->consumer_index != ctx->fifo->produced;
}

static inline struct cqe *complete(uint8_t opcode, bool is_send, uint32_t index)
{
	struct cqe *e = &cq->buffer[cq_produced++ & (CQ_SIZE - 1)];

	assert_int_equal(e->owner, CQE_OWNER_HW);
	*e = (struct cqe){.my_qpn = NUMBER,
			  .wqe_offset = index << SHIFT,
			  .opcode = opcode,
			  .is_send = is_send};
	return e;
}

static struct softhca_sge sges[5] = {
	{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 0, 3}, {0x4000, 40, 4}, {0x5000, 50, 5}};

static inline const void *unit(uint32_t index, uint32_t n)
{
	return qp->sq.buffer + (index << SHIFT) + n * 16;
}

#endif
