/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ExecutionEngine: takes requests from HP_EE, checks them in the order of the standard's flow chart
 * (C9-73), executes them in client memory, writes receive completions, and has RespPktGen answer
 * them (EE_RESPG). Stage responder_exec. Reads the frame, never writes into it; never waits;
 * allocates only to offer credits and for the NAK of a gap. A packet whose translation is pending
 * is held, with those behind it; at the next poll it passes all states again. Until VirtToPhys has
 * answered the packet has no effect: bytes that were already copied are copied again to the same
 * place.
 *
 * Each packet passes the states below, one step function each. The hardware's pairs "command,
 * response" (FETCH_CXT RESP_CXT, VTP_CMD VTP_RESP, ENTRY_FETCH ENTRY_RESP) are one state here,
 * because a call answers at once, or at the next poll.
 *
 * The table of transitions is execution_engine.def.
 */
#include <rte_malloc.h>
#include "completion/completion.h"
#include "ee_plain.h"
#include "ee_work.h"
#include "execution_engine.h"
#include "pipeline/frames.h"
#include "pipeline/train.h"
#include "resp_pkt_gen.h"
#include "responder/responder.h"
#include "virt-to-phys/orphans.h"
#include "virt-to-phys/payload_ref.h"

#define MACHINE	      ee_machine
#define MACHINE_NAME  "ExecutionEngine"
#define MACHINE_ID(s) EE_##s
#define MACHINE_DEF   "execution_engine.def"
#include "pipeline/machine_define.h"

/* The first packet of a connection: adopts the initial PSN, and raises COMM_EST if the QP is still
 * in RTR: its client may not know yet that the peer is connected. */
static void first_packet(struct ee_work *w, enum qp_state state)
{
	struct qp *qp = w->qp;

	qp->ee.comm_est = 1;
	if (qp->service == SERVICE_UD)
		return;
	ee_set_expected(qp, qp->rq_psn & PSN_MASK);
	if (state == QP_RTR)
		eq_post(w->e->completion, w->c, qp->client, EQE_COMM_EST, qp_number(qp));
}

/* The notification point. Datagrams are counted only: their senders are not rate-limited. */
static __rte_noinline void ee_take_mark(struct ee_work *w)
{
	w->a->congested = 0;
	count(w->c, COUNTER_np_ecn_marked_roce_packets);
	if (w->qp->service != SERVICE_UD)
		respg_notify(w->e, w->qp);
}

static inline enum ee_state step_fetch_cxt(struct ee_work *w)
{
	enum qp_state state;

	w->qp = qp_find(w->e->qps, w->a->qpn);
	if (unlikely(!w->qp))
		goto drop;
	state = qp_state(w->qp);
	if (unlikely(!qp_receives(state)))
		goto drop;
	if (unlikely(w->a->congested))
		ee_take_mark(w);
	if (unlikely(!w->qp->ee.comm_est))
		first_packet(w, state);
	return EE_CHECK_PSN;
drop:
	count(w->c, COUNTER_drop_qp_state);
	return EE_DROP;
}

static inline enum ee_state check_psn_rc(struct ee_work *w)
{
	struct qp *qp = w->qp;
	int32_t ahead = psn_diff(w->a->headers.psn, qp->ee.expected_psn);

	if (likely(ahead == 0))
		return EE_CHECK_REQUEST;
	if (ahead < 0)
		return EE_DUPLICATE;
	return ee_behind_gap(w);
}

/* UC: a gap costs the message; the next first or only packet is taken whatever its PSN. */
static inline enum ee_state check_psn_uc(struct ee_work *w)
{
	struct qp *qp = w->qp;
	uint32_t psn = w->a->headers.psn;
	bool expected = psn == qp->ee.expected_psn;

	if (likely(w->op->flags & WIRE_START)) {
		if (unlikely(qp->ee.message != EE_MESSAGE_NONE)) {
			count(w->c, COUNTER_drop_uc_sequence);
			abandon_message(w);
		}
		ee_set_expected(qp, psn);
		return EE_CHECK_REQUEST;
	}
	if (likely(expected && qp->ee.message != EE_MESSAGE_NONE))
		return EE_CHECK_REQUEST;
	abandon_message(w);
	count(w->c, COUNTER_drop_uc_sequence);
	return EE_DROP;
}

static inline enum ee_state step_check_psn(struct ee_work *w)
{
	w->total = w->a->payload_bytes;
	w->psns = 1;
	switch ((enum qp_service)w->qp->service) {
	case SERVICE_RC:
		return check_psn_rc(w);
	case SERVICE_UC:
		return check_psn_uc(w);
	case SERVICE_UD:
		break;
	}
	w->total += EE_GRH_BYTES;
	if (likely(w->op->defined && w->a->headers.qkey == w->qp->qkey))
		return EE_ENTRY_FETCH;
	count(w->c, COUNTER_drop_ud_qkey);
	w->qp->ee.refused++;
	return EE_DROP;
}

static inline enum ee_state step_check_request(struct ee_work *w)
{
	w->outcome = request_check(w->qp, w->a, w->op);
	if (unlikely(w->outcome != OUTCOME_OK))
		return EE_ASYNC_ERROR;
	if (!(w->op->flags & WIRE_START))
		w->total += w->qp->ee.received_bytes;
	w->respond = w->a->headers.ackreq ? RESPONSE_ACK : RESPONSE_NONE;
	if (w->op->flags & WIRE_CONSUMES_RECV)
		return EE_ENTRY_FETCH;
	return w->op->kind == WIRE_KIND_WRITE || w->op->kind == WIRE_KIND_READ ? EE_VTP_CMD
									       : EE_ATOMIC;
}

static inline enum ee_state step_cxt_wb(struct ee_work *w)
{
	struct qp *qp = w->qp;

	count_n(w->c, COUNTER_executed_bytes, w->a->payload_bytes);
	ee_expect_next(qp, w->psns);
	qp->ee.received_bytes = w->total;
	if (unlikely(qp->ee.gap))
		ee_fill_gap(w);
	if (w->op->flags & WIRE_END) {
		qp->ee.message = EE_MESSAGE_NONE;
		qp->ee.msn = psn_add(qp->ee.msn, 1);
		count(w->c, COUNTER_executed);
		w->ee->last = qp;
	} else {
		qp->ee.message = message_of(w->op);
	}
	return likely(qp->service == SERVICE_RC) ? EE_GEN_RESP : EE_DROP;
}

/* Passes on the answer to a READ or atomic. Before a new one everything executed has been
 * acknowledged already; a deferred ACK has a later PSN than a duplicate, and follows it
 * (C9-105). */
static void answer_explicitly(struct ee_work *w)
{
	const struct wire_headers *h = &w->a->headers;
	struct qp *qp = w->qp;

	w->a->length = w->op->kind == WIRE_KIND_READ ? h->dma_len : 0;
	w->a->va = h->va;
	w->a->rkey = h->rkey;
	response_set_duplicate(w->a, w->duplicate);
	if (!w->duplicate)
		qp->ee.reads_issued++;
	hand_over(w->ee, qp, w->m, w->respond, h->psn, ee_ack_syndrome(w->e, qp));
}

static inline enum ee_state step_gen_resp(struct ee_work *w)
{
	switch (w->respond) {
	case RESPONSE_NONE:
		free_packet(w);
		break;
	case RESPONSE_ACK:
		ee_defer_ack(w->ee, w->qp, w->m);
		break;
	case RESPONSE_READ:
	case RESPONSE_ATOMIC:
		answer_explicitly(w);
		break;
	case RESPONSE_SACK: /* answers no request */
		break;
	}
	return EE_IDLE;
}

static enum ee_state step_drop(struct ee_work *w)
{
	free_packet(w);
	return EE_IDLE;
}

static inline enum ee_state ee_step(struct ee_work *w, enum ee_state state)
{
	switch (state) {
	case EE_FETCH_CXT:
		return step_fetch_cxt(w);
	case EE_CHECK_PSN:
		return step_check_psn(w);
	case EE_CHECK_REQUEST:
		return step_check_request(w);
	case EE_DUPLICATE:
		return step_duplicate(w);
	case EE_ENTRY_FETCH:
		return step_entry_fetch(w);
	case EE_SEND_SCATTER:
		return step_send_scatter(w);
	case EE_VTP_CMD:
		return step_vtp_cmd(w);
	case EE_WRITE_DATA:
		return step_write_data(w);
	case EE_STORE_ADDR:
		return step_store_addr(w);
	case EE_ATOMIC:
		return step_atomic(w);
	case EE_WQE_RELEASE:
		return step_wqe_release(w);
	case EE_CXT_WB:
		return step_cxt_wb(w);
	case EE_GEN_RESP:
		return step_gen_resp(w);
	case EE_ASYNC_ERROR:
		return step_async_error(w);
	case EE_DROP:
		return step_drop(w);
	case EE_IDLE:
	case EE_STATES:
		break;
	}
	return EE_IDLE;
}

/* EE_AGAIN: the receive descriptor is as it was before. */
static inline enum ee_then ee_execute(struct engine *e, struct execution_engine *ee,
				      struct counters *c, struct rte_mbuf *m,
				      const uint8_t *payload)
{
	struct ee_work w = {
		.e = e, .ee = ee, .c = c, .m = m, .a = arrival_of(m), .payload = payload};
	enum ee_state state = EE_FETCH_CXT;

	w.op = &wire_opcodes[w.a->headers.opcode];
	do {
		enum ee_state next = ee_step(&w, state);

		MACHINE_STEP(ee_machine, state, next);
		state = next;
	} while (state != EE_IDLE);
	if (likely(w.then != EE_AGAIN))
		return w.then;
	if (w.op->kind == WIRE_KIND_SEND) {
		w.qp->rwm.entry = w.entry;
		w.qp->rwm.entry_bytes = w.entry_bytes;
	}
	return EE_AGAIN;
}

static unsigned take_held(struct execution_engine *ee, struct rte_mbuf **burst, unsigned room)
{
	unsigned n = RTE_MIN(ee->held_count, room);

	memcpy(burst, ee->held, n * sizeof(burst[0]));
	ee->held_count -= n;
	memmove(ee->held, ee->held + n, ee->held_count * sizeof(burst[0]));
	return n;
}

/* What was held comes before what has arrived since. */
static inline unsigned ee_take(struct engine *e, struct execution_engine *ee,
			       struct rte_mbuf **burst, unsigned room)
{
	if (likely(!ee->held_count))
		return channel_take(&e->channel[CHANNEL_HP_EE], burst, room);
	return take_held(ee, burst, room);
}

/* The rest of what was taken, in front of what is held. */
static void hold(struct execution_engine *ee, struct rte_mbuf **rest, unsigned n)
{
	memmove(ee->held + n, ee->held, ee->held_count * sizeof(rest[0]));
	memcpy(ee->held, rest, n * sizeof(rest[0]));
	ee->held_count += n;
}

/* The packets that were kept behind those just executed go in front of what is held, as if they
 * came now. */
static __rte_noinline void hold_early(struct execution_engine *ee, struct qp *qp)
{
	struct rte_mbuf *run[BURST];
	size_t room = RTE_DIM(ee->held) - ee->held_count;

	hold(ee, run, ee_take_early(ee, qp, run, RTE_MIN(room, (size_t)BURST)));
}

/* First pass over a burst: prefetches what the second will read, once for consecutive packets of
 * the same QP and key. An unknown QPN or key only warms a wrong line. */
static inline void prefetch_burst(struct engine *e, struct rte_mbuf **burst, unsigned n)
{
	uint32_t qpn = 0, rkey = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct arrival *a = arrival_of(burst[i]);
		const struct wire_opcode *op = &wire_opcodes[a->headers.opcode];
		struct qp *qp = qp_at(e->qps, a->qpn & e->qps->mask);

		if (a->qpn == qpn && a->headers.rkey == rkey)
			continue;
		qpn = a->qpn;
		rkey = a->headers.rkey;
		qp_prefetch_responder(e->qps, qpn);
		rte_prefetch0(&qp->respg); /* for the answer */
		if (likely(qp_number(qp) == a->qpn) && qp->ee.has_posted)
			rte_prefetch0(qp->record); /* for its credits */
		if (op->flags & WIRE_CONSUMES_RECV)
			rte_prefetch0(&qp->rwm);
		else
			v2p_prefetch(e->v2p, rkey);
	}
}

/* Where the payload is: in the frame, or in the memory of the peer's client. */
static inline enum v2p_state find_payload(const struct arrival *a, const uint8_t **payload)
{
	enum v2p_state s;

	*payload = a->payload;
	if (likely(!a->payload_elsewhere))
		return V2P_SUCCESS;
	s = payload_ref_follow(a->payload, payload);
	*payload += a->payload_skip;
	return s;
}

/* Checks the ICRC, if that is still to be done. */
static inline bool is_intact(struct rte_mbuf *m, const uint8_t *payload)
{
	const struct arrival *a = arrival_of(m);

	return a->payload_elsewhere && a->icrc_bytes ? train_referred_intact(m, payload)
						     : arrival_intact(m);
}

static inline enum ee_then take_packet(struct engine *e, struct execution_engine *ee,
				       struct counters *c, struct rte_mbuf *m)
{
	const uint8_t *payload;
	enum v2p_state found = find_payload(arrival_of(m), &payload);

	if (unlikely(found == V2P_KEY_ERR)) {
		count(c, COUNTER_drop_payload_gone);
		ee->done[ee->done_count++] = m;
		return EE_NEXT;
	}
	if (unlikely(found == V2P_PENDING))
		return EE_AGAIN;
	if (unlikely(!is_intact(m, payload))) {
		count(c, COUNTER_drop_rx_icrc);
		ee->done[ee->done_count++] = m;
		return EE_NEXT;
	}
	return ee_execute(e, ee, c, m, payload);
}

/* A gap has been filled: those that had come early go in front of the rest of the burst, as many as
 * there is room for. Returns how many the rest has now. */
static __rte_noinline unsigned insert_early(struct execution_engine *ee, struct rte_mbuf **rest,
					    unsigned n, unsigned room)
{
	hold(ee, rest, n);
	hold_early(ee, ee->filled);
	return take_held(ee, rest, room);
}

/* Takes the next packet of the burst: burst[*i], or the first of it if it is a train. NULL: no
 * buffer to split it off. */
static inline struct rte_mbuf *take_off(struct engine *e, struct counters *c,
					struct rte_mbuf **burst, unsigned *i)
{
	struct rte_mbuf *m = burst[*i];

	if (likely(arrival_of(m)->packets <= 1)) {
		++*i;
		return m;
	}
	m = train_split(e->clones, m, 1);
	if (unlikely(!m))
		count(c, COUNTER_packet_empty);
	return m;
}

static __rte_noinline unsigned ee_work(struct engine *e)
{
	struct execution_engine *ee = e->ee;
	struct counters *c = stage_counters(e, STAGE_RESPONDER_EXEC);
	unsigned room = RTE_MIN(channel_room(&e->channel[CHANNEL_EE_RESPG]), (unsigned)BURST);
	struct rte_mbuf *burst[BURST], *m, *again = NULL;
	unsigned n = ee_take(e, ee, burst, room), i = 0;

	if (unlikely(early_watched(ee->early)))
		early_look(e, ee->early, c);
	if (n == 0)
		return 0;
	ee->out_count = ee->done_count = ee->deferred_count = 0;
	ee->last = NULL;
	prefetch_burst(e, burst, n);
	/* Packets split off trains need room, too. */
	for (unsigned taken = 0; i < n && taken < room; taken++) {
		enum ee_plain plain;
		enum ee_then then;

		plain = ee_execute_plain(e, ee, c, burst[i]);
		i += plain == EE_PLAIN;
		if (likely(plain != EE_PLAIN_NOT))
			continue;
		m = take_off(e, c, burst, &i);
		if (unlikely(!m))
			break;
		then = take_packet(e, ee, c, m);
		if (likely(then == EE_NEXT))
			continue;
		if (then == EE_AGAIN) {
			again = m;
			break;
		}
		n = i + insert_early(ee, burst + i, n - i, room - i);
	}
	if (unlikely(i < n))
		hold(ee, burst + i, n - i);
	if (unlikely(again))
		hold(ee, &again, 1);
	for (unsigned k = 0; k < ee->deferred_count; k++)
		send_ack(e, ee, ee->deferred[k].qp);
	if (unlikely(ee->sack_count))
		ee_send_sacks(e);
	if (ee->out_count)
		channel_put(&e->channel[CHANNEL_EE_RESPG], ee->out, ee->out_count);
	if (ee->done_count)
		frames_free(e, ee->done, ee->done_count);
	return n;
}

unsigned ee_poll(struct engine *e)
{
	const struct execution_engine *ee = e->ee;

	if (!ee->held_count && !early_watched(ee->early) &&
	    channel_idle(&e->channel[CHANNEL_HP_EE]))
		return 0;
	return ee_work(e);
}

unsigned ee_look(struct engine *e, struct qp_list *list, ee_look_at look_at)
{
	struct execution_engine *ee = e->ee;
	uint32_t last = list->tail;
	unsigned looked = 0;
	struct qp *qp;

	ee->out_count = 0;
	do {
		qp = qp_list_take(list);
		look_at(e, qp);
	} while (++looked < EE_LOOK_QPS && qp->index != last); /* at most all of them, once */
	if (ee->out_count)
		channel_put(&e->channel[CHANNEL_EE_RESPG], ee->out, ee->out_count);
	return ee->out_count;
}

int ee_create(struct engine *e)
{
	struct execution_engine *ee = engine_alloc(e, "ee", sizeof(*ee));

	if (!ee)
		return -ENOMEM;
	e->ee = ee;
	ee->early = early_create(e, "ee_early", offsetof(struct qp, ee_gap.early));
	if (!ee->early) {
		ee_destroy(e);
		return -ENOMEM;
	}
	qp_list_init(&ee->starved, e->qps, offsetof(struct qp, ee.starved));
	qp_list_init(&ee->seldom, e->qps, offsetof(struct qp, ee.starved));
	qp_list_init(&ee->late, e->qps, offsetof(struct qp, ee_gap.late));
	return 0;
}

void ee_destroy(struct engine *e)
{
	struct execution_engine *ee = e->ee;

	if (ee) {
		rte_pktmbuf_free_bulk(ee->held, ee->held_count);
		early_destroy(ee->early);
	}
	rte_free(ee);
	e->ee = NULL;
}

/* Dropping what came early loses nothing: its sender, if it is another HCA, sends it again. */
void responder_drop_orphans(struct engine *e, const struct v2p *sender)
{
	early_clear(e->ee->early);
	e->ee->held_count = orphans_drop(e->ee->held, e->ee->held_count, sender);
}
