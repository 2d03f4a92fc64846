/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_CHANNEL_H
#define PIPELINE_CHANNEL_H
/*
 * A channel: one named rte_ring of mbufs with the counters that `softhca fifos` shows. One
 * producing module, of one engine or of each, one consuming module. A full ring stalls its
 * producer: a module checks channel_room() before it begins work that ends in the ring, as the
 * hardware checks prog_full.
 */
#include <errno.h>
#include <rte_ring.h>
#include <rte_mbuf.h>
#include "base/assert.h"
#include "base/ring_look.h"
#include "base/ring_move.h"
#include "pipeline/topology.h"

struct channel {
	struct rte_ring *ring;
	struct rte_ring *in; /* what the consumer takes from: `ring`, but in a step (stepping.h) */
	enum channel_id id;
	bool shared; /* several engines put into it: producer's counts have several writers */
	/* producer */
	uint64_t put __rte_cache_aligned; /* mbufs put so far */
	uint64_t coupled;		  /* packets in them, beyond one each (train.h) */
	uint64_t full;			  /* times the producer found too little room (prog_full) */
	uint32_t high_water;
	/* consumer */
	uint64_t taken __rte_cache_aligned;
	uint64_t empty; /* times the consumer found nothing */
};

/* Makes the ring "<prefix>_<channel name>". multi_producer: several engines feed it. 0, -ENOMEM,
 * -EEXIST. */
int channel_create(struct channel *c, enum channel_id id, const char *prefix, bool multi_producer,
		   int socket);
/* Frees the ring and every mbuf in it. */
void channel_destroy(struct channel *c);

/* The counts have one writer each; others read them. Release, because a module that sees what was
 * put or taken may rely on what its neighbour did before. */
static inline void channel_note(uint64_t *count, unsigned n)
{
	__atomic_store_n(count, *count + n, __ATOMIC_RELEASE);
}

/* The same of a producer's counts. */
static inline void channel_note_put(struct channel *c, uint64_t *count, unsigned n)
{
	if (unlikely(c->shared))
		__atomic_fetch_add(count, n, __ATOMIC_RELEASE);
	else
		channel_note(count, n);
}

/* Counts `packets` of trains beyond the first of each, just put or about to be. Producer. */
static inline void channel_note_coupled(struct channel *c, uint32_t packets)
{
	if (unlikely(packets))
		channel_note_put(c, &c->coupled, packets);
}

static inline void channel_note_used(struct channel *c, unsigned used)
{
	uint32_t high = __atomic_load_n(&c->high_water, __ATOMIC_RELAXED);

	while (unlikely(used > high) &&
	       !__atomic_compare_exchange_n(&c->high_water, &high, used, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

/* Free places. Producer only: unless the channel is shared, their number can only grow. */
static inline unsigned channel_room(struct channel *c)
{
	unsigned room = ring_room(c->ring);

	if (unlikely(room == 0))
		channel_note_put(c, &c->full, 1);
	return room;
}

/* Puts n mbufs, 1 at least; the caller knows from channel_room() that they fit. */
static inline void channel_put(struct channel *c, struct rte_mbuf **m, unsigned n)
{
	ASSERT(n && n <= ring_room(c->ring) && !c->shared);
	channel_note_used(c, ring_put(c->ring, (void *const *)m, n));
	channel_note(&c->put, n);
}

static inline void channel_put_one(struct channel *c, struct rte_mbuf *m)
{
	channel_put(c, &m, 1);
}

/* Puts as many of n mbufs, 1 at least, as fit; for channels with several producers, where others
 * may fill the room that was seen. Returns how many. */
static inline unsigned channel_try_put(struct channel *c, struct rte_mbuf **m, unsigned n)
{
	unsigned used, done, left;

	ASSERT(n);
	if (unlikely(c->shared)) {
		done = rte_ring_mp_enqueue_burst(c->ring, (void *const *)m, n, &left);
		used = c->ring->capacity - left;
	} else {
		left = ring_room(c->ring);
		done = RTE_MIN(n, left);
		used = done ? ring_put(c->ring, (void *const *)m, done) : c->ring->capacity;
	}
	channel_note_put(c, &c->put, done);
	channel_note_used(c, used);
	if (unlikely(done < n))
		channel_note_put(c, &c->full, 1);
	return done;
}

/* Is there nothing to take? Counts as a look that found nothing. Consumer. */
static inline bool channel_idle(struct channel *c)
{
	if (!ring_empty(c->in))
		return false;
	channel_note(&c->empty, 1);
	return true;
}

/* The same for all `n` inputs of a module, which are `ids` in channel[]: counts if none has any. */
static inline bool channels_idle(struct channel *channel, const enum channel_id *ids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!ring_empty(channel[ids[i]].in))
			return false;
	for (unsigned i = 0; i < n; i++)
		channel_note(&channel[ids[i]].empty, 1);
	return true;
}

/* Takes up to n. Returns how many. An empty ring, the common case of a quiet stage, costs two
 * loads. */
static inline unsigned channel_take(struct channel *c, struct rte_mbuf **m, unsigned n)
{
	unsigned got;

	if (channel_idle(c))
		return 0;
	got = ring_take(c->in, (void **)m, n);
	channel_note(&c->taken, got);
	return got;
}

/* What is behind i others that wait, to be prefetched; NULL: there are no more than i. Consumer. */
static inline struct rte_mbuf *channel_peek(const struct channel *c, unsigned i)
{
	return (struct rte_mbuf *)ring_peek(c->in, i);
}

#endif
