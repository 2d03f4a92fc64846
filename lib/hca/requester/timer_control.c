/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TimerControl (doc/modules.md#timercontrol): two timers for each QP, Loss and RNR, on a hierarchy
 * of hashed wheels. A slot of wheel 0 is one tick wide, a slot of each further wheel 8 times as
 * wide as one of the wheel before. An entry is on the first wheel that reaches as far as its
 * deadline; when the time of its slot comes it is due, or near enough for an earlier wheel. So
 * setting, restarting and stopping are O(1), an entry is visited at most once per wheel, and the
 * cost of a tick depends on the entries due, not on the number of armed timers. Stage
 * requester_recv.
 *
 * A Loss timer is set when a QP begins to have packets outstanding. A restart costs nothing:
 * RequesterRecvControl records the time of the last progress in the QP (rrc.progress_ns), and an
 * entry that comes due compares it; if there was progress the entry goes back onto the wheel for
 * the remaining time. So an entry fires within [Ttr, Ttr + 1 tick] of the last progress (C9-139: at
 * most 4·Ttr). Nor is a timer stopped: one that comes due with nothing to wait for is removed.
 * RequesterRecvControl counts the retries, since NAKs count, too, and acknowledgements reload them.
 * An entry survives neither its QP nor a reuse of its number: the QP's teardown removes it.
 */
#include <errno.h>
#include <rte_malloc.h>
#include "base/assert.h"
#include "buffer_shares.h"
#include "multi_queue.h"
#include "outstanding.h"
#include "pipeline/parking.h"
#include "requester/requester.h"
#include "requester_recv_control.h"
#include "timer_control.h"

#define TC_END 0xffffffffu

enum {
	LEVEL_SHIFT = 3, /* log2 of how much wider the slots of the next wheel are */
	SPARE_EVENTS = 32,
	DISTANCE_BITS_MAX = 44, /* log2 of ns: the longest Ttr is 4096 << 31 */
};

struct tc {
	uint64_t now_ns;    /* the time that timers go by: see advance_clock() */
	uint64_t slept_ns;  /* slept_by_all() when now_ns last advanced */
	uint64_t heard_ns;  /* it advances to this when the answers that had come by then */
	uint32_t heard_put; /* (HP_RRC's count of puts) have been taken */
	uint64_t tick;	    /* last tick handled, in ticks since 0 */
	uint32_t shift;	    /* a tick is 2^shift ns: the setting */
	uint32_t armed;	    /* entries on the wheels, and ... */
	uint32_t rnr_armed; /* ... those among them that wait to send again */
	uint32_t slots;	    /* of each wheel; power of two */
	uint32_t levels;    /* wheels */
	uint32_t *slot;	    /* levels × slots heads: QP index << 1 | timer kind */
	/* Events for what comes next, if one lcore polls all stages: the pool's ring takes locked
	 * instructions, and goes through all events in turn. */
	struct rte_mbuf *spare[SPARE_EVENTS];
	uint32_t spares; /* atomic: the control thread reads it */
};

/* The number of wheels that reach DISTANCE_BITS_MAX. */
static uint32_t levels_for(uint32_t shift, uint32_t slots)
{
	uint32_t reach = RTE_MIN(shift + rte_log2_u32(slots), (uint32_t)DISTANCE_BITS_MAX);

	return 1 + (DISTANCE_BITS_MAX - reach + LEVEL_SHIFT - 1) / LEVEL_SHIFT;
}

int tc_create(struct engine *e)
{
	struct tc *t = engine_alloc(e, "tc", sizeof(*t));
	size_t bytes;

	e->tc = t;
	if (!t)
		return -ENOMEM;
	t->slots = rte_align32pow2(e->settings.timer_slots);
	ASSERT(rte_is_power_of_2(e->settings.timer_tick_ns));
	t->shift = rte_log2_u32(e->settings.timer_tick_ns);
	t->levels = levels_for(t->shift, t->slots);
	bytes = (size_t)t->levels * t->slots * sizeof(uint32_t);
	t->slot = rte_malloc_socket("tc_slots", bytes, RTE_CACHE_LINE_SIZE, e->socket);
	if (!t->slot)
		return -ENOMEM;
	memset(t->slot, 0xff, bytes);
	return 0;
}

void tc_destroy(struct engine *e)
{
	struct tc *t = e->tc;

	if (t)
		rte_free(t->slot);
	rte_free(t);
	e->tc = NULL;
}

unsigned requester_timers_armed(const struct engine *e)
{
	const struct tc *t = e->tc;

	return t->armed;
}

bool requester_is_due_soon(const struct engine *e)
{
	return e->tc->rnr_armed > 0;
}

unsigned requester_spare_events(const struct engine *e)
{
	return __atomic_load_n(&e->tc->spares, __ATOMIC_RELAXED);
}

/* ---- time ---- */

/* The time up to which all queues of the port have been polled: answers may arrive on any
 * engine's. */
static uint64_t heard_by_all(const struct engine *e)
{
	uint64_t ns = engine_now(e);

	for (unsigned i = 0; i < e->count; i++)
		ns = RTE_MIN(ns, __atomic_load_n(&e->peers[i].heard_ns, __ATOMIC_ACQUIRE));
	return ns;
}

static void record_heard(struct engine *e, struct tc *t)
{
	t->heard_ns = heard_by_all(e);
	t->heard_put = ring_put_count(e->channel[CHANNEL_HP_RRC].ring);
}

/* The total sleep of the engines that heard_by_all() waits for. */
static uint64_t slept_by_all(const struct engine *e)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < e->count; i++)
		ns += __atomic_load_n(&e->peers[i].slept_ns, __ATOMIC_RELAXED);
	return ns;
}

/* More than a tick between two polls counts as missed, unless we slept. Before the first poll there
 * was nothing to miss. */
static void record_missed(struct engine *e, struct tc *t, uint64_t passed_ns)
{
	uint64_t slept_ns = slept_by_all(e);
	uint64_t looked_ns = e->settings.timer_tick_ns + slept_ns - t->slept_ns;

	t->slept_ns = slept_ns;
	if (passed_ns > looked_ns && t->now_ns)
		__atomic_store_n(&e->missed_ns, e->missed_ns + passed_ns - looked_ns,
				 __ATOMIC_RELAXED);
}

/* Has RequesterRecvControl taken the answers up to t->heard_put, and does it hold none? */
static bool answers_taken(const struct engine *e, const struct tc *t)
{
	return ring_taken_to(e->channel[CHANNEL_HP_RRC].ring, t->heard_put) &&
	       !rrc_holds_responses(e);
}

/*
 * Timers follow real time, even while others had our CPU, but never run ahead of the answers: time
 * advances once RequesterRecvControl has taken those that had arrived by then.
 */
static void advance_clock(struct engine *e, struct tc *t)
{
	if (t->heard_ns <= t->now_ns)
		record_heard(e, t);
	if (t->heard_ns <= t->now_ns || !answers_taken(e, t))
		return;
	record_missed(e, t, t->heard_ns - t->now_ns);
	t->now_ns = t->heard_ns;
}

uint64_t tc_clock_ns(const struct engine *e)
{
	return e->tc->now_ns;
}

/* ---- the wheels ---- */

static void wheel_unlink(struct engine *e, struct qp *q, enum timer_kind kind)
{
	struct tc *t = e->tc;
	uint32_t next = q->tc.next[kind], prev = q->tc.prev[kind];

	if (next != TC_END)
		qp_at(e->qps, next >> 1)->tc.prev[next & 1] = prev;
	if (prev != TC_END)
		qp_at(e->qps, prev >> 1)->tc.next[prev & 1] = next;
	else
		t->slot[q->tc.slot[kind]] = next;
}

static void wheel_remove(struct engine *e, struct qp *q, enum timer_kind kind)
{
	struct tc *t = e->tc;

	wheel_unlink(e, q, kind);
	t->armed--;
	t->rnr_armed -= kind == TIMER_RNR;
	__atomic_store_n(&q->tc.armed[kind], 0, __ATOMIC_RELAXED);
}

/*
 * The slot of an entry for a future tick. On all wheels but the first that may be a slot earlier
 * than the tick, but never one whose time has passed, or the wheel before would have reached as
 * far. An entry too far ahead for the last wheel goes round more than once.
 */
static uint32_t slot_for(const struct tc *t, uint64_t tick)
{
	uint64_t now = t->tick;
	uint32_t level = 0;

	for (; tick - now >= t->slots && level + 1 < t->levels; level++) {
		tick >>= LEVEL_SHIFT;
		now >>= LEVEL_SHIFT;
	}
	return level * t->slots + (tick & (t->slots - 1));
}

/* Puts the entry onto the wheel of its deadline. */
static void wheel_link(struct engine *e, struct qp *q, enum timer_kind kind)
{
	struct tc *t = e->tc;
	uint64_t tick = RTE_MAX((q->tc.deadline_ns[kind] >> t->shift) + 1, t->tick + 1);
	uint32_t slot = slot_for(t, tick), me = q->index << 1 | kind, head = t->slot[slot];

	q->tc.slot[kind] = slot;
	q->tc.prev[kind] = TC_END;
	q->tc.next[kind] = head;
	if (head != TC_END)
		qp_at(e->qps, head >> 1)->tc.prev[head & 1] = me;
	t->slot[slot] = me;
}

static void wheel_insert(struct engine *e, struct qp *q, enum timer_kind kind, uint64_t deadline_ns)
{
	struct tc *t = e->tc;

	q->tc.deadline_ns[kind] = deadline_ns;
	wheel_link(e, q, kind);
	t->armed++;
	t->rnr_armed += kind == TIMER_RNR;
	__atomic_store_n(&q->tc.armed[kind], 1, __ATOMIC_RELAXED);
}

void tc_stop(struct engine *e, struct qp *q)
{
	for (unsigned kind = TIMER_LOSS; kind <= TIMER_RNR; kind++)
		if (q->tc.armed[kind])
			wheel_remove(e, q, kind);
}

void tc_restart(struct engine *e, struct qp *q)
{
	tc_stop(e, q);
	wheel_insert(e, q, TIMER_LOSS, engine_now(e));
}

static void note_probe(const struct engine *e, struct qp *q, uint64_t now_ns)
{
	q->tc.probed_ns = now_ns;
	q->tc.probed_missed_ns = engine_missed(e);
}

void tc_probed(struct engine *e, struct qp *q)
{
	note_probe(e, q, e->tc->now_ns);
	tc_restart(e, q);
}

/* A command from RequesterTransControl or RequesterRecvControl. */
static void command(struct engine *e, const struct timer_event *ev)
{
	struct qp *q = qp_find(e->qps, ev->qpn);

	if (!q || q->epoch != ev->epoch)
		return;
	if (q->tc.armed[ev->timer])
		wheel_remove(e, q, ev->timer);
	wheel_insert(e, q, ev->timer, engine_now(e) + ev->value_ns);
	count(stage_counters(e, STAGE_REQUESTER_RECV), COUNTER_timers_set);
}

static struct rte_mbuf *event_alloc(struct engine *e)
{
	struct tc *t = e->tc;

	if (unlikely(!t->spares))
		return rte_mbuf_raw_alloc(e->events);
	__atomic_store_n(&t->spares, t->spares - 1, __ATOMIC_RELAXED);
	return t->spare[t->spares];
}

static void event_free(struct engine *e, struct rte_mbuf *m)
{
	struct tc *t = e->tc;

	ASSERT(m->pool == e->events);
	if (unlikely(!e->one_lcore || t->spares == SPARE_EVENTS)) {
		rte_mbuf_raw_free(m);
		return;
	}
	t->spare[t->spares] = m;
	__atomic_store_n(&t->spares, t->spares + 1, __ATOMIC_RELAXED);
}

static __rte_noinline unsigned take_commands(struct engine *e, enum channel_id from)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[from], m, BURST);

	for (unsigned i = 0; i < n; i++) {
		command(e, timer_event_of(m[i]));
		event_free(e, m[i]);
	}
	return n;
}

static inline unsigned commands(struct engine *e, enum channel_id from)
{
	return channel_idle(&e->channel[from]) ? 0 : take_commands(e, from);
}

static bool tc_put(struct engine *e, enum channel_id to, struct timer_event ev)
{
	struct rte_mbuf *m;

	if (!channel_room(&e->channel[to]) || !(m = event_alloc(e)))
		return false;
	*timer_event_of(m) = ev;
	channel_put_one(&e->channel[to], m);
	return true;
}

bool timer_set(struct engine *e, enum channel_id to, const struct qp *q, enum timer_kind timer,
	       uint64_t value_ns)
{
	return tc_put(e, to,
		      (struct timer_event){.qpn = qp_number(q),
					   .timer = timer,
					   .epoch = q->epoch,
					   .value_ns = value_ns});
}

/* Notifies RequesterRecvControl. False: no room; the entry fires again at the next tick. */
static bool expire(struct engine *e, const struct qp *q, enum timer_kind kind,
		   enum timer_expiry what)
{
	return tc_put(e, CHANNEL_TC_RRC,
		      (struct timer_event){.qpn = qp_number(q),
					   .timer = kind,
					   .expiry = (uint8_t)what,
					   .epoch = q->epoch});
}

/* When to check again whether a round trip has been measured. */
static uint64_t next_look(const struct engine *e, const struct qp *q)
{
	uint64_t quiet = qp_quiet_ns(e, q);
	uint64_t first = (uint64_t)FIRST_LOOK_TICKS * e->settings.timer_tick_ns;

	return q->rrc.srtt_ns ? UINT64_MAX : engine_now(e) + RTE_MAX(first, quiet);
}

/* When to probe: once we have polled for an acknowledgement for long enough, since the last one and
 * since the last probe. */
static uint64_t probe_due(const struct engine *e, const struct qp *q, uint64_t now_ns)
{
	uint64_t since = RTE_MAX(qp_quiet_since(q), q->tc.probed_ns);
	uint64_t missed = RTE_MAX(qp_quiet_missed(q), q->tc.probed_missed_ns);
	uint64_t now = RTE_MAX(now_ns, since), looked = qp_looked_ns(e, now - since, missed);
	uint64_t soon = qp_probe_ns(e, q);

	return now + soon - RTE_MIN(looked, soon);
}

/* Notifies RequesterRecvControl that the Loss timer has expired, or that it is time for a probe,
 * but not during an RNR wait. Returns when the next of the two is due. */
static uint64_t report_loss(struct engine *e, struct qp *q, uint64_t now)
{
	uint64_t ttr = qp_timeout_ns(q), tick = e->settings.timer_tick_ns;
	uint64_t expires = qp_quiet_since(q) + ttr, probe = probe_due(e, q, now);

	if (q->rrc.rnr_waiting)
		return RTE_MIN(expires, probe);
	if (expires <= now)
		return now + (expire(e, q, TIMER_LOSS, TIMER_EXPIRED) ? ttr : tick);
	if (probe <= now && expire(e, q, TIMER_LOSS, TIMER_PROBE)) {
		note_probe(e, q, now);
		probe = now + 2 * qp_probe_ns(e, q);
	}
	return RTE_MIN(expires, probe);
}

/* Has the peer been silent for so long that others come first, and are buffers that short? */
static bool gives_way(const struct engine *e, const struct qp *q, uint64_t now)
{
	const struct multi_queue *mq = e->mq;

	if (likely(now < qp_unanswered_since(q) + GIVE_WAY_NS))
		return false;
	return (mq_count(&q->mq.sw) && mq_must_give_way(&mq->sw_free, q)) ||
	       (mq_count(&q->mq.rd) &&
		(mq_must_give_way(&mq->rd_free, q) || mq_must_give_way(&mq->re_free, q)));
}

/* A timeout of 0 means none: such a QP is only checked now and then whether it must give way. */
static uint64_t look_at_loss(struct engine *e, struct qp *q, uint64_t now)
{
	uint64_t next = now + GIVE_WAY_NS;

	if (unlikely(gives_way(e, q, now)))
		expire(e, q, TIMER_LOSS, TIMER_GIVE_WAY);
	else if (qp_timeout_ns(q))
		next = RTE_MIN(next, report_loss(e, q, now));
	return qp_timeout_ns(q) ? RTE_MIN(next, next_look(e, q)) : next;
}

/*
 * A Loss entry is due; it has been removed, which parks it (parking.h): RequesterTransControl sets
 * the timer again if it finds it not armed after advancing next_psn. Before the transport timer
 * there may be probes, see qp_probe_ns().
 */
static void loss_due(struct engine *e, struct qp *q)
{
	uint64_t now = e->tc->now_ns, next;

	parking_fence();
	if (!qp_outstanding(q) || qp_state(q) == QP_ERR)
		return;
	next = look_at_loss(e, q, now);
	wheel_insert(e, q, TIMER_LOSS, RTE_MAX(next, now + e->settings.timer_tick_ns));
}

static void due(struct engine *e, struct qp *q, enum timer_kind kind)
{
	wheel_remove(e, q, kind);
	if (kind == TIMER_LOSS)
		loss_due(e, q);
	else if (!expire(e, q, TIMER_RNR, TIMER_EXPIRED))
		wheel_insert(e, q, TIMER_RNR, engine_now(e) + e->settings.timer_tick_ns);
}

/* The time of this slot has come. Returns entries that were due. */
static unsigned slot_due(struct engine *e, uint32_t slot)
{
	struct tc *t = e->tc;
	uint32_t entry = t->slot[slot];
	unsigned n = 0;

	while (entry != TC_END) {
		struct qp *q = qp_at(e->qps, entry >> 1);
		enum timer_kind kind = entry & 1;

		entry = q->tc.next[kind];
		if (q->tc.deadline_ns[kind] <= t->now_ns) {
			due(e, q, kind);
			n++;
		} else {
			wheel_unlink(e, q, kind);
			wheel_link(e, q, kind);
		}
		count(stage_counters(e, STAGE_REQUESTER_RECV), COUNTER_timers_visited);
	}
	return n;
}

/* Handles the slots of one wheel whose time came with the ticks after `from`, up to `to`. */
static unsigned level_due(struct engine *e, uint32_t level, uint64_t from, uint64_t to)
{
	const struct tc *t = e->tc;
	uint32_t slots = t->slots;
	uint64_t passed;
	unsigned n = 0;

	from >>= level * LEVEL_SHIFT;
	to >>= level * LEVEL_SHIFT;
	passed = RTE_MIN(to - from, (uint64_t)slots); /* once round is all of them */
	from = to - passed;
	while (from < to)
		n += slot_due(e, level * slots + (++from & (slots - 1)));
	return n;
}

static __rte_noinline unsigned wheels_due(struct engine *e, uint64_t from, uint64_t to)
{
	const struct tc *t = e->tc;
	unsigned n = 0;

	for (uint32_t level = 0; level < t->levels; level++)
		n += level_due(e, level, from, to);
	return n;
}

unsigned tc_poll(struct engine *e)
{
	struct tc *t = e->tc;
	uint64_t now, from;
	unsigned n;

	advance_clock(e, t);
	now = t->now_ns >> t->shift;
	if (!t->armed)
		t->tick = now;
	n = commands(e, CHANNEL_RTC_TC) + commands(e, CHANNEL_RRC_TC);
	from = t->tick;
	t->tick = now;
	return likely(now == from) ? n : n + wheels_due(e, from, now);
}
