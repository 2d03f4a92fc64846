/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_MULTICAST_H
#define CONTEXT_MULTICAST_H
/*
 * Multicast groups of an HCA and the UD queue pairs that are attached to them (IBTA volume 1,
 * 10.5): a hash table of chains. One writer, the CEU; HeaderParser reads it on any lcore without a
 * lock: linked groups are constant except `next`, `end` and qpn[], which are read and written
 * atomically. A group that loses its last queue pair is unlinked at once and freed by
 * multicast_reap(), when no lcore can hold it any more.
 *
 * A group refers to its queue pairs by number, so destroyed ones are not found.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <rte_jhash.h>
#include "base/limits.h"

enum { MULTICAST_CHAINS = 1024 };

struct multicast_group {
	struct multicast_group *next;	 /* in its chain; atomic */
	struct multicast_group *reap;	 /* control thread: list of groups to free */
	uint8_t mgid[16];		 /* IPv6, or v4-mapped */
	uint32_t members;		 /* control thread: queue pairs attached */
	uint32_t end;			 /* atomic: entries of qpn[] used so far */
	uint32_t qpn[MULTICAST_QPS_MAX]; /* atomic; 0: free */
};

struct multicast_table {
	struct multicast_group *chain[MULTICAST_CHAINS]; /* atomic */
	uint32_t seed; /* so that no one can choose groups that share a chain */
	uint32_t groups, members;
	struct multicast_group *reap;
};

void multicast_table_create(struct multicast_table *t);
/* There must be no readers any more. */
void multicast_table_destroy(struct multicast_table *t);

/* ip_is_group(mgid). 0; -EEXIST: already attached; -ENOMEM: limit of groups, of queue pairs in this
 * one or in all of them. Control thread. */
int multicast_attach(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn);
/* 0; -ENOENT: not attached. Control thread. */
int multicast_detach(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn);
/* Frees unlinked groups; every lcore has polled since. Control thread. */
void multicast_reap(struct multicast_table *t);

static inline uint32_t multicast_chain(const struct multicast_table *t, const uint8_t mgid[16])
{
	uint32_t words[4];

	memcpy(words, mgid, sizeof(words));
	return rte_jhash_32b(words, 4, t->seed) % MULTICAST_CHAINS;
}

/* The group, or NULL: no queue pair is attached. Any lcore; not to be kept across polls. */
static inline struct multicast_group *multicast_find(const struct multicast_table *t,
						     const uint8_t mgid[16])
{
	struct multicast_group *g =
		__atomic_load_n(&t->chain[multicast_chain(t, mgid)], __ATOMIC_ACQUIRE);

	while (g && memcmp(g->mgid, mgid, 16) != 0)
		g = __atomic_load_n(&g->next, __ATOMIC_ACQUIRE);
	return g;
}

/* The end of qpn[], and an entry: a number, or 0. Any lcore. */
static inline uint32_t multicast_end(const struct multicast_group *g)
{
	return __atomic_load_n(&g->end, __ATOMIC_ACQUIRE);
}

static inline uint32_t multicast_member(const struct multicast_group *g, uint32_t place)
{
	return __atomic_load_n(&g->qpn[place], __ATOMIC_RELAXED);
}

#endif
