/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PACKET_AGAIN_H
#define REQUESTER_PACKET_AGAIN_H
/*
 * Makes the packets of a retransmission. Each function returns one reference, which the caller owns
 * and sends. NULL: no buffer, counted, or another lcore holds the entry of the payload's region;
 * ask again at the next poll. Stage requester_recv.
 */
#include "rrc_work.h"

/* The current time for walks, in units of 1024 ns; wraps, but is never 0. */
static inline uint32_t walk_time(const struct engine *e)
{
	return (uint32_t)(engine_now(e) >> 10) | 1;
}

/* A kept packet, to be sent again: on another path if there are several. */
struct rte_mbuf *packet_again(struct engine *e, const struct qp *q, struct sw_element *sw);

/* How many packets of that train packet_part() may send at once, if `packets` are missing. */
static inline uint32_t packet_part_most(const struct sw_element *sw, uint32_t packets)
{
	return packet_of(sw->m)->icrcs ? 1 : packets;
}

/*
 * `packets` of a train by reference, from `psn` on, with AckReq, in a buffer of their own that
 * MultiQueue does not keep; if they have ICRCs, one packet, which has its payload with it. A train
 * itself is never sent twice: its receiver may be splitting packets off it, which HeaderParser would
 * undo.
 */
struct rte_mbuf *packet_part(struct engine *e, const struct qp *q, const struct sw_element *sw,
			     uint32_t psn, uint32_t packets);

/* Requests `packets` responses of a READ again, from response `done` on; repeats any other request
 * unchanged. A request with payload carries the eight bytes of swap_add. */
struct rte_mbuf *read_again(struct engine *e, const struct qp *q, const struct rd_element *rd,
			    uint32_t done, uint32_t packets);

/* May the frame of m be rebuilt? Not while anyone but MultiQueue and the caller holds it. */
bool packet_may_change(const struct rte_mbuf *m);

#endif
