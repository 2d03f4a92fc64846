/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RequesterTransControl's states RC_SEG, RC_STORE_ENTRY, UCUD_SEG (doc/modules.md#segmentation):
 * cuts a request into packets of the path MTU, numbers them, keeps RC packets in MultiQueue. Writes
 * qp.rtc's sequence numbers and the producer's side of qp.mq. Stage segmentation. Judges nothing
 * but whether there is room.
 */
#include "context/path_class.h"
#include "dp_copy.h"
#include "host-abi/wqe.h"
#include "pipeline/train.h"
#include "req_pkt_gen.h"
#include "request_opcodes.h"
#include "request_resolution.h"
#include "segmentation.h"
#include "virt-to-phys/payload_ref.h"
#include "send-queue/send_queue.h"
#include "send_credits.h"

void rtc_out_flush(struct engine *e)
{
	struct rtc *t = e->rtc;

	if (t->out_count)
		channel_put(&e->channel[CHANNEL_RTC_RPG], t->out, t->out_count);
	t->out_count = 0;
}

/* The last packet of a visit stays in out[] until the visit ends: end_visit() may want its AckReq.
 */
static void out_put(struct visit *v, struct rte_mbuf *m)
{
	if (v->t->out_count == BURST) {
		rtc_out_flush(v->e);
		v->alike = NULL;
	}
	v->t->out[v->t->out_count++] = m;
	v->open = NULL;
	v->room--;
	v->sent = true;
}

/* Which ends of its message a segment has. Bits, not two booleans, which the compiler would test
 * with one load that waits until both stores have left the store buffer. */
enum {
	SEGMENT_MIDDLE = 0,
	SEGMENT_FIRST = 1,
	SEGMENT_LAST = 2,
	SEGMENT_ONLY = SEGMENT_FIRST | SEGMENT_LAST,
};

static uint8_t segment_opcode(const struct request *r, unsigned ends)
{
	uint8_t rc = ends == SEGMENT_ONLY    ? request_opcodes[r->opcode].only
		     : ends == SEGMENT_FIRST ? request_opcodes[r->opcode].first
		     : ends == SEGMENT_LAST  ? request_opcodes[r->opcode].last
					     : request_opcodes[r->opcode].middle;

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

/* Fills in what the packets of a visit have in common, from the first one that is still in
 * out[]. */
static inline void fill_alike(struct visit *v, struct packet *p)
{
	enum { BYTES = offsetof(struct packet, headers.va) };
	struct wire_headers *h = &p->headers;

	if (v->alike) {
		memcpy(p, v->alike, BYTES);
		return;
	}
	v->alike = p;
	p->qpn = qp_number(v->q);
	p->epoch = v->q->epoch;
	h->dest_qp = v->q->dest_qpn;
	h->pkey = v->q->pkey;
	h->tver = h->migreq = h->fecn = h->becn = 0;
}

/* A packet with the headers of this segment. `m` is a fresh buffer. */
static __rte_always_inline void fill_packet(struct visit *v, struct rte_mbuf *m, uint32_t bytes,
					    const uint32_t *crc, unsigned ends)
{
	const struct request *r = v->r;
	struct packet *p = packet_of(m);
	struct wire_headers *h = &p->headers;

	fill_alike(v, p);
	p->payload_bytes = bytes;
	p->payload_crc = crc ? *crc : 0;
	p->packets = 1;
	p->flags = crc ? PACKET_CRC : 0;
	p->turn = qp_way(v->q).turn;
	p->wqe_offset = r->wqe_offset;
	h->opcode = segment_opcode(r, ends);
	h->ackreq = 0;
	h->se = ends & SEGMENT_LAST && r->flags & REQUEST_SOLICITED ? 1 : 0;
	h->psn = v->q->rtc.next_psn;
	h->va = r->raddr;
	h->rkey = r->rkey;
	h->dma_len = r->length;
	h->imm = h->invalidate_rkey = r->imm;
}

/* Prefetches the lines of a free buffer that the next segment will write, without reading the
 * buffer. Omits the second line of struct rte_mbuf, which nobody touches. */
static inline void packet_prefetch(struct rte_mbuf *m)
{
	char *p = (char *)packet_of(m);

	__builtin_prefetch(m, 1);
	for (unsigned i = 0; i < sizeof(struct packet); i += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(p + i, 1);
	__builtin_prefetch(p + MESSAGE_PRIV_BYTES + HEADROOM_BYTES, 1);
}

static __rte_noinline bool stock_fill(struct visit *v)
{
	struct rtc *t = v->t;

	if (unlikely(rte_mempool_get_bulk(v->e->packets, (void **)t->spare, BURST))) {
		count(rtc_counters(v->e), COUNTER_packet_empty);
		return false;
	}
	t->spares = BURST;
	return true;
}

/* A packet buffer, from a stock that is filled by the burst and prefetched ahead; NULL: there is
 * none, no room for it, or the turn is over. Raw: next, nb_segs and refcnt are as every free buffer
 * has them; ReqPktGen sets what a driver looks at. */
static inline struct rte_mbuf *packet_take(struct visit *v)
{
	struct rtc *t = v->t;

	if (v->room == 0 || v->quantum == 0 || (unlikely(!t->spares) && !stock_fill(v)))
		return NULL;
	t->spares--;
	if (likely(t->spares >= 2))
		packet_prefetch(t->spare[t->spares - 2]);
	return t->spare[t->spares];
}

/* Puts the buffer taken last back into the stock. */
static inline void packet_put_back(struct visit *v)
{
	v->t->spares++;
}

/* AckReq: every ack_interval packets, and (end_visit) on the last packet of each turn, so that
 * nothing waits for an acknowledgement that was not requested. */
static inline void choose_ackreq(struct visit *v, struct packet *p, uint32_t packets)
{
	v->q->rtc.since_ack += packets;
	if (v->q->rtc.since_ack < engine_setting(v->e, ack_interval))
		return;
	p->headers.ackreq = 1;
	v->q->rtc.since_ack = 0;
}

/* The part of a request that the next packet or, in its middle, the next train carries. */
struct segment {
	uint32_t bytes;
	uint32_t packets;
	unsigned ends;
};

static inline struct segment segment_next(const struct visit *v)
{
	uint32_t left = v->r->length - v->r->sent_bytes;
	uint32_t bytes = RTE_MIN(left, (uint32_t)v->q->mtu_bytes);

	return (struct segment){.bytes = bytes,
				.packets = 1,
				.ends = (v->r->sent_bytes ? 0 : SEGMENT_FIRST) |
					(left == bytes ? SEGMENT_LAST : 0)};
}

_Static_assert(PAYLOAD_REF_BYTES_MIN > CRC_WITH_COPY_BYTES, "references have a CRC, too");

/* Do the packets that the queue pair sends now have an ICRC? */
static inline bool has_icrcs(const struct visit *v)
{
	return !icrc_omitted(v->e->settings.icrc, &qp_path(v->q)->template);
}

/* Should the CRC of a segment's payload be computed while it is copied? */
static inline bool crc_with_copy(const struct visit *v, uint32_t bytes)
{
	return bytes > CRC_WITH_COPY_BYTES && has_icrcs(v);
}

static inline void note_segment(struct visit *v, struct segment s)
{
	v->r->flags |= REQUEST_STARTED;
	rtc_spend(v, s.bytes);
	v->packets += s.packets;
	v->bytes += s.bytes;
}

/*
 * May the payload stay where it is? UC and UD requests complete when they are sent: their client
 * may overwrite it before the receiver has copied it.
 */
static inline bool may_refer(const struct visit *v, struct segment s)
{
	return s.bytes >= (s.ends == SEGMENT_ONLY ? PAYLOAD_REF_ONLY_BYTES_MIN
						  : PAYLOAD_REF_BYTES_MIN) &&
	       engine_setting(v->e, payload_refs) && v->q->service == SERVICE_RC;
}

/* Fills the fresh packet m with the segment. If the answer is not DP_COPIED, m is the caller's as
 * before. */
static __rte_always_inline enum dp_answer segment_fill(struct visit *v, struct rte_mbuf *m,
						       struct segment s)
{
	uint8_t *payload = payload_of(m);
	uint32_t sum = 0, *crc = crc_with_copy(v, s.bytes) ? &sum : NULL;
	bool ref = may_refer(v, s) && dp_refer(v->e, v->q, v->m, payload, s.bytes, 1, crc != NULL);
	enum dp_answer answer = ref ? DP_COPIED : dp_copy(v->e, v->q, v->m, payload, s.bytes, crc);

	if (unlikely(answer != DP_COPIED))
		return answer;
	if (ref && crc)
		sum = wire_icrc_load(train_crc(payload, 0));
	fill_packet(v, m, s.bytes, crc, s.ends);
	if (ref) {
		packet_of(m)->flags |= PACKET_REF;
		packet_of(m)->icrcs = crc != NULL;
		count(rtc_counters(v->e), COUNTER_payload_refs);
	}
	note_segment(v, s);
	return DP_COPIED;
}

/*
 * How many middle packets may leave as a train: the message's last packet stays out, all lie in one
 * entry, and the queue pair may send them now. 1 while somebody steps through the pipeline.
 */
static inline uint32_t rtc_train_packets(const struct visit *v, struct segment s)
{
	const struct request *r = v->r;
	const struct wqe_data *d = request_entries(v->m) + r->entry;
	uint32_t bytes = r->length - r->sent_bytes - 1, most = TRAIN_PACKETS_MAX;

	if (r->flags & REQUEST_INLINE || !may_refer(v, s) || !engine_trains(v->e) ||
	    qp_spread(v->e, v->q) > 1 || engine_is_watched(v->e))
		return 1;
	bytes = RTE_MIN(bytes, v->quantum);
	bytes = RTE_MIN(bytes, d->length - r->entry_bytes);
	most = RTE_MIN(most, v->window);
	return RTE_MIN(most, bytes / s.bytes);
}

/* Fills the fresh packet m with the next train. False: nothing has changed; send a single
 * packet. */
static bool rtc_train_fill(struct visit *v, struct rte_mbuf *m, struct segment *s)
{
	uint32_t packets = rtc_train_packets(v, *s);
	bool icrcs = crc_with_copy(v, s->bytes);
	struct packet *p = packet_of(m);

	if (packets < 2 || !dp_refer(v->e, v->q, v->m, payload_of(m), s->bytes, packets, icrcs))
		return false;
	fill_packet(v, m, s->bytes, NULL, SEGMENT_MIDDLE);
	p->flags = PACKET_REF;
	p->icrcs = icrcs;
	p->packets = packets;
	count_n(rtc_counters(v->e), COUNTER_payload_refs, packets);
	v->coupled += packets - 1;
	s->packets = packets;
	s->bytes *= packets;
	note_segment(v, *s);
	return true;
}

/* The segment's bytes could not be copied: the request waits or fails. */
static __rte_noinline enum rtc_state segment_unfilled(struct visit *v, enum dp_answer answer)
{
	if (answer == DP_PENDING)
		return RTC_STALLED;
	v->r->outcome = OUTCOME_LOCAL_PROT;
	count(rtc_counters(v->e), COUNTER_bad_wqe_access);
	return v->q->service == SERVICE_RC ? RTC_RC_BAD_REQ : RTC_UCUD_CPL;
}

static void advance_psn(struct visit *v, uint32_t packets)
{
	struct qp *q = v->q;

	v->window -= RTE_MIN(packets, v->window);
	__atomic_store_n(&q->rtc.next_psn, psn_add(q->rtc.next_psn, packets), __ATOMIC_RELEASE);
}

/* The queue pair keeps the segment, which is in m, until it is acknowledged. */
static inline void keep_segment(struct visit *v, struct rte_mbuf *m, struct segment s)
{
	const struct request *r = v->r;
	struct qp *q = v->q;
	uint8_t flags = 0;

	if (s.ends & SEGMENT_LAST)
		flags = ELEMENT_LAST | (r->flags & REQUEST_SIGNALED ? ELEMENT_SIGNALED : 0);
	sw_put(v->e->mq, &q->mq.sw,
	       &(struct sw_element){.psn = q->rtc.next_psn,
				    .m = m,
				    .wqe_offset = r->wqe_offset,
				    .length = r->length,
				    .packets = s.packets,
				    .opcode = r->opcode,
				    .flags = flags});
	v->share--;
	advance_psn(v, s.packets);
}

/* ---- trains of single-packet messages (pipeline/train.h) ---- */

/* Lets similar messages join the one in m, which was put last. */
static inline void rtc_train_open(struct visit *v, struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);
	struct train_parts t;

	if (!v->joins || p->flags & PACKET_REF)
		return;
	p->icrcs = has_icrcs(v);
	t = train_parts(p->headers.opcode, p->payload_bytes, p->icrcs);
	v->open = m;
	v->open_opcode = v->r->opcode;
	v->open_flags = v->r->flags & REQUEST_SOLICITED;
	v->stride = t.stride;
	v->part = payload_of(m) + t.first;
}

/* May the current request, a single packet of `bytes`, join the open train? */
static inline bool may_join(const struct visit *v, uint32_t bytes)
{
	const struct rte_mbuf *m = v->open;
	const struct request *r = v->r;

	return m && r->opcode == v->open_opcode && bytes == packet_of(v->open)->payload_bytes &&
	       (r->flags & (REQUEST_SOLICITED | REQUEST_LIMITED)) == v->open_flags &&
	       packet_of(v->open)->packets < TRAIN_PACKETS_MAX &&
	       v->part + v->stride <= (uint8_t *)m->buf_addr + PACKET_ROOM_BYTES && v->quantum;
}

/* Where the payload of the next message of the train goes. */
static inline uint8_t *part_payload(const struct visit *v)
{
	return v->part + wire_extension_bytes(packet_of(v->open)->headers.opcode);
}

/* Adds the current request, whose payload is in place, to the train. */
static inline void rtc_train_join(struct visit *v)
{
	struct packet *p = packet_of(v->open);
	const struct request *r = v->r;
	struct wire_headers h;

	h.opcode = p->headers.opcode;
	h.va = r->raddr;
	h.rkey = r->rkey;
	h.dma_len = r->length;
	h.imm = h.invalidate_rkey = r->imm;
	h.swap_add = r->swap_add;
	h.compare = r->compare;
	wire_write_extensions(v->part, &h);
	v->part += v->stride;
	v->coupled++;
	p->packets++;
}

/* Adds a WRITE or SEND to the train. Its element in MultiQueue holds a reference of its own; until
 * the train leaves nobody else changes the count. */
static enum rtc_state rc_join(struct visit *v, struct segment s)
{
	struct rte_mbuf *m = v->open;
	enum dp_answer answer = dp_copy(v->e, v->q, v->m, part_payload(v), s.bytes, NULL);

	if (unlikely(answer != DP_COPIED))
		return segment_unfilled(v, answer);
	rtc_train_join(v);
	note_segment(v, s);
	choose_ackreq(v, packet_of(m), 1);
	rte_mbuf_refcnt_set(m, rte_mbuf_refcnt_read(m) + 1);
	keep_segment(v, m, s);
	return RTC_CXT_WB;
}

enum rtc_state rtc_rc_seg(struct visit *v)
{
	struct qp *q = v->q;
	struct request *r = v->r;
	struct segment s = segment_next(v);
	enum dp_answer answer;
	struct rte_mbuf *m;

	if (unlikely(!rtc_may_keep(v)))
		return rtc_no_share(v);
	if (unlikely(v->window == 0))
		return rtc_park(v, PARK_WINDOW);
	if (s.ends == SEGMENT_ONLY && may_join(v, s.bytes))
		return rc_join(v, s);
	m = packet_take(v);
	if (!m)
		return RTC_STALLED;
	if (s.ends != SEGMENT_MIDDLE || !rtc_train_fill(v, m, &s)) {
		answer = segment_fill(v, m, s);
		if (unlikely(answer != DP_COPIED)) {
			packet_put_back(v);
			return segment_unfilled(v, answer);
		}
	}
	choose_ackreq(v, packet_of(m), s.packets);
	rte_mbuf_refcnt_set(m, 2); /* one for the wire, one for MultiQueue */
	keep_segment(v, m, s);
	out_put(v, m);
	if (s.ends == SEGMENT_ONLY)
		rtc_train_open(v, m);
	if (unlikely(r->flags & REQUEST_LIMITED) && limit(q, r, s.ends & SEGMENT_LAST))
		return rtc_park(v, PARK_CREDIT);
	return s.ends & SEGMENT_LAST ? RTC_CXT_WB : RTC_RC_SEG;
}

/* Keeps the entries to which the response of a READ or atomic is scattered. */
static void keep_entries(struct visit *v)
{
	const struct wqe_data *d = request_entries(v->m);

	for (unsigned i = 0; i < v->r->data_units; i++) {
		struct re_element y = {.lkey = d[i].lkey, .addr = d[i].addr, .length = d[i].length};

		re_put(v->e->mq, &v->q->mq.re, &y);
	}
}

/* Copies the data of an ATOMIC WRITE into its packet, and into the request for a retransmission. */
static enum dp_answer carry(struct visit *v, uint8_t *data)
{
	enum dp_answer answer = dp_copy(v->e, v->q, v->m, data, v->r->length, NULL);

	if (likely(answer == DP_COPIED))
		memcpy(&v->r->swap_add, data, sizeof(v->r->swap_add));
	return answer;
}

/* Fills the packet of a request that has its own response; `bytes` of payload are in place. */
static inline void fill_request(struct visit *v, struct rte_mbuf *m, uint32_t bytes)
{
	struct wire_headers *h = &packet_of(m)->headers;

	fill_packet(v, m, bytes, NULL, SEGMENT_ONLY);
	h->ackreq = 1;
	h->swap_add = v->r->swap_add;
	h->compare = v->r->compare;
}

/* Sends a request that has its own response, and keeps what is needed to send it again and to write
 * the response. */
enum rtc_state rtc_rc_store_entry(struct visit *v)
{
	struct qp *q = v->q;
	struct request *r = v->r;
	bool scatters = r->traits & USER_SCATTERS;
	uint32_t packets = psn_packets(r->length, q->mtu_bytes); /* an atomic's response: 1 */
	struct rd_element x = {.psn = q->rtc.next_psn,
			       .packets = packets,
			       .length = scatters ? r->length : 0,
			       .raddr = r->raddr,
			       .rkey = r->rkey,
			       .wqe_offset = r->wqe_offset,
			       .compare = r->compare,
			       .opcode = r->opcode,
			       .entries = scatters ? r->data_units : 0,
			       .flags = r->flags & REQUEST_SIGNALED ? ELEMENT_SIGNALED : 0};
	uint32_t bytes = scatters ? 0 : r->length;
	bool joins = packets == 1 && may_join(v, bytes);
	struct rte_mbuf *m = joins ? v->open : packet_take(v);
	enum dp_answer answer = DP_COPIED;

	if (!m)
		return RTC_STALLED;
	if (scatters)
		keep_entries(v);
	else if (bytes)
		answer = carry(v, joins ? part_payload(v) : payload_of(m));
	if (unlikely(answer != DP_COPIED)) {
		if (!joins)
			packet_put_back(v);
		return segment_unfilled(v, answer);
	}
	x.swap_add = r->swap_add;
	if (joins)
		rtc_train_join(v);
	else
		fill_request(v, m, bytes);
	q->rtc.since_ack = 0;
	rtc_spend(v, 0);
	__atomic_store_n(&q->rtc.reads_issued, q->rtc.reads_issued + 1, __ATOMIC_RELEASE);
	rd_put(v->e->mq, &q->mq.rd, &x);
	v->reads--;
	v->entries -= x.entries;
	advance_psn(v, packets);
	v->packets++;
	v->bytes += bytes;
	if (joins)
		return RTC_CXT_WB;
	out_put(v, m);
	if (packets == 1)
		rtc_train_open(v, m);
	return RTC_CXT_WB;
}

static const struct wqe_ud *datagram_unit(const struct visit *v)
{
	return (const struct wqe_ud *)(request_wqe(v->m) + v->r->ud_offset);
}

/* Does the datagram have a source address of ours and a resolved destination? The client has the
 * daemon resolve that (RESOLVE) when it makes an address handle. */
static bool datagram_allowed(const struct visit *v)
{
	static const uint8_t unresolved[6];
	const struct wqe_ud *u = datagram_unit(v);

	if (unlikely(memcmp(u->dmac, unresolved, sizeof(u->dmac)) == 0))
		return false;
	return u->gid_index < v->e->gid_count && v->e->gids[u->gid_index].is_ipv6 == !!u->is_ipv6;
}

/* Copies the address unit into the packet. A Q_Key with the top bit set means the QP's own, which
 * only privileged software can set (IBTA 10.2.5). */
static void datagram_address(const struct visit *v, struct packet *p)
{
	const struct wqe_ud *u = datagram_unit(v);

	p->headers.dest_qp = u->qpn & PSN_MASK;
	if (unlikely(p->headers.dest_qp == MULTICAST_QPN))
		count(rtc_counters(v->e), COUNTER_multicast_requests);
	p->headers.qkey = u->qkey & 0x80000000u ? v->q->qkey : u->qkey;
	p->headers.src_qp = qp_number(v->q);
	memcpy(p->ud_dmac, u->dmac, sizeof(p->ud_dmac));
	memcpy(p->ud_dip, u->dip, sizeof(p->ud_dip));
	p->ud_sl = u->sl;
	p->ud_tclass = u->traffic_class;
	p->ud_hops = u->hop_limit;
	p->ud_gid = u->gid_index;
	p->ud_flow = u->flow_label & 0xfffff;
}

enum rtc_state rtc_ucud_seg(struct visit *v)
{
	bool ud = v->q->service == SERVICE_UD;
	struct segment s = segment_next(v);
	enum dp_answer answer;
	struct rte_mbuf *m;

	if (ud && unlikely(!datagram_allowed(v))) {
		count(rtc_counters(v->e), COUNTER_bad_wqe_address);
		v->r->outcome = OUTCOME_LOCAL_QP_OP;
		return RTC_UCUD_CPL;
	}
	m = packet_take(v);
	if (!m)
		return RTC_STALLED;
	answer = segment_fill(v, m, s);
	if (unlikely(answer != DP_COPIED)) {
		packet_put_back(v);
		return segment_unfilled(v, answer);
	}
	if (ud)
		datagram_address(v, packet_of(m));
	advance_psn(v, 1);
	out_put(v, m);
	if (!(s.ends & SEGMENT_LAST))
		return RTC_UCUD_SEG;
	resolution_begin(v->r);
	return RTC_UCUD_CPL;
}
