/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl's states TIMER_RETRANS, PROBE, RNR_RETRANS, and its wakes
 * (doc/modules.md#requesterrecvcontrol): checks whether TimerControl's expiries still apply when
 * they arrive, and acts on changes in a QP's state. Stage requester_recv.
 */
#include "outstanding.h"
#include "requester_trans_control.h"
#include "retransmission.h"
#include "rrc_acks.h"
#include "rrc_early.h"
#include "rrc_release.h"
#include "rrc_timers.h"
#include "send-queue/send_queue.h"
#include "timer_control.h"

#define PROBES_MAX 16 /* doublings of the time between two probes */

/* When a Loss timer's expiry arrives, something may just have been acknowledged, or an RNR NAK may
 * have come: then its time counts from there (C9-139). */
static bool timer_matters(const struct engine *e, const struct qp *q, const struct timer_event *ev)
{
	if (!qp_sends(qp_state(q)))
		return false;
	if (ev->timer == TIMER_RNR || ev->expiry == TIMER_GIVE_WAY)
		return true;
	return qp_outstanding(q) && !q->rrc.rnr_waiting &&
	       (ev->expiry == TIMER_PROBE || qp_quiet_ns(e, q) >= qp_timeout_ns(q));
}

enum rrc_state rrc_step_timer_retrans(struct rrc_work *w)
{
	struct qp *q = w->q;

	count(w->c, COUNTER_loss_timeouts);
	__atomic_store_n(&q->rrc.proven, 0, __ATOMIC_RELAXED);
	q->rrc.gap_psn = 0;
	return rrc_retry(w, q->rrc.unacked_psn);
}

/* Was nothing acknowledged for several round trips? Probes go beyond what the timers demand. */
static bool probe_matters(const struct engine *e, const struct qp *q)
{
	uint64_t soon = qp_probe_ns(e, q);
	uint64_t looked = qp_looked_ns(e, qp_quiet_ns(e, q), qp_quiet_missed(q));

	return !q->rrc.retransmit.listed && looked >= soon;
}

enum rrc_state rrc_step_probe(struct rrc_work *w)
{
	struct qp *q = w->q;

	count(w->c, w->relinked ? COUNTER_relink_probes : COUNTER_loss_probes);
	if (q->rrc.probes < PROBES_MAX)
		__atomic_store_n(&q->rrc.probes, q->rrc.probes + 1, __ATOMIC_RELAXED);
	q->rrc.nak_psn = q->rrc.gap_psn = 0;
	if (unlikely(w->relinked))
		retransmit_relinked(w->e, q);
	else
		retransmit_probe(w->e, q);
	return RRC_IDLE;
}

/* The end of the retransmission wakes the sender. */
static void end_rnr_wait(struct engine *e, struct qp *q)
{
	__atomic_store_n(&q->rrc.rnr_waiting, 0, __ATOMIC_RELEASE);
	qp_progress(e, q);
	retransmit_from(e, q, q->rrc.unacked_psn);
}

enum rrc_state rrc_step_rnr_retrans(struct rrc_work *w)
{
	count(w->c, COUNTER_rnr_timeouts);
	retransmit_cut(w->q);
	end_rnr_wait(w->e, w->q);
	return RRC_IDLE;
}

/* Others need the buffers that the QP holds: fails it as if all its tries were spent. */
static void give_way(struct rrc_work *w)
{
	if (engine_now(w->e) < qp_unanswered_since(w->q) + GIVE_WAY_NS)
		return;
	count(w->c, COUNTER_gave_way);
	w->q->rrc.retry_left = 0;
	rrc_run(w, RRC_TIMER_RETRANS);
}

static void take_expiry(struct engine *e, struct qp *q, const struct timer_event *ev)
{
	struct rrc_work w = {.e = e, .c = rrc_counters(e), .q = q};

	if (!timer_matters(e, q, ev))
		return;
	if (ev->timer == TIMER_RNR)
		rrc_run(&w, RRC_RNR_RETRANS);
	else if (unlikely(ev->expiry == TIMER_GIVE_WAY))
		give_way(&w);
	else if (ev->expiry == TIMER_EXPIRED)
		rrc_run(&w, RRC_TIMER_RETRANS);
	else if (probe_matters(e, q))
		rrc_run(&w, RRC_PROBE);
}

/*
 * On a path that has lost packets, toward a peer that keeps what comes behind a gap, the first
 * probe is cheap: one packet, which is missing or does no harm. So it comes after two round trips,
 * sooner than the ticks of TimerControl can tell: each poll checks some of these queue pairs in
 * turn. Not for a READ, all of whose responses would come again, unless the peer is an equal.
 * Further probes are less urgent.
 */
#define LOSSY_ROUND_TRIPS 2
#define LOSSY_NS	  4000 /* and a poll or two */

static bool is_lossy(const struct engine *e, const struct qp *q)
{
	return q->rrc.window && q->rrc.peer_keeps && q->rrc.srtt_ns && qp_timeout_ns(q) &&
	       engine_setting(e, loss_recovery) == LOSS_RECOVERY_KEEP;
}

void rrc_watch(struct engine *e, struct qp *q)
{
	if (is_lossy(e, q))
		qp_list_add(&e->rrc->lossy, q);
}

static bool is_probe_due(struct engine *e, const struct qp *q)
{
	uint64_t soon = (uint64_t)q->rrc.srtt_ns * LOSSY_ROUND_TRIPS + LOSSY_NS;
	uint64_t since = qp_quiet_since(q), now = RTE_MAX(tc_clock_ns(e), since);

	return !q->rrc.retransmit.listed &&
	       qp_looked_ns(e, now - since, qp_quiet_missed(q)) >= soon << q->rrc.probes &&
	       (rrc_is_equal(q) || !rrc_read_in_the_way(e, q, q->rrc.unacked_psn));
}

static bool waits_for_a_probe(const struct engine *e, const struct qp *q)
{
	return qp_outstanding(q) && qp_sends(qp_state(q)) && is_lossy(e, q) &&
	       q->rrc.probes < (rrc_is_equal(q) ? PROBES_OF_EQUALS : 1) && !q->rrc.rnr_waiting;
}

/* A QP that waits for no probe leaves the list; the next acknowledgement puts it back. */
static void look_at_lossy(struct engine *e, struct qp *q)
{
	struct rrc_work w = {.e = e, .c = rrc_counters(e), .q = q};

	if (!waits_for_a_probe(e, q))
		return;
	qp_list_add(&e->rrc->lossy, q);
	if (is_probe_due(e, q))
		rrc_run(&w, RRC_PROBE);
}

unsigned rrc_look_at_lossy(struct engine *e)
{
	enum { LOOKS = 4 };
	struct qp_list *l = &e->rrc->lossy;
	uint32_t last = l->tail;
	struct qp *q;

	if (likely(qp_list_empty(l)))
		return 0;
	for (unsigned i = 0; i < LOOKS && (q = qp_list_take(l)); i++) {
		look_at_lossy(e, q);
		if (q->index == last) /* all of them, once */
			break;
	}
	return !qp_list_empty(l);
}

/* Is it waiting for answers, and not retransmitting yet? A timeout of 0 forbids retransmission. */
static bool may_have_lost(const struct qp *q)
{
	return q->service == SERVICE_RC && qp_sends(qp_state(q)) && qp_outstanding(q) &&
	       qp_timeout_ns(q) && !q->rrc.rnr_waiting && !q->rrc.retransmit.listed;
}

/* The next context of the walk, if it belongs to this engine and may have lost packets; else
 * NULL. */
static struct qp *next_relinked(struct engine *e)
{
	uint32_t walked = e->rrc->walked, index = icm_skip(&e->qps->icm, walked);
	struct qp *q = qp_at(e->qps, index);

	if (index != walked) { /* where the memory may be missing, too */
		e->rrc->walked = index;
		return NULL;
	}
	e->rrc->walked = index + 1;
	if (!qp_number(q) || q->engine != e->index)
		return NULL;
	return may_have_lost(q) ? q : NULL;
}

/* Earlier probes were lost with the link: intervals start again. */
static void probe_relinked(struct engine *e, struct qp *q)
{
	struct rrc_work w = {.e = e, .c = rrc_counters(e), .q = q, .relinked = true};

	__atomic_store_n(&q->rrc.probes, 0, __ATOMIC_RELAXED);
	qp_list_remove(&e->rrc->lossy, q);
	rrc_run(&w, RRC_PROBE);
	tc_probed(e, q);
}

unsigned rrc_look_at_link(struct engine *e)
{
	enum { LOOKS = 32, PROBES = 4 };
	uint32_t relinked = __atomic_load_n(&e->relinked, __ATOMIC_RELAXED);
	struct rrc *c = e->rrc;
	unsigned probes = 0;
	struct qp *q;

	if (likely(rrc_link_is_old(e)))
		return 0;
	if (relinked != c->relinked) {
		c->relinked = relinked;
		c->walked = 0;
	}
	for (unsigned i = 0; i < LOOKS && probes < PROBES && c->walked < e->qps->count; i++) {
		if (!(q = next_relinked(e)))
			continue;
		probe_relinked(e, q);
		probes++;
	}
	return 1;
}

unsigned rrc_take_expiries(struct engine *e)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_TC_RRC], m, BURST);

	for (unsigned i = 0; i < n; i++) {
		const struct timer_event *ev = timer_event_of(m[i]);
		struct qp *q = qp_find(e->qps, ev->qpn);

		if (q && q->epoch == ev->epoch)
			take_expiry(e, q, ev);
		rte_mbuf_raw_free(m[i]);
	}
	return n;
}

/* The numbers of queue pairs that leave may be reused at once: disowns the waiting responses to
 * them. */
static void forget_responses(struct engine *e)
{
	qp_disown_ring(e->qps, e->channel[CHANNEL_HP_RRC].ring);
	for (unsigned i = 0; i < e->rrc->holds; i++)
		qp_disown(e->qps, e->rrc->held[i]);
}

/* The CEU has destroyed the QP. */
static void rrc_release_qp(struct engine *e, struct qp *q)
{
	rrc_release_all(e, q);
	requests_free(e, &q->rrc.bad_head);
	tc_stop(e, q);
	qp_list_remove(&e->rrc->retransmit, q);
	qp_list_remove(&e->rrc->lossy, q);
	rrc_drop_early(e, q);
	qp_close(q, WAKE_RRC);
}

/*
 * In SQD, with nothing outstanding, SQD2SQD may have changed timeout and counters: the new values
 * apply from now on. A wait for an RNR timer ends with the timer: its request is acknowledged.
 */
static void settings_changed(struct engine *e, struct qp *q)
{
	q->rrc.retry_left = q->retry_cnt;
	q->rrc.rnr_left = q->rnr_retry;
	tc_restart(e, q);
	if (unlikely(q->rrc.rnr_waiting))
		end_rnr_wait(e, q);
}

/* A local operation may be due to complete, and others may wait for that. */
static void local_done(struct engine *e, struct qp *q)
{
	rrc_release_local(e, q);
	rrc_bad_requests(e, q);
	wake_sender(e, q);
}

static void failed(struct engine *e, struct qp *q)
{
	struct rrc_work w = {.e = e, .c = rrc_counters(e), .q = q, .outcome = OUTCOME_FLUSH};

	rrc_run(&w, RRC_FLUSH);
	rrc_bad_requests(e, q);
}

void rrc_take_wakes(struct engine *e)
{
	uint32_t i = wake_take(&e->wake[WAKE_RRC]);
	bool disowned = false; /* in this poll: one look serves all that leave */

	while (i != WAKE_END) {
		struct qp *q = qp_at(e->qps, i);

		i = wake_next(&q->wake[WAKE_RRC]);
		if (unlikely(qp_closing(q))) {
			if (!disowned)
				forget_responses(e);
			disowned = true;
			rrc_release_qp(e, q);
		} else if (qp_state(q) == QP_ERR) {
			failed(e, q);
		} else {
			local_done(e, q);
			if (qp_state(q) == QP_SQD && !qp_outstanding(q))
				settings_changed(e, q);
		}
	}
}
