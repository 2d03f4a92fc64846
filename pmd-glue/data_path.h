/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_DATA_PATH_H
#define PMD_GLUE_DATA_PATH_H
/*
 * Receiving and transmitting, common to all port types. The hot parts are inline and take the raw
 * burst function as an argument, so that each type compiles to straight code; rare cases
 * (impairment, capture, loop, frames of the control thread) are in data_path.c behind one branch.
 * Queue's lcore.
 */
#include <rte_prefetch.h>

#include "base/ring_look.h"
#include "capture.h"
#include "classify.h"
#include "pipeline/train.h"
#include "port_internal.h"

typedef uint16_t raw_burst(struct port_queue *q, struct rte_mbuf **frames, uint16_t n);

/* link_port functions of a port that is not started: receives nothing, drops what is sent. */
uint16_t stopped_rx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			  uint16_t n);
uint16_t stopped_tx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			  uint16_t n);

/* A received frame that is not for the HCA: counted, then passed to the control thread or freed. */
void take_out(struct port_queue *q, struct rte_mbuf *m, enum port_counter_id what);

/* Sends frames queued by the control thread and the impairment. */
void send_pending(struct port_queue *q);

/*
 * Prepares frames, which their sender may keep, for a receiver in this daemon: out[i] is frames[i]
 * if nobody but its sender also holds it, or if it is a train; else a clone with its own private
 * area, which takes over the reference. Returns how many from the front were prepared; fewer than n
 * only if there were no clones left. out must not be frames.
 */
uint16_t make_receivable(struct port_queue *q, struct rte_mbuf *const *frames,
			 struct rte_mbuf **out, uint16_t n);

/* tx_plain for bursts that contain frames to the port itself, or to groups. */
uint16_t tx_with_loop(struct port_queue *q, struct rte_mbuf **frames, uint16_t n, raw_burst *raw);
/* The same while a capture runs. */
uint16_t tx_captured(struct port_queue *q, struct rte_mbuf **frames, uint16_t n, raw_burst *raw);
/* The same while the link is down: drops the frames. */
uint16_t tx_nowhere(struct port_queue *q, struct rte_mbuf **frames, uint16_t n);
/* tx_burst with impairment. */
uint16_t tx_impaired(struct port_queue *q, struct rte_mbuf **frames, uint16_t n);

/* Were frames ever impaired? */
static inline bool is_impaired(const struct port_queue *q)
{
	return __atomic_load_n(&q->impair, __ATOMIC_RELAXED) != NULL;
}

/* Is anything queued for send_pending() or on the loop? Reads lines that are nearly always
 * cached. */
static inline bool has_pending(const struct port_queue *q)
{
	return is_impaired(q) || (q->from_control && !ring_empty(q->from_control)) ||
	       !ring_empty(q->loop);
}

static inline bool is_captured(const struct port_queue *q)
{
	return __atomic_load_n(&q->captured, __ATOMIC_RELAXED);
}

static __rte_always_inline uint16_t sort_out(struct port_queue *q, struct rte_mbuf **frames,
					     uint16_t n)
{
	enum { AHEAD = 4 };
	const struct port_filter *filter = &q->port->filter;
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n && i < AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(frames[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = frames[i];
		enum port_counter_id what;

		if (i + AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(frames[i + AHEAD], void *));
		what = classify(filter, m);
		if (likely(what == PORT_COUNTER_rx_roce))
			frames[kept++] = m;
		else
			take_out(q, m, what);
	}
	if (kept)
		queue_count(q, PORT_COUNTER_rx_roce, frames_packets(frames, kept));
	return kept;
}

static __rte_always_inline uint16_t rx_frames(struct port_queue *q, struct rte_mbuf **frames,
					      uint16_t n, raw_burst *raw)
{
	uint16_t got = 0;

	if (unlikely(has_pending(q))) {
		send_pending(q);
		/* At most half of the burst, so that neither starves. */
		got = rte_ring_sc_dequeue_burst(q->loop, (void **)frames, (n + 1) / 2, NULL);
	}
	got += raw(q, frames + got, n - got);
	if (got == 0)
		return 0;
	if (unlikely(is_captured(q)))
		capture_frames(q, frames, got, CAPTURE_IN);
	return sort_out(q, frames, got);
}

/* Is it for the wire alone, neither for this port itself nor for a group? One branch for both. */
static inline bool is_outward(uint64_t own, const struct rte_mbuf *m)
{
	uint64_t to = load_mac(rte_pktmbuf_mtod(m, const uint8_t *));

	return likely(((to != own) & ~to & 1) != 0);
}

/* How many frames from the front are for the wire alone. */
static inline uint16_t count_outward(const struct port_queue *q, struct rte_mbuf *const *frames,
				     uint16_t n)
{
	uint64_t mac = q->port->filter.mac;
	uint16_t i = 0;

	while (i < n && is_outward(mac, frames[i]))
		i++;
	return i;
}

static __rte_always_inline uint16_t tx_frames_plain(struct port_queue *q, struct rte_mbuf **frames,
						    uint16_t n, raw_burst *raw)
{
	uint32_t packets;
	uint16_t sent;

	if (unlikely(!port_link_is_up(q->port)))
		return tx_nowhere(q, frames, n);
	if (unlikely(is_captured(q)))
		return tx_captured(q, frames, n, raw);
	if (unlikely(count_outward(q, frames, n) != n))
		return tx_with_loop(q, frames, n, raw);
	packets = frames_packets(frames, n); /* while they are ours */
	sent = raw(q, frames, n);
	if (unlikely(sent < n)) {
		packets -= frames_packets(frames + sent, n - sent);
		queue_count(q, PORT_COUNTER_tx_wire_full, 1);
	}
	queue_count(q, PORT_COUNTER_tx_frames, packets);
	return sent;
}

static __rte_always_inline uint16_t tx_frames(struct port_queue *q, struct rte_mbuf **frames,
					      uint16_t n, raw_burst *raw)
{
	if (unlikely(is_impaired(q)))
		return tx_impaired(q, frames, n);
	return tx_frames_plain(q, frames, n, raw);
}

#endif
