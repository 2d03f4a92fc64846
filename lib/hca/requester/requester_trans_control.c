/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterTransControl (doc/modules.md#requestertranscontrol): decides whether a request may be
 * sent, has it segmented (segmentation.c), arms the Loss timer, completes UC and UD requests.
 * Writes qp.rtc. Stage segmentation.
 *
 * Requests wait in a list of their queue pair; queue pairs take turns, each for a quantum of bytes.
 * A turn cut short by the end of a poll or a full ring is resumed first at the next poll, for the
 * rest of its bytes: bandwidth is shared evenly, however turns and polls coincide. A queue pair
 * that must wait is parked with the reason and woken by RequesterRecvControl: it holds descriptors,
 * but no packets, and blocks no one.
 *
 * The table of transitions is requester_trans_control.def.
 */
#include <errno.h>
#include "local_operation.h"
#include "outstanding.h"
#include "path_delay.h"
#include "context/path_class.h"
#include "pipeline/machine.h"
#include "pipeline/parking.h"
#include "request_resolution.h"
#include "requester/requester.h"
#include "requester_recv_control.h"
#include "requester_trans_control.h"
#include "segmentation.h"
#include "send-queue/send_queue.h"
#include "send_credits.h"
#include "timer_control.h"

#define MACHINE	      rtc_machine
#define MACHINE_NAME  "RequesterTransControl"
#define MACHINE_ID(s) RTC_##s
#define MACHINE_DEF   "requester_trans_control.def"
#include "pipeline/machine_define.h"

int rtc_create(struct engine *e)
{
	struct rtc *t = engine_alloc(e, "rtc", sizeof(*t));

	if (!t)
		return -ENOMEM;
	qp_list_init(&t->active, e->qps, offsetof(struct qp, rtc.active));
	qp_list_init(&t->starved, e->qps, offsetof(struct qp, rtc.active));
	pacer_init(&t->pacer, e->qps, offsetof(struct qp, rtc.flow));
	e->stage[STAGE_SEGMENTATION].pacer = &t->pacer;
	e->rtc = t;
	return 0;
}

void rtc_destroy(struct engine *e)
{
	struct rtc *t = e->rtc;

	if (t)
		rte_mempool_put_bulk(e->packets, (void **)t->spare, t->spares);
	rte_free(t);
	e->rtc = NULL;
}

unsigned requester_stock(const struct engine *e)
{
	return e->rtc->spares + rrc_kept(e);
}

/* ---- scheduling queue pairs ---- */

enum { LISTED_STARVED = 2 }; /* rtc.active.listed: which of the two lists */

static void active_add(struct engine *e, struct qp *q)
{
	qp_list_add(&e->rtc->active, q);
}

static void starved_add(struct engine *e, struct qp *q)
{
	if (q->rtc.active.listed)
		return;
	qp_list_add(&e->rtc->starved, q);
	q->rtc.active.listed = LISTED_STARVED;
}

static void unlist(struct rtc *t, struct qp *q)
{
	if (q->rtc.active.listed == LISTED_STARVED) {
		qp_list_remove(&t->starved, q);
		return;
	}
	if (qp_list_first(&t->active) == q)
		t->turn_left = 0; /* it was this one's */
	qp_list_remove(&t->active, q);
}

/* The CEU has destroyed the QP. It leaves whether or not there is room in RTC_RPG: modules behind
 * that may be paused, and the CEU waits. */
static void rtc_release(struct engine *e, struct qp *q)
{
	pacer_leave(&e->rtc->pacer, q); /* which would list it again */
	unlist(e->rtc, q);
	if (q->rtc.head && !resolution_abandon(e, q, q->rtc.head)) {
		wake_post(&e->wake[WAKE_RTC], &q->wake[WAKE_RTC], q->index); /* check again */
		return;
	}
	requests_free(e, &q->rtc.head);
	qp_close(q, WAKE_RTC);
}

/*
 * A QP in SQD is drained when no message is half sent and everything sent is acknowledged. Until
 * then it is parked, so that RequesterRecvControl wakes it at each step. The turn is read before
 * the state, so that it is not later than the one in which the QP is drained.
 */
static void drain(struct engine *e, struct qp *q)
{
	uint8_t turn = __atomic_load_n(&q->sqd_turn, __ATOMIC_ACQUIRE);

	if (likely(qp_state(q) != QP_SQD) || q->rtc.drained == turn)
		return;
	if (q->rtc.head && request_of(q->rtc.head)->flags & REQUEST_STARTED)
		return;
	park(&q->rtc.parked, PARK_DRAIN);
	if (q->service == SERVICE_RC && (qp_outstanding(q) || mq_count(&q->mq.sw)))
		return;
	__atomic_store_n(&q->rtc.drained, turn, __ATOMIC_RELEASE);
	if (q->sqd_notify)
		eq_post(e->completion, rtc_counters(e), q->client, EQE_SQ_DRAINED, qp_number(q));
}

static void rtc_take_wakes(struct engine *e)
{
	uint32_t i = wake_take(&e->wake[WAKE_RTC]);

	while (i != WAKE_END) {
		struct qp *q = qp_at(e->qps, i);

		i = wake_next(&q->wake[WAKE_RTC]);
		if (unlikely(qp_closing(q))) {
			rtc_release(e, q);
			continue;
		}
		flow_take_cnps(&q->rtc.flow, q, &e->settings.dcqcn, engine_now(e));
		path_take_sample(e, q);
		unpark(&q->rtc.parked);
		active_add(e, q); /* even without requests: it may be drained now */
	}
}

/* QPs whose time has come. A parked one is woken by what it waits for. */
static __rte_noinline void rtc_take_paced(struct engine *e)
{
	struct qp *q;

	for (unsigned n = 0; n < BURST && (q = pacer_take(&e->rtc->pacer, engine_now(e))); n++)
		if (!q->rtc.parked)
			active_add(e, q);
}

static unsigned take_requests(struct engine *e)
{
	struct rte_mbuf *m[2 * BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_DP_RTC], m, 2 * BURST);
	struct qp *q = NULL;

	for (unsigned i = 0; i < n; i++) {
		const struct qp *before = q;

		q = request_qp_after(e, STAGE_SEGMENTATION, m[i], q);
		if (unlikely(!q))
			continue;
		requests_append(&q->rtc.head, &q->rtc.tail, m[i]);
		if (q != before && !q->rtc.parked)
			active_add(e, q);
	}
	return n;
}

/* ---- the states ---- */

/* A UC or UD QP may have left SQE (SQERR2RTS) since a request failed. Requests posted before that
 * are flushed; the first one posted since restarts the queue. */
static void leave_sqe(const struct visit *v, enum qp_state state)
{
	if (qp_sends(state) && v->r->sq_epoch == __atomic_load_n(&v->q->sq_epoch, __ATOMIC_ACQUIRE))
		v->q->rtc.flushing = 0;
}

static enum rtc_state resp_cxt(struct visit *v)
{
	bool rc = v->q->service == SERVICE_RC;
	enum qp_state state = qp_state(v->q);

	if (v->r->resolution != RR_IDLE) /* UC, UD: its outcome is known, continue there */
		return RTC_UCUD_CPL;
	if (unlikely(state == QP_SQD) && !(v->r->flags & REQUEST_STARTED))
		return rtc_park(v, PARK_DRAIN);
	if (!rc)
		leave_sqe(v, state);
	if (unlikely(!qp_sends(state) || v->q->rtc.flushing)) /* whatever else is wrong with it */
		return RTC_FLUSH;
	if (unlikely(v->r->outcome != OUTCOME_OK))
		return rc ? RTC_RC_BAD_REQ : RTC_UCUD_CPL;
	if (rc)
		return RTC_RC_JUDGE_MSG;
	return unlikely(v->r->flags & REQUEST_LOCAL) ? RTC_LOCAL : RTC_UCUD_SEG;
}

static enum rtc_state rtc_flush(struct visit *v)
{
	v->r->outcome = OUTCOME_FLUSH;
	return v->q->service == SERVICE_RC ? RTC_RC_BAD_REQ : RTC_UCUD_CPL;
}

/* READs and atomics whose responses have not all come. */
static inline uint32_t reads_outstanding(const struct qp *q)
{
	return q->rtc.reads_issued - __atomic_load_n(&q->rrc.reads_done, __ATOMIC_ACQUIRE);
}

/* Looks up how many more READs and atomics the QP may have. It has `reads` outstanding and is about
 * to send one with `entries` scatter entries. */
static __rte_noinline void look_up_reads(struct visit *v, uint32_t reads, uint32_t entries)
{
	const struct multi_queue *mq = v->e->mq;
	uint32_t left = mq_free_count(&mq->re_free), share;

	rtc_charge(v);
	v->reads = mq_share(v->e, &mq->rd_free, v->q, reads, 1);
	share = share_of_owner(&mq->re_free, left, v->q, reads);
	if (share && reads == 0) /* it may be longer than the share */
		share = RTE_MAX(share, entries);
	v->entries = RTE_MIN(share, left);
}

/* Are there buffers for one more READ or atomic of the QP, which has `reads` of them
 * outstanding? */
static bool read_buffers(struct visit *v, uint32_t reads)
{
	uint32_t entries = v->r->traits & USER_SCATTERS ? v->r->data_units : 0;

	if (unlikely(!v->reads || v->entries < entries))
		look_up_reads(v, reads, entries);
	return v->reads && v->entries >= entries;
}

/*
 * Would more PSNs be outstanding than C9-61 allows? The responses of a READ count; a message counts
 * only as many packets as there are buffers. Nor may a PSN be more than 2^23 after the first one of
 * a READ whose responses are arriving: the older of the two could not be determined.
 */
static bool window_full(const struct visit *v)
{
	uint32_t packets = psn_packets(v->r->length, v->q->mtu_bytes), outstanding, answered;

	if (!is_read(v->r))
		packets = RTE_MIN(packets, v->e->mq->sw_free.size);
	outstanding = qp_outstanding(v->q);
	answered = __atomic_load_n(&v->q->rrc.read_packets,
				   __ATOMIC_RELAXED); /* perhaps more by now */
	return outstanding + packets > PSN_WINDOW ||
	       outstanding + answered + packets > PSN_WINDOW + 1;
}

/* What a READ or atomic has to wait for. One without buffers waits for the responses to others; if
 * there are none, nothing would wake it, and it tries again (judge_read()). */
static enum park_reason park_reason_of_read(struct visit *v)
{
	uint32_t reads = reads_outstanding(v->q);

	if (unlikely(v->q->max_rd_atomic == 0) || reads == 0)
		return PARK_NONE; /* the former fails */
	return reads >= v->q->max_rd_atomic || !read_buffers(v, reads) ? PARK_READS : PARK_NONE;
}

/* What the request at work has to wait for, as things are; PARK_NONE: it may continue. Changes
 * nothing; look_at_credits() has been called. */
static __rte_always_inline enum park_reason park_reason_of(struct visit *v)
{
	const struct qp *q = v->q;
	uint8_t flags = v->r->flags;

	if (__atomic_load_n(&q->rrc.rnr_waiting, __ATOMIC_ACQUIRE))
		return PARK_RNR;
	if (__atomic_load_n(&q->rrc.retransmitting, __ATOMIC_ACQUIRE))
		return PARK_RETRANSMIT;
	if (unlikely(v->window == 0))
		return PARK_WINDOW;
	if (unlikely(q->rtc.limited) && stays_limited(q))
		return PARK_CREDIT;
	if (flags & REQUEST_STARTED)
		return PARK_NONE;
	if (flags & (REQUEST_FENCE | REQUEST_LOCAL)) {
		if (flags & REQUEST_FENCE && reads_outstanding(q))
			return PARK_FENCE;
		if (flags & REQUEST_LOCAL)
			return PARK_NONE;
	}
	if (unlikely(window_full(v)))
		return PARK_PSN;
	return is_read(v->r) ? park_reason_of_read(v) : PARK_NONE;
}

/*
 * Does a request that may be sent begin a run? Then similar requests behind it may be sent, too:
 * a visit is short, so that the window of PSNs need not be checked again.
 */
static inline void rtc_run_begin(struct visit *v)
{
	const struct qp *q = v->q;
	uint32_t answered = __atomic_load_n(&q->rrc.read_packets, __ATOMIC_RELAXED);

	v->run = qp_outstanding(q) + answered < PSN_WINDOW / 2;
	v->run_traits = v->r->traits;
}

/* Does the request continue the run? It must be one packet with nothing special, with a credit if
 * it needs one, and nothing may have happened to the QP. */
static inline bool rtc_run_continues(const struct visit *v)
{
	const struct request *r = v->r;
	const struct qp *q = v->q;

	return v->run && r->traits == v->run_traits && r->outcome == OUTCOME_OK &&
	       !(r->flags & (REQUEST_STARTED | REQUEST_FENCE | REQUEST_LOCAL)) &&
	       r->length <= q->mtu_bytes && qp_state(q) == QP_RTS && !q->rtc.flushing &&
	       (!consumes_receive(r) || has_credit(q, q->rtc.ssn)) &&
	       !__atomic_load_n(&q->rrc.rnr_waiting, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&q->rrc.retransmitting, __ATOMIC_ACQUIRE);
}

/* A READ or atomic of a run: may one more be outstanding, and are there buffers? */
static inline bool read_continues(const struct visit *v)
{
	uint32_t entries = v->r->traits & USER_SCATTERS ? v->r->data_units : 0;

	return v->window && v->reads && v->entries >= entries &&
	       reads_outstanding(v->q) < v->q->max_rd_atomic;
}

/* A READ or atomic that need not wait. If others are outstanding, its buffers have been checked. */
static enum rtc_state judge_read(struct visit *v)
{
	if (unlikely(v->q->max_rd_atomic == 0)) {
		v->r->outcome = OUTCOME_LOCAL_QP_OP;
		return RTC_RC_BAD_REQ;
	}
	if (unlikely(reads_outstanding(v->q) == 0 && !read_buffers(v, 0))) {
		v->starved = true;
		return RTC_STALLED;
	}
	rtc_run_begin(v);
	return RTC_RC_STORE_ENTRY;
}

static __rte_always_inline enum rtc_state rc_judge_msg(struct visit *v)
{
	enum park_reason reason;

	v->run = false;
	look_at_credits(v->q);
	reason = park_reason_of(v);
	if (unlikely(reason != PARK_NONE))
		return rtc_park(v, reason);
	if (unlikely(v->q->rtc.limited))
		v->q->rtc.limited = LIMITED_NOT;
	if (v->r->flags & REQUEST_STARTED)
		return RTC_RC_SEG;
	if (unlikely(v->r->flags & REQUEST_LOCAL))
		return RTC_LOCAL;
	judge_credit(v->q, v->r);
	if (is_read(v->r))
		return judge_read(v);
	rtc_run_begin(v);
	return RTC_RC_SEG;
}

/* A failed UC or UD request stops the queue before its client can see the failure. */
static void ucud_fail(struct visit *v)
{
	if (v->r->outcome != OUTCOME_FLUSH) {
		v->q->rtc.flushing = 1;
		qp_set_sqe(v->q);
	}
	resolution_begin(v->r);
}

/* UC and UD requests complete once sent. */
static enum rtc_state ucud_cpl(struct visit *v)
{
	if (unlikely(v->r->outcome != OUTCOME_OK) && v->r->resolution == RR_IDLE)
		ucud_fail(v);
	return resolution_complete(v->e, v->q, v->m) ? RTC_CXT_WB : RTC_STALLED;
}

/* A bad request is passed to RequesterRecvControl, which completes it once all before it have
 * completed; later requests are flushed the same way. */
static enum rtc_state rc_bad_req(struct visit *v)
{
	struct channel *out = &v->e->channel[CHANNEL_RTC_RRC];

	if (!channel_room(out))
		return RTC_STALLED;
	v->q->rtc.flushing = 1;
	rtc_finish_request(v);
	v->r->next = NULL;
	channel_put_one(out, v->m);
	return RTC_IDLE;
}

static enum rtc_state cxt_wb(struct visit *v)
{
	v->requests++;
	__atomic_store_n(&v->q->rtc.ssn, psn_add(v->q->rtc.ssn, 1), __ATOMIC_RELAXED);
	v->q->rtc.lsn += !consumes_receive(v->r);
	rtc_finish_request(v);
	rtc_free_descriptor(v);
	return RTC_IDLE;
}

static inline enum rtc_state idle(struct visit *v)
{
	v->m = v->q->rtc.head;
	v->r = request_of(v->m);
	if (!rtc_run_continues(v))
		return RTC_RESP_CXT;
	if (!is_read(v->r))
		return RTC_RC_SEG;
	return read_continues(v) ? RTC_RC_STORE_ENTRY : RTC_RESP_CXT;
}

/* Handles a visit's requests until there are no more (IDLE) or one must wait (PARKED, STALLED). */
static inline enum rtc_state rtc_serve(struct visit *v)
{
	enum rtc_state state = RTC_IDLE, next = RTC_IDLE;

	for (;; state = next) {
		switch (state) {
		case RTC_IDLE:
			if (!v->q->rtc.head)
				return state;
			next = idle(v);
			break;
		case RTC_RESP_CXT:
			next = resp_cxt(v);
			break;
		case RTC_FLUSH:
			next = rtc_flush(v);
			break;
		case RTC_RC_JUDGE_MSG:
			next = rc_judge_msg(v);
			break;
		case RTC_RC_SEG:
			next = rtc_rc_seg(v);
			break;
		case RTC_RC_STORE_ENTRY:
			next = rtc_rc_store_entry(v);
			break;
		case RTC_LOCAL:
			next = rtc_local(v);
			break;
		case RTC_RC_BAD_REQ:
			next = rc_bad_req(v);
			break;
		case RTC_UCUD_SEG:
			next = rtc_ucud_seg(v);
			break;
		case RTC_UCUD_CPL:
			next = ucud_cpl(v);
			break;
		case RTC_CXT_WB:
			next = cxt_wb(v);
			break;
		case RTC_PARKED:
		case RTC_STALLED:
			return state;
		}
		MACHINE_STEP(rtc_machine, state, next);
	}
}

/* ---- a visit ---- */

/* Sets the Loss timer if it is not armed and something is outstanding. False: no room or no buffer,
 * try again. */
static bool arm_timer(struct engine *e, struct qp *q)
{
	uint64_t first = (uint64_t)FIRST_LOOK_TICKS * e->settings.timer_tick_ns;

	if (likely(__atomic_load_n(&q->tc.armed[TIMER_LOSS], __ATOMIC_RELAXED)))
		return true;
	first = qp_timeout_ns(q) ? RTE_MIN(first, qp_timeout_ns(q)) : GIVE_WAY_NS;
	return timer_set(e, CHANNEL_RTC_TC, q, TIMER_LOSS, first);
}

static const enum counter park_counters[PARK_REASONS] = {
	[PARK_BUFFER] = COUNTER_park_buffer,
	[PARK_FENCE] = COUNTER_park_fence,
	[PARK_READS] = COUNTER_park_reads,
	[PARK_CREDIT] = COUNTER_park_credit,
	[PARK_RNR] = COUNTER_park_rnr,
	[PARK_PSN] = COUNTER_park_psn,
	[PARK_RETRANSMIT] = COUNTER_park_retransmit,
	[PARK_WINDOW] = COUNTER_park_window,
	[PARK_DRAIN] = COUNTER_park_drain,
};

#define AGREED_PACKETS (8u * WIRE_SACK_BYTES)

/* How many more PSNs the QP may send. Bounded after losses, by a window that is never 0, and while
 * queues in the network bound its rate. */
static uint32_t window_left(const struct engine *e, const struct qp *q)
{
	uint32_t window = __atomic_load_n(&q->rrc.window, __ATOMIC_RELAXED) >> 4, left, room;

	if (unlikely(q->rtc.flow.cc.lent) && !reads_outstanding(q))	 /* whose responses count */
		window = RTE_MIN(window - 1, path_window(e, q) - 1) + 1; /* 0: any number */
	if (likely(!window))
		return UINT32_MAX;
	left = qp_in_window(q);
	left = window - RTE_MIN(window, left);
	if (!(q->agreed & AGREED_REPEAT))
		return left;
	room = qp_outstanding(q); /* no more than the peer can report, and keep */
	room = AGREED_PACKETS - RTE_MIN(AGREED_PACKETS, room);
	return RTE_MIN(left, room);
}

/* Has what the QP was parked for happened? In ERR a request waits for nothing: it is flushed. */
static bool may_continue(struct visit *v)
{
	if (v->reason == PARK_DRAIN)
		return qp_state(v->q) != QP_SQD;
	if (qp_state(v->q) == QP_ERR)
		return true;
	if (v->reason == PARK_BUFFER && !rtc_packet_share(v))
		return false;
	return park_reason_of(v) == PARK_NONE;
}

/* Parks the QP, unless what it waits for has happened in the meantime. */
static void park_qp(struct visit *v)
{
	struct qp *q = v->q;

	park(&q->rtc.parked, v->reason);
	count(rtc_counters(v->e), park_counters[v->reason]);
	v->window = window_left(v->e, q);
	look_at_credits(q);
	if (may_continue(v)) {
		unpark(&q->rtc.parked);
		active_add(v->e, q);
	}
}

/* Schedules what is left to send: the rest of this turn, or a turn after the others'. A QP that
 * stalled with room and quantum left goes behind the others and delays no one. */
static void active_again(struct visit *v)
{
	uint32_t left = v->later + v->quantum;

	if (unlikely(v->starved)) {
		starved_add(v->e, v->q);
		return;
	}
	if ((v->room && v->quantum) || !left || v->q->rtc.active.listed) {
		active_add(v->e, v->q);
		return;
	}
	qp_list_add_first(&v->t->active, v->q);
	v->t->turn_left = left;
}

static inline void count_visit(const struct visit *v)
{
	struct counters *c = rtc_counters(v->e);

	count_n(c, COUNTER_requests, v->requests);
	count_n(c, COUNTER_request_packets, v->packets);
	count_n(c, COUNTER_request_bytes, v->bytes);
}

/*
 * Ends the QP's turn: passes its packets on, arms its timer, wakes modules that wait for it, and
 * parks or reschedules it. One fence separates the stores of this turn (next_psn, the lists,
 * consumed) from three checks: whether TimerControl has stopped its Loss timer, whether the QP has
 * failed, and whether WQEScheduler waits.
 */
static void end_visit(struct visit *v, enum rtc_state state)
{
	struct qp *q = v->q;
	bool rc = q->service == SERVICE_RC;

	if (v->sent && rc) {
		struct packet *last = packet_of(v->t->out[v->t->out_count - 1]);

		packet_ask(last);
		q->rtc.since_ack = 0;
		path_time(v->e, q, last, reads_outstanding(q));
	}
	rtc_out_flush(v->e);
	channel_note_coupled(&v->e->channel[CHANNEL_RTC_RPG], v->coupled);
	rtc_charge(v);
	count_visit(v);
	parking_fence_within(v->e->one_lcore);
	if (rc && qp_outstanding(q)) {
		if (!arm_timer(v->e, q))
			active_add(v->e, q);
		if (unlikely(qp_state(q) == QP_ERR)) /* may have been flushed before we added */
			wake_post(&v->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	}
	if (v->freed) {
		rtc_done_flush(v);
		descriptors_note(v->e, q->client, -v->freed);
	}
	if (unlikely(parked_here(&q->ws.parked)))
		wake_post(&v->e->wake[WAKE_WS], &q->wake[WAKE_WS], q->index);
	if (state == RTC_PARKED)
		park_qp(v);
	else if (q->rtc.head)
		active_again(v);
	drain(v->e, q);
}

/* May single-packet messages of the QP form trains (pipeline/train.h)? */
static inline bool messages_may_join(const struct engine *e, const struct qp *q)
{
	return engine_trains(e) && e->mq->one_lcore && q->service == SERVICE_RC &&
	       qp_spread(e, q) == 1 && !engine_is_watched(e);
}

/* Runs one QP's turn of `turn` bytes, at most `most` of them in this poll. Returns the bytes
 * used. */
static uint32_t visit_qp(struct engine *e, struct qp *q, unsigned *room, uint32_t turn,
			 uint32_t most)
{
	uint32_t quantum = RTE_MIN(turn, most);
	struct visit v = {.e = e,
			  .t = e->rtc,
			  .q = q,
			  .room = *room,
			  .quantum = quantum,
			  .later = turn - quantum,
			  .window = window_left(e, q),
			  .joins = messages_may_join(e, q),
			  .sw = q->mq.sw.produced,
			  .rd = q->mq.rd.produced,
			  .re = q->mq.re.produced};
	enum rtc_state state;

	if (qp_outstanding(q) == 0) {
		__atomic_store_n(&q->rtc.busy_since_ns, engine_now(e), __ATOMIC_RELEASE);
		__atomic_store_n(&q->rtc.busy_missed_ns, engine_missed(e), __ATOMIC_RELEASE);
	}
	state = rtc_serve(&v);
	*room = v.room;
	end_visit(&v, state);
	return quantum - v.quantum;
}

/* A QP whose rate is limited gets its turn when it is due, for a burst of a few packets. In ERR it
 * only flushes. */
static __rte_noinline uint32_t visit_limited(struct engine *e, struct qp *q, unsigned *room,
					     uint32_t turn, uint32_t most)
{
	const struct dcqcn_params *params = &e->settings.dcqcn;
	const struct counters *c = rtc_counters(e);
	uint64_t now_ns = engine_now(e), packets = counter_read(c, COUNTER_request_packets),
		 bytes = counter_read(c, COUNTER_request_bytes);
	uint32_t burst, used;

	path_untimed(e, q);
	if (!flow_limited(&q->rtc.flow, params, now_ns) || qp_state(q) == QP_ERR)
		return visit_qp(e, q, room, turn, most);
	if (!flow_due(&q->rtc.flow, now_ns)) {
		pacer_wait(&e->rtc->pacer, q, now_ns);
		return 0;
	}
	burst = flow_burst_bytes(&q->rtc.flow, q->mtu_bytes);
	used = visit_qp(e, q, room, burst, burst);
	packets = counter_read(c, COUNTER_request_packets) - packets;
	bytes = counter_read(c, COUNTER_request_bytes) - bytes;
	flow_sent(&q->rtc.flow, params, (uint32_t)packets, (uint32_t)bytes, now_ns);
	return RTE_MIN(used, most);
}

static inline uint32_t visit(struct engine *e, struct qp *q, unsigned *room, uint32_t turn,
			     uint32_t most)
{
	if (likely(!q->rtc.flow.cc.rate))
		return visit_qp(e, q, room, turn, most);
	return visit_limited(e, q, room, turn, most);
}

#define STARVED_VISITS 2 /* in a poll: however many QPs have no buffers, they delay no one */

/* Visits the QP that has waited longest for its first buffer. Returns the bytes used. */
static uint32_t visit_starved(struct engine *e, unsigned *room, uint32_t left)
{
	struct qp *q = qp_list_take(&e->rtc->starved);

	if (unlikely(qp_closing(q))) {
		rtc_release(e, q);
		return 0;
	}
	return visit(e, q, room, engine_setting(e, quantum_bytes), left);
}

/*
 * What all turns of a poll may spend. Where payload is copied, a quantum: more would push it out of
 * the caches before the next stages read it. Where packets may refer to it, two: the copy at the other
 * end empties the L1 cache, and what a round then fetches again costs half as much per packet.
 */
static inline uint32_t poll_bytes(const struct engine *e)
{
	uint32_t quantum = engine_setting(e, quantum_bytes);

	return engine_trains(e) ? 2 * quantum : quantum;
}

static __rte_noinline unsigned rtc_work(struct engine *e)
{
	struct rtc *t = e->rtc;
	unsigned room = channel_room(&e->channel[CHANNEL_RTC_RPG]), before = room, visits = 0, n;
	uint32_t left = poll_bytes(e), turn;
	struct qp *q;

	rtc_take_wakes(e);
	if (unlikely(t->pacer.waiting))
		rtc_take_paced(e);
	n = take_requests(e);
	while (room && left && visits++ < BURST && (q = qp_list_take(&t->active))) {
		turn = t->turn_left ? t->turn_left : engine_setting(e, quantum_bytes);
		t->turn_left = 0;
		if (unlikely(qp_closing(q)))
			rtc_release(e, q);
		else
			left -= visit(e, q, &room, turn, left);
	}
	visits = 0;
	while (unlikely(!qp_list_empty(&t->starved)) && room && left && visits++ < STARVED_VISITS)
		left -= visit_starved(e, &room, left);
	return n + before - room;
}

unsigned rtc_poll(struct engine *e)
{
	const struct rtc *t = e->rtc;

	if (wake_list_empty(&e->wake[WAKE_RTC]) && !t->pacer.waiting && qp_list_empty(&t->active) &&
	    qp_list_empty(&t->starved) && channel_idle(&e->channel[CHANNEL_DP_RTC]))
		return 0;
	return rtc_work(e);
}
