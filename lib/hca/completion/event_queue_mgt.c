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

	/* Lcores also read some fields of queues that do not exist. */
	__atomic_store_n(&q->produced, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->notify, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->mask, UINT32_MAX, __ATOMIC_RELAXED);
	__atomic_store_n(&q->port_pending, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&q->gids_pending, 0, __ATOMIC_RELAXED);
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

	return page && __atomic_load_n(&q->produced, __ATOMIC_RELAXED) -
				       __atomic_load_n(&page->eq_consumer, __ATOMIC_ACQUIRE) <
			       EQ_ENTRIES;
}

static bool eq_reserve(struct eq *q, struct client_page *page, uint32_t *place)
{
	uint32_t produced = __atomic_load_n(&q->produced, __ATOMIC_RELAXED);

	do {
		if (produced - __atomic_load_n(&page->eq_consumer, __ATOMIC_ACQUIRE) >= EQ_ENTRIES)
			return false;
	} while (!__atomic_compare_exchange_n(&q->produced, &produced, produced + 1, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*place = produced;
	return true;
}

static void eq_write_entry(struct completion *c, struct counters *counters, uint32_t client,
			   struct client_page *page, uint32_t place, enum eqe_type type,
			   uint32_t number)
{
	struct eqe *to = &page->eq[place % EQ_ENTRIES];

	to->number = number;
	to->type = type;
	__atomic_store_n(&to->owner, (place / EQ_ENTRIES & 1) ^ 1, __ATOMIC_RELEASE);
	count(counters, COUNTER_events);
	__atomic_store_n(&c->eqs[client].notify, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&c->notify, 1, __ATOMIC_SEQ_CST);
}

static bool takes(const struct eq *q, enum eqe_type type)
{
	return type == EQE_COMPLETION || __atomic_load_n(&q->mask, __ATOMIC_RELAXED) >> type & 1;
}

enum eq_answer eq_write_event(struct completion *c, struct counters *counters, uint32_t client,
			      enum eqe_type type, uint32_t number)
{
	struct eq *q = &c->eqs[client];
	struct client_page *page;
	uint32_t place;

	if (!takes(q, type)) {
		count(counters, COUNTER_events_unmapped);
		return EQ_NOT_TAKEN;
	}
	page = __atomic_load_n(&q->page, __ATOMIC_ACQUIRE);
	if (!page)
		return EQ_NOT_TAKEN;
	if (unlikely(!eq_reserve(q, page, &place))) {
		count(counters, COUNTER_eq_overruns);
		return EQ_FULL;
	}
	eq_write_entry(c, counters, client, page, place, type, number);
	return EQ_WRITTEN;
}
