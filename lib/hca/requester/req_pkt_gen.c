/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ReqPktGen (doc/modules.md#reqpktgen): puts the headers in front of the payload, pads, and
 * finishes the ICRC. New packets from RequesterTransControl and retransmissions from
 * RequesterRecvControl end in RPG_TXA. New ones go first: a queue pair makes none while it
 * retransmits, and those made before must not come between the repeated ones. Stage segmentation.
 *
 * The payload's CRC was computed with its copy (packet.payload_crc), so only the headers are read
 * here; for a short frame it is cheaper to read the whole frame once more. A frame that stays in
 * this daemon may have no ICRC (pipeline/icrc.h).
 */
#include <errno.h>
#include "context/path_class.h"
#include "pipeline/train.h"
#include "req_pkt_gen.h"
#include "wire/crc.h"
#include "wire/run.h"

struct rpg {
	uint16_t ip_id; /* IPv4 identification of the last packet */
};

int rpg_create(struct engine *e)
{
	e->rpg = engine_alloc(e, "rpg", sizeof(struct rpg));
	return e->rpg ? 0 : -ENOMEM;
}

void rpg_destroy(struct engine *e)
{
	rte_free(e->rpg);
	e->rpg = NULL;
}

/* The template of a datagram, from the port's address p->ud_gid to the destination of its address
 * unit. */
static void datagram_template(struct engine *e, const struct qp *q, const struct packet *p,
			      struct wire_template *t)
{
	struct wire_path path = e->gids[p->ud_gid];

	path.sport = wire_udp_source_port_ud(qp_number(q));
	path_set_class(e, &path, p->ud_tclass, p->ud_sl);
	path.ttl = p->ud_hops ? p->ud_hops : WIRE_TTL_DEFAULT;
	path.flow_label = p->ud_flow;
	memcpy(path.dst_mac, p->ud_dmac, sizeof(path.dst_mac));
	memcpy(path.dst_ip, p->ud_dip, sizeof(path.dst_ip));
	wire_template_build(t, &path);
}

/* Stores the ICRC of a frame that build() has made. This is a separate loop over the burst:
 * directly after the stores of the headers, the wide loads would have to wait for them. */
static inline void finish_icrc(struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);
	uint8_t *payload = payload_of(m);
	const uint8_t *l3 = (uint8_t *)m->buf_addr + m->data_off + p->l3_offset;
	uint32_t headers = payload - l3, bytes = p->payload_bytes, pad = p->headers.pad, crc;

	if (p->packets > 1) {
		train_put_icrcs(m, p);
		return;
	}
	if (!(p->flags & PACKET_CRC)) {
		crc = wire_icrc(l3, headers + bytes + pad, p->is_ipv6);
	} else {
		crc = pad ? wire_crc(p->payload_crc, payload + bytes, pad) : p->payload_crc;
		crc = ~wire_crc_combine(wire_icrc_headers(l3, headers, p->is_ipv6), crc,
					bytes + pad);
	}
	wire_icrc_store(payload + bytes + pad, crc);
}

/*
 * A run: consecutive packets of one connection in a burst, with headers that differ only in IPv4
 * identification, AckReq, PSN and extension headers. The rest is copied from the first one.
 */
struct rpg_run {
	const struct qp *q;   /* NULL: none */
	const uint8_t *model; /* the first packet's headroom */
	struct qp_way way;
	uint32_t payload_bytes, pad;
	uint8_t opcode, se, migreq;
	uint8_t l3_offset, is_ipv6, transport_bytes;
	bool icrc_omitted;
	uint16_t data_off, data_len; /* of each frame */
};

static inline bool rpg_run_continues(const struct rpg_run *t, const struct qp *q,
				     const struct packet *p)
{
	struct qp_way way = qp_way(q);

	return t->q == q && memcmp(&way, &t->way, sizeof(way)) == 0 &&
	       p->payload_bytes == t->payload_bytes && p->headers.opcode == t->opcode &&
	       p->headers.se == t->se;
}

/* Describes the run that p may begin, with that template. */
static inline void rpg_run_describe(struct rpg_run *t, const struct engine *e,
				    const struct packet *p, const struct wire_template *of)
{
	t->payload_bytes = p->payload_bytes;
	t->pad = -p->payload_bytes & 3;
	t->opcode = p->headers.opcode;
	t->se = p->headers.se;
	t->migreq = qp_migreq(t->way);
	t->l3_offset = of->l3_offset;
	t->is_ipv6 = of->is_ipv6;
	t->icrc_omitted = icrc_omitted(e->settings.icrc, of);
	t->transport_bytes = wire_opcodes[t->opcode].header_bytes;
	t->data_off = HEADROOM_BYTES - t->transport_bytes - of->encap_bytes;
	t->data_len =
		of->encap_bytes + t->transport_bytes + t->payload_bytes + t->pad + WIRE_ICRC_BYTES;
}

/* Writes the headers of a packet that may begin a run. */
static void rpg_stamp_first(struct engine *e, struct rpg_run *t, const struct qp *q,
			    struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);
	uint8_t *room = m->buf_addr;
	unsigned spread = qp_spread(e, q);
	struct wire_template datagram;
	const struct wire_template *of;

	t->way = qp_way(q);
	of = &qp_path_at(q, t->way.path)->template;
	if (q->service == SERVICE_UD) {
		datagram_template(e, q, p, &datagram);
		of = &datagram;
	}
	rpg_run_describe(t, e, p, of);
	p->headers.pad = t->pad;
	p->headers.migreq = t->migreq;
	wire_stamp(room + t->data_off, of, t->data_len - of->encap_bytes, ++e->rpg->ip_id);
	if (unlikely(spread > 1))
		wire_stamp_port(room + t->data_off, of, packet_port(p, spread));
	wire_write_transport(room + HEADROOM_BYTES - t->transport_bytes, &p->headers);
	t->q = q->service == SERVICE_UD || spread > 1 ? NULL : q;
	t->model = room;
}

/* Writes the headers of a packet that continues the run. */
static inline void rpg_stamp_next(struct engine *e, const struct rpg_run *t, struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);
	uint8_t *room = m->buf_addr;

	p->headers.pad = t->pad;
	p->headers.migreq = t->migreq;
	memcpy(room, t->model, HEADROOM_BYTES);
	e->rpg->ip_id++;
	if (!t->is_ipv6)
		wire_renumber(room + t->data_off + t->l3_offset, e->rpg->ip_id);
	wire_write_differing(room + HEADROOM_BYTES - t->transport_bytes, &p->headers);
}

/* Makes the frame; the payload is at HEADROOM_BYTES of the buffer. True: the ICRC is still
 * missing. */
static inline bool build(struct engine *e, struct rpg_run *t, const struct qp *q,
			 struct rte_mbuf *m)
{
	struct packet *p = packet_of(m);
	uint8_t *end = payload_of(m) + p->payload_bytes;
	bool omitted;

	if (rpg_run_continues(t, q, p))
		rpg_stamp_next(e, t, m);
	else
		rpg_stamp_first(e, t, q, m);
	p->l3_offset = t->l3_offset;
	p->is_ipv6 = t->is_ipv6;
	m->data_off = t->data_off;
	m->data_len = m->pkt_len = t->data_len;
	p->flags |= PACKET_BUILT;
	omitted = p->packets > 1 || p->flags & PACKET_REF ? !p->icrcs : t->icrc_omitted;
	m->ol_flags = omitted ? ICRC_OMITTED : 0;
	if (p->packets > 1) {
		m->ol_flags |= FRAME_TRAIN;
		m->pkt_len *= p->packets;
		e->rpg->ip_id += (uint16_t)(p->packets - 1);
	}
	if (p->flags & PACKET_REF) {
		m->ol_flags |= PAYLOAD_REF;
		if (omitted && engine_trains(e)) /* nobody reads what follows the reference */
			return false;
	}
	if (t->pad)
		memset(end, 0, t->pad);
	if (omitted)
		wire_icrc_store(end + t->pad, 0);
	return !omitted;
}

/* The queue pair of p; NULL: it has been reset or destroyed. */
static inline const struct qp *packet_qp(const struct engine *e, const struct rpg_run *t,
					 const struct packet *p)
{
	const struct qp *q = t->q;

	if (!q || qp_number(q) != p->qpn)
		q = qp_find(e->qps, p->qpn);
	return likely(q && q->epoch == p->epoch) ? q : NULL;
}

/* Builds and passes on what came through one channel. */
static unsigned take(struct engine *e, enum channel_id from, unsigned room)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[from], m, RTE_MIN(room, (unsigned)BURST)), out = 0;
	uint64_t unfinished = 0; /* those built here that lack their ICRC, by bit */
	uint32_t coupled = 0;
	struct rpg_run run = {.q = NULL};

	for (unsigned i = 0; i < n; i++) {
		struct packet *p = packet_of(m[i]);
		const struct qp *q = packet_qp(e, &run, p);

		if (i + 1 < n)
			rte_prefetch0(packet_of(m[i + 1]));
		if (unlikely(!q)) {
			rte_pktmbuf_free(m[i]);
			continue;
		}
		/* One that was built before keeps its place: go-back-N is about the order. */
		if (likely(!(p->flags & PACKET_BUILT)))
			unfinished |= (uint64_t)build(e, &run, q, m[i]) << out;
		if (unlikely(p->flags & PACKET_TIMED)) {
			p->flags &= ~PACKET_TIMED;
			m[i]->ol_flags |= FRAME_TIMED;
		}
		coupled += p->packets - 1;
		m[out++] = m[i];
	}
	for (; unfinished; unfinished &= unfinished - 1)
		finish_icrc(m[rte_bsf64(unfinished)]);
	channel_note_coupled(&e->channel[CHANNEL_RPG_TXA], coupled);
	if (out)
		channel_put(&e->channel[CHANNEL_RPG_TXA], m, out);
	return n;
}

static const enum channel_id inputs[] = {CHANNEL_RTC_RPG, CHANNEL_RRC_RPG};

static __rte_noinline unsigned rpg_work(struct engine *e)
{
	unsigned room = channel_room(&e->channel[CHANNEL_RPG_TXA]), total = 0, n;

	for (unsigned i = 0; i < RTE_DIM(inputs); i++) {
		do {
			n = take(e, inputs[i], room);
			room -= n;
			total += n;
		} while (n == BURST);
	}
	return total;
}

unsigned rpg_poll(struct engine *e)
{
	return channels_idle(e->channel, inputs, RTE_DIM(inputs)) ? 0 : rpg_work(e);
}
