/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HeaderParser (doc/modules.md#headerparser): takes frames from the port and checks them in this
 * order: lengths before any field is used, opcode before any table is indexed, ICRC, queue pair,
 * service, P_Key, the peer's address (of a datagram: is its sender admitted?). Packets that pass go
 * to RequesterRecvControl (responses) or ExecutionEngine (requests) of the engine that owns the
 * queue pair; the others are dropped, with a counter for each reason. Datagrams to multicast groups
 * go through multicast.c. Reads QP contexts, writes only their counts of refusals and of CNPs and
 * their state of path migration. Never writes into a frame. Stage header_parse.
 *
 * The states of the design (PARSE_BTH, PARSE_RETH, ...) are lib/common/wire's opcode table, which
 * says what headers follow.
 */
#include <errno.h>
#include <rte_malloc.h>
#include "base/peer_list.h"
#include "context/path_migration.h"
#include "header_parser.h"
#include "hp.h"
#include "link/link.h"
#include "link/link_port.h"
#include "multicast.h"
#include "pipeline/message.h"
#include "pipeline/train.h"
#include "rx_frames.h"
#include "virt-to-phys/orphans.h"
#include "wire/psn.h"
#include "wire/run.h"

#define OPCODE_SERVICE_MASK 0xe0u /* 0: RC */

enum { IPV4_SOURCE = 12, IPV6_SOURCE = 8 }; /* offsets in the IP header */

/* Why lib/common/wire could not parse it. */
static const enum counter parse_counters[WIRE_ERR_COUNT] = {
	[WIRE_ERR_TRUNCATED] = COUNTER_drop_rx_truncated,
	[WIRE_ERR_NOT_ROCE] = COUNTER_drop_rx_not_roce,
	[WIRE_ERR_VERSION] = COUNTER_drop_rx_version,
	[WIRE_ERR_FRAGMENT] = COUNTER_drop_rx_fragmented,
	[WIRE_ERR_LENGTH] = COUNTER_drop_rx_length,
	[WIRE_ERR_CHECKSUM] = COUNTER_drop_rx_checksum,
	[WIRE_ERR_OPCODE] = COUNTER_drop_rx_opcode,
	[WIRE_ERR_TVER] = COUNTER_drop_rx_tver,
};

/* Longer payloads, and all references, are checked by ICRC when they are copied (arrival_intact()).
 * Trains in parts are always checked here. */
#define ICRC_HERE_BYTES 512

static bool icrc_later(const struct rte_mbuf *m, const struct wire_frame *f)
{
	if (m->ol_flags & PAYLOAD_REF)
		return !(m->ol_flags & ICRC_OMITTED);
	return f->payload_bytes > ICRC_HERE_BYTES && !(m->ol_flags & (ICRC_OMITTED | FRAME_TRAIN));
}

static bool icrc_right(const struct rte_mbuf *m, const struct wire_frame *f)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	return wire_icrc(frame + f->l3_offset, f->transport_end - f->l3_offset, f->is_ipv6) ==
	       wire_icrc_load(frame + f->transport_end);
}

static bool icrc_wrong(const struct rte_mbuf *m, const struct wire_frame *f)
{
	if (m->ol_flags & ICRC_OMITTED || icrc_later(m, f))
		return false;
	return m->ol_flags & FRAME_TRAIN ? !train_parts_intact(m, f) : !icrc_right(m, f);
}

/* Datagrams come from anywhere; the configuration says who may send them. */
static bool sender_admitted(const struct engine *e, const struct wire_frame *f)
{
	const struct peer_list *listed = __atomic_load_n(&e->admitted, __ATOMIC_ACQUIRE);
	uint8_t ip[16];

	if (likely(listed->count == 0))
		return true;
	if (f->is_ipv6)
		memcpy(ip, f->src_ip, sizeof(ip));
	else
		ip_map_v4(f->src_ip, ip);
	return peer_is_admitted(listed, ip);
}

/* Does it come from the far end of that path? */
static bool comes_along(const struct qp_path *p, const struct wire_frame *f)
{
	if (f->is_ipv6 != p->template.is_ipv6)
		return false;
	if (f->is_ipv6)
		return memcmp(f->src_ip, p->peer_ip, 16) == 0;
	return memcmp(f->src_ip, p->peer_ip + 12, 4) == 0; /* v4-mapped */
}

/* A queue pair that does not receive may have no peer yet. */
static __rte_noinline enum counter judge_stranger(const struct qp *q)
{
	return qp_receives(qp_state(q)) ? COUNTER_drop_rx_address : COUNTER_drop_qp_state;
}

/* A packet of another service. Queue pairs that have not agreed on SACKs know nothing of them. */
static __rte_noinline enum counter judge_foreign(const struct qp *q, uint8_t opcode)
{
	if (opcode != WIRE_SACK)
		return COUNTER_drop_rx_service;
	return q->agreed & AGREED_REPEAT ? COUNTER_COUNT : COUNTER_drop_rx_opcode;
}

/* Are both ends of the alternate path those of the packet? */
static bool comes_along_alternate(const struct qp *q, struct qp_way way, const struct wire_frame *f)
{
	const struct qp_path *p = qp_path_at(q, way.alternate);
	const struct wire_template *t = &p->template;
	const uint8_t *own = t->bytes + t->l3_offset + (t->is_ipv6 ? IPV6_SOURCE : IPV4_SOURCE);

	return comes_along(p, f) && memcmp(f->dst_ip, own, f->ip_bytes) == 0;
}

static bool responds(const struct wire_frame *f)
{
	return wire_opcodes[f->h.opcode].flags & WIRE_RESPONSE;
}

/* Notes that the peer is ready to migrate, as this packet says. Packets that it sent before may
 * still arrive: requests with earlier PSNs, and responses to anything sent so far. */
static void note_armed(struct qp *q, const struct wire_frame *f)
{
	uint32_t request = __atomic_load_n(&q->ee.expected_psn, __ATOMIC_RELAXED);

	if (!responds(f) && psn_before(request, f->h.psn))
		request = f->h.psn;
	__atomic_store_n(&q->armed.request, request, __ATOMIC_RELAXED);
	__atomic_store_n(&q->armed.response, __atomic_load_n(&q->rtc.next_psn, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
}

/* PSNs compare within half their range: a PSN that never moved would in time make new packets seem
 * late. */
static void keep_near(uint32_t *armed, uint32_t due)
{
	uint32_t near = psn_sub(due, PSN_WINDOW / 2);

	if (unlikely(psn_before(__atomic_load_n(armed, __ATOMIC_RELAXED), near)))
		__atomic_store_n(armed, near, __ATOMIC_RELAXED);
}

/* A packet has arrived while the peer was ready. */
static void stay_armed(struct qp *q)
{
	keep_near(&q->armed.request, __atomic_load_n(&q->ee.expected_psn, __ATOMIC_RELAXED));
	keep_near(&q->armed.response, __atomic_load_n(&q->rtc.next_psn, __ATOMIC_RELAXED));
}

/* Did the packet come along the path, and was it sent before the peer was ready to migrate? */
static bool is_late(const struct qp *q, struct qp_way way, const struct wire_frame *f)
{
	const uint32_t *armed = responds(f) ? &q->armed.response : &q->armed.request;

	return psn_before(f->h.psn, __atomic_load_n(armed, __ATOMIC_RELAXED)) &&
	       comes_along(qp_path_at(q, way.path), f);
}

/* MigReq 1 at an armed queue pair, which migrates unless the packet is late. False: the packet did
 * not come along the alternate path. */
static bool follows(struct engine *e, struct qp *q, struct qp_way way, const struct wire_frame *f)
{
	if (comes_along_alternate(q, way, f)) {
		qp_migrate(e, hp_counters(e), q);
		return true;
	}
	if (is_late(q, way, f))
		return true;
	qp_refuse_migration(e, hp_counters(e), q);
	return false;
}

/*
 * Judges a packet of a queue pair that may migrate, or waits until its peer may. With MigReq 1 the
 * peer of an armed one has gone to the alternate path, and we follow. Before anything changes, the
 * ICRC is checked, however long the packet is, except of references: they cannot come from outside.
 */
static __rte_noinline enum counter judge_migration(struct engine *e, struct qp *q,
						   const struct rte_mbuf *m,
						   const struct wire_frame *f)
{
	struct qp_way way = qp_way(q);
	bool asks = way.migration == MIGRATION_ARMED && f->h.migreq;
	bool ready = way.migration == MIGRATION_REARM && !f->h.migreq;

	if ((asks || ready) && icrc_later(m, f) && !(m->ol_flags & PAYLOAD_REF) &&
	    !icrc_right(m, f))
		return COUNTER_drop_rx_icrc;
	if (asks && qp_receives(qp_state(q)) && !follows(e, q, way, f))
		return COUNTER_drop_rx_migration;
	if (unlikely(!comes_along(qp_path(q), f)))
		return judge_stranger(q);
	if (ready) {
		note_armed(q, f);
		qp_arm(q);
	} else if (way.migration == MIGRATION_ARMED) {
		stay_armed(q);
	}
	return COUNTER_COUNT;
}

/* From the address of a connection's peer? */
static enum counter judge_peer(struct engine *e, struct qp *q, const struct rte_mbuf *m,
			       const struct wire_frame *f)
{
	struct qp_way way = qp_way(q);

	if (unlikely(way.migration >= MIGRATION_REARM))
		return judge_migration(e, q, m, f);
	return likely(comes_along(qp_path_at(q, way.path), f)) ? COUNTER_COUNT : judge_stranger(q);
}

/* The checks against the queue pair. COUNTER_COUNT: it passes. */
static enum counter hp_judge(struct engine *e, struct qp *q, const struct rte_mbuf *m,
			     const struct wire_frame *f)
{
	const struct wire_opcode *o = &wire_opcodes[f->h.opcode];

	if (unlikely(o->service !=
		     q->service)) { /* a reserved one counts as RC's: see hp_parse() */
		enum counter drop = judge_foreign(q, f->h.opcode);

		if (drop != COUNTER_COUNT)
			return drop;
	}
	if (unlikely(!pkey_matches(f->h.pkey, q->pkey)))
		return COUNTER_drop_rx_pkey;
	if (q->service == SERVICE_UD)
		return likely(sender_admitted(e, f)) ? COUNTER_COUNT : COUNTER_drop_rx_peer;
	return judge_peer(e, q, m, f);
}

static bool admitted(struct engine *e, struct qp *q, const struct rte_mbuf *m,
		     const struct wire_frame *f)
{
	enum counter drop = hp_judge(e, q, m, f);

	if (likely(drop == COUNTER_COUNT))
		return true;
	count(hp_counters(e), drop);
	__atomic_fetch_add(&q->hp.refused, 1, __ATOMIC_RELAXED);
	return false;
}

/* Describes where the parts of a train are. */
static void describe_parts(struct arrival *a, bool icrcs)
{
	uint8_t opcode = a->headers.opcode;
	struct train_parts t = train_parts(opcode, a->payload_bytes, icrcs);

	a->part = a->payload + t.first;
	a->part_bytes = t.stride;
	a->part_headers = wire_extension_bytes(opcode);
}

/* Fills in the metadata from nothing but the frame: the receiver may hold the frame already, if its
 * sender had sent it twice and has released it. `f` has the first headers of its run. */
static inline void hp_describe(struct rte_mbuf *m, const struct wire_frame *f, bool continues)
{
	struct arrival *a = arrival_of(m);

	a->qpn = f->h.dest_qp;
	a->payload = rte_pktmbuf_mtod_offset(m, const uint8_t *, f->payload_offset);
	a->payload_elsewhere = !!(m->ol_flags & PAYLOAD_REF);
	a->payload_skip = 0;
	a->singly = 0;
	a->packets = frame_packets(m);
	a->payload_bytes = f->payload_bytes;
	a->l3_offset = f->l3_offset;
	a->is_ipv6 = f->is_ipv6;
	a->congested = (f->tos & WIRE_ECN_BITS) == WIRE_ECN_CE;
	a->headers = f->h;
	if (continues)
		wire_read_differing(
			rte_pktmbuf_mtod_offset(m, const uint8_t *, f->transport_offset),
			&a->headers);
	a->icrc_bytes = icrc_later(m, f) ? f->transport_end - f->l3_offset : 0;
	if (unlikely(a->packets > 1))
		describe_parts(a, !(m->ol_flags & ICRC_OMITTED));
}

/* Is this CNP for a connection under congestion control, from its peer, and of the only valid
 * length? Then its ICRC has been checked. */
static bool cnp_matters(const struct engine *e, const struct qp *q, const struct wire_frame *f)
{
	return __atomic_load_n(&q->cc, __ATOMIC_RELAXED) & CC_DCQCN && f->h.becn &&
	       f->payload_bytes == WIRE_CNP_RESERVED_BYTES && q->service != SERVICE_UD &&
	       qp_receives(qp_state(q)) && pkey_matches(f->h.pkey, q->pkey) &&
	       comes_along(qp_path(q), f);
}

/* A congestion notification packet: the modules that send for the queue pair slow down. */
static __rte_noinline void take_cnp(struct engine *e, const struct wire_frame *f)
{
	struct qp *q = qp_find(e->qps, f->h.dest_qp);
	struct engine *owner;

	if (!q || !cnp_matters(e, q, f)) {
		count(hp_counters(e), COUNTER_rp_cnp_ignored);
		return;
	}
	count(hp_counters(e), COUNTER_rp_cnp_handled);
	__atomic_fetch_add(&q->hp.cnps, 1, __ATOMIC_RELAXED);
	owner = &e->peers[q->engine];
	wake_post(&owner->wake[WAKE_RTC], &q->wake[WAKE_RTC], q->index);
	wake_post(&owner->wake[WAKE_EE], &q->wake[WAKE_EE], q->index);
}

/*
 * A run: consecutive packets of one queue pair in a burst, with headers that differ only in what
 * wire_parse_next() allows. Queue pair and verdict of the first one hold for all; the ICRC of each
 * is checked.
 */
struct hp_run {
	const struct rte_mbuf *last; /* its last packet so far, if that is still ours; NULL: none */
	struct wire_frame f;	     /* of the packet at work; the headers are the first one's */
	struct qp *qp;
	struct qp_way way; /* of the verdict: the path, and no migration in progress */
	uint64_t bytes;	   /* of all frames of the burst */
};

/* While the path may change, each packet is judged by itself. */
static inline bool hp_run_continues(struct hp_run *t, const struct rte_mbuf *m)
{
	struct qp_way way;

	if (!t->last || m->data_len != t->last->data_len)
		return false;
	way = qp_way(t->qp);
	return memcmp(&way, &t->way, sizeof(way)) == 0 && way.migration < MIGRATION_REARM &&
	       wire_parse_next(rte_pktmbuf_mtod(m, const uint8_t *),
			       rte_pktmbuf_mtod(t->last, const uint8_t *), &t->f);
}

/* No queue pair has its number: a datagram to a group, or a drop. */
static void take_numberless(struct engine *e, struct rte_mbuf *m, const struct wire_frame *f)
{
	if (f->h.dest_qp != MULTICAST_QPN || wire_opcodes[f->h.opcode].service != SERVICE_UD) {
		count(hp_counters(e), COUNTER_drop_rx_qpn);
		return;
	}
	if (unlikely(!sender_admitted(e, f))) {
		count(hp_counters(e), COUNTER_drop_rx_peer);
		return;
	}
	hp_describe(m, f, false);
	multicast_keep(e, m);
}

/* False: no valid packet; counted. */
static bool parse(struct engine *e, const struct rte_mbuf *m, struct wire_frame *f)
{
	enum wire_error error =
		wire_parse_frame(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, f);

	/* A reserved opcode of the RC range is answered (C9-84) */
	if (likely(error == WIRE_OK ||
		   (error == WIRE_ERR_OPCODE && (f->h.opcode & OPCODE_SERVICE_MASK) == 0)))
		return true;
	count(hp_counters(e), parse_counters[error]);
	return false;
}

/* The queue pair of a packet that begins a run; or NULL as from hp_parse(). */
static struct qp *hp_run_begin(struct engine *e, struct hp_run *t, struct rte_mbuf *m)
{
	if (unlikely(t->f.h.opcode == WIRE_CNP)) {
		take_cnp(e, &t->f);
		return NULL;
	}
	t->qp = qp_find(e->qps, t->f.h.dest_qp);
	if (unlikely(!t->qp)) {
		take_numberless(e, m, &t->f);
		return NULL;
	}
	t->way = qp_way(t->qp);
	return admitted(e, t->qp, m, &t->f) ? t->qp : NULL;
}

/* Checks one frame. Returns its queue pair; NULL: kept for multicast_deliver(), or counted and to
 * be freed. */
static inline struct qp *hp_parse(struct engine *e, struct hp_run *t, struct rte_mbuf *m)
{
	bool continues = hp_run_continues(t, m);

	t->bytes += m->pkt_len;
	t->last = NULL;
	if (!continues && unlikely(!parse(e, m, &t->f)))
		return NULL;
	if (unlikely(icrc_wrong(m, &t->f))) {
		count_n(hp_counters(e), COUNTER_drop_rx_icrc, frame_packets(m));
		return NULL;
	}
	if (!continues && !hp_run_begin(e, t, m))
		return NULL;
	hp_describe(m, &t->f, continues);
	t->last = m;
	return t->qp;
}

/* Room in both outputs; with several engines that is no promise, and what does not fit is dropped
 * at this edge. */
static unsigned room_for(struct engine *e)
{
	unsigned rrc = channel_room(&e->channel[CHANNEL_HP_RRC]),
		 ee = channel_room(&e->channel[CHANNEL_HP_EE]);
	unsigned room = RTE_MIN(rrc, ee);

	return RTE_MIN(room, source_burst(e));
}

static void forward(struct engine *e, struct channel *to, struct rte_mbuf **m, unsigned n)
{
	uint32_t packets = frames_packets(m, n); /* while they are ours */
	unsigned done = channel_try_put(to, m, n);

	if (unlikely(done < n)) {
		uint32_t lost = frames_packets(m + done, n - done);

		packets -= lost;
		count_n(hp_counters(e), COUNTER_drop_rx_full, lost);
		rte_pktmbuf_free_bulk(m + done, n - done);
	}
	channel_note_coupled(to, packets - done);
}

/* Of a queue pair of another engine: the port could not, or did not, choose the queue. */
static __rte_noinline void hand_over(struct engine *e, unsigned owner, bool is_response,
				     struct rte_mbuf *m)
{
	enum channel_id to = is_response ? CHANNEL_HP_RRC : CHANNEL_HP_EE;

	count_n(hp_counters(e), COUNTER_rx_handed_over, frame_packets(m));
	forward(e, &e->peers[owner].channel[to], &m, 1);
}

/* No queue of a port holds more frames than that. */
#define PORT_FRAMES 4096

/* A frame that has found no room for this long counts as lost. */
#define FULL_NS 100000000

/*
 * `n` frames of `asked` have been taken and passed on; the poll began at now_ns. Timers may advance
 * to that time when the port had no more, or when so many have arrived since that none can be left
 * from before. They may also advance when there has been no room for long: the cause may be
 * something that only a timer ends, such as packet buffers that wait for acknowledgements.
 */
static void heard(struct engine *e, struct hp *hp, unsigned asked, unsigned n, uint64_t now_ns)
{
	bool full = !asked && stall_exceeds(&hp->full, now_ns, FULL_NS);

	if (asked)
		stall_ends(&hp->full);
	if (n < asked || unlikely(full)) {
		__atomic_store_n(&e->heard_ns, now_ns, __ATOMIC_RELEASE);
	} else if (n < hp->backlog) {
		hp->backlog -= n;
		return;
	} else {
		__atomic_store_n(&e->heard_ns, hp->mark_ns, __ATOMIC_RELEASE);
	}
	hp->mark_ns = now_ns;
	hp->backlog = PORT_FRAMES;
}

/* Prefetches the queue pairs that the frames of a burst may be for, if their headers are as long as
 * the first one's: what has not been checked only warms a wrong line. */
static inline void prefetch_queue_pairs(const struct engine *e, struct rte_mbuf *const *m,
					unsigned n)
{
	unsigned at = wire_guess_qpn_at(rte_pktmbuf_mtod(m[0], const uint8_t *), m[0]->data_len);
	uint32_t word, before = 0;

	for (unsigned i = 0; at && i < n; i++) {
		if (unlikely(m[i]->data_len < at + sizeof(word)))
			continue;
		memcpy(&word, rte_pktmbuf_mtod_offset(m[i], const uint8_t *, at), sizeof(word));
		if (word != before)
			qp_prefetch_responder(e->qps, rte_be_to_cpu_32(word) & PSN_MASK);
		before = word;
	}
}

static __rte_noinline unsigned hp_work(struct engine *e)
{
	uint64_t now_ns = engine_now(e);
	struct rte_mbuf *m[BURST], *request[BURST], *response[BURST];
	struct hp *hp = e->hp;
	struct hp_run run;
	unsigned room, n, requests = 0, responses = 0;

	if (unlikely(hp->waits) && !multicast_deliver(e)) {
		heard(e, hp, 0, 0, now_ns);
		return 0;
	}
	room = room_for(e);
	n = rxa_take(e, m, room);
	run.last = NULL;
	run.bytes = 0;
	if (n > 1)
		prefetch_queue_pairs(e, m, n);
	for (unsigned i = 0; i < n; i++) {
		struct qp *q;
		bool is_response;

		if (i + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], void *));
		q = hp_parse(e, &run, m[i]);
		if (unlikely(!q)) {
			if (!multicast_kept(hp, m[i]))
				rte_pktmbuf_free(m[i]);
			continue;
		}
		is_response = responds(&run.f);
		if (unlikely(q->engine != e->index)) {
			hand_over(e, q->engine, is_response, m[i]);
			run.last = NULL;
		} else if (is_response)
			response[responses++] = m[i];
		else
			request[requests++] = m[i];
	}
	count_n(hp_counters(e), COUNTER_rx_bytes, run.bytes);
	if (responses)
		forward(e, &e->channel[CHANNEL_HP_RRC], response, responses);
	if (requests)
		forward(e, &e->channel[CHANNEL_HP_EE], request, requests);
	heard(e, hp, room, n, now_ns);
	if (unlikely(hp->waits)) /* with the room that the others have left */
		multicast_deliver(e);
	return n;
}

/* The port says that nothing has arrived. */
static inline bool port_is_quiet(struct engine *e)
{
	bool (*pending)(struct link_port *, uint16_t) = e->link->rx_pending;

	return pending && !pending(e->link, e->index);
}

unsigned hp_poll(struct engine *e)
{
	struct hp *hp = e->hp;

	if (hp->waits || !port_is_quiet(e))
		return hp_work(e);
	call_note(&e->stage[STAGE_HEADER_PARSE], CALL_HP_RXA, 1);
	heard(e, hp, 1, 0, engine_now(e));
	return 0;
}

int hp_create(struct engine *e)
{
	e->hp = engine_alloc(e, "hp", sizeof(struct hp));
	return e->hp ? 0 : -ENOMEM;
}

void hp_destroy(struct engine *e)
{
	struct hp *hp = e->hp;

	if (hp)
		rte_pktmbuf_free_bulk(hp->waiting + hp->first, hp->waits - hp->first);
	rte_free(hp);
	e->hp = NULL;
}

/* The first datagram may be half delivered. If it is dropped, `place` starts anew for the next
 * one. */
void link_drop_orphans(struct engine *e, const struct v2p *sender)
{
	struct hp *hp = e->hp;
	struct rte_mbuf **first = hp->waiting + hp->first;
	const struct rte_mbuf *begun = *first;

	hp->waits = hp->first + orphans_drop(first, hp->waits - hp->first, sender);
	if (hp->waits == hp->first || *first != begun)
		hp->place = 0;
}
