/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_CHANNEL_H
#define PIPELINE_CHANNEL_H
/*
 * A channel: one named rte_ring of mbufs with the counters that `softhca fifos` shows. One
 * producing module, one consuming module. A full ring stalls its producer: a module asks
 * channel_room() before it takes up work that ends in the ring, as the hardware looks at prog_full.
 */
#include <errno.h>
#include <rte_ring.h>
#include <rte_mbuf.h>
#include "base/assert.h"
#include "pipeline/topology.h"

struct channel {
	struct rte_ring *ring;
	enum channel_id id;
	/* producer */
	uint64_t put __rte_cache_aligned; /* mbufs ever put */
	uint64_t full;			  /* times the producer found too little room (prog_full) */
	uint32_t high_water;
	/* consumer */
	uint64_t taken __rte_cache_aligned;
	uint64_t empty; /* times the consumer found nothing */
};

/* Makes the ring "<prefix>_<channel name>". multi_producer: several engines feed it. 0, -ENOMEM,
 * -EEXIST. */
int channel_create(
	struct channel *c, enum channel_id id, const char *prefix, bool multi_producer, int socket);
/* Frees the ring and every mbuf in it. */
void channel_destroy(struct channel *c);

/* Free places. Producer only: they can only become more. */
static inline unsigned channel_room(struct channel *c)
{
	unsigned room = rte_ring_free_count(c->ring);

	if (unlikely(room == 0))
		c->full++;
	return room;
}

/* Puts n mbufs, of which the caller knows (channel_room) that they fit. */
static inline void channel_put(struct channel *c, struct rte_mbuf **m, unsigned n)
{
	unsigned left;
	unsigned done = rte_ring_enqueue_bulk(c->ring, (void *const *)m, n, &left);
	unsigned used = rte_ring_get_capacity(c->ring) - left;

	ASSERT(done == n);
	(void)done;
	c->put += n;
	if (unlikely(used > c->high_water))
		c->high_water = used;
}

static inline void channel_put_one(struct channel *c, struct rte_mbuf *m)
{
	channel_put(c, &m, 1);
}

/* As many as fit; for channels with several producers, where room seen is not room kept. Returns
 * how many. */
static inline unsigned channel_try_put(struct channel *c, struct rte_mbuf **m, unsigned n)
{
	unsigned done = rte_ring_enqueue_burst(c->ring, (void *const *)m, n, NULL);

	c->put += done;
	if (unlikely(done < n))
		c->full++;
	return done;
}

/* Takes up to n. Returns how many. An empty ring, the common case of a quiet stage, costs two
 * loads. */
static inline unsigned channel_take(struct channel *c, struct rte_mbuf **m, unsigned n)
{
	unsigned got;

	if (rte_ring_empty(c->ring)) {
		c->empty++;
		return 0;
	}
	got = rte_ring_dequeue_burst(c->ring, (void **)m, n, NULL);
	c->taken += got;
	return got;
}

#endif
