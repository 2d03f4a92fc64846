/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EventQueueMgt: posts events, and keeps those that did not fit into their client's event queue.
 * One word per object keeps them until there is room, so a client that ignores its events loses
 * none of those that must not be lost (a QP's last descriptor, an SRQ's limit, an error), and
 * cannot make memory grow.
 *
 * Written by any stage that raises events; served between polls, a part of the objects at a time,
 * so as not to delay an lcore.
 */
#include <rte_branch_prediction.h>
#include "completion_priv.h"

enum { LOOK_MAX = 1024 }; /* objects visited in one turn */

static const struct {
	uint8_t bit; /* in its object's word; 0: not of an object */
	uint8_t of;  /* enum event_object */
} pending_as[32] = {
	[EQE_COMM_EST] = {1, EVENT_OF_QP},	   [EQE_SQ_DRAINED] = {2, EVENT_OF_QP},
	[EQE_WQ_CATAS_ERROR] = {4, EVENT_OF_QP},   [EQE_WQ_INVAL_REQ_ERROR] = {8, EVENT_OF_QP},
	[EQE_WQ_ACCESS_ERROR] = {16, EVENT_OF_QP}, [EQE_LAST_WQE] = {32, EVENT_OF_QP},
	[EQE_PATH_MIG] = {64, EVENT_OF_QP},	   [EQE_PATH_MIG_ERR] = {128, EVENT_OF_QP},
	[EQE_SRQ_ERROR] = {1, EVENT_OF_SRQ},	   [EQE_SRQ_LIMIT] = {2, EVENT_OF_SRQ},
	[EQE_CQ_ERROR] = {1, EVENT_OF_CQ},
};

/* The reverse: the event of each bit of a word, lowest first. */
static const uint8_t type_of[EVENT_OBJECTS][8] = {
	[EVENT_OF_QP] = {EQE_COMM_EST, EQE_SQ_DRAINED, EQE_WQ_CATAS_ERROR, EQE_WQ_INVAL_REQ_ERROR,
			 EQE_WQ_ACCESS_ERROR, EQE_LAST_WQE, EQE_PATH_MIG, EQE_PATH_MIG_ERR},
	[EVENT_OF_SRQ] = {EQE_SRQ_ERROR, EQE_SRQ_LIMIT},
	[EVENT_OF_CQ] = {EQE_CQ_ERROR},
};

/* A word: number, client, the client's generation, types. */
#define OWNER_MASK	(~(uint64_t)0xff)
#define CLIENT_OF(word) ((uint32_t)((word) >> 16 & 0xffffff))
#define NUMBER_OF(word) ((uint32_t)((word) >> 40))

static uint64_t pending_owner_of(const struct completion *c, uint32_t client, uint32_t number)
{
	return (uint64_t)number << 40 | (uint64_t)client << 16 |
	       (uint64_t)c->eqs[client].generation << 8;
}

static void pending_list(struct completion *c, uint32_t client)
{
	struct eq *q = &c->eqs[client];
	uint32_t head;

	if (__atomic_exchange_n(&q->listed, 1, __ATOMIC_SEQ_CST))
		return;
	head = __atomic_load_n(&c->pending_eqs, __ATOMIC_RELAXED);
	do {
		q->next_pending = head;
	} while (!__atomic_compare_exchange_n(&c->pending_eqs, &head, client, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* Marks the event pending. Drops those of a former object of that index. */
static void note(struct pending_events *pending, uint64_t owner, uint32_t number, uint8_t bit)
{
	uint64_t *word = &pending->word[number & pending->mask];
	uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED), after;

	do {
		after = ((before & OWNER_MASK) == owner ? before : owner) | bit;
	} while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
}

void eq_defer(struct completion *c, uint32_t client, enum eqe_type type, uint32_t number)
{
	struct eq *q = &c->eqs[client];

	if (type == EQE_PORT_CHANGE)
		__atomic_store_n(&q->port_pending, 1 + number, __ATOMIC_SEQ_CST);
	else if (type == EQE_GID_CHANGE)
		__atomic_store_n(&q->gids_pending, 1, __ATOMIC_SEQ_CST);
	else if (pending_as[type].bit && number != 0)
		note(&c->pending[pending_as[type].of], pending_owner_of(c, client, number), number,
		     pending_as[type].bit);
	else
		return;
	__atomic_store_n(&q->newly_pending, 1, __ATOMIC_SEQ_CST);
	pending_list(c, client);
}

bool eq_post(struct completion *c, struct counters *counters, uint32_t client, enum eqe_type type,
	     uint32_t number)
{
	enum eq_answer answer = eq_write_event(c, counters, client, type, number);

	if (unlikely(answer == EQ_FULL))
		eq_defer(c, client, type, number);
	return answer == EQ_WRITTEN;
}

void eq_forget(struct completion *c, enum event_object of, uint32_t index)
{
	uint64_t *word = &c->pending[of].word[index];

	if (__atomic_load_n(word, __ATOMIC_RELAXED))
		__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
}

/* Raises the events of a word; those that find no room stay pending. */
static void raise_events(struct completion *c, struct counters *counters, enum event_object of,
			 uint64_t word)
{
	for (unsigned bits = (uint8_t)word; bits; bits &= bits - 1)
		if (eq_post(c, counters, CLIENT_OF(word),
			    (enum eqe_type)type_of[of][__builtin_ctz(bits)], NUMBER_OF(word)))
			count(counters, COUNTER_events_delayed);
}

/* Visits an object for a client. */
static void visit_object(struct completion *c, struct counters *counters, uint32_t client,
			 enum event_object of, uint32_t index)
{
	uint64_t *at = &c->pending[of].word[index], word = __atomic_load_n(at, __ATOMIC_RELAXED);

	if (likely(word == 0) || CLIENT_OF(word) != client)
		return;
	word = __atomic_exchange_n(at, 0, __ATOMIC_SEQ_CST); /* bits may have been added since */
	if ((word & OWNER_MASK) == pending_owner_of(c, client, NUMBER_OF(word)))
		raise_events(c, counters, of, word);
}

/* Visits the next object, kind after kind. */
static void visit_next(struct completion *c, struct counters *counters, uint32_t client,
		       struct eq *q)
{
	enum event_object of = EVENT_OBJECTS - q->kinds_left;

	visit_object(c, counters, client, of, q->look_at);
	if (q->look_at++ == c->pending[of].mask) {
		q->look_at = 0;
		q->kinds_left--;
	}
}

static void raise_of_port(struct completion *c, struct counters *counters, uint32_t client)
{
	struct eq *q = &c->eqs[client];
	uint32_t pending = __atomic_exchange_n(&q->port_pending, 0, __ATOMIC_SEQ_CST);
	uint32_t gids = __atomic_exchange_n(&q->gids_pending, 0, __ATOMIC_SEQ_CST);

	if (pending && eq_post(c, counters, client, EQE_PORT_CHANGE, pending - 1))
		count(counters, COUNTER_events_delayed);
	if (gids && eq_post(c, counters, client, EQE_GID_CHANGE, 0))
		count(counters, COUNTER_events_delayed);
}

/* Serves a part of a client's objects. False: none is left to visit. */
static bool serve_client(struct completion *c, struct counters *counters, uint32_t client)
{
	struct eq *q = &c->eqs[client];

	if (q->kinds_left == 0) {
		if (!__atomic_exchange_n(&q->newly_pending, 0, __ATOMIC_SEQ_CST))
			return false;
		q->kinds_left = EVENT_OBJECTS;
		q->look_at = 0;
		raise_of_port(c, counters, client);
	}
	for (unsigned i = 0; i < LOOK_MAX && q->kinds_left && eq_has_room(c, client); i++)
		visit_next(c, counters, client, q);
	return true;
}

/* A client without room is visited again in the next round, at the cost of a load of its index. */
void completion_write_pending(struct completion *c, struct counters *counters)
{
	uint32_t client = __atomic_exchange_n(&c->pending_eqs, LIST_END, __ATOMIC_SEQ_CST), next;

	for (; client != LIST_END; client = next) {
		struct eq *q = &c->eqs[client];

		next = q->next_pending;
		__atomic_store_n(&q->listed, 0, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&q->page, __ATOMIC_ACQUIRE))
			q->kinds_left = 0; /* the client has disconnected */
		else if (!eq_has_room(c, client) || serve_client(c, counters, client))
			pending_list(c, client);
	}
}
