/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rare parts of receiving and transmitting: frames that are not RoCE, frames to the port
 * itself, the control thread's frames, impairment, capture. Queue's lcore; never blocks.
 */
#include <rte_cycles.h>

#include "base/limits.h"
#include "data_path.h"
#include "impairment.h"
#include "pipeline/icrc.h"
#include "pipeline/train.h"

uint16_t stopped_rx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			  uint16_t n)
{
	(void)link, (void)queue, (void)frames, (void)n;
	return 0;
}

uint16_t stopped_tx_burst(struct link_port *link, uint16_t queue, struct rte_mbuf **frames,
			  uint16_t n)
{
	struct port *port = (struct port *)link;

	return tx_nowhere(&port->queue[queue], frames, n);
}

uint16_t tx_nowhere(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	queue_count(q, PORT_COUNTER_drop_tx_link_down, frames_packets(frames, n));
	rte_pktmbuf_free_bulk(frames, n);
	return n;
}

static bool is_for_control(enum port_counter_id what)
{
	return what == PORT_COUNTER_rx_arp || what == PORT_COUNTER_rx_icmp ||
	       what == PORT_COUNTER_rx_icmpv6 || what == PORT_COUNTER_rx_igmp ||
	       what == PORT_COUNTER_rx_mld;
}

/* False: m stays the caller's. */
static bool pass_to_control(struct port_queue *q, struct rte_mbuf *m)
{
	uint64_t source = load_mac(rte_pktmbuf_mtod(m, const uint8_t *) + 6);

	if (!source_admit(&q->sources, source, rte_rdtsc(), rte_get_tsc_hz())) {
		queue_count(q, PORT_COUNTER_drop_rx_control_rate, 1);
		return false;
	}
	if (rte_ring_sp_enqueue(q->to_control, m) == 0)
		return true;
	queue_count(q, PORT_COUNTER_drop_rx_control_full, 1);
	return false;
}

void take_out(struct port_queue *q, struct rte_mbuf *m, enum port_counter_id what)
{
	queue_count(q, what, 1);
	if (!is_for_control(what) || !pass_to_control(q, m))
		rte_pktmbuf_free(m);
}

/* Attaches `clone` to m's data. It takes over the caller's reference to m. */
static void clone_in_place(struct rte_mbuf *clone, struct rte_mbuf *m)
{
	if (unlikely(!RTE_MBUF_DIRECT(m))) {
		rte_pktmbuf_attach(clone, m);
		rte_pktmbuf_free(m);
		return;
	}
	/*
	 * rte_pktmbuf_attach would take another reference and the caller drop its own: two atomic
	 * operations on a line that the sender's retransmit buffer reads too. Pass it on instead.
	 */
	clone->buf_addr = m->buf_addr;
	clone->buf_iova = m->buf_iova;
	clone->buf_len = m->buf_len;
	clone->priv_size = m->priv_size;
	clone->data_off = m->data_off;
	clone->data_len = m->data_len;
	clone->pkt_len = m->pkt_len;
	clone->port = m->port;
	clone->ol_flags = RTE_MBUF_F_INDIRECT | (m->ol_flags & FRAME_MARKS);
	clone->tx_offload = 0;
	clone->packet_type = 0;
}

/* May the receiver get the frame itself rather than a clone? If it has at most `references`, nobody
 * but its sender holds it, for a retransmission. A train always may: it is never sent twice,
 * although MultiQueue holds a reference for each of its messages. */
static inline bool goes_as_it_is(const struct rte_mbuf *m, uint16_t references)
{
	return rte_mbuf_refcnt_read(m) <= references || m->ol_flags & FRAME_TRAIN;
}

uint16_t make_receivable(struct port_queue *q, struct rte_mbuf *const *frames,
			 struct rte_mbuf **out, uint16_t n)
{
	/*
	 * The receiver may share a frame with the sender that keeps it for a retransmission: each
	 * uses its own half of the private area. A third reference means that an earlier
	 * transmission of the frame is still in flight. On an impaired port even a second one may
	 * be a duplicate, which impairment makes by reference.
	 */
	const uint16_t as_it_is = is_impaired(q) ? 1 : 2;
	uint16_t n_shared = 0;
	uint16_t used = 0;
	uint16_t i;
	struct rte_mbuf *clone[BURST];

	if (n > BURST)
		n = BURST;
	for (i = 0; i < n; i++)
		n_shared += !goes_as_it_is(frames[i], as_it_is);
	/* Straight from the pool: free mbufs have refcnt 1, no next, one segment. */
	if (n_shared && rte_mempool_get_bulk(q->port->clone_pool, (void **)clone, n_shared) != 0) {
		queue_count(q, PORT_COUNTER_tx_clone_empty, 1);
		n_shared = 0;
	}
	for (i = 0; i < n; i++) {
		/* Read again: references only decrease, so used <= n_shared holds. */
		if (goes_as_it_is(frames[i], as_it_is)) {
			out[i] = frames[i];
			continue;
		}
		if (used == n_shared)
			break;
		clone_in_place(clone[used], frames[i]);
		out[i] = clone[used++];
	}
	if (used < n_shared)
		rte_mempool_put_bulk(q->port->clone_pool, (void **)&clone[used], n_shared - used);
	return i;
}

/* Loops frames to the port itself back to the receiver of the same queue, as far as it has room. */
static uint16_t tx_loop(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	struct rte_mbuf *out[BURST];
	uint16_t room = ring_room(q->loop);
	uint16_t done;

	done = make_receivable(q, frames, out, RTE_MIN(n, room));
	queue_count(q, PORT_COUNTER_tx_looped, frames_packets(out, done));
	rte_ring_sp_enqueue_bulk(q->loop, (void **)out, done, NULL);
	return done;
}

static bool is_for_groups(const struct rte_mbuf *m)
{
	return *rte_pktmbuf_mtod(m, const uint8_t *) & 1;
}

static uint16_t count_inward(const struct port_queue *q, struct rte_mbuf *const *frames, uint16_t n)
{
	uint16_t i = 0;

	while (i < n && count_outward(q, &frames[i], 1) == 0 && !is_for_groups(frames[i]))
		i++;
	return i;
}

/* Is it RoCE to a group that this port may listen to, too, which the wire does not return? The
 * control thread's frames to groups are for others. */
static bool loops_too(const struct port *port, const struct rte_mbuf *m)
{
	return __atomic_load_n(&port->listens, __ATOMIC_RELAXED) && !port->wire_returns &&
	       classify(&port->filter, m) == PORT_COUNTER_rx_roce;
}

/* Sends a clone of a transmitted frame to the port's own receiver. Takes over a reference to m. */
static void loop_group(struct port_queue *q, struct rte_mbuf *m)
{
	struct rte_mbuf *clone = ring_room(q->loop) ? rte_pktmbuf_alloc(q->port->clone_pool) : NULL;

	if (unlikely(!clone)) {
		queue_count(q, PORT_COUNTER_drop_tx_group_loop, 1);
		rte_pktmbuf_free(m);
		return;
	}
	clone_in_place(clone, m);
	rte_ring_sp_enqueue(q->loop, clone);
	queue_count(q, PORT_COUNTER_tx_looped, 1);
	queue_count(q, PORT_COUNTER_tx_group_looped, 1);
}

/* One frame with a group's MAC address: to the wire, and perhaps to ourselves. 0: the wire is full.
 * The second reference is taken first, while no other thread can touch the frame. */
static uint16_t tx_group(struct port_queue *q, struct rte_mbuf **frame, raw_burst *raw)
{
	struct rte_mbuf *m = *frame;
	bool loops = loops_too(q->port, m);

	if (loops)
		rte_mbuf_refcnt_update(m, 1);
	if (raw(q, frame, 1) == 0) {
		if (loops)
			rte_mbuf_refcnt_update(m, -1);
		return 0;
	}
	if (loops)
		loop_group(q, m);
	return 1;
}

/* Sends the first frames that all go the same way. *run: how many there are. */
static uint16_t tx_run(struct port_queue *q, struct rte_mbuf **frames, uint16_t n, raw_burst *raw,
		       uint16_t *run)
{
	*run = count_outward(q, frames, n);
	if (*run)
		return raw(q, frames, *run);
	*run = 1;
	if (is_for_groups(frames[0]))
		return tx_group(q, frames, raw);
	*run = RTE_MIN(count_inward(q, frames, n), (uint16_t)BURST);
	return tx_loop(q, frames, *run);
}

uint16_t tx_with_loop(struct port_queue *q, struct rte_mbuf **frames, uint16_t n, raw_burst *raw)
{
	uint32_t packets = frames_packets(frames, n); /* while they are ours */
	uint16_t done = 0, run, sent;

	while (done < n) {
		sent = tx_run(q, frames + done, n - done, raw, &run);
		done += sent;
		if (sent < run) {
			queue_count(q, PORT_COUNTER_tx_wire_full, 1);
			break;
		}
	}
	queue_count(q, PORT_COUNTER_tx_frames, packets - frames_packets(frames + done, n - done));
	return done;
}

uint16_t tx_captured(struct port_queue *q, struct rte_mbuf **frames, uint16_t n, raw_burst *raw)
{
	uint16_t sent;

	/* Keep references: sent frames may be freed, but only those taken belong in the file. */
	for (uint16_t i = 0; i < n; i++)
		rte_mbuf_refcnt_update(frames[i], 1);
	sent = tx_with_loop(q, frames, n, raw);
	capture_frames(q, frames, sent, CAPTURE_OUT);
	rte_pktmbuf_free_bulk(frames, sent);
	for (uint16_t i = sent; i < n; i++)
		rte_mbuf_refcnt_update(frames[i], -1);
	return sent;
}

/* Lets the data path know that frames have left, which wakes those who may sleep. */
static void note_sent_later(struct port_queue *q)
{
	__atomic_fetch_add(&q->port->link.sent_later, 1, __ATOMIC_RELAXED);
}

static void send_due(struct port_queue *q, struct impairment *imp)
{
	struct rte_mbuf *out[BURST];
	uint64_t now = rte_rdtsc();
	uint16_t n, sent;

	do {
		n = impairment_due(imp, now, out, BURST);
		sent = n ? q->port->driver->tx_plain(q, out, n) : 0;
		impairment_sent(imp, sent);
		if (sent)
			note_sent_later(q);
	} while (n == BURST && sent == n);
}

/*
 * Frames with a reference to their payload, and trains, are exempt from faults: they cannot be
 * corrupted or split here, and the payload does not stay where it is while they are delayed. Only
 * those that were made before the port was impaired come here. False: the wire is full.
 */
static bool impair_one(struct port_queue *q, struct impairment *imp, struct rte_mbuf **frame,
		       uint64_t now)
{
	if (unlikely((*frame)->ol_flags & (PAYLOAD_REF | FRAME_TRAIN)))
		return q->port->driver->tx_plain(q, frame, 1) == 1;
	impairment_take(imp, *frame, now);
	return true;
}

uint16_t tx_impaired(struct port_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	struct impairment *imp = __atomic_load_n(&q->impair, __ATOMIC_ACQUIRE);
	uint64_t now = rte_rdtsc();
	uint16_t taken = 0;

	if (impairment_passes(imp))
		return q->port->driver->tx_plain(q, frames, n);
	while (taken < n && impairment_has_room(imp, now) &&
	       impair_one(q, imp, &frames[taken], now))
		taken++;
	send_due(q, imp);
	return taken;
}

static void send_impaired(struct port_queue *q)
{
	struct impairment *imp = __atomic_load_n(&q->impair, __ATOMIC_ACQUIRE);

	if (imp && !impairment_is_empty(imp))
		send_due(q, imp);
}

void send_pending(struct port_queue *q)
{
	struct rte_mbuf *out[BURST];
	uint16_t n, sent;

	send_impaired(q);
	if (!q->from_control)
		return;
	n = rte_ring_sc_dequeue_burst(q->from_control, (void **)out, BURST, NULL);
	if (n == 0)
		return;
	sent = q->port->driver->tx_plain(q, out, n);
	/* The requester will ask again: not worth queueing. */
	rte_pktmbuf_free_bulk(&out[sent], n - sent);
	note_sent_later(q);
}
