/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections as such: creation and end, states, owners, times, and what the exchanges (connect.c,
 * disconnect.c, reject.c, sidr.c) send and report. CM thread; sends and reports only through its
 * user's callbacks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include "base/assert.h"
#include "base/shares.h"
#include "connection_priv.h"
#include "tables.h"

#define MACHINE	      cm_machine
#define MACHINE_NAME  "connection"
#define MACHINE_ID(s) CM_##s
#define MACHINE_DEF   "connection.def"
#include "pipeline/machine_define.h"

static const char *const state_name[] = {
#define STATE(id, text) #id,
#include "connection.def"
};

struct cm_connection *cm_connection_new(struct cm *cm, const struct cm_path *path, void *owner)
{
	struct cm_connection *c = calloc(1, sizeof(*c));
	int error;

	if (!c)
		return NULL;
	c->cm = cm;
	c->owner = owner;
	c->owned = true;
	c->path = *path;
	c->timeout = path->ack_timeout;
	c->max_retries = cm->retries;
	c->response_timeout = cm->response_timeout;
	c->peer_waits = cm->response_timeout;
	error = cm_place_take(cm, c);
	if (error) {
		free(c);
		errno = -error;
		return NULL;
	}
	cm->connections++;
	return c;
}

void cm_settle(struct cm_connection *c)
{
	if (c->owned || c->in_request || c->state != CM_IDLE)
		return;
	ASSERT(!c->heap_at && !c->by_remote.back && !c->by_qpn.back);
	c->cm->orphans--;
	c->cm->connections--;
	cm_place_free(c->cm, c);
	free(c);
}

static bool unanswered(enum cm_state s)
{
	return s == CM_REQ_RCVD || s == CM_MRA_REQ_SENT || s == CM_SIDR_REQ_RCVD;
}

bool cm_share(struct cm_connection *c, struct share_client *holder)
{
	ASSERT(c->in_request && unanswered(c->state) && !c->share);
	if (share_take(holder, SHARE_cm_requests, 1))
		return false;
	c->share = holder;
	return true;
}

bool cm_is_shared(const struct cm_connection *c)
{
	return c->share != NULL;
}

void cm_share_move(struct cm_connection *c, struct share_client *holder)
{
	if (!c->share)
		return;
	share_give(c->share, SHARE_cm_requests, 1);
	share_add(holder, SHARE_cm_requests, 1);
	c->share = holder;
}

void cm_step(struct cm_connection *c, enum cm_state next)
{
	uint32_t more = (uint32_t)unanswered(next) - unanswered(c->state);
	struct cm *cm = c->cm;

	MACHINE_STEP(cm_machine, c->state, next);
	cm->unanswered += more;
	cm->unanswered_of[cm_source(cm, &c->path)] += more;
	ASSERT(!c->share || more != 1);
	if (c->share && more) {
		share_give(c->share, SHARE_cm_requests, 1);
		c->share = NULL;
	}
	if (c->kept) {
		c->kept = false;
		cm->kept--;
	}
	c->state = (uint8_t)next;
	cm_timer_cancel(c);
	if (next == CM_TIMEWAIT || next == CM_IDLE)
		cm_hash_remove(&cm->by_qpn, &c->by_qpn);
	if (next == CM_IDLE)
		cm_hash_remove(&cm->by_remote, &c->by_remote);
}

void cm_orphan(struct cm_connection *c)
{
	c->owned = false;
	c->owner = NULL;
	ASSERT(!unanswered(c->state) && !c->share);
	c->cm->orphans++;
}

void cm_notify(struct cm_connection *c, enum cm_event_type type, const struct cm_message *m)
{
	struct cm_event e = {.type = type, .message = m};

	if (c->owned)
		c->cm->ops->event(c->cm->ctx, c->owner, c, &e);
	else
		cm_settle(c);
}

void cm_forget(struct cm_connection *c)
{
	cm_step(c, CM_IDLE);
	cm_orphan(c);
	cm_settle(c);
}

bool cm_ask_owner(struct cm_connection *c, const struct cm_message *m, uint16_t *reason)
{
	uint8_t asked_in = c->state;

	c->in_request = true;
	c->owner = c->cm->ops->request(c->cm->ctx, c, &c->path, m, reason);
	c->in_request = false;
	if (!c->owned) {
		c->owner = NULL;
		cm_settle(c);
		return true;
	}
	if (c->owner)
		return true;
	if (c->state == asked_in)
		return false;
	c->cm->abandoned = c;
	return true;
}

bool cm_room_for_stranger(struct cm *cm, const struct cm_path *path)
{
	if (cm->unanswered >= cm->unanswered_most || cm->connections >= cm->strangers_most) {
		cm->counters.dropped_full++;
		return false;
	}
	if (cm->unanswered_of[cm_source(cm, path)] >= cm->of_source_most) {
		cm->counters.dropped_source++;
		return false;
	}
	return true;
}

void cm_connection_info(const struct cm_connection *c, struct cm_connection_info *out)
{
	*out = (struct cm_connection_info){
		.state = state_name[c->state],
		.state_number = c->state,
		.path = c->path,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
		.remote_qpn = c->remote_qpn,
		.remote_psn = c->remote_psn,
		.remote_qkey = c->remote_qkey,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.retry_count = c->retry_count,
		.rnr_retry_count = c->rnr_retry_count,
		.timeout = c->timeout,
		.peer_srq = c->peer_srq,
	};
}

/* --- time --- */

uint64_t cm_time_of(unsigned int exponent)
{
	return (uint64_t)4096 << exponent;
}

uint8_t cm_clamp(uint8_t value, uint8_t least, uint8_t most)
{
	return MIN(MAX(value, least), most);
}

void cm_await_answer(struct cm_connection *c, uint64_t now)
{
	c->retries = c->max_retries;
	c->mra_fresh = false;
	cm_timer_set(c, now + cm_time_of(c->response_timeout));
}

void cm_enter_timewait(struct cm_connection *c, uint64_t now)
{
	uint8_t timeout = c->timeout ? c->timeout : CM_ACK_TIMEOUT;

	cm_step(c, CM_TIMEWAIT);
	c->retries = 0;
	cm_timer_set(c, now + cm_time_of(cm_clamp(timeout, 0, CM_TIMEWAIT_MOST)));
}

/* As long as the peer may repeat its request if it receives no answer. */
static uint64_t keeping_time(const struct cm_connection *c)
{
	uint64_t patience = c->mra_sent ? cm_time_of(c->service_timeout) : 0;

	return MIN((c->max_retries + 1u) * cm_time_of(c->peer_waits) + patience,
		   cm_time_of(CM_KEPT_MOST));
}

void cm_keep_answer(struct cm_connection *c, uint64_t now, unsigned int repeats)
{
	if (c->cm->kept >= c->cm->kept_most) {
		cm_step(c, CM_IDLE);
		return;
	}
	cm_step(c, CM_TIMEWAIT);
	c->kept = true;
	c->cm->kept++;
	c->retries = (uint8_t)repeats;
	cm_timer_set(c, now + (repeats ? cm_time_of(c->cm->response_timeout) : keeping_time(c)));
}

void cm_timewait_expired(struct cm_connection *c, uint64_t now)
{
	bool kept = c->kept;

	if (c->retries) {
		c->retries--;
		cm_send_again(c);
		cm_timer_set(c, now + (c->retries ? cm_time_of(c->cm->response_timeout)
						  : keeping_time(c)));
		return;
	}
	cm_step(c, CM_IDLE);
	if (kept)
		cm_settle(c); /* its owner considers it over since the answer */
	else
		cm_notify(c, CM_EVENT_TIMEWAIT_EXIT, NULL);
}

/* --- messages --- */

void cm_message_begin(const struct cm_connection *c, struct cm_message *m, enum cm_type type)
{
	*m = (struct cm_message){
		.type = (uint16_t)type,
		.transaction = c->transaction,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
	};
}

int cm_message_private(struct cm_message *m, const void *data, uint8_t bytes)
{
	if (bytes > cm_private_bytes(m->type))
		return -EINVAL;
	if (bytes)
		memcpy(m->private_data, data, bytes);
	m->private_bytes = bytes;
	return 0;
}

void cm_send_again(struct cm_connection *c)
{
	c->cm->ops->send(c->cm->ctx, &c->path, c->mad);
}

void cm_send_kept(struct cm_connection *c, const struct cm_message *m)
{
	cm_mad_build(m, c->mad);
	cm_send_again(c);
}

void cm_send_to(struct cm *cm, const struct cm_path *path, const struct cm_message *m)
{
	uint8_t mad[CM_MAD_BYTES];

	cm_mad_build(m, mad);
	cm->ops->send(cm->ctx, path, mad);
}

struct cm_connection *cm_find_pair(const struct cm *cm, const struct cm_path *path,
				   const struct cm_message *m)
{
	struct cm_connection *c = cm_place_find(&cm->places, m->remote_id);

	if (!c || c->state == CM_IDLE || c->sidr || c->path.device != path->device ||
	    memcmp(c->path.dgid, path->dgid, sizeof(path->dgid)) != 0)
		return NULL;
	return !c->remote_id || c->remote_id == m->local_id ? c : NULL;
}
