/* SPDX-License-Identifier: BSD-3-Clause */
/* When softhca-perf gives up, on a clock of the test's own. */
#include "test.h"
#include "options.h"
#include "wait.h"

#define MS 1000000ull

enum { POLLS_PER_LOOK = 64 };

static uint64_t clock_ns;

uint64_t now_ns(void)
{
	return clock_ns;
}

void session_arm(struct session *s)
{
}

void session_sleep(struct session *s)
{
}

/* Polls in vain for so many seconds, with a look at the clock every tenth of one. */
static int poll_in_vain(struct waiter *w, unsigned seconds)
{
	int rc = 0;

	for (unsigned i = 0; i < seconds * 10 * POLLS_PER_LOOK && !rc; i++) {
		clock_ns += i % POLLS_PER_LOOK ? 0 : 100 * MS;
		rc = wait_turn(w, 0);
	}
	return rc;
}

/* Who was stopped, or whose machine was, has seen nothing of that time. */
TEST(stuck__is_20_s_of_looking)
{
	static const struct row {
		unsigned before_s, stood_still_s, after_s;
		int rc;
	} rows[] = {
		{19, 0, 0, 0},
		{21, 0, 0, -1},
		{10, 3600, 8, 0},
		{10, 3600, 12, -1},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct options o = {.events = false};
		struct session s = {.o = &o};
		struct waiter w;
		int rc;

		wait_begin(&w, &s, "test");
		rc = poll_in_vain(&w, r->before_s);
		clock_ns += r->stood_still_s * 1000 * MS;
		assert_int_equal(rc ? rc : poll_in_vain(&w, r->after_s), r->rc);
	}
}
