/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of the daemon: a set of pools on each node with engines, as large as the node's share
 * of them. Control thread. */
#include <errno.h>
#include <stdio.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include "base/log.h"
#include "base/nodes.h"
#include "pipeline/message.h"
#include "pools.h"

enum {
#ifdef SOFTHCA_VISIBLE_POOLS
	POOL_CACHE = 0, /* see visible_pools.c */
#else
	POOL_CACHE = 512, /* mbufs of a pool that an lcore may keep */
#endif
};

static struct rte_mempool *pools_create(const char *name, uint32_t buffers, uint16_t room, int node)
{
	unsigned cache = RTE_MIN((uint32_t)POOL_CACHE, buffers / 2); /* DPDK takes up to 2/3 */
	struct rte_mempool *pool;

	node_prefer(node);
	pool = rte_pktmbuf_pool_create(name, buffers, cache, MESSAGE_PRIV_BYTES, room, node);
	node_prefer(NODE_ANY);
	return pool;
}

/* A name that no other pool of the process has. */
static void name_pool(const struct pools *p, const struct node_pools *set, const char *what,
		      char name[RTE_MEMPOOL_NAMESIZE])
{
	if (set->extra)
		snprintf(name, RTE_MEMPOOL_NAMESIZE, "%s_more%u", what, (unsigned)(set - p->set));
	else if (set->first)
		snprintf(name, RTE_MEMPOOL_NAMESIZE, "%s", what);
	else
		snprintf(name, RTE_MEMPOOL_NAMESIZE, "%s_%d", what, set->node);
}

/* Falls back to other nodes if this one has too few hugepages. */
static struct rte_mempool *make_pool(const struct pools *p, const struct node_pools *set,
				     const char *what, uint32_t buffers, uint16_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	name_pool(p, set, what, name);
	pool = pools_create(name, buffers, room, set->node);
	if (!pool && nodes_count() > 1) {
		LOG(WARNING, "node %d: not enough memory for %u %s, using other nodes", set->node,
		    buffers, what);
		pool = pools_create(name, buffers, room, NODE_ANY);
	}
	if (!pool)
		LOG(ERR, "no memory for %u %s: see daemon.memory_mib", buffers, what);
	return pool;
}

static int make_set(const struct pools *p, struct node_pools *set, const struct config_buffers *n)
{
	_Static_assert(RTE_PKTMBUF_HEADROOM == HEADROOM_BYTES, "headers fit in front of a payload");
	set->packets = make_pool(p, set, "packets", n->packets, PACKET_ROOM_BYTES);
	set->descriptors = make_pool(p, set, "descriptors", n->descriptors, DESCRIPTOR_ROOM_BYTES);
	set->clones = make_pool(p, set, "clones", n->clones, 0);
	if (!set->packets || !set->descriptors || !set->clones)
		return -ENOMEM;
	LOG(INFO, "buffers on node %d: %u packets, %u descriptors, %u clones", set->node,
	    n->packets, n->descriptors, n->clones);
	return 0;
}

static void free_set(struct node_pools *set)
{
	rte_mempool_free(set->clones);
	rte_mempool_free(set->descriptors);
	rte_mempool_free(set->packets);
	*set = (struct node_pools){.packets = NULL};
}

/* The set of that node, created if necessary. */
static struct node_pools *set_of(struct pools *p, int node)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->set[i].node == node)
			return &p->set[i];
	}
	p->set[p->count] = (struct node_pools){.node = node, .first = p->count == 0};
	return &p->set[p->count++];
}

static void pools_add_parts(struct config_buffers *to, const struct config_buffers *part)
{
	to->packets += part->packets;
	to->descriptors += part->descriptors;
	to->clones += part->clones;
}

/* The node's share of the buffers. The set has room for its engines, even if the operator
 * configures fewer buffers. */
static struct config_buffers share_of(struct node_pools *set, const struct daemon_config *c,
				      unsigned engines)
{
	const struct config_buffers n = {
		.packets = (uint64_t)c->packet_buffers * set->engines / engines,
		.descriptors = (uint64_t)c->descriptor_buffers * set->engines / engines,
		.clones = (uint64_t)c->clone_buffers * set->engines / engines};

	set->room.packets = RTE_MAX(set->room.packets, n.packets);
	set->room.descriptors = RTE_MAX(set->room.descriptors, n.descriptors);
	set->room.clones = RTE_MAX(set->room.clones, n.clones);
	return n;
}

int pools_make(struct pools *p, const struct config *c)
{
	unsigned engines = 0;
	int ret = 0;

	for (unsigned i = 0; i < c->hcas; i++) {
		for (unsigned e = 0; e < c->hca[i].engines; e++, engines++) {
			struct node_pools *set = set_of(p, c->hca[i].engine_node[e]);
			const struct config_buffers part = config_buffers_of(&c->hca[i], e);

			set->engines++;
			pools_add_parts(&set->room, &part);
		}
	}
	for (unsigned i = 0; i < p->count && !ret; i++) {
		const struct config_buffers n = share_of(&p->set[i], &c->daemon, engines);

		ret = make_set(p, &p->set[i], &n);
	}
	return ret;
}

static bool pools_has_room(const struct node_pools *set, const struct config_buffers *part)
{
	return set->packets && set->room.packets >= part->packets &&
	       set->room.descriptors >= part->descriptors && set->room.clones >= part->clones;
}

static struct node_pools *find_room(struct pools *p, int node, const struct config_buffers *part)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->set[i].node == node && pools_has_room(&p->set[i], part))
			return &p->set[i];
	return NULL;
}

static struct node_pools *pools_make_room(struct pools *p, int node,
					  const struct config_buffers *part)
{
	struct node_pools *set = p->set;

	while (set < p->set + p->count && set->packets)
		set++;
	if (set == p->set + POOL_SETS_MAX)
		return NULL;
	p->count = RTE_MAX(p->count, (unsigned)(set - p->set) + 1);
	*set = (struct node_pools){.node = node, .engines = 1, .extra = true, .room = *part};
	if (make_set(p, set, part) == 0)
		return set;
	free_set(set);
	return NULL;
}

struct node_pools *pools_take(struct pools *p, int node, const struct config_buffers *part)
{
	struct node_pools *set = find_room(p, node, part);

	if (!set)
		set = pools_make_room(p, node, part);
	if (!set)
		return NULL;
	set->room.packets -= part->packets;
	set->room.descriptors -= part->descriptors;
	set->room.clones -= part->clones;
	return set;
}

/* Have its engines given back all room, and does nothing hold one of its buffers? */
static bool is_idle(const struct node_pools *set)
{
	return set->room.packets == set->packets->size && rte_mempool_full(set->packets) &&
	       rte_mempool_full(set->descriptors) && rte_mempool_full(set->clones);
}

void pools_give(struct pools *p, struct node_pools *set, const struct config_buffers *part)
{
	pools_add_parts(&set->room, part);
	for (unsigned i = 0; i < p->count; i++)
		if (p->set[i].extra && is_idle(&p->set[i]))
			free_set(&p->set[i]);
}

void pools_free(struct pools *p)
{
	for (; p->count; p->count--)
		free_set(&p->set[p->count - 1]);
}
