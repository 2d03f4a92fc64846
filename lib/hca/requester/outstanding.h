/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_OUTSTANDING_H
#define REQUESTER_OUTSTANDING_H
/*
 * What a queue pair has outstanding, and for how long none of it has been acknowledged: the clocks
 * of its Loss timer and its probes. Written by RequesterTransControl and RequesterRecvControl; read
 * by any stage of the requester.
 */
#include "context/qp_context.h"
#include "pipeline/engine.h"
#include "wire/psn.h"

/* NPSN. Any stage of the requester. */
static inline uint32_t qp_next_psn(const struct qp *q)
{
	return __atomic_load_n(&q->rtc.next_psn, __ATOMIC_ACQUIRE);
}

/* A QP whose peer has not answered for this long gives way when buffers are short. */
#define GIVE_WAY_NS 2000000000ull

/* Since when the peer has owed an answer: since its last one or, if later, since it began to have
 * something to answer. Neither RNR NAKs nor retransmissions restart this time. Any stage of the
 * requester. */
static inline uint64_t qp_unanswered_since(const struct qp *q)
{
	return RTE_MAX(__atomic_load_n(&q->rrc.answered_ns, __ATOMIC_RELAXED),
		       __atomic_load_n(&q->rtc.busy_since_ns, __ATOMIC_ACQUIRE));
}

/* PSNs sent and not acknowledged. Any stage of the requester. */
static inline uint32_t qp_outstanding(const struct qp *q)
{
	return psn_sub(qp_next_psn(q), __atomic_load_n(&q->rrc.unacked_psn, __ATOMIC_ACQUIRE));
}

/*
 * Those that count against the window after a loss. Once a packet has been sent again to a peer
 * that keeps what comes behind a gap, whatever was outstanding then is taken to have left the
 * network: the peer has it, or it is lost. So new packets may follow, up to as many as a peer can
 * be expected to keep. Any stage of the requester.
 */
#define AHEAD_MAX 192

static inline uint32_t qp_in_window(const struct qp *q)
{
	uint32_t unacked = __atomic_load_n(&q->rrc.unacked_psn, __ATOMIC_ACQUIRE);
	uint32_t outstanding = psn_sub(qp_next_psn(q), unacked);
	uint32_t ahead = psn_sub(__atomic_load_n(&q->rrc.ahead_psn, __ATOMIC_RELAXED), unacked);

	if (ahead > outstanding) /* it is behind */
		return outstanding;
	return outstanding - RTE_MIN(ahead, (uint32_t)AHEAD_MAX);
}

/* Ttr of a QP in ns, 0: no timer (C9-140). */
static inline uint64_t qp_timeout_ns(const struct qp *q)
{
	uint8_t timeout = __atomic_load_n(&q->timeout, __ATOMIC_RELAXED);

	return timeout ? 4096ull << timeout : 0;
}

/*
 * The time polled without an acknowledgement after which everything outstanding is sent again
 * without counting a retry (a probe): several round trips, doubled with each probe, and never
 * longer than Ttr. A responder reports a loss once, by one NAK; if that NAK, or the packet that it
 * requested, is lost too, only the transport timer would discover it (C9-114, C9-139). Until a
 * round trip is known, the setting first_probe_us stands in for several.
 */
#define PROBE_ROUND_TRIPS 4

static inline uint64_t qp_probe_ns(const struct engine *e, const struct qp *q)
{
	uint64_t srtt = __atomic_load_n(&q->rrc.srtt_ns, __ATOMIC_RELAXED);
	uint64_t ns = srtt ? srtt * PROBE_ROUND_TRIPS + 2ull * e->settings.timer_tick_ns
			   : 1000ull * engine_setting(e, first_probe_us);

	if (!ns)
		return qp_timeout_ns(q);
	ns <<= __atomic_load_n(&q->rrc.probes, __ATOMIC_RELAXED);
	return RTE_MIN(ns, qp_timeout_ns(q));
}

/* Since when nothing outstanding has been acknowledged. Stage requester_recv. */
static inline uint64_t qp_quiet_since(const struct qp *q)
{
	return RTE_MAX(__atomic_load_n(&q->rrc.progress_ns, __ATOMIC_ACQUIRE),
		       __atomic_load_n(&q->rtc.busy_since_ns, __ATOMIC_ACQUIRE));
}

/*
 * How much of the period `ns`, at whose start engine_missed() was `missed_ns`, we spent polling for
 * an acknowledgement. Time in which others had the CPU says nothing about the network, nor about a
 * peer that shares the CPU with us.
 */
static inline uint64_t qp_looked_ns(const struct engine *e, uint64_t ns, uint64_t missed_ns)
{
	return ns - RTE_MIN(ns, engine_missed(e) - missed_ns);
}

/* engine_missed() at qp_quiet_since(). */
static inline uint64_t qp_quiet_missed(const struct qp *q)
{
	return RTE_MAX(__atomic_load_n(&q->rrc.progress_missed_ns, __ATOMIC_ACQUIRE),
		       __atomic_load_n(&q->rtc.busy_missed_ns, __ATOMIC_ACQUIRE));
}

/* How long nothing outstanding has been acknowledged. Another lcore's clock may be a round ahead of
 * ours. */
static inline uint64_t qp_quiet_ns(const struct engine *e, const struct qp *q)
{
	uint64_t since = qp_quiet_since(q);

	return RTE_MAX(engine_now(e), since) - since;
}

/* Something was acknowledged, or a new wait begins. Stage requester_recv. */
static inline void qp_progress(const struct engine *e, struct qp *q)
{
	__atomic_store_n(&q->rrc.progress_ns, engine_now(e), __ATOMIC_RELEASE);
	__atomic_store_n(&q->rrc.progress_missed_ns, engine_missed(e), __ATOMIC_RELEASE);
}

#endif
