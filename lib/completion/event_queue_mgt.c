/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EventQueueMgt: one event queue for each client, in the client's page. Entries are written on any
 * stage; the client's bell is rung between polls (notify.c).
 */
#include <stddef.h>
#include <rte_branch_prediction.h>
#include "completion_priv.h"

void eq_write(struct completion *c, uint32_t client, struct client_page *page, int eventfd)
{
	struct eq *q = &c->eqs[client];

	/* Lcores look at some fields of queues that are not there, too. */
	__atomic_store_n(&q->produced, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->notify, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->held, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->mask, UINT32_MAX, __ATOMIC_RELAXED);
	__atomic_store_n(&q->port_owed, 0, __ATOMIC_RELAXED);
	q->eventfd = eventfd;
	q->generation++;
	if (client >= c->eq_end)
		__atomic_store_n(&c->eq_end, client + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&q->page, page, __ATOMIC_RELEASE);
}

void eq_remove(struct completion *c, uint32_t client)
{
	__atomic_store_n(&c->eqs[client].page, NULL, __ATOMIC_SEQ_CST);
}

void eq_map(struct completion *c, uint32_t client, uint32_t mask)
{
	__atomic_store_n(&c->eqs[client].mask, mask, __ATOMIC_RELAXED);
}

bool eq_has_room(const struct completion *c, uint32_t client)
{
	const struct eq *q = &c->eqs[client];
	const struct client_page *page = __atomic_load_n(&q->page, __ATOMIC_ACQUIRE);

	return page && !__atomic_load_n(&q->held, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&q->produced, __ATOMIC_RELAXED) -
			       __atomic_load_n(&page->eq_consumer, __ATOMIC_ACQUIRE) <
		       EQ_ENTRIES;
}

static bool reserve(struct eq *q, struct client_page *page, uint32_t *place)
{
	uint32_t produced = __atomic_load_n(&q->produced, __ATOMIC_RELAXED);

	do {
		if (produced - __atomic_load_n(&page->eq_consumer, __ATOMIC_ACQUIRE) >= EQ_ENTRIES)
			return false;
	} while (!__atomic_compare_exchange_n(
		&q->produced, &produced, produced + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*place = produced;
	return true;
}

void eq_hold(struct completion *c, uint32_t client)
{
	__atomic_store_n(&c->eqs[client].held, 1, __ATOMIC_SEQ_CST);
}

void eq_release(struct completion *c, uint32_t client)
{
	__atomic_store_n(&c->eqs[client].held, 0, __ATOMIC_SEQ_CST);
}

/* What the client's EQ answers; READY: it lies in *page. */
static inline enum completion_answer open_eq(
	struct completion *c, struct counters *counters, uint32_t client, struct client_page **page)
{
	const struct eq *q = &c->eqs[client];

	if (unlikely(__atomic_load_n(&q->held, __ATOMIC_ACQUIRE))) {
		count(counters, COUNTER_eq_not_ready);
		return COMPLETION_NOT_READY;
	}
	*page = __atomic_load_n(&q->page, __ATOMIC_ACQUIRE);
	return *page ? COMPLETION_READY : COMPLETION_LOST;
}

static void fill(struct completion *c, struct counters *counters, uint32_t client,
	struct client_page *page, uint32_t place, enum eqe_type type, uint32_t number)
{
	struct eqe *to = &page->eq[place % EQ_ENTRIES];

	to->number = number;
	to->type = type;
	__atomic_store_n(&to->owner, (place / EQ_ENTRIES & 1) ^ 1, __ATOMIC_RELEASE);
	count(counters, COUNTER_events);
	__atomic_store_n(&c->eqs[client].notify, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&c->notify, 1, __ATOMIC_SEQ_CST);
}

enum completion_answer eq_request(struct completion *c, struct counters *counters, uint32_t client)
{
	struct client_page *page;

	return open_eq(c, counters, client, &page);
}

/* Reserves a place in the EQ at `page`. False: it is full, counted. */
static bool place_in(
	struct counters *counters, struct eq *q, struct client_page *page, uint32_t *place)
{
	if (likely(reserve(q, page, place)))
		return true;
	count(counters, COUNTER_eq_overruns);
	return false;
}

enum completion_answer eq_place(
	struct completion *c, struct counters *counters, uint32_t client, uint32_t *place)
{
	struct client_page *page;
	enum completion_answer answer = open_eq(c, counters, client, &page);

	if (answer == COMPLETION_READY && !place_in(counters, &c->eqs[client], page, place))
		return COMPLETION_LOST;
	return answer;
}

enum completion_answer eq_fill(struct completion *c, struct counters *counters, uint32_t client,
	uint32_t place, enum eqe_type type, uint32_t number)
{
	struct client_page *page;
	enum completion_answer answer = open_eq(c, counters, client, &page);

	if (answer == COMPLETION_READY)
		fill(c, counters, client, page, place, type, number);
	return answer;
}

static bool takes(const struct eq *q, enum eqe_type type)
{
	return type == EQE_COMPLETION || __atomic_load_n(&q->mask, __ATOMIC_RELAXED) >> type & 1;
}

bool eq_post(struct completion *c, struct counters *counters, uint32_t client, enum eqe_type type,
	uint32_t number)
{
	enum completion_answer answer;
	struct client_page *page;
	uint32_t place;

	if (!takes(&c->eqs[client], type)) {
		count(counters, COUNTER_events_unmapped);
		return false;
	}
	answer = open_eq(c, counters, client, &page);
	if (answer == COMPLETION_LOST)
		return false;
	if (answer == COMPLETION_READY && place_in(counters, &c->eqs[client], page, &place)) {
		fill(c, counters, client, page, place, type, number);
		return true;
	}
	if (answer == COMPLETION_NOT_READY)
		count(counters, COUNTER_eq_overruns);
	eq_owe(c, client, type, number);
	return false;
}
