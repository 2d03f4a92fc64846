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

static struct rte_mempool *create(const char *name, uint32_t buffers, uint16_t room, int node)
{
	unsigned cache = RTE_MIN((uint32_t)POOL_CACHE, buffers / 2); /* DPDK takes up to 2/3 */
	struct rte_mempool *pool;

	node_prefer(node);
	pool = rte_pktmbuf_pool_create(name, buffers, cache, MESSAGE_PRIV_BYTES, room, node);
	node_prefer(NODE_ANY);
	return pool;
}

/* Falls back to other nodes if this one has too few hugepages. */
static struct rte_mempool *make_pool(const struct node_pools *p, const char *what, uint32_t buffers,
				     uint16_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), p->first ? "%s" : "%s_%d", what, p->node);
	pool = create(name, buffers, room, p->node);
	if (!pool && nodes_count() > 1) {
		LOG(WARNING, "node %d: not enough memory for %u %s, using other nodes", p->node,
		    buffers, what);
		pool = create(name, buffers, room, NODE_ANY);
	}
	if (!pool)
		LOG(ERR, "no memory for %u %s: see daemon.memory_mib", buffers, what);
	return pool;
}

static int make_set(struct node_pools *p, const struct daemon_config *c, unsigned engines)
{
	const uint32_t packets = (uint64_t)c->packet_buffers * p->engines / engines;
	const uint32_t descriptors = (uint64_t)c->descriptor_buffers * p->engines / engines;
	const uint32_t clones = (uint64_t)c->clone_buffers * p->engines / engines;

	_Static_assert(RTE_PKTMBUF_HEADROOM == HEADROOM_BYTES, "headers fit in front of a payload");
	p->packets = make_pool(p, "packets", packets, PACKET_ROOM_BYTES);
	p->descriptors = make_pool(p, "descriptors", descriptors, DESCRIPTOR_ROOM_BYTES);
	p->clones = make_pool(p, "clones", clones, 0);
	if (!p->packets || !p->descriptors || !p->clones)
		return -ENOMEM;
	LOG(INFO, "buffers on node %d: %u packets, %u descriptors, %u clones", p->node, packets,
	    descriptors, clones);
	return 0;
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

int pools_make(struct pools *p, const struct config *c)
{
	unsigned engines = 0;
	int ret = 0;

	for (unsigned i = 0; i < c->hcas; i++) {
		for (unsigned e = 0; e < c->hca[i].engines; e++, engines++)
			set_of(p, c->hca[i].engine_node[e])->engines++;
	}
	for (unsigned i = 0; i < p->count && !ret; i++)
		ret = make_set(&p->set[i], &c->daemon, engines);
	return ret;
}

const struct node_pools *pools_near(const struct pools *p, int node)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->set[i].node == node)
			return &p->set[i];
	}
	return &p->set[0];
}

void pools_free(struct pools *p)
{
	for (; p->count; p->count--) {
		const struct node_pools *set = &p->set[p->count - 1];

		rte_mempool_free(set->clones);
		rte_mempool_free(set->descriptors);
		rte_mempool_free(set->packets);
	}
}
