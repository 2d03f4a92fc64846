/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PACKET_AGAIN_H
#define REQUESTER_PACKET_AGAIN_H
/* The packets of a retransmission. Each has a reference for the wire, the caller's; NULL: no buffer (counted). Stage
 * requester_recv. */
#include "rrc_work.h"

/* The time of a walk, in ns >> 10, which is about 1 us and wraps; never 0. */
static inline uint32_t walk_time(const struct engine *e)
{
	return (uint32_t)(engine_now(e) >> 10) | 1; /* never 0 */
}

/* Another reference to a kept packet, which takes another path if there are several. */
struct rte_mbuf *packet_again(struct engine *e, const struct qp *q, struct sw_element *sw);

/* A copy of a train, or of a part of it, from `psn` on, which MultiQueue does not keep; it asks for
 * its acknowledgement. A train itself is never sent twice: its receiver takes packets off it, which
 * HeaderParser would undo. */
struct rte_mbuf *packet_part(struct engine *e, const struct qp *q, const struct sw_element *sw,
			     uint32_t psn, uint32_t packets);

/* `packets` responses of a READ requested again, from number `done` on, the first missing one; other requests
 * unchanged. Those that carry data carry the eight bytes of swap_add. */
struct rte_mbuf *read_again(struct engine *e, const struct qp *q, const struct rd_element *rd,
			    uint32_t done, uint32_t packets);

/* May its frame be rebuilt? Not while anything but MultiQueue holds it: then it has hardly left. */
bool packet_may_change(const struct rte_mbuf *m);

#endif
