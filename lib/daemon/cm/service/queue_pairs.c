/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * INIT_QP_ATTR: the attributes with which the program must modify its QP to each state, in the
 * kernel's form (read by lib/host/verbs/marshall.c). The PSN that one side announces is the first
 * that the other sends. Runs in the CM thread.
 */
#include <errno.h>
#include "commands.h"
#include "ids.h"
#include "route.h"

/* connection.def's, as cm_connection_info() numbers them. */
enum {
#define STATE(id, text) CONNECTION_##id,
#include "../connection.def"
};

/* Have the peer's parameters arrived? */
static bool knows_peer(unsigned int state)
{
	switch (state) {
	case CONNECTION_REQ_RCVD:
	case CONNECTION_MRA_REQ_SENT:
	case CONNECTION_REP_RCVD:
	case CONNECTION_MRA_REP_SENT:
	case CONNECTION_REP_SENT:
	case CONNECTION_MRA_REP_RCVD:
	case CONNECTION_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

static void for_init(const struct ucm_id *id, struct ib_uverbs_qp_attr *out)
{
	out->qp_attr_mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT;
	out->port_num = 1;
	if (id->qp_type == UCM_QPT_UD) {
		out->qp_attr_mask |= QP_ATTR_QKEY;
		out->qkey = id->qkey;
		return;
	}
	out->qp_attr_mask |= QP_ATTR_ACCESS;
	if (!id->connection)
		return;
	out->qp_access_flags = UCM_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		out->qp_access_flags |=
			UCM_ACCESS_REMOTE_READ | UCM_ACCESS_REMOTE_ATOMIC | UCM_ACCESS_FLUSHABLE;
}

static void for_rtr(const struct ucm_id *id, const struct cm_connection_info *info,
		    struct ib_uverbs_qp_attr *out)
{
	out->qp_attr_mask =
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
	ucm_ah_attr(ucm_device(id), &info->path, &out->ah_attr);
	out->path_mtu = info->path.mtu;
	out->dest_qp_num = info->remote_qpn;
	out->rq_psn = id->psn;
	if (id->qp_type != UCM_QPT_RC)
		return;
	out->qp_attr_mask |= QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	out->max_dest_rd_atomic = id->responder_resources;
}

static void for_rts(const struct ucm_id *id, const struct cm_connection_info *info,
		    struct ib_uverbs_qp_attr *out)
{
	out->qp_attr_mask = QP_ATTR_STATE | QP_ATTR_SQ_PSN;
	out->sq_psn = info->remote_psn;
	if (id->qp_type != UCM_QPT_RC)
		return;
	out->qp_attr_mask |=
		QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_RD_ATOMIC;
	out->timeout = id->timeout_set ? id->timeout : info->timeout;
	out->retry_cnt = info->retry_count;
	out->rnr_retry = info->rnr_retry_count;
	out->max_rd_atomic = id->initiator_depth;
}

/* For a connection, in its states only. */
static int for_connection(const struct ucm_id *id, unsigned int qp_state,
			  struct ib_uverbs_qp_attr *out)
{
	struct cm_connection_info info;

	cm_connection_info(id->connection, &info);
	if (qp_state == UCM_QPS_INIT &&
	    (knows_peer(info.state_number) || info.state_number == CONNECTION_REQ_SENT ||
	     info.state_number == CONNECTION_MRA_REQ_RCVD)) {
		for_init(id, out);
		return 0;
	}
	if (!knows_peer(info.state_number))
		return -EINVAL;
	if (qp_state == UCM_QPS_RTR)
		for_rtr(id, &info, out);
	else if (qp_state == UCM_QPS_RTS)
		for_rts(id, &info, out);
	else
		return -EINVAL;
	return 0;
}

int ucm_do_init_qp_attr(struct ucm_call *call, const struct rdma_ucm_init_qp_attr *in,
			struct ib_uverbs_qp_attr *out)
{
	struct ucm_id *id;
	int ret;

	if (in->qp_state > UCM_QPS_ERR)
		return -EINVAL;
	ret = ucm_id_find_on_device(call->channel, in->id, &id);
	if (ret)
		return ret;
	out->qp_state = in->qp_state;
	if (id->connection && id->qp_type != UCM_QPT_UD)
		return for_connection(id, in->qp_state, out);
	ucm_set_qkey(id, 0); /* for UD; others never show it */
	for_init(id, out);
	if (in->qp_state == UCM_QPS_RTR)
		out->rq_psn = id->psn;
	return 0;
}
