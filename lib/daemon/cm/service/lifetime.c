/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lifetime of identifiers: CREATE_ID, DESTROY_ID, other reasons for their end, and migration to
 * another channel. Runs in the CM thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "commands.h"
#include "events.h"
#include "ids.h"
#include "lifetime.h"
#include "multicast.h"
#include "numbers.h"
#include "ports.h"

/* Its events, and with them the connection requests not yet accepted. */
static void drop_events(struct ucm_id *id)
{
	struct ucm_event *e;

	while ((e = TAILQ_FIRST(&id->events))) {
		struct ucm_id *request = e->request;

		ucm_event_free(e);
		if (request)
			ucm_id_destroy(request);
	}
}

void ucm_id_destroy(struct ucm_id *id)
{
	struct cm_service *s = id->channel->service;

	if (id->state == UCM_ADDR_QUERY)
		TAILQ_REMOVE(&s->resolving, id, resolving);
	ucm_id_step(id, UCM_GONE);
	drop_events(id);
	if (id->announced_by)
		ucm_event_free(id->announced_by);
	ucm_leave_all(id);
	ucm_port_release(id);
	if (id->number != UCM_NO_NUMBER)
		ucm_number_free(&s->ids, id->number);
	LIST_REMOVE(id, of_channel);
	share_give(&id->channel->shares, SHARE_cm_ids, 1);
	if (id->connection)
		cm_release(id->connection, s->now);
	free(id);
}

static bool lifetime_is_on(const struct ucm_id *id, unsigned int device)
{
	if (id->state == UCM_ADDR_QUERY && id->pending.device == device)
		return true;
	return id->at.chosen && id->at.device == device;
}

/* Neither its device nor its port can be used any more. */
static void lose_device(struct ucm_id *id)
{
	struct cm_service *s = id->channel->service;

	if (id->state == UCM_ADDR_QUERY)
		TAILQ_REMOVE(&s->resolving, id, resolving);
	ucm_id_step(id, UCM_REMOVED);
	ucm_port_release(id);
	id->at.chosen = false;
	if (id->connection)
		cm_release(id->connection, s->now);
	id->connection = NULL;
	ucm_event_report(id, UCM_EVENT_DEVICE_REMOVAL, 0);
}

/* First the requests that no program knows yet, as their listeners may be on the device, too. */
void ucm_channel_remove(struct ucm_channel *ch, unsigned int device)
{
	struct ucm_id *id, *next;

	for (id = LIST_FIRST(&ch->ids); id; id = next) {
		next = LIST_NEXT(id, of_channel);
		if (id->announced_by && lifetime_is_on(id, device))
			ucm_id_destroy(id);
	}
	LIST_FOREACH (id, &ch->ids, of_channel)
		if (lifetime_is_on(id, device))
			lose_device(id);
}

/* The port space decides, except for that of InfiniBand. */
static int lifetime_qp_type_of(const struct rdma_ucm_create_id *in, uint8_t *type)
{
	switch (in->ps) {
	case RDMA_PS_TCP:
		*type = UCM_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*type = UCM_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		*type = in->qp_type;
		return 0;
	default:
		return -EINVAL;
	}
}

int ucm_do_create_id(struct ucm_call *call, const struct rdma_ucm_create_id *in,
		     struct rdma_ucm_create_id_resp *out)
{
	struct ucm_id *id;
	uint8_t type;
	int ret = lifetime_qp_type_of(in, &type);

	if (ret)
		return ret;
	id = ucm_id_new(call->channel, in->ps, type);
	if (!id)
		return -ENOMEM;
	id->uid = in->uid;
	id->number = ucm_number_take(&call->channel->service->ids, id);
	if (id->number == UCM_NO_NUMBER) {
		ucm_id_destroy(id);
		return -ENOMEM;
	}
	out->id = id->number;
	return 0;
}

int ucm_do_destroy_id(struct ucm_call *call, const struct rdma_ucm_destroy_id *in,
		      struct rdma_ucm_destroy_id_resp *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	if (ret)
		return ret;
	out->events_reported = id->events_reported;
	ucm_id_destroy(id);
	return 0;
}

/* ---- migration to another channel ---- */

/* The low bits are the number, to find the identifier; the highest one says that it is a ticket;
 * the rest is secret. */
int ucm_do_release_id(struct ucm_call *call, const struct rdma_ucm_destroy_id *in,
		      struct cm_channel_ticket *out)
{
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	if (ret)
		return ret;
	static_assert(UCM_NUMBERS == 1 << 16, "16 bits of a ticket");
	id->ticket = 1ull << 63 | (uint64_t)ucm_random() << 32 | (ucm_random() & 0xffff0000) |
		     id->number;
	out->ticket = id->ticket;
	return 0;
}

/* The resources that move with an identifier. */
struct baggage {
	uint32_t ports, ids, events, requests; /* ids: it, its memberships, its requests' */
};

static struct baggage baggage_of(const struct ucm_id *id)
{
	struct baggage b = {.ports = id->port_space != 0,
			    .ids = 1,
			    .requests = id->connection && cm_is_shared(id->connection)};
	const struct ucm_membership *m;
	const struct ucm_event *e;

	LIST_FOREACH (m, &id->memberships, of_id)
		b.ids++;
	TAILQ_FOREACH (e, &id->events, of_id) {
		b.events++;
		b.ids += e->request != NULL;
		b.requests += e->request && cm_is_shared(e->request->connection);
	}
	return b;
}

/* Would there be room for it if it left its present channel? Only this thread takes from these
 * rows. */
static bool lifetime_has_room(struct ucm_channel *to, struct ucm_channel *from,
			      const struct baggage *b)
{
	const struct {
		enum share row;
		uint32_t n;
	} of[] = {{SHARE_cm_ports, b->ports},
		  {SHARE_cm_ids, b->ids},
		  {SHARE_cm_events, b->events},
		  {SHARE_cm_requests, b->requests}};
	bool room = true;

	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		share_give(&from->shares, of[i].row, of[i].n);
		room = room && share_fits(&to->shares, of[i].row, of[i].n, false);
		share_add(&from->shares, of[i].row, of[i].n);
	}
	return room;
}

/* 0; -ENOMEM: no room. The channel is being served, and is woken for what comes with it. */
static int lifetime_move(struct ucm_id *id, struct ucm_channel *to, struct ucm_call *call)
{
	struct ucm_channel *from = id->channel;
	struct baggage b = baggage_of(id);

	if (!lifetime_has_room(to, from, &b))
		return -ENOMEM;
	ucm_events_move(id, to);
	LIST_REMOVE(id, of_channel);
	LIST_INSERT_HEAD(&to->ids, id, of_channel);
	share_give(&from->shares, SHARE_cm_ids, b.ids);
	share_add(&to->shares, SHARE_cm_ids, b.ids);
	share_give(&from->shares, SHARE_cm_ports, b.ports);
	share_add(&to->shares, SHARE_cm_ports, b.ports);
	id->channel = to;
	if (id->connection)
		cm_share_move(id->connection, &to->shares);
	if (from->woken && TAILQ_EMPTY(&from->events)) {
		from->woken = false;
		call->flags |= CM_CHANNEL_QUIET_THERE;
	}
	return 0;
}

int ucm_do_migrate_id(struct ucm_call *call, const struct rdma_ucm_migrate_id *in,
		      struct rdma_ucm_migrate_resp *out)
{
	struct ucm_channel *to = call->channel;
	uint64_t ticket = (uint64_t)in->fd << 32 | in->id;
	struct ucm_id *id = ucm_number_find(&to->service->ids, in->id & (UCM_NUMBERS - 1));
	int ret;

	if (!id || !id->ticket || id->ticket != ticket)
		return -ENOENT;
	if (memcmp(&id->channel->hcas, &to->hcas, sizeof(to->hcas)))
		return -EINVAL; /* its port was checked against those */
	ret = id->channel == to ? 0 : lifetime_move(id, to, call);
	if (ret)
		return ret;
	id->ticket = 0;
	out->events_reported = id->events_reported;
	return 0;
}
