/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterRecvControl (seed 000 3.4.5): what comes back. Acknowledgements release packets and
 * complete requests; NAKs and expired timers send again, wait, or end the queue pair; read
 * responses are written through their scatter entries; bad requests complete in their turn. Writes
 * qp.rrc and the consumer's side of qp.mq. Stage requester_recv. Timers and wakes: rrc_timers.c.
 *
 * The table of transitions is requester_recv_control.def.
 */
#include <errno.h>
#include <rte_memcpy.h>
#include "pipeline/machine.h"
#include "completion/completion.h"
#include "host-abi/wqe.h"
#include "outstanding.h"
#include "requester_recv_control.h"
#include "requester_trans_control.h"
#include "retransmission.h"
#include "rrc.h"
#include "rrc_timers.h"
#include "scatter_entry_manager.h"
#include "send-queue/send_queue.h"
#include "send_completion.h"
#include "timer_control.h"
#include "virt-to-phys/v2p.h"
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
	e->rrc = c;
	return 0;
}

void rrc_destroy(struct engine *e)
{
	struct rrc *c = e->rrc;

	if (c)
		rte_pktmbuf_free_bulk(c->held, c->holds);
	rte_free(c);
	e->rrc = NULL;
}

bool rrc_holds_responses(const struct engine *e)
{
	return e->rrc->holds != 0;
}

/* The states are entered one after another in straight-line code; only debug builds keep account.
 */
#ifdef SOFTHCA_DEBUG
void rrc_enter(struct engine *e, enum rrc_state next)
{
	struct rrc *c = e->rrc;

	MACHINE_STEP(rrc_machine, c->state, next);
	c->state = next;
}
#endif

/* ---- completion and release ---- */

static void complete(struct engine *e, struct qp *q, uint8_t flags, uint32_t wqe_offset,
		     uint8_t opcode, uint32_t length)
{
	if (flags & ELEMENT_SIGNALED)
		requester_complete(e, q, STAGE_REQUESTER_RECV, OUTCOME_OK, wqe_offset, opcode,
				   length);
}

static void advanced(struct engine *e, struct qp *q, uint32_t unacked)
{
	uint32_t acked;

	if (unacked == q->rrc.unacked_psn)
		return;
	acked = psn_sub(unacked, q->rrc.unacked_psn);
	__atomic_store_n(&q->rrc.unacked_psn, unacked, __ATOMIC_RELEASE);
	qp_progress(e, q);
	__atomic_store_n(&q->rrc.proven, 1, __ATOMIC_RELAXED);
	q->rrc.retry_left = q->retry_cnt;
	q->rrc.rnr_left = q->rnr_retry;
	retransmit_acked(e, q, acked);
}

/* Our references to packets that were acknowledged. They are given up some at a time: each lies in
 * lines that nobody has looked at since it was sent, and so these come side by side. */
struct released {
	struct rte_mbuf *m[BURST];
	unsigned count;
};

static void give_back(struct released *r)
{
	if (r->count)
		rte_pktmbuf_free_bulk(r->m, r->count);
	r->count = 0;
}

static inline void released_add(struct released *r, struct rte_mbuf *m)
{
	if (unlikely(!m)) /* a local operation */
		return;
	if (unlikely(r->count == BURST))
		give_back(r);
	rte_prefetch0(m);
	rte_prefetch0((char *)m + RTE_CACHE_LINE_SIZE);
	r->m[r->count++] = m;
}

/*
 * Releases packets up to and with `upto`, as far as no unanswered READ or atomic is in the way.
 * True: none was.
 */
static bool release(struct engine *e, struct qp *q, uint32_t upto)
{
	uint32_t unacked = q->rrc.unacked_psn;
	struct rd_element *rd = rd_head(e->mq, &q->mq.rd);
	struct released done;
	struct sw_element *sw;
	bool clear = true;

	done.count = 0;
	while ((sw = sw_head(e->mq, &q->mq.sw)) && psn_before_eq(sw->psn, upto) &&
	       !read_is_older(sw, rd)) {
		uint8_t flags = sw->flags;

		released_add(&done, sw->m);
		complete(e, q, flags, sw->wqe_offset, sw->opcode, sw->length);
		unacked = psn_add(sw->psn, 1);
		sw_pop(e->mq, &q->mq.sw);
	}
	give_back(&done);
	if (rd && psn_before_eq(rd->psn, upto)) {
		unacked = psn_add(rd->psn, q->rrc.read_packets);
		clear = false;
	}
	advanced(e, q, unacked);
	return clear;
}

/* ---- failure ---- */

/* The QP is in ERR: the request, or a packet of it, will not be done; `last`: there is no more of
 * it behind. The first one completes as `first`, the others as flushed. A request in several
 * packets completes once: the one that failed with the packet that did, others with their last
 * packet, or, when that was never sent, as a bad request later. What comes next in order belongs to
 * the same request until its last packet did. */
static void give_up(struct engine *e, struct qp *q, enum wire_outcome first, uint32_t offset,
		    uint8_t opcode, bool last)
{
	bool reported = q->rrc.fatal;

	q->rrc.flushed = 1;
	if (first != OUTCOME_FLUSH || (last && !reported))
		requester_complete(e, q, STAGE_REQUESTER_RECV, first, offset, opcode, 0);
	if (first != OUTCOME_FLUSH || reported)
		q->rrc.fatal = !last;
}

void rrc_release_local(struct engine *e, struct qp *q)
{
	release(e, q, psn_sub(q->rrc.unacked_psn, 1));
}

/*
 * Gives up everything outstanding, in order. The context's numbers are not kept up any more: ERR is
 * left through RST only.
 *
 * RequesterTransControl may be in the midst of a visit that began before ERR: it puts an element,
 * then moves NPSN past it, and at the end wakes us if NPSN is not UPSN. So NPSN is read before the
 * lists: what comes too late for them leaves the two apart.
 */
void rrc_flush(struct engine *e, struct qp *q, enum wire_outcome first)
{
	uint32_t next_psn = qp_next_psn(q);
	struct sw_element *sw;
	struct rd_element *rd;

	rrc_enter(e, RRC_FLUSH);
	if (!q->rrc.flushed) /* else a local operation has come late, behind what was given up */
		rrc_release_local(e, q);
	while (mq_heads(e->mq, &q->mq.sw, &q->mq.rd, &sw, &rd)) {
		if (read_is_older(sw, rd)) {
			give_up(e, q, first, rd->wqe_offset, rd->opcode, true);
			sem_release(e, q, rd->entries);
			rd_pop(e->mq, &q->mq.rd);
		} else {
			give_up(e, q, first, sw->wqe_offset, sw->opcode, sw->flags & ELEMENT_LAST);
			rte_pktmbuf_free(sw->m);
			sw_pop(e->mq, &q->mq.sw);
		}
		first = OUTCOME_FLUSH;
	}
	__atomic_store_n(&q->rrc.unacked_psn, next_psn, __ATOMIC_RELEASE);
	rrc_enter(e, RRC_CLEAR_TIMER);
}

static void fail(struct engine *e, struct qp *q, enum wire_outcome outcome)
{
	qp_set_error(e, q);
	rrc_flush(e, q, outcome);
}

/* ---- bad requests ---- */

static bool nothing_outstanding(const struct qp *q)
{
	return mq_count(&q->mq.sw) == 0 && mq_count(&q->mq.rd) == 0;
}

/* Completes the bad requests whose turn has come. The state is looked at first (seed 000 3.4,
 * IBTA 10.3.1.6): the one that moves the QP to ERR completes with its error; in ERR all are
 * flushed, whatever is wrong with them. */
void rrc_bad_requests(struct engine *e, struct qp *q)
{
	while (q->rrc.bad_head && nothing_outstanding(q)) {
		struct rte_mbuf *m = q->rrc.bad_head;
		struct request *r = request_of(m);
		bool first = qp_set_error(e, q);

		rrc_enter(e, RRC_BAD_REQ);
		q->rrc.bad_head = r->next;
		if (q->rrc.fatal) /* the rest of the request that failed: its error is reported */
			q->rrc.fatal = 0;
		else
			requester_complete(e, q, STAGE_REQUESTER_RECV,
					   first ? r->outcome : OUTCOME_FLUSH, r->wqe_offset,
					   r->opcode, 0);
		request_free(e, m);
		rrc_enter(e, RRC_IDLE);
	}
}

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

/* ---- responses ---- */

/* A loss has shown: from there on again, and less outstanding from now on. */
void rrc_send_again(struct engine *e, struct qp *q, uint32_t psn)
{
	retransmit_cut(q);
	retransmit_from(e, q, psn);
}

/* One more try of what does not come; the counter is loaded again whenever something advances
 * (C9-137, C9-142). */
void rrc_retry(struct engine *e, struct qp *q, uint32_t psn)
{
	if (q->rrc.retry_left == 0) {
		count(rrc_counters(e), COUNTER_retry_exceeded);
		fail(e, q, OUTCOME_RETRY_EXC);
		return;
	}
	q->rrc.retry_left--;
	qp_progress(e, q);
	rrc_send_again(e, q, psn);
}

/* The same because of a NAK. One that a probe has drawn does not count: the transport timer, which
 * probes do not put off, counts what makes no progress. */
static void retry_nak(struct engine *e, struct qp *q, uint32_t psn)
{
	if (unlikely(q->rrc.probes))
		rrc_send_again(e, q, psn);
	else
		rrc_retry(e, q, psn);
}

/*
 * What was on its way when the retransmission began may draw the same NAK again, from a peer whose
 * silence a duplicate ends (C9-80; ours keeps it, C9-114). Such a repetition says nothing new: it
 * neither counts down nor starts over, for as long as an answer takes. Before a round trip was
 * measured that is a guess, doubled with each try in vain: others may keep the peer from its CPU.
 * If the repeated packet itself was lost, a probe or the Loss timer finds out.
 */
#define NAK_REPEAT_NS 250000

static bool says_nothing_new(const struct engine *e, const struct qp *q)
{
	uint64_t ns = q->rrc.srtt_ns ? qp_probe_ns(q, e->settings.timer_tick_ns) : 0;
	unsigned tries = q->retry_cnt > q->rrc.retry_left ? q->retry_cnt - q->rrc.retry_left : 0;

	return engine_now(e) - q->rrc.nak_ns < RTE_MAX(ns, (uint64_t)NAK_REPEAT_NS << tries);
}

/* ACK_LOSS_RETRANS: an acknowledgement of something later says that the response of a READ or
 * atomic was lost. Once: until that READ moves on, more of them say nothing new. */
static void implied_nak(struct engine *e, struct qp *q)
{
	uint32_t psn = q->rrc.unacked_psn;

	if (q->rrc.gap_psn == psn + 1 && says_nothing_new(e, q))
		return;
	q->rrc.gap_psn = psn + 1;
	q->rrc.nak_ns = engine_now(e);
	retry_nak(e, q, psn);
}

/* LSN = MSN + credits (C9-161), unless a newer acknowledgement overtook this one, or the MSN, which
 * is the SSN of the request done last, is that of one not sent yet. A peer that once said that it
 * gives no credits is sent to at will from then on (C9-153). */
static void take_credits(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	uint32_t old = q->rrc.credits, credits = aeth_credits(aeth_value(h->syndrome));

	if (old & CREDITS_UNLIMITED ||
	    (old & CREDITS_CAME && psn_before(h->msn, q->rrc.credit_msn)))
		return;
	if (unlikely(credits != AETH_CREDITS_UNLIMITED &&
		     !psn_before(h->msn, __atomic_load_n(&q->rtc.ssn, __ATOMIC_RELAXED)))) {
		count(rrc_counters(e), COUNTER_ack_msn_ahead);
		return;
	}
	q->rrc.credit_msn = h->msn;
	__atomic_store_n(&q->rrc.credits,
			 credits == AETH_CREDITS_UNLIMITED
				 ? CREDITS_UNLIMITED
				 : CREDITS_CAME | psn_add(h->msn, credits),
			 __ATOMIC_RELEASE);
}

static void ack(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	take_credits(e, q, h);
	count(rrc_counters(e), COUNTER_acks);
	if (likely(release(e, q, h->psn))) {
		rrc_enter(e, RRC_ACK_RELEASE_NORMAL);
		return;
	}
	rrc_enter(e, RRC_ACK_RELEASE_EXCEPTION);
	rrc_enter(e, RRC_ACK_LOSS_RETRANS);
	implied_nak(e, q);
}

static void nak_rnr(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	count(rrc_counters(e), COUNTER_nak_rnr_received);
	if (q->rrc.rnr_waiting) { /* the network doubled it: nothing was sent since (C9-132) */
		rrc_enter(e, RRC_SILENT_DROP);
		return;
	}
	if (q->rrc.rnr_left == 0) {
		count(rrc_counters(e), COUNTER_rnr_retry_exceeded);
		fail(e, q, OUTCOME_RNR_RETRY_EXC);
		return;
	}
	rrc_enter(e, RRC_RESET_TIMER);
	if (!timer_set(e, CHANNEL_RRC_TC, q, TIMER_RNR, aeth_rnr_ns(aeth_value(h->syndrome))))
		return; /* as if the NAK had been lost: the Loss timer sends again, and another NAK
			   comes */
	if (q->rnr_retry != 7)
		q->rrc.rnr_left--;
	__atomic_store_n(&q->rrc.rnr_waiting, 1, __ATOMIC_RELEASE);
	qp_progress(e, q);
}

static void nak_sequence(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	count(rrc_counters(e), COUNTER_nak_sequence_received);
	if (q->rrc.rnr_waiting) /* after an RNR NAK the rest of the message draws this one: the RNR
				   wins */
		return;
	if (q->rrc.nak_psn == h->psn + 1 && says_nothing_new(e, q))
		return;
	q->rrc.nak_psn = h->psn + 1;
	q->rrc.nak_ns = engine_now(e);
	retry_nak(e, q, h->psn);
}

static void nak_fatal(struct engine *e, struct qp *q, enum wire_outcome outcome)
{
	static const enum counter counters[OUTCOME_COUNT] = {
		[OUTCOME_INVALID_REQUEST] = COUNTER_nak_invalid_received,
		[OUTCOME_REMOTE_ACCESS] = COUNTER_nak_access_received,
		[OUTCOME_REMOTE_OPERATION] = COUNTER_nak_operation_received,
	};

	count(rrc_counters(e), counters[outcome]);
	fail(e, q, outcome);
}

static void drop(struct engine *e, enum counter why)
{
	rrc_enter(e, RRC_SILENT_DROP);
	count(rrc_counters(e), why);
}

/* What precedes is released; then what the NAK says. */
static void nak(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	enum wire_outcome outcome = OUTCOME_RNR;

	if (aeth_kind(h->syndrome) == AETH_NAK) {
		outcome = wire_outcome_of_nak(aeth_value(h->syndrome));
		if (outcome == OUTCOME_BAD_RESP) {
			drop(e, COUNTER_drop_ack_syndrome);
			return;
		}
	}
	rrc_enter(e, RRC_NAK_IMPLICIT_RELEASE);
	release(e, q, psn_sub(h->psn, 1));
	/* What is older and still there is a READ that lost a response, unless it is that one which
	 * failed (C9-100). It is asked for again with the rest, for RNR when the wait is over
	 * (C9-130). */
	if (h->psn != q->rrc.unacked_psn && outcome != OUTCOME_RNR) {
		rrc_enter(e, RRC_ACK_LOSS_RETRANS);
		implied_nak(e, q);
	} else if (outcome == OUTCOME_RNR) {
		nak_rnr(e, q, h);
	} else if (outcome == OUTCOME_SEQUENCE) {
		rrc_enter(e, RRC_NAK_RETRANS);
		nak_sequence(e, q, h);
	} else {
		nak_fatal(e, q, outcome);
	}
}

/* Writes the bytes behind one another into the request's scatter entries, but for those that were
 * written when the response came before. RRC_AGAIN: VirtToPhys has the rest pending. */
static enum wire_outcome scatter(struct engine *e, struct qp *q, struct rd_element *rd,
				 const uint8_t *from, uint32_t bytes)
{
	while (q->rrc.scattered < bytes) {
		struct re_element entry;
		enum v2p_state s;
		uint32_t piece = bytes - q->rrc.scattered;
		uint8_t *to;
		uint64_t run;

		rrc_enter(e, RRC_READ_FETCH_ENTRY);
		if (sem_fetch(e, q, &rd->entries, &entry) != SEM_VALID_ENTRY)
			return OUTCOME_LOCAL_LENGTH;
		rrc_enter(e, RRC_READ_SCATTER);
		piece = RTE_MIN(piece, entry.length);
		s = v2p_map(e->v2p_port[STAGE_REQUESTER_RECV], V2P_RRC_DATA, q->pd, entry.lkey,
			    entry.addr, piece, ACCESS_LOCAL_WRITE, &to, &run);
		if (unlikely(s == V2P_PENDING)) {
			e->rrc->again = true;
			return RRC_AGAIN;
		}
		if (unlikely(s != V2P_SUCCESS)) {
			v2p_count_error(rrc_counters(e), s);
			return OUTCOME_LOCAL_PROT;
		}
		piece = RTE_MIN(piece, (uint32_t)run);
		rte_memcpy(to, from + q->rrc.scattered, piece);
		rrc_enter(e, RRC_READ_UPDATE_ENTRY);
		sem_update(e, q, piece);
		q->rrc.scattered += piece;
	}
	q->rrc.scattered = 0;
	return OUTCOME_OK;
}

/* The READ or atomic at the head has got all it asked for. */
static void read_done(struct engine *e, struct qp *q, struct rd_element *rd)
{
	uint32_t unacked = psn_add(rd->psn, rd->packets);

	rrc_enter(e, RRC_READ_RELEASE_ENTRY);
	complete(e, q, rd->flags, rd->wqe_offset, rd->opcode, rd->length);
	sem_release(e, q, rd->entries);
	rd_pop(e->mq, &q->mq.rd);
	__atomic_store_n(&q->rrc.read_packets, 0, __ATOMIC_RELAXED);
	q->rrc.read_asked = 0;
	q->rrc.gap_psn = 0;
	__atomic_store_n(&q->rrc.reads_done, q->rrc.reads_done + 1, __ATOMIC_RELEASE);
	advanced(e, q, unacked);
	rrc_release_local(e, q);
}

/* The response is given up, and with it the queue pair. */
static void read_failed(struct engine *e, struct qp *q, enum wire_outcome outcome)
{
	rrc_enter(e, RRC_READ_FLUSH);
	fail(e, q, outcome);
}

/* Bytes that the response number `index` of a READ has to carry. */
static uint32_t response_bytes(const struct qp *q, const struct rd_element *rd, uint32_t index)
{
	uint32_t left = rd->length - index * q->mtu_bytes;

	return RTE_MIN(left, (uint32_t)q->mtu_bytes);
}

static void read_response(struct engine *e, struct qp *q, struct rd_element *rd, struct rte_mbuf *m)
{
	const struct arrival *a = arrival_of(m);
	uint32_t index = q->rrc.read_packets;
	enum wire_outcome outcome;

	if (unlikely(a->payload_bytes != response_bytes(q, rd, index))) {
		count(rrc_counters(e), COUNTER_drop_resp_length);
		read_failed(e, q, OUTCOME_BAD_RESP);
		return;
	}
	outcome = scatter(e, q, rd, rte_pktmbuf_mtod_offset(m, const uint8_t *, a->payload_offset),
			  a->payload_bytes);
	if (unlikely(outcome == RRC_AGAIN))
		return;
	if (unlikely(outcome != OUTCOME_OK)) {
		read_failed(e, q, outcome);
		return;
	}
	count_n(rrc_counters(e), COUNTER_read_bytes, a->payload_bytes);
	q->rrc.gap_psn = 0;
	__atomic_store_n(&q->rrc.read_packets, ++index, __ATOMIC_RELAXED); /* before unacked_psn */
	if (index == rd->packets)
		read_done(e, q, rd);
	else
		advanced(e, q, psn_add(a->headers.psn, 1));
}

static void atomic_response(struct engine *e, struct qp *q, struct rd_element *rd,
			    const struct wire_headers *h)
{
	enum wire_outcome outcome;

	outcome = scatter(e, q, rd, (const uint8_t *)&h->orig, sizeof(h->orig));
	if (unlikely(outcome == RRC_AGAIN))
		return;
	if (outcome != OUTCOME_OK)
		read_failed(e, q, outcome);
	else
		read_done(e, q, rd);
}

/* The READ or atomic that a response of that PSN belongs to, or NULL. */
static struct rd_element *asked_for(struct engine *e, struct qp *q, uint32_t psn)
{
	uint32_t left = mq_count(&q->mq.rd);
	uint32_t i = __atomic_load_n(&q->mq.rd.head, __ATOMIC_ACQUIRE);

	for (; left; left--) {
		struct rd_element *rd = &e->mq->rd[i];

		if (psn_in(psn, rd->psn, rd->packets))
			return rd;
		i = __atomic_load_n(&rd->next, __ATOMIC_ACQUIRE);
	}
	return NULL;
}

/*
 * May the response to `rd` have this opcode at its PSN? FIRST, MIDDLE, LAST or ONLY by its place; a
 * READ asked for again from its midst begins with FIRST (ONLY) there, as a request of its own, or
 * with MIDDLE (LAST), as if it went on.
 */
static bool is_possible(const struct qp *q, const struct rd_element *rd, bool head,
			const struct wire_headers *h)
{
	const struct wire_opcode *op = &wire_opcodes[h->opcode];
	uint32_t index = psn_sub(h->psn, rd->psn);
	bool again = head && index == q->rrc.read_asked;

	if (rd->opcode != USER_RDMA_READ)
		return op->kind == WIRE_KIND_ATOMIC_ACK;
	if (op->kind != WIRE_KIND_READ_RESP ||
	    !!(op->flags & WIRE_END) != (index + 1 == rd->packets))
		return false;
	return op->flags & WIRE_START ? index == 0 || again : index != 0;
}

/* The next response of the READ or atomic at the head. */
static void response_in_turn(struct engine *e, struct qp *q, struct rd_element *rd,
			     struct rte_mbuf *m)
{
	if (rd->opcode == USER_RDMA_READ)
		read_response(e, q, rd, m);
	else
		atomic_response(e, q, rd, &arrival_of(m)->headers);
}

/* A response that cannot be changes nothing (C9-133). Else what came before the READ is done; then
 * its place in it: those that have come were acknowledged by that, so this one is none of them. */
static void response(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	const struct wire_headers *h = &arrival_of(m)->headers;
	struct rd_element *head = rd_head(e->mq, &q->mq.rd), *rd = asked_for(e, q, h->psn);

	rrc_enter(e, RRC_READ_IMPLICIT_RELEASE);
	if (unlikely(!rd || !is_possible(q, rd, rd == head, h))) {
		drop(e, COUNTER_drop_resp_opcode);
		return;
	}
	if (wire_opcodes[h->opcode].headers & WIRE_HAS_AETH) {
		if (unlikely(aeth_kind(h->syndrome) != AETH_ACK)) { /* C9-120, C9-135 */
			drop(e, COUNTER_drop_ack_syndrome);
			return;
		}
		take_credits(e, q, h);
	}
	release(e, q, psn_sub(head->psn, 1));
	if (likely(h->psn == psn_add(head->psn, q->rrc.read_packets))) {
		response_in_turn(e, q, head, m);
	} else {
		rrc_enter(e, RRC_READ_RETRANS);
		implied_nak(e, q);
	}
}

static bool is_ack(const struct wire_headers *h)
{
	return wire_opcodes[h->opcode].kind == WIRE_KIND_ACK && aeth_kind(h->syndrome) == AETH_ACK;
}

/* Is the response about something outstanding? Duplicates may still carry credits (C9-144); to
 * these belongs the unsolicited ACK with the initial PSN - 1 (C9-155, C9-164). */
static bool in_window(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	uint32_t unacked = q->rrc.unacked_psn;

	if (likely(psn_before_eq(unacked, h->psn) && psn_before(h->psn, qp_next_psn(q))))
		return true;
	if (psn_before(h->psn, unacked)) {
		drop(e, COUNTER_ack_duplicate);
		if (is_ack(h))
			take_credits(e, q, h);
	} else {
		drop(e, COUNTER_drop_ack_ghost);
	}
	return false;
}

/* A QP that does not send has no use for responses, but for initial credits: its peer may be in RTS
 * before it is. */
static void not_sending(struct engine *e, struct qp *q, const struct wire_headers *h)
{
	if (qp_state(q) == QP_RTR && q->service == SERVICE_RC && is_ack(h) && h->msn == 0)
		take_credits(e, q, h);
	drop(e, COUNTER_drop_qp_state);
}

/* RESP_CXT: what kind of response is it, if it is one to something outstanding? */
static void judge(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	const struct arrival *a = arrival_of(m);
	const struct wire_headers *h = &a->headers;
	bool read = wire_opcodes[h->opcode].kind == WIRE_KIND_READ_RESP;

	if (unlikely(a->payload_bytes && !read))
		drop(e, COUNTER_drop_resp_length);
	else if (unlikely(!qp_sends(qp_state(q)) || q->service != SERVICE_RC))
		not_sending(e, q, h);
	else if (!in_window(e, q, h))
		return;
	else if (wire_opcodes[h->opcode].kind != WIRE_KIND_ACK)
		response(e, q, m);
	else if (aeth_kind(h->syndrome) == AETH_ACK)
		ack(e, q, h);
	else if (aeth_kind(h->syndrome) == AETH_RESERVED)
		drop(e, COUNTER_drop_ack_syndrome);
	else
		nak(e, q, h);
}

static void take_response(struct engine *e, struct qp *q, struct rte_mbuf *m)
{
	rrc_enter(e, RRC_RESP_CXT);
	judge(e, q, m);
	rrc_enter(e, RRC_IDLE);
	rrc_bad_requests(e, q);
	wake_sender(e, q);
}

/* False: it comes again. */
static bool take_arrival(struct engine *e, struct rte_mbuf *m)
{
	struct rrc *c = e->rrc;
	struct qp *q = qp_find(e->qps, arrival_of(m)->qpn);

	c->again = false;
	if (unlikely(!q))
		count(rrc_counters(e), COUNTER_drop_rx_qpn);
	else if (unlikely(!arrival_intact(m)))
		count(rrc_counters(e), COUNTER_drop_rx_icrc);
	else
		take_response(e, q, m);
	return !c->again;
}

/* What was held, and nothing else before that is done; else what has arrived. */
static unsigned take_burst(struct engine *e, struct rte_mbuf **m)
{
	struct rrc *c = e->rrc;
	unsigned n = c->holds;

	if (likely(!n))
		return channel_take(&e->channel[CHANNEL_HP_RRC], m, BURST);
	memcpy(m, c->held, n * sizeof(m[0]));
	c->holds = 0;
	return n;
}

static unsigned take_responses(struct engine *e)
{
	struct rrc *c = e->rrc;
	struct rte_mbuf *m[BURST];
	unsigned n = take_burst(e, m);

	for (unsigned i = 0; i < n; i++) {
		if (unlikely(!take_arrival(e, m[i]))) {
			c->holds = n - i;
			memcpy(c->held, m + i, c->holds * sizeof(m[0]));
			break;
		}
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

/* ---- the poll ---- */

unsigned rrc_poll(struct engine *e)
{
	unsigned n;

	rrc_take_wakes(e);
	n = take_responses(e); /* first: after a pause they may prove a timer wrong */
	n += rrc_take_expiries(e);
	n += take_bad_requests(e);
	return n + retransmit_poll(e);
}
