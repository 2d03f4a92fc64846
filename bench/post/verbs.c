/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs' calls: ibv_post_send() and ibv_poll_cq() on a plain queue pair and CQ; ibv_wr_*() and
 * ibv_start_poll() on extended ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>
#include "cycles.h"
#include "way.h"

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};
struct ends {
	bool extended; /* queue pairs and CQs */
	struct side ours, theirs;
};
static struct ends list, batch = {.extended = true};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; devices && devices[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(devices[i]), name))
			ctx = ibv_open_device(devices[i]);
	if (devices)
		ibv_free_device_list(devices);
	return ctx;
}

static int open_queues(struct side *s, bool extended)
{
	struct ibv_cq_init_attr_ex cq = {.cqe = QUEUE, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_qp_init_attr_ex init = {
		.cap = {.max_send_wr = QUEUE, .max_send_sge = 1, .max_inline_data = BYTES},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (extended ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = s->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};

	s->cq = extended ? ibv_create_cq_ex(s->ctx, &cq)
			 : (struct ibv_cq_ex *)ibv_create_cq(s->ctx, QUEUE, NULL, NULL, 0);
	if (!s->cq)
		return way_fail("create CQ", errno);
	init.send_cq = init.recv_cq = (struct ibv_cq *)s->cq;
	s->qp = ibv_create_qp_ex(s->ctx, &init);
	return s->qp ? 0 : way_fail("create QP", errno);
}

static int open_side(struct side *s, const char *device, bool extended)
{
	void *memory = aligned_alloc(4096, 4096);

	s->ctx = open_device(device);
	if (!s->ctx)
		return way_fail("libibverbs has no such HCA; start this by 'softhca run'", ENODEV);
	s->pd = ibv_alloc_pd(s->ctx);
	if (!s->pd || !memory)
		return way_fail("allocate", errno);
	memset(memory, 0, 4096);
	s->mr = ibv_reg_mr(s->pd, memory, BURST * BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!s->mr || ibv_query_gid(s->ctx, 1, 0, &s->gid))
		return way_fail("register memory", errno);
	return open_queues(s, extended);
}

static int connect(struct side *s, const struct side *to)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				.port_num = 1,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = to->qp->qp_num,
				.ah_attr = {.is_global = 1,
					    .port_num = 1,
					    .grh = {.dgid = to->gid, .hop_limit = 64}},
				.min_rnr_timer = 12,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = 7};
	int error = ibv_modify_qp(
		s->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	a.qp_state = IBV_QPS_RTR;
	if (!error)
		error = ibv_modify_qp(s->qp, &a,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER);
	a.qp_state = IBV_QPS_RTS;
	if (!error)
		error = ibv_modify_qp(s->qp, &a,
				      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					      IBV_QP_MAX_QP_RD_ATOMIC);
	return error ? way_fail("connect", error) : 0;
}

static int open_ends(struct way *w, const char *device, const char *peer)
{
	struct ends *e = w->ends;

	if (open_side(&e->ours, device, e->extended) || open_side(&e->theirs, peer, e->extended) ||
	    connect(&e->ours, &e->theirs) || connect(&e->theirs, &e->ours))
		return -1;
	w->from = e->ours.mr->addr;
	w->to = e->theirs.mr->addr;
	return 0;
}

/* ---- lists ---- */

static void fill(const struct way *w, enum form form, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	for (unsigned i = 0; i < BURST; i++) {
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)(w->from + i * BYTES),
					  .length = BYTES,
					  .lkey = list.ours.mr->lkey};
		wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = form_is_single(form) || i + 1 == BURST ? NULL : &wr[i + 1],
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags =
				IBV_SEND_SIGNALED | (form_is_inline(form) ? IBV_SEND_INLINE : 0),
			.wr.rdma = {.remote_addr = (uintptr_t)(w->to + i * BYTES),
				    .rkey = list.theirs.mr->rkey}};
	}
}

static int list_post(const struct way *w, enum form form, uint64_t *cycles)
{
	unsigned calls = form_is_single(form) ? BURST : 1;
	struct ibv_qp *qp = list.ours.qp;
	struct ibv_send_wr wr[BURST], *bad;
	struct ibv_sge sge[BURST];
	uint64_t begin;
	int error = 0;

	fill(w, form, wr, sge);
	begin = cycles_now();
	for (unsigned i = 0; i < calls; i++)
		error |= ibv_post_send(qp, &wr[i], &bad);
	*cycles = cycles_now() - begin;
	return error;
}

static int list_poll(const struct way *w, int n, uint64_t *cycles)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(list.ours.cq);
	struct ibv_wc wc[BURST];
	uint64_t begin = cycles_now();
	int done = ibv_poll_cq(cq, n, wc);

	*cycles = cycles_now() - begin;
	for (int i = 0; i < done; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			return -1;
	return done;
}

static uint64_t list_poll_empty(const struct way *w)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(list.ours.cq);
	struct ibv_wc wc[BURST];
	uint64_t begin = cycles_now();

	for (unsigned i = 0; i < EMPTY_POLLS; i++)
		ibv_poll_cq(cq, BURST, wc);
	return cycles_now() - begin;
}

/* ---- batches ---- */

static inline int post_batches(const struct way *w, unsigned size, bool is_inline)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(batch.ours.qp);
	uint32_t lkey = batch.ours.mr->lkey, rkey = batch.theirs.mr->rkey;
	int error = 0;

	qp->wr_flags = IBV_SEND_SIGNALED;
	for (unsigned i = 0; i < BURST;) {
		ibv_wr_start(qp);
		for (unsigned end = i + size; i < end; i++) {
			uint8_t *from = w->from + i * BYTES;

			qp->wr_id = i;
			ibv_wr_rdma_write(qp, rkey, (uintptr_t)(w->to + i * BYTES));
			if (is_inline)
				ibv_wr_set_inline_data(qp, from, BYTES);
			else
				ibv_wr_set_sge(qp, lkey, (uintptr_t)from, BYTES);
		}
		error |= ibv_wr_complete(qp);
	}
	return error;
}

static int batch_post(const struct way *w, enum form form, uint64_t *cycles)
{
	unsigned size = form_is_single(form) ? 1 : BURST;
	uint64_t begin = cycles_now();
	int error = post_batches(w, size, form_is_inline(form));

	*cycles = cycles_now() - begin;
	return error;
}

static int batch_poll(const struct way *w, int n, uint64_t *cycles)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq = batch.ours.cq;
	uint64_t begin = cycles_now();
	int done = 0, failed = 0;

	if (!ibv_start_poll(cq, &attr)) {
		do {
			failed |= cq->status != IBV_WC_SUCCESS;
			done++;
		} while (done < n && !ibv_next_poll(cq));
		ibv_end_poll(cq);
	}
	*cycles = cycles_now() - begin;
	return failed ? -1 : done;
}

static uint64_t batch_poll_empty(const struct way *w)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq = batch.ours.cq;
	uint64_t begin = cycles_now();

	for (unsigned i = 0; i < EMPTY_POLLS; i++)
		ibv_start_poll(cq, &attr);
	return cycles_now() - begin;
}

struct way verbs_list = {.post_calls = "ibv_post_send",
			 .poll_calls = "ibv_poll_cq",
			 .ends = &list,
			 .open = open_ends,
			 .post = list_post,
			 .poll = list_poll,
			 .poll_empty = list_poll_empty};
struct way verbs_batch = {.post_calls = "ibv_wr_*",
			  .poll_calls = "ibv_start_poll",
			  .ends = &batch,
			  .open = open_ends,
			  .post = batch_post,
			  .poll = batch_poll,
			  .poll_empty = batch_poll_empty};
