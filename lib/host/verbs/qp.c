/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: create, modify, query, destroy. Any thread, not hot.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "domain.h"
#include "handles.h"
#include "operations.h"
#include "qp.h"

/* ---- create and destroy ---- */

/* 0, EINVAL, EOPNOTSUPP: not a QP that we support. */
static int check(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !pd_known(attr->pd) ||
	    !cq_known(attr->send_cq) || !cq_known(attr->recv_cq) ||
	    (attr->srq && !srq_known(attr->srq)))
		return EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return EOPNOTSUPP;
	if (attr->qp_type < IBV_QPT_RC || attr->qp_type > IBV_QPT_UD)
		return EOPNOTSUPP;
	return 0;
}

static struct softhca_qp *create_native_qp(struct shca_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
	struct softhca_qp_init_attr init = {
		.user = qp,
		.send_cq = to_shca_cq(attr->send_cq)->cq,
		.recv_cq = to_shca_cq(attr->recv_cq)->cq,
		.srq = attr->srq ? to_shca_srq(attr->srq)->srq : NULL,
		.type = (enum softhca_qp_type)(attr->qp_type - IBV_QPT_RC),
		.sq_sig_all = attr->sq_sig_all,
		.cap = {.max_send_wr = attr->cap.max_send_wr,
			.max_recv_wr = attr->cap.max_recv_wr,
			.max_send_sge = attr->cap.max_send_sge,
			.max_recv_sge = attr->cap.max_recv_sge,
			.max_inline_data = attr->cap.max_inline_data},
	};
	struct softhca_qp *made = softhca_create_qp(to_shca_pd(attr->pd)->pd, &init);

	if (made)
		qp->cap = (struct ibv_qp_cap){.max_send_wr = init.cap.max_send_wr,
					      .max_recv_wr = init.cap.max_recv_wr,
					      .max_send_sge = init.cap.max_send_sge,
					      .max_recv_sge = init.cap.max_recv_sge,
					      .max_inline_data = init.cap.max_inline_data};
	return made;
}

static void qp_fill(struct shca_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	qp->sig_all = attr->sq_sig_all != 0;
	qp->ibv.context = attr->pd->context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.srq = attr->srq;
	qp->ibv.qp_num = softhca_qp_number(qp->qp);
	qp->ibv.handle = handle_add(&qp->handle, HANDLE_QP, to_shca_context(attr->pd->context)->hca,
				    qp->ibv.qp_num, NULL);
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = attr->qp_type;
	pd_hold(attr->pd);
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

struct ibv_qp *shca_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr)
{
	struct shca_qp *qp;
	int rc = check(attr);

	(void)c;
	if (rc) {
		errno = rc;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->qp = create_native_qp(qp, attr);
	if (!qp->qp) {
		free(qp);
		return NULL;
	}
	qp_fill(qp, attr);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		rc = qp_ex_fill(qp, attr->send_ops_flags);
		if (rc) {
			ibv_destroy_qp(&qp->ibv);
			errno = rc;
			return NULL;
		}
	}
	attr->cap = qp->cap;
	return &qp->ibv;
}

VERBS_PUBLIC struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = shca_create_qp_ex(NULL, &attr);

	if (qp)
		init->cap = attr.cap;
	return qp;
}

VERBS_PUBLIC int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct shca_qp *qp = to_shca_qp(ibv);
	int rc;

	if (!qp_take(ibv))
		return no_such_object();
	rc = handle_end(&qp->handle, softhca_destroy_qp(qp->qp));
	if (rc)
		return rc;
	pd_release(ibv->pd);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(qp);
	return 0;
}

/* A group has no LID on this wire. */
VERBS_PUBLIC int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!qp_known(qp))
		return no_such_object();
	return verbs_status(softhca_attach_mcast(to_shca_qp(qp)->qp, gid->raw));
}

VERBS_PUBLIC int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!qp_known(qp))
		return no_such_object();
	return verbs_status(softhca_detach_mcast(to_shca_qp(qp)->qp, gid->raw));
}

VERBS_PUBLIC struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return to_shca_qp(qp)->is_ex ? &to_shca_qp(qp)->ex : NULL;
}

/* ---- states and attributes ---- */

/* verbs and libsofthca number SQD and SQE the other way round. */
static uint32_t state_to(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_SQD:
		return SOFTHCA_QPS_SQD;
	case IBV_QPS_SQE:
		return SOFTHCA_QPS_SQE;
	default:
		return state;
	}
}

static enum ibv_qp_state state_from(uint32_t state)
{
	switch (state) {
	case SOFTHCA_QPS_SQD:
		return IBV_QPS_SQD;
	case SOFTHCA_QPS_SQE:
		return IBV_QPS_SQE;
	default:
		return (enum ibv_qp_state)state;
	}
}

enum {
	/* The attributes of our QPs. */
	ATTR_KNOWN = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY |
		     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY |
		     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		     IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
		     IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		     IBV_QP_DEST_QPN | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | LATER_ACCESS_FLUSH_GLOBAL |
		       LATER_ACCESS_FLUSH_PERSISTENT,
};

/* RoCE addresses are always global. */
static bool is_address(const struct ibv_ah_attr *ah)
{
	return ah->is_global && ah->port_num == VERBS_PORT;
}

/* Checks values for which libsofthca has no field and so cannot refuse. */
static int check_attributes(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_RATE_LIMIT)
		return EOPNOTSUPP;
	if (mask & ~ATTR_KNOWN)
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index > UINT8_MAX)
		return EINVAL;
	if (mask & IBV_QP_AV && !is_address(&attr->ah_attr))
		return EINVAL;
	if (mask & IBV_QP_ALT_PATH &&
	    (!is_address(&attr->alt_ah_attr) || attr->alt_pkey_index > UINT8_MAX))
		return EINVAL;
	if (mask & IBV_QP_PATH_MIG_STATE && (unsigned int)attr->path_mig_state > UINT8_MAX)
		return EINVAL;
	return 0;
}

static struct softhca_ah_attr address_to(const struct ibv_ah_attr *ah)
{
	const struct ibv_global_route *grh = &ah->grh;
	struct softhca_ah_attr to = {.gid_index = grh->sgid_index,
				     .traffic_class = grh->traffic_class,
				     .hop_limit = grh->hop_limit,
				     .sl = ah->sl,
				     .flow_label = grh->flow_label & 0xfffff};

	memcpy(to.dgid, grh->dgid.raw, sizeof(to.dgid));
	return to;
}

static struct ibv_ah_attr address_from(const struct softhca_ah_attr *from, uint8_t port)
{
	struct ibv_ah_attr to = {.is_global = 1,
				 .port_num = port,
				 .sl = from->sl,
				 .grh = {.sgid_index = from->gid_index,
					 .traffic_class = from->traffic_class,
					 .hop_limit = from->hop_limit,
					 .flow_label = from->flow_label}};

	memcpy(to.grh.dgid.raw, from->dgid, sizeof(from->dgid));
	return to;
}

static void attributes_to(const struct ibv_qp_attr *from, struct softhca_qp_attr *to)
{
	*to = (struct softhca_qp_attr){
		.state = state_to(from->qp_state),
		.cur_state = state_to(from->cur_qp_state),
		.access = from->qp_access_flags & ACCESS_KNOWN,
		.qkey = from->qkey,
		.dest_qpn = from->dest_qp_num,
		.rq_psn = from->rq_psn & 0xffffff,
		.sq_psn = from->sq_psn & 0xffffff,
		.av = address_to(&from->ah_attr),
		.path_mtu = (uint8_t)from->path_mtu,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.min_rnr_timer = from->min_rnr_timer,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.pkey_index = (uint8_t)from->pkey_index,
		.port = from->port_num,
		.alternate = address_to(&from->alt_ah_attr),
		.alternate_timeout = from->alt_timeout,
		.alternate_pkey_index = (uint8_t)from->alt_pkey_index,
		.alternate_port = from->alt_port_num,
		.path_mig_state = (uint8_t)from->path_mig_state,
	};
}

VERBS_PUBLIC int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct softhca_qp_attr to;
	int mask = attr_mask, rc = qp_known(qp) ? check_attributes(attr, attr_mask) : EINVAL;

	if (rc)
		return rc;
	/* For libsofthca the mask bit itself requests the event. */
	if (!attr->en_sqd_async_notify)
		mask &= ~IBV_QP_EN_SQD_ASYNC_NOTIFY;
	attributes_to(attr, &to);
	rc = softhca_modify_qp(to_shca_qp(qp)->qp, &to, (uint32_t)mask);
	if (!rc && mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return verbs_status(rc);
}

static void attributes_from(const struct shca_qp *qp, const struct softhca_qp_attr *from,
			    struct ibv_qp_attr *to)
{
	*to = (struct ibv_qp_attr){
		.qp_state = state_from(from->state),
		.cur_qp_state = state_from(from->state),
		.path_mtu = (enum ibv_mtu)from->path_mtu,
		.path_mig_state = (enum ibv_mig_state)from->path_mig_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qpn,
		.qp_access_flags = from->access,
		.cap = qp->cap,
		.pkey_index = from->pkey_index,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
	};
	if (qp->ibv.qp_type == IBV_QPT_UD || from->state < SOFTHCA_QPS_RTR)
		return;
	to->ah_attr = address_from(&from->av, from->port);
	if (!from->alternate_port)
		return;
	to->alt_ah_attr = address_from(&from->alternate, from->alternate_port);
	to->alt_pkey_index = from->alternate_pkey_index;
	to->alt_port_num = from->alternate_port;
	to->alt_timeout = from->alternate_timeout;
}

VERBS_PUBLIC int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
			      struct ibv_qp_init_attr *init_attr)
{
	struct shca_qp *qp = to_shca_qp(ibv);
	struct softhca_qp_attr now;
	int rc;

	rc = qp_known(ibv) ? softhca_query_qp(qp->qp, &now) : -EINVAL;
	if (rc)
		return verbs_status(rc);
	attributes_from(qp, &now, attr); /* all attributes: they are known anyway */
	if (attr_mask & IBV_QP_STATE)
		ibv->state = attr->qp_state;
	if (init_attr)
		*init_attr = (struct ibv_qp_init_attr){
			.qp_context = ibv->qp_context,
			.send_cq = ibv->send_cq,
			.recv_cq = ibv->recv_cq,
			.srq = ibv->srq,
			.cap = qp->cap,
			.qp_type = ibv->qp_type,
			.sq_sig_all = qp->sig_all,
		};
	return 0;
}

/* ---- enhanced connection establishment ---- */

VERBS_PUBLIC int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct softhca_ece is;
	int rc;

	*ece = (struct ibv_ece){0};
	rc = qp_known(qp) ? softhca_query_ece(to_shca_qp(qp)->qp, &is) : -EINVAL;
	if (rc)
		return verbs_status(rc);
	ece->vendor_id = is.vendor_id;
	ece->options = is.options;
	return 0;
}

VERBS_PUBLIC int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct softhca_ece to = {.vendor_id = ece->vendor_id, .options = ece->options};
	int rc = qp_known(qp) && !ece->comp_mask ? softhca_set_ece(to_shca_qp(qp)->qp, &to)
						 : -EINVAL;

	if (!rc)
		ece->options = to.options;
	return verbs_status(rc);
}
