/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring ports: two HCAs of one daemon, connected by a pair of rings per queue, or one HCA looped
 * back by one ring. No driver in between: transmit passes the receiver the very frame, or a clone
 * if the sender keeps a reference. A full ring is back pressure, never loss. While the other end is
 * not started the link is down and frames are dropped, as on a cable.
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

struct ring_wire {
	struct port *end[2];			 /* control; NULL: none (any more) */
	struct rte_ring *to[2][PORT_QUEUES_MAX]; /* frames towards end i */
	bool self;				 /* both ends are the same port */
	unsigned int number; /* counts wires: a port that comes later may have the
						    index of the one that made it */
};

static uint16_t ring_raw_rx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	n = ring_take(q->rx_ring, (void **)frames, n);
	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(frames[i]);
	return n;
}

static uint16_t ring_raw_tx(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	struct rte_mbuf *out[BURST];
	uint16_t room = ring_room(q->tx_ring);
	uint16_t sent = 0;

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

static void free_wire(struct ring_wire *wire)
{
	for (unsigned int i = 0; i < 2 * PORT_QUEUES_MAX; i++) {
		struct rte_ring *ring = wire->to[i % 2][i / 2];

		if (!ring || (wire->self && i % 2))
			continue;
		drop_frames(ring);
		rte_ring_free(ring);
	}
	free(wire);
}

static struct rte_ring *new_ring(const struct ring_wire *wire, unsigned int side,
				 unsigned int queue, int socket)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "wire%u_%u_%u", wire->number, side, queue);
	return rte_ring_create(name, PORT_RING_FRAMES, socket,
			       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

static struct ring_wire *new_wire(struct port *port)
{
	static unsigned int wires;
	struct ring_wire *wire = calloc(1, sizeof(*wire));
	const int socket = port->config.socket;

	if (!wire)
		return NULL;
	wire->number = wires++;
	wire->self = strcmp(port->config.name, port->config.peer) == 0;
	for (unsigned int q = 0; q < port->config.queues; q++) {
		wire->to[0][q] = new_ring(wire, 0, q, socket);
		wire->to[1][q] = wire->self ? wire->to[0][q] : new_ring(wire, 1, q, socket);
		if (!wire->to[0][q] || !wire->to[1][q]) {
			LOG(ERR, "port %s: no ring: %s", port->config.name,
			    rte_strerror(rte_errno));
			free_wire(wire);
			return NULL;
		}
	}
	return wire;
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
	port->wire_returns = port->wire->self;
	if (port->wire->self)
		port->wire->end[1] = port;
	for (unsigned int q = 0; q < port->config.queues; q++) {
		port->queue[q].rx_ring = port->wire->to[port->wire_side][q];
		port->queue[q].tx_ring = port->wire->to[!port->wire_side][q];
	}
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
	for (unsigned int q = 0; q < port->config.queues; q++)
		drop_frames(port->queue[q].tx_ring); /* they may refer to the sender's memory */
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
	for (unsigned int q = 0; q < port->config.queues; q++)
		drop_frames(port->queue[q].rx_ring);
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
