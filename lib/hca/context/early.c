/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that came early: see early.h. */
#include <rte_malloc.h>
#include "context/early.h"
#include "wire/psn.h"

enum {
	LOOK_NS = 500000,	  /* between two looks, at least */
	ROUND_NS = 100 * LOOK_NS, /* time to see every place */
	LOW_SHARE = 8,		  /* a pool is low when less than one buffer in LOW_SHARE is free */
	POOL_SHARE = 4,		  /* at most one buffer in POOL_SHARE may be kept */
};

/* The number of places that suits the engine's buffers. */
static uint32_t early_size(const struct engine *e)
{
	uint32_t pool = e->packets->size / POOL_SHARE / e->count;
	uint32_t size = RTE_MIN(e->settings.swpb_elements / 2, pool);

	return RTE_MAX(1u, size);
}

struct early *early_create(const struct engine *e, const char *name, size_t count_at)
{
	uint32_t size = early_size(e);
	struct early *t =
		engine_alloc(e, name, sizeof(*t) + (size_t)size * sizeof(struct early_place));

	if (t) {
		t->qps = e->qps;
		t->count_at = count_at;
		t->size = size;
	}
	return t;
}

void early_destroy(struct early *t)
{
	for (uint32_t i = 0; t && i < t->size; i++)
		rte_pktmbuf_free(t->place[i].m);
	rte_free(t);
}

static struct early_count *count_of(const struct early *t, const struct qp *q)
{
	return (struct early_count *)((char *)q + t->count_at);
}

/* Queue pairs begin at places far apart. */
static uint32_t early_place_of(const struct early *t, const struct qp *q, uint32_t psn)
{
	return (q->index * 2654435761u % t->size + psn) % t->size;
}

static bool is_of(const struct early_place *p, const struct qp *q, uint32_t psn)
{
	return p->m && p->index == q->index && p->psn == psn;
}

static struct rte_mbuf *empty(struct early *t, struct early_place *p)
{
	struct qp *q = qp_at(t->qps, p->index);
	struct rte_mbuf *m = p->m;

	p->m = NULL;
	count_of(t, q)->kept--;
	t->user[q->user]--;
	t->count--;
	return m;
}

static void early_discard(struct early *t, struct early_place *p)
{
	rte_pktmbuf_free(empty(t, p));
}

/* May the queue pair have a place that is free? */
static bool within_share(const struct early *t, const struct qp *q)
{
	uint32_t left = t->size - t->count, kept = count_of(t, q)->kept;

	return kept == 0 || (kept < left && t->user[q->user] < 3 * left);
}

/* Does the place's occupant hold more than the queue pair that wants it? */
static bool early_gives_way(const struct early *t, const struct early_place *p, const struct qp *q)
{
	const struct qp *holder = qp_at(t->qps, p->index);

	if (holder->user != q->user)
		return t->user[holder->user] > t->user[q->user];
	return count_of(t, holder)->kept > count_of(t, q)->kept;
}

bool early_keep(struct engine *e, struct early *t, struct qp *q, struct rte_mbuf *m, uint32_t psn,
		uint32_t expected)
{
	struct early_count *c = count_of(t, q);
	uint32_t first = c->kept ? c->first : expected;
	struct early_place *p = &t->place[early_place_of(t, q, psn)];

	if (t->low || psn_sub(psn, first) >= t->size || is_of(p, q, psn))
		return false;
	if (p->m ? !early_gives_way(t, p, q) : !within_share(t, q))
		return false;
	if (p->m)
		early_discard(t, p);
	*p = (struct early_place){.m = m, .since_ns = engine_now(e), .index = q->index, .psn = psn};
	c->first = first;
	c->kept++;
	t->user[q->user]++;
	t->count++;
	return true;
}

bool early_has(const struct early *t, const struct qp *q, uint32_t psn)
{
	return is_of(&t->place[early_place_of(t, q, psn)], q, psn);
}

bool early_map(const struct engine *e, const struct early *t, const struct qp *q, uint32_t psn,
	       uint64_t ns, uint8_t *map, unsigned bytes)
{
	uint32_t left = count_of(t, q)->kept, at = early_place_of(t, q, psn);
	bool any = false;

	memset(map, 0, bytes);
	for (unsigned i = 0; i < 8 * bytes && left; i++, psn = psn_add(psn, 1)) {
		const struct early_place *p = &t->place[at];

		at = at + 1 == t->size ? 0 : at + 1;
		if (unlikely(psn == PSN_MASK))
			at = early_place_of(t, q, 0);
		if (!is_of(p, q, psn))
			continue;
		left--;
		if (engine_now(e) - p->since_ns < ns)
			continue;
		map[i / 8] |= (uint8_t)(1u << i % 8);
		any = true;
	}
	return any;
}

struct rte_mbuf *early_take(struct early *t, struct qp *q, uint32_t psn)
{
	struct early_place *p = &t->place[early_place_of(t, q, psn)];

	return is_of(p, q, psn) ? empty(t, p) : NULL;
}

/* Drops what is kept of n PSNs. */
static void drop_range(struct early *t, struct qp *q, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n && count_of(t, q)->kept; i++) {
		uint32_t psn = psn_add(first, i);
		struct early_place *p = &t->place[early_place_of(t, q, psn)];

		if (is_of(p, q, psn))
			early_discard(t, p);
	}
}

unsigned early_pass(struct early *t, struct qp *q, uint32_t psn)
{
	struct early_count *c = count_of(t, q);

	drop_range(t, q, c->first, RTE_MIN(psn_sub(psn, c->first), t->size));
	c->first = psn;
	return c->kept;
}

void early_drop(struct early *t, struct qp *q)
{
	drop_range(t, q, count_of(t, q)->first, t->size);
}

void early_clear(struct early *t)
{
	for (uint32_t i = 0; i < t->size; i++)
		if (t->place[i].m)
			early_discard(t, &t->place[i]);
}

/* Places to look at after that time: the lcore may have slept. */
static uint32_t looks_after(const struct early *t, uint64_t ns)
{
	return ns < ROUND_NS ? (uint32_t)(t->size * ns / ROUND_NS) + 1 : t->size;
}

static bool is_low(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool) < pool->size / LOW_SHARE;
}

void early_look(struct engine *e, struct early *t, struct counters *c)
{
	uint64_t now_ns = engine_now(e), passed_ns = now_ns - t->looked_ns;
	uint32_t looks;

	if (likely(passed_ns < LOOK_NS))
		return;
	t->looked_ns = now_ns;
	t->low = is_low(e->packets) || is_low(e->clones);
	looks = t->low ? t->size : looks_after(t, passed_ns);
	for (; looks && t->count; looks--, t->hand = (t->hand + 1) % t->size) {
		struct early_place *p = &t->place[t->hand];

		if (!p->m || (!t->low && now_ns - p->since_ns < EARLY_NS))
			continue;
		count(c, COUNTER_early_dropped);
		early_discard(t, p);
	}
}
