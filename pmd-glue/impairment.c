/* SPDX-License-Identifier: BSD-3-Clause */
/* Seeded faults; see impairment.h. Queue's lcore. */
#include <string.h>

#include <rte_ether.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "impairment.h"
#include "pipeline/icrc.h"

struct waiting {
	struct rte_mbuf *m;
	uint64_t due;
};

struct held {
	struct rte_mbuf *m;
	uint64_t deadline;
	unsigned int span; /* later frames that still pass */
};

struct impairment {
	/* Written by the control thread at any time, each by itself: impairment_set(). */
	uint64_t loss, duplicate, reorder, corrupt, mark; /* thresholds of a 64-bit draw */
	uint64_t delay, jitter;				  /* cycles */
	uint64_t rate;					  /* bit/s */
	bool wanted;					  /* any of these */
	/* The queue's. */
	uint64_t random;
	uint64_t hz, hold; /* cycles per second, cycles */
	uint64_t last_due;
	uint64_t link_free; /* when the link will have sent what waits for it */
	struct rte_mempool *pool;
	uint64_t *count;
	unsigned int n_held;
	struct held held[IMPAIRMENT_HELD_MAX];
	uint32_t head, tail; /* free-running; tail - head frames wait */
	struct waiting waiting[IMPAIRMENT_QUEUE];
};

/* The fate of one frame: all draws, made at once. */
struct fate {
	bool loss, duplicate, reorder, corrupt, mark;
	uint64_t jitter, bit, span;
};

/* SplitMix64 (Steele, Lea, Flood 2014): any seed is good, one word of state. */
static uint64_t draw(struct impairment *imp)
{
	uint64_t z = imp->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A draw is below the threshold with probability p. */
static uint64_t threshold(double p)
{
	if (p <= 0)
		return 0;
	return p >= 1 ? UINT64_MAX : (uint64_t)(p * 0x1p64);
}

static void count(struct impairment *imp, enum port_counter_id which)
{
	__atomic_store_n(&imp->count[which], imp->count[which] + 1, __ATOMIC_RELAXED);
}

bool impairment_wanted(const struct port_impairment *c)
{
	return c->loss > 0 || c->duplicate > 0 || c->reorder > 0 || c->corrupt > 0 || c->mark > 0 ||
	       c->delay_us || c->jitter_us || c->rate_mbps;
}

static void publish(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static uint64_t published(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

void impairment_set(struct impairment *imp, const struct port_impairment *config)
{
	publish(&imp->loss, threshold(config->loss));
	publish(&imp->duplicate, threshold(config->duplicate));
	publish(&imp->reorder, threshold(config->reorder));
	publish(&imp->corrupt, threshold(config->corrupt));
	publish(&imp->mark, threshold(config->mark));
	publish(&imp->delay, config->delay_us * imp->hz / 1000000);
	publish(&imp->jitter, config->jitter_us * imp->hz / 1000000);
	publish(&imp->rate, config->rate_mbps * 1000000ull);
	__atomic_store_n(&imp->wanted, impairment_wanted(config), __ATOMIC_RELAXED);
}

bool impairment_passes(const struct impairment *imp)
{
	return !__atomic_load_n(&imp->wanted, __ATOMIC_RELAXED) && impairment_is_empty(imp);
}

struct impairment *impairment_create(const struct port_impairment *config, unsigned int queue,
				     struct rte_mempool *pool, uint64_t *counters, uint64_t hz)
{
	struct impairment *imp = rte_zmalloc_socket("impairment", sizeof(*imp), RTE_CACHE_LINE_SIZE,
						    pool->socket_id);

	if (!imp)
		return NULL;
	imp->random = config->seed;
	for (unsigned int i = 0; i < queue; i++)
		imp->random = draw(imp);
	imp->hz = hz;
	imp->hold = IMPAIRMENT_HOLD_US * hz / 1000000;
	impairment_set(imp, config);
	imp->pool = pool;
	imp->count = counters;
	return imp;
}

void impairment_destroy(struct impairment *imp)
{
	if (!imp)
		return;
	while (imp->head != imp->tail)
		rte_pktmbuf_free(imp->waiting[imp->head++ % IMPAIRMENT_QUEUE].m);
	for (unsigned int i = 0; i < imp->n_held; i++)
		rte_pktmbuf_free(imp->held[i].m);
	rte_free(imp);
}

/* How long the link takes, cycles. */
static uint64_t link_time(const struct impairment *imp, uint64_t rate, uint32_t bytes)
{
	return bytes * 8 * imp->hz / rate;
}

bool impairment_has_room(const struct impairment *imp, uint64_t now)
{
	const uint64_t rate = published(&imp->rate);

	if (rate && imp->link_free > now + link_time(imp, rate, IMPAIRMENT_LINK_BYTES))
		return false;
	return imp->tail - imp->head + 2 + IMPAIRMENT_HELD_MAX <= IMPAIRMENT_QUEUE;
}

bool impairment_is_empty(const struct impairment *imp)
{
	return imp->head == imp->tail && imp->n_held == 0;
}

static struct fate draw_fate(struct impairment *imp)
{
	struct fate f;

	f.loss = draw(imp) < published(&imp->loss);
	f.duplicate = draw(imp) < published(&imp->duplicate);
	f.reorder = draw(imp) < published(&imp->reorder);
	f.corrupt = draw(imp) < published(&imp->corrupt);
	f.bit = draw(imp);
	f.jitter = draw(imp);
	f.span = draw(imp);
	f.mark = f.span < published(&imp->mark); /* the span itself takes the low bits */
	return f;
}

/* A copy of m in its place, which may be changed; NULL: there is no buffer. */
static struct rte_mbuf *own_copy(struct impairment *imp, struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, imp->pool, 0, UINT32_MAX);

	if (!copy || copy->nb_segs != 1) {
		rte_pktmbuf_free(copy);
		count(imp, PORT_COUNTER_impaired_no_buffer);
		return NULL;
	}
	rte_pktmbuf_free(m);
	return copy;
}

/* A copy of m with one bit behind the Ethernet header flipped, which its ICRC reveals; m itself if
 * there is no buffer. */
static struct rte_mbuf *corrupted(struct impairment *imp, struct rte_mbuf *m, uint64_t bit)
{
	struct rte_mbuf *copy;
	uint32_t bits;

	if (rte_pktmbuf_data_len(m) <= RTE_ETHER_HDR_LEN)
		return m;
	copy = own_copy(imp, m);
	if (!copy)
		return m;
	icrc_complete(copy);
	bits = (rte_pktmbuf_data_len(copy) - RTE_ETHER_HDR_LEN) * 8;
	bit %= bits;
	*rte_pktmbuf_mtod_offset(copy, uint8_t *, RTE_ETHER_HDR_LEN + bit / 8) ^= 1 << (bit % 8);
	count(imp, PORT_COUNTER_impaired_corrupted);
	return copy;
}

/* A copy of m with the mark of a congested network; m itself if its sender does not allow that or
 * there is no buffer. */
static struct rte_mbuf *marked(struct impairment *imp, struct rte_mbuf *m)
{
	uint8_t first[WIRE_ENCAP_BYTES_MAX];
	uint32_t bytes = RTE_MIN(rte_pktmbuf_data_len(m), (uint32_t)sizeof(first));
	struct rte_mbuf *copy;

	memcpy(first, rte_pktmbuf_mtod(m, const void *), bytes);
	if (!wire_mark_congested(first, bytes))
		return m;
	copy = own_copy(imp, m);
	if (!copy)
		return m;
	memcpy(rte_pktmbuf_mtod(copy, void *), first, bytes);
	count(imp, PORT_COUNTER_impaired_marked);
	return copy;
}

/* When the frame has left the link. */
static uint64_t pass_link(struct impairment *imp, uint32_t bytes, uint64_t now)
{
	const uint64_t rate = published(&imp->rate);

	if (!rate)
		return now;
	imp->link_free =
		RTE_MAX(imp->link_free, now) + link_time(imp, rate, bytes + IMPAIRMENT_GAP_BYTES);
	return imp->link_free;
}

/* Appends to the queue of delayed frames; jitter stretches gaps but never reorders. */
static void line_up(struct impairment *imp, struct rte_mbuf *m, uint64_t now, uint64_t jitter)
{
	const uint64_t delay = published(&imp->delay), most = published(&imp->jitter);
	const uint64_t left = pass_link(imp, rte_pktmbuf_pkt_len(m), now);
	uint64_t due = left + delay + (most ? jitter % (most + 1) : 0);

	if (due < imp->last_due)
		due = imp->last_due;
	imp->last_due = due;
	imp->waiting[imp->tail++ % IMPAIRMENT_QUEUE] = (struct waiting){m, due};
	if (delay | most)
		count(imp, PORT_COUNTER_impaired_delayed);
}

/* A frame or time has passed: releases frames held long enough. */
static void release_held(struct impairment *imp, unsigned int passed, uint64_t now)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < imp->n_held; i++) {
		struct held h = imp->held[i];

		h.span -= passed;
		if (h.span == 0 || now >= h.deadline)
			line_up(imp, h.m, now, 0);
		else
			imp->held[kept++] = h;
	}
	imp->n_held = kept;
}

void impairment_take(struct impairment *imp, struct rte_mbuf *m, uint64_t now)
{
	struct fate f = draw_fate(imp);

	if (f.loss) {
		count(imp, PORT_COUNTER_impaired_lost);
		rte_pktmbuf_free(m);
		return;
	}
	if (f.mark)
		m = marked(imp, m);
	if (f.corrupt)
		m = corrupted(imp, m, f.bit);
	if (f.reorder && imp->n_held < IMPAIRMENT_HELD_MAX) {
		count(imp, PORT_COUNTER_impaired_reordered);
		imp->held[imp->n_held++] =
			(struct held){m, now + imp->hold, 1 + f.span % IMPAIRMENT_SPAN_MAX};
		return;
	}
	if (f.reorder)
		count(imp, PORT_COUNTER_impaired_no_buffer);
	if (f.duplicate) {
		count(imp, PORT_COUNTER_impaired_duplicated);
		rte_mbuf_refcnt_update(m, 1);
		line_up(imp, m, now, f.jitter);
	}
	line_up(imp, m, now, f.jitter);
	release_held(imp, 1, now);
}

uint16_t impairment_due(struct impairment *imp, uint64_t now, struct rte_mbuf **out, uint16_t n)
{
	uint16_t k = 0;

	if (imp->n_held)
		release_held(imp, 0, now);
	while (k < n && imp->head + k != imp->tail) {
		const struct waiting *w = &imp->waiting[(imp->head + k) % IMPAIRMENT_QUEUE];

		if (w->due > now)
			break;
		out[k++] = w->m;
	}
	return k;
}

void impairment_sent(struct impairment *imp, uint16_t n)
{
	imp->head += n;
}
