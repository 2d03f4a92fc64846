/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resources that an HCA holds for its clients, counted at the source: contexts, timers, buffers.
 * All are 0 without clients once everything in flight has finished; the rest has leaked, except QP
 * 1 and two CQs of the connection manager, a client like any other. Under the daemon's lock;
 * changes nothing.
 */
#include <rte_mempool.h>
#include "device.h"
#include "held.h"
#include "lcores.h"
#include "requester/requester.h"
#include "residence.h"
#include "responder/responder.h"
#include "views.h"

/* The number of `count` contexts of `stride` bytes that have a nonzero number (a uint32_t at
 * `number`). */
static uint64_t held_in_use(const void *number, size_t stride, uint32_t count)
{
	struct residence pages;
	uint64_t n = 0;

	residence_init(&pages, number, (count - 1) * stride + sizeof(uint32_t));
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t *at = (const uint32_t *)((uintptr_t)number + i * stride);

		n += is_resident(&pages, at) && __atomic_load_n(at, __ATOMIC_ACQUIRE);
	}
	return n;
}

struct held_contexts held_contexts(const struct device *v)
{
	const struct hca *h = v->hca;

	return (struct held_contexts){
		.qps = held_in_use(&h->qps.qps->qpn, sizeof(struct qp), h->qps.count),
		.cqs = held_in_use(&h->completion.cqs->cqn, sizeof(struct cq),
				   h->completion.cq_count),
		.srqs = held_in_use(&h->srqs.srqs->srqn, sizeof(struct srq), h->srqs.count),
	};
}

static uint64_t in_fifos(const struct engine *e)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		n += ring_used(e->channel[i].ring);
	return n;
}

struct held {
	struct held_contexts contexts;
	uint64_t leaving, timers, elements, descriptors, in_fifos, events, stock;
};

static struct held held_of(const struct device *v)
{
	const struct hca *h = v->hca;
	struct held held = {.contexts = held_contexts(v),
			    .leaving = ceu_leaving(v->ceu),
			    .events =
				    h->events->populated_size - rte_mempool_avail_count(h->events)};

	for (unsigned i = 0; i < h->config.engines; i++) {
		const struct engine *e = &h->engines[i];

		/* not at the same instant as the pool's count */
		held.events -= RTE_MIN(held.events, requester_spare_events(e));
		held.timers += requester_timers_armed(e);
		held.elements += requester_elements(e);
		held.descriptors += __atomic_load_n(&e->held_total, __ATOMIC_RELAXED);
		held.in_fifos += in_fifos(e);
		held.stock += requester_stock(e) + responder_stock(e);
	}
	return held;
}

void held_put(struct device *v, json_t *to)
{
	struct held held;
	const struct held *it = &held;

	/* Makes what the lcores wrote before visible. */
	lcores_quiesce(v->lcores);
	held = held_of(v);
	dict_string(to, "hca", v->section->name);
	HELD_VIEW(PUT)
}
