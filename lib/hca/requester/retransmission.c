/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retransmission, for RequesterRecvControl's states NAK_RETRANS, ACK_LOSS_RETRANS, READ_RETRANS and
 * TIMER_RETRANS (rrc_acks.c, rrc_timers.c): go-back-N over MultiQueue's two queues in PSN order.
 * Reads elements, releases none. Stage requester_recv.
 *
 * When the window is full (below) the walk pauses, after a packet that requests an acknowledgement,
 * until something is acknowledged. If that packet is lost, a probe or the Loss timer starts over.
 *
 * The packets have their own channel (RRC_RPG), so RequesterTransControl may send again only when
 * ReqPktGen has taken the last of them: otherwise new packets would overtake old ones, and each of
 * them would provoke another NAK.
 */
#include "context/pacing.h"
#include "outstanding.h"
#include "path_delay.h"
#include "requester_trans_control.h"
#include "request_opcodes.h"
#include "retransmission.h"
#include "rrc_release.h"
#include "rrc_timers.h"

static void retransmit_add(struct engine *e, struct qp *q)
{
	qp_list_add(&e->rrc->retransmit, q);
}

void retransmit_from(struct engine *e, struct qp *q, uint32_t psn)
{
	q->rrc.retransmit_psn = psn;
	q->rrc.one_missing = q->rrc.after_nak = 0;
	q->rrc.mark_ns = 0;
	path_forget(q);
	q->rrc.cursor = (struct mq_cursor){
		.sw = MQ_NIL,
		.sw_place = q->mq.sw.consumed,
		.rd = MQ_NIL,
		.rd_place = q->mq.rd.consumed,
	}; /* begins at the heads, skips what lies before psn */
	/* In case nothing needs to be retransmitted: there is nothing to wait for. */
	q->rrc.retransmit_put = (uint32_t)e->channel[CHANNEL_RRC_RPG].put;
	__atomic_store_n(&q->rrc.retransmitting, 1, __ATOMIC_SEQ_CST);
	retransmit_add(e, q);
}

/*
 * Go-back-N wastes what is in flight when a packet is lost, or when the peer has no receive for it
 * and drops what follows. So halve the window after a loss or an RNR NAK; then grow it by 1/16 of
 * each ACK. It settles at an eighth of the packets between two losses, whatever the rate of loss,
 * so about an eighth is wasted; but it never falls below WINDOW_MIN, which a round trip through the
 * pipeline needs.
 */
#define WINDOW_MIN 32

/* PSNs that may be in flight. */
static uint32_t window_of(const struct qp *q)
{
	return q->rrc.window ? q->rrc.window >> 4 : UINT32_MAX;
}

void retransmit_cut(struct qp *q)
{
	uint32_t half = RTE_MIN(qp_outstanding(q), window_of(q)) / 2;

	__atomic_store_n(&q->rrc.ahead_psn, q->rrc.unacked_psn, __ATOMIC_RELAXED);
	q->rrc.recover_psn = qp_next_psn(q);
	q->rrc.recovering = 1;
	__atomic_store_n(&q->rrc.window, RTE_MAX(half, (uint32_t)WINDOW_MIN) << 4,
			 __ATOMIC_RELAXED);
}

/* Has the window been halved for this loss? */
static bool is_known_loss(const struct qp *q, uint32_t psn)
{
	return q->rrc.recovering && psn_before(psn, q->rrc.recover_psn);
}

void retransmit_lost(struct engine *e, struct qp *q, uint32_t psn)
{
	if (!is_known_loss(q, psn))
		path_lost(e, q);
	retransmit_cut(q);
	retransmit_from(e, q, psn);
}

/*
 * Toward a peer that keeps what comes behind a gap, only the missing packet has to be sent again,
 * and new ones may follow it. Nobody announces that: it shows when, after the first NAK of a loss,
 * an acknowledgement covers packets that were not sent again yet. A peer that did not keep them
 * after all asks for the very next one.
 */
static void resend_one(struct engine *e, struct qp *q, uint32_t psn)
{
	retransmit_from(e, q, psn);
	q->rrc.one_missing = 1;
	__atomic_store_n(&q->rrc.ahead_psn, qp_next_psn(q), __ATOMIC_RELAXED);
	q->rrc.retransmit_end = psn_add(psn, 1);
}

/* The same, when the peer has not got it: its acknowledgement will show the round trip. */
static void resend_missing(struct engine *e, struct qp *q, uint32_t psn)
{
	resend_one(e, q, psn);
	q->rrc.mark_psn = psn;
	q->rrc.mark_ns = engine_now(e);
}

/* Does one packet suffice? The setting may have changed since the peer has shown that it keeps. */
static bool trusts(const struct engine *e, const struct qp *q)
{
	return q->rrc.peer_keeps && engine_setting(e, loss_recovery) == LOSS_RECOVERY_KEEP;
}

void retransmit_missing(struct engine *e, struct qp *q, uint32_t psn)
{
	bool known = is_known_loss(q, psn);

	if (!known)
		path_lost(e, q);
	if (q->rrc.peer_keeps && q->rrc.retransmit_end == psn)
		q->rrc.peer_keeps--;
	if (!trusts(e, q) || !known)
		retransmit_cut(q);
	if (trusts(e, q)) {
		resend_missing(e, q, psn);
	} else {
		retransmit_from(e, q, psn);
		q->rrc.after_nak = !known;
	}
}

/* Of what is outstanding, only the oldest packet. */
static void probe_one(struct engine *e, struct qp *q)
{
	uint32_t psn = q->rrc.unacked_psn;

	if (!is_known_loss(q, psn)) {
		path_lost(e, q);
		retransmit_cut(q);
	}
	resend_one(e, q, psn);
}

/*
 * No round trip is known: all of the first flight may be lost, in a queue that others fill, too. So
 * one packet goes again; the rest follows when it is acknowledged, which shows the round trip. From a
 * slow peer that may be the acknowledgement of the packet sent first: an eighth of the time since then
 * is added, so that later probes do not come much too soon.
 */
static void probe_first_flight(struct engine *e, struct qp *q)
{
	probe_one(e, q);
	q->rrc.mark_psn = q->rrc.unacked_psn;
	q->rrc.mark_ns = engine_now(e) - qp_quiet_ns(e, q) / 8;
}

void retransmit_probe(struct engine *e, struct qp *q)
{
	if (!q->rrc.srtt_ns)
		probe_first_flight(e, q);
	else if (trusts(e, q) && q->rrc.probes <= 1)
		probe_one(e, q);
	else
		retransmit_lost(e, q, q->rrc.unacked_psn);
}

/*
 * The missing packet has been acknowledged, and with it what was kept, but not all that was
 * outstanding then: the next one is missing, too. Its NAK may be on its way. If nothing was kept,
 * again and again, nothing is.
 */
static void next_missing(struct engine *e, struct qp *q)
{
	uint32_t psn = q->rrc.unacked_psn;

	if (rrc_read_in_the_way(e, q, psn)) /* it is answered, as far as anybody knows */
		return;
	if (q->rrc.retransmit_end == psn && --q->rrc.peer_keeps == 0) {
		retransmit_from(e, q, psn);
		return;
	}
	resend_missing(e, q, psn);
	q->rrc.nak_psn = psn + 1;
	q->rrc.nak_ns = engine_now(e);
}

/* Something was acknowledged after a loss. Did the peer have packets that were not sent again yet?
 * A single one may only have been late; so may all, when the first flight was probed. If one packet
 * went alone, see what is still missing. */
static void learn_peer(struct engine *e, struct qp *q)
{
	enum { PROOF = 2, TRUST = 4 };
	bool again = q->rrc.retransmitting, one = q->rrc.one_missing;

	if (((one && q->rrc.peer_keeps) || (again && q->rrc.after_nak)) &&
	    engine_setting(e, loss_recovery) == LOSS_RECOVERY_KEEP &&
	    psn_diff(q->rrc.unacked_psn, q->rrc.retransmit_psn) >= PROOF)
		q->rrc.peer_keeps = TRUST;
	if (again || !one)
		return;
	q->rrc.one_missing = 0;
	if (!q->rrc.recovering)
		return;
	if (trusts(e, q))
		next_missing(e, q);
	else if (q->rrc.retransmit_end == q->rrc.unacked_psn)
		retransmit_from(e, q, q->rrc.unacked_psn);
}

#define ROUND_TRIP_NS_MAX (UINT32_MAX / 8) /* eight of them fit into 32 bits */

/*
 * A round trip is measured from an acknowledgement until something sent after it is acknowledged;
 * not something in flight already, since the acknowledgements of a burst arrive close together,
 * however far away the peer is. None is measured while nothing is outstanding, which would include
 * the client's pauses, and those with retransmissions are discarded.
 */
static void measure(struct engine *e, struct qp *q)
{
	uint32_t next = qp_next_psn(q), unacked = q->rrc.unacked_psn, srtt = q->rrc.srtt_ns;
	bool over = psn_after(unacked, q->rrc.mark_psn);
	uint64_t ns;

	if (q->rrc.mark_ns && over) {
		ns = RTE_MIN(engine_now(e) - q->rrc.mark_ns, (uint64_t)ROUND_TRIP_NS_MAX);
		srtt = srtt ? (uint32_t)((ns + 7 * (uint64_t)srtt) / 8) : (uint32_t)ns;
		__atomic_store_n(&q->rrc.srtt_ns, srtt, __ATOMIC_RELAXED);
	}
	if (psn_after_eq(unacked, q->rrc.recover_psn))
		q->rrc.recovering = 0;
	if (next == unacked || q->rrc.recovering) {
		q->rrc.mark_ns = 0;
	} else if (!q->rrc.mark_ns || over) {
		q->rrc.mark_psn = next;
		q->rrc.mark_ns = engine_now(e);
	}
}

/* Where the walk continues: after everything acknowledged since. Compares counts of outstanding
 * PSNs, since 2^23 of them have no before and after. */
static uint32_t walk_psn(const struct qp *q)
{
	uint32_t unacked = q->rrc.unacked_psn, psn = q->rrc.retransmit_psn;

	return psn_sub(psn, unacked) > qp_outstanding(q) ? unacked : psn;
}

/* May the walk send its next packet? */
static bool within_window(const struct qp *q)
{
	return psn_sub(walk_psn(q), q->rrc.unacked_psn) < window_of(q);
}

void retransmit_acked(struct engine *e, struct qp *q, uint32_t acked)
{
	uint32_t window = q->rrc.window;

	__atomic_store_n(&q->rrc.probes, 0, __ATOMIC_RELAXED);
	measure(e, q);
	if (unlikely(path_is_timed(q)))
		path_acked(e, q);
	if (likely(!window))
		return;
	learn_peer(e, q);
	if (psn_before(q->rrc.ahead_psn, q->rrc.unacked_psn))
		__atomic_store_n(&q->rrc.ahead_psn, q->rrc.unacked_psn, __ATOMIC_RELAXED);
	rrc_watch(e, q);
	window += acked;
	if (window >> 4 > e->settings.swpb_elements)
		window = 0;
	__atomic_store_n(&q->rrc.window, window, __ATOMIC_RELAXED);
	if (q->rrc.retransmitting && within_window(q))
		retransmit_add(e, q); /* if it had paused */
}

/* A READ requested again from the first missing response on; other requests unchanged. Those that
 * carry data carry the eight bytes of swap_add. */
static struct rte_mbuf *read_again(struct engine *e, const struct qp *q,
				   const struct rd_element *rd, uint32_t done)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->packets);
	uint8_t opcode = request_opcodes[rd->opcode].only;
	bool carries = wire_opcodes[opcode].headers & WIRE_HAS_PAYLOAD;
	struct packet *p;

	if (!m) {
		count(rrc_counters(e), COUNTER_packet_empty);
		return NULL;
	}
	p = packet_of(m);
	p->qpn = qp_number(q);
	p->epoch = q->epoch;
	p->payload_bytes = carries ? sizeof(rd->swap_add) : 0;
	p->flags = 0;
	p->wqe_offset = rd->wqe_offset;
	memcpy((uint8_t *)m->buf_addr + HEADROOM_BYTES, &rd->swap_add, sizeof(rd->swap_add));
	p->headers = (struct wire_headers){
		.opcode = opcode,
		.ackreq = 1,
		.psn = psn_add(rd->psn, done),
		.dest_qp = q->dest_qpn,
		.pkey = q->pkey,
		.va = rd->raddr + (uint64_t)done * q->mtu_bytes,
		.rkey = rd->rkey,
		.dma_len = carries ? sizeof(rd->swap_add) : rd->length - done * q->mtu_bytes,
		.swap_add = rd->swap_add,
		.compare = rd->compare,
	};
	return m;
}

/* The element at a cursor's position in a list: where it was left, or the head if that has been
 * released or nothing followed it then. MQ_NIL: the end of the list. */
static uint32_t cursor_at(const struct mq_list *l, uint32_t *index, uint32_t *place)
{
	uint32_t consumed = __atomic_load_n(&l->consumed, __ATOMIC_ACQUIRE);
	uint32_t produced = __atomic_load_n(&l->produced, __ATOMIC_ACQUIRE);

	if (*place != produced && (*index == MQ_NIL || (int32_t)(*place - consumed) < 0)) {
		*place = consumed; /* an empty list has no head, only a stale element */
		*index =
			consumed == produced ? MQ_NIL : __atomic_load_n(&l->head, __ATOMIC_ACQUIRE);
	}
	return *index;
}

/* A kept packet whose headers are of another path, or of another state of its migration: a copy takes
 * its place, and gets new ones. The frame itself may still be on its way. NULL: no buffer. */
static __rte_noinline struct rte_mbuf *packet_anew(struct engine *e, struct sw_element *sw,
						   uint8_t turn)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->packets);
	struct packet *p;

	if (!m) {
		count(rrc_counters(e), COUNTER_packet_empty);
		return NULL;
	}
	p = packet_of(m);
	*p = *packet_of(sw->m);
	p->flags &= (uint8_t)~PACKET_BUILT;
	p->turn = turn;
	memcpy((uint8_t *)m->buf_addr + HEADROOM_BYTES, (uint8_t *)sw->m->buf_addr + HEADROOM_BYTES,
	       p->payload_bytes);
	rte_mbuf_refcnt_set(m, 2); /* one for the wire, one for MultiQueue */
	rte_pktmbuf_free(sw->m);
	sw->m = m;
	return m;
}

/* Takes another reference to a kept packet. NULL: no buffer. */
static struct rte_mbuf *packet_again(struct engine *e, const struct qp *q, struct sw_element *sw)
{
	uint8_t turn = qp_way(q).turn;

	if (unlikely(packet_of(sw->m)->turn != turn))
		return packet_anew(e, sw, turn);
	rte_mbuf_refcnt_update(sw->m, 1);
	return sw->m;
}

/* The READ or atomic at the cursor. The oldest one may have some of its responses: it is requested
 * from the first missing one on, and the responses may start with FIRST or ONLY there. */
static struct rte_mbuf *read_request(struct engine *e, struct qp *q, const struct rd_element *rd)
{
	bool oldest = q->rrc.cursor.rd_place == q->mq.rd.consumed;
	struct rte_mbuf *m = read_again(e, q, rd, oldest ? q->rrc.read_packets : 0);

	if (m && oldest)
		q->rrc.read_asked = q->rrc.read_packets;
	return m;
}

static void cursor_next(struct mq_cursor *c, const struct sw_element *sw,
			const struct rd_element *rd, bool read)
{
	if (read) {
		c->rd = __atomic_load_n(&rd->next, __ATOMIC_ACQUIRE);
		c->rd_place++;
	} else {
		c->sw = __atomic_load_n(&sw->next, __ATOMIC_ACQUIRE);
		c->sw_place++;
	}
}

/* The next packet to retransmit, and what follows it; NULL: none left, or no buffer. The cursor
 * stays at it: the next call skips it, as it lies before the next PSN. */
static struct rte_mbuf *walk_next(struct engine *e, struct qp *q)
{
	struct mq_cursor *c = &q->rrc.cursor;

	for (;;) {
		uint32_t i = cursor_at(&q->mq.sw, &c->sw, &c->sw_place),
			 k = cursor_at(&q->mq.rd, &c->rd, &c->rd_place), last;
		struct sw_element *sw = i != MQ_NIL ? &e->mq->sw[i] : NULL;
		struct rd_element *rd = k != MQ_NIL ? &e->mq->rd[k] : NULL;
		bool read = read_is_older(sw, rd);
		struct rte_mbuf *m;

		if (!sw && !rd)
			return NULL;
		last = read ? psn_add(rd->psn, rd->packets - 1) : sw->psn;
		if (psn_before(last, q->rrc.retransmit_psn) || (!read && !sw->m)) {
			cursor_next(c, sw, rd, read);
			continue;
		}
		m = read ? read_request(e, q, rd) : packet_again(e, q, sw);
		if (m)
			q->rrc.retransmit_psn = psn_add(last, 1);
		return m;
	}
}

/* All packets have been passed to ReqPktGen; has it taken the last one? */
static bool handed_over(const struct engine *e, const struct qp *q)
{
	uint64_t taken = __atomic_load_n(&e->channel[CHANNEL_RRC_RPG].taken, __ATOMIC_ACQUIRE);

	return (int32_t)((uint32_t)taken - q->rrc.retransmit_put) >= 0;
}

/* The PSN at which the walk ends. What is outstanding may grow meanwhile: a turn of the sender that
 * was in progress may have added packets since the walk began. */
static uint32_t walk_end(const struct qp *q)
{
	return q->rrc.one_missing ? q->rrc.retransmit_end : qp_next_psn(q);
}

/* What goes alone asks for its acknowledgement. Its frame is made anew, unless somebody but MultiQueue
 * still holds it: then it has hardly left. */
static void ask(struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);

	if (packet_asks(p) || rte_mbuf_refcnt_read(m) != 2)
		return;
	packet_ask(p);
	p->flags &= ~PACKET_BUILT;
}

/* Fills m[] with up to `room` packets of the walk. *wait: it must pause after the last. */
static unsigned walk(struct engine *e, struct qp *q, struct rte_mbuf **m, unsigned room, bool *wait)
{
	unsigned n = 0;

	*wait = false;
	while (n < room && !*wait && psn_before(q->rrc.retransmit_psn, walk_end(q)) &&
	       (m[n] = walk_next(e, q))) {
		if (q->rrc.one_missing)
			ask(m[n]);
		*wait = packet_asks(packet_of(m[n++])) && !within_window(q);
	}
	return n;
}

/*
 * A flow that congestion control limits sends again at its rate, too, packet by packet. The rate is
 * RequesterTransControl's, which is woken to let it grow.
 */
static void pace(struct engine *e, struct qp *q, uint32_t rate, const struct packet *p)
{
	uint64_t bits = 8ull * (p->payload_bytes + PACING_HEADER_BYTES);
	uint64_t now_ns = engine_now(e), late_ns = RTE_MIN(now_ns, (uint64_t)PACING_SLACK_NS);

	q->rrc.resend_ns = RTE_MAX(q->rrc.resend_ns, now_ns - late_ns) + bits * 1000000 / rate;
	wake_sender(e, q);
}

static unsigned retransmit_some(struct engine *e, struct qp *q, unsigned room)
{
	struct channel *out = &e->channel[CHANNEL_RRC_RPG];
	uint32_t rate = __atomic_load_n(&q->rtc.flow.cc.rate, __ATOMIC_RELAXED);
	struct rte_mbuf *m[BURST];
	unsigned n;
	bool wait;

	if (unlikely(rate) && engine_now(e) < q->rrc.resend_ns) {
		retransmit_add(e, q);
		return 0;
	}
	q->rrc.retransmit_psn = walk_psn(q);
	n = walk(e, q, m, rate ? 1 : RTE_MIN(room, (unsigned)BURST), &wait);
	if (n) {
		if (unlikely(rate))
			pace(e, q, rate, packet_of(m[0]));
		channel_put(out, m, n);
		q->rrc.retransmit_put = (uint32_t)out->put;
	}
	count_n(rrc_counters(e), COUNTER_retransmitted_packets, n);
	if (psn_before(q->rrc.retransmit_psn, walk_end(q)) || !handed_over(e, q)) {
		if (!wait)
			retransmit_add(e, q);
		return n;
	}
	__atomic_store_n(&q->rrc.retransmitting, 0, __ATOMIC_RELEASE);
	wake_sender(e, q);
	return n;
}

unsigned retransmit_poll(struct engine *e)
{
	struct rrc *c = e->rrc;
	unsigned room = channel_room(&e->channel[CHANNEL_RRC_RPG]), n = 0, visits = BURST;
	struct qp *q;

	while (n < room && visits-- && (q = qp_list_take(&c->retransmit))) {
		if (qp_sends(qp_state(q)) && !q->rrc.rnr_waiting)
			n += retransmit_some(e, q, room - n);
	}
	return n ? n : c->retransmit.head != QP_LIST_END;
}
