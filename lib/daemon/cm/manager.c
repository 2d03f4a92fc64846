/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager as a whole: creation and end, and which exchange (connect.c, disconnect.c,
 * reject.c, sidr.c) a message, a timeout or a release belongs to. CM thread; sends and reports only
 * through its user's callbacks.
 */
#include <stdlib.h>
#include <sys/param.h>
#include "base/assert.h"
#include "connect.h"
#include "connection_priv.h"
#include "disconnect.h"
#include "reject.h"
#include "sidr.h"
#include "tables.h"

struct cm *cm_create(const struct cm_ops *ops, void *ctx, const struct cm_limits *limits)
{
	struct cm_limits none = {0};
	const struct cm_limits *l = limits ? limits : &none;
	struct cm *cm = calloc(1, sizeof(*cm));
	uint32_t most =
		MIN(l->connections ? l->connections : CM_CONNECTIONS, 1u << CM_PLACE_BITS_MOST);

	if (!cm)
		return NULL;
	cm->ops = ops;
	cm->ctx = ctx;
	cm->unanswered_most = l->unanswered ? l->unanswered : CM_UNANSWERED;
	cm->of_source_most = l->of_source ? l->of_source : (cm->unanswered_most + 15) / 16;
	cm->strangers_most = most - most / 8;
	cm->kept_most = most / 4;
	cm->response_timeout = l->response_timeout ? l->response_timeout : CM_RESPONSE_TIMEOUT;
	cm->retries = cm_clamp(l->retries ? l->retries : CM_RETRIES, 1, CM_RETRIES);
	for (int i = 0; i < 2; i++)
		cm->seed[i] = (uint64_t)ops->random(ctx) << 32 | ops->random(ctx);
	cm_places_create(&cm->places, most);
	return cm;
}

void cm_destroy(struct cm *cm)
{
	if (!cm)
		return;
	for (uint32_t i = 0; i < cm->places.count; i++)
		free(cm->places.at[i]);
	cm_places_destroy(&cm->places);
	cm_hash_destroy(&cm->by_remote);
	cm_hash_destroy(&cm->by_qpn);
	free(cm->timers.heap);
	free(cm);
}

void cm_census(const struct cm *cm, uint32_t *connections, uint32_t *orphans)
{
	*connections = cm->connections;
	*orphans = cm->orphans;
}

const struct cm_counters *cm_counters(const struct cm *cm)
{
	return &cm->counters;
}

/* --- release --- */

/* Sends the peer what its release requires. */
static void part(struct cm_connection *c, uint64_t now)
{
	switch ((enum cm_state)c->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
		cm_reject_timeout(c, now);
		return;
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_SENT:
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_MRA_REP_RCVD:
		cm_reject(c, now, CM_REJ_CONSUMER, NULL, 0, NULL, 0);
		return;
	case CM_ESTABLISHED:
		cm_send_dreq(c, now, NULL, 0);
		return;
	case CM_DREQ_RCVD:
		cm_send_drep(c, now, NULL, 0);
		return;
	case CM_SIDR_REQ_SENT:
		cm_step(c, CM_IDLE);
		return;
	case CM_SIDR_REQ_RCVD:
		cm_send_sidr_rep(c, now, CM_SIDR_REJECTED, 0, 0, NULL, 0);
		return;
	case CM_IDLE:
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_STATE_COUNT:
		return;
	}
}

void cm_release(struct cm_connection *c, uint64_t now)
{
	ASSERT(c->owned);
	part(c, now);
	cm_orphan(c);
	cm_settle(c);
}

void cm_forget_device(struct cm *cm, unsigned int device)
{
	for (uint32_t i = 0; i < cm->places.count; i++) {
		struct cm_connection *c = cm->places.at[i];

		if (!c || c->path.device != device)
			continue;
		ASSERT(!c->owned);
		if (c->state == CM_DREQ_SENT)
			cm_step(c, CM_TIMEWAIT);
		cm_step(c, CM_IDLE);
		cm_settle(c);
	}
}

/* --- time --- */

static void manager_give_up(struct cm_connection *c, uint64_t now)
{
	c->cm->counters.timeout++;
	switch ((enum cm_state)c->state) {
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
		cm_reject_timeout(c, now);
		cm_notify(c, CM_EVENT_REQ_TIMEOUT, NULL);
		return;
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		cm_reject_timeout(c, now);
		cm_notify(c, CM_EVENT_REP_TIMEOUT, NULL);
		return;
	case CM_DREQ_SENT:
		cm_enter_timewait(c, now);
		cm_notify(c, CM_EVENT_DREQ_TIMEOUT, NULL);
		return;
	case CM_SIDR_REQ_SENT:
		cm_step(c, CM_IDLE);
		cm_notify(c, CM_EVENT_SIDR_TIMEOUT, NULL);
		return;
	case CM_IDLE:
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_RCVD:
	case CM_MRA_REP_SENT:
	case CM_ESTABLISHED:
	case CM_DREQ_RCVD:
	case CM_TIMEWAIT:
	case CM_SIDR_REQ_RCVD:
	case CM_STATE_COUNT:
		ASSERT(!"a state that waits for no answer");
	}
}

/* Moves or cancels its timer. */
static void expired(struct cm_connection *c, uint64_t now)
{
	if (c->state == CM_TIMEWAIT) {
		cm_timewait_expired(c, now);
		return;
	}
	if (!c->retries) {
		manager_give_up(c, now);
		return;
	}
	c->retries--;
	c->mra_fresh = false;
	c->cm->counters.retry++;
	cm_send_again(c);
	cm_timer_set(c, now + cm_time_of(c->response_timeout));
}

uint64_t cm_expire(struct cm *cm, uint64_t now)
{
	struct cm_timers *t = &cm->timers;

	for (int i = 0; i < CM_EXPIRED_MOST && t->count && t->heap[1]->due <= now; i++)
		expired(t->heap[1], now);
	return t->count ? t->heap[1]->due : UINT64_MAX;
}

/* --- messages --- */

static void release_abandoned(struct cm *cm, uint64_t now)
{
	struct cm_connection *c = cm->abandoned;

	cm->abandoned = NULL;
	if (c)
		cm_release(c, now);
}

void cm_receive(struct cm *cm, uint64_t now, const struct cm_path *path, const uint8_t *mad,
		size_t bytes)
{
	static void (*const on[])(struct cm *, uint64_t, const struct cm_path *,
				  const struct cm_message *) = {
		[CM_REQ] = cm_on_req,
		[CM_MRA] = cm_on_mra,
		[CM_REJ] = cm_on_rej,
		[CM_REP] = cm_on_rep,
		[CM_RTU] = cm_on_rtu,
		[CM_DREQ] = cm_on_dreq,
		[CM_DREP] = cm_on_drep,
		[CM_SIDR_REQ] = cm_on_sidr_req,
		[CM_SIDR_REP] = cm_on_sidr_rep,
		[CM_LAP] = cm_on_lap,
		[CM_APR] = NULL, /* we never send LAP */
	};
	struct cm_message m;

	ASSERT(!cm->abandoned);
	if (cm_mad_parse(mad, bytes, &m) != CM_WELL_FORMED)
		cm->counters.mad_malformed++;
	else if (m.type < sizeof(on) / sizeof(on[0]) && on[m.type])
		on[m.type](cm, now, path, &m);
	else
		cm->counters.mad_stray++;
	release_abandoned(cm, now);
}
