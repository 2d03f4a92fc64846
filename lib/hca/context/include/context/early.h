/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_EARLY_H
#define CONTEXT_EARLY_H
/*
 * Early packets: a packet that arrives ahead of the expected one of its queue pair is kept,
 * unchanged, until those before it have arrived, too. So a loss costs only the lost packet, not all
 * that follow it, although the sender goes back N: the acknowledgement of what was kept tells it
 * how much it need not send again.
 *
 * ExecutionEngine has one table for requests, RequesterRecvControl one for responses to READs and
 * atomics, with one place for each of a few hundred packets. A queue pair and a PSN name one place
 * in it; consecutive PSNs have consecutive ones. So keeping, finding and taking are O(1) and cost a
 * queue pair no memory. When two queue pairs want the same place, the one whose user holds less
 * gets it, then the one that holds less itself. The other packet is dropped, as if none were ever
 * kept: its sender sends it again.
 *
 * Peers may leave gaps for ever. So a queue pair holds at most as many places as are free, the
 * queue pairs of a user three times as many (as in MultiQueue, requester/buffer_shares.h), and
 * packets older than EARLY_NS are dropped. All are dropped when one of the engine's pools runs low:
 * that of packets, or that of clones, as which packets of trains are kept.
 *
 * Runs on the stage of the table's owner unless said otherwise.
 */
#include <stdbool.h>
#include <stdint.h>
#include <rte_mbuf.h>
#include "base/limits.h"
#include "context/qp_context.h"

/* A packet that has waited this long for its predecessors is dropped, at the latest after half as
 * long again or, if the lcore sleeps then, when it wakes. */
#define EARLY_NS 100000000ull

struct early_place {
	struct rte_mbuf *m; /* NULL: free */
	uint64_t since_ns;
	uint32_t index; /* of the queue pair */
	uint32_t psn;
};

struct early {
	const struct qp_table *qps;
	size_t count_at;	  /* of the queue pair's struct early_count, in struct qp */
	uint32_t size;		  /* places */
	uint32_t count;		  /* of them taken */
	uint32_t hand;		  /* the place that early_look() sees next */
	bool low;		  /* a pool is low: nothing is kept */
	uint64_t looked_ns;	  /* when it looked last */
	uint32_t user[USERS_MAX]; /* places taken, by user */
	struct early_place place[];
};

/* Makes a table of that name on the engine's node, with as many places as suit its buffers; each
 * queue pair's struct early_count for it is at that offset in struct qp. NULL: no memory. Control
 * thread. */
struct early *early_create(const struct engine *e, const char *name, size_t count_at);
/* Frees the table and what it still keeps. Control thread. */
void early_destroy(struct early *t);

/* Keeps a packet of that PSN, which is ahead of `expected`, and then owns it. False: there is no
 * place for it, or it is there already; it stays the caller's. */
bool early_keep(struct engine *e, struct early *t, struct qp *q, struct rte_mbuf *m, uint32_t psn,
		uint32_t expected);

/* Is the packet with that PSN kept? */
bool early_has(const struct early *t, const struct qp *q, uint32_t psn);

/* Which of the 8 × `bytes` PSNs from `psn` on have been kept for at least `ns`: bit i of byte k is
 * that of psn + 8 k + i. False: none. */
bool early_map(const struct engine *e, const struct early *t, const struct qp *q, uint32_t psn,
	       uint64_t ns, uint8_t *map, unsigned bytes);

/* Takes it out; the caller owns it. NULL: it is not kept. */
struct rte_mbuf *early_take(struct early *t, struct qp *q, uint32_t psn);

/* Everything before `psn` has come: drops what is kept of it. Returns how many packets of the queue
 * pair are still kept. */
unsigned early_pass(struct early *t, struct qp *q, uint32_t psn);

/* The queue pair receives no more: drops all that is kept for it. */
void early_drop(struct early *t, struct qp *q);

/* Drops all that is kept. Control thread, while no lcore polls. */
void early_clear(struct early *t);

/* Has early_look() anything to do? */
static inline bool early_watched(const struct early *t)
{
	return t->count || t->low;
}

/* Checks the pools, and whether a few of the packets are too old; in each poll while
 * early_watched(). */
void early_look(struct engine *e, struct early *t, struct counters *c);

#endif
