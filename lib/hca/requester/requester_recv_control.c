/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl (doc/modules.md#requesterrecvcontrol): handles everything that comes back.
 * Acknowledgements release packets and complete requests; NAKs and expired timers cause a
 * retransmission, a wait, or the end of the queue pair; read responses are written through their
 * scatter entries; bad requests complete in their turn. Writes qp.rrc and the consumer's side of
 * qp.mq. Stage requester_recv.
 *
 * Each response, expired timer, bad request or failed queue pair passes the states below, one step
 * function each; rrc_work.h says which file has which. The table of transitions is
 * requester_recv_control.def. Nothing here waits: a response whose memory VirtToPhys cannot
 * translate at once is held, with those behind it, and passes all states again at the next poll.
 */
#include <errno.h>
#include "outstanding.h"
#include "pipeline/frames.h"
#include "pipeline/machine.h"
#include "pipeline/train.h"
#include "requester/requester.h"
#include "requester_recv_control.h"
#include "requester_trans_control.h"
#include "retransmission.h"
#include "rrc_acks.h"
#include "rrc_early.h"
#include "rrc_reads.h"
#include "rrc_release.h"
#include "rrc_timers.h"
#include "send-queue/send_queue.h"
#include "send_completion.h"
#include "virt-to-phys/orphans.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/aeth.h"

#define MACHINE	      rrc_machine
#define MACHINE_NAME  "RequesterRecvControl"
#define MACHINE_ID(s) RRC_##s
#define MACHINE_DEF   "requester_recv_control.def"
#include "pipeline/machine_define.h"

int rrc_create(struct engine *e)
{
	struct rrc *c = engine_alloc(e, "rrc", sizeof(*c));

	if (!c)
		return -ENOMEM;
	qp_list_init(&c->retransmit, e->qps, offsetof(struct qp, rrc.retransmit));
	qp_list_init(&c->lossy, e->qps, offsetof(struct qp, rrc.lossy));
	qp_list_init(&c->filled, e->qps, offsetof(struct qp, repeat.filled));
	c->walked = e->qps->count;
	e->rrc = c;
	c->early = early_create(e, "rrc_early", offsetof(struct qp, repeat.early));
	if (!c->early) {
		rrc_destroy(e);
		return -ENOMEM;
	}
	return 0;
}

void rrc_destroy(struct engine *e)
{
	struct rrc *c = e->rrc;

	if (c) {
		rte_pktmbuf_free_bulk(c->held, c->holds);
		early_destroy(c->early);
	}
	rte_free(c);
	e->rrc = NULL;
}

void requester_drop_orphans(struct engine *e, const struct v2p *sender)
{
	early_clear(e->rrc->early);
	e->rrc->holds = orphans_drop(e->rrc->held, e->rrc->holds, sender);
}

unsigned rrc_kept(const struct engine *e)
{
	return e->rrc->early->count;
}

bool rrc_holds_responses(const struct engine *e)
{
	return e->rrc->holds != 0 || !qp_list_empty(&e->rrc->filled);
}

/* ---- RESP_CXT ---- */

static bool is_ack(const struct wire_headers *h)
{
	return wire_opcodes[h->opcode].kind == WIRE_KIND_ACK && aeth_kind(h->syndrome) == AETH_ACK;
}

/* The response is about nothing outstanding. Duplicates may still carry credits (C9-144), among
 * them the unsolicited ACK with the initial PSN - 1 (C9-155, C9-164). */
static enum rrc_state out_of_window(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;

	if (!psn_before(h->psn, w->q->rrc.unacked_psn)) {
		w->q->rrc.ghosts++;
		return rrc_drop(w, COUNTER_drop_ack_ghost);
	}
	if (is_ack(h))
		rrc_take_credits(w);
	return rrc_drop(w, COUNTER_ack_duplicate);
}

/* A QP that does not send has no use for responses, except for initial credits: its peer may be in
 * RTS before it is. */
static enum rrc_state not_sending(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;

	if (qp_state(w->q) == QP_RTR && w->q->service == SERVICE_RC && is_ack(h) && h->msn == 0)
		rrc_take_credits(w);
	return rrc_drop(w, COUNTER_drop_qp_state);
}

/* The next state for an acknowledge packet within the outstanding PSNs. */
static inline enum rrc_state acknowledge(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;

	switch (aeth_kind(h->syndrome)) {
	case AETH_ACK:
		if (unlikely(rrc_read_in_the_way(w->e, w->q, h->psn)))
			return RRC_ACK_RELEASE_EXCEPTION;
		return RRC_ACK_RELEASE_NORMAL;
	case AETH_RNR:
		w->outcome = OUTCOME_RNR;
		return RRC_NAK_IMPLICIT_RELEASE;
	case AETH_NAK:
		w->outcome = wire_outcome_of_nak(aeth_value(h->syndrome));
		if (w->outcome != OUTCOME_BAD_RESP)
			return RRC_NAK_IMPLICIT_RELEASE;
		break;
	case AETH_RESERVED:
		break;
	}
	return rrc_drop(w, COUNTER_drop_ack_syndrome);
}

static inline enum rrc_state step_resp_cxt(struct rrc_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	uint8_t kind = wire_opcodes[h->opcode].kind;
	struct qp *q = w->q;

	if (unlikely(w->a->payload_bytes && kind != WIRE_KIND_READ_RESP))
		return kind == WIRE_KIND_SACK ? RRC_SACK : rrc_drop(w, COUNTER_drop_resp_length);
	if (unlikely(!qp_sends(qp_state(q)) || q->service != SERVICE_RC))
		return not_sending(w);
	if (unlikely(!psn_before_eq(q->rrc.unacked_psn, h->psn) ||
		     !psn_before(h->psn, qp_next_psn(q))))
		return out_of_window(w);
	return kind == WIRE_KIND_ACK ? acknowledge(w) : RRC_READ_IMPLICIT_RELEASE;
}

/* ---- BAD_REQ ---- */

/* Is there a bad request with nothing outstanding before it? */
static inline bool bad_request_in_turn(const struct qp *q)
{
	return unlikely(q->rrc.bad_head) && mq_count(&q->mq.sw) == 0 && mq_count(&q->mq.rd) == 0;
}

/* The QP's state decides first (IBTA 10.3.1.6): the request that moves the QP to ERR completes with
 * its error; in ERR all are flushed, whatever is wrong with them. */
static enum rrc_state step_bad_req(struct rrc_work *w)
{
	struct qp *q = w->q;
	struct rte_mbuf *m = q->rrc.bad_head;
	struct request *r = request_of(m);
	bool first = qp_set_error(w->e, q);

	q->rrc.bad_head = r->next;
	if (q->rrc.fatal) /* the rest of the request that failed: its error is reported */
		q->rrc.fatal = 0;
	else
		requester_complete(w->e, q, first ? r->outcome : OUTCOME_FLUSH, r->wqe_offset,
				   r->opcode, 0);
	request_free(w->e, m);
	return bad_request_in_turn(q) ? RRC_BAD_REQ : RRC_IDLE;
}

/* ---- the machine ---- */

static __rte_always_inline enum rrc_state rrc_step(struct rrc_work *w, enum rrc_state state)
{
	switch (state) {
	case RRC_RESP_CXT:
		return step_resp_cxt(w);
	case RRC_ACK_RELEASE_NORMAL:
		return rrc_step_ack_release_normal(w);
	case RRC_ACK_RELEASE_EXCEPTION:
		return rrc_step_ack_release_exception(w);
	case RRC_SACK:
		return rrc_step_sack(w);
	case RRC_ACK_LOSS_RETRANS:
	case RRC_READ_RETRANS:
		return rrc_step_implied_nak(w);
	case RRC_NAK_IMPLICIT_RELEASE:
		return rrc_step_nak_implicit_release(w);
	case RRC_NAK_RETRANS:
		return rrc_step_nak_retrans(w);
	case RRC_RESET_TIMER:
		return rrc_step_reset_timer(w);
	case RRC_READ_IMPLICIT_RELEASE:
		return rrc_step_read_implicit_release(w);
	case RRC_READ_FETCH_ENTRY:
		return rrc_step_read_fetch_entry(w);
	case RRC_READ_SCATTER:
		return rrc_step_read_scatter(w);
	case RRC_READ_UPDATE_ENTRY:
		return rrc_step_read_update_entry(w);
	case RRC_READ_RELEASE_ENTRY:
		return rrc_step_read_release_entry(w);
	case RRC_READ_FLUSH:
		return rrc_step_read_flush(w);
	case RRC_TIMER_RETRANS:
		return rrc_step_timer_retrans(w);
	case RRC_PROBE:
		return rrc_step_probe(w);
	case RRC_RNR_RETRANS:
		return rrc_step_rnr_retrans(w);
	case RRC_BAD_REQ:
		return step_bad_req(w);
	case RRC_FLUSH:
		return rrc_step_flush(w);
	case RRC_SILENT_DROP:
	case RRC_IDLE:
		break;
	}
	return RRC_IDLE;
}

void rrc_run(struct rrc_work *w, enum rrc_state state)
{
	MACHINE_STEP(rrc_machine, RRC_IDLE, state);
	do {
		enum rrc_state next = rrc_step(w, state);

		MACHINE_STEP(rrc_machine, state, next);
		state = next;
	} while (state != RRC_IDLE);
}

void rrc_bad_requests(struct engine *e, struct qp *q)
{
	struct rrc_work w = {.e = e, .c = rrc_counters(e), .q = q};

	if (bad_request_in_turn(q))
		rrc_run(&w, RRC_BAD_REQ);
}

/* ---- the poll ---- */

static unsigned take_bad_requests(struct engine *e)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_RTC_RRC], m, BURST);

	for (unsigned i = 0; i < n; i++) {
		struct qp *q = request_qp(e, STAGE_REQUESTER_RECV, m[i]);

		if (!q)
			continue;
		requests_append(&q->rrc.bad_head, &q->rrc.bad_tail, m[i]);
		rrc_bad_requests(e, q);
	}
	return n;
}

/*
 * The network has marked the response. If it answers a READ, the requester is the notification
 * point: RespPktGen sends the CNP. A peer that only acknowledges has nothing to slow down.
 */
static __rte_noinline void rrc_take_mark(struct engine *e, struct counters *c, struct qp *q,
					 struct arrival *a)
{
	a->congested = 0;
	count(c, COUNTER_np_ecn_marked_roce_packets);
	if (wire_opcodes[a->headers.opcode].kind != WIRE_KIND_READ_RESP)
		return;
	__atomic_store_n(&q->rrc.marks, q->rrc.marks + 1, __ATOMIC_RELAXED);
	wake_post(&e->wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
}

/* Checks a response that was split off a train of references with ICRCs. False: it is done with, or
 * w->again is set. */
static __rte_noinline bool judge_reference(struct rrc_work *w)
{
	const uint8_t *at;
	enum v2p_state s = payload_ref_follow(w->a->payload, &at);

	if (s == V2P_PENDING) {
		w->again = true;
		return false;
	}
	if (s != V2P_SUCCESS) {
		count(w->c, COUNTER_drop_payload_gone);
		return false;
	}
	if (train_referred_intact(w->m, at + w->a->payload_skip))
		return true;
	if (!train_headers_intact(w->m, train_index(w->a))) {
		count(w->c, COUNTER_drop_rx_icrc);
		return false;
	}
	count(w->c, COUNTER_payload_changed); /* what is there now will do */
	return true;
}

/* What becomes of the response: it is done with, or kept, or must be retried. */
enum taken { TAKEN, TAKEN_KEPT, TAKEN_NOT };

static inline enum taken take_response(struct engine *e, struct counters *c, struct rte_mbuf *m)
{
	struct rrc_work w = {.e = e, .c = c, .m = m, .a = arrival_of(m)};

	w.q = qp_find(e->qps, w.a->qpn);
	if (unlikely(!w.q)) {
		count(c, COUNTER_drop_rx_qpn);
		return TAKEN;
	}
	if (unlikely(w.a->payload_elsewhere && w.a->icrc_bytes)) {
		if (!judge_reference(&w))
			return w.again ? TAKEN_NOT : TAKEN;
	} else if (unlikely(!arrival_intact(m))) {
		count(c, COUNTER_drop_rx_icrc);
		return TAKEN;
	}
	if (unlikely(w.a->congested))
		rrc_take_mark(e, c, w.q, arrival_of(m));
	rrc_run(&w, RRC_RESP_CXT);
	rrc_bad_requests(e, w.q);
	wake_sender(e, w.q);
	rrc_look_early(e, w.q);
	return unlikely(w.kept) ? TAKEN_KEPT : likely(!w.again) ? TAKEN : TAKEN_NOT;
}

bool rrc_take_one(struct engine *e, struct rte_mbuf *m)
{
	return take_response(e, rrc_counters(e), m) != TAKEN_NOT;
}

/* Held responses first, until none is left; then those that have arrived. */
static unsigned rrc_take_burst(struct engine *e, struct rte_mbuf **m)
{
	struct rrc *c = e->rrc;
	unsigned n = c->holds;

	if (likely(!n))
		return channel_take(&e->channel[CHANNEL_HP_RRC], m, BURST);
	memcpy(m, c->held, n * sizeof(m[0]));
	c->holds = 0;
	return n;
}

static void hold(struct rrc *rrc, struct rte_mbuf *first, struct rte_mbuf *const *rest, unsigned n)
{
	rrc->holds = 0;
	if (first)
		rrc->held[rrc->holds++] = first;
	memcpy(rrc->held + rrc->holds, rest, n * sizeof(rest[0]));
	rrc->holds += n;
}

static inline enum taken take_single(struct engine *e, struct counters *c, struct rte_mbuf *m)
{
	if (arrival_of(m)->headers.opcode == WIRE_RC_READ_RESP_MIDDLE && rrc_take_middle(e, c, m))
		return TAKEN;
	return take_response(e, c, m);
}

/* Takes a train as a whole, or packet by packet. TAKEN_NOT: the packet split off, *first, is to be
 * retried, or there was no buffer for it; m keeps the rest. */
static __rte_noinline enum taken take_train(struct engine *e, struct counters *c,
					    struct rte_mbuf *m, struct rte_mbuf **first)
{
	while (arrival_of(m)->packets > 1) {
		struct rte_mbuf *one;
		enum taken taken;

		if (likely(rrc_take_train(e, c, m)))
			return TAKEN;
		if (arrival_of(m)->packets == 1)
			break;
		one = train_split(e->clones, m, 1);
		if (unlikely(!one)) {
			count(c, COUNTER_packet_empty);
			return TAKEN_NOT;
		}
		taken = take_single(e, c, one);
		if (unlikely(taken == TAKEN_NOT)) {
			*first = one;
			return TAKEN_NOT;
		}
		if (taken == TAKEN)
			rte_pktmbuf_free(one);
	}
	return take_single(e, c, m);
}

/* Takes m[0], and perhaps more behind it: *run in all. */
static inline enum taken take_next(struct engine *e, struct counters *c, struct rte_mbuf **m,
				   unsigned n, struct rte_mbuf **first, unsigned *run)
{
	const struct arrival *a = arrival_of(m[0]);

	*run = 1;
	if (a->packets > 1)
		return take_train(e, c, m[0], first);
	if (rrc_is_whole(a)) {
		*run = rrc_take_run(e, c, m, n);
		if (*run)
			return TAKEN;
		*run = 1;
	}
	return take_single(e, c, m[0]);
}

static unsigned take_responses(struct engine *e)
{
	struct counters *c = rrc_counters(e);
	struct rte_mbuf *m[BURST + 1], *first = NULL;
	unsigned n = rrc_take_burst(e, m), done = 0, over = 0, run;

	while (done < n) {
		enum taken taken = take_next(e, c, m + done, n - done, &first, &run);

		if (unlikely(taken == TAKEN_NOT))
			break;
		if (unlikely(taken == TAKEN_KEPT)) {
			done++;
			continue;
		}
		for (; run; run--)
			m[over++] = m[done++];
	}
	if (unlikely(done < n))
		hold(e->rrc, first, m + done, n - done);
	frames_free(e, m, over);
	return n;
}

static __rte_noinline unsigned rrc_work(struct engine *e)
{
	struct rrc *rrc = e->rrc;
	unsigned n;

	rrc_take_wakes(e);
	n = take_responses(e); /* first: after a pause they may prove a timer wrong */
	if (unlikely(!qp_list_empty(&rrc->filled)))
		n += rrc_take_early(e);
	if (unlikely(early_watched(rrc->early)))
		early_look(e, rrc->early, rrc_counters(e));
	n += rrc_take_expiries(e);
	n += rrc_look_at_lossy(e);
	n += rrc_look_at_link(e);
	n += take_bad_requests(e);
	return n + retransmit_poll(e);
}

/* Has nothing come, and is nothing here waiting for time to pass, or for room? */
static inline bool rrc_idle(struct engine *e)
{
	static const enum channel_id inputs[] = {CHANNEL_HP_RRC, CHANNEL_TC_RRC, CHANNEL_RTC_RRC};
	const struct rrc *rrc = e->rrc;

	return wake_list_empty(&e->wake[WAKE_RRC]) && !rrc->holds && qp_list_empty(&rrc->filled) &&
	       !early_watched(rrc->early) && qp_list_empty(&rrc->lossy) &&
	       qp_list_empty(&rrc->retransmit) && rrc_link_is_old(e) &&
	       channels_idle(e->channel, inputs, RTE_DIM(inputs));
}

unsigned rrc_poll(struct engine *e)
{
	return rrc_idle(e) ? 0 : rrc_work(e);
}
