/* SPDX-License-Identifier: BSD-3-Clause */
/* Owners of connections, who do what dice say: see cm_world.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_world_priv.h"

enum { QPNS = 24, SERVICE = 0x0106beef };

/* The events that an owner may get in a state that it knows of. In ESTABLISHED our manager may have
 * begun to disconnect on its own: the peer used the QP for a new connection. */
#define HEAR(event) (1u << CM_EVENT_##event)
#define AS_ASKING   (HEAR(REP) | HEAR(REJ) | HEAR(REQ_TIMEOUT))
#define AS_ANSWERED (HEAR(RTU) | HEAR(REJ) | HEAR(REP_TIMEOUT) | HEAR(DREQ))
#define AS_LEAVING  (HEAR(DREP) | HEAR(DREQ) | HEAR(REJ) | HEAR(DREQ_TIMEOUT))

static const unsigned int may_hear[STATES] = {
	[S_REQ_SENT] = AS_ASKING,
	[S_MRA_REQ_RCVD] = AS_ASKING,
	[S_REQ_RCVD] = HEAR(REJ),
	[S_MRA_REQ_SENT] = HEAR(REJ),
	[S_REP_SENT] = AS_ANSWERED,
	[S_MRA_REP_RCVD] = AS_ANSWERED,
	[S_REP_RCVD] = HEAR(REJ),
	[S_MRA_REP_SENT] = HEAR(REJ),
	[S_ESTABLISHED] = AS_LEAVING,
	[S_DREQ_SENT] = AS_LEAVING,
	[S_DREQ_RCVD] = HEAR(DREP),
	[S_TIMEWAIT] = HEAR(TIMEWAIT_EXIT),
	[S_SIDR_REQ_SENT] = HEAR(SIDR_REP) | HEAR(SIDR_TIMEOUT),
};

/* Data in REQ and REP to check which connections belong together. */
struct card {
	uint32_t number, partner;
};

void owner_fail(const struct owner *o, const char *what)
{
	struct cm_connection_info info = {.state = "?"};
	char text[160];

	if (o->live)
		cm_connection_info(o->c, &info);
	snprintf(text, sizeof(text), "owner %u (%s %s of side %u, in %s, state %u) %s", o->number,
		 o->active ? "active" : "passive", o->sidr ? "SIDR" : "REQ", o->side, info.state,
		 o->state, what);
	world_fail(text);
}

static uint64_t delay(void)
{
	uint32_t dice = below(100);

	if (dice < 60)
		return below(2000) * (uint64_t)US;
	return below(dice < 95 ? 200 : 20000) * (uint64_t)MS;
}

static struct owner *owner_new(unsigned int side, bool active)
{
	struct owner *o = world.owners;

	while (o < world.owners + world.owner_count && o->live)
		o++;
	if (o == world.owners + world.owner_count)
		return NULL;
	*o = (struct owner){
		.live = true,
		.active = active,
		.side = (uint8_t)side,
		.number = ++world.next_number,
		.qpn = world.config->qpns_again ? 2 + below(QPNS) : ++world.next_qpn,
		.due = NEVER,
		.end = NEVER,
	};
	if (!world.config->kind)
		o->end = world.now + below(90000) * (uint64_t)MS;
	world.open += active;
	return o;
}

static void look(struct owner *o)
{
	struct cm_connection_info info;

	cm_connection_info(o->c, &info);
	o->state = info.state_number;
	if (o->state == S_ESTABLISHED && !o->established) {
		o->established = true;
		world.result->established[!o->active]++;
	}
}

static void gone(struct owner *o)
{
	world.open -= o->active;
	o->live = false;
}

static void let_go(struct owner *o)
{
	cm_release(o->c, world.now);
	gone(o);
}

static struct cm_end end_of(struct owner *o, struct card *card)
{
	*card = (struct card){.number = o->number, .partner = o->partner};
	return (struct cm_end){.qpn = o->qpn,
			       .psn = (uint32_t)world_random() & 0xffffff,
			       .responder_resources = 1,
			       .initiator_depth = 1,
			       .retry_count = 7,
			       .rnr_retry_count = 7,
			       .private_data = card,
			       .private_bytes = sizeof(*card)};
}

bool owner_start(unsigned int side)
{
	struct owner *o = owner_new(side, true);
	struct cm_path path = world_path(side);
	struct card card;
	struct cm_end end;

	if (!o)
		return false;
	end = end_of(o, &card);
	o->sidr = per_mille(world.config->resolutions);
	if (o->sidr)
		o->c = cm_send_sidr_req(world.cm[side], world.now, o, &path, SERVICE, &card,
					sizeof(card));
	else
		o->c = cm_send_req(world.cm[side], world.now, o, &path, SERVICE,
				   per_mille(200) ? CM_UC : CM_RC, &end);
	if (o->c)
		look(o);
	else if (errno != ENOSPC)
		world_fail("no connection for a request");
	else
		gone(o);
	return true;
}

/* --- what an owner does --- */

static void answer(struct owner *o)
{
	uint32_t dice = world.config->kind ? below(92) : below(100);
	struct card card;
	struct cm_end end = end_of(o, &card);

	if (dice < 80 || (dice < 92 && o->state == S_MRA_REQ_SENT))
		cm_send_rep(o->c, world.now, &end);
	else if (dice < 92)
		cm_send_mra(o->c, world.now, (uint8_t)(dice & 1 ? CM_MRA_IF_REPEATED | 22 : 22));
	else
		cm_reject(o->c, world.now, CM_REJ_CONSUMER, "no", 2, "sorry", 5);
}

static void accept_rep(struct owner *o)
{
	uint32_t dice = world.config->kind ? below(95) : below(100);

	if (dice < 85 || (dice < 95 && o->state == S_MRA_REP_SENT))
		cm_send_rtu(o->c, world.now, "ready", 5);
	else if (dice < 95)
		cm_send_mra(o->c, world.now, (uint8_t)(dice & 1 ? CM_MRA_IF_REPEATED | 20 : 20));
	else
		cm_reject(o->c, world.now, CM_REJ_CONSUMER, NULL, 0, NULL, 0);
}

static void resolve(struct owner *o)
{
	uint8_t status = world.config->kind || below(5) ? CM_SIDR_VALID : CM_SIDR_REJECTED;

	cm_send_sidr_rep(o->c, world.now, status, o->qpn, 0x01234567, NULL, 0);
}

/* Anything at any time: what does not fit the state is refused. Not when called back. */
static void anything(struct owner *o)
{
	struct card card;
	struct cm_end end = end_of(o, &card);

	switch (below(9)) {
	case 0:
		cm_send_rep(o->c, world.now, &end);
		break;
	case 1:
		cm_send_rtu(o->c, world.now, NULL, 0);
		break;
	case 2:
		cm_reject(o->c, world.now, CM_REJ_NO_RESOURCES, NULL, 0, NULL, 0);
		break;
	case 3:
		cm_send_dreq(o->c, world.now, NULL, 0);
		break;
	case 4:
		cm_send_drep(o->c, world.now, NULL, 0);
		break;
	case 5:
		cm_send_mra(o->c, world.now, (uint8_t)below(256));
		break;
	case 6:
		cm_send_sidr_rep(o->c, world.now, CM_SIDR_VALID, o->qpn, 1, NULL, 0);
		break;
	case 7:
		if (!cm_send_dreq(o->c, world.now, NULL, 225))
			world_fail("too much private data was sent");
		break;
	case 8:
		cm_established(o->c, world.now);
		break;
	}
}

static const struct owner *partner_of(const struct owner *o)
{
	unsigned int i;

	for (i = 0; i < world.owner_count; i++)
		if (world.owners[i].live && world.owners[i].number == o->partner)
			return &world.owners[i];
	return NULL;
}

/* The peer's data came before its RTU. */
static void data_came(struct owner *o)
{
	const struct owner *p = partner_of(o);

	if (p && p->state == S_ESTABLISHED && below(4) == 0)
		cm_established(o->c, world.now);
}

/* The owner's own next step in its state. Releases the connection if there is none. */
static void step(struct owner *o)
{
	look(o);
	switch ((enum state)o->state) {
	case S_REQ_RCVD:
	case S_MRA_REQ_SENT:
		answer(o);
		break;
	case S_REP_RCVD:
	case S_MRA_REP_SENT:
		accept_rep(o);
		break;
	case S_ESTABLISHED:
		cm_send_dreq(o->c, world.now, "bye", 3);
		break;
	case S_DREQ_RCVD:
		cm_send_drep(o->c, world.now, "bye", 3);
		break;
	case S_SIDR_REQ_RCVD:
		resolve(o);
		break;
	case S_IDLE:
		let_go(o);
		return;
	case S_REQ_SENT:
	case S_MRA_REQ_RCVD:
	case S_REP_SENT:
	case S_MRA_REP_RCVD:
	case S_DREQ_SENT:
	case S_TIMEWAIT:
	case S_SIDR_REQ_SENT:
	case STATES:
		return;
	}
	look(o);
}

/* When it will do something about the state it is in: never, if that is another's to do. */
static void plan(struct owner *o)
{
	o->due = NEVER;
	switch ((enum state)o->state) {
	case S_REQ_RCVD:
	case S_MRA_REQ_SENT:
	case S_REP_RCVD:
	case S_MRA_REP_SENT:
	case S_DREQ_RCVD:
	case S_IDLE:
	case S_REP_SENT:
	case S_SIDR_REQ_RCVD:
		o->due = world.now + delay();
		break;
	case S_ESTABLISHED: /* one of both waits for the other, but not for ever */
		o->due = world.now + (below(2) ? delay() : 120 * SECOND);
		break;
	case S_TIMEWAIT: /* of no interest to some */
		if (below(3) == 0)
			o->due = world.now + delay();
		break;
	case S_REQ_SENT:
	case S_MRA_REQ_RCVD:
	case S_MRA_REP_RCVD:
	case S_DREQ_SENT:
	case S_SIDR_REQ_SENT:
	case STATES:
		break;
	}
}

static bool answered(const struct owner *o)
{
	return !o->active && (o->state == S_TIMEWAIT || o->state == S_IDLE) && !o->established;
}

static void act(struct owner *o)
{
	bool was_timewait = o->state == S_TIMEWAIT;

	look(o);
	if (world.now >= o->end || (was_timewait && o->state == S_TIMEWAIT)) {
		let_go(o);
		return;
	}
	if (!world.config->kind && per_mille(50))
		anything(o);
	else if (o->state == S_REP_SENT)
		data_came(o);
	else
		step(o);
	if (!o->live)
		return;
	look(o);
	plan(o);
	/* After a rejection or a resolution there are no more events. */
	if (answered(o) || (o->active && !o->established && o->state == S_TIMEWAIT))
		o->due = world.now;
}

void owners_act(void)
{
	struct owner *o;

	for (o = world.owners; o < world.owners + world.owner_count; o++)
		if (o->live && (o->due <= world.now || o->end <= world.now))
			act(o);
}

uint64_t owners_due(void)
{
	const struct owner *o;
	uint64_t next = NEVER;

	for (o = world.owners; o < world.owners + world.owner_count; o++) {
		if (o->live && o->due < next)
			next = o->due;
		if (o->live && o->end < next)
			next = o->end;
	}
	return next;
}

/* --- notifications of an owner --- */

/* The one at the other end is who it says it is, and has the QP it says. */
static void check_card(struct owner *o, const struct cm_message *m)
{
	struct cm_connection_info info;
	const struct owner *p;
	struct card card;

	memcpy(&card, m->private_data, sizeof(card));
	o->partner = card.number;
	if (world.config->forged)
		return;
	p = partner_of(o);
	cm_connection_info(o->c, &info);
	if (p && (p->side == o->side || p->active == o->active))
		world_fail("connected with the wrong one");
	if (p && !p->sidr && info.remote_qpn != p->qpn)
		world_fail("the QPN is not the peer's");
	if (card.partner && card.partner != o->number)
		world_fail("the answer to another's request");
}

void *owner_request(void *ctx, struct cm_connection *c, const struct cm_path *path,
		    const struct cm_message *m, uint16_t *reason)
{
	uint32_t dice = world.config->kind ? 100 : below(100);
	struct owner *o = dice < 7 ? NULL : owner_new(ctx == &world.cm[1], false);

	if (!o) {
		if (dice < 2 || dice >= 7)
			*reason = 0;
		world.result->refused++;
		return NULL;
	}
	o->c = c;
	o->sidr = m->type == CM_SIDR_REQ;
	check_card(o, m);
	look(o);
	if (below(4) == 0)
		step(o);
	plan(o);
	if (answered(o))
		o->due = world.now;
	return o;
}

/* The checks common to all events. */
static void check_event(const void *ctx, const struct owner *o, struct cm_connection *c,
			const struct cm_event *e)
{
	bool has_message = e->type != CM_EVENT_REQ_TIMEOUT && e->type != CM_EVENT_REP_TIMEOUT &&
			   e->type != CM_EVENT_DREQ_TIMEOUT && e->type != CM_EVENT_SIDR_TIMEOUT &&
			   e->type != CM_EVENT_TIMEWAIT_EXIT && e->type != CM_EVENT_RTU;
	char text[40];

	if (!o->live || o->c != c)
		world_fail("somebody who has no connection was told of one");
	if (o->side != (ctx == &world.cm[1]))
		world_fail("told by the wrong manager");
	if (has_message && !e->message)
		world_fail("an event without its message");
	if (may_hear[o->state] & 1u << e->type)
		return;
	snprintf(text, sizeof(text), "was told event %d", e->type);
	owner_fail(o, text);
}

void owner_event(void *ctx, void *owner, struct cm_connection *c, const struct cm_event *e)
{
	struct owner *o = owner;

	check_event(ctx, o, c, e);
	world.result->events[e->type]++;
	if (e->type == CM_EVENT_REP)
		check_card(o, e->message);
	if (e->type == CM_EVENT_DREQ && !o->established) {
		o->established = true; /* its RTU was lost */
		world.result->established[!o->active]++;
	}
	if (e->type == CM_EVENT_SIDR_REP && e->message->sidr_rep.status == CM_SIDR_VALID)
		world.result->resolved++;
	look(o);
	if (below(3) == 0)
		step(o);
	if (!o->live)
		return;
	plan(o);
	if (e->type == CM_EVENT_REP_TIMEOUT)
		o->due = world.now + delay(); /* over: no more events follow */
}
