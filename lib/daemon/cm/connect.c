/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three-way handshake on both sides (IBTA volume 1, 12.9.5 and 12.9.6): REQ, REP, RTU, and the
 * MRA that asks for more time; repetitions of each; stale connections. CM thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/param.h>
#include "base/assert.h"
#include "connect.h"
#include "disconnect.h"
#include "reject.h"
#include "tables.h"

enum {
	QPN_LEAST = 2, /* 0 and 1 are not for connections */
	LID_NONE = 0xffff,
	PKEY_DEFAULT = 0xffff,
};

/* Time until a QP retransmits, as an exponent rounded to nearest: the peer's ACK delay plus the
 * round trip on the wire. */
static uint8_t ack_timeout(unsigned int delay, unsigned int life)
{
	uint64_t sum = ((uint64_t)1 << delay) + ((uint64_t)2 << life);
	unsigned int exponent = 63 - (unsigned int)__builtin_clzll(sum);

	if (sum * 2 >= (uint64_t)3 << exponent)
		exponent++;
	return (uint8_t)MIN(exponent, 31u);
}

/* --- active side --- */

static void fill_req(const struct cm_connection *c, enum cm_service_type type,
		     const struct cm_end *end, struct cm_req *r)
{
	*r = (struct cm_req){
		.service_id = c->service_id,
		.guid = c->cm->ops->guid(c->cm->ctx, c->path.device),
		.qkey = end->qkey,
		.qpn = end->qpn & 0xffffff,
		.psn = end->psn & 0xffffff,
		.responder_resources = end->responder_resources,
		.initiator_depth = end->initiator_depth,
		.remote_timeout = c->response_timeout,
		.local_timeout = c->response_timeout,
		.service_type = (uint8_t)type,
		.flow_control = end->flow_control,
		.srq = end->srq,
		.retry_count = end->retry_count & 7,
		.rnr_retry_count = end->rnr_retry_count & 7,
		.pkey = PKEY_DEFAULT,
		.mtu = c->path.mtu,
		.max_cm_retries = c->max_retries,
		.vendor_id = end->vendor_id & 0xffffff,
		.path =
			{
				.local_lid = LID_NONE,
				.remote_lid = LID_NONE,
				.flow_label = c->path.flow_label & 0xfffff,
				.rate = c->path.rate & 0x3f,
				.traffic_class = c->path.traffic_class,
				.hop_limit = c->path.hop_limit,
				.sl = c->path.sl & 0xf,
				.subnet_local = c->path.hop_limit <= 1,
				.ack_timeout = c->path.ack_timeout & 0x1f,
			},
	};
	memcpy(r->path.local_gid, c->path.sgid, sizeof(r->path.local_gid));
	memcpy(r->path.remote_gid, c->path.dgid, sizeof(r->path.remote_gid));
}

struct cm_connection *cm_send_req(struct cm *cm, uint64_t now, void *owner,
				  const struct cm_path *path, uint64_t service_id,
				  enum cm_service_type type, const struct cm_end *end)
{
	struct cm_connection *c;
	struct cm_message m;

	if (end->private_bytes > cm_private_bytes(CM_REQ)) {
		errno = EINVAL;
		return NULL;
	}
	c = cm_connection_new(cm, path, owner);
	if (!c)
		return NULL;
	c->service_id = service_id;
	c->local_qpn = end->qpn & 0xffffff;
	c->retry_count = end->retry_count & 7;
	c->rnr_retry_count = end->rnr_retry_count & 7;
	c->transaction = (uint64_t)cm->ops->random(cm->ctx) << 32 | c->local_id;
	cm_message_begin(c, &m, CM_REQ);
	m.modifier = end->options;
	fill_req(c, type, end, &m.req);
	cm_message_private(&m, end->private_data, end->private_bytes);
	cm_step(c, CM_REQ_SENT);
	cm_send_kept(c, &m);
	cm_await_answer(c, now);
	return c;
}

/* Copies an acceptable REP to the connection. */
static void take_rep(struct cm_connection *c, const struct cm_message *m)
{
	const struct cm_rep *r = &m->rep;

	c->remote_id = m->local_id;
	c->remote_guid = r->guid;
	c->remote_qpn = r->qpn;
	c->remote_psn = r->psn;
	c->remote_qkey = r->qkey;
	c->responder_resources = r->responder_resources;
	c->initiator_depth = r->initiator_depth;
	c->rnr_retry_count = r->rnr_retry_count;
	c->peer_srq = r->srq;
	c->timeout = ack_timeout(r->target_ack_delay, c->timeout ? c->timeout - 1u : 0);
	cm_qpn_add(c);
	cm_step(c, CM_REP_RCVD);
	cm_notify(c, CM_EVENT_REP, m);
}

static void first_rep(struct cm_connection *c, uint64_t now, const struct cm_path *path,
		      const struct cm_message *m)
{
	struct cm *cm = c->cm;
	struct cm_connection *old = cm_qpn_find(cm, m->rep.qpn, m->rep.guid, path);

	if (m->rep.qpn < QPN_LEAST || !m->local_id) {
		cm->counters.mad_malformed++;
	} else if (old) {
		cm->counters.stale++;
		cm_refuse(cm, path, m, CM_REJ_STALE_CONNECTION, NULL, 0);
		cm_disconnect_stale(old, now);
	} else {
		take_rep(c, m);
	}
}

/* A repeated REP: the peer has not received our answer to the first. */
static void repeated_rep(struct cm_connection *c)
{
	c->cm->counters.duplicate++;
	c->mra_sent |= c->state == CM_MRA_REP_SENT;
	if (c->state == CM_MRA_REP_SENT || c->state == CM_ESTABLISHED)
		cm_send_again(c);
	else
		cm_reject_again(c, CM_ABOUT_REP);
}

void cm_on_rep(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = cm_find_pair(cm, path, m);

	if (!c || c->passive) {
		cm->counters.mad_stray++;
		cm_refuse(cm, path, m, CM_REJ_INVALID_COMM_ID, NULL, 0);
	} else if (c->state == CM_REQ_SENT || c->state == CM_MRA_REQ_RCVD) {
		first_rep(c, now, path, m);
	} else {
		repeated_rep(c);
	}
}

int cm_send_rtu(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes)
{
	struct cm_message m;

	if (c->state != CM_REP_RCVD && c->state != CM_MRA_REP_SENT)
		return -EINVAL;
	cm_message_begin(c, &m, CM_RTU);
	if (cm_message_private(&m, private_data, bytes))
		return -EINVAL;
	cm_step(c, CM_ESTABLISHED);
	cm_send_kept(c, &m);
	return 0;
}

/* --- passive side --- */

/* 0, or the reason to reject. */
static enum cm_reject_reason req_check(const struct cm_path *path, const struct cm_req *r)
{
	if (r->service_type != CM_RC && r->service_type != CM_UC)
		return CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE;
	if (memcmp(r->path.local_gid, path->dgid, sizeof(path->dgid)) != 0 ||
	    memcmp(r->path.remote_gid, path->sgid, sizeof(path->sgid)) != 0)
		return CM_REJ_INVALID_GID;
	return 0;
}

/* Copies the REQ's parameters to the connection. */
static void take_req(struct cm_connection *c, const struct cm_message *m)
{
	const struct cm_req *r = &m->req;

	c->passive = true;
	c->remote_id = m->local_id;
	c->transaction = m->transaction;
	c->remote_guid = r->guid;
	c->service_id = r->service_id;
	c->remote_qpn = r->qpn;
	c->remote_psn = r->psn;
	c->remote_qkey = r->qkey;
	c->responder_resources = r->responder_resources;
	c->initiator_depth = r->initiator_depth;
	c->retry_count = r->retry_count;
	c->rnr_retry_count = r->rnr_retry_count;
	c->peer_srq = r->srq;
	c->max_retries = r->max_cm_retries;
	c->peer_waits = cm_clamp(r->remote_timeout, CM_RESPONSE_LEAST, CM_RESPONSE_MOST);
	c->response_timeout = cm_clamp(r->local_timeout, CM_RESPONSE_LEAST, CM_RESPONSE_MOST);
	c->timeout = r->path.ack_timeout;
	c->path.mtu = r->mtu;
	c->path.rate = r->path.rate;
	c->path.ack_timeout = r->path.ack_timeout;
	c->path.flow_label = r->path.flow_label;
	c->path.traffic_class = r->path.traffic_class;
	c->path.sl = r->path.sl;
	if (!c->path.hop_limit)
		c->path.hop_limit = CM_HOP_LIMIT;
}

static void first_req(struct cm *cm, uint64_t now, const struct cm_path *path,
		      const struct cm_message *m)
{
	uint16_t reason = CM_REJ_INVALID_SERVICE_ID;
	struct cm_connection *c;

	if (!cm_room_for_stranger(cm, path))
		return;
	c = cm_connection_new(cm, path, NULL);
	if (!c) {
		cm->counters.dropped_full++;
		return;
	}
	take_req(c, m);
	cm_remote_add(c);
	cm_qpn_add(c);
	cm_step(c, CM_REQ_RCVD);
	if (cm_ask_owner(c, m, &reason))
		return;
	if (reason)
		cm_refuse(cm, path, m, reason, NULL, 0);
	else
		cm->counters.dropped_full++;
	cm_forget(c);
}

/* A REQ with the ID of a connection: the peer missed our answer, or has forgotten the
 * connection. */
static void repeated_req(struct cm_connection *c, const struct cm_path *path,
			 const struct cm_message *m)
{
	bool other = c->remote_qpn != m->req.qpn || c->remote_psn != m->req.psn;

	c->cm->counters.duplicate++;
	c->mra_sent |= c->state == CM_MRA_REQ_SENT;
	if (c->state == CM_TIMEWAIT && (other || !c->kept))
		cm_refuse(c->cm, path, m, CM_REJ_STALE_CONNECTION, NULL, 0);
	else if (other)
		cm_refuse(c->cm, path, m, CM_REJ_DUPLICATE_LOCAL_COMM_ID, NULL, 0);
	else if (c->state == CM_TIMEWAIT)
		cm_reject_again(c, CM_ABOUT_REQ);
	else if (c->state == CM_MRA_REQ_SENT || c->state == CM_REP_SENT)
		cm_send_again(c);
}

void cm_on_req(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	enum cm_reject_reason reason = req_check(path, &m->req);
	struct cm_connection *same, *old;

	if (m->req.qpn < QPN_LEAST || !m->local_id) {
		cm->counters.mad_malformed++;
		return;
	}
	if (reason) {
		cm_refuse(cm, path, m, reason, path->sgid,
			  reason == CM_REJ_INVALID_GID ? sizeof(path->sgid) : 0);
		return;
	}
	same = cm_remote_find(cm, m->local_id, m->req.guid, path, false);
	if (same) {
		repeated_req(same, path, m);
		return;
	}
	old = cm_qpn_find(cm, m->req.qpn, m->req.guid, path);
	if (old) {
		cm->counters.stale++;
		cm_refuse(cm, path, m, CM_REJ_STALE_CONNECTION, NULL, 0);
		cm_disconnect_stale(old, now);
		return;
	}
	first_req(cm, now, path, m);
}

int cm_send_rep(struct cm_connection *c, uint64_t now, const struct cm_end *end)
{
	struct cm_message m;

	if (c->state != CM_REQ_RCVD && c->state != CM_MRA_REQ_SENT)
		return -EINVAL;
	cm_message_begin(c, &m, CM_REP);
	m.modifier = end->options;
	m.rep = (struct cm_rep){
		.qkey = end->qkey,
		.qpn = end->qpn & 0xffffff,
		.psn = end->psn & 0xffffff,
		.responder_resources = end->responder_resources,
		.initiator_depth = end->initiator_depth,
		.target_ack_delay = CM_TARGET_ACK_DELAY,
		.flow_control = end->flow_control,
		.srq = end->srq,
		.rnr_retry_count = end->rnr_retry_count & 7,
		.vendor_id = {(uint8_t)(end->vendor_id >> 16), (uint8_t)(end->vendor_id >> 8),
			      (uint8_t)end->vendor_id},
		.guid = c->cm->ops->guid(c->cm->ctx, c->path.device),
	};
	if (cm_message_private(&m, end->private_data, end->private_bytes))
		return -EINVAL;
	c->local_qpn = m.rep.qpn;
	cm_step(c, CM_REP_SENT);
	cm_send_kept(c, &m);
	cm_await_answer(c, now);
	return 0;
}

int cm_established(struct cm_connection *c, uint64_t now)
{
	if (c->state != CM_REP_SENT && c->state != CM_MRA_REP_RCVD)
		return -EINVAL;
	cm_step(c, CM_ESTABLISHED);
	cm_notify(c, CM_EVENT_RTU, NULL);
	return 0;
}

void cm_on_rtu(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = cm_find_pair(cm, path, m);

	if (!c || !c->passive) {
		cm->counters.mad_stray++;
	} else if (c->state == CM_REP_SENT || c->state == CM_MRA_REP_RCVD) {
		cm_step(c, CM_ESTABLISHED);
		cm_notify(c, CM_EVENT_RTU, m);
	} else {
		cm->counters.duplicate++;
		cm_reject_again(c, CM_ABOUT_OTHER);
	}
}

/* --- more time --- */

int cm_send_mra(struct cm_connection *c, uint64_t now, uint8_t service_timeout)
{
	struct cm_message m;
	bool asked;

	asked = c->state == CM_REQ_RCVD;
	if (!asked && c->state != CM_REP_RCVD)
		return -EINVAL;
	cm_message_begin(c, &m, CM_MRA);
	m.mra.about = asked ? CM_ABOUT_REQ : CM_ABOUT_REP;
	m.mra.service_timeout = service_timeout & 0x1f;
	c->service_timeout = cm_clamp(m.mra.service_timeout, 0, CM_SERVICE_MOST);
	c->mra_sent = !(service_timeout & CM_MRA_IF_REPEATED);
	cm_step(c, asked ? CM_MRA_REQ_SENT : CM_MRA_REP_SENT);
	cm_mad_build(&m, c->mad);
	if (c->mra_sent)
		cm_send_again(c);
	return 0;
}

/* An MRA extends the timeout once per message that it answers. */
void cm_on_mra(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = cm_find_pair(cm, path, m);
	bool first, again;

	if (!c) {
		cm->counters.mad_stray++;
		return;
	}
	first = c->state == (m->mra.about == CM_ABOUT_REQ ? CM_REQ_SENT : CM_REP_SENT);
	again = c->state == (m->mra.about == CM_ABOUT_REQ ? CM_MRA_REQ_RCVD : CM_MRA_REP_RCVD);
	if (m->mra.about == CM_ABOUT_OTHER || (!first && !again) || c->mra_fresh) {
		cm->counters.duplicate++;
		return;
	}
	if (first)
		cm_step(c, c->state == CM_REQ_SENT ? CM_MRA_REQ_RCVD : CM_MRA_REP_RCVD);
	c->mra_fresh = true;
	cm_timer_set(c, now + cm_time_of(c->response_timeout) +
				cm_time_of(cm_clamp(m->mra.service_timeout, 0, CM_SERVICE_MOST)));
}
