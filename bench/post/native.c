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
static struct side ours, theirs;

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

/* Both ways use the same queue pair. */
static int native_open(struct way *w, const char *device, const char *peer)
{
	if (!ours.qp && (open_side(&ours, device) || open_side(&theirs, peer) ||
			 connect(&ours, &theirs) || connect(&theirs, &ours)))
		return -1;
	w->from = ours.mr->addr;
	w->to = theirs.mr->addr;
	return 0;
}

static void fill(const struct way *w, enum form form, struct softhca_send_wr *wr,
		 struct softhca_sge *sge)
{
	for (unsigned i = 0; i < BURST; i++) {
		sge[i] = (struct softhca_sge){.addr = (uintptr_t)(w->from + i * BYTES),
					      .length = BYTES,
					      .lkey = ours.mr->lkey};
		wr[i] = (struct softhca_send_wr){
			.wr_id = i,
			.next = form_is_single(form) || i + 1 == BURST ? NULL : &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = SOFTHCA_WR_RDMA_WRITE,
			.send_flags = SOFTHCA_SEND_SIGNALED |
				      (form_is_inline(form) ? SOFTHCA_SEND_INLINE : 0),
			.wr.rdma = {.remote_addr = (uintptr_t)(w->to + i * BYTES),
				    .rkey = theirs.mr->rkey}};
	}
}

static int post_list(const struct way *w, enum form form, uint64_t *cycles)
{
	unsigned calls = form_is_single(form) ? BURST : 1;
	struct softhca_send_wr wr[BURST], *bad;
	struct softhca_sge sge[BURST];
	uint64_t begin;
	int error = 0;

	fill(w, form, wr, sge);
	begin = cycles_now();
	for (unsigned i = 0; i < calls; i++)
		error |= softhca_post_send(ours.qp, &wr[i], &bad);
	*cycles = cycles_now() - begin;
	return error;
}

/* One request that changes from message to message, as a program has it that does not keep lists. */
static int post_batch(const struct way *w, enum form form, uint64_t *cycles)
{
	struct softhca_sge sge = {.length = BYTES, .lkey = ours.mr->lkey};
	struct softhca_send_wr wr = {.sg_list = &sge,
				     .num_sge = 1,
				     .opcode = SOFTHCA_WR_RDMA_WRITE,
				     .send_flags = SOFTHCA_SEND_SIGNALED |
						   (form_is_inline(form) ? SOFTHCA_SEND_INLINE : 0),
				     .wr.rdma.rkey = theirs.mr->rkey};
	unsigned batch = form_is_single(form) ? 1 : BURST;
	uint64_t begin = cycles_now();
	int error = 0;

	for (unsigned i = 0; i < BURST;) {
		softhca_post_start(ours.qp);
		for (unsigned end = i + batch; i < end; i++) {
			wr.wr_id = i;
			wr.wr.rdma.remote_addr = (uintptr_t)(w->to + i * BYTES);
			sge.addr = (uintptr_t)(w->from + i * BYTES);
			softhca_post_add(ours.qp, &wr);
		}
		error |= softhca_post_end(ours.qp);
	}
	*cycles = cycles_now() - begin;
	return error;
}

static int native_poll(int n, uint64_t *cycles)
{
	struct softhca_wc wc[BURST];
	uint64_t begin = cycles_now();
	int done = softhca_poll_cq(ours.cq, n, wc);

	*cycles = cycles_now() - begin;
	for (int i = 0; i < done; i++)
		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return -1;
	return done;
}

static uint64_t native_poll_empty(void)
{
	struct softhca_wc wc[BURST];
	uint64_t begin = cycles_now();

	for (unsigned i = 0; i < EMPTY_POLLS; i++)
		softhca_poll_cq(ours.cq, BURST, wc);
	return cycles_now() - begin;
}

struct way native_list = {.post_calls = "softhca_post_send",
			  .poll_calls = "softhca_poll_cq",
			  .open = native_open,
			  .post = post_list,
			  .poll = native_poll,
			  .poll_empty = native_poll_empty};
struct way native_batch = {.post_calls = "softhca_post_add",
			   .poll_calls = "softhca_poll_cq",
			   .open = native_open,
			   .post = post_batch,
			   .poll = native_poll,
			   .poll_empty = native_poll_empty};
