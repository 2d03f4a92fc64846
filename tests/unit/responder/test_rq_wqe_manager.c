/* SPDX-License-Identifier: BSD-3-Clause */
/* RQWQEManager's commands on a receive queue in memory. */
#include "responder_fixture.h"
#include "rq_wqe_manager.h"

static struct counters *c;

static void use_queue(uint32_t entries, uint32_t stride)
{
	c = stage_counters(&fx->e, STAGE_RESPONDER_EXEC);
	fx->qp->rq_entries = entries;
	fx->qp->rq_stride = stride;
}

TEST(open__nothing_posted_or_no_queue)
{
	use_queue(4, 64);
	assert_int_equal(rwm_open(c, fx->qp), RWM_INVALID_WQE);
	fx->record.rq_posted = 4;
	fx->qp->rq = NULL;
	assert_int_equal(rwm_open(c, fx->qp), RWM_INVALID_WQE);
	assert_int_equal(rwm_available(fx->qp), 0);
}

TEST(open__largest_descriptor_has_thirty_entries)
{
	struct wqe_data d[SGE_MAX];
	struct rwm_entry entry;
	struct qp *q = fx->qp;

	use_queue(4, 512);
	for (unsigned i = 0; i < SGE_MAX; i++)
		d[i] = (struct wqe_data){.length = 10, .lkey = FX_KEY, .addr = FX_VA + 100 * i};
	fx_post(SGE_MAX, d);
	assert_int_equal(rwm_open(c, q), RWM_VALID_ENTRY);
	assert_int_equal(q->rwm.length, 300);
	for (unsigned i = 0; i < SGE_MAX; i++) {
		assert_int_equal(rwm_fetch_entry(q, &entry), RWM_VALID_ENTRY);
		assert_int_equal(entry.va, FX_VA + 100 * i);
		rwm_update_entry(q, 4);
		assert_int_equal(rwm_fetch_entry(q, &entry), RWM_VALID_ENTRY);
		assert_int_equal(entry.va, FX_VA + 100 * i + 4);
		assert_int_equal(entry.bytes, 6);
		rwm_release_entry(q);
	}
	assert_int_equal(rwm_fetch_entry(q, &entry), RWM_INVALID_ENTRY);
}

TEST(fetch_entry__end_of_the_stride_is_an_end)
{
	const struct wqe_data d[3] = {{1, FX_KEY, FX_VA}, {2, FX_KEY, FX_VA}, {3, FX_KEY, FX_VA}};
	struct rwm_entry entry;

	use_queue(4, 64);
	fx_post(3, d); /* next unit and three: no terminator */
	fx_post_simple(0, 100);
	memset(fx->rq + 64, 0x11, WQE_UNIT_BYTES); /* the next one begins with no terminator */
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp->rwm.length, 6);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_VALID_ENTRY);
		rwm_release_entry(fx->qp);
	}
	assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_INVALID_ENTRY);
}

/* The bytes behind it are from another descriptor. */
TEST(fetch_entry__nothing_counts_behind_the_terminator)
{
	const struct wqe_data d[] = {
		{7, FX_KEY, FX_VA}, {0, 0, 0}, {WQE_INLINE | 9, FX_KEY, FX_VA}, {9, FX_KEY, FX_VA}};
	struct rwm_entry entry;

	use_queue(2, 128);
	fx_post(4, d);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp->rwm.length, 7);
	assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_VALID_ENTRY);
	rwm_release_entry(fx->qp);
	assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_INVALID_ENTRY);
}

/* Only 16 zero bytes end a descriptor. */
TEST(fetch_entry__zero_in_part_is_no_end)
{
	const struct wqe_data d[] = {
		{0, FX_KEY, 0}, {0, 0, FX_VA}, {7, 0, 0}, {0, FX_KEY, FX_VA}, {9, FX_KEY, FX_VA}};
	struct rwm_entry entry;

	use_queue(2, 128);
	fx_post(5, d);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp->rwm.length, 16);
	assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_VALID_ENTRY);
	assert_int_equal(entry.bytes, 7); /* never one of no bytes */
	rwm_release_entry(fx->qp);
	assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_VALID_ENTRY);
	assert_int_equal(entry.bytes, 9);
	rwm_release_entry(fx->qp);
	assert_int_equal(rwm_fetch_entry(fx->qp, &entry), RWM_INVALID_ENTRY);
}

/* The client takes its count back while a message has a descriptor: nothing is left to promise. */
TEST(available__count_goes_back_while_one_is_open)
{
	use_queue(4, 64);
	fx_post_simple(0, 100);
	assert_int_equal(rwm_available(fx->qp), 1);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(rwm_available(fx->qp), 0);
	fx->record.rq_posted = 0;
	assert_int_equal(rwm_available(fx->qp), 0);
	fx->record.rq_posted = 4;
	assert_int_equal(rwm_available(fx->qp), 3);
	rwm_rewind(fx->qp);
	assert_int_equal(rwm_available(fx->qp), 4);
}

TEST(open__client_changes_memory_after_the_fetch)
{
	use_queue(4, 64);
	fx_post_simple(0, 100);
	fx_post_simple(0, 200);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	memset(fx->rq, 0xff, sizeof(fx->rq));
	rwm_release_wqe(fx->qp);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp->rwm.length, 200);
}

TEST(open__refuses_a_count_beyond_the_queue)
{
	use_queue(4, 64);
	fx->record.rq_posted = 5;
	assert_int_equal(rwm_open(c, fx->qp), RWM_BAD_QUEUE);
	assert_int_equal(rwm_available(fx->qp), 4);
	fx->record.rq_posted = UINT32_MAX;
	assert_int_equal(rwm_open(c, fx->qp), RWM_BAD_QUEUE);
}

TEST(open__counts_wrap)
{
	use_queue(4, 64);
	fx->record.rq_posted = fx->qp->rwm.consumed = fx->qp->rwm.fetched = UINT32_MAX;
	fx_post_simple(0, 11);
	fx_post_simple(0, 22);
	assert_int_equal(rwm_wqe_offset(fx->qp), 3 * 64);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp->rwm.length, 11);
	assert_int_equal(rwm_available(fx->qp), 1);
	rwm_release_wqe(fx->qp);
	assert_int_equal(rwm_open(c, fx->qp), RWM_VALID_ENTRY);
	assert_int_equal(fx->qp->rwm.length, 22);
	assert_int_equal(rwm_wqe_offset(fx->qp), 0);
}
