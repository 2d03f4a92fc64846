/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl's timers and wakes (seed 000 3.4.5.3, TIMER_RETRANS): what TimerControl's
 * expiries mean by the time that they arrive, what changes in a QP's state ask for. Sends nothing
 * itself. Stage requester_recv.
 */
#include "multi_queue.h"
#include "outstanding.h"
#include "requester_trans_control.h"
#include "retransmission.h"
#include "rrc.h"
#include "rrc_timers.h"
#include "send-queue/send_queue.h"
#include "timer_control.h"

#define PROBES_MAX 16 /* doublings of the time between two probes */

/* A Loss timer may find that something was acknowledged meanwhile, or an RNR NAK came: then it
 * counts from there on (C9-139). */
static bool timer_matters(const struct engine *e, const struct qp *q, const struct timer_event *ev)
{
	if (!qp_sends(qp_state(q)))
		return false;
	if (ev->timer == TIMER_RNR)
		return true;
	return qp_outstanding(q) && !q->rrc.rnr_waiting &&
	       (ev->expiry == TIMER_PROBE || qp_quiet_ns(e, q) >= qp_timeout_ns(q));
}

/* Nothing was acknowledged for several round trips: again, on top of what the timers demand. */
static void probe(struct engine *e, struct qp *q)
{
	uint64_t soon = qp_probe_ns(q, e->settings.timer_tick_ns);
	uint64_t looked = qp_looked_ns(e, qp_quiet_ns(e, q), qp_quiet_missed(q));

	if (q->rrc.retransmit.listed || looked < soon)
		return;
	rrc_enter(e, RRC_TIMER_RETRANS);
	count(rrc_counters(e), COUNTER_loss_probes);
	if (q->rrc.probes < PROBES_MAX)
		__atomic_store_n(&q->rrc.probes, q->rrc.probes + 1, __ATOMIC_RELAXED);
	q->rrc.nak_psn = q->rrc.gap_psn = 0;
	rrc_send_again(e, q, q->rrc.unacked_psn);
	rrc_enter(e, RRC_IDLE);
}

/* The end of the retransmission wakes the sender. */
static void end_rnr_wait(struct engine *e, struct qp *q)
{
	__atomic_store_n(&q->rrc.rnr_waiting, 0, __ATOMIC_RELEASE);
	qp_progress(e, q);
	retransmit_from(e, q, q->rrc.unacked_psn);
}

static void expired(struct engine *e, struct qp *q, enum timer_kind kind)
{
	if (kind == TIMER_RNR) {
		rrc_enter(e, RRC_NAK_RETRANS);
		count(rrc_counters(e), COUNTER_rnr_timeouts);
		retransmit_cut(q);
		end_rnr_wait(e, q);
	} else {
		rrc_enter(e, RRC_TIMER_RETRANS);
		count(rrc_counters(e), COUNTER_loss_timeouts);
		__atomic_store_n(&q->rrc.proven, 0, __ATOMIC_RELAXED);
		q->rrc.gap_psn = 0;
		rrc_retry(e, q, q->rrc.unacked_psn);
	}
	rrc_enter(e, RRC_IDLE);
}

unsigned rrc_take_expiries(struct engine *e)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_TC_RRC], m, BURST);

	for (unsigned i = 0; i < n; i++) {
		const struct timer_event *ev = timer_event_of(m[i]);
		struct qp *q = qp_find(e->qps, ev->qpn);

		if (q && q->epoch == ev->epoch && timer_matters(e, q, ev)) {
			if (ev->expiry == TIMER_PROBE)
				probe(e, q);
			else
				expired(e, q, ev->timer);
		}
		rte_mbuf_raw_free(m[i]);
	}
	return n;
}

void rrc_let_go(struct engine *e, struct qp *q)
{
	struct sw_element *sw;

	while ((sw = sw_head(e->mq, &q->mq.sw))) {
		rte_pktmbuf_free(sw->m);
		sw_pop(e->mq, &q->mq.sw);
	}
	while (mq_count(&q->mq.rd))
		rd_pop(e->mq, &q->mq.rd);
	while (mq_count(&q->mq.re))
		re_pop(e->mq, &q->mq.re);
	requests_free(e, &q->rrc.bad_head);
	tc_let_go(e, q);
	if (!q->rrc.retransmit.listed)
		qp_close(q, WAKE_RRC);
}

/*
 * In SQD, with nothing outstanding, SQD2SQD may have changed timeout and counters: they count from
 * now on. A wait for an RNR timer ends with the timer: what it was for is acknowledged.
 */
static void settings_changed(struct engine *e, struct qp *q)
{
	q->rrc.retry_left = q->retry_cnt;
	q->rrc.rnr_left = q->rnr_retry;
	tc_look_anew(e, q);
	if (unlikely(q->rrc.rnr_waiting))
		end_rnr_wait(e, q);
}

/* There may be a local operation whose turn to complete has come; others waited for that. */
static void local_done(struct engine *e, struct qp *q)
{
	rrc_release_local(e, q);
	rrc_bad_requests(e, q);
	wake_sender(e, q);
}

void rrc_take_wakes(struct engine *e)
{
	uint32_t i = wake_take(&e->wake[WAKE_RRC]);

	while (i != WAKE_END) {
		struct qp *q = qp_at(e->qps, i);

		i = wake_next(&q->wake[WAKE_RRC]);
		if (unlikely(qp_closing(q))) {
			rrc_let_go(e, q);
		} else if (qp_state(q) == QP_ERR) {
			rrc_flush(e, q, OUTCOME_FLUSH);
			rrc_enter(e, RRC_IDLE);
			rrc_bad_requests(e, q);
		} else {
			local_done(e, q);
			if (qp_state(q) == QP_SQD && !qp_outstanding(q))
				settings_changed(e, q);
		}
	}
}
