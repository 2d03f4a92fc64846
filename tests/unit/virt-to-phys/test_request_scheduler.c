/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request scheduler: what waits, in which order it is served, whose answer is believed; and the
 * design's deadlock, with its cure.
 */
#include "test.h"
#include <rte_memory.h>
#include "world_eal.h"
#include "virt-to-phys/v2p.h"

enum { PD = 7, A = 0x1001, B = 0x2002, C = 0x3003, PAGED = 0x4004, PAGED_TOO = 0x5005, LEN = 8192 };

static struct {
	struct v2p v2p;
	struct counters counters;
	struct v2p_port port;
} f;

static void make_region(uint32_t key)
{
	struct mpt_entry m = {.key = key,
			      .pd = PD,
			      .access = 0xf,
			      .length = LEN,
			      .phys = (uint8_t *)((uintptr_t)key << 16)};

	assert_int_equal(v2p_write_mpt(&f.v2p, &m), 0);
}

static void make_paged(uint32_t key, uint32_t first)
{
	const uint64_t page[2] = {(uint64_t)key << 16, (uint64_t)key << 20};
	struct mpt_entry m = {.key = key,
			      .pd = PD,
			      .access = 0xf,
			      .flags = MPT_PAGES,
			      .length = LEN,
			      .mtt_first = first,
			      .log_page = 12};

	assert_int_equal(v2p_write_mtt(&f.v2p, first, page, 2), 0);
	assert_int_equal(v2p_write_mpt(&f.v2p, &m), 0);
}

/* Caches of one line each: every other key is a miss. */
static int setup(void **state)
{
	struct v2p_config c = {.name = "t",
			       .mpts = 256,
			       .mtts = 256,
			       .mpt_cache_lines = 1,
			       .mtt_cache_lines = 4,
			       .counters = &f.counters,
			       .socket = SOCKET_ID_ANY};

	memset(&f, 0, sizeof(f));
	assert_int_equal(v2p_create(&f.v2p, &c), 0);
	f.port = (struct v2p_port){.v2p = &f.v2p, .counters = &f.counters, .pend_misses = true};
	make_region(A);
	make_region(B);
	make_region(C);
	make_paged(PAGED, 0);
	make_paged(PAGED_TOO, 4);
	make_region(0x6006); /* is in the cache now */
	return 0;
}

static int teardown(void **state)
{
	v2p_destroy(&f.v2p);
	return 0;
}

static enum v2p_state ask(enum v2p_channel channel, uint32_t key, uint64_t va)
{
	uint64_t run;
	uint8_t *addr;
	enum v2p_state s = v2p_request(
		&f.port, channel,
		&(struct v2p_access){
			.pd = PD, .key = key, .va = va, .length = 8, .rights = ACCESS_REMOTE_READ},
		&addr, &run);

	if (s == V2P_SUCCESS)
		assert_ptr_equal(addr, ((uintptr_t)key << 16) + va);
	return s;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

TEST(hit__is_answered_at_once)
{
	assert_int_equal(ask(V2P_EE_DATA, 0x6006, 8), V2P_SUCCESS);
	assert_int_equal(f.port.pending, 0);
	assert_int_equal(v2p_poll(&f.port), 0);
}

TEST(miss__waits_for_the_next_poll)
{
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(counter_read(&f.counters, COUNTER_v2p_pending), 1);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_SUCCESS);
	assert_int_equal(v2p_poll(&f.port), 0);
}

TEST(miss__of_a_region_without_memory)
{
	struct mpt_entry m = {.key = 0x8008, .pd = PD, .flags = MPT_NULL, .length = UINT64_MAX};
	uint64_t run;
	uint8_t *addr;

	assert_int_equal(v2p_write_mpt(&f.v2p, &m), 0);
	make_region(0x7007); /* evicts it */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(v2p_request(&f.port, V2P_WP_DATA,
					     &(struct v2p_access){.pd = PD,
								  .key = m.key,
								  .va = 5,
								  .length = 1 << 20,
								  .rights = V2P_LOCAL_READ},
					     &addr, &run),
				 i ? V2P_SUCCESS : V2P_PENDING);
		assert_int_equal(v2p_poll(&f.port), !i);
	}
	assert_ptr_equal(addr, f.v2p.zeroes);
	assert_int_equal(run, V2P_NULL_BYTES);
}

TEST(miss__holds_back_its_channel_alone)
{
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(ask(V2P_EE_DATA, B, 8), V2P_PENDING); /* not taken up */
	assert_int_equal(ask(V2P_RRC_DATA, C, 8), V2P_PENDING);
	assert_int_equal(ask(V2P_WP_DATA, 0x6006, 8), V2P_SUCCESS);
	assert_int_equal(v2p_poll(&f.port), 2);
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_SUCCESS);
	assert_int_equal(ask(V2P_RRC_DATA, C, 8), V2P_SUCCESS);
}

/* With one line, what one channel refills another evicts: the answers come all the same. */
TEST(miss__makes_progress_with_one_line)
{
	static const uint32_t keys[] = {A, B, C};

	for (unsigned round = 0; round < 10; round++) {
		for (unsigned c = 1; c < V2P_CHANNELS; c++)
			assert_int_equal(ask(c, keys[(c + round) % 3], round), V2P_PENDING);
		assert_int_equal(v2p_poll(&f.port), V2P_CHANNELS - 1);
		for (unsigned c = 1; c < V2P_CHANNELS; c++)
			assert_int_equal(ask(c, keys[(c + round) % 3], round), V2P_SUCCESS);
		assert_int_equal(f.port.pending, 0);
		make_region(0x7007); /* evicts the last */
		assert_int_equal(v2p_invalidate_mpt(&f.v2p, 0x7007), 0);
	}
}

TEST(refusal__comes_in_the_same_way)
{
	uint64_t run;
	uint8_t *addr;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ask(V2P_EE_DATA, A + 0x10000, 8), i ? V2P_KEY_ERR : V2P_PENDING);
		assert_int_equal(ask(V2P_RRC_DATA, B, LEN - 4), i ? V2P_LENGTH_ERR : V2P_PENDING);
		assert_int_equal(v2p_request(&f.port, V2P_WP_DATA,
					     &(struct v2p_access){.pd = PD + 1,
								  .key = C,
								  .length = 1,
								  .rights = ACCESS_REMOTE_READ},
					     &addr, &run),
				 i ? V2P_PD_ERR : V2P_PENDING);
		assert_int_equal(v2p_poll(&f.port), i ? 0 : 3);
	}
}

TEST(result__of_another_request_is_dropped)
{
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, B, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, B, 8), V2P_SUCCESS);
}

TEST(result__is_not_believed_after_an_invalidation)
{
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(v2p_invalidate_mpt(&f.v2p, A), 0);
	make_region(0x7007); /* so that it is not seen at once */
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_KEY_ERR);
}

/* The key of the entry that was refilled last. */
static uint32_t cached(void)
{
	return (uint32_t)tpt_line(&f.v2p.mpt_cache, 0, 0)[MPT_WORD_KEY_PD];
}

TEST(order__ceu_first_others_in_turn)
{
	unsigned last[V2P_CHANNELS] = {0};

	for (unsigned round = 0; round < V2P_CHANNELS - 1; round++) {
		static const uint32_t keys[V2P_CHANNELS] = {A,	    B,	    C,	    0x6006,
							    0x8008, 0x9009, 0xa00a, 0xb00b};

		for (unsigned c = 4; c < V2P_CHANNELS && round == 0; c++)
			make_region(keys[c]);
		make_region(0xc00c);
		assert_int_equal(v2p_invalidate_mpt(&f.v2p, 0xc00c), 0);
		for (unsigned c = 0; c < V2P_CHANNELS; c++)
			assert_int_equal(ask(c, keys[c], 8), V2P_PENDING);
		assert_int_equal(v2p_poll(&f.port), V2P_CHANNELS);
		assert_int_not_equal(cached(), keys[V2P_CEU]);
		for (unsigned c = 0; c < V2P_CHANNELS; c++) {
			last[c] += cached() == keys[c];
			assert_int_equal(ask(c, keys[c], 8), V2P_SUCCESS);
		}
	}
	for (unsigned c = 1; c < V2P_CHANNELS; c++)
		assert_int_equal(last[c], 1); /* each was the last once */
}

TEST(held_set__keeps_a_request_waiting)
{
	struct tpt_hold hold;

	f.port.pend_misses = false;
	assert_true(tpt_take(&f.v2p.mpt_cache, v2p_index(&f.v2p, A), NULL, &hold));
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 0);
	tpt_release(&hold);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, A, 8), V2P_SUCCESS);
	assert_int_equal(ask(V2P_EE_DATA, B, 8), V2P_SUCCESS); /* a miss is none of that */
}

TEST(pages__answered_at_once_or_later)
{
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_SUCCESS);
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 16), V2P_SUCCESS);
}

/* Which of the two queues a request waits in when its pages are held. */
TEST(queues__one_for_each_kind_of_access)
{
	static const struct {
		enum v2p_channel channel;
		uint32_t access;
		enum mtt_class queue;
	} rows[] = {
		{V2P_WP_DATA, V2P_LOCAL_READ, MTT_READ},
		{V2P_EE_DATA, ACCESS_REMOTE_READ, MTT_READ},
		{V2P_EE_DATA, ACCESS_REMOTE_WRITE, MTT_WRITE},
		{V2P_EE_DATA, ACCESS_REMOTE_ATOMIC, MTT_WRITE},
		{V2P_RRC_DATA, ACCESS_LOCAL_WRITE, MTT_WRITE},
	};
	struct tpt_hold hold;
	uint64_t run;
	uint8_t *at;

	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 1);
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_SUCCESS);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct v2p_access access = {
			.pd = PD, .key = PAGED, .length = 8, .rights = rows[i].access};

		assert_true(tpt_take(&f.v2p.mtt_cache, 0, NULL, &hold)); /* PAGED's pages */
		assert_int_equal(v2p_request(&f.port, rows[i].channel, &access, &at, &run),
				 V2P_PENDING);
		for (unsigned q = 0; q < MTT_CLASSES; q++)
			assert_int_equal(f.port.mtt[q].count, q == rows[i].queue);
		tpt_release(&hold);
		assert_int_equal(v2p_poll(&f.port), 1);
		assert_int_equal(v2p_request(&f.port, rows[i].channel, &access, &at, &run),
				 V2P_SUCCESS);
	}
}

/* The check alone waits for its entry, not for pages, and is not mistaken for the access. */
TEST(check__needs_no_pages)
{
	struct tpt_hold entry, pages;
	struct v2p_port *p = &f.port;
	const uint32_t access = ACCESS_REMOTE_READ;

	p->pend_misses = false;
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_SUCCESS);
	assert_true(tpt_take(&f.v2p.mtt_cache, 0, NULL, &pages));
	assert_true(tpt_take(&f.v2p.mpt_cache, v2p_index(&f.v2p, PAGED), NULL, &entry));
	assert_int_equal(v2p_check(p, V2P_EE_DATA,
				   &(struct v2p_access){
					   .pd = PD, .key = PAGED, .length = 8, .rights = access}),
			 V2P_PENDING);
	assert_int_equal(v2p_may_become(&f.v2p, PAGED), V2P_PENDING);
	assert_int_equal(v2p_poll(p), 0);
	tpt_release(&entry);
	assert_int_equal(v2p_may_become(&f.v2p, PAGED), V2P_KEY_ERR);
	assert_int_equal(v2p_poll(p), 1);
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_PENDING);
	assert_int_equal(v2p_check(p, V2P_WP_DATA,
				   &(struct v2p_access){
					   .pd = PD, .key = PAGED, .length = 8, .rights = access}),
			 V2P_SUCCESS);
	assert_int_equal(
		v2p_check(p, V2P_WP_DATA,
			  &(struct v2p_access){
				  .pd = PD, .key = PAGED, .length = UINT64_MAX, .rights = access}),
		V2P_LENGTH_ERR);
	tpt_release(&pages);
	assert_int_equal(v2p_poll(p), 1);
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_SUCCESS);
}

/* A read waits for pages that another lcore holds; writes to other pages go on meanwhile. */
TEST(queues__a_blocked_read_holds_up_no_write)
{
	struct tpt_hold hold;
	uint64_t run;
	uint8_t *at;

	assert_true(tpt_take(&f.v2p.mtt_cache, 0, NULL, &hold)); /* PAGED's pages */
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_PENDING);
	assert_int_equal(v2p_poll(&f.port), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(V2P_WP_DATA, PAGED_TOO, 8), V2P_PENDING);
		assert_int_equal(v2p_request(&f.port, V2P_RRC_DATA,
					     &(struct v2p_access){.pd = PD,
								  .key = PAGED_TOO,
								  .va = 8,
								  .length = 8,
								  .rights = ACCESS_LOCAL_WRITE},
					     &at, &run),
				 i ? V2P_SUCCESS : V2P_PENDING);
		v2p_poll(&f.port);
	}
	tpt_release(&hold);
	v2p_poll(&f.port);
	assert_int_equal(ask(V2P_EE_DATA, PAGED, 8), V2P_SUCCESS);
	assert_int_equal(ask(V2P_WP_DATA, PAGED_TOO, 8), V2P_SUCCESS);
}

TEST_GROUP(.setup = world_eal);
