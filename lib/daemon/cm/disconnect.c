/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orderly disconnection (IBTA volume 1, 12.9.7): DREQ and DREP on both sides; alternate paths are
 * refused here, too. CM thread.
 */
#include <errno.h>
#include "disconnect.h"
#include "reject.h"

int cm_send_dreq(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes)
{
	struct cm_message m;

	if (c->state != CM_ESTABLISHED)
		return -EINVAL;
	cm_message_begin(c, &m, CM_DREQ);
	m.transaction = (uint64_t)c->cm->ops->random(c->cm->ctx) << 32 | c->local_id;
	m.dreq.remote_qpn = c->remote_qpn;
	if (cm_message_private(&m, private_data, bytes))
		return -EINVAL;
	c->transaction = m.transaction;
	c->max_retries = c->cm->retries;
	cm_step(c, CM_DREQ_SENT);
	cm_send_kept(c, &m);
	cm_await_answer(c, now);
	return 0;
}

void cm_disconnect_stale(struct cm_connection *c, uint64_t now)
{
	cm_send_dreq(c, now, NULL, 0); /* in other states it ends without a DREQ */
}

int cm_send_drep(struct cm_connection *c, uint64_t now, const void *private_data, uint8_t bytes)
{
	struct cm_message m;

	if (c->state != CM_DREQ_RCVD)
		return -EINVAL;
	cm_message_begin(c, &m, CM_DREP);
	if (cm_message_private(&m, private_data, bytes))
		return -EINVAL;
	cm_enter_timewait(c, now);
	cm_send_kept(c, &m);
	return 0;
}

/* Sends a DREP outside any connection. */
static void answer_dreq(struct cm *cm, const struct cm_path *path, const struct cm_message *dreq)
{
	struct cm_message m = {
		.type = CM_DREP,
		.transaction = dreq->transaction,
		.local_id = dreq->remote_id,
		.remote_id = dreq->local_id,
	};

	cm_send_to(cm, path, &m);
}

/* A repeated DREQ: the peer missed the DREP. If that is still kept, it has the private data. */
static void repeated_dreq(struct cm_connection *c, const struct cm_path *path,
			  const struct cm_message *m)
{
	struct cm_message last;

	c->cm->counters.duplicate++;
	if (c->state != CM_TIMEWAIT)
		return;
	if (c->kept)
		cm_reject_again(c, CM_ABOUT_OTHER);
	else if (cm_mad_parse(c->mad, sizeof(c->mad), &last) == CM_WELL_FORMED &&
		 last.type == CM_DREP)
		cm_send_again(c);
	else
		answer_dreq(c->cm, path, m);
}

static void first_dreq(struct cm_connection *c, uint64_t now, const struct cm_message *m)
{
	c->transaction = m->transaction;
	cm_step(c, CM_DREQ_RCVD);
	if (c->owned)
		cm_notify(c, CM_EVENT_DREQ, m);
	else
		cm_send_drep(c, now, NULL, 0);
}

void cm_on_dreq(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = cm_find_pair(cm, path, m);

	if (!c) {
		cm->counters.mad_stray++;
		answer_dreq(cm, path, m);
		return;
	}
	if (m->dreq.remote_qpn != c->local_qpn) {
		cm->counters.mad_stray++;
		return;
	}
	switch ((enum cm_state)c->state) {
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		first_dreq(c, now, m);
		return;
	case CM_DREQ_RCVD:
	case CM_TIMEWAIT:
		repeated_dreq(c, path, m);
		return;
	case CM_IDLE:
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_MRA_REQ_RCVD:
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_SIDR_REQ_SENT:
	case CM_SIDR_REQ_RCVD:
	case CM_STATE_COUNT:
		cm->counters.mad_stray++; /* too early: its sender will repeat it */
		return;
	}
}

void cm_on_drep(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = cm_find_pair(cm, path, m);

	if (!c) {
		cm->counters.mad_stray++;
	} else if (c->state == CM_DREQ_SENT || c->state == CM_DREQ_RCVD) {
		cm_enter_timewait(c, now);
		cm_notify(c, CM_EVENT_DREP, m);
	} else {
		cm->counters.duplicate++;
	}
}

void cm_on_lap(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m)
{
	struct cm_connection *c = cm_find_pair(cm, path, m);
	struct cm_message apr = {
		.type = CM_APR,
		.transaction = m->transaction,
		.local_id = m->remote_id,
		.remote_id = m->local_id,
	};

	apr.apr.status =
		c && c->state == CM_ESTABLISHED ? CM_APR_UNSUPPORTED : CM_APR_INVALID_COMM_ID;
	if (!c)
		cm->counters.mad_stray++;
	cm_send_to(cm, path, &apr);
}
