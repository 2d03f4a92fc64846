/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds connections in constant time: by communication ID (an index), by the peer's ID or QP (hash
 * chains with a secret seed), and by time (a binary heap). Knows nothing of the protocol. CM
 * thread.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include "base/assert.h"
#include "tables.h"

enum { FIRST_PLACES = 64, FIRST_BUCKETS = 64 };
#define NO_PLACE UINT32_MAX

/* --- places --- */

void cm_places_create(struct cm_places *p, uint32_t most)
{
	ASSERT(most >= 1 && most <= 1u << CM_PLACE_BITS_MOST);
	*p = (struct cm_places){.most = most, .first_free = NO_PLACE, .last_free = NO_PLACE};
	p->bits = 32 - (unsigned int)__builtin_clz(MAX(most - 1, 1u));
}

void cm_places_destroy(struct cm_places *p)
{
	free(p->at);
	free(p->last);
	free(p->next);
}

/* Appends it to the free list. */
static void make_free(struct cm_places *p, uint32_t place)
{
	p->at[place] = NULL;
	p->next[place] = NO_PLACE;
	if (p->first_free == NO_PLACE)
		p->first_free = place;
	else
		p->next[p->last_free] = place;
	p->last_free = place;
}

static int enlarge(void *array, size_t count, size_t size)
{
	void **at = array;
	void *larger = reallocarray(*at, count, size);

	if (!larger)
		return -ENOMEM;
	*at = larger;
	return 0;
}

/* Doubles the places and the heap's room. */
static int places_grow(struct cm *cm)
{
	struct cm_places *p = &cm->places;
	uint32_t count = MIN(p->count ? p->count * 2 : FIRST_PLACES, p->most);

	if (p->count == p->most)
		return -ENOSPC;
	if (enlarge(&p->at, count, sizeof(*p->at)) || enlarge(&p->last, count, sizeof(*p->last)) ||
	    enlarge(&p->next, count, sizeof(*p->next)) ||
	    enlarge(&cm->timers.heap, count + 1, sizeof(*cm->timers.heap)))
		return -ENOMEM;
	memset(p->last + p->count, 0, (count - p->count) * sizeof(*p->last));
	while (p->count < count)
		make_free(p, p->count++);
	return 0;
}

/* A random ID, but not the place's last one, and not 0, which means none. */
static uint32_t places_pick(const struct cm *cm, uint32_t place)
{
	const struct cm_places *p = &cm->places;
	uint32_t id;

	do {
		id = cm->ops->random(cm->ctx) << p->bits | place;
	} while (id == p->last[place] || id >> p->bits == 0);
	return id;
}

int cm_place_take(struct cm *cm, struct cm_connection *c)
{
	struct cm_places *p = &cm->places;
	int error = p->first_free == NO_PLACE ? places_grow(cm) : 0;
	uint32_t place = p->first_free;

	if (error)
		return error;
	p->first_free = p->next[place];
	p->at[place] = c;
	c->local_id = p->last[place] = places_pick(cm, place);
	return 0;
}

void cm_place_free(struct cm *cm, struct cm_connection *c)
{
	make_free(&cm->places, c->local_id & ((1u << cm->places.bits) - 1));
}

struct cm_connection *cm_place_find(const struct cm_places *p, uint32_t id)
{
	uint32_t place = id & ((1u << p->bits) - 1);
	struct cm_connection *c = place < p->count ? p->at[place] : NULL;

	return c && c->local_id == id ? c : NULL;
}

/* --- hash chains --- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Peers choose everything but the seed, without which they cannot build long chains. */
static uint64_t places_hash_of(const struct cm *cm, uint32_t number, uint64_t guid,
			       const struct cm_path *path, bool sidr)
{
	uint64_t gid[2], hash = cm->seed[0];

	memcpy(gid, path->dgid, sizeof(gid));
	hash = mix(hash, number | (uint64_t)sidr << 32 | (uint64_t)path->device << 40);
	hash = mix(hash, guid + cm->seed[1]);
	hash = mix(hash, gid[0]);
	hash = mix(hash ^ cm->seed[1], gid[1]);
	return mix(hash, cm->seed[0]);
}

unsigned int cm_source(const struct cm *cm, const struct cm_path *path)
{
	return places_hash_of(cm, 0, 0, path, false) % CM_SOURCES;
}

static void chain(struct cm_node **bucket, struct cm_node *n)
{
	n->next = *bucket;
	n->back = bucket;
	if (n->next)
		n->next->back = &n->next;
	*bucket = n;
}

/* Out of memory, the chains just get longer. */
static void spread(struct cm_hash *h)
{
	uint32_t buckets = h->buckets ? h->buckets * 2 : FIRST_BUCKETS;
	struct cm_node **bucket = calloc(buckets, sizeof(*bucket));

	if (!bucket)
		return;
	for (uint32_t i = 0; i < h->buckets; i++) {
		struct cm_node *n = h->bucket[i], *next;

		for (; n; n = next) {
			next = n->next;
			chain(&bucket[n->hash & (buckets - 1)], n);
		}
	}
	free(h->bucket);
	h->bucket = bucket;
	h->buckets = buckets;
}

static void hash_add(struct cm_hash *h, struct cm_node *n, uint64_t hash)
{
	ASSERT(!n->back);
	if (h->count >= h->buckets)
		spread(h);
	if (!h->buckets)
		return; /* out of memory: repetitions and stale connections go unnoticed */
	n->hash = hash;
	chain(&h->bucket[hash & (h->buckets - 1)], n);
	h->count++;
}

void cm_hash_remove(struct cm_hash *h, struct cm_node *n)
{
	if (!n->back)
		return;
	*n->back = n->next;
	if (n->next)
		n->next->back = n->back;
	n->back = NULL;
	h->count--;
}

void cm_hash_destroy(struct cm_hash *h)
{
	free(h->bucket);
}

static struct cm_node *chain_of(const struct cm_hash *h, uint64_t hash)
{
	return h->buckets ? h->bucket[hash & (h->buckets - 1)] : NULL;
}

static bool same_peer(const struct cm_connection *c, uint64_t guid, const struct cm_path *path)
{
	return c->remote_guid == guid && c->path.device == path->device &&
	       !memcmp(c->path.dgid, path->dgid, sizeof(path->dgid));
}

#define CONNECTION_OF(node, member)                                                                \
	((struct cm_connection *)((char *)(node)-offsetof(struct cm_connection, member)))

void cm_remote_add(struct cm_connection *c)
{
	hash_add(&c->cm->by_remote, &c->by_remote,
		 places_hash_of(c->cm, c->remote_id, c->remote_guid, &c->path, c->sidr));
}

struct cm_connection *cm_remote_find(const struct cm *cm, uint32_t id, uint64_t guid,
				     const struct cm_path *path, bool sidr)
{
	uint64_t hash = places_hash_of(cm, id, guid, path, sidr);

	for (struct cm_node *n = chain_of(&cm->by_remote, hash); n; n = n->next) {
		struct cm_connection *c = CONNECTION_OF(n, by_remote);

		if (c->remote_id == id && c->sidr == sidr && same_peer(c, guid, path))
			return c;
	}
	return NULL;
}

void cm_qpn_add(struct cm_connection *c)
{
	hash_add(&c->cm->by_qpn, &c->by_qpn,
		 places_hash_of(c->cm, c->remote_qpn, c->remote_guid, &c->path, false));
}

struct cm_connection *cm_qpn_find(const struct cm *cm, uint32_t qpn, uint64_t guid,
				  const struct cm_path *path)
{
	uint64_t hash = places_hash_of(cm, qpn, guid, path, false);

	for (struct cm_node *n = chain_of(&cm->by_qpn, hash); n; n = n->next) {
		struct cm_connection *c = CONNECTION_OF(n, by_qpn);

		if (c->remote_qpn == qpn && same_peer(c, guid, path))
			return c;
	}
	return NULL;
}

/* --- timers --- */

static void heap_put(struct cm_timers *t, uint32_t at, struct cm_connection *c)
{
	t->heap[at] = c;
	c->heap_at = at;
}

static void up(struct cm_timers *t, uint32_t at, struct cm_connection *c)
{
	for (; at > 1 && t->heap[at / 2]->due > c->due; at /= 2)
		heap_put(t, at, t->heap[at / 2]);
	heap_put(t, at, c);
}

static void down(struct cm_timers *t, uint32_t at, struct cm_connection *c)
{
	for (;;) {
		uint32_t child = at * 2;

		if (child > t->count)
			break;
		if (child < t->count && t->heap[child + 1]->due < t->heap[child]->due)
			child++;
		if (t->heap[child]->due >= c->due)
			break;
		heap_put(t, at, t->heap[child]);
		at = child;
	}
	heap_put(t, at, c);
}

static void place(struct cm_timers *t, uint32_t at, struct cm_connection *c)
{
	if (at > 1 && t->heap[at / 2]->due > c->due)
		up(t, at, c);
	else
		down(t, at, c);
}

void cm_timer_set(struct cm_connection *c, uint64_t due)
{
	struct cm_timers *t = &c->cm->timers;

	c->due = due;
	place(t, c->heap_at ? c->heap_at : ++t->count, c);
}

void cm_timer_cancel(struct cm_connection *c)
{
	struct cm_timers *t = &c->cm->timers;
	uint32_t at = c->heap_at;
	struct cm_connection *last;

	if (!at)
		return;
	c->heap_at = 0;
	last = t->heap[t->count--];
	if (last != c)
		place(t, at, last);
}
