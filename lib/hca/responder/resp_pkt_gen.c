/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RespPktGen: builds acknowledgements, atomic acknowledgements, READ responses and congestion
 * notification packets as complete frames. Takes from EE_RESPG, reads client memory (READ), puts
 * into RESPG_TXA. Stage responder_exec. If a packet buffer or room is missing, it continues at the
 * next poll where it stopped.
 *
 * An answer of a QP that has none waiting is sent at once, unless it answers a READ that is long or
 * has to wait. QPs with waiting answers are in a list and take turns, a quantum of payload each.
 */
#include <rte_malloc.h>
#include "base/copy_bytes.h"
#include "completion/completion.h"
#include "context/pacing.h"
#include "context/qp_list.h"
#include "execution_engine.h"
#include "responder/responder.h"
#include "host-abi/control.h"
#include "pipeline/frames.h"
#include "pipeline/train.h"
#include "resp_order.h"
#include "resp_pkt_gen.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/aeth.h"
#include "wire/crc.h"

enum {
	RESULTS = 1024,	   /* a power of two */
	SMALL_BYTES = 256, /* more: the CRC is computed with the copy */
	AT_ONCE_BYTES = PAYLOAD_REF_ONLY_BYTES_MIN - 1, /* of a READ that may be answered at once */
};

/*
 * Consecutive answers of one poll to one connection. Their headers differ only in IPv4
 * identification, PSN and extension headers, so the others are copied from the first one.
 */
struct resp_run {
	const struct qp *qp;  /* NULL: none */
	const uint8_t *model; /* the first frame's headroom */
	struct qp_way way;
	uint32_t payload_bytes;
	uint8_t opcode;
	uint8_t l3_offset, is_ipv6;
	uint8_t transport_bytes;
	bool icrc_omitted;
	uint16_t data_off, data_len; /* of each frame */
	/* The last frame, if more answers may join it (pipeline/train.h); else NULL. */
	struct rte_mbuf *open;
	uint8_t *part;	   /* where the next one goes */
	uint32_t stride;   /* bytes of each */
	uint32_t next_psn; /* the only one that may join */
};

struct resp_pkt_gen {
	struct rte_mbuf *spare[RESPG_FRAMES_MAX]; /* packet buffers in stock */
	struct rte_mbuf *out[RESPG_FRAMES_MAX];	  /* frames of this poll */
	unsigned spares, outs;
	unsigned limit;	       /* frames that this poll may make: room, buffers */
	unsigned owed;	       /* of them, for answers of the burst whose turn is yet to come */
	struct qp_list active; /* QPs whose answers wait */
	struct qp_list notify; /* QPs whose peers are to get a CNP */
	int64_t quantum_left;  /* of the QP at the head, or the next one to be there; bytes */
	uint16_t ip_id;	       /* IPv4 identification of the last frame */
	struct resp_run run;   /* within a poll */
	uint32_t coupled;      /* packets of this poll's trains beyond the first of each */
	uint32_t read_packets; /* packets that this poll has made of waiting READs */
	/* Results of atomics that came in trains, a FIFO parallel to EE_RESPG; free-running
	 * indices. */
	uint32_t results_put, results_taken;
	uint64_t results[RESULTS];
	struct pacer pacer; /* QPs whose rate is limited, until it is their time */
};

uint32_t respg_results_room(const struct engine *e)
{
	const struct resp_pkt_gen *p = e->respg;

	return RESULTS - (p->results_put - p->results_taken);
}

void respg_put_result(struct engine *e, uint64_t value)
{
	struct resp_pkt_gen *p = e->respg;

	p->results[p->results_put++ % RESULTS] = value;
}

/* Makes sure that `want` buffers are in stock, or as many as there are. Raw, as packet_take() of
 * segmentation.c has them. */
static void stock(struct engine *e, struct resp_pkt_gen *p, struct counters *c, unsigned want)
{
	if (p->spares >= want)
		return;
	if (likely(rte_mempool_get_bulk(e->packets, (void **)&p->spare[p->spares],
					want - p->spares) == 0)) {
		p->spares = want;
		return;
	}
	while (p->spares < want) {
		if (rte_mempool_get(e->packets, (void **)&p->spare[p->spares])) {
			count(c, COUNTER_packet_empty);
			return;
		}
		p->spares++;
	}
}

static inline bool may_make_frame(const struct resp_pkt_gen *p)
{
	return p->outs + p->owed < p->limit;
}

/* The buffer that the next frame will be made in; it stays in stock until seal(). */
static inline struct rte_mbuf *next_buffer(const struct resp_pkt_gen *p)
{
	return p->spare[p->spares - 1];
}

/* Writes the headers of a frame that may begin a run. */
static void respg_stamp_first(struct resp_pkt_gen *p, const struct engine *e, const struct qp *qp,
			      const struct wire_template *of, const struct wire_headers *h,
			      uint32_t payload_bytes)
{
	struct resp_run *t = &p->run;
	uint8_t *room = next_buffer(p)->buf_addr;
	unsigned after_udp;

	t->qp = qp;
	t->model = room;
	t->payload_bytes = payload_bytes;
	t->opcode = h->opcode;
	t->l3_offset = of->l3_offset;
	t->is_ipv6 = of->is_ipv6;
	t->icrc_omitted = icrc_omitted(e->settings.icrc, of);
	t->transport_bytes = wire_opcodes[h->opcode].header_bytes;
	after_udp = t->transport_bytes + payload_bytes + h->pad + WIRE_ICRC_BYTES;
	t->data_off = HEADROOM_BYTES - t->transport_bytes - of->encap_bytes;
	t->data_len = of->encap_bytes + after_udp;
	wire_stamp(room + t->data_off, of, after_udp, ++p->ip_id);
	wire_write_transport(room + HEADROOM_BYTES - t->transport_bytes, h);
}

/* Writes those of a frame that continues it. */
static inline void respg_stamp_next(struct resp_pkt_gen *p, const struct wire_headers *h)
{
	const struct resp_run *t = &p->run;
	uint8_t *room = next_buffer(p)->buf_addr;

	memcpy(room, t->model, HEADROOM_BYTES);
	p->ip_id++;
	if (!t->is_ipv6)
		wire_renumber(room + t->data_off + t->l3_offset, p->ip_id);
	wire_write_differing(room + HEADROOM_BYTES - t->transport_bytes, h);
}

/*
 * Ends a frame whose headers are in front of the payload, with its zero pad behind it; the ICRC
 * follows in finish_icrc(). crc: state of payload and pad from 0, or NULL: computed there. `ref`: a
 * reference takes the place of the payload, and the bytes after it are not read.
 */
static inline void respg_put_frame(struct resp_pkt_gen *p, const struct qp *qp, uint32_t pad,
				   const uint32_t *crc, bool ref)
{
	const struct resp_run *t = &p->run;
	struct rte_mbuf *m = p->spare[--p->spares];
	struct packet *packet = packet_of(m);

	m->data_off = t->data_off;
	m->data_len = m->pkt_len = t->data_len;
	m->ol_flags = (t->icrc_omitted ? ICRC_OMITTED : 0) | (ref ? PAYLOAD_REF : 0);
	if (t->icrc_omitted && !ref)
		wire_icrc_store(payload_of(m) + t->payload_bytes + pad, 0);
	packet->qpn = qp_number(qp);
	packet->payload_bytes = t->payload_bytes;
	packet->packets = 1;
	packet->payload_crc = crc ? *crc : 0;
	packet->flags = PACKET_BUILT | (crc ? PACKET_CRC : 0);
	packet->l3_offset = t->l3_offset;
	packet->is_ipv6 = t->is_ipv6;
	p->out[p->outs++] = m;
	p->run.open = NULL;
}

/* Stores the ICRC of a frame. Not right after its headers: the wide loads would have to wait for
 * their stores. */
static inline void finish_icrc(struct rte_mbuf *m)
{
	struct packet *packet = packet_of(m);
	uint8_t *l3 = rte_pktmbuf_mtod(m, uint8_t *) + packet->l3_offset;
	uint8_t *payload = payload_of(m);
	uint8_t *end = rte_pktmbuf_mtod(m, uint8_t *) + m->data_len - WIRE_ICRC_BYTES;
	uint32_t icrc;

	if (packet->packets > 1) {
		train_put_icrcs(m, packet);
		return;
	}
	if (packet->flags & PACKET_CRC)
		icrc = ~wire_crc_combine(
			wire_icrc_headers(l3, (unsigned)(payload - l3), packet->is_ipv6),
			packet->payload_crc, (unsigned)(end - payload));
	else
		icrc = wire_icrc(l3, (unsigned)(end - l3), packet->is_ipv6);
	wire_icrc_store(end, icrc);
	packet->flags = PACKET_BUILT;
}

/* Passes on the frames of this poll. */
static void pass_on(struct engine *e, struct resp_pkt_gen *p)
{
	for (unsigned i = 0; i < p->outs; i++)
		if (!(p->out[i]->ol_flags & ICRC_OMITTED))
			finish_icrc(p->out[i]);
	channel_note_coupled(&e->channel[CHANNEL_RESPG_TXA], p->coupled);
	p->coupled = 0;
	channel_put(&e->channel[CHANNEL_RESPG_TXA], p->out, p->outs);
}

/* Makes a frame of the payload in the next buffer, along the QP's path. crc, ref: as
 * respg_put_frame() has them. */
static inline void seal(struct engine *e, struct resp_pkt_gen *p, const struct qp *qp,
			struct wire_headers *h, uint32_t payload_bytes, const uint32_t *crc,
			bool ref)
{
	struct qp_way way = qp_way(qp);
	const struct resp_run *t = &p->run;

	if (likely(t->qp == qp && t->opcode == h->opcode && t->payload_bytes == payload_bytes &&
		   memcmp(&way, &t->way, sizeof(way)) == 0)) {
		respg_stamp_next(p, h);
	} else {
		h->migreq = qp_migreq(way);
		respg_stamp_first(p, e, qp, &qp_path_at(qp, way.path)->template, h, payload_bytes);
		p->run.way = way;
	}
	respg_put_frame(p, qp, h->pad, crc, ref);
}

static inline struct wire_headers response_headers(const struct qp *qp, uint8_t opcode,
						   uint32_t psn)
{
	return (struct wire_headers){
		.opcode = opcode, .psn = psn, .dest_qp = qp->dest_qpn, .pkey = qp->pkey};
}

static void count_nak(struct counters *c, uint8_t syndrome)
{
	static const enum counter naks[AETH_NAK_CODES] = {
		[AETH_NAK_SEQUENCE] = COUNTER_nak_sequence_sent,
		[AETH_NAK_INVALID_REQUEST] = COUNTER_nak_invalid_sent,
		[AETH_NAK_REMOTE_ACCESS] = COUNTER_nak_access_sent,
		[AETH_NAK_REMOTE_OPERATION] = COUNTER_nak_operation_sent,
		[AETH_NAK_INVALID_RD_REQUEST] = COUNTER_nak_invalid_sent,
	};

	count(c,
	      aeth_kind(syndrome) == AETH_RNR ? COUNTER_nak_rnr_sent : naks[aeth_value(syndrome)]);
}

static inline void answer_ack(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
			      const struct qp *qp, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct wire_headers h = response_headers(qp, WIRE_RC_ACK, psn);

	h.syndrome = syndrome;
	h.msn = msn;
	seal(e, p, qp, &h, 0, NULL, false);
	if (likely(aeth_kind(syndrome) == AETH_ACK))
		count(c, COUNTER_acks_sent);
	else
		count_nak(c, syndrome);
}

/* ---- trains of answers (pipeline/train.h) ---- */

/* Lets answers like the one just sealed join it, unless somebody steps through the pipeline. */
static inline void respg_train_open(const struct engine *e, struct resp_pkt_gen *p, uint32_t psn)
{
	struct resp_run *t = &p->run;
	struct rte_mbuf *m = p->out[p->outs - 1];
	struct train_parts parts;

	if (!engine_trains(e) || engine_is_watched(e))
		return;
	parts = train_parts(t->opcode, t->payload_bytes, !t->icrc_omitted);
	t->open = m;
	t->part = payload_of(m) + parts.first;
	t->stride = parts.stride;
	t->next_psn = psn_add(psn, 1);
}

/* Where the payload of an answer that joins the open train goes; NULL: it may not join. */
static inline uint8_t *respg_train_place(const struct resp_pkt_gen *p, const struct qp *qp,
					 uint8_t opcode, uint32_t psn, uint32_t payload_bytes)
{
	const struct resp_run *t = &p->run;
	struct qp_way way = qp_way(qp);

	if (!t->open || t->qp != qp || t->opcode != opcode || t->payload_bytes != payload_bytes ||
	    t->next_psn != psn || memcmp(&way, &t->way, sizeof(way)) ||
	    t->part + t->stride > (uint8_t *)t->open->buf_addr + PACKET_ROOM_BYTES ||
	    packet_of(t->open)->packets == TRAIN_PACKETS_MAX)
		return NULL;
	return t->part + wire_extension_bytes(opcode);
}

/* Adds the answer whose payload is in that place. */
static inline void respg_train_join(struct resp_pkt_gen *p, const struct wire_headers *h)
{
	struct resp_run *t = &p->run;

	wire_write_extensions(t->part, h);
	t->part += t->stride;
	t->next_psn = psn_add(t->next_psn, 1);
	t->open->pkt_len += t->open->data_len;
	t->open->ol_flags |= FRAME_TRAIN;
	packet_of(t->open)->packets++;
	p->ip_id++;
	p->coupled++;
}

static void answer_atomic(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
			  const struct qp *qp, uint32_t psn, uint8_t syndrome, uint32_t msn,
			  uint64_t orig)
{
	struct wire_headers h = response_headers(qp, WIRE_RC_ATOMIC_ACK, psn);

	h.syndrome = syndrome;
	h.msn = msn;
	h.orig = orig;
	count(c, COUNTER_acks_sent);
	if (respg_train_place(p, qp, h.opcode, psn, 0)) {
		respg_train_join(p, &h);
		return;
	}
	seal(e, p, qp, &h, 0, NULL, false);
	respg_train_open(e, p, psn);
}

/* Reports what is kept now. A SACK acknowledges no READ, so it overtakes answers that wait. */
static __rte_noinline void answer_sack(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
				       const struct qp *qp)
{
	struct wire_headers h = response_headers(qp, WIRE_SACK, qp->ee.expected_psn);

	if (!ee_describe_gap(e, qp, payload_of(next_buffer(p))))
		return;
	seal(e, p, qp, &h, WIRE_SACK_BYTES, NULL, false);
	count(c, COUNTER_sacks_sent);
}

/* Copies the next bytes of a READ into the frame; *crc, unless NULL, continues over them. */
static enum v2p_state copy_read(struct engine *e, const struct qp *qp, const struct answer *a,
				uint8_t *dst, uint32_t bytes, uint32_t *crc)
{
	uint64_t va = a->va + a->done_bytes;

	while (bytes) {
		uint64_t run;
		uint8_t *src;
		enum v2p_state s = v2p_request(e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
					       &(struct v2p_access){.pd = qp->pd,
								    .qpn = qp_number(qp),
								    .key = a->rkey,
								    .va = va,
								    .length = bytes,
								    .rights = ACCESS_REMOTE_READ},
					       &src, &run);
		uint32_t n = (uint32_t)RTE_MIN((uint64_t)bytes, run);

		if (unlikely(s != V2P_SUCCESS))
			return s;
		if (crc)
			*crc = wire_crc_copy(*crc, dst, src, n);
		else
			copy_bytes(dst, src, n);
		va += n;
		dst += n;
		bytes -= n;
	}
	return V2P_SUCCESS;
}

/* What a READ reads, for what is mapped in one piece. */
static inline struct v2p_access read_access(const struct qp *qp, uint32_t key, uint64_t va,
					    uint32_t bytes)
{
	return (struct v2p_access){
		.pd = qp->pd, .key = key, .va = va, .length = bytes, .rights = ACCESS_REMOTE_READ};
}

/* Makes a reference to the payload of `packets` instead of a copy. False: copy it. Its owner may
 * change the memory at any time: the requester then takes what is there. */
static inline bool refer_read(struct engine *e, const struct qp *qp, const struct answer *a,
			      uint8_t *dst, uint32_t bytes, uint32_t packets)
{
	const struct v2p_access access = read_access(qp, a->rkey, a->va + a->done_bytes, bytes);
	bool icrcs = !icrc_omitted(e->settings.icrc, &qp_path(qp)->template);
	const uint8_t *at;

	if (bytes < PAYLOAD_REF_BYTES_MIN || !engine_setting(e, payload_refs) ||
	    (icrcs && packets == 1) ||
	    !payload_ref_make(e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA, &access, NULL, dst) ||
	    (icrcs && payload_ref_follow(dst, &at) != V2P_SUCCESS))
		return false;
	if (icrcs)
		train_put_crcs(dst, at, bytes / packets, packets);
	count_n(stage_counters(e, STAGE_RESPONDER_EXEC), COUNTER_payload_refs, packets);
	return true;
}

/* How many middle packets of a READ, `left` bytes before its end, may leave as a train. */
static inline uint32_t respg_train_packets(const struct engine *e, const struct resp_pkt_gen *p,
					   const struct qp *qp, const struct answer *a,
					   uint32_t left)
{
	uint32_t mtu = qp->mtu_bytes, bytes = left - 1, most = TRAIN_PACKETS_MAX;

	if (!a->done_packets || left <= 2 * mtu || p->quantum_left <= (int64_t)mtu ||
	    mtu < PAYLOAD_REF_BYTES_MIN || !engine_trains(e) || qp->respg.flow.cc.rate ||
	    engine_is_watched(e))
		return 1;
	if (p->quantum_left < bytes)
		bytes = (uint32_t)p->quantum_left;
	most = RTE_MIN(most, RESPG_FRAMES_MAX - p->read_packets);
	return RTE_MIN(bytes / mtu, most);
}

static inline uint8_t respg_read_opcode(bool first, bool last)
{
	if (first)
		return last ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_READ_RESP_FIRST;
	return last ? WIRE_RC_READ_RESP_LAST : WIRE_RC_READ_RESP_MIDDLE;
}

/* Makes the last frame a train of `packets`. */
static inline void couple(struct resp_pkt_gen *p, uint32_t packets)
{
	struct rte_mbuf *m = p->out[p->outs - 1];

	m->pkt_len *= packets;
	m->ol_flags |= FRAME_TRAIN;
	packet_of(m)->packets = packets;
	p->ip_id += (uint16_t)(packets - 1);
	p->coupled += packets - 1;
}

/* READ_SEG, READ_PAYLOAD: makes the next packet or train of the READ; none, if its memory is
 * refused. */
static enum v2p_state read_packet(struct engine *e, struct resp_pkt_gen *p, struct qp *qp,
				  struct answer *a)
{
	uint32_t left = a->length - a->done_bytes, packets = respg_train_packets(e, p, qp, a, left);
	uint32_t bytes = RTE_MIN(left, (uint32_t)qp->mtu_bytes);
	struct wire_headers h = response_headers(
		qp, respg_read_opcode(a->done_packets == 0, bytes == left), order_next_psn(a));
	uint8_t *payload = payload_of(next_buffer(p));
	bool ref = refer_read(e, qp, a, payload, packets * bytes, packets), fused;
	enum v2p_state s;
	uint32_t crc = 0;

	if (!ref && packets > 1) {
		packets = 1;
		ref = refer_read(e, qp, a, payload, bytes, packets);
	}
	fused = !ref && bytes > SMALL_BYTES &&
		!icrc_omitted(e->settings.icrc, &qp_path(qp)->template);
	s = ref ? V2P_SUCCESS : copy_read(e, qp, a, payload, bytes, fused ? &crc : NULL);
	if (unlikely(s != V2P_SUCCESS))
		return s;
	h.pad = -bytes & 3;
	h.syndrome = a->syndrome;
	h.msn = a->msn;
	if (!ref || !engine_trains(e)) /* else nobody reads what follows a reference */
		memset(payload + bytes, 0, h.pad + (ref ? WIRE_ICRC_BYTES : 0));
	if (fused && h.pad)
		crc = wire_crc(crc, payload + bytes, h.pad);
	seal(e, p, qp, &h, bytes, fused ? &crc : NULL, ref);
	if (packets > 1)
		couple(p, packets);
	a->done_bytes += packets * bytes;
	a->done_packets += packets;
	return V2P_SUCCESS;
}

/* C9-100: the READ ends early with a NAK of the failing packet's PSN, and the QP fails with it. The
 * MSN counted the READ when it was validated (C9-148): the NAK shows that only if a packet of the
 * answer did, as no MSN goes back. */
static void fail_read(struct engine *e, struct resp_pkt_gen *p, struct counters *c, struct qp *qp)
{
	const struct answer *a = qp->respg.head;
	uint32_t msn = a->done_packets ? a->msn : psn_sub(a->msn, 1);

	answer_ack(e, p, c, qp, order_next_psn(a), aeth_nak(AETH_NAK_REMOTE_ACCESS), msn);
	order_purge(qp);
	if (qp_set_error(e, qp))
		eq_post(e->completion, c, qp->client, EQE_WQ_ACCESS_ERROR, qp_number(qp));
}

/* One packet, or train, of the READ at the head; takes it off when it is answered. */
static void serve_read(struct engine *e, struct resp_pkt_gen *p, struct counters *c, struct qp *qp)
{
	struct answer *a = qp->respg.head;
	uint32_t before = a->done_bytes, packets = a->done_packets;
	enum v2p_state s = read_packet(e, p, qp, a);

	if (likely(s == V2P_SUCCESS)) {
		count_n(c, COUNTER_read_response_packets, a->done_packets - packets);
		p->read_packets += a->done_packets - packets;
		p->quantum_left -= a->done_bytes - before;
		if (unlikely(qp->respg.flow.cc.rate))
			flow_sent(&qp->respg.flow, &e->settings.dcqcn, 1, a->done_bytes - before,
				  engine_now(e));
		if (a->done_bytes == a->length)
			order_pop(qp);
		return;
	}
	if (s == V2P_PENDING) {
		p->limit = p->outs; /* the rest at the next poll, too */
		return;
	}
	v2p_count_error(c, s);
	if (a->duplicate) { /* given up in silence (C9-108, C9-109) */
		count(c, COUNTER_drop_duplicate);
		order_pop(qp);
	} else {
		fail_read(e, p, c, qp);
	}
}

/* One frame (or none) for the head of the list. */
static void serve_head(struct engine *e, struct resp_pkt_gen *p, struct counters *c, struct qp *qp)
{
	struct answer *a = qp->respg.head;

	switch ((enum response_kind)a->response) {
	case RESPONSE_READ:
		serve_read(e, p, c, qp);
		return;
	case RESPONSE_ATOMIC:
		answer_atomic(e, p, c, qp, a->psn, a->syndrome, a->msn, a->orig);
		break;
	case RESPONSE_ACK:
		answer_ack(e, p, c, qp, a->psn, a->syndrome, a->msn);
		break;
	case RESPONSE_SACK:
	case RESPONSE_NONE:
		break;
	}
	order_pop(qp);
}

/* The turn of the QP at the head is over. */
static void end_turn(struct engine *e, struct resp_pkt_gen *p, struct qp *qp)
{
	qp_list_take(&p->active);
	p->quantum_left = engine_setting(e, quantum_bytes);
	if (qp->respg.head)
		qp_list_add(&p->active, qp);
}

/* ---- congestion notification packets ---- */

static bool notified_lately(const struct engine *e, const struct qp *qp)
{
	uint64_t interval_ns = 1000ull * engine_setting(e, min_time_between_cnps);

	return qp->respg.cnp_ns && engine_now(e) < qp->respg.cnp_ns + interval_ns;
}

void respg_notify(const struct engine *e, struct qp *qp)
{
	if (!notified_lately(e, qp))
		qp_list_add(&e->respg->notify, qp);
}

void respg_take_news(const struct engine *e, struct qp *qp)
{
	uint32_t marks = __atomic_load_n(&qp->rrc.marks, __ATOMIC_RELAXED);

	flow_take_cnps(&qp->respg.flow, qp, &e->settings.dcqcn, engine_now(e));
	if (marks != qp->respg.marks_taken)
		respg_notify(e, qp);
	qp->respg.marks_taken = marks;
}

/* With its own traffic class and priority: it must neither wait behind the congested traffic nor be
 * marked. */
static void make_cnp(struct engine *e, struct resp_pkt_gen *p, struct qp *qp)
{
	struct wire_template t = qp_path(qp)->template;
	struct wire_headers h = response_headers(qp, WIRE_CNP, 0);

	h.becn = 1;
	wire_template_set_tos(&t, (uint8_t)(engine_setting(e, cnp_dscp) << 2));
	wire_template_set_priority(&t, (uint8_t)engine_setting(e, cnp_802p_prio));
	memset(payload_of(next_buffer(p)), 0, WIRE_CNP_RESERVED_BYTES);
	respg_stamp_first(p, e, qp, &t, &h, WIRE_CNP_RESERVED_BYTES);
	respg_put_frame(p, qp, 0, NULL, false);
	p->run.qp = NULL;
	qp->respg.cnp_ns = engine_now(e);
}

static void serve_notify(struct engine *e, struct resp_pkt_gen *p, struct counters *c)
{
	struct qp *qp;

	while (may_make_frame(p) && (qp = qp_list_take(&p->notify))) {
		if (unlikely(!qp_receives(qp_state(qp))))
			continue;
		make_cnp(e, p, qp);
		count(c, COUNTER_np_cnp_sent);
	}
}

void respg_forget(struct engine *e, struct qp *qp)
{
	struct resp_pkt_gen *p = e->respg;

	order_purge(qp);
	qp_list_remove(&p->notify, qp);
	pacer_leave(&p->pacer, qp);
	if (qp_list_first(&p->active) == qp)
		end_turn(e, p, qp);
	else
		qp_list_remove(&p->active, qp);
}

/*
 * May all waiting answers of this QP be dropped? In ERR the requests before a NAK of
 * ExecutionEngine are still answered (C9-87); while EE_RESPG is not empty, that NAK may still come.
 * The list is not empty.
 */
static bool is_void(struct engine *e, const struct qp *qp)
{
	if (qp->respg.head->qpn != qp_number(qp) || qp_state(qp) < QP_RTR)
		return true;
	return qp_state(qp) == QP_ERR && !order_ends_in_fatal_nak(qp) &&
	       ring_empty(e->channel[CHANNEL_EE_RESPG].ring);
}

/* ---- pacing ---- */

/* READ responses of a QP whose rate is limited: true if they have to wait; else a burst of them may
 * leave. The QP is at the head. */
static __rte_noinline bool must_wait(struct engine *e, struct resp_pkt_gen *p, struct qp *qp)
{
	struct qp_flow *f = &qp->respg.flow;
	uint64_t now_ns = engine_now(e);

	if (!qp->respg.head || qp->respg.head->response != RESPONSE_READ ||
	    !flow_limited(f, &e->settings.dcqcn, now_ns))
		return false;
	if (flow_due(f, now_ns)) {
		p->quantum_left =
			RTE_MIN(p->quantum_left, (int64_t)flow_burst_bytes(f, qp->mtu_bytes));
		return false;
	}
	qp_list_take(&p->active);
	p->quantum_left = engine_setting(e, quantum_bytes);
	pacer_wait(&p->pacer, qp, now_ns);
	return true;
}

static __rte_noinline void respg_take_paced(struct engine *e, struct resp_pkt_gen *p)
{
	struct qp *qp;

	for (unsigned n = 0; n < BURST && (qp = pacer_take(&p->pacer, engine_now(e))); n++)
		if (qp->respg.head)
			qp_list_add(&p->active, qp);
}

/* A poll may make as many packets of READs as frames: the next stages copy what trains refer to,
 * and serve no other QP meanwhile. */
static inline bool may_serve(const struct resp_pkt_gen *p)
{
	return may_make_frame(p) && p->read_packets < RESPG_FRAMES_MAX;
}

static void serve_active(struct engine *e, struct resp_pkt_gen *p, struct counters *c)
{
	struct qp *qp;

	while ((qp = qp_list_first(&p->active))) {
		if (unlikely(is_void(e, qp)))
			order_purge(qp);
		if (unlikely(qp->respg.flow.cc.rate) && must_wait(e, p, qp))
			continue;
		while (qp->respg.head && may_serve(p)) {
			serve_head(e, p, c, qp);
			if (p->quantum_left <= 0)
				break;
		}
		if (qp->respg.head && p->quantum_left > 0)
			return;
		end_turn(e, p, qp);
	}
}

/* A READ of a few bytes, if its memory is there and nothing slows its QP down. False: it has to
 * wait, and nothing has happened. */
static inline bool answer_short_read(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
				     struct qp *qp, const struct arrival *a)
{
	struct wire_headers h = response_headers(qp, WIRE_RC_READ_RESP_ONLY, a->response_psn);
	uint32_t bytes = a->length;
	const struct v2p_access access = read_access(qp, a->rkey, a->va, bytes);
	uint8_t *place = respg_train_place(p, qp, h.opcode, h.psn, bytes), *src;
	uint8_t *payload = place ? place : payload_of(next_buffer(p));

	if (bytes - 1 >= RTE_MIN((uint32_t)AT_ONCE_BYTES, (uint32_t)qp->mtu_bytes) ||
	    unlikely(qp->respg.flow.cc.rate) || unlikely(qp_state(qp) == QP_ERR) ||
	    unlikely(!v2p_map_short(e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA, &access, &src)))
		return false;
	copy_bytes(payload, src, bytes);
	h.pad = -bytes & 3;
	h.syndrome = a->syndrome;
	h.msn = a->msn;
	if (place) {
		respg_train_join(p, &h);
	} else {
		memset(payload + bytes, 0, sizeof(uint32_t)); /* the pad; the ICRC follows */
		seal(e, p, qp, &h, bytes, NULL, false);
		respg_train_open(e, p, h.psn);
	}
	count(c, COUNTER_read_response_packets);
	qp->respg.reads_done += !response_is_duplicate(a);
	return true;
}

/* Sends an answer of a QP that has no other waiting. False: it has to wait, and nothing has
 * happened. */
static inline bool answer_at_once(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
				  struct qp *qp, const struct arrival *a)
{
	if (a->response == RESPONSE_READ)
		return answer_short_read(e, p, c, qp, a);
	if (a->response == RESPONSE_ATOMIC) {
		answer_atomic(e, p, c, qp, a->response_psn, a->syndrome, a->msn, a->orig);
		qp->respg.reads_done += !response_is_duplicate(a);
	} else {
		answer_ack(e, p, c, qp, a->response_psn, a->syndrome, a->msn);
	}
	return true;
}

/* A short answer of an idle QP leaves at once; copies of the others wait. */
static inline void accept_one(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
			      struct qp *qp, const struct arrival *a)
{
	if (likely(!qp->respg.head && may_make_frame(p)) && answer_at_once(e, p, c, qp, a))
		return;
	order_put(e->qps, c, qp, a);
	qp_list_add(&p->active, qp);
}

/* Accepts READs or atomics that came as a train. */
static void accept_train(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
			 struct qp *qp, struct arrival *a)
{
	for (;;) {
		if (a->response == RESPONSE_ATOMIC) {
			a->orig = p->results[p->results_taken++ % RESULTS];
			a->length = 0;
		} else {
			a->va = a->headers.va;
			a->rkey = a->headers.rkey;
			a->length = a->headers.dma_len;
		}
		accept_one(e, p, c, qp, a);
		if (a->packets == 1)
			return;
		train_advance(a, 1);
		a->response_psn = psn_add(a->response_psn, 1);
		a->msn = psn_add(a->msn, 1);
	}
}

static inline bool answers_train(const struct arrival *a)
{
	return a->packets > 1 && (a->response == RESPONSE_READ || a->response == RESPONSE_ATOMIC);
}

/* The queue pair is gone, and forget_packets() may have made the answer RESPONSE_NONE. The results
 * of a train are still there. */
static void drop_answers(struct resp_pkt_gen *p, struct counters *c, const struct arrival *a)
{
	count(c, COUNTER_drop_qp_state);
	if (a->packets > 1 && wire_opcodes[a->headers.opcode].headers & WIRE_HAS_ATOMIC)
		p->results_taken += a->packets;
}

/* Accepts one answer, or those to a train. */
static inline void accept_answer(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
				 struct arrival *a)
{
	struct qp *qp = qp_find(e->qps, a->qpn);

	if (unlikely(!qp || qp_state(qp) < QP_RTR || a->response == RESPONSE_NONE))
		drop_answers(p, c, a);
	else if (unlikely(a->response == RESPONSE_SACK))
		answer_sack(e, p, c, qp);
	else if (answers_train(a))
		accept_train(e, p, c, qp, a);
	else
		accept_one(e, p, c, qp, a);
}

/* Accepts at most n answers, for each of which a frame could be made. Returns how many. */
static unsigned respg_take_burst(struct engine *e, struct resp_pkt_gen *p, struct counters *c,
				 unsigned n)
{
	struct rte_mbuf *burst[BURST];

	n = channel_take(&e->channel[CHANNEL_EE_RESPG], burst, RTE_MIN(n, (unsigned)BURST));
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(&qp_at(e->qps, arrival_of(burst[i])->qpn & e->qps->mask)->respg);
	for (unsigned i = 0; i < n; i++) {
		p->owed = n - 1 - i; /* a train may need many */
		accept_answer(e, p, c, arrival_of(burst[i]));
	}
	frames_free(e, burst, n);
	return n;
}

static __rte_noinline unsigned respg_work(struct engine *e)
{
	struct resp_pkt_gen *p = e->respg;
	struct counters *c = stage_counters(e, STAGE_RESPONDER_EXEC);
	unsigned waiting = ring_used(e->channel[CHANNEL_EE_RESPG].in);
	bool notify = !qp_list_empty(&p->notify), active;
	unsigned room, want, left, n;

	if (unlikely(p->pacer.waiting))
		respg_take_paced(e, p);
	active = !qp_list_empty(&p->active);
	if (waiting == 0 && !active && !notify)
		return 0;
	room = RTE_MIN(channel_room(&e->channel[CHANNEL_RESPG_TXA]), (unsigned)RESPG_FRAMES_MAX);
	/* The most that can be needed: one for each answer, and as many again for READs. */
	want = RTE_MIN(waiting, (unsigned)BURST) + BURST;
	stock(e, p, c, RTE_MIN(room, want));
	p->limit = RTE_MIN(room, p->spares);
	p->outs = 0;
	p->read_packets = 0;
	p->run.qp = NULL;
	p->run.open = NULL;
	if (unlikely(notify))
		serve_notify(e, p, c);
	/* Short answers must not starve READs, nor READs short answers. */
	left = p->limit - p->outs;
	n = waiting ? respg_take_burst(e, p, c, active ? (left + 1) / 2 : left) : 0;
	serve_active(e, p, c);
	if (p->outs)
		pass_on(e, p);
	return n + p->outs;
}

unsigned respg_poll(struct engine *e)
{
	const struct resp_pkt_gen *p = e->respg;

	if (ring_empty(e->channel[CHANNEL_EE_RESPG].in) && !p->pacer.waiting &&
	    qp_list_empty(&p->active) && qp_list_empty(&p->notify))
		return 0;
	return respg_work(e);
}

int respg_create(struct engine *e)
{
	struct resp_pkt_gen *p = engine_alloc(e, "respg", sizeof(*p));

	if (!p)
		return -ENOMEM;
	qp_list_init(&p->active, e->qps, offsetof(struct qp, respg.active));
	qp_list_init(&p->notify, e->qps, offsetof(struct qp, respg.notify));
	pacer_init(&p->pacer, e->qps, offsetof(struct qp, respg.flow));
	e->stage[STAGE_RESPONDER_EXEC].pacer = &p->pacer;
	p->quantum_left = engine_setting(e, quantum_bytes);
	e->respg = p;
	return 0;
}

unsigned responder_stock(const struct engine *e)
{
	return e->respg->spares + ee_kept(e);
}

void respg_destroy(struct engine *e)
{
	struct resp_pkt_gen *p = e->respg;

	if (!p)
		return;
	rte_mempool_put_bulk(e->packets, (void **)p->spare, p->spares);
	rte_free(p);
	e->respg = NULL;
}
