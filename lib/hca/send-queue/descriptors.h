/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_DESCRIPTORS_H
#define SEND_QUEUE_DESCRIPTORS_H
/* Descriptors in mbufs: fetches them from a send queue and counts those that clients hold. Stage
 * doorbell_wqe. */
#include <rte_memcpy.h>
#include "context/qp_context.h"
#include "host-abi/wqe.h"
#include "send-queue/send_queue.h"

/* Are more in use than one user's doorbells can take (two thirds) plus what WQEParse makes of them
 * in a poll? Then QPs of users that hold many may fetch less ahead of sending. */
static inline bool descriptors_scarce(const struct engine *e)
{
	return __atomic_load_n(&e->held_total, __ATOMIC_RELAXED) > e->descriptor_share / 5 * 4;
}

/* Prefetches a descriptor. Checks only that it begins in the queue. */
static inline void wqe_prefetch(const struct qp *q, uint32_t offset, uint32_t units)
{
	if (unlikely(offset >= q->sq_bytes))
		return;
	rte_prefetch0(q->sq + offset);
	if (units * WQE_UNIT_BYTES > RTE_CACHE_LINE_SIZE)
		rte_prefetch0(q->sq + offset + RTE_CACHE_LINE_SIZE);
}

/* How many descriptors of a chain are prefetched ahead of the one being parsed. */
enum { CHAIN_AHEAD = 6 };

/* Does the descriptor in m name a next one (without its own doorbell)? */
static inline bool request_chains(struct rte_mbuf *m)
{
	uint32_t ee_nds = ((const struct wqe_next *)request_wqe(m))->ee_nds;

	return (ee_nds & WQE_NEXT_NDS_MASK) != 0 && !(ee_nds & WQE_NEXT_D);
}

/* Copies in blocks of 64 bytes where that stays in the queue (whose length is a multiple of 64): no
 * call, no branch on the length. */
static inline void copy_units(uint8_t *to, const uint8_t *sq, uint32_t offset, uint32_t bytes)
{
	if (unlikely(offset % 64)) {
		memcpy(to, sq + offset, bytes);
		return;
	}
	for (uint32_t i = 0; i < bytes; i += 64)
		rte_mov64(to + i, sq + offset + i);
}

/*
 * Copies the descriptor of `units` units at `offset` of the send queue into m: once, so that what
 * is validated later is what is used. False: it does not lie in the queue.
 */
static inline bool wqe_fetch(const struct qp *q, uint32_t offset, uint32_t units,
			     struct rte_mbuf *m)
{
	uint32_t bytes = units * WQE_UNIT_BYTES;

	if (unlikely(units == 0 || units > WQE_UNITS_MAX || (uint64_t)offset + bytes > q->sq_bytes))
		return false;
	copy_units(request_wqe(m), q->sq, offset, bytes);
	request_of(m)->wqe_offset = offset;
	request_of(m)->wqe_bytes = bytes;
	return true;
}

/* Prefetches the next n descriptors of a chain, if m begins one: they usually lie at even distances
 * in the queue. Returns how many. */
static inline unsigned wqe_prefetch_chain(const struct qp *q, struct rte_mbuf *m, unsigned n)
{
	const struct wqe_next *next = (const struct wqe_next *)request_wqe(m);
	uint32_t at = next->nda_nop >> WQE_NEXT_NDA_SHIFT << 6,
		 units = next->ee_nds & WQE_NEXT_NDS_MASK;
	uint32_t step = at - request_of(m)->wqe_offset;

	if (!request_chains(m))
		return 0;
	for (unsigned i = 0; i < n; i++)
		wqe_prefetch(q, at + i * step, units);
	return n;
}

#endif
