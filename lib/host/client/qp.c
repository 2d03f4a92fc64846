/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: create, modify, connect; addresses of datagrams. Any thread, never on the data path.
 *
 * Memory of a QP: send queue, receive queue, record. The stride of each queue is a power of two
 * that holds the QP's largest request, so that an index needs only a shift and no request wraps
 * around the end.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/ip.h"
#include "context.h"
#include "cq.h"
#include "doorbell.h"
#include "events.h"
#include "qp.h"
#include "regions.h"

enum { SEND_STRIDE_MIN = 64, SEND_UNITS_MAX = 63, READS_DEFAULT = 16 };

/* ---- sizes ---- */

/* Most units in front of the data. */
static uint32_t header_units(enum softhca_qp_type type)
{
	return type == SOFTHCA_QP_UD ? 4 : type == SOFTHCA_QP_UC ? 2 : 3;
}

/* Most units in front of inline data, which atomics do not support. */
static uint32_t inline_header_units(enum softhca_qp_type type)
{
	return type == SOFTHCA_QP_UD ? 4 : 2;
}

/* Programs size their arrays by what they asked for, so a queue accepts that and no more, whatever
 * its memory would hold. Exception: inline data no longer than the data segment that it replaces,
 * which programs send without asking (rdma_xclient). */
static void take_as_asked(struct work_queue *q, uint32_t wrs, uint32_t sges, uint32_t inline_bytes)
{
	q->mask = round_up(wrs ? wrs : 1, 4) - 1;
	q->max_wr = wrs;
	q->max_sge = sges;
	q->max_inline = inline_bytes > UNIT_BYTES ? inline_bytes : UNIT_BYTES;
}

/* 0, -EINVAL: longer than any descriptor. */
static int plan_sends(struct softhca_qp *qp, const struct softhca_qp_cap *cap)
{
	const enum softhca_qp_type type = (enum softhca_qp_type)qp->type;
	uint32_t list_units = header_units(type) + (cap->max_send_sge ? cap->max_send_sge : 1);
	uint32_t inline_units = inline_header_units(type) +
				(4 + cap->max_inline_data + UNIT_BYTES - 1) / UNIT_BYTES;
	uint32_t units = list_units > inline_units ? list_units : inline_units;

	if (units > SEND_UNITS_MAX)
		return -EINVAL;
	qp->sq.shift = (uint8_t)__builtin_ctz(round_up(units * UNIT_BYTES, SEND_STRIDE_MIN));
	take_as_asked(&qp->sq, cap->max_send_wr, cap->max_send_sge, cap->max_inline_data);
	return 0;
}

/* Computes the queues' geometry from what the user requests. 0, -EINVAL. */
static int plan(const struct softhca_context *ctx, struct softhca_qp *qp,
		struct softhca_qp_cap *cap)
{
	const struct control_hello_reply *limit = &ctx->hello;

	if (qp->srq) /* they are ignored then */
		cap->max_recv_wr = cap->max_recv_sge = 0;
	if (cap->max_send_wr > limit->max_qp_wr || cap->max_recv_wr > limit->max_qp_wr ||
	    cap->max_send_sge > limit->max_sge || cap->max_recv_sge > limit->max_sge ||
	    cap->max_inline_data > limit->max_inline_bytes)
		return -EINVAL;
	if (cap->max_recv_wr) {
		qp->rq.shift = (uint8_t)__builtin_ctz(receive_stride(cap->max_recv_sge));
		take_as_asked(&qp->rq, cap->max_recv_wr, cap->max_recv_sge, 0);
	}
	return plan_sends(qp, cap);
}

static size_t queue_bytes(const struct work_queue *q)
{
	return q->shift ? ((size_t)q->mask + 1) << q->shift : 0;
}

/* ---- create and destroy ---- */

static int qp_register(struct softhca_qp *qp, enum softhca_qp_type type)
{
	bool receives = qp->rq.buffer != NULL;
	struct control_qp in = {
		.service = type, /* the same numbers */
		.pd = qp->pd->number,
		.send_cqn = qp->send_cq->number,
		.recv_cqn = qp->recv_cq->number,
		.lkey = qp->memory.chunk->lkey,
		.sq_bytes = (uint32_t)queue_bytes(&qp->sq),
		.rq_log_entries = receives ? (uint32_t)__builtin_ctz(qp->rq.mask + 1) : 0xff,
		.rq_stride = receives ? 1u << qp->rq.shift : 0,
		.sq_va = (uintptr_t)qp->sq.buffer,
		.rq_va = (uintptr_t)qp->rq.buffer,
		.record_va = (uintptr_t)qp->record,
		.sq_signal_all = qp->signal_all,
		.srqn = qp->srq ? qp->srq->number : 0,
	};
	struct softhca_context *ctx = qp->pd->node.ctx;
	struct control_qp_reply out;
	int rc = ctx_call(ctx, CONTROL_CREATE_QP, &in, sizeof(in), &out, sizeof(out), -1, NULL);

	if (rc)
		return rc;
	if (out.engine >= UAR_PAGES)
		return -EPROTO;
	qp->number = out.qpn;
	qp->fifo = &ctx->fifo[out.engine];
	return 0;
}

/* One more QP rings in the FIFO, or one fewer. context.lock is held. */
static void fifo_use(struct softhca_context *ctx, struct doorbell_fifo *f, uint32_t by)
{
	uint32_t bit = 1u << (f - ctx->fifo);

	f->qps += by;
	__atomic_store_n(&ctx->engines, f->qps ? ctx->engines | bit : ctx->engines & ~bit,
			 __ATOMIC_RELAXED);
}

static void use_objects(struct softhca_qp *qp, uint32_t by)
{
	qp->pd->node.users += by;
	qp->send_cq->node.users += by;
	qp->recv_cq->node.users += by;
	if (qp->srq)
		qp->srq->node.users += by;
}

/* context.lock is held. */
static int qp_make(struct softhca_context *ctx, struct softhca_qp *qp, enum softhca_qp_type type)
{
	size_t sq_bytes = queue_bytes(&qp->sq), rq_bytes = queue_bytes(&qp->rq);
	int rc = queue_memory_get(ctx, sq_bytes + rq_bytes + sizeof(struct qp_record), &qp->memory);

	if (rc)
		return rc;
	qp->sq.buffer = qp->memory.addr;
	qp->rq.buffer = rq_bytes ? qp->memory.addr + sq_bytes : NULL;
	qp->record = (struct qp_record *)(qp->memory.addr + sq_bytes + rq_bytes);
	rc = qp_register(qp, type);
	if (rc) {
		queue_memory_put(ctx, &qp->memory);
		return rc;
	}
	node_add(ctx, &qp->node, NODE_QP);
	use_objects(qp, 1);
	fifo_use(ctx, qp->fifo, 1);
	__atomic_store_n(&ctx->qps[qp->number & ctx->qp_mask], qp, __ATOMIC_RELEASE);
	return 0;
}

void qp_free(struct softhca_qp *qp)
{
	free(qp->sq.wr_id);
	free(qp->rq.wr_id);
	free(qp);
}

static struct softhca_qp *qp_new(struct softhca_pd *pd, struct softhca_qp_init_attr *attr, int *err)
{
	struct softhca_qp *qp = aligned_alloc(64, sizeof(*qp));

	*err = -ENOMEM;
	if (!qp)
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->user = attr->user;
	qp->type = attr->type == SOFTHCA_QP_GSI ? SOFTHCA_QP_UD : (uint8_t)attr->type;
	qp->signal_all = attr->sq_sig_all != 0;
	*err = plan(pd->node.ctx, qp, &attr->cap);
	if (*err) {
		free(qp);
		return NULL;
	}
	qp->sq.wr_id = calloc(qp->sq.mask + 1, sizeof(uint64_t));
	qp->rq.wr_id = calloc(qp->rq.mask + 1, sizeof(uint64_t));
	if (qp->sq.wr_id && qp->rq.wr_id)
		return qp;
	*err = -ENOMEM;
	qp_free(qp);
	return NULL;
}

struct softhca_qp *softhca_create_qp(struct softhca_pd *pd, struct softhca_qp_init_attr *attr)
{
	struct softhca_context *ctx = pd->node.ctx;
	struct softhca_qp *qp = NULL;
	int rc = -EINVAL;

	if (attr->send_cq && attr->recv_cq && (unsigned int)attr->type <= SOFTHCA_QP_GSI)
		qp = qp_new(pd, attr, &rc);
	if (qp) {
		pthread_mutex_lock(&ctx->lock);
		rc = qp_make(ctx, qp, attr->type);
		pthread_mutex_unlock(&ctx->lock);
	}
	if (rc) {
		if (qp)
			qp_free(qp);
		errno = -rc;
		return NULL;
	}
	return qp;
}

int softhca_destroy_qp(struct softhca_qp *qp)
{
	struct softhca_context *ctx = qp->node.ctx;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = node_destroy(&qp->node, CONTROL_DESTROY_QP, qp->number);
	if (!rc) {
		/* Nothing more is written for it. cq_forget()'s lock waits for a poller that is
		 * active now, a later one finds nothing of this QP; an SRQ gets its tags back. */
		cq_forget(qp->send_cq, qp);
		cq_forget(qp->recv_cq, qp);
		__atomic_store_n(&ctx->qps[qp->number & ctx->qp_mask], NULL, __ATOMIC_RELEASE);
		events_drain(ctx);
		unrung_forget(qp);
		node_remove(&qp->node);
		use_objects(qp, -1u);
		fifo_use(ctx, qp->fifo, -1u);
		queue_memory_put(ctx, &qp->memory);
	}
	pthread_mutex_unlock(&ctx->lock);
	if (rc)
		return rc;
	events_forget(&qp->node);
	qp_free(qp);
	return 0;
}

struct softhca_qp *qp_lookup(struct softhca_context *ctx, uint32_t number)
{
	struct softhca_qp *qp = __atomic_load_n(&ctx->qps[number & ctx->qp_mask], __ATOMIC_ACQUIRE);

	return qp && qp->number == number ? qp : NULL;
}

uint32_t softhca_qp_number(const struct softhca_qp *qp)
{
	return qp->number;
}

void *softhca_qp_user(const struct softhca_qp *qp)
{
	return qp->user;
}

/* ---- states ---- */

enum softhca_qp_state softhca_qp_current_state(const struct softhca_qp *qp)
{
	return (enum softhca_qp_state)__atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

void qp_failed(struct softhca_qp *qp, enum softhca_qp_state state)
{
	uint8_t old = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);

	do {
		if (old == state || old == SOFTHCA_QPS_ERR || old == SOFTHCA_QPS_RESET)
			return;
	} while (!__atomic_compare_exchange_n(&qp->state, &old, (uint8_t)state, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
	/* Receives posted just before missed the flush: the QP had already entered ERR. */
	if (state == SOFTHCA_QPS_ERR && qp->rq.buffer)
		ring_for_receives(qp);
}

/* In RST the queues start afresh; completions not polled are dropped. */
static void qp_reset(struct softhca_qp *qp)
{
	cq_forget(qp->send_cq, qp);
	cq_forget(qp->recv_cq, qp);
	qp->sq.head = qp->sq.tail = 0;
	qp->rq.head = qp->rq.tail = 0;
	__atomic_store_n(&qp->record->rq_posted, 0, __ATOMIC_RELEASE);
}

/* The daemon has made the transition; a failure noticed meanwhile takes precedence. */
static void moved(struct softhca_qp *qp, uint8_t before, enum softhca_qp_state to)
{
	if (to == SOFTHCA_QPS_RESET) {
		qp_reset(qp);
		__atomic_store_n(&qp->state, (uint8_t)to, __ATOMIC_SEQ_CST);
		/* Events of its former life must not be taken for those of the next. */
		pthread_mutex_lock(&qp->node.ctx->lock);
		events_drain(qp->node.ctx);
		pthread_mutex_unlock(&qp->node.ctx->lock);
	} else if (to == SOFTHCA_QPS_ERR) {
		qp_failed(qp, to);
	} else {
		__atomic_compare_exchange_n(&qp->state, &before, (uint8_t)to, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
		/* Receives posted just before were too late for the daemon, too early to ring. */
		if (to == SOFTHCA_QPS_RTS && before == SOFTHCA_QPS_RTR && qp->rq.buffer &&
		    __atomic_load_n(&qp->record->rq_posted, __ATOMIC_SEQ_CST))
			ring_for_receives(qp);
	}
}

static int ask_to_modify(struct softhca_qp *qp, const struct control_qp_attr *in)
{
	bool resets = in->mask & QP_ATTR_STATE && in->state == SOFTHCA_QPS_RESET;
	struct softhca_context *ctx = qp->node.ctx;
	int rc;

	/* No poller may ring a doorbell that waits for room: after the reset, its requests would
	 * count as posted in the QP's next life. */
	if (resets)
		pthread_mutex_lock(&ctx->lock);
	rc = ctx_call(ctx, CONTROL_MODIFY_QP, in, sizeof(*in), NULL, 0, -1, NULL);
	if (resets) {
		if (!rc)
			unrung_forget(qp);
		pthread_mutex_unlock(&ctx->lock);
	}
	return rc;
}

/* Between the public structure and the daemon's, in either direction: the fields have the same
 * names. */
#define COPY_ADDRESS(to, from)                                                                     \
	do {                                                                                       \
		memcpy((to)->dgid, (from)->dgid, sizeof((to)->dgid));                              \
		(to)->gid_index = (from)->gid_index;                                               \
		(to)->traffic_class = (from)->traffic_class;                                       \
		(to)->hop_limit = (from)->hop_limit;                                               \
		(to)->sl = (from)->sl;                                                             \
		(to)->flow_label = (from)->flow_label;                                             \
	} while (0)
#define COPY_ATTRIBUTES(to, from)                                                                  \
	do {                                                                                       \
		(to)->state = (from)->state;                                                       \
		(to)->cur_state = (from)->cur_state;                                               \
		(to)->access = (from)->access;                                                     \
		(to)->qkey = (from)->qkey;                                                         \
		(to)->dest_qpn = (from)->dest_qpn;                                                 \
		(to)->rq_psn = (from)->rq_psn;                                                     \
		(to)->sq_psn = (from)->sq_psn;                                                     \
		(to)->path_mtu = (from)->path_mtu;                                                 \
		(to)->timeout = (from)->timeout;                                                   \
		(to)->retry_cnt = (from)->retry_cnt;                                               \
		(to)->rnr_retry = (from)->rnr_retry;                                               \
		(to)->min_rnr_timer = (from)->min_rnr_timer;                                       \
		(to)->max_rd_atomic = (from)->max_rd_atomic;                                       \
		(to)->max_dest_rd_atomic = (from)->max_dest_rd_atomic;                             \
		(to)->pkey_index = (from)->pkey_index;                                             \
		(to)->port = (from)->port;                                                         \
		(to)->alternate_timeout = (from)->alternate_timeout;                               \
		(to)->alternate_pkey_index = (from)->alternate_pkey_index;                         \
		(to)->alternate_port = (from)->alternate_port;                                     \
		(to)->path_mig_state = (from)->path_mig_state;                                     \
		COPY_ADDRESS(&(to)->av, &(from)->av);                                              \
		COPY_ADDRESS(&(to)->alternate, &(from)->alternate);                                \
	} while (0)

int softhca_modify_qp(struct softhca_qp *qp, const struct softhca_qp_attr *attr, uint32_t mask)
{
	struct control_qp_attr in = {.qpn = qp->number, .mask = mask};
	uint8_t before = __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
	int rc;

	COPY_ATTRIBUTES(&in, attr);
	rc = ask_to_modify(qp, &in);
	if (rc)
		return rc;
	if (mask & SOFTHCA_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & SOFTHCA_QP_STATE)
		moved(qp, before, (enum softhca_qp_state)attr->state);
	return 0;
}

int softhca_query_qp(struct softhca_qp *qp, struct softhca_qp_attr *attr)
{
	struct control_number in = {.number = qp->number};
	struct control_qp_attr r;
	int rc = ctx_call(qp->node.ctx, CONTROL_QUERY_QP, &in, sizeof(in), &r, sizeof(r), -1, NULL);

	if (rc)
		return rc;
	*attr = (struct softhca_qp_attr){0};
	COPY_ATTRIBUTES(attr, &r);
	if (r.state == SOFTHCA_QPS_ERR)
		qp_failed(qp, SOFTHCA_QPS_ERR);
	return 0;
}

/* ---- enhanced connection establishment ---- */

int softhca_query_ece(struct softhca_qp *qp, struct softhca_ece *ece)
{
	struct control_number in = {.number = qp->number};
	struct control_ece r = {0};
	int rc =
		ctx_call(qp->node.ctx, CONTROL_QUERY_ECE, &in, sizeof(in), &r, sizeof(r), -1, NULL);

	*ece = (struct softhca_ece){.vendor_id = r.vendor_id, .options = r.options};
	return rc;
}

int softhca_set_ece(struct softhca_qp *qp, struct softhca_ece *ece)
{
	struct control_ece in = {
		.qpn = qp->number, .vendor_id = ece->vendor_id, .options = ece->options};
	struct control_ece r;
	int rc = ctx_call(qp->node.ctx, CONTROL_SET_ECE, &in, sizeof(in), &r, sizeof(r), -1, NULL);

	if (!rc)
		ece->options = r.options;
	return rc;
}

/* ---- connect by exchanging endpoints ---- */

int softhca_local_endpoint(struct softhca_qp *qp, uint32_t gid_index,
			   struct softhca_endpoint *local)
{
	*local = (struct softhca_endpoint){.qpn = qp->number};
	if (getrandom(&local->psn, sizeof(local->psn), 0) != sizeof(local->psn))
		return -EIO;
	local->psn &= 0xffffff;
	return softhca_query_gid(qp->node.ctx, gid_index, local->gid);
}

void softhca_connect_defaults(struct softhca_context *ctx, struct softhca_connect_attr *attr)
{
	*attr = (struct softhca_connect_attr){
		.access = SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
			  SOFTHCA_ACCESS_REMOTE_READ | SOFTHCA_ACCESS_REMOTE_ATOMIC |
			  SOFTHCA_ACCESS_FLUSH_GLOBAL | SOFTHCA_ACCESS_FLUSH_PERSISTENT,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.max_rd_atomic = READS_DEFAULT,
		.max_dest_rd_atomic = READS_DEFAULT,
		.qkey = 0x11111111,
	};
}

static const struct softhca_connect_attr *or_defaults(struct softhca_qp *qp,
						      const struct softhca_connect_attr *attr,
						      struct softhca_connect_attr *mine)
{
	if (attr)
		return attr;
	softhca_connect_defaults(qp->node.ctx, mine);
	return mine;
}

int softhca_init_qp(struct softhca_qp *qp, const struct softhca_connect_attr *attr)
{
	struct softhca_connect_attr mine;
	struct softhca_qp_attr a = {.state = SOFTHCA_QPS_INIT, .port = 1};
	uint32_t mask = SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT;

	attr = or_defaults(qp, attr, &mine);
	a.access = attr->access;
	a.qkey = attr->qkey;
	mask |= qp->type == SOFTHCA_QP_UD ? SOFTHCA_QP_QKEY : SOFTHCA_QP_ACCESS_FLAGS;
	return softhca_modify_qp(qp, &a, mask);
}

static int to_rtr(struct softhca_qp *qp, const struct softhca_endpoint *remote,
		  const struct softhca_connect_attr *attr)
{
	struct softhca_qp_attr a = {.state = SOFTHCA_QPS_RTR,
				    .min_rnr_timer = attr->min_rnr_timer,
				    .max_dest_rd_atomic = attr->max_dest_rd_atomic,
				    .path_mtu = attr->path_mtu,
				    .av = {.gid_index = (uint8_t)attr->gid_index,
					   .traffic_class = attr->traffic_class,
					   .hop_limit = attr->hop_limit,
					   .sl = attr->sl,
					   .flow_label = attr->flow_label}};
	uint32_t mask = SOFTHCA_QP_STATE;
	struct softhca_port_attr port;

	if (qp->type == SOFTHCA_QP_UD)
		return softhca_modify_qp(qp, &a, mask);
	if (!remote)
		return -EINVAL;
	if (!a.path_mtu) {
		int rc = softhca_query_port(qp->node.ctx, &port);

		if (rc)
			return rc;
		a.path_mtu = (uint8_t)port.active_mtu;
	}
	a.dest_qpn = remote->qpn;
	a.rq_psn = remote->psn;
	memcpy(a.av.dgid, remote->gid, sizeof(a.av.dgid));
	mask |= SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN | SOFTHCA_QP_RQ_PSN;
	if (qp->type == SOFTHCA_QP_RC)
		mask |= SOFTHCA_QP_MAX_DEST_RD_ATOMIC | SOFTHCA_QP_MIN_RNR_TIMER;
	return softhca_modify_qp(qp, &a, mask);
}

static int to_rts(struct softhca_qp *qp, const struct softhca_endpoint *local,
		  const struct softhca_connect_attr *attr)
{
	struct softhca_qp_attr a = {.state = SOFTHCA_QPS_RTS,
				    .sq_psn = local->psn,
				    .timeout = attr->timeout,
				    .retry_cnt = attr->retry_cnt,
				    .rnr_retry = attr->rnr_retry,
				    .max_rd_atomic = attr->max_rd_atomic};
	uint32_t mask = SOFTHCA_QP_STATE | SOFTHCA_QP_SQ_PSN;

	if (qp->type == SOFTHCA_QP_RC)
		mask |= SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT | SOFTHCA_QP_RNR_RETRY |
			SOFTHCA_QP_MAX_QP_RD_ATOMIC;
	return softhca_modify_qp(qp, &a, mask);
}

int softhca_connect_qp(struct softhca_qp *qp, const struct softhca_endpoint *local,
		       const struct softhca_endpoint *remote,
		       const struct softhca_connect_attr *attr)
{
	struct softhca_connect_attr mine;
	int rc = 0;

	attr = or_defaults(qp, attr, &mine);
	if (softhca_qp_current_state(qp) == SOFTHCA_QPS_RESET)
		rc = softhca_init_qp(qp, attr);
	if (!rc)
		rc = to_rtr(qp, remote, attr);
	if (!rc)
		rc = to_rts(qp, local, attr);
	return rc;
}

/* ---- addresses ---- */

/* Default where the address handle gives none: as in IP, multicast is not routed. */
static uint8_t default_hops(const uint8_t gid[16])
{
	return ip_is_group(gid) ? 1 : 64;
}

int softhca_resolve(struct softhca_context *ctx, const struct softhca_ah_attr *attr, uint8_t mac[6])
{
	struct control_resolve in = {.gid_index = attr->gid_index};
	struct control_resolve_reply out;
	int rc;

	memcpy(in.dgid, attr->dgid, sizeof(in.dgid));
	rc = ctx_call(ctx, CONTROL_RESOLVE, &in, sizeof(in), &out, sizeof(out), -1, NULL);
	if (!rc)
		memcpy(mac, out.mac, sizeof(out.mac));
	return rc;
}

struct softhca_ah *softhca_create_ah(struct softhca_pd *pd, const struct softhca_ah_attr *attr)
{
	uint8_t mac[6];
	int rc = softhca_resolve(pd->node.ctx, attr, mac);

	if (!rc)
		return softhca_create_ah_by(pd, attr, mac);
	errno = -rc;
	return NULL;
}

struct softhca_ah *softhca_create_ah_by(struct softhca_pd *pd, const struct softhca_ah_attr *attr,
					const uint8_t mac[6])
{
	struct softhca_context *ctx = pd->node.ctx;
	struct softhca_ah *ah = calloc(1, sizeof(*ah));

	if (!ah) {
		errno = ENOMEM;
		return NULL;
	}
	ah->pd = pd;
	ah->ud = (struct wqe_ud){.port = 1,
				 .gid_index = attr->gid_index,
				 .is_ipv6 = !ip_is_v4_mapped(attr->dgid),
				 .traffic_class = attr->traffic_class,
				 .sl = attr->sl,
				 .hop_limit = attr->hop_limit ? attr->hop_limit
							      : default_hops(attr->dgid),
				 .flow_label = attr->flow_label & 0xfffff};
	memcpy(ah->ud.dmac, mac, sizeof(ah->ud.dmac));
	memcpy(ah->ud.dip, attr->dgid, sizeof(ah->ud.dip));
	pthread_mutex_lock(&ctx->lock);
	node_add(ctx, &ah->node, NODE_AH);
	pd->node.users++;
	pthread_mutex_unlock(&ctx->lock);
	return ah;
}

int softhca_destroy_ah(struct softhca_ah *ah)
{
	struct softhca_context *ctx = ah->node.ctx;

	pthread_mutex_lock(&ctx->lock);
	node_remove(&ah->node);
	ah->pd->node.users--;
	pthread_mutex_unlock(&ctx->lock);
	free(ah);
	return 0;
}
