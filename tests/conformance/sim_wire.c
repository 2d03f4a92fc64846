/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire of a simulation: faults, then straight to the other node or through the network. */
#include <stdlib.h>
#include <string.h>
#include "pipeline/train.h"
#include "sim.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/run.h"

#define WIRE_NS 1000u /* one way, without a network */

static bool chance(struct sim *s, uint32_t ppm)
{
	return ppm && sim_random(s) % 1000000 < ppm;
}

/* The same for what harms a frame, which may have a limit. */
static bool hurt(struct sim *s, uint32_t ppm)
{
	if (!chance(s, ppm) || (s->faults.most_lost && s->lost >= s->faults.most_lost))
		return false;
	s->lost++;
	return true;
}

static uint64_t random_delay(struct sim *s)
{
	return sim_random(s) % (s->faults.delay_ns ? s->faults.delay_ns : 20000);
}

/* How much later a reordered frame arrives. A delay that a Loss timer takes for a loss counts as
 * one, a longer one as several. */
static uint64_t reorder_delay(struct sim *s)
{
	uint64_t delay = chance(s, s->faults.reorder_ppm) ? random_delay(s) : 0;
	uint32_t as_losses = delay < 250000 ? 0 : 1 + delay / 1000000;

	if (s->faults.most_lost && s->lost + as_losses > s->faults.most_lost)
		return delay % 20000;
	s->lost += as_losses;
	return delay;
}

static int destination(const struct sim *s, int from, const uint8_t *frame)
{
	return s->nodes == 2 ? !from : frame[5] - 1;
}

/* What is corrupted has an ICRC, by which it shows; a frame that refers to its payload does not hold
 * what could be corrupted, and is lost. */
static void corrupt(struct sim *s, struct rte_mbuf *m, unsigned parts)
{
	unsigned bytes = m->data_len + (m->ol_flags & ICRC_OMITTED ? 0 : parts);

	icrc_complete(m);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + sim_random(s) % (bytes - 14)) ^=
		1u << sim_random(s) % 8;
}

/* What follows a frame in its buffer: a train may have parts. */
static unsigned parts_bytes(const uint8_t *frame, unsigned bytes, uint64_t marks, uint32_t packets)
{
	struct wire_frame f;

	if (packets == 1 || marks & PAYLOAD_REF || wire_parse_frame(frame, bytes, &f) != WIRE_OK)
		return 0;
	return f.payload_offset +
	       train_part_at(train_parts(f.h.opcode, f.payload_bytes, !(marks & ICRC_OMITTED)),
			     packets) -
	       bytes;
}

/* marks: FRAME_MARKS or some of them. */
static void wire_put(struct sim *s, int from, int to, const uint8_t *frame, unsigned bytes,
		     uint64_t marks, uint32_t packets, uint64_t delay_ns)
{
	struct sim_wire_end *end = &s->end[to];
	unsigned parts = parts_bytes(frame, bytes, marks, packets);
	struct rte_mbuf *m;

	if (end->count == SIM_WIRE_FRAMES || !(m = rte_pktmbuf_alloc(s->packets))) {
		s->no_room++;
		return;
	}
	memcpy(rte_pktmbuf_append(m, bytes), frame, bytes + parts);
	m->pkt_len *= packets;
	m->ol_flags |= marks;
	if (!(marks & PAYLOAD_REF) && hurt(s, s->faults.corrupt_ppm))
		corrupt(s, m, parts);
	if (s->net)
		sim_network_send(s->net, from, to, m, s->now_ns, delay_ns);
	else
		end->queue[end->count++] = (struct sim_frame){m, s->now_ns + WIRE_NS + delay_ns};
}

/* With a network, frames are lost at its far end: they have taken their time on the links. */
static uint32_t loss_here(const struct sim *s, uint64_t marks)
{
	return (s->net ? 0 : s->faults.loss_ppm) +
	       (marks & PAYLOAD_REF ? s->faults.corrupt_ppm : 0);
}

static void send_marked(struct sim *s, int from, const uint8_t *frame, unsigned bytes,
			uint64_t marks, uint32_t packets)
{
	uint64_t mask = from ? s->faults.drop_mask_b : s->faults.drop_mask;
	uint64_t number = s->end[from].sent++;
	int to = destination(s, from, frame);

	if (s->tap && s->tap(s, from, frame, bytes, s->tap_arg))
		return;
	if (number < 64 && mask >> number & 1) {
		s->lost++;
		return;
	}
	if (hurt(s, loss_here(s, marks)))
		return;
	wire_put(s, from, to, frame, bytes, marks, packets, reorder_delay(s));
	if (frame[0] & 1) /* to a group: ports bring it back, too */
		wire_put(s, from, from, frame, bytes, marks, packets, 0);
	if (chance(s, s->faults.duplicate_ppm))
		wire_put(s, from, to, frame, bytes, marks, packets, random_delay(s));
}

void sim_wire_send(struct sim *s, int from, const uint8_t *frame, unsigned bytes)
{
	send_marked(s, from, frame, bytes, 0, 1);
}

/* A train leaves as one only if nothing can happen to a part of it, and nobody looks. */
static bool is_undivided(const struct sim *s)
{
	const struct sim_faults *f = &s->faults;

	return s->params.whole_trains || !(f->loss_ppm | f->duplicate_ppm | f->reorder_ppm |
						   f->corrupt_ppm | f->drop_mask | f->drop_mask_b ||
					   s->tap || s->net);
}

/* Fails unless a packet of the train m, with its headers in `frame`, has the ICRC that it would have
 * if it had been sent alone. */
static void check_icrc(const struct rte_mbuf *m, const uint8_t *frame, const struct wire_frame *f,
		       uint32_t skip)
{
	uint8_t whole[FRAME_BYTES_MAX];

	memcpy(whole, frame, m->data_len);
	if (m->ol_flags & PAYLOAD_REF &&
	    !payload_ref_copy(frame + f->payload_offset, skip, whole + f->payload_offset,
			      f->payload_bytes))
		return;
	if (wire_icrc(whole + f->l3_offset, f->transport_end - f->l3_offset, f->is_ipv6) !=
	    wire_icrc_load(whole + f->transport_end))
		abort();
}

/* Packet number `index` of a train, as if it had been sent alone. */
static void send_part(struct sim *s, int from, const struct rte_mbuf *m, uint32_t index)
{
	uint8_t frame[FRAME_BYTES_MAX];
	struct wire_frame f;
	uint32_t skip;

	if (!train_write_packet(frame, m, index, &skip) ||
	    wire_parse_frame(frame, m->data_len, &f) != WIRE_OK)
		abort();
	for (unsigned i = f.payload_offset + f.payload_bytes; i < f.transport_end; i++)
		if (!(m->ol_flags & PAYLOAD_REF) && frame[i]) /* the pad */
			abort();
	if (!(m->ol_flags & ICRC_OMITTED))
		check_icrc(m, frame, &f, skip);
	if (m->ol_flags & PAYLOAD_REF)
		payload_ref_part(frame + f.payload_offset, frame + f.payload_offset, skip,
				 f.payload_bytes);
	send_marked(s, from, frame, m->data_len, m->ol_flags & FRAME_MARKS & ~FRAME_TRAIN, 1);
}

/* As a driver does: with the payload in its place, if it is still there. */
static void send_read(struct sim *s, int from, const struct rte_mbuf *m)
{
	uint32_t headers = HEADROOM_BYTES - m->data_off, bytes;
	uint8_t frame[FRAME_BYTES_MAX];
	const uint8_t *at;

	memcpy(frame, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	if (payload_ref_find(frame + headers, &at, &bytes))
		return;
	if (headers + bytes + WIRE_ICRC_BYTES > m->data_len)
		abort();
	memcpy(frame + headers, at, bytes);
	if (m->ol_flags & ICRC_OMITTED && wire_icrc_load(frame + m->data_len - WIRE_ICRC_BYTES))
		abort(); /* the peer takes zeros only */
	send_marked(s, from, frame, m->data_len, m->ol_flags & ICRC_OMITTED, 1);
}

static void send_frame(struct sim *s, int from, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t packets = frame_packets(m);

	if (s->params.singly && m->ol_flags & PAYLOAD_REF)
		send_read(s, from, m);
	else if (packets == 1 || is_undivided(s))
		send_marked(s, from, frame, m->data_len, m->ol_flags & FRAME_MARKS, packets);
	else
		for (uint32_t i = 0; i < packets; i++)
			send_part(s, from, m, i);
}

static bool takes(const struct sim *s, int from)
{
	if (s->net)
		return sim_network_takes(s->net, from, s->now_ns);
	return !s->wire_room || s->end[!from].count < s->wire_room;
}

uint16_t sim_wire_tx(struct link_port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	struct sim_wire_end *end = (struct sim_wire_end *)port;
	struct sim *s = end->sim;

	for (unsigned i = 0; i < n; i++) {
		if (!takes(s, end->node))
			return i;
		send_frame(s, end->node, frames[i]);
		rte_pktmbuf_free(frames[i]);
	}
	return n;
}

/* Frames whose time has come, earliest first among equals by arrival in the queue. */
uint16_t sim_wire_rx(struct link_port *port, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	struct sim_wire_end *end = (struct sim_wire_end *)port;
	unsigned got = 0, kept = 0;

	if (!end->count)
		return 0;
	for (unsigned i = 0; i < end->count; i++) {
		if (got < n && end->queue[i].at_ns <= end->sim->now_ns)
			frames[got++] = end->queue[i].m;
		else
			end->queue[kept++] = end->queue[i];
	}
	end->count = kept;
	return got;
}

void sim_wire_arrive(struct sim *s)
{
	struct sim_wire_end *end;
	struct rte_mbuf *m;
	unsigned node;

	while (s->net && (m = sim_network_take(s->net, s->now_ns, &node))) {
		end = &s->end[node];
		if (end->count == SIM_WIRE_FRAMES)
			s->no_room++;
		if (end->count == SIM_WIRE_FRAMES || hurt(s, s->faults.loss_ppm))
			rte_pktmbuf_free(m);
		else
			end->queue[end->count++] = (struct sim_frame){m, s->now_ns};
	}
}

uint64_t sim_wire_due(const struct sim *s)
{
	uint64_t due = s->net ? sim_network_due(s->net) : UINT64_MAX;

	for (unsigned n = 0; n < s->nodes && s->node[n].hca; n++)
		for (unsigned i = 0; i < s->end[n].count; i++)
			due = RTE_MIN(due, s->end[n].queue[i].at_ns);
	return due;
}

unsigned sim_wire_count(const struct sim *s)
{
	unsigned count = s->net ? sim_network_count(s->net) : 0;

	for (unsigned n = 0; n < s->nodes; n++)
		count += s->end[n].count;
	return count;
}

void sim_wire_empty(struct sim *s)
{
	for (unsigned i = 0; i < s->nodes; i++) {
		for (unsigned k = 0; k < s->end[i].count; k++)
			rte_pktmbuf_free(s->end[i].queue[k].m);
		s->end[i].count = 0;
		s->end[i].sent = 0;
	}
	if (s->net)
		sim_network_empty(s->net);
}
