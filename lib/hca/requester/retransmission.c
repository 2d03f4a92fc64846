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
#include "context/path_class.h"
#include "outstanding.h"
#include "packet_again.h"
#include "path_delay.h"
#include "requester_trans_control.h"
#include "request_opcodes.h"
#include "retransmission.h"
#include "round_trip.h"
#include "rrc_early.h"
#include "rrc_release.h"
#include "rrc_timers.h"

static void retransmit_add(struct engine *e, struct qp *q)
{
	qp_list_add(&e->rrc->retransmit, q);
}

void retransmit_from(struct engine *e, struct qp *q, uint32_t psn)
{
	q->rrc.retransmit_psn = psn;
	q->rrc.one_missing = q->rrc.after_nak = q->rrc.selective = 0;
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
	q->repeat.done_psn = q->repeat.seen_psn = q->repeat.map_psn = q->rrc.unacked_psn;
	memset(q->repeat.map, 0, sizeof(q->repeat.map));
	__atomic_store_n(&q->rrc.window, RTE_MAX(half, (uint32_t)WINDOW_MIN) << 4,
			 __ATOMIC_RELAXED);
}

/* Has the window been halved for this loss? */
static bool is_known_loss(const struct qp *q, uint32_t psn)
{
	return q->rrc.recovering && psn_before(psn, q->rrc.recover_psn);
}

/* The window is halved once for a loss. */
static void note_loss(struct engine *e, struct qp *q, uint32_t psn)
{
	if (is_known_loss(q, psn))
		return;
	path_lost(e, q);
	retransmit_cut(q);
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
 * and new ones may follow it. Peers do not announce that: it shows when, after the first NAK of a
 * loss, an acknowledgement covers packets that were not sent again yet. A peer that did not keep
 * them after all asks for the very next one.
 */
static void resend_one(struct engine *e, struct qp *q, uint32_t psn)
{
	retransmit_from(e, q, psn);
	q->rrc.one_missing = 1;
	__atomic_store_n(&q->rrc.ahead_psn, qp_next_psn(q), __ATOMIC_RELAXED);
	q->rrc.retransmit_end = psn_add(psn, 1);
}

/* The same when the peer does not have it: its acknowledgement will show the round trip. */
static void resend_missing(struct engine *e, struct qp *q, uint32_t psn)
{
	resend_one(e, q, psn);
	q->rrc.mark_psn = psn;
	q->rrc.mark_ns = engine_now(e);
}

/* Does one packet suffice? The setting may have changed since the peer showed that it keeps
 * packets. */
bool retransmit_trusts(const struct engine *e, const struct qp *q)
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
	if (!retransmit_trusts(e, q) || !known)
		retransmit_cut(q);
	if (retransmit_trusts(e, q)) {
		resend_missing(e, q, psn);
	} else {
		retransmit_from(e, q, psn);
		q->rrc.after_nak = !known;
	}
}

/*
 * Selective repeat, between queue pairs that have agreed to it: a walk over what is outstanding
 * that sends only what the peer is known to lack (repeat.done_psn, repeat.map), and requests
 * responses that are missing among those that have come. A repetition is under way until something
 * sent after it has arrived or, for responses, for a round trip. Times are in ns >> 10, about 1 us,
 * and wrap.
 */
#define SELECTIVE_NS 4000 /* and a poll or two */

enum {
	SELECTIVE = 1,
	SELECTIVE_ALL
}; /* rrc.selective: the latter for a probe, when nothing is under way */

/*
 * Over several paths packets are reordered: one is missing only if a later one with the same UDP
 * source port has arrived. Finds for each port the PSN after the last one in the map.
 */
static void find_newest(struct engine *e, uint32_t psn, const uint64_t map[], unsigned spread)
{
	for (unsigned i = 0; i < spread; i++)
		e->rrc->newest[i] = psn;
	for (uint32_t i = 0, at = psn_add(psn, 1); i < 8 * WIRE_SACK_BYTES;
	     i++, at = psn_add(at, 1))
		if (map[i / 64] >> i % 64 & 1)
			e->rrc->newest[spread_port(at, spread)] = psn_add(at, 1);
}

/* Has a packet arrived that was sent after `psn` with that port? */
static bool is_overtaken(const struct engine *e, const struct qp *q, uint32_t psn, unsigned port,
			 unsigned spread)
{
	return psn_before(psn, spread > 1 ? e->rrc->newest[port] : q->rrc.retransmit_end);
}

/* May all that the map lacks still be in flight? */
static bool may_be_late(struct engine *e, const struct qp *q, uint32_t psn, const uint64_t map[])
{
	unsigned spread = qp_spread(e, q);

	if (spread == 1)
		return false;
	find_newest(e, psn, map, spread);
	for (uint32_t i = 0, at = psn; i <= 8 * WIRE_SACK_BYTES; at = psn_add(psn, ++i))
		if ((i == 0 || !(map[(i - 1) / 64] >> (i - 1) % 64 & 1)) &&
		    psn_before(at, e->rrc->newest[spread_port(at, spread)]))
			return false;
	return true;
}

static uint32_t round_trip(const struct qp *q)
{
	uint64_t ns = q->rrc.srtt_ns ? q->rrc.srtt_ns : 250000;

	return (uint32_t)((ns + ns / 4 + SELECTIVE_NS) >> 10);
}

/* Was it sent again so recently that it may still be under way? */
static bool is_under_way(const struct qp *q, uint32_t again)
{
	return again && q->repeat.walked - again < round_trip(q);
}

static bool peer_has(const struct qp *q, uint32_t psn)
{
	uint32_t unacked = q->rrc.unacked_psn, bit = psn_sub(psn, psn_add(q->repeat.map_psn, 1));

	if (psn_before(psn, unacked) || psn_before(psn, q->repeat.done_psn))
		return true;
	/* Not the oldest: if the peer still had that, it would be acknowledged. */
	return psn != unacked && bit < 8 * WIRE_SACK_BYTES &&
	       q->repeat.map[bit / 64] >> bit % 64 & 1;
}

/* The first PSN of an element that the walk has not passed yet: it may begin inside a train. */
static uint32_t element_psn(const struct qp *q, const struct sw_element *sw)
{
	return psn_before(sw->psn, q->rrc.retransmit_psn) ? q->rrc.retransmit_psn : sw->psn;
}

/* Does this walk send the element again? Only once, unless the peer has since received something
 * newer: then the repetition was lost, too. A train is sent from *first on, its first missing
 * PSN. */
static bool is_missing(const struct engine *e, const struct qp *q, struct sw_element *sw,
		       uint32_t *first)
{
	unsigned spread = qp_spread(e, q);
	uint32_t psn = element_psn(q, sw), since;

	while (peer_has(q, psn) && psn != sw_last_psn(sw))
		psn = psn_add(psn, 1);
	*first = psn;
	since = sw->again ? sw->again & PSN_MASK : psn;
	if (peer_has(q, psn) ||
	    (q->rrc.selective != SELECTIVE_ALL &&
	     !is_overtaken(e, q, since, packet_port(packet_of(sw->m), spread), spread)))
		return false;
	sw->again = (PSN_MASK + 1) | qp_next_psn(q);
	return true;
}

/* Does the peer lack this request? */
static bool is_request_missing(const struct engine *e, const struct qp *q, uint32_t psn)
{
	unsigned spread = qp_spread(e, q);

	return !peer_has(q, psn) && (q->rrc.selective == SELECTIVE_ALL || spread == 1 ||
				     is_overtaken(e, q, psn, spread_port(psn, spread), spread));
}

/* How many responses of the READ should have come: all, if the peer lacks the request. */
static uint32_t expected_of(const struct engine *e, const struct qp *q, const struct rd_element *rd)
{
	if (is_request_missing(e, q, rd->psn) ||
	    !psn_before(q->repeat.seen_psn, psn_add(rd->psn, rd->packets)))
		return rd->packets;
	return psn_before(rd->psn, q->repeat.seen_psn) ? psn_sub(q->repeat.seen_psn, rd->psn) : 0;
}

static bool has_come(const struct engine *e, const struct qp *q, const struct rd_element *rd,
		     uint32_t index)
{
	return early_has(e->rrc->early, q, psn_add(rd->psn, index));
}

/* The first response from number `from` on that has come, or `end`. Kept responses lie close
 * together, however long the READ is. */
static uint32_t next_come(const struct engine *e, const struct qp *q, const struct rd_element *rd,
			  uint32_t from, uint32_t end)
{
	const struct early *t = e->rrc->early;
	int32_t ahead = psn_diff(q->repeat.early.first, psn_add(rd->psn, from));
	uint32_t behind = (uint32_t)RTE_MAX(-ahead, 0), left = t->size - RTE_MIN(t->size, behind);

	if (!q->repeat.early.kept || ahead >= (int32_t)(end - from))
		return end;
	from += (uint32_t)RTE_MAX(ahead, 0);
	for (; from < end && !has_come(e, q, rd, from); from++)
		if (left-- == 0)
			return end;
	return from;
}

/* The next part of the READ to request again in this walk, from response *first on. Returns how
 * many responses. */
static uint32_t find_missing(const struct engine *e, struct qp *q, struct rd_element *rd,
			     bool oldest, uint32_t *first)
{
	uint32_t done = oldest ? q->rrc.read_packets : 0, end = expected_of(e, q, rd), n;
	bool late = q->repeat.late_psn == rd->psn + 1 || !is_under_way(q, rd->again);

	if (psn_before(rd->psn, q->rrc.retransmit_psn))
		done = RTE_MAX(done, psn_sub(q->rrc.retransmit_psn, rd->psn));
	if (!late)
		done = RTE_MAX(done, rd->asked);
	while (done < end && has_come(e, q, rd, done))
		done++;
	if (done >= end)
		return 0;
	n = next_come(e, q, rd, done, end) - done;
	if (done < rd->asked || !rd->again) {
		rd->again = q->repeat.walked;
		q->repeat.late_psn = rd->psn + 1;
	}
	rd->asked = RTE_MAX(rd->asked, done + n);
	*first = done;
	return n;
}

static void walk_selectively(struct engine *e, struct qp *q, uint32_t end, uint8_t what)
{
	uint64_t mark_ns = q->rrc.mark_ns;

	retransmit_from(e, q, q->rrc.unacked_psn);
	if (q->rrc.mark_psn == q->rrc.unacked_psn) /* that of its repetition goes on */
		q->rrc.mark_ns = mark_ns;
	q->rrc.selective = what;
	q->rrc.retransmit_end = end;
	q->repeat.walked = walk_time(e);
	q->repeat.late_psn = 0;
	__atomic_store_n(&q->rrc.ahead_psn, qp_next_psn(q), __ATOMIC_RELAXED);
}

/* Is a walk over everything under way? */
static bool goes_back(const struct qp *q)
{
	return q->rrc.retransmitting && !q->rrc.selective && !q->rrc.one_missing;
}

/* Did the last walk, a moment ago, already cover what is missing before `end`? */
static bool nothing_new(const struct engine *e, struct qp *q, uint32_t end)
{
	uint32_t psn = q->rrc.retransmit_end;

	if (!q->rrc.selective || walk_time(e) - q->repeat.walked > round_trip(q) / 4)
		return false;
	if (psn_before(psn, q->rrc.unacked_psn))
		psn = q->rrc.unacked_psn;
	for (; psn_before(psn, end); psn = psn_add(psn, 1)) {
		bool seen = psn_before(psn, q->repeat.seen_psn);

		if (!seen && psn_before(psn, q->repeat.done_psn)) /* READs may be long */
			psn = psn_sub(q->repeat.done_psn, 1);
		else if ((seen || !peer_has(q, psn)) && !early_has(e->rrc->early, q, psn))
			return false;
	}
	if (psn_before(q->rrc.retransmit_end, end))
		q->rrc.retransmit_end = end;
	return true;
}

static void repeat_before(struct engine *e, struct qp *q, uint32_t end)
{
	if (goes_back(q) || nothing_new(e, q, end))
		return;
	if (q->rrc.selective && q->rrc.retransmitting && psn_before(end, q->rrc.retransmit_end))
		end = q->rrc.retransmit_end;
	walk_selectively(e, q, end, SELECTIVE);
}

void retransmit_responses(struct engine *e, struct qp *q, uint32_t end, uint32_t done)
{
	note_loss(e, q, q->rrc.unacked_psn);
	if (psn_before(q->repeat.done_psn, done))
		q->repeat.done_psn = done;
	if (psn_before(q->repeat.seen_psn, end))
		q->repeat.seen_psn = end;
	repeat_before(e, q, psn_after(done, end) ? done : end);
}

/* The PSN behind the last that the map has; `psn` if it has none. */
static uint32_t map_end(const struct qp *q)
{
	for (unsigned i = WIRE_SACK_BYTES / 8; i--;)
		if (q->repeat.map[i])
			return psn_add(q->repeat.map_psn,
				       64 * i + 65 - (unsigned)__builtin_clzll(q->repeat.map[i]));
	return q->repeat.map_psn;
}

void retransmit_sacked(struct engine *e, struct qp *q, uint32_t psn,
		       const uint8_t bits[WIRE_SACK_BYTES])
{
	uint64_t map[WIRE_SACK_BYTES / 8];

	if (engine_setting(e, loss_recovery) != LOSS_RECOVERY_KEEP) { /* changed since */
		if (!is_known_loss(q, psn))
			retransmit_lost(e, q, q->rrc.unacked_psn);
		return;
	}
	if (is_known_loss(q, psn) && psn_before(psn, q->repeat.done_psn))
		return; /* an older one */
	memcpy(map, bits, sizeof(map));
	if (!is_known_loss(q, psn) && may_be_late(e, q, psn, map))
		return;
	note_loss(e, q, psn);
	q->rrc.peer_keeps = PEER_TRUST;
	q->repeat.done_psn = q->repeat.map_psn = psn;
	memcpy(q->repeat.map, map, sizeof(map));
	repeat_before(e, q, map_end(q));
}

/* Nothing has come for a long time: repeats what an equal is known to lack, at least the oldest
 * packet or READ, no matter when that was last repeated. */
static void probe_equal(struct engine *e, struct qp *q)
{
	struct rd_element *rd = rd_head(e->mq, &q->mq.rd);
	uint32_t psn = q->rrc.unacked_psn, end = psn_add(psn, 1);
	bool read = rrc_read_in_the_way(e, q, psn);

	if (read) {
		rd->again = 0;
		end = psn_add(rd->psn, rd->packets);
		if (psn_before(q->repeat.seen_psn, end))
			q->repeat.seen_psn = end;
	}
	if (psn_before(end, map_end(q)))
		end = map_end(q);
	if (read || end != psn_add(psn, 1))
		walk_selectively(e, q, end, SELECTIVE_ALL);
	else
		resend_one(e, q, psn);
}

/* Repeats only the oldest packet outstanding; for equals, also what they are known to lack. */
static void probe_one(struct engine *e, struct qp *q)
{
	uint32_t psn = q->rrc.unacked_psn;

	note_loss(e, q, psn);
	if (rrc_is_equal(q))
		probe_equal(e, q);
	else
		resend_one(e, q, psn);
}

/*
 * No round trip is known, and all of the first flight may be lost, in a queue that others fill,
 * too. So send one packet again; the rest follows when it is acknowledged, which shows the round
 * trip. A slow peer may then be acknowledging the packet as first sent: add an eighth of the time
 * since then, so that later probes do not come much too soon.
 */
static void probe_first_flight(struct engine *e, struct qp *q)
{
	probe_one(e, q);
	q->rrc.guessed = 1;
	q->rrc.mark_psn = q->rrc.unacked_psn;
	q->rrc.mark_ns = engine_now(e) - qp_quiet_ns(e, q) / 8;
}

/* While that guess is all that is known, a probe repeats one packet only, and does not end the
 * measurement of a round trip. */
static void probe_guessed(struct engine *e, struct qp *q)
{
	uint64_t mark_ns = q->rrc.mark_ns;

	probe_one(e, q);
	q->rrc.mark_ns = mark_ns;
}

void retransmit_probe(struct engine *e, struct qp *q)
{
	if (!q->rrc.srtt_ns)
		probe_first_flight(e, q);
	else if (q->rrc.guessed)
		probe_guessed(e, q);
	else if (retransmit_trusts(e, q) &&
		 q->rrc.probes <= (rrc_is_equal(q) ? PROBES_OF_EQUALS : 1))
		probe_one(e, q);
	else
		retransmit_lost(e, q, q->rrc.unacked_psn);
}

void retransmit_relinked(struct engine *e, struct qp *q)
{
	q->rrc.peer_keeps = 0;
	if (!q->rrc.srtt_ns)
		probe_first_flight(e, q);
	else if (q->rrc.guessed)
		probe_guessed(e, q);
	else
		probe_one(e, q);
}

/*
 * The missing packet has been acknowledged, and with it what was kept, but not all that was
 * outstanding then: the next one is missing, too. Its NAK may be on its way. If time after time
 * nothing was kept, the peer keeps nothing.
 */
static void next_missing(struct engine *e, struct qp *q)
{
	uint32_t psn = q->rrc.unacked_psn;

	if (rrc_read_in_the_way(e, q, psn)) /* as far as we know, it is being answered */
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
	enum { PROOF = 2 };
	bool again = q->rrc.retransmitting, one = q->rrc.one_missing;

	if (((one && q->rrc.peer_keeps) || (again && q->rrc.after_nak)) &&
	    engine_setting(e, loss_recovery) == LOSS_RECOVERY_KEEP &&
	    psn_diff(q->rrc.unacked_psn, q->rrc.retransmit_psn) >= PROOF)
		q->rrc.peer_keeps = PEER_TRUST;
	if (again || !one)
		return;
	q->rrc.one_missing = 0;
	if (!q->rrc.recovering)
		return;
	if (retransmit_trusts(e, q))
		next_missing(e, q);
	else if (q->rrc.retransmit_end == q->rrc.unacked_psn)
		retransmit_from(e, q, q->rrc.unacked_psn);
}

/* Where the walk continues: after everything acknowledged since. Compares counts of outstanding
 * PSNs, since among 2^23 of them there is no before and after. */
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
	round_trip_acked(e, q);
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

/* The PSN at which the walk ends. What is outstanding may grow meanwhile: a turn of the sender that
 * was in progress may have added packets since the walk began. */
static uint32_t walk_end(const struct qp *q)
{
	return q->rrc.one_missing || q->rrc.selective ? q->rrc.retransmit_end : qp_next_psn(q);
}

/* The packets of an element from `psn` on, up to the end of the walk; *end: the PSN behind them.
 * NULL: as from packet_again.h. */
static struct rte_mbuf *element_again(struct engine *e, const struct qp *q, struct sw_element *sw,
				      uint32_t psn, uint32_t *end)
{
	uint32_t packets = psn_sub(sw_last_psn(sw), psn) + 1;

	if (likely(sw->packets == 1)) {
		*end = psn_add(psn, 1);
		return packet_again(e, q, sw);
	}
	packets = RTE_MIN(packets, psn_sub(walk_end(q), psn));
	packets = packet_part_most(sw, packets);
	*end = psn_add(psn, packets);
	return packet_part(e, q, sw, psn, packets);
}

/* The READ or atomic at the cursor. The oldest one may have some of its responses: it is requested
 * from the first missing one on, and the responses may start with FIRST or ONLY there. */
static struct rte_mbuf *read_request(struct engine *e, struct qp *q, const struct rd_element *rd)
{
	bool oldest = q->rrc.cursor.rd_place == q->mq.rd.consumed;
	uint32_t done = oldest ? q->rrc.read_packets : 0;
	struct rte_mbuf *m = read_again(e, q, rd, done, rd->packets - done);

	if (m && oldest)
		q->rrc.read_asked = q->rrc.read_packets;
	return m;
}

/* The missing part of the element at a selective walk's cursor, as a packet. NULL: nothing is
 * missing (*none), or not now. */
static struct rte_mbuf *missing_part(struct engine *e, struct qp *q, struct sw_element *sw,
				     struct rd_element *rd, bool *none)
{
	bool oldest = q->rrc.cursor.rd_place == q->mq.rd.consumed;
	uint32_t first = 0, n = 0, psn = 0, end, again = rd ? 0 : sw->again;
	struct rte_mbuf *m;

	if (rd)
		n = find_missing(e, q, rd, oldest, &first);
	*none = rd ? n == 0 : !is_missing(e, q, sw, &psn);
	if (*none)
		return NULL;
	if (rd) {
		psn = psn_add(rd->psn, first);
		end = psn_add(psn, n);
		m = read_again(e, q, rd, first, n);
	} else {
		m = element_again(e, q, sw, psn, &end);
	}
	if (m) {
		round_trip_again(e, q, psn);
		q->rrc.retransmit_psn = end;
	} else if (!rd) {
		sw->again = again;
	}
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

/* The next packet to retransmit; retransmit_psn moves behind it. NULL: none left, or not now. The
 * cursor stays at the element: the next call skips it, as it lies before that PSN. */
static struct rte_mbuf *walk_next(struct engine *e, struct qp *q)
{
	struct mq_cursor *c = &q->rrc.cursor;

	for (;;) {
		uint32_t i = cursor_at(&q->mq.sw, &c->sw, &c->sw_place),
			 k = cursor_at(&q->mq.rd, &c->rd, &c->rd_place), last, end;
		struct sw_element *sw = i != MQ_NIL ? &e->mq->sw[i] : NULL;
		struct rd_element *rd = k != MQ_NIL ? &e->mq->rd[k] : NULL;
		bool read = read_is_older(sw, rd);
		struct rte_mbuf *m;

		if (!sw && !rd)
			return NULL;
		last = read ? psn_add(rd->psn, rd->packets - 1) : sw_last_psn(sw);
		if (psn_before(last, q->rrc.retransmit_psn) || (!read && !sw->m)) {
			cursor_next(c, sw, rd, read);
			continue;
		}
		end = psn_add(last, 1);
		m = read ? read_request(e, q, rd)
			 : element_again(e, q, sw, element_psn(q, sw), &end);
		if (m)
			q->rrc.retransmit_psn = end;
		return m;
	}
}

/* The same for a selective walk. At its end, retransmit_psn is retransmit_end. */
static struct rte_mbuf *walk_missing(struct engine *e, struct qp *q)
{
	struct mq_cursor *c = &q->rrc.cursor;

	for (;;) {
		uint32_t i = cursor_at(&q->mq.sw, &c->sw, &c->sw_place),
			 k = cursor_at(&q->mq.rd, &c->rd, &c->rd_place);
		struct sw_element *sw = i != MQ_NIL ? &e->mq->sw[i] : NULL;
		struct rd_element *rd = k != MQ_NIL ? &e->mq->rd[k] : NULL;
		bool read = read_is_older(sw, rd), none = true;
		struct rte_mbuf *m = NULL;

		if ((!sw && !rd) || !psn_before(read ? rd->psn : sw->psn, q->rrc.retransmit_end)) {
			q->rrc.retransmit_psn = q->rrc.retransmit_end;
			return NULL;
		}
		if (read || (sw->m && !psn_before(sw_last_psn(sw), q->rrc.retransmit_psn)))
			m = missing_part(e, q, sw, read ? rd : NULL, &none);
		if (!none)
			return m;
		cursor_next(c, sw, rd, read);
	}
}

/* All packets have been passed to ReqPktGen; has it taken the last one? */
static bool handed_over(const struct engine *e, const struct qp *q)
{
	uint64_t taken = __atomic_load_n(&e->channel[CHANNEL_RRC_RPG].taken, __ATOMIC_ACQUIRE);

	return (int32_t)((uint32_t)taken - q->rrc.retransmit_put) >= 0;
}

/* Requests an acknowledgement for a packet that is sent alone. */
static void ask(struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);

	if (packet_asks(p) || !packet_may_change(m))
		return;
	packet_ask(p);
	p->flags &= ~PACKET_BUILT;
}

/* Fills m[] with up to `room` packets of the walk. *wait: it must pause after the last. */
static unsigned walk(struct engine *e, struct qp *q, struct rte_mbuf **m, unsigned room, bool *wait)
{
	unsigned n = 0, packets = 0, spread = qp_spread(e, q);

	*wait = false;
	if (q->rrc.selective && spread > 1)
		find_newest(e, q->repeat.map_psn, q->repeat.map, spread);
	while (n < room && !*wait && psn_before(q->rrc.retransmit_psn, walk_end(q)) &&
	       (m[n] = q->rrc.selective ? walk_missing(e, q) : walk_next(e, q))) {
		if (q->rrc.one_missing || q->rrc.selective == SELECTIVE_ALL)
			ask(m[n]);
		*wait = packet_asks(packet_of(m[n])) && !within_window(q) && !q->rrc.selective;
		packets += packet_of(m[n])->packets;
		n++;
	}
	count_n(rrc_counters(e), COUNTER_retransmitted_packets, packets);
	channel_note_coupled(&e->channel[CHANNEL_RRC_RPG], packets - n);
	return n;
}

/*
 * A flow that congestion control limits also retransmits at its rate, packet by packet. Wakes
 * RequesterTransControl, which owns the rate and lets it grow.
 */
static void pace(struct engine *e, struct qp *q, uint32_t rate, const struct packet *p)
{
	uint64_t bits = 8ull * p->packets * (p->payload_bytes + PACING_HEADER_BYTES);
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
	return n ? n : !qp_list_empty(&c->retransmit);
}
