/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EventQueueMgt: one event queue for each client, in the client's page. Entries are written on any
 * stage; the client's bell is rung between polls (notify.c).
 */
#include <stddef.h>
#include "completion_priv.h"

void eq_write(struct completion *c, uint32_t client, struct client_page *page, int eventfd)
{
	struct eq *q = &c->eqs[client];

	q->produced = 0;
	q->notify = 0;
	q->eventfd = eventfd;
	if (client >= c->eq_end)
		__atomic_store_n(&c->eq_end, client + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&q->page, page, __ATOMIC_RELEASE);
}

void eq_remove(struct completion *c, uint32_t client)
{
	__atomic_store_n(&c->eqs[client].page, NULL, __ATOMIC_SEQ_CST);
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

bool eq_post(struct completion *c, struct counters *counters, uint32_t client, enum eqe_type type,
	uint32_t number)
{
	struct eq *q = &c->eqs[client];
	struct client_page *page = __atomic_load_n(&q->page, __ATOMIC_ACQUIRE);
	struct eqe *to;
	uint32_t place;

	if (!page)
		return false;
	if (!reserve(q, page, &place)) {
		count(counters, COUNTER_eq_overruns);
		return false;
	}
	to = &page->eq[place % EQ_ENTRIES];
	to->number = number;
	to->type = type;
	__atomic_store_n(&to->owner, (place / EQ_ENTRIES & 1) ^ 1, __ATOMIC_RELEASE);
	count(counters, COUNTER_events);
	__atomic_store_n(&q->notify, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&c->notify, 1, __ATOMIC_SEQ_CST);
	return true;
}
