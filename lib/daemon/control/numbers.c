/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of objects (QPN, CQN, key, PD, piece): place in a table plus random upper bits that
 * differ at each reuse, so that numbers cannot be guessed, and a stale one finds nothing. The
 * lowest bits of a key are a tag, random, too, which the owners of some keys change. Control
 * thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "control_priv.h"
#include "numbers.h"

uint32_t control_random(void)
{
	static uint32_t pool[64];
	static unsigned int left;

	while (left == 0)
		if (getrandom(pool, sizeof(pool), 0) == (ssize_t)sizeof(pool))
			left = sizeof(pool) / sizeof(pool[0]);
	return pool[--left];
}

int table_create(struct table *t, uint32_t count, uint32_t max, unsigned int bits,
		 unsigned int tag_bits)
{
	*t = (struct table){
		.count = count, .max = max, .bits = (uint8_t)bits, .tag_bits = (uint8_t)tag_bits};
	t->place_bits = max <= 1 ? 1 : (uint8_t)(32 - __builtin_clz(max - 1));
	t->slot = calloc(count, sizeof(*t->slot));
	t->last = calloc(count, sizeof(*t->last));
	if (t->slot && t->last)
		return 0;
	table_destroy(t);
	return -ENOMEM;
}

void table_destroy(struct table *t)
{
	free(t->slot);
	free(t->last);
	*t = (struct table){0};
}

/* Twice as many places; the numbers given so far stay where they are. */
static int table_grow(struct table *t)
{
	uint32_t count = t->count * 2;
	struct object **slot = realloc(t->slot, count * sizeof(*slot));
	uint32_t *last;

	if (!slot)
		return -ENOMEM;
	t->slot = slot;
	last = realloc(t->last, count * sizeof(*last));
	if (!last)
		return -ENOMEM;
	t->last = last;
	memset(slot + t->count, 0, t->count * sizeof(*slot));
	memset(last + t->count, 0, t->count * sizeof(*last));
	t->count = count;
	return 0;
}

static uint32_t table_place_of(const struct table *t, uint32_t number)
{
	return number >> t->tag_bits & ((1u << t->place_bits) - 1);
}

/* Neither the last number of that place, nor one that differs from it only in its tag, nor one that
 * some tag would make 0, nor the QPN of multicast packets. */
static uint32_t table_pick(const struct table *t, uint32_t place)
{
	unsigned int low = t->tag_bits + t->place_bits;
	uint32_t last = t->last[place] >> low, above, number;
	uint32_t ones = t->tag_bits ? 0 : UINT32_MAX >> (32 - t->bits);

	do {
		above = control_random() >> (32 - t->bits) >> low;
		number = above << low | place << t->tag_bits;
	} while (!above || above == last || number == ones);
	return number | (control_random() & ((1u << t->tag_bits) - 1));
}

int table_add(struct table *t, struct object *o)
{
	for (;;) {
		uint32_t end = t->count < t->max ? t->count : t->max;

		for (uint32_t i = 0; i < end; i++) {
			uint32_t place = (t->cursor + i) % end;

			if (t->slot[place] ||
			    (t->reserved && place == table_place_of(t, t->reserved)))
				continue;
			o->number = t->last[place] = table_pick(t, place);
			t->slot[place] = o;
			t->cursor = place + 1;
			return 0;
		}
		if (t->count >= t->max)
			return -ENOSPC;
		if (table_grow(t))
			return -ENOMEM;
		t->cursor = t->count / 2;
	}
}

int table_add_reserved(struct table *t, struct object *o)
{
	uint32_t place = table_place_of(t, t->reserved);

	if (!t->reserved || place >= t->count)
		return -ENOSPC;
	if (t->slot[place])
		return -EBUSY;
	o->number = t->reserved;
	t->slot[place] = o;
	return 0;
}

void table_remove(struct table *t, struct object *o)
{
	t->slot[table_place_of(t, o->number)] = NULL;
}

struct object *table_find(const struct table *t, uint32_t number, const struct client *client)
{
	uint32_t place = table_place_of(t, number);
	struct object *o = place < t->count ? t->slot[place] : NULL;

	return o && o->number == number && o->client == client ? o : NULL;
}
