/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring ports: two HCAs of one daemon, connected by a pair of rings, or one HCA looped back by one
 * ring. No driver in between: transmit passes the receiver the very frame, or a clone if the sender
 * keeps a reference. A full ring is back pressure, never loss. While the other end is not started
 * the link is down and frames are dropped, as on a cable.
 *
 * Ports of several queues have a ring from each queue to each of the far end, with one producer and
 * one consumer: a frame goes to the queue of its queue pair's engine (struct link_spread).
 *
 * The wire outlives either end: it is freed with the second of the two ports.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/ring_move.h"
#include "data_path.h"
#include "wire/encap.h"
#include "wire/psn.h"

/* One of several queues: its rings from and to those of the far end. */
struct ring_spread {
	struct rte_ring *from[PORT_QUEUES_MAX], *to[PORT_QUEUES_MAX]; /* create */
	unsigned int count;					      /* create: of each */
	unsigned int turn;	       /* queue: whose frames are taken first */
	const struct link_spread *far; /* create: where frames are to arrive */
} __rte_cache_aligned;

struct ring_wire {
	struct port *end[2]; /* control; NULL: none (any more) */
	/* Frames towards end i, from a queue of the other one, to one of its own. */
	struct rte_ring *to[2][PORT_QUEUES_MAX][PORT_QUEUES_MAX];
	struct link_spread *arrivals[2]; /* of end i; NULL: one queue */
	struct ring_spread spread[2][PORT_QUEUES_MAX];
	unsigned int queues;
	bool self;	     /* both ends are the same port */
	unsigned int number; /* counts wires: a port that comes later may have the
						    index of the one that made it */
};

/* ---- several queues ---- */

static __rte_noinline uint16_t spread_rx(struct ring_spread *s, struct rte_mbuf **frames,
					 uint16_t n)
{
	unsigned int got = 0, from = s->turn;

	for (unsigned int i = 0; i < s->count && got < n; i++) {
		got += ring_take(s->from[from], (void **)frames + got, n - got);
		from = from + 1 == s->count ? 0 : from + 1;
	}
	s->turn = s->turn + 1 == s->count ? 0 : s->turn + 1;
	return (uint16_t)got;
}

static bool spread_pending(const struct ring_spread *s)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!ring_empty(s->from[i]))
			return true;
	return false;
}

/* Where a frame is to arrive. What is not RoCE is sorted out wherever it does. */
static inline unsigned int spread_queue(const struct ring_spread *s, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned int at = wire_guess_qpn_at(frame, m->data_len);
	uint32_t word;

	if (unlikely(!at))
		return 0;
	memcpy(&word, frame + at, sizeof(word));
	return link_queue(s->far, rte_be_to_cpu_32(word) & PSN_MASK);
}

/*
 * How many frames from the front, at most BURST, may go; to[]: into which rings, or `count`. A full
 * ring to the engine with our number is back pressure. Frames for another one are dropped then: an
 * engine that does not keep up must not hold up all those that have something for it.
 */
static inline uint16_t spread_room(const struct port_queue *q, struct rte_mbuf *const *frames,
				   uint8_t *to, uint16_t n)
{
	const struct ring_spread *s = q->spread;
	uint32_t room[PORT_QUEUES_MAX];
	uint16_t i;

	for (unsigned int k = 0; k < s->count; k++)
		room[k] = ring_room(s->to[k]);
	for (i = 0; i < n; i++) {
		to[i] = (uint8_t)spread_queue(s, frames[i]);
		if (likely(room[to[i]]))
			room[to[i]]--;
		else if (to[i] == q->id)
			break;
		else
			to[i] = (uint8_t)s->count;
	}
	return i;
}

static void spread_put(struct port_queue *q, struct rte_mbuf *const *frames, const uint8_t *to,
		       uint16_t n)
{
	const struct ring_spread *s = q->spread;
	struct rte_mbuf *out[BURST];

	for (unsigned int k = 0; k <= s->count; k++) {
		unsigned int count = 0;

		for (uint16_t i = 0; i < n; i++) {
			out[count] = frames[i];
			count += to[i] == k;
		}
		if (!count)
			continue;
		if (likely(k < s->count)) {
			ring_put(s->to[k], (void **)out, count);
			continue;
		}
		queue_count(q, PORT_COUNTER_drop_tx_engine_full, frames_packets(out, count));
		rte_pktmbuf_free_bulk(out, count);
	}
}

static __rte_noinline uint16_t spread_tx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	struct rte_mbuf *out[BURST];
	uint8_t to[BURST];
	uint16_t sent = 0;

	while (sent < n) {
		uint16_t want = RTE_MIN(n - sent, (int)BURST);
		uint16_t fit = spread_room(q, frames + sent, to, want);
		uint16_t done = fit ? make_receivable(q, frames + sent, out, fit) : 0;

		spread_put(q, out, to, done);
		sent += done;
		if (done < want)
			break;
	}
	return sent;
}

/* ---- one queue ---- */

static uint16_t ring_raw_rx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	if (unlikely(!q->rx_ring))
		n = spread_rx(q->spread, frames, n);
	else
		n = ring_take(q->rx_ring, (void **)frames, n);
	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(frames[i]);
	return n;
}

static uint16_t ring_raw_tx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	struct rte_mbuf *out[BURST];
	uint16_t room, sent = 0;

	if (unlikely(!q->tx_ring))
		return spread_tx(q, frames, n);
	room = ring_room(q->tx_ring);
	n = RTE_MIN(n, room);
	while (sent < n) {
		uint16_t want = RTE_MIN(n - sent, (int)BURST);
		uint16_t done = make_receivable(q, frames + sent, out, want);

		if (likely(done))
			ring_put(q->tx_ring, (void **)out, done);
		sent += done;
		if (done < want)
			break;
	}
	return sent;
}

static uint16_t ring_rx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			      uint16_t n)
{
	struct port *port = (struct port *)link;

	return rx_frames(&port->queue[queue], frames, n, ring_raw_rx);
}

static bool ring_rx_pending(struct link_port *link, uint16_t queue)
{
	struct port_queue *q = &((struct port *)link)->queue[queue];

	if (unlikely(!q->rx_ring))
		return spread_pending(q->spread) || has_pending(q);
	return !ring_empty(q->rx_ring) || has_pending(q);
}

static uint16_t ring_tx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			      uint16_t n)
{
	struct port *port = (struct port *)link;

	return tx_frames(&port->queue[queue], frames, n, ring_raw_tx);
}

static uint16_t ring_tx_plain(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	return tx_frames_plain(q, frames, n, ring_raw_tx);
}

/* The port that config->peer names, if it names this one and is not connected yet; or NULL. */
static struct port *find_peer(const struct port *port)
{
	for (unsigned int i = 0; i < PORTS_MAX; i++) {
		struct port *p = port_at(i);

		if (p && p != port && p->config.type == PORT_RING && p->wire &&
		    !p->wire->end[!p->wire_side] &&
		    strcmp(p->config.name, port->config.peer) == 0 &&
		    strcmp(p->config.peer, port->config.name) == 0)
			return p;
	}
	return NULL;
}

static void drop_frames(struct rte_ring *ring)
{
	void *m;

	while (rte_ring_sc_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
}

/* Drops all that is on its way to that end. */
static void drop_towards(struct ring_wire *wire, unsigned int side)
{
	for (unsigned int i = 0; i < wire->queues * wire->queues; i++)
		drop_frames(wire->to[side][i / wire->queues][i % wire->queues]);
}

static void free_rings(struct ring_wire *wire, unsigned int side)
{
	for (unsigned int i = 0; i < PORT_QUEUES_MAX * PORT_QUEUES_MAX; i++) {
		struct rte_ring *ring = wire->to[side][i / PORT_QUEUES_MAX][i % PORT_QUEUES_MAX];

		if (!ring)
			continue;
		drop_frames(ring);
		rte_ring_free(ring);
	}
	free(wire->arrivals[side]);
}

static void free_wire(struct ring_wire *wire)
{
	free_rings(wire, 0);
	if (!wire->self)
		free_rings(wire, 1);
	free(wire);
}

static struct rte_ring *new_ring(const struct ring_wire *wire, unsigned int side, unsigned int from,
				 unsigned int to, int socket)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "wire%u_%u_%u_%u", wire->number, side, from, to);
	return rte_ring_create(name, PORT_RING_FRAMES / wire->queues, socket,
			       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

/* False: no memory. */
static bool make_rings(struct ring_wire *wire, unsigned int side, int socket)
{
	for (unsigned int from = 0; from < wire->queues; from++) {
		for (unsigned int to = 0; to < wire->queues; to++) {
			wire->to[side][from][to] = new_ring(wire, side, from, to, socket);
			if (!wire->to[side][from][to])
				return false;
		}
	}
	if (wire->queues > 1)
		wire->arrivals[side] = calloc(1, sizeof(struct link_spread));
	return wire->queues == 1 || wire->arrivals[side];
}

static struct ring_wire *new_wire(struct port *port)
{
	static unsigned int wires;
	const size_t bytes = RTE_ALIGN(sizeof(struct ring_wire), RTE_CACHE_LINE_SIZE);
	struct ring_wire *wire = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	const int socket = port->config.socket;

	if (!wire)
		return NULL;
	memset(wire, 0, sizeof(*wire));
	wire->number = wires++;
	wire->queues = port->config.queues;
	wire->self = strcmp(port->config.name, port->config.peer) == 0;
	if (!make_rings(wire, 0, socket) || (!wire->self && !make_rings(wire, 1, socket))) {
		LOG(ERR, "port %s: no ring: %s", port->config.name, rte_strerror(rte_errno));
		free_wire(wire);
		return NULL;
	}
	return wire;
}

/* Connects a queue to the rings from and to the far end. */
static void connect_queue(struct port *port, unsigned int q)
{
	struct ring_wire *wire = port->wire;
	/* Towards both ends of a looped wire lead the same rings. */
	const unsigned int near = port->wire_side, far = wire->self ? near : !near;
	struct ring_spread *s = &wire->spread[near][q];

	if (wire->queues == 1) {
		port->queue[q].rx_ring = wire->to[near][q][q];
		port->queue[q].tx_ring = wire->to[far][q][q];
		return;
	}
	*s = (struct ring_spread){.count = wire->queues, .far = wire->arrivals[far]};
	for (unsigned int i = 0; i < wire->queues; i++) {
		s->from[i] = wire->to[near][i][q];
		s->to[i] = wire->to[far][q][i];
	}
	port->queue[q].spread = s;
}

static int ring_create(struct port *port)
{
	struct port *peer = find_peer(port);

	if (peer && peer->config.queues != port->config.queues) {
		LOG(ERR, "port %s: has %u queues, its peer %s %u", port->config.name,
		    port->config.queues, peer->config.name, peer->config.queues);
		return -EINVAL;
	}
	port->wire = peer ? peer->wire : new_wire(port);
	if (!port->wire)
		return -ENOMEM;
	port->wire_side = peer ? !peer->wire_side : 0;
	port->wire->end[port->wire_side] = port;
	if (port->wire->arrivals[port->wire_side]) /* of another HCA that was here before */
		memset(port->wire->arrivals[port->wire_side], 0, sizeof(struct link_spread));
	port->wire_returns = port->wire->self;
	if (port->wire->self)
		port->wire->end[1] = port;
	for (unsigned int q = 0; q < port->config.queues; q++)
		connect_queue(port, q);
	port->link.spread = port->wire->arrivals[port->wire_side];
	port->mtu_bytes = port->config.mtu_bytes ? port->config.mtu_bytes : MTU_FOR_ROCE_4096;
	snprintf(port->driver_name, sizeof(port->driver_name), "ring");
	return 0;
}

static void ring_destroy(struct port *port)
{
	struct ring_wire *wire = port->wire;

	if (!wire)
		return;
	wire->end[port->wire_side] = NULL;
	/* they may refer to the sender's memory */
	drop_towards(wire, wire->self ? 0 : !port->wire_side);
	if (wire->self || !wire->end[!port->wire_side])
		free_wire(wire);
	port->wire = NULL;
}

/* The link is up at both ends while both are started. */
static void update_link(struct ring_wire *wire)
{
	bool up = wire->end[0] && wire->end[0]->started && wire->end[1] && wire->end[1]->started;

	for (unsigned int i = 0; i < 2; i++) {
		if (wire->end[i])
			port_set_link(wire->end[i], up);
	}
}

static int ring_start(struct port *port)
{
	port->started = true;
	update_link(port->wire);
	return 0;
}

/* This end no longer receives: frames in flight to it are lost, and no more may be sent. */
static void ring_stop(struct port *port)
{
	port->started = false;
	update_link(port->wire);
	drop_towards(port->wire, port->wire_side);
}

static void ring_poll(struct port *port, uint64_t now_ms)
{
	(void)now_ms;
	update_link(port->wire);
}

static uint32_t ring_speed(struct port *port)
{
	(void)port;
	return 100000;
}

const struct port_driver ring_port_driver = {
	.create = ring_create,
	.destroy = ring_destroy,
	.start = ring_start,
	.stop = ring_stop,
	.poll = ring_poll,
	.speed_mbps = ring_speed,
	.rx_burst = ring_rx_burst,
	.rx_pending = ring_rx_pending,
	.tx_burst = ring_tx_burst,
	.tx_plain = ring_tx_plain,
};
