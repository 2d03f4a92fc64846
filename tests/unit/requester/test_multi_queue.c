/* SPDX-License-Identifier: BSD-3-Clause */
/* MultiQueue by one thread: order, emptiness, the free FIFO. */
#include "multi_queue_fixture.h"

static void put(struct multi_queue *mq, struct mq_list *l, uint32_t psn)
{
	struct sw_element x = {.psn = psn};

	sw_put(mq, l, &x);
}

static uint32_t take(struct multi_queue *mq, struct mq_list *l)
{
	struct sw_element *x = sw_head(mq, l);
	uint32_t psn;

	assert_non_null(x);
	psn = x->psn;
	sw_pop(mq, l);
	return psn;
}

TEST(sw_put__keeps_the_order)
{
	struct multi_queue *mq = multi_queue_make(8);
	struct mq_list l = {0};

	for (uint32_t i = 0; i < 8; i++)
		put(mq, &l, i);
	assert_int_equal(mq_count(&l), 8);
	assert_int_equal(mq_free_count(&mq->sw_free), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(take(mq, &l), i);
	assert_null(sw_head(mq, &l));
	assert_int_equal(mq_free_count(&mq->sw_free), 8);
	multi_queue_unmake();
}

static void empty_and_refill(bool one_lcore)
{
	struct multi_queue *mq = multi_queue_make(4);
	struct mq_list l = {0};

	mq->one_lcore = one_lcore;
	assert_null(sw_head(mq, &l));
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k <= i % 4; k++)
			put(mq, &l, i * 4 + k);
		for (uint32_t k = 0; k <= i % 4; k++)
			assert_int_equal(take(mq, &l), i * 4 + k);
		assert_null(sw_head(mq, &l));
	}
	multi_queue_unmake();
}

TEST(sw_pop__empty_and_refill)
{
	empty_and_refill(false);
	empty_and_refill(true);
}

TEST(sw_put__lists_that_share_the_pool_stay_apart)
{
	struct multi_queue *mq = multi_queue_make(6);
	struct mq_list l[3] = {0};

	/* Lists that run empty leave tails which others reuse */
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < 3; i++)
			put(mq, &l[i], round << 8 | i << 4);
		put(mq, &l[round % 3], round << 8 | round % 3 << 4 | 1);
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t i = (round + k) % 3;

			assert_int_equal(take(mq, &l[i]), round << 8 | i << 4);
			if (i == round % 3)
				assert_int_equal(take(mq, &l[i]), round << 8 | i << 4 | 1);
			assert_null(sw_head(mq, &l[i]));
		}
	}
	assert_int_equal(mq_free_count(&mq->sw_free), 6);
	multi_queue_unmake();
}

TEST(rd_put__keeps_the_order)
{
	struct multi_queue *mq = multi_queue_make(4);
	struct mq_list rd = {0}, re = {0};

	for (uint32_t i = 0; i < 40; i++) {
		struct rd_element x = {.psn = i};
		struct re_element y = {.lkey = i};

		rd_put(mq, &rd, &x);
		re_put(mq, &re, &y);
		if (i < 3)
			continue;
		assert_int_equal(rd_head(mq, &rd)->psn, i - 3);
		assert_int_equal(re_head(mq, &re)->lkey, i - 3);
		rd_pop(mq, &rd);
		re_pop(mq, &re);
	}
	assert_int_equal(mq_count(&rd), 3);
	assert_int_equal(mq_free_count(&mq->rd_free), 1);
	assert_int_equal(mq_free_count(&mq->re_free), 1);
	multi_queue_unmake();
}

/* Indices are given out in the order in which they came back, each once. */
TEST(mq_alloc__fifo_wraps)
{
	struct multi_queue *mq = multi_queue_make(4);
	struct mq_free *f = &mq->sw_free;
	uint32_t index[4];

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(mq_alloc(f), i);
	assert_int_equal(mq_free_count(f), 0);
	for (uint32_t i = 0; i < 4; i++)
		mq_give(f, 3 - i);
	for (uint32_t round = 0; round < 50; round++) {
		index[0] = mq_alloc(f);
		assert_int_equal(index[0], 3 - round % 4);
		assert_int_equal(mq_free_count(f), 3);
		mq_give(f, index[0]);
	}
	assert_int_equal(mq_free_count(f), 4);
	multi_queue_unmake();
}

/* The counts run freely: after 2^32 elements nothing may change. Sizes of the configuration need
 * not be powers of two. */
static void wrap_counts(uint32_t size)
{
	struct multi_queue *mq = multi_queue_make(size);
	struct mq_free *f = &mq->sw_free;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(mq_alloc(f), i);
	f->taken = f->given = UINT32_MAX - 1;
	for (uint32_t i = 0; i < size; i++)
		mq_give(f, i);
	assert_int_equal(mq_free_count(f), size);
	for (uint32_t i = 0; i < size; i++) {
		uint32_t index = mq_alloc(f);

		if (seen >> index & 1)
			fail_msg("size %u: element %u was given out twice", size, index);
		seen |= 1ull << index;
	}
	multi_queue_unmake();
}

TEST(mq_alloc__counts_wrap)
{
	wrap_counts(4);
	wrap_counts(64);
	wrap_counts(5);
	wrap_counts(63);
}

TEST(sw_put__counts_wrap)
{
	struct multi_queue *mq = multi_queue_make(4);
	struct mq_list l = {.produced = UINT32_MAX - 1, .consumed = UINT32_MAX - 1};

	for (uint32_t i = 0; i < 20; i++) {
		put(mq, &l, i);
		put(mq, &l, i + 100);
		assert_int_equal(mq_count(&l), 2);
		assert_int_equal(take(mq, &l), i);
		assert_int_equal(take(mq, &l), i + 100);
		assert_null(sw_head(mq, &l));
	}
	multi_queue_unmake();
}

/* The one-element race, step by step. The producer has seen that the list is not empty; before it
 * links, the consumer takes the last element: the new one must become the head. */
TEST(mq_link__consumer_was_first)
{
	struct multi_queue *mq = multi_queue_make(4);
	struct mq_list l = {0};
	uint32_t stale = l.consumed;

	put(mq, &l, 1);
	assert_int_equal(take(mq, &l), 1);
	l.consumed = stale; /* the value that the producer saw */
	mq->sw[2].psn = 2;
	mq_link(false, &l, &mq->sw[2].next, &mq->sw[l.tail].next, 2);
	l.consumed = stale + 1; /* the current value */
	assert_int_equal(take(mq, &l), 2);
	assert_null(sw_head(mq, &l));
	multi_queue_unmake();
}

/* Having taken the last element, the consumer leaves the head alone: the producer may have set it
 * by then. */
TEST(mq_unlink__last_leaves_the_head_to_the_producer)
{
	struct multi_queue *mq = multi_queue_make(4);
	struct mq_list l = {0};

	put(mq, &l, 1);
	l.head = 3; /* as if the producer had been there between closing and now */
	mq_unlink(false, &l, 1, &mq->sw[l.tail].next);
	assert_int_equal(l.head, 3);
	assert_int_equal(mq_count(&l), 0);
	multi_queue_unmake();
}
