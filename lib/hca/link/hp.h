/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_HP_H
#define LINK_HP_H
/* HeaderParser's state, and what its files share. Stage header_parse. */
#include <rte_mbuf.h>
#include "pipeline/engine.h"
#include "stall.h"

/* HeaderParser's state: datagrams to multicast groups not delivered to all queue pairs yet. */
struct hp {
	struct rte_mbuf *waiting[BURST];
	unsigned waits, first; /* those from `first` on */
	uint32_t place;	       /* of the group's queue pairs, the next one for waiting[first] */
	/* Of the frames that had arrived by mark_ns, at most `backlog` have not been taken yet. */
	uint64_t mark_ns;
	unsigned backlog;
	struct stall full; /* there was no room for what had arrived */
};

static inline struct counters *hp_counters(struct engine *e)
{
	return stage_counters(e, STAGE_HEADER_PARSE);
}

#define PKEY_BASE_MASK 0x7fffu /* without the membership bit */

/* Both are full members, or one is: P_Keys match (default partition). */
static inline bool pkey_matches(uint16_t theirs, uint16_t ours)
{
	return (theirs & PKEY_BASE_MASK) == (ours & PKEY_BASE_MASK) &&
	       ((theirs | ours) & ~PKEY_BASE_MASK) != 0;
}

#endif
