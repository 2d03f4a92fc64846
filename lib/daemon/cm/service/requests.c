/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers' requests: which listener a REQ or SIDR_REQ is for, and the identifier and event created
 * for it. Requests beyond a listener's backlog are dropped, and the peer repeats them. Runs in the
 * CM thread.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/param.h>
#include "address.h"
#include "addresses.h"
#include "commands.h"
#include "events.h"
#include "ids.h"
#include "lifetime.h"
#include "ports.h"
#include "requests.h"

static uint8_t request_qp_type_of(const struct cm_message *m)
{
	if (m->type == CM_SIDR_REQ)
		return UCM_QPT_UD;
	return m->req.service_type == CM_UC ? UCM_QPT_UC : UCM_QPT_RC;
}

static uint64_t service_id_of(const struct cm_message *m)
{
	return m->type == CM_SIDR_REQ ? m->sidr_req.service_id : m->req.service_id;
}

static void request_take_addresses(struct ucm_id *id, const struct ucm_id *listener,
				   const struct cm_path *path, const struct cm_message *m,
				   const struct cm_ip_addressing *ip)
{
	uint64_t sid = service_id_of(m);

	if (listener->source.family == UCM_AF_IB) {
		id->source.ib = id->destination.ib = (struct ucm_sockaddr_ib){
			.family = UCM_AF_IB,
			.pkey = htons(UCM_PKEY),
			.flowinfo = htonl(path->flow_label),
			.sid_mask = UINT64_MAX,
		};
		id->source.ib.sid = htobe64(sid);
		memcpy(id->source.ib.gid, path->sgid, 16);
		memcpy(id->destination.ib.gid, path->dgid, 16);
		return;
	}
	ucm_ip_address(&id->source, ip->version, ip->destination, (uint16_t)sid);
	ucm_ip_address(&id->destination, ip->version, ip->source, ip->source_port);
}

static void take_path(struct ucm_id *id, const struct cm_path *path, const struct cm_message *m)
{
	struct ucm_choice at = {.device = path->device};

	memcpy(at.sgid, path->sgid, sizeof(at.sgid));
	memcpy(at.dgid, path->dgid, sizeof(at.dgid));
	ucm_id_choose(id, &at);
	id->path = *path;
	id->path_known = m->type == CM_REQ;
	if (m->type != CM_REQ)
		return;
	id->responder_resources = m->req.initiator_depth;
	id->initiator_depth = m->req.responder_resources;
	id->peer_gives_credits = m->req.flow_control;
}

/* The contents of the event. */
static void fill_event(struct ucm_event *e, const struct cm_message *m, unsigned int head)
{
	const uint8_t *data = m->private_data + head;
	unsigned int bytes = m->private_bytes - head;
	struct rdma_ucm_conn_param *c = &e->body.param.conn;
	struct rdma_ucm_ud_param *u = &e->body.param.ud;

	if (m->type == CM_SIDR_REQ) {
		ucm_event_private(u->private_data, &u->private_data_len, data, bytes);
		return;
	}
	ucm_event_private(c->private_data, &c->private_data_len, data, bytes);
	c->responder_resources = m->req.initiator_depth;
	c->initiator_depth = m->req.responder_resources;
	c->flow_control = m->req.flow_control;
	c->retry_count = m->req.retry_count;
	c->rnr_retry_count = m->req.rnr_retry_count;
	c->srq = m->req.srq;
	c->qp_num = m->req.qpn;
	e->body.ece.vendor_id = m->req.vendor_id;
	e->body.ece.attr_mod = m->modifier;
}

/* 0, or the reason, by kind of message, why this listener cannot serve it. */
static uint16_t misfit(const struct ucm_id *listener, unsigned int device,
		       const struct cm_message *m, uint16_t preset)
{
	const struct cm_device *d = &listener->channel->service->devices[device];
	struct control_port_reply port;

	if (listener->qp_type != request_qp_type_of(m))
		return m->type == CM_REQ ? CM_REJ_INVALID_TRANSPORT_SERVICE_TYPE : preset;
	d->port(d->ctx, &port);
	return m->type == CM_REQ && m->req.mtu > port.active_mtu ? CM_REJ_INVALID_MTU : 0;
}

/* Creates the identifier and its event. NULL: no room, nothing has changed. */
static struct ucm_id *request_new(struct ucm_id *listener, struct cm_connection *c,
				  const struct cm_message *m)
{
	struct ucm_id *id;
	struct ucm_event *e;

	if (!listener->backlog || ucm_events_full(listener->channel))
		return NULL;
	id = ucm_id_new(listener->channel, listener->space, request_qp_type_of(m));
	if (!id)
		return NULL;
	e = ucm_event_new(listener, UCM_EVENT_CONNECT_REQUEST, 0);
	if (!e || !cm_share(c, &listener->channel->shares)) {
		free(e);
		ucm_id_destroy(id);
		return NULL;
	}
	fill_event(e, m, listener->source.family == UCM_AF_IB ? 0 : CM_IP_BYTES);
	e->request = id;
	id->announced_by = e;
	return id;
}

void *ucm_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
		  const struct cm_message *m, uint16_t *reason)
{
	struct cm_service *s = ctx;
	struct cm_ip_addressing ip;
	bool has_ip = !cm_ip_parse(m->private_data, &ip);
	uint16_t refused;
	struct ucm_id *id, *listener = ucm_port_listener(s, service_id_of(m), path->device,
							 has_ip ? &ip : NULL);

	if (!listener)
		return NULL;
	refused = misfit(listener, path->device, m, *reason);
	if (refused) {
		*reason = refused;
		return NULL;
	}
	id = request_new(listener, c, m);
	if (!id) {
		*reason = 0;
		s->counters.request_dropped++;
		return NULL;
	}
	request_take_addresses(id, listener, path, m, &ip);
	take_path(id, path, m);
	id->connection = c;
	ucm_id_step(id, UCM_CONNECT);
	listener->backlog--;
	ucm_event_post(id->announced_by);
	cm_send_mra(c, s->now, UCM_MRA_TIMEOUT | CM_MRA_IF_REPEATED); /* to a REQ only */
	return id;
}

int ucm_do_listen(struct ucm_call *call, const struct rdma_ucm_listen *in, struct ucm_none *out)
{
	static const union ucm_address any = {.family = AF_INET};
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	(void)out;
	if (!ret && id->state == UCM_IDLE)
		ret = ucm_bind(id, &any);
	if (ret)
		return ret;
	if (id->state != UCM_BOUND)
		return -EINVAL;
	ret = ucm_port_listen(id);
	if (ret)
		return ret;
	id->backlog = in->backlog ? MIN(in->backlog, UCM_BACKLOG) : UCM_BACKLOG;
	ucm_id_step(id, UCM_LISTENING);
	return 0;
}

int ucm_request_data(const struct ucm_id *id, const struct rdma_ucm_conn_param *p,
		     uint8_t data[CM_PRIVATE_MAX], uint16_t type)
{
	struct cm_ip_addressing ip = {.version = id->source.family == AF_INET ? 4 : 6,
				      .source_port = ucm_address_port(&id->source)};
	unsigned int head = id->source.family == UCM_AF_IB ? 0 : CM_IP_BYTES;

	if (head + p->private_data_len > cm_private_bytes(type))
		return -EINVAL;
	memcpy(data + head, p->private_data, p->private_data_len);
	if (!head)
		return p->private_data_len;
	ucm_address_gid(&id->source, ip.source);
	ucm_address_gid(&id->destination, ip.destination);
	cm_ip_build(&ip, data);
	return (int)head + p->private_data_len;
}
