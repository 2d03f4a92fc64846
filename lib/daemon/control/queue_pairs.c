/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on queue pairs, and next hops. A request that needs an address
 * answers -EAGAIN until the port knows it; session.c asks again. Control thread.
 */
#include <errno.h>
#include <string.h>
#include "mrs.h"
#include "objects.h"
#include "session.h"
#include "host-abi/ece.h"

/* Converts the client's addresses of a new QP's queues to the daemon's. 0, -EINVAL. */
static int queues(const struct client *client, const struct mr *mr, const struct control_qp *in,
		  struct ceu_qp *make)
{
	if (in->service > CONTROL_SERVICE_GSI || in->sq_signal_all > 1)
		return -EINVAL;
	if (in->sq_bytes == 0 || in->sq_bytes % 64 || in->sq_bytes > CONTROL_SQ_BYTES_MAX)
		return -EINVAL;
	make->service = in->service == CONTROL_SERVICE_GSI ? SERVICE_UD : (uint8_t)in->service;
	make->sq_signal_all = (uint8_t)in->sq_signal_all;
	make->sq_bytes = in->sq_bytes;
	make->sq = queue_memory(client, mr, in->sq_va, in->sq_bytes, 64);
	make->record = (struct qp_record *)queue_memory(client, mr, in->record_va,
							sizeof(struct qp_record), 64);
	if (!make->sq || !make->record)
		return -EINVAL;
	if (in->rq_log_entries == 0xff)
		return 0;
	if (in->srqn || in->rq_log_entries > 31 || 1u << in->rq_log_entries > CONTROL_QP_WR_MAX)
		return -EINVAL;
	make->rq_entries = 1u << in->rq_log_entries;
	make->rq_stride = in->rq_stride;
	make->rq = queue_memory(client, mr, in->rq_va,
				(uint64_t)in->rq_stride << in->rq_log_entries, WQE_UNIT_BYTES);
	return make->rq ? 0 : -EINVAL;
}

/* Gives the new object a number whose index the data path has released, and creates the context. 0;
 * -EAGAIN: the data path has not released the former QP 1 yet. */
static int make_context(struct client *client, struct qp_object *qp, const struct ceu_qp *make)
{
	struct device *d = client->device;
	enum ceu_status status = CEU_BAD_SYS_STATE;

	ceu_tidy(d->config.ceu);
	for (uint32_t tries = 0; tries < d->qps.max; tries++) {
		status = ceu_map_context(d->config.ceu, CEU_CONTEXT_QP, qp->object.number);
		if (status != CEU_OK)
			break;
		status = ceu_exec(d->config.ceu, CEU_SW2HW_QP, qp->object.number, make,
				  sizeof(*make), NULL, 0);
		if (status != CEU_BAD_SYS_STATE)
			break;
		if (qp->object.number == CONTROL_GSI_QPN)
			return -EAGAIN;
		table_remove(&d->qps, &qp->object);
		table_add(&d->qps, &qp->object);
	}
	return status == CEU_BAD_SYS_STATE ? -ENOSPC : ceu_errno(status);
}

/* Adds `by` (1 or -1) to the users of everything that the QP depends on. */
static void qp_hold(struct qp_object *qp, uint32_t by)
{
	qp->pd->object.users += by;
	qp->mr->object.users += by;
	qp->send_cq->object.users += by;
	qp->recv_cq->object.users += by;
	if (qp->srq)
		qp->srq->object.users += by;
}

int run_create_qp(struct call *call)
{
	const struct control_qp *in = call->body;
	struct control_qp_reply *out = call->reply;
	struct client *client = call->client;
	struct pd *pd = object_find(client, OBJECT_PD, in->pd);
	struct mr *mr = object_find(client, OBJECT_MR, in->lkey);
	struct cq_object *send_cq = object_find(client, OBJECT_CQ, in->send_cqn);
	struct cq_object *recv_cq = object_find(client, OBJECT_CQ, in->recv_cqn);
	struct srq_object *srq = in->srqn ? object_find(client, OBJECT_SRQ, in->srqn) : NULL;
	struct ceu_qp make = {.client = (uint16_t)client->index,
			      .user = client_user(client),
			      .pd = in->pd,
			      .srqn = in->srqn};
	bool gsi = in->service == CONTROL_SERVICE_GSI;
	struct qp_object *qp;
	int rc;

	if (gsi && !client->own)
		return -EPERM;
	if (!pd || !mr || !send_cq || !recv_cq || (in->srqn && !srq))
		return -ENOENT;
	rc = queues(client, mr, in, &make);
	if (rc)
		return rc;
	make.cqn_snd = in->send_cqn;
	make.cqn_rcv = in->recv_cqn;
	make.engine = (uint16_t)(srq ? srq->engine : client_engine(client));
	qp = (gsi ? object_make_kept : object_make)(client, OBJECT_QP, sizeof(*qp), &rc);
	if (!qp)
		return rc;
	rc = make_context(client, qp, &make);
	if (rc) {
		object_drop(&qp->object);
		return rc;
	}
	qp->pd = pd;
	qp->mr = mr;
	qp->send_cq = send_cq;
	qp->recv_cq = recv_cq;
	qp->srq = srq;
	qp->engine = make.engine;
	qp_hold(qp, 1);
	client_engine_take(client, qp->engine);
	*out = (struct control_qp_reply){.qpn = qp->object.number, .engine = qp->engine};
	return 0;
}

int run_destroy_qp(struct call *call)
{
	const struct control_number *in = call->body;
	struct qp_object *qp = object_find(call->client, OBJECT_QP, in->number);
	int rc;

	if (!qp)
		return -ENOENT;
	if (qp->groups)
		return -EBUSY;
	rc = client_command(call->client, CEU_HW2SW_QP, in->number, NULL, 0);
	if (rc)
		return rc;
	qp_hold(qp, -1u);
	client_engine_give(call->client, qp->engine);
	object_drop(&qp->object);
	return 0;
}

int run_query_qp(struct call *call)
{
	const struct control_number *in = call->body;

	if (!object_find(call->client, OBJECT_QP, in->number))
		return -ENOENT;
	return client_query(call->client, CEU_QUERY_QP, in->number, call->reply,
			    sizeof(struct control_qp_attr));
}

static void put_ece(struct control_ece *out, uint32_t qpn, uint8_t features)
{
	*out = (struct control_ece){
		.qpn = qpn, .vendor_id = ECE_VENDOR, .options = features ? ECE_MARK | features : 0};
}

int run_query_ece(struct call *call)
{
	const struct control_number *in = call->body;
	uint8_t features;

	if (!object_find(call->client, OBJECT_QP, in->number))
		return -ENOENT;
	features = ceu_qp_offers(call->client->device->config.ceu, in->number);
	put_ece(call->reply, in->number, features);
	return features ? 0 : -EOPNOTSUPP;
}

/* We support no options of another vendor, or of none. */
int run_set_ece(struct call *call)
{
	struct ceu *ceu = call->client->device->config.ceu;
	const struct control_ece *in = call->body;
	bool ours = in->vendor_id == ECE_VENDOR && (in->options & ECE_MARK_MASK) == ECE_MARK;

	if (!object_find(call->client, OBJECT_QP, in->qpn))
		return -ENOENT;
	if (ceu_qp_agree(ceu, in->qpn, ours ? in->options & ECE_REPEAT : 0))
		return -EINVAL;
	put_ece(call->reply, in->qpn, ceu_qp_offers(ceu, in->qpn));
	return 0;
}

/* Our side of a path, and with a destination the next hop. 0, -EINVAL (no such GID), -EAGAIN,
 * -EHOSTUNREACH, -EACCES. */
static int find_path(struct client *client, uint32_t gid_index, const uint8_t *dgid,
		     struct ceu_path *path)
{
	const struct device *d = client->device;
	struct control_port_reply port = {0};
	uint16_t tci = d->config.ops.vlan ? d->config.ops.vlan(d->config.ctx) : 0;

	if (device_gid(d, gid_index, path->src_ip))
		return -EINVAL;
	d->config.ops.port(d->config.ctx, &port);
	memcpy(path->src_mac, port.mac, 6);
	path->has_vlan = tci != 0;
	path->vlan_tci = tci;
	if (!dgid)
		return 0;
	if (d->config.ops.would_ask && d->config.ops.would_ask(d->config.ctx, dgid) &&
	    share_use(&client->shares, SHARE_neighbours, 1))
		return -EAGAIN;
	return d->config.ops.resolve(d->config.ctx, dgid, path->dst_mac);
}

/* Controlled Q_Keys (IBTA volume 1, 3.5.3) are for privileged software. */
static bool may_have_qkey(const struct client *client, uint32_t qkey)
{
	return !(qkey & CONTROL_QKEY_CONTROLLED) || client->own || client->uid == 0;
}

int run_modify_qp(struct call *call)
{
	const struct control_qp_attr *in = call->body;
	struct ceu_modify modify = {.attr = *in};
	struct control_qp_attr now;
	enum qp_state to;
	int rc, op;

	if (!object_find(call->client, OBJECT_QP, in->qpn))
		return -ENOENT;
	rc = client_query(call->client, CEU_QUERY_QP, in->qpn, &now, sizeof(now));
	if (rc)
		return rc;
	if (in->state > QP_ERR)
		return -EINVAL;
	if ((in->mask & QP_ATTR_QKEY) && !may_have_qkey(call->client, in->qkey))
		return -EPERM;
	to = (enum qp_state)(in->mask & QP_ATTR_STATE ? in->state : now.state);
	op = ceu_modify_op((enum qp_state)now.state, to);
	if (op == CEU_BAD_TRANSITION)
		return -EINVAL;
	if (in->mask & QP_ATTR_AV)
		rc = find_path(call->client, in->av.gid_index, in->av.dgid, &modify.path);
	else if (op == CEU_RST2INIT) /* a port without addresses may get some later */
		(void)find_path(call->client, 0, NULL, &modify.path);
	if (!rc && in->mask & QP_ATTR_ALT_PATH)
		rc = find_path(call->client, in->alternate.gid_index, in->alternate.dgid,
			       &modify.alternate);
	if (rc)
		return rc;
	/* Refused for its state means that it does not exist for the service, or that the QP failed
	 * meanwhile. */
	rc = client_command(call->client, (uint16_t)op, in->qpn, &modify, sizeof(modify));
	return rc ? -EINVAL : 0;
}

int run_resolve(struct call *call)
{
	const struct control_resolve *in = call->body;
	struct control_resolve_reply *out = call->reply;
	struct ceu_path path = {0};
	int rc = find_path(call->client, in->gid_index, in->dgid, &path);

	memcpy(out->mac, path.dst_mac, sizeof(out->mac));
	return rc;
}

/* ---- for the connection manager ---- */

/* Over a channel of the connection manager, a user may refer only to his own queue pairs. */
static const struct qp *users_qp(const struct device *d, uint32_t uid, uint32_t qpn)
{
	const struct qp *q = qp_find(&d->config.hca->qps, qpn);
	const struct client *client = q ? d->clients[q->client] : NULL;

	return client && client->uid == uid ? q : NULL;
}

bool control_gives_credits(const struct control *c, unsigned int device, uint32_t uid, uint32_t qpn)
{
	const struct device *d = &c->devices[device];
	const struct qp *q = users_qp(d, uid, qpn);

	return q && qp_may_give_credits(q) && d->config.hca->config.settings.e2e_credits;
}

void control_peer_gives_no_credits(struct control *c, unsigned int device, uint32_t uid,
				   uint32_t qpn)
{
	const struct device *d = &c->devices[device];

	if (users_qp(d, uid, qpn))
		ceu_peer_gives_no_credits(d->config.ceu, qpn);
}
