/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All objects that the program holds: created and not yet destroyed. The control verbs look an
 * object up here before they touch it, so that a pointer to something else, a destroyed object or
 * one with an overwritten handle is an error, as it is where a kernel keeps the objects. Any
 * thread, never on the data path.
 *
 * A hash table of the objects' own structures by address: a program's pointer is compared with its
 * entries, not dereferenced. It grows with the number of objects. One lock.
 */
#include <stdlib.h>
#include "handles.h"

enum { BUCKETS_MIN = 64 };

static struct handle *first_buckets[BUCKETS_MIN];
static struct handle **buckets = first_buckets;
static size_t bucket_count = BUCKETS_MIN, used;
static uint32_t last_number;
static struct handle *retired[HANDLE_KINDS]; /* newest first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct handle **bucket_of(const struct handle *h)
{
	uint64_t hash = (uintptr_t)h * 0x9e3779b97f4a7c15ull;

	return &buckets[(hash >> 32) & (bucket_count - 1)];
}

static void handle_put(struct handle *h)
{
	struct handle **bucket = bucket_of(h);

	h->next = *bucket;
	*bucket = h;
}

/* Out of memory the chains just become longer. */
static void grow(void)
{
	struct handle **old = buckets, **new = calloc(bucket_count * 2, sizeof(*new)), *h;
	size_t n = bucket_count;

	if (!new)
		return;
	buckets = new;
	bucket_count *= 2;
	for (size_t i = 0; i < n; i++) {
		while ((h = old[i])) {
			old[i] = h->next;
			handle_put(h);
		}
	}
	if (old != first_buckets)
		free(old);
}

/* Where the pointer to it is stored, or NULL: it is not ours. */
static struct handle **handle_slot(const struct handle *h, enum handle_kind kind)
{
	for (struct handle **at = bucket_of(h); *at; at = &(*at)->next)
		if (*at == h)
			return h->kind == kind ? at : NULL;
	return NULL;
}

/* ---- objects of the program ---- */

uint32_t handle_add(struct handle *h, enum handle_kind kind, const struct softhca_context *hca,
		    uint32_t number, void *object)
{
	pthread_mutex_lock(&lock);
	*h = (struct handle){.kind = kind,
			     .hca = hca,
			     .number = number ? number : ++last_number,
			     .object = object};
	if (++used > bucket_count)
		grow();
	handle_put(h);
	pthread_mutex_unlock(&lock);
	return h->number;
}

bool handle_known(const struct handle *h, enum handle_kind kind, bool leaving)
{
	bool known;

	pthread_mutex_lock(&lock);
	known = handle_slot(h, kind) && (leaving || !h->leaving);
	pthread_mutex_unlock(&lock);
	return known;
}

static bool handle_leave(struct handle *h, enum handle_kind kind)
{
	if (!handle_slot(h, kind) || h->leaving)
		return false;
	h->leaving = true;
	return true;
}

bool handle_take(struct handle *h, enum handle_kind kind)
{
	bool taken;

	pthread_mutex_lock(&lock);
	taken = handle_leave(h, kind);
	pthread_mutex_unlock(&lock);
	return taken;
}

static void handle_put_back(struct handle *h)
{
	pthread_mutex_lock(&lock);
	h->leaving = false;
	pthread_mutex_unlock(&lock);
}

static void handle_remove(struct handle *h)
{
	struct handle **at;

	pthread_mutex_lock(&lock);
	at = handle_slot(h, h->kind);
	if (at) {
		*at = h->next;
		used--;
	}
	pthread_mutex_unlock(&lock);
}

int handle_end(struct handle *h, int rc)
{
	if (rc)
		handle_put_back(h);
	else
		handle_remove(h);
	return verbs_status(rc);
}

void *handle_find(const struct softhca_context *hca, enum handle_kind kind, uint32_t number)
{
	void *object = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < bucket_count && !object; i++)
		for (const struct handle *h = buckets[i]; h && !object; h = h->next)
			if (h->number == number && h->kind == kind && h->hca == hca)
				object = h->object;
	pthread_mutex_unlock(&lock);
	return object;
}

void handles_forget(const struct softhca_context *hca)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < bucket_count; i++) {
		struct handle **at = &buckets[i];

		while (*at) {
			if ((*at)->hca == hca) {
				*at = (*at)->next;
				used--;
			} else {
				at = &(*at)->next;
			}
		}
	}
	pthread_mutex_unlock(&lock);
}

/* ---- destroyed objects, kept readable ---- */

void handle_retire(struct handle *h, enum handle_kind kind)
{
	pthread_mutex_lock(&lock);
	h->next = retired[kind];
	retired[kind] = h;
	pthread_mutex_unlock(&lock);
}

struct handle *handle_revive(enum handle_kind kind)
{
	struct handle *h;

	pthread_mutex_lock(&lock);
	h = retired[kind];
	if (h)
		retired[kind] = h->next;
	pthread_mutex_unlock(&lock);
	return h;
}
