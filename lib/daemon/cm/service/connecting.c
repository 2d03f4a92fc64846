/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting, accepting, rejecting and disconnecting: turns commands into protocol calls, and
 * protocol events into events. Queue pairs are up to the program. Runs in the CM thread.
 */
#include <errno.h>
#include <sys/param.h>
#include "addresses.h"
#include "commands.h"
#include "connecting.h"
#include "datagrams.h"
#include "events.h"
#include "ids.h"
#include "requests.h"

enum { REJECT_VENDOR_OPTION = 35, RETRIES_MOST = 7 };

static uint64_t ucm_now_of(const struct ucm_id *id)
{
	return id->channel->service->now;
}

/*
 * The end-to-end flow control bit in REQ and REP says whether the sender's receive queue grants
 * credits, which depends on the queue pair, not on the program (conn_param.flow_control). Programs
 * are given the peer's bit.
 */
static bool ucm_gives_credits(const struct ucm_id *id)
{
	const struct cm_device *d = ucm_device(id);

	return id->qp_type == UCM_QPT_RC && d->gives_credits(d->ctx, id->channel->user, id->qpn);
}

static void pass_flow_control(const struct ucm_id *id, bool peer_gives_credits)
{
	const struct cm_device *d = ucm_device(id);

	if (id->qp_type == UCM_QPT_RC && !peer_gives_credits)
		d->peer_gives_no_credits(d->ctx, id->channel->user, id->qpn);
}

/* Fills in our side's parameters; `ece` is up to the program and the queue pair's device. */
static void fill_end(struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		     const struct rdma_ucm_ece *ece, struct cm_end *end)
{
	id->qpn = p->qp_num & 0xffffff;
	id->srq = p->srq;
	*end = (struct cm_end){
		.qpn = id->qpn,
		.psn = id->psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.retry_count = MIN(p->retry_count, RETRIES_MOST),
		.rnr_retry_count = MIN(p->rnr_retry_count, RETRIES_MOST),
		.flow_control = ucm_gives_credits(id),
		.srq = p->srq,
		.vendor_id = ece->vendor_id,
		.options = ece->attr_mod,
		.private_data = p->private_data,
		.private_bytes = p->private_data_len,
	};
}

static int send_req(struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		    const struct rdma_ucm_ece *ece)
{
	struct cm_service *s = id->channel->service;
	uint8_t data[CM_PRIVATE_MAX];
	int bytes = ucm_request_data(id, p, data, CM_REQ);
	struct cm_end end;

	if (bytes < 0)
		return bytes;
	if (id->qp_type != UCM_QPT_RC && id->qp_type != UCM_QPT_UC)
		return -EINVAL;
	fill_end(id, p, ece, &end);
	end.private_data = data;
	end.private_bytes = (uint8_t)bytes;
	id->responder_resources = p->responder_resources;
	id->initiator_depth = p->initiator_depth;
	id->connection =
		cm_send_req(s->cm, s->now, id, &id->path, ucm_service_id(id, &id->destination),
			    id->qp_type == UCM_QPT_UC ? CM_UC : CM_RC, &end);
	return id->connection ? 0 : -errno;
}

int ucm_do_connect(struct ucm_call *call, const struct rdma_ucm_connect *in, struct ucm_none *out)
{
	struct ucm_id *id;
	int ret;

	(void)out;
	if (!in->conn_param.valid)
		return -EINVAL;
	ret = ucm_id_find_on_device(call->channel, in->id, &id);
	if (ret)
		return ret;
	if (id->state != UCM_ROUTE_RESOLVED)
		return -EINVAL;
	if (id->qp_type == UCM_QPT_UD)
		ret = ucm_sidr_connect(id, &in->conn_param);
	else
		ret = send_req(id, &in->conn_param, &in->ece);
	if (!ret)
		ucm_id_step(id, UCM_CONNECT);
	return ret;
}

/* The passive side sends its parameters; the active side confirms that the program has set up its
 * QP. */
static int send_rep(struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		    const struct rdma_ucm_ece *ece)
{
	struct cm_end end;
	int ret;

	fill_end(id, p, ece, &end);
	ret = cm_send_rep(id->connection, ucm_now_of(id), &end);
	if (ret)
		return ret;
	pass_flow_control(id, id->peer_gives_credits);
	id->responder_resources = p->responder_resources;
	id->initiator_depth = p->initiator_depth;
	return 0;
}

static int accept_it(struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		     const struct rdma_ucm_ece *ece)
{
	if (id->qp_type == UCM_QPT_UD)
		return ucm_sidr_accept(id, p);
	return p ? send_rep(id, p, ece) : cm_send_rtu(id->connection, ucm_now_of(id), NULL, 0);
}

static int reject_it(struct ucm_id *id, uint8_t reason, const void *data, uint8_t bytes)
{
	if (id->qp_type == UCM_QPT_UD)
		return ucm_sidr_reject(id, data, bytes);
	return cm_reject(id->connection, ucm_now_of(id), reason, NULL, 0, data, bytes);
}

int ucm_do_accept(struct ucm_call *call, const struct rdma_ucm_accept *in, struct ucm_none *out)
{
	const struct rdma_ucm_conn_param *p = in->conn_param.valid ? &in->conn_param : NULL;
	struct ucm_id *id;
	int ret = ucm_id_find_on_device(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	if (id->state != UCM_CONNECT)
		return -EINVAL;
	ret = accept_it(id, p, &in->ece);
	if (ret)
		reject_it(id, CM_REJ_CONSUMER, NULL, 0);
	else if (p)
		id->uid = in->uid;
	return ret;
}

int ucm_do_reject(struct ucm_call *call, const struct rdma_ucm_reject *in, struct ucm_none *out)
{
	uint8_t reason = in->reason ? in->reason : CM_REJ_CONSUMER;
	struct ucm_id *id;
	int ret;

	(void)out;
	if (reason != CM_REJ_CONSUMER && reason != REJECT_VENDOR_OPTION)
		return -EINVAL;
	ret = ucm_id_find_on_device(call->channel, in->id, &id);
	if (ret)
		return ret;
	if (!id->connection)
		return -EINVAL;
	return reject_it(id, reason, in->private_data, in->private_data_len);
}

/* Disconnects, or answers the peer's DREQ. If neither is possible, it is already over, or UD. */
int ucm_do_disconnect(struct ucm_call *call, const struct rdma_ucm_disconnect *in,
		      struct ucm_none *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find_on_device(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	if (!id->connection)
		return -EINVAL;
	if (!cm_send_dreq(id->connection, ucm_now_of(id), NULL, 0))
		id->parting = true;
	else
		cm_send_drep(id->connection, ucm_now_of(id), NULL, 0);
	return 0;
}

int ucm_do_notify(struct ucm_call *call, const struct rdma_ucm_notify *in, struct ucm_none *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	if (!id->connection || in->event != UCM_QP_COMM_EST)
		return -EINVAL;
	return cm_established(id->connection, ucm_now_of(id));
}

/* ---- events of the protocol ---- */

/* An event with a message's private data; NULL if no one would receive it. */
static struct ucm_event *event_with(struct ucm_id *id, uint32_t type, int status,
				    const struct cm_message *m)
{
	struct rdma_ucm_conn_param *p;
	struct ucm_event *e = id->uid ? ucm_event_new(id, type, status) : NULL;

	if (!e)
		return NULL;
	p = &e->body.param.conn;
	ucm_event_private(p->private_data, &p->private_data_len, m->private_data, m->private_bytes);
	return e;
}

static void on_rep(struct ucm_id *id, const struct cm_message *m)
{
	const struct cm_rep *r = &m->rep;
	struct ucm_event *e = event_with(id, UCM_EVENT_CONNECT_RESPONSE, 0, m);
	struct rdma_ucm_conn_param *p;

	id->responder_resources = r->initiator_depth;
	id->initiator_depth = r->responder_resources;
	pass_flow_control(id, r->flow_control);
	cm_send_mra(id->connection, ucm_now_of(id), UCM_MRA_TIMEOUT | CM_MRA_IF_REPEATED);
	if (!e)
		return;
	p = &e->body.param.conn;
	p->responder_resources = r->initiator_depth;
	p->initiator_depth = r->responder_resources;
	p->flow_control = r->flow_control;
	p->rnr_retry_count = r->rnr_retry_count;
	p->srq = r->srq;
	p->qp_num = r->qpn;
	e->body.ece.vendor_id =
		(uint32_t)r->vendor_id[0] << 16 | (uint32_t)r->vendor_id[1] << 8 | r->vendor_id[2];
	e->body.ece.attr_mod = m->modifier;
	ucm_event_post(e);
}

static void on_rej(struct ucm_id *id, const struct cm_message *m)
{
	struct ucm_event *e = event_with(id, UCM_EVENT_REJECTED, m->rej.reason, m);

	if (e)
		ucm_event_post(e);
}

static void on_disconnect(struct ucm_id *id, int status)
{
	ucm_id_step(id, UCM_DISCONNECT);
	ucm_event_report(id, UCM_EVENT_DISCONNECTED, status);
}

void ucm_connection_event(void *ctx, void *owner, struct cm_connection *c, const struct cm_event *e)
{
	struct ucm_id *id = owner;
	bool last = e->type == CM_EVENT_TIMEWAIT_EXIT;

	(void)ctx;
	ASSERT(id->connection == c);
	/* As in a kernel: late events are dropped. */
	if (id->state != (last ? UCM_DISCONNECT : UCM_CONNECT))
		return;
	switch (e->type) {
	case CM_EVENT_REP:
		on_rep(id, e->message);
		return;
	case CM_EVENT_RTU:
		ucm_event_report(id, UCM_EVENT_ESTABLISHED, 0);
		return;
	case CM_EVENT_REJ:
		on_rej(id, e->message);
		return;
	case CM_EVENT_REQ_TIMEOUT:
	case CM_EVENT_REP_TIMEOUT:
		ucm_event_report(id, UCM_EVENT_UNREACHABLE, -ETIMEDOUT);
		return;
	case CM_EVENT_DREQ:
		/* Both sides disconnect at once: the program will not call again. */
		if (id->parting)
			cm_send_drep(c, ucm_now_of(id), NULL, 0);
		on_disconnect(id, 0);
		return;
	case CM_EVENT_DREP:
		on_disconnect(id, 0);
		return;
	case CM_EVENT_DREQ_TIMEOUT:
		on_disconnect(id, -ETIMEDOUT);
		return;
	case CM_EVENT_TIMEWAIT_EXIT:
		ucm_event_report(id, UCM_EVENT_TIMEWAIT_EXIT, 0);
		return;
	case CM_EVENT_SIDR_REP:
	case CM_EVENT_SIDR_TIMEOUT:
		ucm_sidr_event(id, e);
		return;
	}
}
