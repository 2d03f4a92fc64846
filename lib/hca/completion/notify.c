/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work between polls, on every lcore that completes something: raises the events that clients
 * armed for, then rings the bells of sleeping clients. The only code of this folder that makes
 * system calls.
 */
#include <unistd.h>
#include <rte_branch_prediction.h>
#include "completion_priv.h"

/* The exchange orders "entries written" before "waiting read"; a client sets `waiting` and then
 * looks once more. */
static void notify_one(struct eq *q)
{
	struct client_page *page;
	uint64_t one = 1;

	if (!__atomic_exchange_n(&q->notify, 0, __ATOMIC_SEQ_CST))
		return;
	page = __atomic_load_n(&q->page, __ATOMIC_ACQUIRE);
	if (page && __atomic_exchange_n(&page->waiting, 0, __ATOMIC_SEQ_CST) &&
	    write(q->eventfd, &one, 8) < 0)
		return; /* its counter is full: it is readable as it is */
}

static void ring_bells(struct completion *c)
{
	if (likely(!__atomic_load_n(&c->notify, __ATOMIC_RELAXED)))
		return;
	if (!__atomic_exchange_n(&c->notify, 0, __ATOMIC_SEQ_CST))
		return;
	for (unsigned i = 0; i < __atomic_load_n(&c->eq_end, __ATOMIC_RELAXED); i++)
		if (__atomic_load_n(&c->eqs[i].notify, __ATOMIC_RELAXED))
			notify_one(&c->eqs[i]);
}

/* What no lcore has to itself. */
static void serve_common(struct completion *c, struct counters *counters)
{
	bool touched = __atomic_load_n(&c->touched, __ATOMIC_RELAXED) != LIST_END;
	bool pending = __atomic_load_n(&c->pending_eqs, __ATOMIC_RELAXED) != LIST_END;

	if (likely(!touched && !pending))
		return;
	if (__atomic_exchange_n(&c->serving, 1, __ATOMIC_SEQ_CST))
		return; /* another lcore is doing it, or will check again in its next round */
	if (touched)
		completion_serve_common(c, counters);
	if (unlikely(pending))
		completion_write_pending(c, counters);
	__atomic_store_n(&c->serving, 0, __ATOMIC_SEQ_CST);
}

bool completion_rests(const struct completion *c)
{
	return __atomic_load_n(&c->pending_eqs, __ATOMIC_RELAXED) == LIST_END &&
	       __atomic_load_n(&c->touched, __ATOMIC_RELAXED) == LIST_END;
}

void completion_round(struct completion *c, struct counters *counters)
{
	completion_serve_own(c, counters);
	serve_common(c, counters);
	ring_bells(c);
}
