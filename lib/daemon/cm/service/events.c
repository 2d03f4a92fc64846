/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: creation, the channel's queue, GET_EVENT. Each counts for one identifier and moves with
 * it. Runs in the CM thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "commands.h"
#include "events.h"
#include "numbers.h"

void ucm_channel_wake(struct ucm_channel *ch)
{
	static const uint8_t byte = 1;

	if (!ch->woken)
		ch->woken = send(ch->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

bool ucm_events_full(struct ucm_channel *ch)
{
	if (share_take(&ch->shares, SHARE_cm_events, 1))
		return true;
	share_give(&ch->shares, SHARE_cm_events, 1);
	return false;
}

struct ucm_event *ucm_event_new(struct ucm_id *id, uint32_t type, int status)
{
	struct ucm_event *e = calloc(1, sizeof(*e));

	if (!e) {
		id->channel->service->counters.event_lost++;
		return NULL;
	}
	e->id = id;
	e->body.uid = id->uid;
	e->body.id = id->number;
	e->body.event = type;
	e->body.status = (uint32_t)status;
	return e;
}

static void queue(struct ucm_event *e, struct ucm_channel *ch)
{
	TAILQ_INSERT_TAIL(&ch->events, e, of_channel);
	share_add(&ch->shares, SHARE_cm_events, 1);
	ucm_channel_wake(ch);
}

void ucm_event_post(struct ucm_event *e)
{
	TAILQ_INSERT_TAIL(&e->id->events, e, of_id);
	queue(e, e->id->channel);
}

void ucm_event_report(struct ucm_id *id, uint32_t type, int status)
{
	struct ucm_event *e;

	/* Not accepted yet: accepting it will report that it is over. */
	if (!id->uid)
		return;
	e = ucm_event_new(id, type, status);
	if (e)
		ucm_event_post(e);
}

static void unlink_event(struct ucm_event *e)
{
	struct ucm_channel *ch = e->id->channel;

	TAILQ_REMOVE(&ch->events, e, of_channel);
	share_give(&ch->shares, SHARE_cm_events, 1);
	TAILQ_REMOVE(&e->id->events, e, of_id);
	if (!e->request)
		return;
	e->request->announced_by = NULL;
	e->id->backlog++;
}

void ucm_event_free(struct ucm_event *e)
{
	unlink_event(e);
	free(e);
}

void ucm_events_drop(const struct ucm_membership *m)
{
	struct ucm_event *e = TAILQ_FIRST(&m->id->events), *next;

	for (; e; e = next) {
		next = TAILQ_NEXT(e, of_id);
		if (e->membership == m)
			ucm_event_free(e);
	}
}

void ucm_events_move(struct ucm_id *id, struct ucm_channel *to)
{
	struct ucm_channel *from = id->channel;
	struct ucm_event *e;

	TAILQ_FOREACH (e, &id->events, of_id) {
		TAILQ_REMOVE(&from->events, e, of_channel);
		TAILQ_INSERT_TAIL(&to->events, e, of_channel);
		share_give(&from->shares, SHARE_cm_events, 1);
		share_add(&to->shares, SHARE_cm_events, 1);
		if (!e->request)
			continue;
		LIST_REMOVE(e->request, of_channel);
		LIST_INSERT_HEAD(&to->ids, e->request, of_channel);
		e->request->channel = to;
		cm_share_move(e->request->connection, &to->shares);
	}
}

void ucm_event_private(uint8_t *to, uint8_t *length, const uint8_t *data, unsigned int bytes)
{
	memcpy(to, data, bytes);
	*length = (uint8_t)bytes;
}

int ucm_do_get_event(struct ucm_call *call, const struct rdma_ucm_get_event *in,
		     struct rdma_ucm_event_resp *out)
{
	struct ucm_channel *ch = call->channel;
	struct ucm_event *e = TAILQ_FIRST(&ch->events);
	struct ucm_id *request;

	(void)in;
	if (!e)
		return -EAGAIN;
	request = e->request;
	if (request) {
		request->number = ucm_number_take(&ch->service->ids, request);
		if (request->number == UCM_NO_NUMBER)
			return -ENOMEM;
		e->body.id = request->number;
	}
	*out = e->body;
	call->counts_for = e->id->number + 1;
	e->id->events_reported++;
	if (e->membership)
		e->membership->events_reported++;
	ucm_event_free(e);
	return 0;
}
