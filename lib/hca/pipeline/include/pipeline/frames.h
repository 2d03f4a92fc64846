/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_FRAMES_H
#define PIPELINE_FRAMES_H
/* Frames on their way back to their pool. */
#include <stdbool.h>
#include <rte_mbuf.h>
#include "pipeline/engine.h"

/* Is this the last reference to a buffer of the engine's own pool? Then the buffer goes back as it
 * is: nothing changes `next` and `nb_segs` (message.h), and refcnt is 1. */
static inline bool frame_returns(const struct engine *e, const struct rte_mbuf *m)
{
	return likely(rte_mbuf_refcnt_read(m) == 1) && RTE_MBUF_DIRECT(m) && m->pool == e->packets;
}

/* Takes one reference off each of n frames. m[] is used up. Any stage of the engine. */
static inline void frames_free(const struct engine *e, struct rte_mbuf **m, unsigned n)
{
	unsigned back = 0;

	for (unsigned i = 0; i < n; i++) {
		uint16_t references = rte_mbuf_refcnt_read(m[i]);

		if (references > 1 && e->frames_are_ours)
			rte_mbuf_refcnt_set(m[i], references - 1);
		else if (likely(frame_returns(e, m[i])))
			m[back++] = m[i];
		else
			rte_pktmbuf_free(m[i]);
	}
	if (back)
		rte_mempool_put_bulk(e->packets, (void **)m, back);
}

#endif
