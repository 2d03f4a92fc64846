/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which MTT entries are free: blocks of powers of two, halved when they are taken and joined with
 * their other half when they come back. A bit for each block of each size that is free. Control
 * thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "control_priv.h"
#include "mtt_space.h"

/* log2 of a block's entries, less MTT_LOG_LEAST. */
static unsigned int order_of(uint32_t size)
{
	return (unsigned int)__builtin_ctz(size) - MTT_LOG_LEAST;
}

/* Words of bits for all blocks of an order. */
static uint32_t words_of(const struct mtt_space *s, unsigned int order)
{
	return ((s->entries >> (order + MTT_LOG_LEAST)) + 63) / 64;
}

static bool is_free(const struct mtt_space *s, unsigned int order, uint32_t block)
{
	return s->free[order][block / 64] >> block % 64 & 1;
}

static void set_free(struct mtt_space *s, unsigned int order, uint32_t block, bool free)
{
	uint64_t bit = 1ull << block % 64;

	s->free[order][block / 64] ^= bit;
	s->count[order] += free ? 1 : -1u;
	if (free && block / 64 < s->cursor[order])
		s->cursor[order] = block / 64;
}

int mtt_space_create(struct mtt_space *s, uint32_t entries)
{
	unsigned int last;

	*s = (struct mtt_space){.entries = entries};
	if (entries < 1u << MTT_LOG_LEAST)
		return 0;
	last = order_of(entries);
	for (unsigned int order = 0; order <= last; order++) {
		s->free[order] = calloc(words_of(s, order), sizeof(uint64_t));
		if (!s->free[order]) {
			mtt_space_destroy(s);
			return -ENOMEM;
		}
	}
	set_free(s, last, 0, true);
	return 0;
}

void mtt_space_destroy(struct mtt_space *s)
{
	for (unsigned int order = 0; order < MTT_ORDERS; order++)
		free(s->free[order]);
	*s = (struct mtt_space){0};
}

uint32_t mtt_space_size(uint32_t wanted)
{
	if (wanted <= 1u << MTT_LOG_LEAST)
		return 1u << MTT_LOG_LEAST;
	return wanted > 1u << MTT_INDEX_BITS_MAX ? 0 : 1u << (32 - __builtin_clz(wanted - 1));
}

/* The first free block of an order, of which there is one. */
static uint32_t first_free(struct mtt_space *s, unsigned int order)
{
	uint32_t *word = &s->cursor[order];

	while (!s->free[order][*word])
		++*word;
	return *word * 64 + (uint32_t)__builtin_ctzll(s->free[order][*word]);
}

bool mtt_space_take(struct mtt_space *s, uint32_t size, uint32_t *first)
{
	unsigned int wanted, order;
	uint32_t block;

	if (size > s->entries || size < 1u << MTT_LOG_LEAST)
		return false;
	wanted = order = order_of(size);
	while (order < MTT_ORDERS && !s->count[order])
		order++;
	if (order == MTT_ORDERS)
		return false;
	block = first_free(s, order);
	set_free(s, order, block, false);
	while (order > wanted) {
		order--;
		block *= 2;
		set_free(s, order, block + 1, true);
	}
	*first = block << (order + MTT_LOG_LEAST);
	return true;
}

void mtt_space_put(struct mtt_space *s, uint32_t first, uint32_t size)
{
	unsigned int order = order_of(size), last = order_of(s->entries);
	uint32_t block = first >> (order + MTT_LOG_LEAST);

	for (; order < last && is_free(s, order, block ^ 1); order++, block /= 2)
		set_free(s, order, block ^ 1, false);
	set_free(s, order, block, true);
}
