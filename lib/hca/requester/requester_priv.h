/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PRIV_H
#define REQUESTER_PRIV_H
/* What the modules of the segmentation and requester_recv stages share with each other and with
 * nobody else. */
#include "completion/completion.h"
#include "context/qp_context.h"
#include "context/qp_list.h"
#include "host-abi/wqe.h"
#include "pipeline/message.h"
#include "requester/requester.h"
#include "send-queue/send_queue.h"
#include "virt-to-phys/v2p.h"
#include "wire/aeth.h"
#include "wire/crc.h"
#include "wire/psn.h"
#include "multi_queue.h"

int rtc_create(struct engine *e);
void rtc_destroy(struct engine *e);
unsigned rtc_poll(struct engine *e);
int rpg_create(struct engine *e);
unsigned rpg_poll(struct engine *e);
int rrc_create(struct engine *e);
void rrc_destroy(struct engine *e);
unsigned rrc_poll(struct engine *e);
int tc_create(struct engine *e);
unsigned tc_poll(struct engine *e);
void tc_destroy(struct engine *e);

/* Has TimerControl set a timer of a QP, so that it expires in value_ns; if it runs already, it
 * begins anew. False: the ring is full (events there are always more than places). Stages
 * segmentation and requester_recv, each into its own channel. */
bool timer_set(struct engine *e, enum channel_id to, const struct qp *q, enum timer_kind timer,
	       uint64_t value_ns);

/* Takes a QP's timers off the wheel: the QP goes away. Stage requester_recv. */
void tc_let_go(struct engine *e, struct qp *q);

/* The settings that its timers go by have changed: the RNR timer is stopped; the Loss timer looks
 * at the next tick whether, and for how long, it has to run. Stage requester_recv. */
void tc_look_anew(struct engine *e, struct qp *q);

/* RequesterRecvControl's own state. */
struct rrc {
	uint8_t state;		      /* enum rrc_state; in debug builds only */
	bool again;		      /* VirtToPhys has a request of the response in hand pending */
	struct rte_mbuf *held[BURST]; /* responses that come again at the next poll, in order */
	unsigned holds;
	struct qp_list retransmit; /* queue pairs that retransmit */
};

/* As an outcome: the response comes again. */
#define RRC_AGAIN OUTCOME_COUNT

/* Lets go of a QP that the CEU took away. Stage requester_recv, as all of the following. */
void rrc_let_go(struct engine *e, struct qp *q);

/* Go-back-N (retransmission.c): everything outstanding from `psn` on goes out again, in PSN order,
 * as far as the window lets it, the rest when that is acknowledged. RequesterTransControl adds
 * nothing meanwhile. */
void retransmit_from(struct engine *e, struct qp *q, uint32_t psn);
/* A loss has shown, or the peer's want of receives: less may be outstanding from now on. */
void retransmit_cut(struct qp *q);
/* `acked` PSNs were acknowledged: round trips are measured, more may be outstanding. */
void retransmit_acked(struct engine *e, struct qp *q, uint32_t acked);
/* One poll of it. Returns packets sent again. */
unsigned retransmit_poll(struct engine *e);

/* The packet asks for an acknowledgement. It may be in MultiQueue already, where the walk looks at
 * that. RequesterTransControl; packet_asks(): RequesterRecvControl. */
static inline void packet_ask(struct packet *p)
{
	__atomic_store_n(&p->headers.ackreq, 1, __ATOMIC_RELAXED);
}

static inline bool packet_asks(const struct packet *p)
{
	return __atomic_load_n(&p->headers.ackreq, __ATOMIC_RELAXED);
}

/* Payloads up to here get their CRC together with the headers, in one pass over the finished frame;
 * longer ones while they are copied. */
#define CRC_WITH_COPY_BYTES 256u

/* Why RequesterTransControl does not go on with a QP (qp.rtc.parked). */
enum park_reason {
	PARK_NONE,
	PARK_BUFFER,
	PARK_FENCE,
	PARK_READS,
	PARK_CREDIT,
	PARK_RNR,
	PARK_PSN,
	PARK_RETRANSMIT,
	PARK_WINDOW,
	PARK_DRAIN,
	PARK_REASONS
};

/* Ttr of a QP in ns, 0: no timer (C9-140). */
static inline uint64_t qp_timeout_ns(const struct qp *q)
{
	return q->timeout ? 4096ull << q->timeout : 0;
}

/*
 * How long nothing may be acknowledged, while we look, before what is outstanding is sent again
 * without counting down (a probe): several round trips, doubled with each probe, and never longer
 * than Ttr. A
 * responder tells a loss once, by one NAK; if that, or the packet that it asked for, is lost too,
 * the transport timer would be the only other one to tell (C9-114, C9-139).
 */
#define PROBE_ROUND_TRIPS 4

static inline uint64_t qp_probe_ns(const struct qp *q, uint64_t tick_ns)
{
	uint64_t srtt = __atomic_load_n(&q->rrc.srtt_ns, __ATOMIC_RELAXED), ns;

	if (!srtt)
		return qp_timeout_ns(q);
	ns = (srtt * PROBE_ROUND_TRIPS + 2 * tick_ns)
	     << __atomic_load_n(&q->rrc.probes, __ATOMIC_RELAXED);
	return RTE_MIN(ns, qp_timeout_ns(q));
}

/* A Loss timer looks so soon whether there is a round trip to go by. */
#define FIRST_LOOK_TICKS 16

/* Since when nothing has been acknowledged, of what is outstanding. Stage requester_recv. */
static inline uint64_t qp_quiet_since(const struct qp *q)
{
	return RTE_MAX(__atomic_load_n(&q->rrc.progress_ns, __ATOMIC_ACQUIRE),
		       __atomic_load_n(&q->rtc.busy_since_ns, __ATOMIC_ACQUIRE));
}

/*
 * For how much of `ns`, which began when engine_missed() was `missed_ns`, did we look for an
 * acknowledgement? Time in which others had the CPU says nothing about the network, nor about a
 * peer that shares it with us.
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

/* For how long. Another lcore's clock may be a round ahead of ours. */
static inline uint64_t qp_quiet_ns(const struct engine *e, const struct qp *q)
{
	uint64_t since = qp_quiet_since(q);

	return RTE_MAX(engine_now(e), since) - since;
}

/* Something was acknowledged, or is waited for anew. Stage requester_recv. */
static inline void qp_progress(const struct engine *e, struct qp *q)
{
	__atomic_store_n(&q->rrc.progress_ns, engine_now(e), __ATOMIC_RELEASE);
	__atomic_store_n(&q->rrc.progress_missed_ns, engine_missed(e), __ATOMIC_RELEASE);
}

/* NPSN. Any stage of the requester. */
static inline uint32_t qp_next_psn(const struct qp *q)
{
	return __atomic_load_n(&q->rtc.next_psn, __ATOMIC_ACQUIRE);
}

/* Is the READ at the head of its queue older than the packet at the head of theirs (or alone)? A
 * local operation has the PSN of what it stands behind: a READ of the same is older. */
static inline bool read_is_older(const struct sw_element *sw, const struct rd_element *rd)
{
	return rd && (!sw || psn_before_eq(rd->psn, sw->psn));
}

/* RequesterTransControl may wait for what has just changed: it stores `parked` and then looks at
 * what we stored. */
static inline void wake_sender(struct engine *e, struct qp *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&q->rtc.parked, __ATOMIC_RELAXED))
		wake_post(&e->wake[WAKE_RTC], &q->wake[WAKE_RTC], q->index);
}

/* PSNs sent and not acknowledged. Any stage of the requester. */
static inline uint32_t qp_outstanding(const struct qp *q)
{
	return psn_sub(qp_next_psn(q), __atomic_load_n(&q->rrc.unacked_psn, __ATOMIC_ACQUIRE));
}

/* The completion of a send WQE of queue pair `qpn`, which is *q. */
void requester_cqe(struct cqe *out, const struct qp *q, uint32_t qpn, enum wire_outcome outcome,
		   uint32_t wqe_offset, uint8_t user_opcode, uint32_t length);

/* Completes a send WQE of an RC QP. OK: only if signaled; an error always. Stage requester_recv. */
void requester_complete(struct engine *e, struct qp *q, enum stage_id stage,
			enum wire_outcome outcome, uint32_t wqe_offset, uint8_t user_opcode,
			uint32_t length);

#endif
