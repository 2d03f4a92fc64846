/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_LINK_PORT_H
#define LINK_LINK_PORT_H
/*
 * The seam between the HCA and whatever carries its frames: pmd-glue in the daemon, the simulated
 * wire in the conformance tests. lib/ knows no ports but this.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/limits.h"

struct rte_mbuf;

/*
 * Receive-side scaling by queue pair: the queue where frames for one are to arrive, which is its
 * engine's. Written when a queue pair is created, on the control thread; read by whoever sends.
 */
struct link_spread {
	uint32_t mask;				/* atomic: the bits of a QPN that are its index */
	uint8_t queue[1 << QPN_INDEX_BITS_MAX]; /* by index; atomic */
};

struct link_port {
	/*
	 * Up to n (1 at least) RoCE frames (Ethernet header first, destination UDP port 4791, IPv4
	 * or IPv6, whole in one segment) that arrived for this HCA on receive queue `queue`. The
	 * port has taken out all others. Ownership of the mbufs passes to the caller; each has its
	 * own private area (MESSAGE_PRIV_BYTES), whose second half the caller may overwrite, but
	 * its data may be shared with the sender and must not be written to. Only frames of this
	 * daemon have ICRC_OMITTED (pipeline/icrc.h), and those that were sent with it keep it.
	 * Stage: header_parse. Returns how many.
	 */
	uint16_t (*rx_burst)(struct link_port *port, uint16_t queue, struct rte_mbuf **frames,
			     uint16_t n);
	/*
	 * Cheaper than rx_burst: false if that would find nothing now, and the port has nothing
	 * else to do there. NULL: only rx_burst tells. Stage: header_parse.
	 */
	bool (*rx_pending)(struct link_port *port, uint16_t queue);
	/*
	 * Sends up to n frames, one segment each, refcnt 1 or more; some may refer to their payload
	 * if the port takes that (pipeline/frame_marks.h). Takes ownership of one
	 * reference to each frame taken and returns how many; the rest stay with the caller. The
	 * port never changes data, length or private area of a frame. One with ICRC_OMITTED
	 * may go nowhere but to a port of this daemon. Stage: header_parse.
	 */
	uint16_t (*tx_burst)(struct link_port *port, uint16_t queue, struct rte_mbuf **frames,
			     uint16_t n);
	/*
	 * Changes when the port has failed over, or a failed link has come back: packets in flight
	 * are lost, and retransmission helps from now on. Atomic; written by the port, on any
	 * thread.
	 */
	uint32_t relinked;
	/*
	 * Changes when frames have left that nobody gave to tx_burst since: the control thread's,
	 * and such as were delayed. Atomic; written by the port, on its queues' lcores.
	 */
	uint32_t sent_later;
	/*
	 * Not 0: frames may arrive here without anybody waking the lcore: a driver's, or such as are
	 * delayed on the way. Atomic; written by the port, on any thread.
	 */
	uint32_t unannounced;
	/* Memory of the port: where frames are to arrive. NULL: it cannot choose, and HeaderParser
	 * hands them on. */
	struct link_spread *spread;
};

/* Frames for the queue pair are to arrive at its engine. Control thread. */
static inline void link_set_queue(struct link_spread *s, uint32_t qpn, uint32_t index_mask,
				  unsigned engine)
{
	__atomic_store_n(&s->mask, index_mask, __ATOMIC_RELAXED);
	__atomic_store_n(&s->queue[qpn & index_mask], (uint8_t)engine, __ATOMIC_RELAXED);
}

/* The queue where frames for it are to arrive: any, of one that does not exist. Any lcore. */
static inline unsigned link_queue(const struct link_spread *s, uint32_t qpn)
{
	return __atomic_load_n(&s->queue[qpn & __atomic_load_n(&s->mask, __ATOMIC_RELAXED)],
			       __ATOMIC_RELAXED);
}

#endif
