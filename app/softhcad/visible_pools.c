/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For builds with ThreadSanitizer only: packet pools whose hand-over between lcores the detector
 * can see. DPDK's own pools work the same way (a ring of free buffers), but in a library that is
 * not instrumented: there each buffer that changes lcores would look like a race. All other parts
 * of DPDK between two accesses of ours are inlined into our code. A lock makes the order of
 * producers and consumers plain: the ring itself looks at its other end, and waits for its own, by
 * relaxed loads, which are in order on x86 and which the detector does not follow.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include "base/ring_look.h"
#include "visible_pools.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int pool_alloc(struct rte_mempool *p)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "VP_%.20s", p->name);
	p->pool_data = rte_ring_create(name, rte_align32pow2(p->size + 1), p->socket_id,
				       RING_F_SP_ENQ | RING_F_SC_DEQ);
	return p->pool_data ? 0 : -ENOMEM;
}

static void pool_free(struct rte_mempool *p)
{
	rte_ring_free(p->pool_data);
}

static int pool_put(struct rte_mempool *p, void *const *objects, unsigned n)
{
	unsigned done;

	for (unsigned i = 0; i < n; i++)
		(void)__atomic_load_n(&((struct rte_mbuf *)objects[i])->refcnt, __ATOMIC_ACQUIRE);
	pthread_mutex_lock(&lock);
	done = rte_ring_enqueue_bulk(p->pool_data, objects, n, NULL);
	pthread_mutex_unlock(&lock);
	return done ? 0 : -ENOBUFS;
}

static int pool_take(struct rte_mempool *p, void **objects, unsigned n)
{
	unsigned done;

	pthread_mutex_lock(&lock);
	done = rte_ring_dequeue_bulk(p->pool_data, objects, n, NULL);
	pthread_mutex_unlock(&lock);
	return done ? 0 : -ENOENT;
}

static unsigned pool_count(const struct rte_mempool *p)
{
	return ring_used(p->pool_data);
}

static const struct rte_mempool_ops visible = {
	.name = "visible",
	.alloc = pool_alloc,
	.free = pool_free,
	.enqueue = pool_put,
	.dequeue = pool_take,
	.get_count = pool_count,
};
RTE_MEMPOOL_REGISTER_OPS(visible);

/*
 * A thread that gives up one of the last two references to a buffer releases it; the thread with
 * the last one sees that by a relaxed load, and therefore writes: in order on every CPU, but not
 * for the detector. pool_put() comes too late where the buffer was attached to another.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:^__rte_pktmbuf_free_direct$\n";
}

const char *visible_pools(void)
{
	return visible.name;
}
