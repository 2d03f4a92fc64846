/* SPDX-License-Identifier: BSD-3-Clause */
/* How often polls of an empty CQ yield, with a clock and a scheduler of ours. */
#include <sched.h>
#include "test.h"
#include "base/monotonic.h"

static uint64_t world_ns, yield_takes_ns;
static unsigned yields;

static uint64_t test_now(void)
{
	return world_ns;
}

static int test_yield(void)
{
	world_ns += yield_takes_ns;
	yields++;
	return 0;
}

#define monotonic_ns test_now
#define sched_yield  test_yield
#include "cq.c"
#undef monotonic_ns
#undef sched_yield

enum { ENTRIES = 2 };

TEST(poll__yields_as_often_as_others_take_short_turns)
{
	static const struct {
		uint64_t takes_ns;
		unsigned polls, yields;
		bool wants; /* softhca_yield_when_empty() */
	} rows[] = {
		{300, 10 * YIELD_POLLS, 0,
		 false}, /* the native library's programs do not ask for it */
		{300, 10 * YIELD_POLLS, 10, true},     /* nobody else is there */
		{3000, YIELD_POLLS + 9, 10, true},     /* another poller is */
		{4000000, 10 * YIELD_POLLS, 10, true}, /* a thread that uses up its time slice is */
	};
	static struct client_page page;
	static struct softhca_context ctx = {.page = &page, .fd = -1};
	static struct cqe entries[ENTRIES] = {{.owner = CQE_OWNER_HW}, {.owner = CQE_OWNER_HW}};
	struct softhca_wc wc;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct softhca_cq cq = {.node.ctx = &ctx,
					.buffer = entries,
					.mask = ENTRIES - 1,
					.idle_mask = IDLE_POLLS - 1};

		if (rows[i].wants)
			softhca_yield_when_empty(&cq);
		yields = 0;
		yield_takes_ns = rows[i].takes_ns;
		for (unsigned n = 0; n < rows[i].polls; n++)
			assert_int_equal(softhca_poll_cq(&cq, 1, &wc), 0);
		assert_int_equal(yields, rows[i].yields);
	}
}
