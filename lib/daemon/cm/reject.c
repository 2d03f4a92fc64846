/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rejection (IBTA volume 1, 12.6.7): REJs sent for the owner or after a timeout, those sent outside
 * any connection, and those received. CM thread.
 */
#include <errno.h>
#include <string.h>
#include "reject.h"
#include "tables.h"

enum { GUID_BYTES = 8 };

static enum cm_about about_of(enum cm_state s)
{
	if (s == CM_REQ_RCVD || s == CM_MRA_REQ_SENT)
		return CM_ABOUT_REQ;
	return s == CM_REP_RCVD || s == CM_MRA_REP_SENT ? CM_ABOUT_REP : CM_ABOUT_OTHER;
}

static bool may_reject(enum cm_state s)
{
	return s >= CM_REQ_SENT && s <= CM_MRA_REP_RCVD;
}

int cm_reject(struct cm_connection *c, uint64_t now, enum cm_reject_reason reason, const void *info,
	      uint8_t info_bytes, const void *private_data, uint8_t bytes)
{
	enum cm_about about = about_of(c->state);
	struct cm_message m;

	cm_message_begin(c, &m, CM_REJ);
	if (!may_reject(c->state) || info_bytes > sizeof(m.rej.info) ||
	    cm_message_private(&m, private_data, bytes))
		return -EINVAL;
	m.rej.about = (uint8_t)about;
	m.rej.reason = (uint16_t)reason;
	m.rej.info_bytes = info_bytes;
	if (info_bytes)
		memcpy(m.rej.info, info, info_bytes);
	cm_send_kept(c, &m);
	if (c->passive)
		c->cm->counters.rejected++;
	/* A peer that missed the REJ repeats its REQ or REP, but never an RTU. */
	if (c->state == CM_REQ_SENT || c->state == CM_MRA_REQ_RCVD)
		cm_step(c, CM_IDLE);
	else
		cm_keep_answer(c, now, about == CM_ABOUT_OTHER ? CM_REJECT_REPEATS : 0);
	return 0;
}

/* A peer that does not know our communication ID finds the connection by our GUID. */
void cm_reject_timeout(struct cm_connection *c, uint64_t now)
{
	uint64_t guid = __builtin_bswap64(c->cm->ops->guid(c->cm->ctx, c->path.device));

	cm_reject(c, now, CM_REJ_TIMEOUT, &guid, GUID_BYTES, NULL, 0);
}

void cm_reject_again(struct cm_connection *c, enum cm_about about)
{
	struct cm_message m;

	if (cm_mad_parse(c->mad, sizeof(c->mad), &m) != CM_WELL_FORMED || m.type != CM_REJ)
		return;
	m.rej.about = (uint8_t)about;
	cm_send_to(c->cm, &c->path, &m);
}

void cm_refuse(struct cm *cm, const struct cm_path *path, const struct cm_message *m,
	       enum cm_reject_reason reason, const void *info, uint8_t info_bytes)
{
	struct cm_message rej = {
		.type = CM_REJ,
		.transaction = m->transaction,
		.local_id = m->remote_id,
		.remote_id = m->local_id,
	};

	rej.rej.about = m->type == CM_REQ ? CM_ABOUT_REQ : CM_ABOUT_REP;
	rej.rej.reason = (uint16_t)reason;
	rej.rej.info_bytes = info_bytes;
	if (info_bytes)
		memcpy(rej.rej.info, info, info_bytes);
	if (m->type == CM_REQ)
		cm->counters.rejected++;
	cm_send_to(cm, path, &rej);
}

static struct cm_connection *find_rejected(const struct cm *cm, const struct cm_path *path,
					   const struct cm_message *m)
{
	uint64_t guid;

	if (m->rej.reason != CM_REJ_TIMEOUT || m->remote_id || m->rej.info_bytes < GUID_BYTES)
		return cm_find_pair(cm, path, m);
	memcpy(&guid, m->rej.info, sizeof(guid));
	return cm_remote_find(cm, m->local_id, __builtin_bswap64(guid), path, false);
}

void cm_on_rej(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = find_rejected(cm, path, m);
	enum cm_state state = c ? (enum cm_state)c->state : CM_IDLE;

	switch (state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		if (m->rej.reason == CM_REJ_STALE_CONNECTION)
			cm_enter_timewait(c, now);
		else
			cm_step(c, CM_IDLE);
		cm_notify(c, CM_EVENT_REJ, m);
		return;
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
		cm_step(c, CM_IDLE);
		cm_notify(c, CM_EVENT_REJ, m);
		return;
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		cm_enter_timewait(c, now);
		cm_notify(c, CM_EVENT_REJ, m);
		return;
	case CM_IDLE:
	case CM_DREQ_RCVD:
	case CM_TIMEWAIT:
	case CM_SIDR_REQ_SENT:
	case CM_SIDR_REQ_RCVD:
	case CM_STATE_COUNT:
		cm->counters.mad_stray++;
		return;
	}
}
