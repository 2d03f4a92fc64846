/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding and resolving: maps addresses to devices and GIDs, destinations to routes, and waits for
 * next hops. Runs in the CM thread.
 */
#include <errno.h>
#include "base/ip.h"
#include "address.h"
#include "addresses.h"
#include "commands.h"
#include "events.h"
#include "ids.h"
#include "ports.h"
#include "route.h"

/* The device that has this GID. False: none. */
static bool find_own(const struct ucm_channel *ch, const uint8_t gid[16],
		     const struct ucm_choice *on, struct ucm_choice *c)
{
	const struct cm_service *s = ch->service;

	for (unsigned int i = 0; i < s->device_count; i++) {
		if (!ucm_may_use(ch, i) || (on->chosen && on->device != i))
			continue;
		if (ucm_gid_index(&s->devices[i], gid) == UCM_NO_GID)
			continue;
		*c = (struct ucm_choice){.chosen = true, .device = (uint16_t)i};
		memcpy(c->sgid, gid, sizeof(c->sgid));
		return true;
	}
	return false;
}

int ucm_bind(struct ucm_id *id, const union ucm_address *source)
{
	struct ucm_choice c = {.chosen = false};
	uint8_t gid[16];
	int ret;

	if (!ucm_address_bytes(source))
		return -EAFNOSUPPORT;
	if (id->state != UCM_IDLE)
		return -EINVAL;
	ucm_address_gid(source, gid);
	if (!ucm_address_any(source) && !find_own(id->channel, gid, &c, &c))
		return -EADDRNOTAVAIL;
	id->source = *source;
	if (c.chosen)
		ucm_id_choose(id, &c);
	if (!id->afonly_set)
		id->afonly = source->family == AF_INET;
	ret = ucm_port_bind(id);
	if (ret) {
		memset(&id->source, 0, sizeof(id->source));
		id->at.chosen = false;
		return ret;
	}
	id->destination.family = source->family;
	ucm_id_step(id, UCM_BOUND);
	return 0;
}

/* ---- a destination ---- */

static bool active(const struct cm_device *d)
{
	struct control_port_reply port;

	d->port(d->ctx, &port);
	return port.state == 4;
}

/* The first GID usable as an address of that family. False: none. */
static bool first_gid(const struct cm_device *d, uint16_t family, struct ucm_choice *c)
{
	for (uint16_t i = 0; i < UCM_NO_GID && !d->gid(d->ctx, i, c->sgid); i++)
		if (family == UCM_AF_IB || ip_is_v4_mapped(c->sgid) == (family == AF_INET))
			return true;
	return false;
}

/* To ourselves: any GID of the device will do, preferably an active one. */
static int choose_loopback(const struct ucm_id *id, struct ucm_choice *c)
{
	const struct cm_service *s = id->channel->service;
	bool found = false;

	*c = id->at;
	for (unsigned int i = 0; !id->at.chosen && i < s->device_count; i++) {
		struct ucm_choice other = {.device = (uint16_t)i};

		if (!ucm_may_use(id->channel, i) ||
		    !first_gid(&s->devices[i], id->source.family, &other))
			continue;
		if (!found || active(&s->devices[i]))
			*c = other;
		found = true;
		if (active(&s->devices[i]))
			break;
	}
	if (!found && !id->at.chosen)
		return -ENODEV;
	memcpy(c->dgid, c->sgid, sizeof(c->dgid));
	c->loopback = true;
	return 0;
}

/* The device with a route to dgid, and its source GID. */
static int address_choose(const struct ucm_id *id, const uint8_t dgid[16], struct ucm_choice *c)
{
	const struct cm_service *s = id->channel->service;

	/* AF_IB may name one of each; no packet has an IPv6 source and an IPv4 destination. */
	if (id->at.chosen && ip_is_v4_mapped(id->at.sgid) != ip_is_v4_mapped(dgid))
		return -ENETUNREACH;
	if (find_own(id->channel, dgid, &id->at, c)) {
		if (id->at.chosen)
			*c = id->at;
		memcpy(c->dgid, dgid, sizeof(c->dgid));
		c->loopback = true;
		return 0;
	}
	for (unsigned int i = 0; i < s->device_count; i++) {
		const struct cm_device *d = &s->devices[i];
		int index;

		if (!ucm_may_use(id->channel, i) || (id->at.chosen && id->at.device != i))
			continue;
		index = d->source(d->ctx, dgid);
		*c = (struct ucm_choice){.device = (uint16_t)i};
		if (d->gid(d->ctx, (uint32_t)index, c->sgid)) /* -errno is no index either */
			continue;
		if (id->at.chosen)
			*c = id->at;
		memcpy(c->dgid, dgid, sizeof(c->dgid));
		return 0;
	}
	return -ENETUNREACH;
}

/* 0: known; -EAGAIN; -EHOSTUNREACH. */
static int next_hop(struct ucm_id *id)
{
	const struct cm_device *d = &id->channel->service->devices[id->pending.device];

	if (id->pending.loopback || ucm_address_multicast(&id->destination))
		return 0;
	if (d->would_ask(d->ctx, id->pending.dgid) &&
	    share_use(&id->channel->shares, SHARE_neighbours, 1))
		return -EAGAIN;
	return d->resolve(d->ctx, id->pending.dgid);
}

static void resolved(struct ucm_id *id, int status)
{
	if (status) {
		ucm_id_step(id, UCM_BOUND);
		ucm_event_report(id, UCM_EVENT_ADDR_ERROR, status);
		return;
	}
	ucm_id_choose(id, &id->pending);
	if (ucm_address_loopback(&id->destination))
		ucm_address_set_loopback(&id->source);
	else
		ucm_address_set_gid(&id->source, id->at.sgid);
	ucm_id_step(id, UCM_ADDR_RESOLVED);
	ucm_event_report(id, UCM_EVENT_ADDR_RESOLVED, 0);
}

/* Identifiers that must keep waiting move to the end of the list. */
void ucm_resolve_turn(struct cm_service *s)
{
	struct ucm_id *last = TAILQ_LAST(&s->resolving, ucm_resolving), *id = NULL;

	if (s->now < s->resolve_due)
		return;
	for (int i = 0; i < UCM_RESOLVES_PER_TURN && id != last; i++) {
		int status;

		id = TAILQ_FIRST(&s->resolving);
		status = next_hop(id);
		TAILQ_REMOVE(&s->resolving, id, resolving);
		if (status == -EAGAIN && s->now < id->deadline)
			TAILQ_INSERT_TAIL(&s->resolving, id, resolving);
		else
			resolved(id, status == -EAGAIN ? -ETIMEDOUT : status);
	}
	s->resolve_due = TAILQ_EMPTY(&s->resolving) ? UINT64_MAX : s->now + UCM_RESOLVE_PERIOD_NS;
}

static void address_start(struct ucm_id *id, uint32_t timeout_ms)
{
	struct cm_service *s = id->channel->service;
	int status;

	ucm_id_step(id, UCM_ADDR_QUERY);
	status = next_hop(id);
	if (status != -EAGAIN) {
		resolved(id, status);
		return;
	}
	id->deadline = s->now + timeout_ms * 1000000ull;
	TAILQ_INSERT_TAIL(&s->resolving, id, resolving);
	if (s->resolve_due == UINT64_MAX)
		s->resolve_due = s->now + UCM_RESOLVE_PERIOD_NS;
}

/* Picks a source of the destination's family if the program names none. */
static int bind_for(struct ucm_id *id, const union ucm_address *source)
{
	union ucm_address any = {.family = id->destination.family};

	if (source->family)
		return ucm_bind(id, source);
	if (any.family == UCM_AF_IB)
		any.ib.pkey = id->destination.ib.pkey;
	return ucm_bind(id, &any);
}

static int address_resolve(struct ucm_id *id, const union ucm_address *source, uint32_t timeout_ms)
{
	uint8_t dgid[16];
	int ret;

	if (!ucm_address_bytes(&id->destination))
		return -EAFNOSUPPORT;
	if (id->state == UCM_IDLE) {
		union ucm_address wanted = id->destination;

		ret = bind_for(id, source);
		if (ret)
			return ret;
		id->destination = wanted;
	}
	if (id->source.family != id->destination.family)
		return -EINVAL;
	if (ucm_address_zero(&id->destination))
		ucm_address_set_loopback(&id->destination);
	ucm_address_gid(&id->destination, dgid);
	if (ucm_address_loopback(&id->destination))
		ret = choose_loopback(id, &id->pending);
	else
		ret = address_choose(id, dgid, &id->pending);
	if (!ret)
		address_start(id, timeout_ms);
	return ret;
}

/* Chooses the source if it has no family. */
static int resolve_to(struct ucm_id *id, const union ucm_address *source,
		      const union ucm_address *destination, uint32_t timeout_ms)
{
	union ucm_address before = id->destination;
	int ret;

	/* An identifier in progress does not change. */
	if (id->state != UCM_IDLE && id->state != UCM_BOUND)
		return -EINVAL;
	if (ucm_events_full(id->channel))
		return -ENOMEM;
	id->destination = *destination;
	ret = address_resolve(id, source, timeout_ms);
	if (ret)
		id->destination = before;
	return ret;
}

/* ---- the commands ---- */

static int bind_and_say(struct ucm_call *call, struct ucm_id *id, const union ucm_address *source)
{
	int ret = ucm_bind(id, source);

	if (id->at.chosen)
		call->flags |= CM_CHANNEL_ON_DEVICE;
	return ret;
}

int ucm_do_bind_ip(struct ucm_call *call, const struct rdma_ucm_bind_ip *in, struct ucm_none *out)
{
	union ucm_address source;
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	ucm_address_copy_ip(&source, &in->addr);
	return source.family == UCM_AF_IB ? -EAFNOSUPPORT : bind_and_say(call, id, &source);
}

int ucm_do_bind(struct ucm_call *call, const struct rdma_ucm_bind *in, struct ucm_none *out)
{
	union ucm_address source;
	struct ucm_id *id;
	int ret;

	(void)out;
	if (in->reserved || ucm_address_copy(&source, &in->addr, in->addr_size))
		return -EINVAL;
	ret = ucm_id_find(call->channel, in->id, &id);
	return ret ? ret : bind_and_say(call, id, &source);
}

int ucm_do_resolve_ip(struct ucm_call *call, const struct rdma_ucm_resolve_ip *in,
		      struct ucm_none *out)
{
	union ucm_address source, destination;
	struct ucm_id *id;
	int ret = ucm_id_find(call->channel, in->id, &id);

	(void)out;
	if (ret)
		return ret;
	ucm_address_copy_ip(&source, &in->src_addr);
	ucm_address_copy_ip(&destination, &in->dst_addr);
	if (source.family == UCM_AF_IB || destination.family == UCM_AF_IB)
		return -EAFNOSUPPORT;
	return resolve_to(id, &source, &destination, in->timeout_ms);
}

int ucm_do_resolve_addr(struct ucm_call *call, const struct rdma_ucm_resolve_addr *in,
			struct ucm_none *out)
{
	union ucm_address source = {.family = AF_UNSPEC}, destination;
	struct ucm_id *id;
	int ret;

	(void)out;
	if (in->reserved ||
	    (in->src_size && ucm_address_copy(&source, &in->src_addr, in->src_size)))
		return -EINVAL;
	if (ucm_address_copy(&destination, &in->dst_addr, in->dst_size))
		return -EINVAL;
	ret = ucm_id_find(call->channel, in->id, &id);
	return ret ? ret : resolve_to(id, &source, &destination, in->timeout_ms);
}
