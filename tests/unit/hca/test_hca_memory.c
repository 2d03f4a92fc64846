/* SPDX-License-Identifier: BSD-3-Clause */
/* An HCA's memory: all of it is freed, also when creation fails half way for lack of memory.
 * Allocations of lib/ are counted and refused by the linker's --wrap. */
#include <sys/mman.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memzone.h>
#include <rte_ring.h>
#include "../made_up_nodes.h"
#include "engine_fixture.h"
#include "wrap.h"

static unsigned allocations, refused_at; /* 0: none is refused */
static int64_t mapped_bytes, pieces;	 /* mmap() and calloc(), less what was freed */

static bool refused(void)
{
	if (++allocations != refused_at)
		return false;
	rte_errno = ENOMEM;
	return true;
}

/* Allocations by the node that they are asked of: [0] is any. */
static unsigned asked_of[1 + MADE_UP_NODES];

static bool refused_on(int node)
{
	asked_of[node + 1]++;
	return refused();
}

WRAP(void *, rte_zmalloc, const char *type, size_t size, unsigned align)
{
	return refused_on(NODE_ANY) ? NULL : __real_rte_zmalloc(type, size, align);
}

WRAP(void *, rte_zmalloc_socket, const char *type, size_t size, unsigned align, int socket)
{
	return refused_on(socket) ? NULL : __real_rte_zmalloc_socket(type, size, align, socket);
}

/* Filled with garbage, except where zeros are guaranteed. */
WRAP(void *, rte_malloc_socket, const char *type, size_t size, unsigned align, int socket)
{
	void *p = refused_on(socket) ? NULL : __real_rte_malloc_socket(type, size, align, socket);

	if (p)
		memset(p, 0x5a, size);
	return p;
}

WRAP(struct rte_ring *, rte_ring_create, const char *name, unsigned count, int socket,
     unsigned flags)
{
	return refused_on(socket) ? NULL : __real_rte_ring_create(name, count, socket, flags);
}

WRAP(const struct rte_memzone *, rte_memzone_reserve_aligned, const char *name, size_t bytes,
     int socket, unsigned flags, unsigned align)
{
	return refused_on(socket)
		       ? NULL
		       : __real_rte_memzone_reserve_aligned(name, bytes, socket, flags, align);
}

WRAP(struct rte_mempool *, rte_pktmbuf_pool_create, const char *name, unsigned n, unsigned cache,
     uint16_t priv, uint16_t room, int socket)
{
	/* DPDK makes none on a node that this machine has not got. */
	return refused_on(socket)
		       ? NULL
		       : __real_rte_pktmbuf_pool_create(name, n, cache, priv, room, NODE_ANY);
}

WRAP(void *, mmap64, void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	void *p = refused() ? MAP_FAILED : __real_mmap64(at, bytes, protection, flags, fd, offset);

	if (p != MAP_FAILED)
		mapped_bytes += (int64_t)bytes;
	return p;
}

WRAP(int, munmap, void *at, size_t bytes)
{
	mapped_bytes -= (int64_t)bytes;
	return __real_munmap(at, bytes);
}

WRAP(void *, calloc, size_t n, size_t size)
{
	void *p = refused() ? NULL : __real_calloc(n, size);

	pieces += p != NULL;
	return p;
}

WRAP(void, free, void *p)
{
	pieces -= p != NULL;
	__real_free(p);
}

/* ---- what is in use ---- */

struct in_use {
	uint64_t blocks, bytes; /* of the heap; memory zones (tables, rings, pools) come from it */
	unsigned zones, pools;
	int64_t mapped_bytes, pieces; /* of the process: contexts, and what is known of them */
};

static void add_zone(const struct rte_memzone *zone, void *to)
{
	((struct in_use *)to)->zones++;
}

static void add_pool(struct rte_mempool *pool, void *to)
{
	((struct in_use *)to)->pools++;
}

static struct in_use in_use(void)
{
	struct rte_malloc_socket_stats s;
	struct in_use u = {.mapped_bytes = mapped_bytes, .pieces = pieces};

	assert_int_equal(rte_malloc_get_socket_stats(0, &s), 0);
	u.blocks = s.alloc_count;
	u.bytes = s.heap_allocsz_bytes;
	rte_memzone_walk(add_zone, &u);
	rte_mempool_walk(add_pool, &u);
	return u;
}

static void assert_same(const struct in_use *before)
{
	struct in_use now = in_use();

	assert_int_equal(now.zones, before->zones);
	assert_int_equal(now.pools, before->pools);
	assert_int_equal(now.blocks, before->blocks);
	assert_int_equal(now.bytes, before->bytes);
	assert_true(now.mapped_bytes == before->mapped_bytes);
	assert_true(now.pieces == before->pieces);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
	assert_int_equal(rte_mempool_in_use_count(fx->descriptors), 0);
}

static struct hca_config other(unsigned engines)
{
	struct hca_config c = fx->h->config;

	strcpy(c.name, "other");
	c.engines = engines;
	return c;
}

TEST(hca_destroy__gives_everything_back)
{
	for (unsigned engines = 1; engines <= 3; engines++) {
		struct in_use before = in_use(), with;
		struct hca_config c = other(engines);
		struct hca *h;

		assert_int_equal(hca_create(&c, &h), 0);
		with = in_use();
		assert_true(with.blocks > before.blocks && with.zones > before.zones);
		assert_int_equal(with.pools, before.pools + 1);
		for (unsigned i = 0; i < 10; i++)
			hca_poll(h, FX_START_NS + i * 1000);
		hca_destroy(h);
		assert_same(&before);
	}
	hca_destroy(NULL);
}

/* Each allocation in turn fails: the HCA is refused, and everything allocated before is freed. */
TEST(hca_create__without_memory)
{
	struct in_use before = in_use();
	struct hca_config c = other(2);
	struct hca *h;
	unsigned at = 0;
	int err;

	for (;;) {
		h = NULL;
		allocations = 0;
		refused_at = ++at;
		err = hca_create(&c, &h);
		refused_at = 0;
		if (err == 0)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_null(h);
		assert_same(&before);
	}
	assert_true(allocations > 2 * (CHANNEL_COUNT + 15) && allocations < at);
	hca_poll(h, FX_START_NS);
	hca_destroy(h);
	assert_same(&before);
}

/* Each engine on its configured node, shared memory on the HCA's, nothing unplaced; contexts, which
 * get their memory later, are bound. */
TEST(hca_create__on_the_given_nodes)
{
	const struct icm *qps;
	struct hca_config c = other(2);
	struct hca *h;

	c.socket = 3;
	for (int e = 0; e < 2; e++)
		c.place[e] = (struct engine_place){e + 1, c.packets, c.descriptors, c.packets};
	made_up_nodes(true);
	memset(asked_of, 0, sizeof(asked_of));
	assert_int_equal(hca_create(&c, &h), 0);
	assert_int_equal(asked_of[1 + NODE_ANY], 0);
	assert_int_equal(asked_of[1 + 0], 0);
	assert_true(asked_of[1 + 1] > CHANNEL_COUNT + 10);
	assert_int_equal(asked_of[1 + 2], asked_of[1 + 1]);
	assert_true(asked_of[1 + 3] > 5);
	assert_int_equal(hca_client_node(h, 0), 1);
	assert_int_equal(hca_client_node(h, 1), 2);
	qps = &h->qps.icm;
	assert_ptr_equal(made_up.bind[0].at, qps->reserved);
	assert_int_equal(made_up.bind[0].bytes, qps->reserved_bytes);
	assert_int_equal(made_up.bind[0].node, 3);
	assert_int_equal(made_up.binds, 3);
	assert_int_equal(made_up.preferred, NODE_ANY);
	hca_destroy(h);
	made_up_nodes(false);
}
