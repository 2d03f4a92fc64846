/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips for congestion control by delay: see the header. */
#include "context/pacing.h"
#include "path_delay.h"
#include "wire/psn.h"

/* The rate acknowledged, kbit/s: what was outstanding took a round trip of `ns`. */
static uint32_t arrived(const struct qp *q, uint32_t ns)
{
	uint64_t packet_bytes = q->mtu_bytes + PACING_HEADER_BYTES;
	uint64_t rate = q->trip.flight * packet_bytes * 8000000 / ns;

	return (uint32_t)RTE_MIN(rate, (uint64_t)UINT32_MAX);
}

static void tell(struct engine *e, struct qp *q, uint32_t queue_ns, uint32_t arrives)
{
	__atomic_store_n(&q->trip_end.queue_ns, queue_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&q->trip_end.arrived, arrives, __ATOMIC_RELAXED);
	__atomic_store_n(&q->trip_end.samples, q->trip_end.samples + 1, __ATOMIC_RELEASE);
	wake_post(&e->wake[WAKE_RTC], &q->wake[WAKE_RTC], q->index);
}

/* Passes the sample to RequesterTransControl if it calls for action. */
static void path_judge(struct engine *e, struct qp *q, uint32_t queue_ns, uint32_t round_trip_ns)
{
	uint32_t rate = __atomic_load_n(&q->rtc.flow.cc.rate, __ATOMIC_RELAXED);
	bool over = queue_ns > delay_target_ns(&e->settings.delay, &e->settings.dcqcn, rate);

	if (likely(!rate && !over) || (over && q->trip.path.falls))
		return;
	tell(e, q, queue_ns, arrived(q, round_trip_ns));
}

void path_lost(struct engine *e, struct qp *q)
{
	enum { PART = 4 }; /* more than this part of the target is a queue */
	uint32_t target_ns = delay_target_ns(&e->settings.delay, &e->settings.dcqcn, 0);

	if (__atomic_load_n(&q->cc, __ATOMIC_RELAXED) & CC_DELAY &&
	    (!q->trip.path.base_ns || q->trip.path.last_ns > target_ns / PART))
		tell(e, q, UINT32_MAX, 0);
}

void path_acked(struct engine *e, struct qp *q)
{
	uint32_t psn = q->trip.psn, round_trip_ns;
	uint64_t now_ns = engine_now(e), ns;

	if (!psn_after(q->rrc.unacked_psn, psn))
		return;
	if (likely(__atomic_load_n(&q->left.psn, __ATOMIC_ACQUIRE) == psn)) {
		ns = now_ns - RTE_MIN(now_ns, __atomic_load_n(&q->left.ns, __ATOMIC_RELAXED));
		ns = qp_looked_ns(e, ns, q->trip.missed_ns);
		round_trip_ns = ns ? (uint32_t)RTE_MIN(ns, (uint64_t)UINT32_MAX) : 1;
		path_judge(e, q, delay_measured(&q->trip.path, round_trip_ns, now_ns),
			   round_trip_ns);
	}
	path_forget(q);
}

/* Adapts the rate after a round trip with that much queueing. */
static void react(struct engine *e, struct qp *q, uint32_t queue_ns, uint32_t arrives)
{
	delay_react(&q->rtc.flow.cc, &q->trip.control, &e->settings.delay, &e->settings.dcqcn,
		    queue_ns, arrives, engine_now(e));
}

void path_take_sample(struct engine *e, struct qp *q)
{
	uint32_t samples = __atomic_load_n(&q->trip_end.samples, __ATOMIC_ACQUIRE);

	if (likely(samples == q->trip.taken))
		return;
	q->trip.taken = samples;
	react(e, q, __atomic_load_n(&q->trip_end.queue_ns, __ATOMIC_RELAXED),
	      __atomic_load_n(&q->trip_end.arrived, __ATOMIC_RELAXED));
}

void path_untimed(struct engine *e, struct qp *q)
{
	enum { SILENCE_US = 1000 };
	uint32_t now_us = (uint32_t)(engine_now(e) / 1000);

	if (q->rtc.flow.cc.lent && now_us - q->trip.control.last_us >= SILENCE_US &&
	    q->trip.begun == __atomic_load_n(&q->trip_end.ended, __ATOMIC_ACQUIRE))
		react(e, q, 0, 0);
}

uint32_t path_window(const struct engine *e, const struct qp *q)
{
	uint64_t rate = q->rtc.flow.cc.rate, packet_bytes = q->mtu_bytes + PACING_HEADER_BYTES;
	uint64_t ns = __atomic_load_n(&q->trip.path.base_ns, __ATOMIC_RELAXED) +
		      delay_target_ns(&e->settings.delay, &e->settings.dcqcn, (uint32_t)rate);
	uint64_t packets = rate * ns / 8000000 / packet_bytes;

	if (delay_drains(&q->trip.control))
		return PACING_BURST_PACKETS;
	return (uint32_t)RTE_MAX(packets, (uint64_t)PACING_BURST_PACKETS);
}
