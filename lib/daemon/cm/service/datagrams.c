/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD identifiers: connecting means finding out which QP serves and how to reach it (service ID
 * resolution). Runs in the CM thread.
 */
#include <errno.h>
#include "addresses.h"
#include "datagrams.h"
#include "events.h"
#include "ids.h"
#include "requests.h"
#include "route.h"

enum { SIDR_SERVES = 0, SIDR_REJECTED = 2 };

int ucm_sidr_connect(struct ucm_id *id, const struct rdma_ucm_conn_param *p)
{
	struct cm_service *s = id->channel->service;
	uint8_t data[CM_PRIVATE_MAX];
	int bytes = ucm_request_data(id, p, data, CM_SIDR_REQ);

	if (bytes < 0)
		return bytes;
	id->qpn = p->qp_num & 0xffffff;
	id->connection =
		cm_send_sidr_req(s->cm, s->now, id, &id->path, ucm_service_id(id, &id->destination),
				 data, (uint8_t)bytes);
	return id->connection ? 0 : -errno;
}

int ucm_sidr_accept(struct ucm_id *id, const struct rdma_ucm_conn_param *p)
{
	static const struct rdma_ucm_conn_param none;
	const struct rdma_ucm_conn_param *given = p ? p : &none;
	int ret = ucm_set_qkey(id, id->source.family == UCM_AF_IB ? given->qkey : 0);

	if (ret)
		return ret;
	if (p)
		id->qpn = p->qp_num & 0xffffff;
	return cm_send_sidr_rep(id->connection, id->channel->service->now, SIDR_SERVES, id->qpn,
				id->qkey, given->private_data, given->private_data_len);
}

int ucm_sidr_reject(struct ucm_id *id, const void *data, uint8_t bytes)
{
	return cm_send_sidr_rep(id->connection, id->channel->service->now, SIDR_REJECTED, 0, 0,
				data, bytes);
}

static void on_answer(struct ucm_id *id, const struct cm_message *m)
{
	const struct cm_sidr_rep *r = &m->sidr_rep;
	struct rdma_ucm_ud_param *p;
	struct ucm_event *e;

	if (!r->status && ucm_set_qkey(id, r->qkey)) {
		ucm_event_report(id, UCM_EVENT_ADDR_ERROR, -EINVAL);
		return;
	}
	if (!id->uid)
		return;
	e = ucm_event_new(id, r->status ? UCM_EVENT_UNREACHABLE : UCM_EVENT_ESTABLISHED, r->status);
	if (!e)
		return;
	p = &e->body.param.ud;
	ucm_event_private(p->private_data, &p->private_data_len, m->private_data, m->private_bytes);
	if (!r->status) {
		p->qp_num = r->qpn;
		p->qkey = r->qkey;
		ucm_ah_attr(ucm_device(id), &id->path, &p->ah_attr);
	}
	ucm_event_post(e);
}

void ucm_sidr_event(struct ucm_id *id, const struct cm_event *e)
{
	if (e->type == CM_EVENT_SIDR_REP)
		on_answer(id, e->message);
	else
		ucm_event_report(id, UCM_EVENT_UNREACHABLE, -ETIMEDOUT);
}
