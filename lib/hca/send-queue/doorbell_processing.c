/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DoorbellProcessing (doc/modules.md#doorbellprocessing): takes doorbells from the clients' FIFOs,
 * finds the queue pair, fetches the descriptor that the doorbell names and passes both to
 * WQEScheduler. Reads QP contexts, writes none. Stage doorbell_wqe. A doorbell counts only for a
 * queue pair of this engine and of the client that rang it. Everything in a doorbell page is loaded
 * only once.
 */
#include <errno.h>
#include <string.h>
#include "descriptors.h"
#include "doorbell_processing.h"
#include "pipeline/parking.h"

enum {
	CLIENT_DESCRIPTORS_MIN = 4,
	USER_DESCRIPTORS_MIN = 64,
	COLLECT_POLLS = 4, /* between two looks while WQEParse is busy */
	COUNT_POLLS = 16,  /* between two counts of what users hold */
	USER_UNKNOWN = USERS_MAX,
	FEW_CLIENTS = 64,    /* up to this many, each poll checks all; else up to this many */
	LATELY_NS = 200000,  /* ... that have rung, all that have within this time ... */
	SILENT_PER_POLL = 8, /* ... and this many of the others in turn */
};

struct doorbell_fifo {
	struct uar_page *uar; /* atomic; control thread writes */
	uint32_t consumer;
	uint32_t user;	  /* of the client; USER_UNKNOWN until it rings for the first time */
	uint64_t rung_ns; /* when a doorbell was last taken; 0: never, which is long ago */
	bool recent;	  /* in dbp.recent */
};

struct dbp {
	uint32_t end;  /* one past the highest client that was ever attached; atomic; control thread
			  writes */
	uint32_t next; /* client to begin with, for fairness; among many: the silent one */
	/* If there are many: those that have rung, in any order, and the one to begin with. */
	uint32_t recent[CLIENTS_MAX], recent_count, recent_next;
	bool asleep;
	uint32_t cpu; /* of the lcore, plus 1; 0: not known */
	struct doorbell_fifo fifo[CLIENTS_MAX];
	uint32_t polls, counted; /* polls so far; when users' descriptors were last counted */
	uint32_t user_held[USERS_MAX + 1];
};

int dbp_create(struct engine *e)
{
	e->dbp = engine_alloc(e, "dbp", sizeof(struct dbp));
	return e->dbp ? 0 : -ENOMEM;
}

void dbp_destroy(struct engine *e)
{
	rte_free(e->dbp);
	e->dbp = NULL;
}

void dbp_set_client(struct engine *e, uint32_t client, struct uar_page *uar)
{
	struct dbp *d = e->dbp;

	if (uar) {
		d->fifo[client].consumer = 0;
		d->fifo[client].rung_ns = 0;
		d->fifo[client].user = USER_UNKNOWN;
		__atomic_store_n(&uar->daemon_cpu, d->cpu, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&d->fifo[client].uar, uar, __ATOMIC_RELEASE);
	if (!uar)
		return;
	if (client >= d->end)
		__atomic_store_n(&d->end, client + 1, __ATOMIC_RELEASE);
	/* Publish, then look: either the lcore that announces its sleep sees the page, or we see
	 * that it sleeps. If it wakes just now, some doorbells kick in vain. */
	parking_fence();
	__atomic_store_n(&uar->daemon_asleep, __atomic_load_n(&d->asleep, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
}

static struct uar_page *client_uar(struct dbp *d, uint32_t client)
{
	return __atomic_load_n(&d->fifo[client].uar, __ATOMIC_ACQUIRE);
}

/* The doorbell at the consumer's place, if its phase says that it was rung in this round. */
static inline bool peek(const struct doorbell_fifo *f, const struct uar_page *uar,
			uint64_t *doorbell)
{
	uint32_t phase = f->consumer / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;

	*doorbell = __atomic_load_n(&uar->doorbell[f->consumer % UAR_DOORBELLS], __ATOMIC_ACQUIRE);
	return ((uint32_t)*doorbell & DOORBELL_PHASE) == phase;
}

void dbp_set_asleep(struct engine *e, bool asleep)
{
	struct dbp *d = e->dbp;
	uint32_t end = __atomic_load_n(&d->end, __ATOMIC_ACQUIRE);

	if (d->asleep == asleep)
		return;
	__atomic_store_n(&d->asleep, asleep, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < end; i++) {
		struct uar_page *uar = client_uar(d, i);

		if (uar)
			__atomic_store_n(&uar->daemon_asleep, asleep, __ATOMIC_RELAXED);
	}
}

void dbp_set_cpu(struct engine *e, unsigned cpu)
{
	e->dbp->cpu = cpu + 1;
}

static enum dbp_crowd crowd_of(const struct uar_page *uar, unsigned cpu)
{
	if (__atomic_load_n(&uar->client_cpu, __ATOMIC_RELAXED) != cpu + 1)
		return CROWD_NONE;
	return __atomic_load_n(&uar->client_yields, __ATOMIC_RELAXED) ? CROWD_YIELDS : CROWD_SPINS;
}

enum dbp_crowd dbp_crowd(const struct engine *e, unsigned cpu)
{
	const struct dbp *d = e->dbp;
	uint32_t end = __atomic_load_n(&d->end, __ATOMIC_ACQUIRE);
	uint64_t now_ns = engine_now(e);
	enum dbp_crowd most = CROWD_NONE, one;

	for (uint32_t i = 0; i < end; i++) {
		const struct doorbell_fifo *f = &d->fifo[i];
		const struct uar_page *uar = __atomic_load_n(&f->uar, __ATOMIC_ACQUIRE);

		if (!uar || now_ns > f->rung_ns + DBP_ACTIVE_NS)
			continue;
		one = crowd_of(uar, cpu);
		most = RTE_MAX(most, one);
	}
	return most;
}

bool dbp_pending(struct engine *e)
{
	struct dbp *d = e->dbp;
	uint32_t end = __atomic_load_n(&d->end, __ATOMIC_ACQUIRE);
	uint64_t doorbell;

	for (uint32_t i = 0; i < end; i++) {
		struct uar_page *uar = client_uar(d, i);

		if (uar && peek(&d->fifo[i], uar, &doorbell))
			return true;
	}
	return false;
}

/* The queue pair that this client may ring for, or NULL with the reason counted. */
static struct qp *doorbell_qp(struct engine *e, uint32_t client, uint32_t qpn, struct counters *c)
{
	struct qp *q = qp_find(e->qps, qpn);
	enum qp_state state;

	if (unlikely(!q || q->client != client || q->engine != e->index)) {
		count(c, COUNTER_drop_doorbell_qpn);
		return NULL;
	}
	state = qp_state(q);
	if (unlikely(state != QP_RTS && state != QP_ERR && state != QP_SQD && state != QP_SQE)) {
		count(c, COUNTER_drop_doorbell_state);
		return NULL;
	}
	return q;
}

/* Fetches the descriptor of one doorbell into m. False: the doorbell was refused (counted) or needs
 * no descriptor. */
static bool take_doorbell(struct engine *e, uint32_t client, uint64_t doorbell, struct rte_mbuf *m,
			  struct counters *c)
{
	uint32_t w0 = (uint32_t)doorbell, w1 = (uint32_t)(doorbell >> 32);
	struct request *r = request_of(m);
	struct qp *q = doorbell_qp(e, client, w1 >> DOORBELL_QPN_SHIFT, c);
	uint32_t units = w1 & DOORBELL_SIZE_MASK;

	if (!q)
		return false;
	if (unlikely(units == 0 && (w0 & DOORBELL_OPCODE_MASK) == USER_NOP)) {
		wake_post(&e->wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
		return false;
	}
	if (unlikely(!wqe_fetch(q, (w0 >> DOORBELL_OFFSET_SHIFT) * WQE_UNIT_BYTES, units, m))) {
		count(c, COUNTER_drop_doorbell_size);
		return false;
	}
	wqe_prefetch_chain(q, m, CHAIN_AHEAD); /* those behind follow when it is parsed */
	r->qpn = qp_number(q);
	r->opcode = w0 & DOORBELL_OPCODE_MASK;
	r->flags = w0 & DOORBELL_FENCE ? REQUEST_FENCE : 0;
	r->client = client;
	r->epoch = q->epoch;
	r->sq_epoch = __atomic_load_n(&q->sq_epoch, __ATOMIC_RELAXED);
	r->next = NULL;
	return true;
}

/* Prefetches the descriptor that a doorbell names, which has not been checked, and what is read of
 * its queue pair, unless that is `before`. Returns the queue pair. */
static const struct qp *prefetch_descriptor(struct engine *e, uint64_t doorbell,
					    const struct qp *before)
{
	uint32_t offset = ((uint32_t)doorbell >> DOORBELL_OFFSET_SHIFT) * WQE_UNIT_BYTES;
	uint32_t w1 = (uint32_t)(doorbell >> 32);
	const struct qp *q = qp_find(e->qps, w1 >> DOORBELL_QPN_SHIFT);

	if (!q)
		return before;
	if (q != before)
		qp_prefetch_requester(q);
	wqe_prefetch(q, offset, w1 & DOORBELL_SIZE_MASK);
	return q;
}

/* Takes up to n waiting doorbells into bell[]. All at once, so that the fetches of their queue
 * pairs overlap, and those of their descriptors from the client's cache. */
static unsigned look(struct engine *e, struct doorbell_fifo *f, struct uar_page *uar,
		     uint64_t *bell, unsigned n)
{
	const struct qp *q = NULL;
	unsigned got = 0;

	while (got < n && peek(f, uar, &bell[got])) {
		qp_prefetch_queue(e->qps, (uint32_t)(bell[got] >> 32) >> DOORBELL_QPN_SHIFT);
		f->consumer++;
		got++;
	}
	for (unsigned i = 0; i < got; i++)
		q = prefetch_descriptor(e, bell[i], q);
	return got;
}

static void count_users(const struct engine *e, struct dbp *d)
{
	uint32_t end = __atomic_load_n(&d->end, __ATOMIC_ACQUIRE);

	memset(d->user_held, 0, sizeof(d->user_held));
	for (uint32_t i = 0; i < end; i++)
		d->user_held[d->fifo[i].user] += __atomic_load_n(&e->held[i], __ATOMIC_RELAXED);
	d->counted = d->polls;
}

/* How many more descriptors a client's user may hold when more than half are in use. The limit is
 * twice as many as are free, or USER_DESCRIPTORS_MIN if that is more. What the user's clients have
 * given back counts a little later. */
static __rte_noinline uint32_t user_share(const struct engine *e, uint32_t client, uint32_t left)
{
	struct dbp *d = e->dbp;
	uint32_t most = RTE_MAX(2 * left, (uint32_t)USER_DESCRIPTORS_MIN), held;

	if (d->polls - d->counted >= COUNT_POLLS)
		count_users(e, d);
	held = d->fifo[client].user == USER_UNKNOWN ? 0 : d->user_held[d->fifo[client].user];
	return most - RTE_MIN(most, held);
}

bool dbp_user_has_many(const struct engine *e, uint32_t user)
{
	uint32_t total = __atomic_load_n(&e->held_total, __ATOMIC_RELAXED);

	return e->dbp->user_held[user] + total > e->descriptor_share;
}

/*
 * How many doorbells of a client may be taken now: it may hold as many descriptors as the engine
 * has free, so that none can take them all; and a few in any case, unless other clients of its user
 * hold many. The rest stay in its own FIFO.
 */
static unsigned client_share(const struct engine *e, uint32_t client, unsigned n)
{
	uint32_t held = __atomic_load_n(&e->held[client], __ATOMIC_RELAXED);
	uint32_t total = __atomic_load_n(&e->held_total, __ATOMIC_RELAXED);
	uint32_t left = e->descriptor_share - RTE_MIN(e->descriptor_share, total);
	uint32_t most = RTE_MAX(left, (uint32_t)CLIENT_DESCRIPTORS_MIN);
	uint32_t more = most - RTE_MIN(most, held);

	if (unlikely(left < e->descriptor_share / 2))
		more = RTE_MIN(more, user_share(e, client, left));
	return RTE_MIN(n, more);
}

/* The user of a request's queue pair, which may just have been destroyed. */
static __rte_noinline uint32_t user_of(const struct engine *e, struct rte_mbuf *m)
{
	const struct qp *q = qp_find(e->qps, request_of(m)->qpn);

	return q ? q->user : USER_UNKNOWN;
}

/* Takes up to n doorbells of one client. Returns how many descriptors went to out[]. */
static __rte_always_inline unsigned take_client(struct engine *e, uint32_t client,
						struct rte_mbuf **out, unsigned n)
{
	struct dbp *d = e->dbp;
	struct counters *c = stage_counters(e, STAGE_DOORBELL_WQE);
	struct uar_page *uar = client_uar(d, client);
	struct doorbell_fifo *f = &d->fifo[client];
	struct rte_mbuf *m[BURST];
	uint64_t bell[BURST];
	unsigned bells = uar ? look(e, f, uar, bell, client_share(e, client, n)) : 0;
	unsigned got = 0, refused = 0;

	if (!bells)
		return 0;
	if (unlikely(rte_mempool_get_bulk(e->descriptors, (void **)m, bells) != 0)) {
		count(c, COUNTER_wqe_descriptor_empty);
		f->consumer -= bells; /* they stay where they are */
		return 0;
	}
	for (unsigned i = 0; i < bells; i++) {
		struct rte_mbuf *next = m[i - refused];

		if (take_doorbell(e, client, bell[i], next, c))
			out[got++] = next;
		else
			refused++;
	}
	if (unlikely(refused))
		rte_mempool_put_bulk(e->descriptors, (void **)&m[got], refused);
	if (got) {
		f->rung_ns = engine_now(e);
		if (unlikely(!f->recent)) {
			f->recent = true;
			d->recent[d->recent_count++] = client;
		}
		if (unlikely(f->user == USER_UNKNOWN))
			f->user = user_of(e, out[0]);
		d->user_held[f->user] += got;
	}
	descriptors_note(e, client, got);
	count_n(c, COUNTER_doorbells, bells);
	__atomic_store_n(&uar->consumer_index, f->consumer, __ATOMIC_RELEASE);
	return got;
}

/* Advances *at cyclically through 0 to n - 1. Returns it. */
static inline uint32_t dbp_step(uint32_t *at, uint32_t n)
{
	if (++*at >= n)
		*at = 0;
	return *at;
}

static unsigned poll_all(struct engine *e, uint32_t end, struct rte_mbuf **m, unsigned room)
{
	struct dbp *d = e->dbp;
	unsigned got = 0;

	for (uint32_t i = 0; i < end && got < room; i++)
		got += take_client(e, dbp_step(&d->next, end), m + got, room - got);
	return got;
}

static __rte_noinline unsigned take_one_of_many(struct engine *e, uint32_t client,
						struct rte_mbuf **out, unsigned n)
{
	return take_client(e, client, out, n);
}

static unsigned poll_silent(struct engine *e, uint32_t end, struct rte_mbuf **m, unsigned room)
{
	struct dbp *d = e->dbp;
	unsigned got = 0;

	for (uint32_t i = 0; i < SILENT_PER_POLL && got < room; i++) {
		uint32_t client = dbp_step(&d->next, end);

		if (!d->fifo[client].recent)
			got += take_one_of_many(e, client, m + got, room - got);
	}
	return got;
}

/* Should each poll check this client? Yes if it has rung lately, or if few have rung at all. */
static bool stays(const struct engine *e, const struct doorbell_fifo *f)
{
	return __atomic_load_n(&f->uar, __ATOMIC_ACQUIRE) &&
	       (e->dbp->recent_count <= FEW_CLIENTS || engine_now(e) <= f->rung_ns + LATELY_NS);
}

static unsigned poll_recent(struct engine *e, struct rte_mbuf **m, unsigned room)
{
	struct dbp *d = e->dbp;
	unsigned got = 0;

	for (uint32_t i = d->recent_count; i > 0 && got < room; i--) {
		uint32_t client = d->recent[dbp_step(&d->recent_next, d->recent_count)];
		unsigned taken = take_one_of_many(e, client, m + got, room - got);
		if (!taken && !stays(e, &d->fifo[client])) {
			d->fifo[client].recent = false;
			d->recent[d->recent_next] = d->recent[--d->recent_count];
		}
		got += taken;
	}
	return got;
}

/* Checking a client's page costs a cache line or two, and one user may have a thousand clients:
 * idle ones must not slow down each round for the others. */
static __rte_noinline unsigned poll_many(struct engine *e, uint32_t end, struct rte_mbuf **m,
					 unsigned room)
{
	/* The silent ones get half of the room at most. */
	unsigned got = poll_silent(e, end, m, (room + (e->dbp->polls & 1)) / 2);

	return got + poll_recent(e, m + got, room - got);
}

static __rte_noinline unsigned dbp_work(struct engine *e)
{
	struct dbp *d = e->dbp;
	struct channel *out = &e->channel[CHANNEL_DBP_WS];
	uint32_t end = __atomic_load_n(&d->end, __ATOMIC_ACQUIRE);
	unsigned room = RTE_MIN(channel_room(out), source_burst(e));
	struct rte_mbuf *m[BURST];
	unsigned got;

	d->polls++;
	/* Before the lcore sleeps, no client may be missed. */
	if (likely(end <= FEW_CLIENTS || d->asleep))
		got = poll_all(e, end, m, room);
	else
		got = poll_many(e, end, m, room);
	if (got)
		channel_put(out, m, got);
	return got;
}

/* WQEParse has enough to do for these polls: doorbells are left to accumulate, so that the fetches
 * of more queue pairs and descriptors overlap. Not before a sleep, which none must be missed by, nor
 * under a step, which is to take one. */
static inline bool dbp_collects(const struct engine *e)
{
	const struct dbp *d = e->dbp;

	return d->polls % COLLECT_POLLS && !d->asleep && !engine_is_watched(e) &&
	       ring_used(e->channel[CHANNEL_WS_WP].in) >= (COLLECT_POLLS - 1) * BURST;
}

unsigned dbp_poll(struct engine *e)
{
	if (__atomic_load_n(&e->dbp->end, __ATOMIC_ACQUIRE) <= FEW_CLIENTS &&
	    (dbp_collects(e) || !dbp_pending(e))) {
		e->dbp->polls++;
		return 0;
	}
	return dbp_work(e);
}
