/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Service ID resolution (IBTA volume 1, 12.11): SIDR_REQ and SIDR_REP create no connection, they
 * find the serving QP and its Q_Key. CM thread.
 */
#include <errno.h>
#include <string.h>
#include "sidr.h"
#include "tables.h"

enum { PKEY_DEFAULT = 0xffff };

struct cm_connection *cm_send_sidr_req(struct cm *cm, uint64_t now, void *owner,
				       const struct cm_path *path, uint64_t service_id,
				       const void *private_data, uint8_t bytes)
{
	struct cm_message m = {.type = CM_SIDR_REQ};
	struct cm_connection *c;

	if (cm_message_private(&m, private_data, bytes)) {
		errno = EINVAL;
		return NULL;
	}
	c = cm_connection_new(cm, path, owner);
	if (!c)
		return NULL;
	c->sidr = true;
	c->service_id = service_id;
	c->transaction = (uint64_t)cm->ops->random(cm->ctx) << 32 | c->local_id;
	m.transaction = c->transaction;
	m.sidr_req = (struct cm_sidr_req){
		.request_id = c->local_id, .pkey = PKEY_DEFAULT, .service_id = service_id};
	cm_step(c, CM_SIDR_REQ_SENT);
	cm_send_kept(c, &m);
	cm_await_answer(c, now);
	return c;
}

void cm_on_sidr_rep(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_message *m)
{
	struct cm_connection *c = cm_place_find(&cm->places, m->sidr_rep.request_id);

	if (!c || c->state != CM_SIDR_REQ_SENT || c->path.device != path->device ||
	    memcmp(c->path.dgid, path->dgid, sizeof(path->dgid)) != 0) {
		cm->counters.mad_stray++;
		return;
	}
	c->remote_qpn = m->sidr_rep.qpn;
	c->remote_qkey = m->sidr_rep.qkey;
	cm_step(c, CM_IDLE);
	cm_notify(c, CM_EVENT_SIDR_REP, m);
}

static void fill_sidr_rep(const struct cm_connection *c, uint8_t status, struct cm_message *m)
{
	*m = (struct cm_message){.type = CM_SIDR_REP, .transaction = c->transaction};
	m->sidr_rep.request_id = c->remote_id;
	m->sidr_rep.status = status;
	m->sidr_rep.service_id = c->service_id;
}

int cm_send_sidr_rep(struct cm_connection *c, uint64_t now, uint8_t status, uint32_t qpn,
		     uint32_t qkey, const void *private_data, uint8_t bytes)
{
	struct cm_message m;

	if (c->state != CM_SIDR_REQ_RCVD)
		return -EINVAL;
	fill_sidr_rep(c, status, &m);
	m.sidr_rep.qpn = qpn & 0xffffff;
	m.sidr_rep.qkey = qkey;
	if (cm_message_private(&m, private_data, bytes))
		return -EINVAL;
	cm_send_kept(c, &m);
	cm_keep_answer(c, now, 0);
	return 0;
}

static void first_sidr_req(struct cm *cm, uint64_t now, const struct cm_path *path,
			   const struct cm_message *m)
{
	uint16_t status = CM_SIDR_UNSUPPORTED;
	struct cm_connection *c;
	struct cm_message answer;

	if (!cm_room_for_stranger(cm, path))
		return;
	c = cm_connection_new(cm, path, NULL);
	if (!c) {
		cm->counters.dropped_full++;
		return;
	}
	c->sidr = true;
	c->passive = true;
	c->remote_id = m->sidr_req.request_id;
	c->transaction = m->transaction;
	c->service_id = m->sidr_req.service_id;
	if (!c->path.hop_limit)
		c->path.hop_limit = CM_HOP_LIMIT;
	cm_remote_add(c);
	cm_step(c, CM_SIDR_REQ_RCVD);
	if (cm_ask_owner(c, m, &status))
		return;
	if (status) {
		cm->counters.rejected++;
		fill_sidr_rep(c, (uint8_t)status, &answer);
		cm_send_to(cm, path, &answer);
	} else {
		cm->counters.dropped_full++;
	}
	cm_forget(c);
}

void cm_on_sidr_req(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_message *m)
{
	struct cm_connection *c = cm_remote_find(cm, m->sidr_req.request_id, 0, path, true);

	if (!c) {
		first_sidr_req(cm, now, path, m);
		return;
	}
	cm->counters.duplicate++;
	if (c->state == CM_TIMEWAIT)
		cm_send_again(c);
}
