/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_PRIV_H
#define LINK_PRIV_H
/* Private to the modules of the header_parse stage. */
#include "context/multicast.h"
#include "context/qp_context.h"
#include "link/link.h"
#include "link/link_port.h"
#include "pipeline/frame_marks.h"
#include "pipeline/message.h"
#include "wire/crc.h"
#include "wire/encap.h"

/* How long something has been stalled. */
struct stall {
	uint64_t ns, tried_ns; /* duration; last try, 0: not stalled */
};

/* Stalled at this try, too: has it lasted more than limit_ns? No try counts for more than a quarter
 * of that, as we may have been preempted. */
static inline bool stall_exceeds(struct stall *s, uint64_t now_ns, uint64_t limit_ns)
{
	uint64_t passed = s->tried_ns ? now_ns - s->tried_ns : 0;

	s->ns += RTE_MIN(passed, limit_ns / 4);
	s->tried_ns = now_ns;
	return s->ns > limit_ns;
}

static inline void stall_ends(struct stall *s)
{
	*s = (struct stall){0};
}

/* HeaderParser's state: datagrams to multicast groups not delivered to all queue pairs yet. */
struct hp {
	struct rte_mbuf *waiting[BURST];
	unsigned waits, first; /* those from `first` on */
	uint32_t place;	       /* of the group's queue pairs, the next one for waiting[first] */
	uint64_t
		mark_ns; /* frames that had arrived by then have been taken when `backlog` more are */
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

int hp_create(struct engine *e);
void hp_destroy(struct engine *e);
unsigned hp_poll(struct engine *e);

/* multicast.c */
/* m is a datagram to DestQP 0xffffff with its arrival filled in: keeps it if queue pairs are
 * attached to its group, else counts it. */
void multicast_keep(struct engine *e, struct rte_mbuf *m);
/* Delivers kept datagrams to the queue pairs. False: HP_EE is full, some are left. */
bool multicast_deliver(struct engine *e);

/* Has multicast_keep() just taken it? */
static inline bool multicast_kept(const struct hp *hp, const struct rte_mbuf *m)
{
	return hp->waits && hp->waiting[hp->waits - 1] == m;
}

/* rx_frames.c: receives up to `room` frames, owned by the caller. Returns their number. */
unsigned rxa_take(struct engine *e, struct rte_mbuf **frames, unsigned room);

int txa_create(struct engine *e);
void txa_destroy(struct engine *e);
unsigned txa_poll(struct engine *e);

#endif
