/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpt_ram and mtt_ram (doc/virt-to-phys.md#tpt-cache): the cache's three steps. Any lcore; see
 * tpt_cache.h for who may touch what.
 */
#include <errno.h>
#include <sys/mman.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_pause.h>
#include "base/assert.h"
#include "virt-to-phys/tpt_cache.h"

enum { HUGE_BYTES = 2 << 20 };

/* Zeroed; NULL: there is none. Keys come in no order: with small pages each look-up in a large
 * cache would cost a page walk, too. */
static void *memory_get(struct tpt_cache *c, const char *name, size_t bytes, int socket)
{
	uintptr_t at;

	if (bytes < HUGE_BYTES || rte_eal_has_hugepages()) {
		c->memory = rte_zmalloc_socket(name, bytes, 128, socket);
		return c->memory;
	}
	c->mapped_bytes = bytes + HUGE_BYTES;
	c->memory = mmap(NULL, c->mapped_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->memory == MAP_FAILED) {
		*c = (struct tpt_cache){0};
		return NULL;
	}
	at = RTE_ALIGN((uintptr_t)c->memory, (uintptr_t)HUGE_BYTES);
	madvise((void *)at, bytes, MADV_HUGEPAGE); /* only a hint */
	return (void *)at;
}

int tpt_cache_create(struct tpt_cache *c, const char *name, uint32_t lines, uint8_t words,
		     const struct tpt_table *table, int socket)
{
	uint32_t sets = lines < TPT_WAYS ? 1 : lines / TPT_WAYS;
	size_t line_bytes;

	*c = (struct tpt_cache){
		.set_mask = sets - 1,
		.ways = lines < TPT_WAYS ? 1 : TPT_WAYS,
		.words = words,
		.log_group = (uint8_t)(__builtin_ctz(words * 8u) - table->log_entry),
		.table = table,
	};
	line_bytes = (size_t)sets * TPT_WAYS * words * 8;
	c->lines = memory_get(c, name, line_bytes + (size_t)sets * sizeof(*c->sets), socket);
	if (!c->lines)
		return -ENOMEM;
	c->sets = (struct tpt_set *)((uint8_t *)c->lines + line_bytes);
	return 0;
}

void tpt_cache_destroy(struct tpt_cache *c)
{
	if (c->mapped_bytes)
		munmap(c->memory, c->mapped_bytes);
	else
		rte_free(c->memory);
	*c = (struct tpt_cache){0};
}

/* Acquire: the load that follows (of the sequence number) comes after. */
static void load_line(uint64_t *to, const uint64_t *from, unsigned words)
{
	for (unsigned i = 0; i < words; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
}

/* Release: no reader sees a new word with the old sequence number. */
static void store_line(uint64_t *to, const uint64_t *from, unsigned words)
{
	for (unsigned i = 0; i < words; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

enum tpt_result tpt_read(const struct tpt_cache *c, uint32_t line, uint64_t *out)
{
	uint32_t n = line & c->set_mask;
	struct tpt_set *s = &c->sets[n];
	uint32_t seq = __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE);
	int way = tpt_way(s, line);

	if (seq & 1)
		return TPT_BUSY;
	if (way >= 0)
		load_line(out, tpt_line(c, n, (unsigned)way), c->words);
	if (__atomic_load_n(&s->seq, __ATOMIC_RELAXED) != seq)
		return TPT_BUSY;
	if (way < 0)
		return TPT_MISS;
	tpt_used(s, (uint32_t)way);
	return TPT_HIT;
}

bool tpt_take(const struct tpt_cache *c, uint32_t line, struct counters *counters,
	      struct tpt_hold *hold)
{
	struct tpt_set *s = &c->sets[line & c->set_mask];
	uint32_t seq = __atomic_load_n(&s->seq, __ATOMIC_RELAXED);

	if ((seq & 1) || !__atomic_compare_exchange_n(&s->seq, &seq, seq + 1, false,
						      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	*hold = (struct tpt_hold){
		.cache = c, .set = s, .counters = counters, .line = line, .way = tpt_way(s, line)};
	return true;
}

void tpt_release(struct tpt_hold *hold)
{
	struct tpt_set *s = hold->set;
	uint32_t seq = __atomic_load_n(&s->seq, __ATOMIC_RELAXED);

	ASSERT(seq & 1);
	__atomic_store_n(&s->seq, seq + 1, __ATOMIC_RELEASE);
}

static uint64_t *held_line(const struct tpt_hold *hold, unsigned way)
{
	return tpt_line(hold->cache, hold->line & hold->cache->set_mask, way);
}

enum tpt_result tpt_match(struct tpt_hold *hold, uint64_t *out)
{
	const struct tpt_cache *c = hold->cache;

	if (hold->way >= 0) {
		load_line(out, held_line(hold, (unsigned)hold->way), c->words);
		tpt_used(hold->set, (uint32_t)hold->way);
		return TPT_HIT;
	}
	return tpt_table_read(c->table, hold->line << c->log_group, out, c->words * 8u)
		       ? TPT_MISS
		       : TPT_NOWHERE;
}

static void put_line(struct tpt_hold *hold, const uint64_t *words, uint32_t tag)
{
	unsigned way = (unsigned)hold->way;

	store_line(held_line(hold, way), words, hold->cache->words);
	__atomic_store_n(&hold->set->tag[way], tag, __ATOMIC_RELEASE);
	tpt_used(hold->set, way);
}

void tpt_update(struct tpt_hold *hold, const uint64_t *words)
{
	ASSERT(hold->way >= 0);
	put_line(hold, words, tpt_tag(hold->line));
}

static unsigned select_victim(const struct tpt_hold *hold)
{
	const struct tpt_set *s = hold->set;

	for (unsigned way = 0; way < hold->cache->ways; way++)
		if (!(__atomic_load_n(&s->tag[way], __ATOMIC_RELAXED) & TPT_VALID))
			return way;
	if (hold->cache->ways == 1)
		return 0;
	return !__atomic_load_n(&s->recent, __ATOMIC_RELAXED);
}

/* A dirty victim whose page is being unmapped is lost, like all entries there. */
static void write_back(const struct tpt_hold *hold, unsigned way)
{
	const struct tpt_cache *c = hold->cache;
	uint32_t tag = __atomic_load_n(&hold->set->tag[way], __ATOMIC_RELAXED);
	uint64_t words[TPT_WORDS_MAX];

	if ((tag & (TPT_VALID | TPT_DIRTY)) != (TPT_VALID | TPT_DIRTY))
		return;
	load_line(words, held_line(hold, way), c->words);
	if (tpt_table_write(c->table, tag >> TPT_TAG_SHIFT << c->log_group, words, c->words * 8u) &&
	    hold->counters)
		count(hold->counters, COUNTER_v2p_write_backs);
}

void tpt_replace(struct tpt_hold *hold, const uint64_t *words, bool dirty)
{
	unsigned way = select_victim(hold);

	ASSERT(hold->way < 0);
	write_back(hold, way);
	hold->way = (int)way;
	put_line(hold, words, tpt_tag(hold->line) & ~(dirty ? 0u : (uint32_t)TPT_DIRTY));
}

static bool is_within(const struct tpt_cache *c, uint32_t tag, uint32_t first, uint32_t count)
{
	return (tag & TPT_VALID) &&
	       (uint32_t)((tag >> TPT_TAG_SHIFT << c->log_group) - first) < count;
}

static void drop_line(struct tpt_hold *hold, unsigned way)
{
	const uint64_t none[TPT_WORDS_MAX] = {0};

	store_line(held_line(hold, way), none, hold->cache->words);
	__atomic_store_n(&hold->set->tag[way], 0, __ATOMIC_RELEASE);
}

void tpt_drop(struct tpt_cache *c, uint32_t first, uint32_t count)
{
	for (uint32_t n = 0; n <= c->set_mask; n++) {
		struct tpt_hold hold;

		while (!tpt_take(c, n, NULL, &hold))
			rte_pause();
		for (unsigned way = 0; way < c->ways; way++)
			if (is_within(c, hold.set->tag[way], first, count))
				drop_line(&hold, way);
		tpt_release(&hold);
	}
}
