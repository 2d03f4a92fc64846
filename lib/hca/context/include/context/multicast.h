/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_MULTICAST_H
#define CONTEXT_MULTICAST_H
/*
 * Multicast groups of an HCA and the UD queue pairs that are attached to them (IBTA volume 1,
 * 10.5): a hash table of chains. One writer, the CEU; HeaderParser reads it on any lcore without a
 * lock: what is linked in stays as it is, but for `next`, `end` and qpn[], which are read and
 * written whole. A group that has lost its last queue pair is taken out of its chain at once and
 * freed by multicast_reap(), when no lcore can hold it any more.
 *
 * A group knows its queue pairs by number, so one that has gone is not found by it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <rte_jhash.h>
#include "base/limits.h"

enum { MULTICAST_CHAINS = 1024 };

struct multicast_group {
	struct multicast_group *next;	 /* in its chain; atomic */
	struct multicast_group *reap;	 /* control thread: in the list of those to be freed */
	uint8_t mgid[16];		 /* IPv6, or v4-mapped */
	uint32_t members;		 /* control thread: queue pairs attached */
	uint32_t end;			 /* atomic: places of qpn[] that were ever in use */
	uint32_t qpn[MULTICAST_QPS_MAX]; /* atomic; 0: free */
};

struct multicast_table {
	struct multicast_group *chain[MULTICAST_CHAINS]; /* atomic */
	uint32_t seed; /* so that nobody can choose groups that share a chain */
	uint32_t groups, members;
	struct multicast_group *reap;
};

void multicast_table_create(struct multicast_table *t);
/* Nobody reads any more. */
void multicast_table_destroy(struct multicast_table *t);

/* ip_is_group(mgid). 0; -EEXIST: it is attached already; -ENOMEM: there are as many
 * groups, queue pairs in this one or in all of them as there may be. Control thread. */
int multicast_attach(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn);
/* 0; -ENOENT: it is not attached. Control thread. */
int multicast_detach(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn);
/* Frees groups taken out before; every lcore has polled since. Control thread. */
void multicast_reap(struct multicast_table *t);

static inline uint32_t multicast_chain(const struct multicast_table *t, const uint8_t mgid[16])
{
	uint32_t words[4];

	memcpy(words, mgid, sizeof(words));
	return rte_jhash_32b(words, 4, t->seed) % MULTICAST_CHAINS;
}

/* The group, or NULL: nobody is attached. Any lcore; not to be kept over polls. */
static inline struct multicast_group *multicast_find(const struct multicast_table *t,
						     const uint8_t mgid[16])
{
	struct multicast_group *g =
		__atomic_load_n(&t->chain[multicast_chain(t, mgid)], __ATOMIC_ACQUIRE);

	while (g && memcmp(g->mgid, mgid, 16) != 0)
		g = __atomic_load_n(&g->next, __ATOMIC_ACQUIRE);
	return g;
}

/* How far to look in qpn[], and what is there: a number, or 0. Any lcore. */
static inline uint32_t multicast_end(const struct multicast_group *g)
{
	return __atomic_load_n(&g->end, __ATOMIC_ACQUIRE);
}

static inline uint32_t multicast_member(const struct multicast_group *g, uint32_t place)
{
	return __atomic_load_n(&g->qpn[place], __ATOMIC_RELAXED);
}

#endif
