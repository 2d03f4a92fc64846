/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The caches of MPT and MTT: each row of doc/virt-to-phys.md#tpt-cache, with a clean and
 * with a dirty victim, on a cache of one set; and of one line.
 */
#include "test.h"
#include <rte_memory.h>
#include "world_eal.h"
#include "virt-to-phys/tpt_cache.h"

enum { LINES = 64 };

/* The tables to test. */
struct kind {
	uint8_t words, log_entry;
};
static struct kind mpt = {8, TPT_LOG_MPT_ENTRY}, mtt = {4, TPT_LOG_MTT_ENTRY};

static struct {
	struct tpt_table table;
	struct tpt_cache cache;
	struct counters counters;
	uint64_t memory[TPT_CHUNK_BYTES / 8] __attribute__((aligned(TPT_PAGE_BYTES)));
	unsigned words;
} f;

static void make(const struct kind *k, uint32_t lines)
{
	assert_int_equal(tpt_table_create(&f.table, "t", LINES << 2, k->log_entry, SOCKET_ID_ANY),
			 0);
	f.table.entries = LINES << 2;
	assert_int_equal(tpt_table_map(&f.table, 0, f.memory, TPT_CHUNK_PAGES), 0);
	assert_int_equal(tpt_cache_create(&f.cache, "t", lines, k->words, &f.table, SOCKET_ID_ANY),
			 0);
	memset(&f.counters, 0, sizeof(f.counters));
	f.words = k->words;
	for (uint64_t i = 0; i < LINES * f.words; i++)
		f.memory[i] = 1000 + i / f.words;
}

static int setup(void **state)
{
	make(*state, 2);
	return 0;
}

static int teardown(void **state)
{
	tpt_cache_destroy(&f.cache);
	tpt_table_destroy(&f.table);
	return 0;
}

static void assert_words(const uint64_t *w, uint64_t value)
{
	for (unsigned i = 0; i < f.words; i++)
		assert_int_equal(w[i], value);
}

static void assert_memory_has(uint32_t line, uint64_t value)
{
	assert_words(f.memory + line * f.words, value);
}

static struct tpt_hold take(uint32_t line)
{
	struct tpt_hold hold;

	assert_true(tpt_take(&f.cache, line, &f.counters, &hold));
	return hold;
}

/* Refill as the data path does it: match misses, what memory holds comes in. */
static void refill(uint32_t line)
{
	struct tpt_hold hold = take(line);
	uint64_t w[TPT_WORDS_MAX];

	assert_int_equal(tpt_match(&hold, w), TPT_MISS);
	tpt_replace(&hold, w, false);
	tpt_release(&hold);
}

static void write_line(uint32_t line, uint64_t value)
{
	struct tpt_hold hold = take(line);
	uint64_t w[TPT_WORDS_MAX];

	for (unsigned i = 0; i < f.words; i++)
		w[i] = value;
	tpt_write(&hold, w);
	tpt_release(&hold);
}

static void assert_cached(uint32_t line, uint64_t value)
{
	uint64_t w[TPT_WORDS_MAX];

	assert_int_equal(tpt_read(&f.cache, line, w), TPT_HIT);
	assert_words(w, value);
}

static void assert_not_cached(uint32_t line)
{
	uint64_t w[TPT_WORDS_MAX];

	assert_int_equal(tpt_read(&f.cache, line, w), TPT_MISS);
}

static bool is_dirty(uint32_t line)
{
	int way = tpt_way(f.cache.sets, line);

	assert_true(way >= 0);
	return f.cache.sets[0].tag[way] & TPT_DIRTY;
}

/* Each for entries of both sizes. */
#undef TEST
#define TEST(name)                                                                                 \
	static void name(void **state);                                                            \
	TEST_AS(mpt_##name, name, setup, teardown, &mpt)                                           \
	TEST_AS(mtt_##name, name, setup, teardown, &mtt)                                           \
	static void name(void **state)

TEST(read_hit)
{
	refill(3);
	refill(4);
	assert_int_equal(f.cache.sets[0].recent, 1);
	assert_cached(3, 1003);
	assert_int_equal(f.cache.sets[0].recent, 0); /* LRU */
	assert_false(is_dirty(3));
	assert_int_equal(f.cache.sets[0].seq, 4);
}

TEST(read_miss__changes_nothing)
{
	struct tpt_hold hold;
	uint64_t w[TPT_WORDS_MAX];

	refill(3);
	assert_not_cached(4);
	hold = take(4);
	assert_int_equal(tpt_match(&hold, w), TPT_MISS);
	assert_words(w, 1004); /* from memory, for any reader */
	tpt_release(&hold);
	assert_not_cached(4);
	assert_cached(3, 1003);
}

TEST(write_hit__clean_line)
{
	refill(3);
	refill(4);
	write_line(3, 7);
	assert_cached(3, 7);
	assert_true(is_dirty(3));
	assert_int_equal(f.cache.sets[0].recent, 0);
	assert_memory_has(3, 1003);
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_write_backs), 0);
}

TEST(write_hit__dirty_line)
{
	write_line(3, 7);
	write_line(3, 8);
	assert_cached(3, 8);
	assert_true(is_dirty(3));
	assert_memory_has(3, 1003);
}

TEST(write_miss__empty_way)
{
	write_line(3, 7);
	write_line(4, 8);
	assert_cached(3, 7);
	assert_cached(4, 8);
	assert_memory_has(3, 1003);
	assert_memory_has(4, 1004);
}

TEST(write_miss__clean_victim)
{
	refill(3);
	refill(4);
	write_line(5, 7);
	assert_not_cached(3);
	assert_cached(4, 1004);
	assert_cached(5, 7);
	assert_true(is_dirty(5));
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_write_backs), 0);
}

TEST(write_miss__dirty_victim)
{
	write_line(3, 7);
	refill(4);
	write_line(5, 8);
	assert_memory_has(3, 7);
	assert_not_cached(3);
	assert_cached(4, 1004);
	assert_cached(5, 8);
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_write_backs), 1);
}

TEST(refill__clean_victim)
{
	refill(3);
	refill(4);
	assert_cached(3, 1003); /* so that 4 is the older */
	refill(5);
	assert_not_cached(4);
	assert_cached(3, 1003);
	assert_cached(5, 1005);
	assert_false(is_dirty(5));
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_write_backs), 0);
}

TEST(refill__dirty_victim)
{
	write_line(3, 7);
	write_line(4, 8);
	refill(5);
	assert_memory_has(3, 7);
	assert_memory_has(4, 1004);
	assert_cached(4, 8);
	refill(3); /* and it comes back as it was written; 5 goes, being the older */
	assert_cached(3, 7);
	assert_not_cached(5);
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_write_backs), 1);
}

TEST(held__nobody_else_gets_in)
{
	struct tpt_hold hold, other;
	uint64_t w[TPT_WORDS_MAX];

	refill(3);
	hold = take(3);
	assert_false(tpt_take(&f.cache, 3, &f.counters, &other));
	assert_int_equal(tpt_read(&f.cache, 3, w), TPT_BUSY);
	tpt_release(&hold);
	assert_cached(3, 1003);
}

TEST(one_line__is_its_own_victim)
{
	teardown(state);
	make(*state, 1);
	write_line(3, 7);
	refill(4);
	assert_memory_has(3, 7);
	assert_not_cached(3);
	refill(3);
	assert_cached(3, 7);
	assert_not_cached(4);
	assert_int_equal(f.cache.sets[0].tag[1], 0);
}

TEST(drop__what_is_unmapped_is_gone)
{
	uint32_t per_line = 1u << f.cache.log_group;
	struct tpt_hold hold;
	uint64_t w[TPT_WORDS_MAX];

	write_line(3, 7);
	write_line(5, 8);
	tpt_drop(&f.cache, 4 * per_line, 4 * per_line);
	assert_cached(3, 7);
	assert_not_cached(5);
	assert_memory_has(5, 1005);
	assert_int_equal(tpt_table_unmap(&f.table, 0, TPT_CHUNK_PAGES), 0);
	tpt_drop(&f.cache, 0, f.table.entries);
	assert_not_cached(3);
	for (size_t i = 0; i < (f.cache.set_mask + 1) * TPT_WAYS * (size_t)f.cache.words; i++)
		assert_int_equal(f.cache.lines[i], 0); /* look-ups go by what lines say */
	hold = take(3);
	assert_int_equal(tpt_match(&hold, w), TPT_NOWHERE);
	tpt_release(&hold);
	assert_memory_has(3, 1003);
}

TEST(write_back__to_a_page_that_is_gone_is_none)
{
	write_line(3, 7);
	refill(4);
	assert_int_equal(tpt_table_unmap(&f.table, 0, TPT_CHUNK_PAGES), 0);
	write_line(5, 8);
	assert_memory_has(3, 1003);
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_write_backs), 0);
}

/* Separate memory: allocated, used and freed. */
TEST(large__is_empty_and_works)
{
	const struct kind *k = *state;
	const uint32_t lines = 1 << 17;

	tpt_cache_destroy(&f.cache);
	assert_int_equal(tpt_cache_create(&f.cache, "t", lines, k->words, &f.table, SOCKET_ID_ANY),
			 0);
	assert_true(f.cache.mapped_bytes > (size_t)lines * k->words * 8);
	for (uint32_t line = 1; line < lines; line = line * 2 + 1)
		assert_not_cached(line);
	refill(3);
	assert_cached(3, 1003);
	write_line(LINES - 1, 7);
	assert_cached(LINES - 1, 7);
}

TEST_GROUP(.setup = world_eal);
