/* SPDX-License-Identifier: BSD-3-Clause */
/* libsofthca's calls: softhca_post_send() with a list, and request by request in a batch. */
#include <errno.h>
#include "softhca/softhca.h"
#include "cycles.h"
#include "way.h"

struct side {
	struct softhca_context *ctx;
	struct softhca_pd *pd;
	struct softhca_mr *mr;
	struct softhca_cq *cq;
	struct softhca_qp *qp;
	struct softhca_endpoint endpoint;
};
struct ends {
	struct side ours, theirs;
};
static struct ends list, batch;

static int open_side(struct side *s, const char *device)
{
	struct softhca_qp_init_attr init = {
		.cap = {.max_send_wr = QUEUE, .max_send_sge = 1, .max_inline_data = BYTES},
		.type = SOFTHCA_QP_RC};
	void *memory;

	s->ctx = softhca_open(NULL, device);
	if (!s->ctx)
		return way_fail("open the HCA", errno);
	s->pd = softhca_alloc_pd(s->ctx);
	memory = softhca_alloc(s->ctx, BURST * BYTES);
	s->cq = softhca_create_cq(s->ctx, QUEUE, NULL, NULL);
	if (!s->pd || !memory || !s->cq)
		return way_fail("allocate", errno);
	s->mr = softhca_reg_mr(s->pd, memory, BURST * BYTES,
			       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = s->cq;
	s->qp = s->mr ? softhca_create_qp(s->pd, &init) : NULL;
	if (!s->qp)
		return way_fail("create QP", errno);
	return softhca_local_endpoint(s->qp, 0, &s->endpoint) ? way_fail("GID 0", ENOENT) : 0;
}

static int connect(struct side *s, const struct side *to)
{
	int error = softhca_connect_qp(s->qp, &s->endpoint, &to->endpoint, NULL);

	return error ? way_fail("connect", -error) : 0;
}

static int open_ends(struct way *w, const char *device, const char *peer)
{
	struct ends *e = w->ends;

	if (open_side(&e->ours, device) || open_side(&e->theirs, peer) ||
	    connect(&e->ours, &e->theirs) || connect(&e->theirs, &e->ours))
		return -1;
	w->from = e->ours.mr->addr;
	w->to = e->theirs.mr->addr;
	return 0;
}

static int poll_ends(const struct way *w, int n, uint64_t *cycles)
{
	const struct ends *e = w->ends;
	struct softhca_cq *cq = e->ours.cq;
	struct softhca_wc wc[BURST];
	uint64_t begin = cycles_now();
	int done = softhca_poll_cq(cq, n, wc);

	*cycles = cycles_now() - begin;
	for (int i = 0; i < done; i++)
		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return -1;
	return done;
}

static uint64_t poll_empty_ends(const struct way *w)
{
	const struct ends *e = w->ends;
	struct softhca_cq *cq = e->ours.cq;
	struct softhca_wc wc[BURST];
	uint64_t begin = cycles_now();

	for (unsigned i = 0; i < EMPTY_POLLS; i++)
		softhca_poll_cq(cq, BURST, wc);
	return cycles_now() - begin;
}

/* ---- lists ---- */

static void fill(const struct way *w, enum form form, struct softhca_send_wr *wr,
		 struct softhca_sge *sge)
{
	for (unsigned i = 0; i < BURST; i++) {
		sge[i] = (struct softhca_sge){.addr = (uintptr_t)(w->from + i * BYTES),
					      .length = BYTES,
					      .lkey = list.ours.mr->lkey};
		wr[i] = (struct softhca_send_wr){
			.wr_id = i,
			.next = form_is_single(form) || i + 1 == BURST ? NULL : &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.send_flags = SOFTHCA_SEND_SIGNALED |
				      (form_is_inline(form) ? SOFTHCA_SEND_INLINE : 0),
			.wr.rdma = {.remote_addr = (uintptr_t)(w->to + i * BYTES),
				    .rkey = list.theirs.mr->rkey}};
	}
}

static int list_post(const struct way *w, enum form form, uint64_t *cycles)
{
	unsigned calls = form_is_single(form) ? BURST : 1;
	struct softhca_qp *qp = list.ours.qp;
	struct softhca_send_wr wr[BURST], *bad;
	struct softhca_sge sge[BURST];
	uint64_t begin;
	int error = 0;

	fill(w, form, wr, sge);
	begin = cycles_now();
	for (unsigned i = 0; i < calls; i++)
		error |= softhca_post_send(qp, &wr[i], &bad);
	*cycles = cycles_now() - begin;
	return error;
}

/* ---- batches ---- */

/* One request that changes from message to message, as a program has it that does not keep lists. */
static int batch_post(const struct way *w, enum form form, uint64_t *cycles)
{
	struct softhca_qp *qp = batch.ours.qp;
	struct softhca_sge sge = {.length = BYTES, .lkey = batch.ours.mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED |
						   (form_is_inline(form) ? SOFTHCA_SEND_INLINE : 0),
				     .wr.rdma.rkey = batch.theirs.mr->rkey};
	unsigned size = form_is_single(form) ? 1 : BURST;
	uint64_t begin = cycles_now();
	int error = 0;

	for (unsigned i = 0; i < BURST;) {
		softhca_post_start(qp);
		for (unsigned end = i + size; i < end; i++) {
			wr.wr_id = i;
			wr.wr.rdma.remote_addr = (uintptr_t)(w->to + i * BYTES);
			sge.addr = (uintptr_t)(w->from + i * BYTES);
			softhca_post_add(qp, &wr);
		}
		error |= softhca_post_end(qp);
	}
	*cycles = cycles_now() - begin;
	return error;
}

#define WAY(e, calls, posts)                                                                       \
	{                                                                                          \
		.ends = (e), .post_calls = (calls), .poll_calls = "softhca_poll_cq",               \
		.open = open_ends, .post = (posts), .poll = poll_ends,                             \
		.poll_empty = poll_empty_ends                                                      \
	}

struct way native_list = WAY(&list, "softhca_post_send", list_post);
struct way native_batch = WAY(&batch, "softhca_post_add", batch_post);
