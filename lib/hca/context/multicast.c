/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer's side of the table of multicast groups. Control thread. */
#include <errno.h>
#include <stdlib.h>
#include <rte_random.h>
#include "context/multicast.h"

void multicast_table_create(struct multicast_table *t)
{
	*t = (struct multicast_table){.seed = (uint32_t)rte_rand()};
}

void multicast_table_destroy(struct multicast_table *t)
{
	multicast_reap(t);
	for (unsigned int i = 0; i < MULTICAST_CHAINS; i++) {
		while (t->chain[i]) {
			struct multicast_group *g = t->chain[i];

			t->chain[i] = g->next;
			free(g);
		}
	}
}

void multicast_reap(struct multicast_table *t)
{
	while (t->reap) {
		struct multicast_group *g = t->reap;

		t->reap = g->reap;
		free(g);
	}
}

/* Where qpn lies, or a free place if it is 0; MULTICAST_QPS_MAX: nowhere. */
static uint32_t multicast_place_of(const struct multicast_group *g, uint32_t qpn)
{
	uint32_t end = qpn ? g->end : MULTICAST_QPS_MAX;

	for (uint32_t i = 0; i < end; i++)
		if (g->qpn[i] == qpn)
			return i;
	return MULTICAST_QPS_MAX;
}

/* Adds a group of one queue pair; readers find it once it is complete. */
static int add_group(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn)
{
	struct multicast_group **chain = &t->chain[multicast_chain(t, mgid)];
	struct multicast_group *g = t->groups < MULTICAST_GROUPS_MAX ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return -ENOMEM;
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	g->qpn[0] = qpn;
	g->members = g->end = 1;
	g->next = *chain;
	__atomic_store_n(chain, g, __ATOMIC_RELEASE);
	t->groups++;
	t->members++;
	return 0;
}

int multicast_attach(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn)
{
	struct multicast_group *g = multicast_find(t, mgid);
	uint32_t place;

	if (g && multicast_place_of(g, qpn) != MULTICAST_QPS_MAX)
		return -EEXIST;
	if (t->members == MULTICAST_ATTACH_MAX)
		return -ENOMEM;
	if (!g)
		return add_group(t, mgid, qpn);
	place = multicast_place_of(g, 0);
	if (place == MULTICAST_QPS_MAX)
		return -ENOMEM;
	__atomic_store_n(&g->qpn[place], qpn, __ATOMIC_RELAXED);
	if (place == g->end)
		__atomic_store_n(&g->end, place + 1, __ATOMIC_RELEASE);
	g->members++;
	t->members++;
	return 0;
}

/* Readers that are at it continue along its `next`. */
static void remove_group(struct multicast_table *t, struct multicast_group *g)
{
	struct multicast_group **at = &t->chain[multicast_chain(t, g->mgid)];

	while (*at != g)
		at = &(*at)->next;
	__atomic_store_n(at, g->next, __ATOMIC_RELEASE);
	g->reap = t->reap;
	t->reap = g;
	t->groups--;
}

int multicast_detach(struct multicast_table *t, const uint8_t mgid[16], uint32_t qpn)
{
	struct multicast_group *g = multicast_find(t, mgid);
	uint32_t place = g && qpn ? multicast_place_of(g, qpn) : MULTICAST_QPS_MAX;

	if (place == MULTICAST_QPS_MAX)
		return -ENOENT;
	__atomic_store_n(&g->qpn[place], 0, __ATOMIC_RELAXED);
	t->members--;
	if (--g->members == 0)
		remove_group(t, g);
	return 0;
}
