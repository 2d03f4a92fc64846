/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterTransControl (seed 000 3.4.1): judges whether a request may be sent, cuts it into
 * packets of the path MTU, numbers them, keeps RC packets in MultiQueue, arms the Loss timer,
 * completes UC and UD requests. Writes qp.rtc and the producer's side of qp.mq. Stage segmentation.
 *
 * Requests wait in a list of their queue pair; queue pairs take turns, each for a quantum of bytes.
 * A queue pair that may not go on is parked with its reason and woken by RequesterRecvControl: it
 * holds descriptors, no packets, and nobody waits for it.
 *
 * The table of transitions is requester_trans_control.def.
 */
#include <errno.h>
#include <rte_malloc.h>
#include "pipeline/machine.h"
#include "request_resolution.h"
#include "requester_priv.h"

enum rtc_state {
#define STATE(id, text) RTC_##id,
#include "requester_trans_control.def"
};

#define MACHINE	      rtc_machine
#define MACHINE_NAME  "RequesterTransControl"
#define MACHINE_ID(s) RTC_##s
#define MACHINE_DEF   "requester_trans_control.def"
#include "pipeline/machine_define.h"

/* A request without credit (C9-162), sent as far as it may be: nothing goes behind it until an
 * acknowledgement covers it or credits come. Its packet is the last one sent. */
enum limited {
	LIMITED_NOT,
	LIMITED_REST,	 /* the first packet of a SEND; the rest waits, too */
	LIMITED_MESSAGE, /* a whole message */
};

/* Packets that a QP may have outstanding before its peer has acknowledged any. */
#define UNPROVEN_PACKETS 16

struct rtc {
	struct qp_list active; /* queue pairs with requests */
	unsigned out_count, spares;
	struct rte_mbuf *spare[BURST]; /* packet buffers in stock */
	struct rte_mbuf *out[BURST];   /* packets on their way to RTC_RPG */
};

/* A visit to one queue pair. */
struct visit {
	struct engine *e;
	struct rtc *t;
	struct qp *q;
	struct rte_mbuf *m; /* the request at work */
	struct request *r;
	uint32_t quantum; /* bytes left of its turn */
	uint32_t window;  /* PSNs left to send */
	unsigned room;	  /* left in RTC_RPG */
	enum park_reason reason;
	unsigned freed; /* descriptors */
	bool sent;
};

int rtc_create(struct engine *e)
{
	struct rtc *t = rte_zmalloc("rtc", sizeof(*t), RTE_CACHE_LINE_SIZE);

	if (!t)
		return -ENOMEM;
	qp_list_init(&t->active, e->qps, offsetof(struct qp, rtc.active));
	e->module[MODULE_RTC] = t;
	return 0;
}

void rtc_destroy(struct engine *e)
{
	struct rtc *t = e->module[MODULE_RTC];

	if (t && t->spares)
		rte_mempool_put_bulk(e->packets, (void **)t->spare, t->spares);
}

unsigned requester_stock(const struct engine *e)
{
	return ((const struct rtc *)e->module[MODULE_RTC])->spares;
}

static struct counters *counters_of(struct engine *e)
{
	return stage_counters(e, STAGE_SEGMENTATION);
}

/* ---- queue pairs in turn ---- */

static void active_add(struct engine *e, struct qp *q)
{
	qp_list_add(&((struct rtc *)e->module[MODULE_RTC])->active, q);
}

static void let_go(struct engine *e, struct qp *q)
{
	if (q->rtc.head && !resolution_abandon(e, q, q->rtc.head)) {
		active_add(e, q); /* looks again */
		return;
	}
	requests_free(e, &q->rtc.head);
	if (!q->rtc.active.listed)
		qp_close(q, WAKE_RTC);
}

/*
 * A QP in SQD is drained when no message is in the midst and all that was sent is acknowledged. As
 * long as it is not, it is parked, so that RequesterRecvControl wakes it with each progress. The
 * turn is read before the state: then it is not a later one than that in which the QP is drained.
 */
static void drain(struct engine *e, struct qp *q)
{
	uint8_t turn = __atomic_load_n(&q->sqd_turn, __ATOMIC_ACQUIRE);

	if (qp_state(q) != QP_SQD || q->rtc.drained == turn)
		return;
	if (q->rtc.head && request_of(q->rtc.head)->flags & REQUEST_STARTED)
		return;
	if (!q->rtc.parked)
		__atomic_store_n(&q->rtc.parked, PARK_DRAIN, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (q->service == SERVICE_RC && qp_outstanding(q))
		return;
	__atomic_store_n(&q->rtc.drained, turn, __ATOMIC_RELEASE);
	if (q->sqd_notify)
		eq_post(e->completion, counters_of(e), q->client, EQE_SQ_DRAINED, q->qpn);
}

static void take_wakes(struct engine *e)
{
	uint32_t i = wake_take(&e->wake[WAKE_RTC]);

	while (i != WAKE_END) {
		struct qp *q = qp_at(e->qps, i);

		i = wake_next(&q->wake[WAKE_RTC]);
		if (unlikely(qp_closing(q))) {
			let_go(e, q);
			continue;
		}
		__atomic_store_n(&q->rtc.parked, PARK_NONE, __ATOMIC_RELAXED);
		if (q->rtc.head)
			active_add(e, q);
		else if (unlikely(qp_state(q) == QP_SQD))
			drain(e, q);
	}
}

static unsigned take_requests(struct engine *e)
{
	struct rte_mbuf *m[2 * BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_DP_RTC], m, 2 * BURST);

	for (unsigned i = 0; i < n; i++) {
		struct qp *q = request_qp(e, STAGE_SEGMENTATION, m[i]);

		if (unlikely(!q))
			continue;
		requests_append(&q->rtc.head, &q->rtc.tail, m[i]);
		if (!q->rtc.parked)
			active_add(e, q);
	}
	return n;
}

/* ---- packets ---- */

static void out_flush(struct engine *e)
{
	struct rtc *t = e->module[MODULE_RTC];

	if (t->out_count)
		channel_put(&e->channel[CHANNEL_RTC_RPG], t->out, t->out_count);
	t->out_count = 0;
}

/* The last packet of a visit stays in out[] until the visit ends: end_visit() may want its AckReq.
 */
static void out_put(struct visit *v, struct rte_mbuf *m)
{
	if (v->t->out_count == BURST)
		out_flush(v->e);
	v->t->out[v->t->out_count++] = m;
	v->room--;
	v->sent = true;
}

/* BTH opcode of each user operation: first, middle, last, only; RC. UC's are these plus 0x20
 * (IBTA 9.2). */
static const struct {
	uint8_t first, middle, last, only;
} segment_opcodes[DOORBELL_OPCODE_MASK + 1] = {
	[USER_SEND] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST,
		WIRE_RC_SEND_ONLY},
	[USER_SEND_IMM] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST_IMM,
		WIRE_RC_SEND_ONLY_IMM},
	[USER_SEND_INV] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST_INV,
		WIRE_RC_SEND_ONLY_INV},
	[USER_RDMA_WRITE] = {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST,
		WIRE_RC_WRITE_ONLY},
	[USER_RDMA_WRITE_IMM] = {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST_IMM,
		WIRE_RC_WRITE_ONLY_IMM},
	[USER_RDMA_READ] = {.only = WIRE_RC_READ_REQUEST},
	[USER_ATOMIC_CS] = {.only = WIRE_RC_CMP_SWAP},
	[USER_ATOMIC_FA] = {.only = WIRE_RC_FETCH_ADD},
};

static uint8_t segment_opcode(const struct request *r, bool first, bool last)
{
	uint8_t rc = first && last ? segment_opcodes[r->opcode].only
		     : first	   ? segment_opcodes[r->opcode].first
		     : last	   ? segment_opcodes[r->opcode].last
				   : segment_opcodes[r->opcode].middle;

	switch ((enum qp_service)r->service) {
	case SERVICE_RC:
		break;
	case SERVICE_UC:
		return rc + (WIRE_UC_SEND_FIRST - WIRE_RC_SEND_FIRST);
	case SERVICE_UD:
		return rc + (WIRE_UD_SEND_ONLY - WIRE_RC_SEND_ONLY);
	}
	return rc;
}

/* A packet with the headers of this segment. `m` is a fresh buffer. */
static void fill_packet(
	struct visit *v, struct rte_mbuf *m, uint32_t bytes, uint32_t crc, bool first, bool last)
{
	const struct request *r = v->r;
	struct packet *p = packet_of(m);
	struct wire_headers *h = &p->headers;

	p->qpn = v->q->qpn;
	p->payload_bytes = bytes;
	p->payload_crc = crc;
	p->flags = bytes > CRC_WITH_COPY_BYTES ? PACKET_CRC : 0;
	h->opcode = segment_opcode(r, first, last);
	h->ackreq = 0;
	h->se = last && r->flags & REQUEST_SOLICITED ? 1 : 0;
	h->psn = v->q->rtc.next_psn;
	h->dest_qp = v->q->dest_qpn;
	h->pkey = v->q->pkey;
	h->tver = h->migreq = h->fecn = h->becn = 0;
	h->va = r->raddr;
	h->rkey = r->rkey;
	h->dma_len = r->length;
	h->imm = h->invalidate_rkey = r->imm;
	h->swap_add = r->swap_add;
	h->compare = r->compare;
}

/* What the next segment will write of a free buffer; its own lines are not looked at. */
static inline void packet_prefetch(struct rte_mbuf *m)
{
	char *p = (char *)m;

	for (unsigned i = 0; i < sizeof(*m) + MESSAGE_SENDER_BYTES; i += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(p + i, 1);
	__builtin_prefetch(p + sizeof(*m) + MESSAGE_PRIV_BYTES + HEADROOM_BYTES, 1);
}

/* A packet buffer, from a stock that is filled by the burst and prefetched ahead. Raw: next,
 * nb_segs and refcnt are as every free buffer has them; ReqPktGen sets what a driver looks at. */
static struct rte_mbuf *packet_alloc(struct visit *v)
{
	struct rtc *t = v->t;

	if (!t->spares) {
		if (unlikely(rte_mempool_get_bulk(v->e->packets, (void **)t->spare, BURST))) {
			count(counters_of(v->e), COUNTER_packet_empty);
			return NULL;
		}
		t->spares = BURST;
	}
	t->spares--;
	if (t->spares >= 2)
		packet_prefetch(t->spare[t->spares - 2]);
	return t->spare[t->spares];
}

/*
 * May a QP that holds `held` of a pool's elements have one more? A QP whose peer answers
 * (rrc.proven) gets as much as is left free. One whose peer has not answered yet, or not since the
 * last timeout, gets a few, and not from the last quarter of the pool: that is there for those who
 * make progress, however many peers are dead; but for a single element, with which it can prove
 * itself.
 */
static bool share(const struct qp *q, const struct mq_free *f, uint32_t held, uint32_t few)
{
	uint32_t left = mq_free_count(f);

	if (likely(__atomic_load_n(&q->rrc.proven, __ATOMIC_RELAXED)))
		return held <= left && left != 0;
	return held == 0 ? left != 0 : held < few && left > f->size / 4;
}

static bool buffer_share(const struct multi_queue *mq, const struct qp *q)
{
	return share(q, &mq->sw_free, mq_count(&q->mq.sw), UNPROVEN_PACKETS);
}

/* AckReq: every ack_interval packets, and (end_visit) on the last packet of each turn, so that
 * nothing ever waits for an acknowledgement that was not asked for. */
static void choose_ackreq(struct visit *v, struct packet *p)
{
	uint32_t since = ++v->q->rtc.since_ack;

	p->headers.ackreq = since >= v->e->settings.ack_interval;
	if (p->headers.ackreq)
		v->q->rtc.since_ack = 0;
}

/* ---- the states ---- */

static enum rtc_state park(struct visit *v, enum park_reason reason)
{
	v->reason = reason;
	return RTC_PARKED;
}

/* A UC or UD QP may have left SQE (SQERR2RTS) since a request failed. What was rung for before that
 * is flushed; the first request rung for since takes the queue up again. */
static void take_up(const struct visit *v, enum qp_state state)
{
	if (qp_sends(state) && v->r->sq_epoch == __atomic_load_n(&v->q->sq_epoch, __ATOMIC_ACQUIRE))
		v->q->rtc.flushing = 0;
}

static enum rtc_state resp_cxt(struct visit *v)
{
	bool rc = v->q->service == SERVICE_RC;
	enum qp_state state = qp_state(v->q);

	if (!rc && v->r->resolution >= RR_CQ_REQ) /* its outcome is known: it goes on there */
		return RTC_UCUD_CPL;
	if (unlikely(state == QP_SQD) && !(v->r->flags & REQUEST_STARTED))
		return park(v, PARK_DRAIN);
	if (!rc && unlikely(v->q->rtc.flushing))
		take_up(v, state);
	if (unlikely(!qp_sends(state) || v->q->rtc.flushing) && v->r->outcome == OUTCOME_OK)
		return RTC_FLUSH;
	if (unlikely(v->r->outcome != OUTCOME_OK))
		return rc ? RTC_RC_BAD_REQ : RTC_UCUD_CPL;
	return rc ? RTC_RC_JUDGE_MSG : RTC_UCUD_SEG;
}

static enum rtc_state flush(struct visit *v)
{
	v->r->outcome = OUTCOME_FLUSH;
	return v->q->service == SERVICE_RC ? RTC_RC_BAD_REQ : RTC_UCUD_CPL;
}

static bool is_read(const struct request *r)
{
	return r->opcode >= USER_RDMA_READ;
}

/* Does the request, as far as it goes, consume a receive descriptor of the peer (C9-159)? */
static bool consumes_receive(const struct request *r)
{
	return r->opcode == USER_SEND || r->opcode == USER_SEND_IMM || r->opcode == USER_SEND_INV ||
	       r->opcode == USER_RDMA_WRITE_IMM;
}

/* The LSN: what the newest acknowledgement said; the additions begin again (C9-161). */
static inline void look_at_credits(struct qp *q)
{
	uint32_t credits = __atomic_load_n(&q->rrc.credits, __ATOMIC_ACQUIRE);

	if (credits != q->rtc.credits_seen) {
		q->rtc.credits_seen = credits;
		q->rtc.lsn = credits & PSN_MASK;
	}
}

/* Has the request of that number a credit? While none came at all: no (C9-156). */
static bool has_credit(const struct qp *q, uint32_t ssn)
{
	if (q->rtc.credits_seen & CREDITS_UNLIMITED)
		return true;
	return q->rtc.credits_seen & CREDITS_CAME && psn_before_eq(ssn, q->rtc.lsn);
}

/* Must the queue still wait for its limited request? That one has credit by now, or was executed,
 * or its first packet has taken a receive descriptor: then its rest needs none. */
static bool stays_limited(struct qp *q)
{
	uint32_t ssn = q->rtc.limited == LIMITED_REST ? q->rtc.ssn : psn_sub(q->rtc.ssn, 1);

	if (qp_outstanding(q) && !has_credit(q, ssn))
		return true;
	q->rtc.limited = LIMITED_NOT;
	return false;
}

/* A request without credit goes all the same, as far as C9-162 lets it (limit()). */
static void judge_credit(const struct qp *q, struct request *r)
{
	if (has_credit(q, q->rtc.ssn) || !consumes_receive(r))
		r->flags &= ~REQUEST_LIMITED;
	else
		r->flags |= REQUEST_LIMITED;
}

static enum rtc_state judge_read(struct visit *v, uint32_t reads)
{
	const struct multi_queue *mq = v->e->mq;

	if (unlikely(v->q->max_rd_atomic == 0)) {
		v->r->outcome = OUTCOME_LOCAL_QP_OP;
		return RTC_RC_BAD_REQ;
	}
	if (reads >= v->q->max_rd_atomic)
		return park(v, PARK_READS);
	if (!share(v->q, &mq->rd_free, reads, 1) || mq_free_count(&mq->re_free) < v->r->data_units)
		return reads ? park(v, PARK_READS) : RTC_STALLED;
	return RTC_RC_STORE_ENTRY;
}

/*
 * Would the PSNs outstanding become more than C9-61 allows? The responses of a READ count; of a
 * message only as many packets as there are buffers for.
 */
static bool window_full(const struct visit *v)
{
	uint32_t packets = psn_packets(v->r->length, v->q->mtu_bytes);

	if (v->r->opcode != USER_RDMA_READ)
		packets = RTE_MIN(packets, v->e->mq->sw_free.size);
	return qp_outstanding(v->q) + packets > PSN_WINDOW;
}

static enum rtc_state rc_judge_msg(struct visit *v)
{
	struct qp *q = v->q;
	uint32_t reads =
		q->rtc.reads_issued - __atomic_load_n(&q->rrc.reads_done, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&q->rrc.rnr_waiting, __ATOMIC_ACQUIRE))
		return park(v, PARK_RNR);
	if (__atomic_load_n(&q->rrc.retransmitting, __ATOMIC_ACQUIRE))
		return park(v, PARK_RETRANSMIT);
	if (unlikely(v->window == 0))
		return park(v, PARK_WINDOW);
	look_at_credits(q);
	if (unlikely(q->rtc.limited) && stays_limited(q))
		return park(v, PARK_CREDIT);
	if (v->r->flags & REQUEST_STARTED)
		return RTC_RC_SEG;
	if (v->r->flags & REQUEST_FENCE && reads)
		return park(v, PARK_FENCE);
	if (unlikely(window_full(v)))
		return park(v, PARK_PSN);
	judge_credit(q, v->r);
	return is_read(v->r) ? judge_read(v, reads) : RTC_RC_SEG;
}

/* Takes a packet off the QP's turn; a short one counts as a cache line, so that turns end. */
static void spend(struct visit *v, uint32_t bytes)
{
	uint32_t cost = RTE_MAX(bytes, 64u);

	v->quantum -= RTE_MIN(v->quantum, cost);
}

/* The segment's bytes in a fresh packet, or NULL with *next telling where to go on. */
static struct rte_mbuf *segment(struct visit *v, bool *last, enum rtc_state *next)
{
	uint32_t left = v->r->length - v->r->sent_bytes,
		 bytes = RTE_MIN(left, (uint32_t)v->q->mtu_bytes), crc = 0;
	bool first = v->r->sent_bytes == 0;
	struct rte_mbuf *m;

	*next = RTC_STALLED;
	if (v->room == 0 || v->quantum == 0 || !(m = packet_alloc(v)))
		return NULL;
	*last = left == bytes;
	v->r->outcome = dp_copy(v->e, v->q, v->m, (uint8_t *)m->buf_addr + HEADROOM_BYTES, bytes,
		bytes > CRC_WITH_COPY_BYTES ? &crc : NULL);
	if (unlikely(v->r->outcome != OUTCOME_OK)) {
		count(counters_of(v->e), COUNTER_bad_wqe_access);
		v->t->spares++; /* back into the stock */
		*next = v->q->service == SERVICE_RC ? RTC_RC_BAD_REQ : RTC_UCUD_CPL;
		return NULL;
	}
	fill_packet(v, m, bytes, crc, first, *last);
	v->r->flags |= REQUEST_STARTED;
	spend(v, bytes);
	count(counters_of(v->e), COUNTER_request_packets);
	count_n(counters_of(v->e), COUNTER_request_bytes, bytes);
	return m;
}

static void advance_psn(struct visit *v, uint32_t packets)
{
	struct qp *q = v->q;

	v->window -= RTE_MIN(packets, v->window);
	__atomic_store_n(&q->rtc.next_psn, psn_add(q->rtc.next_psn, packets), __ATOMIC_RELEASE);
}

/* C9-162, C9-163: of a SEND without credit one packet goes, of a WRITE with immediate the whole
 * message, and the last that goes asks for an acknowledgement. True: the rest of the message has to
 * wait. */
static bool limit(struct qp *q, struct request *r, struct packet *p, bool last)
{
	if (r->opcode == USER_RDMA_WRITE_IMM && !last)
		return false;
	r->flags &= ~REQUEST_LIMITED;
	p->headers.ackreq = 1;
	q->rtc.limited = last ? LIMITED_MESSAGE : LIMITED_REST;
	return !last;
}

static enum rtc_state rc_seg(struct visit *v)
{
	struct qp *q = v->q;
	struct request *r = v->r;
	uint8_t flags = 0;
	enum rtc_state next;
	struct rte_mbuf *m;
	bool last;

	if (unlikely(!buffer_share(v->e->mq, q)))
		return mq_count(&q->mq.sw) ? park(v, PARK_BUFFER) : RTC_STALLED;
	if (unlikely(v->window == 0))
		return park(v, PARK_WINDOW);
	m = segment(v, &last, &next);
	if (!m) {
		if (next == RTC_RC_BAD_REQ)
			resolution_note_rc(r, !(r->flags & REQUEST_STARTED), true);
		return next;
	}
	resolution_note_rc(r, packet_of(m)->payload_bytes == r->sent_bytes, last);
	choose_ackreq(v, packet_of(m));
	if (last)
		flags = ELEMENT_LAST | (r->flags & REQUEST_SIGNALED ? ELEMENT_SIGNALED : 0);
	rte_mbuf_refcnt_set(m, 2); /* one for the wire, one for MultiQueue */
	sw_put(v->e->mq, &q->mq.sw,
		&(struct sw_element){.psn = q->rtc.next_psn,
			.m = m,
			.wqe_offset = r->wqe_offset,
			.length = r->length,
			.opcode = r->opcode,
			.flags = flags});
	advance_psn(v, 1);
	out_put(v, m);
	if (unlikely(r->flags & REQUEST_LIMITED) && limit(q, r, packet_of(m), last))
		return park(v, PARK_CREDIT);
	return last ? RTC_CXT_WB : RTC_RC_SEG;
}

/* Keeps a READ's or atomic's scatter entries and the request itself, and sends it. */
static enum rtc_state rc_store_entry(struct visit *v)
{
	struct qp *q = v->q;
	struct request *r = v->r;
	const struct wqe_data *d = (const struct wqe_data *)(request_wqe(v->m) + r->data_first);
	uint32_t packets = r->opcode == USER_RDMA_READ ? psn_packets(r->length, q->mtu_bytes) : 1;
	struct rd_element x = {.psn = q->rtc.next_psn,
		.packets = packets,
		.length = r->length,
		.raddr = r->raddr,
		.rkey = r->rkey,
		.wqe_offset = r->wqe_offset,
		.swap_add = r->swap_add,
		.compare = r->compare,
		.opcode = r->opcode,
		.entries = r->data_units,
		.flags = r->flags & REQUEST_SIGNALED ? ELEMENT_SIGNALED : 0};
	struct rte_mbuf *m;

	if (v->room == 0 || v->quantum == 0 || !(m = packet_alloc(v)))
		return RTC_STALLED;
	for (unsigned i = 0; i < r->data_units; i++) {
		struct re_element y = {.lkey = d[i].lkey, .addr = d[i].addr, .length = d[i].length};

		re_put(v->e->mq, &q->mq.re, &y);
	}
	fill_packet(v, m, 0, 0, true, true);
	packet_of(m)->headers.ackreq = 1;
	q->rtc.since_ack = 0;
	spend(v, 0);
	__atomic_store_n(&q->rtc.reads_issued, q->rtc.reads_issued + 1, __ATOMIC_RELEASE);
	rd_put(v->e->mq, &q->mq.rd, &x);
	advance_psn(v, packets);
	count(counters_of(v->e), COUNTER_request_packets);
	resolution_note_rc(r, true, true);
	out_put(v, m);
	return RTC_CXT_WB;
}

static const struct wqe_ud *datagram_unit(const struct visit *v)
{
	return (const struct wqe_ud *)(request_wqe(v->m) + v->r->ud_offset);
}

/* Is there an address of ours that the datagram can come from, and one that it can go to? The
 * client has the daemon resolve that (RESOLVE) when it makes an address handle. */
static bool datagram_allowed(const struct visit *v)
{
	static const uint8_t unresolved[6];
	const struct wqe_ud *u = datagram_unit(v);

	if (unlikely(memcmp(u->dmac, unresolved, sizeof(u->dmac)) == 0))
		return false;
	return u->gid_index < v->e->gid_count && v->e->gids[u->gid_index].is_ipv6 == !!u->is_ipv6;
}

/* The address unit into the packet. A Q_Key with the top bit means the QP's own: only what is
 * privileged can set that (IBTA 10.2.5). */
static void datagram_address(const struct visit *v, struct packet *p)
{
	const struct wqe_ud *u = datagram_unit(v);

	p->headers.dest_qp = u->qpn & PSN_MASK;
	p->headers.qkey = u->qkey & 0x80000000u ? v->q->qkey : u->qkey;
	p->headers.src_qp = v->q->qpn;
	memcpy(p->ud_dmac, u->dmac, sizeof(p->ud_dmac));
	memcpy(p->ud_dip, u->dip, sizeof(p->ud_dip));
	p->ud_ipv6 = !!u->is_ipv6;
	p->ud_tclass = u->traffic_class;
	p->ud_hops = u->hop_limit;
	p->ud_gid = u->gid_index;
	p->ud_flow = u->flow_label & 0xfffff;
}

static enum rtc_state ucud_seg(struct visit *v)
{
	bool ud = v->q->service == SERVICE_UD, last;
	enum rtc_state next;
	struct rte_mbuf *m;

	if (v->r->resolution == RR_IDLE)
		resolution_judge(v->r);
	if (ud && unlikely(!datagram_allowed(v))) {
		count(counters_of(v->e), COUNTER_bad_wqe_address);
		v->r->outcome = OUTCOME_LOCAL_QP_OP;
		return RTC_UCUD_CPL;
	}
	m = segment(v, &last, &next);
	if (!m) {
		if (next == RTC_STALLED)
			resolution_data(v->r, false);
		return next;
	}
	if (ud)
		datagram_address(v, packet_of(m));
	advance_psn(v, 1);
	out_put(v, m);
	resolution_data(v->r, last);
	return last ? RTC_UCUD_CPL : RTC_UCUD_SEG;
}

/* A UC or UD request that failed stops the queue, before its client can see so; behind one that
 * did, it is flushed, whatever else is wrong with it. */
static void ucud_fail(struct visit *v)
{
	if (v->q->rtc.flushing)
		v->r->outcome = OUTCOME_FLUSH;
	if (v->r->outcome != OUTCOME_FLUSH) {
		v->q->rtc.flushing = 1;
		qp_set_sqe(v->q);
	}
	if (v->r->resolution == RR_IDLE)
		resolution_judge(v->r);
	resolution_data(v->r, true);
}

/* UC and UD requests complete when they are sent. */
static enum rtc_state ucud_cpl(struct visit *v)
{
	if (unlikely(v->r->outcome != OUTCOME_OK) && v->r->resolution < RR_CQ_REQ)
		ucud_fail(v);
	return resolution_complete(v->e, v->q, v->m) ? RTC_CXT_WB : RTC_STALLED;
}

static void finish_request(struct visit *v)
{
	struct qp *q = v->q;

	q->rtc.head = v->r->next;
	__atomic_store_n(&q->rtc.consumed, q->rtc.consumed + 1, __ATOMIC_RELEASE);
}

/* A bad request goes to RequesterRecvControl, which completes it when all before it has completed;
 * what comes after it is flushed the same way. */
static enum rtc_state rc_bad_req(struct visit *v)
{
	struct channel *out = &v->e->channel[CHANNEL_RTC_RRC];

	if (!channel_room(out))
		return RTC_STALLED;
	v->q->rtc.flushing = 1;
	finish_request(v);
	v->r->next = NULL;
	channel_put_one(out, v->m);
	return RTC_IDLE;
}

static enum rtc_state cxt_wb(struct visit *v)
{
	count(counters_of(v->e), COUNTER_requests);
	v->q->rtc.ssn = psn_add(v->q->rtc.ssn, 1);
	v->q->rtc.lsn += !consumes_receive(v->r);
	finish_request(v);
	rte_mbuf_raw_free(v->m);
	v->freed++;
	return RTC_IDLE;
}

static enum rtc_state step(struct visit *v, enum rtc_state state)
{
	switch (state) {
	case RTC_IDLE:
		v->m = v->q->rtc.head;
		v->r = request_of(v->m);
		return RTC_RESP_CXT;
	case RTC_RESP_CXT:
		return resp_cxt(v);
	case RTC_FLUSH:
		return flush(v);
	case RTC_RC_JUDGE_MSG:
		return rc_judge_msg(v);
	case RTC_RC_SEG:
		return rc_seg(v);
	case RTC_RC_STORE_ENTRY:
		return rc_store_entry(v);
	case RTC_RC_BAD_REQ:
		return rc_bad_req(v);
	case RTC_UCUD_SEG:
		return ucud_seg(v);
	case RTC_UCUD_CPL:
		return ucud_cpl(v);
	case RTC_CXT_WB:
		return cxt_wb(v);
	case RTC_PARKED:
	case RTC_STALLED:
		break;
	}
	return state;
}

/* ---- a visit ---- */

/* The Loss timer: set when it is not armed and something is outstanding. False: no room or no
 * buffer, try again. */
static bool arm_timer(struct engine *e, struct qp *q)
{
	uint64_t first = (uint64_t)FIRST_LOOK_TICKS * e->settings.timer_tick_ns;

	if (likely(__atomic_load_n(&q->tc.armed[TIMER_LOSS], __ATOMIC_SEQ_CST)) || !q->timeout)
		return true;
	first = RTE_MIN(first, qp_timeout_ns(q));
	return timer_event_put(e, CHANNEL_RTC_TC, q, TIMER_LOSS, TIMER_SET, first);
}

static const enum counter park_counters[] = {
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

/* PSNs that the QP may send more; after losses that is bounded, but never to nothing. */
static uint32_t window_left(const struct qp *q)
{
	uint32_t window = __atomic_load_n(&q->rrc.window, __ATOMIC_RELAXED) >> 4, outstanding;

	if (likely(!window))
		return UINT32_MAX;
	outstanding = qp_outstanding(q);
	return outstanding < window ? window - outstanding : 0;
}

/* Has what the QP was parked for changed meanwhile? */
static bool may_go_on(struct visit *v)
{
	v->window = window_left(v->q);
	if (v->reason == PARK_DRAIN)
		return qp_state(v->q) != QP_SQD;
	if (qp_state(v->q) == QP_ERR)
		return true;
	return step(v, RTC_RC_JUDGE_MSG) != RTC_PARKED &&
	       (v->reason != PARK_BUFFER || buffer_share(v->e->mq, v->q));
}

/* Parks the QP and looks once more: RequesterRecvControl stores what it changed and then looks at
 * `parked`. */
static void park_qp(struct visit *v)
{
	struct qp *q = v->q;

	__atomic_store_n(&q->rtc.parked, v->reason, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	count(counters_of(v->e), park_counters[v->reason]);
	if (may_go_on(v)) {
		__atomic_store_n(&q->rtc.parked, PARK_NONE, __ATOMIC_RELAXED);
		active_add(v->e, q);
	}
}

/*
 * After the QP's turn: its packets, its timer, those who wait for it, and itself. The fence stands
 * between what this turn stored (next_psn, the lists, consumed) and what others may just have
 * stored (armed, state, parked), each of whom has one too: one of the two sees the other.
 */
static void end_visit(struct visit *v, enum rtc_state state)
{
	struct qp *q = v->q;
	bool rc = q->service == SERVICE_RC;

	if (v->sent && rc) {
		packet_of(v->t->out[v->t->out_count - 1])->headers.ackreq = 1;
		q->rtc.since_ack = 0;
	}
	out_flush(v->e);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (rc && (v->sent || qp_outstanding(q))) {
		if (!arm_timer(v->e, q))
			active_add(v->e, q);
		if (unlikely(qp_state(q) == QP_ERR)) /* may have been flushed before we added */
			wake_post(&v->e->wake[WAKE_RRC], &q->wake[WAKE_RRC], q->index);
	}
	if (v->freed)
		descriptors_return(v->e, q->client, v->freed);
	if (unlikely(__atomic_load_n(&q->ws.parked, __ATOMIC_SEQ_CST)))
		wake_post(&v->e->wake[WAKE_WS], &q->wake[WAKE_WS], q->index);
	if (state == RTC_PARKED)
		park_qp(v);
	else if (q->rtc.head)
		active_add(v->e, q);
	if (unlikely(qp_state(q) == QP_SQD))
		drain(v->e, q);
}

/* One QP's turn: at most `quantum` bytes. Returns how many of them it used. */
static uint32_t visit_qp(struct engine *e, struct qp *q, unsigned *room, uint32_t quantum)
{
	struct visit v = {.e = e,
		.t = e->module[MODULE_RTC],
		.q = q,
		.room = *room,
		.quantum = quantum,
		.window = window_left(q)};
	enum rtc_state state = RTC_IDLE, next;

	if (qp_outstanding(q) == 0)
		__atomic_store_n(&q->rtc.busy_since_ns, e->now_ns, __ATOMIC_RELEASE);
	while (state != RTC_PARKED && state != RTC_STALLED && (state != RTC_IDLE || q->rtc.head)) {
		next = step(&v, state);
		MACHINE_STEP(rtc_machine, state, next);
		state = next;
	}
	*room = v.room;
	end_visit(&v, state);
	return quantum - v.quantum;
}

/*
 * QPs take turns until a quantum of bytes is spent, in all: more in one poll would only push what
 * was just copied out of the caches before the next stages read it.
 */
unsigned rtc_poll(struct engine *e)
{
	struct rtc *t = e->module[MODULE_RTC];
	unsigned room = channel_room(&e->channel[CHANNEL_RTC_RPG]), before = room, visits = 0, n;
	uint32_t left = e->settings.quantum_bytes;
	struct qp *q;

	take_wakes(e);
	n = take_requests(e);
	while (room && left && visits++ < BURST && (q = qp_list_take(&t->active))) {
		if (unlikely(qp_closing(q)))
			let_go(e, q);
		else
			left -= visit_qp(e, q, &room, left);
	}
	return n + before - room;
}
