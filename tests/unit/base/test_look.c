/* SPDX-License-Identifier: BSD-3-Clause */
/* When a thread that waits looks, and when it sleeps; in made-up time. */
#include "test.h"
#include "base/look.h"

enum { US = 1000 };

/* A wait of that length, slept through. */
static void waited(struct look *l, uint64_t *now, uint64_t ns)
{
	look_begin(l, *now);
	*now += ns;
	look_end(l, *now);
}

/* How often it looks in a wait in which nothing comes, when each yield takes that long. */
static unsigned int looks(struct look *l, uint64_t *now, uint64_t yield_ns)
{
	unsigned int n = 0;
	bool more;

	look_begin(l, *now);
	for (more = look_pays(l, *now); more; n++) {
		*now += yield_ns;
		more = look_again(l, *now - yield_ns, *now);
	}
	return n;
}

TEST(look__pays_after_a_short_wait)
{
	struct look l = {0};
	uint64_t now = 5;

	assert_int_equal(looks(&l, &now, 1 * US), 0); /* nothing is known */
	waited(&l, &now, LOOK_NS - 1);
	assert_int_equal(looks(&l, &now, 1 * US), LOOK_NS / US);
	look_end(&l, now); /* it was in vain: sleep the next time */
	assert_int_equal(looks(&l, &now, 1 * US), 0);
	waited(&l, &now, LOOK_NS);
	assert_int_equal(looks(&l, &now, 1 * US), 0);
	waited(&l, &now, 1 * US);
	assert_int_not_equal(looks(&l, &now, 1 * US), 0);
}

/* The longer another thread kept the CPU, the longer it is left to him. */
TEST(look__is_no_other_threads_loss)
{
	static const uint64_t slice[] = {LOOK_YIELD_NS + 1, 400 * US, 3000 * US};

	for (unsigned int i = 0; i < 3; i++) {
		struct look l = {0};
		uint64_t now = 5;

		waited(&l, &now, 1 * US);
		assert_int_equal(looks(&l, &now, slice[i]), 1);
		waited(&l, &now, 1 * US);
		now = l.since_ns + LOOK_AWAY * slice[i] - 1;
		assert_int_equal(looks(&l, &now, 1 * US), 0);
		now++;
		assert_int_not_equal(looks(&l, &now, 1 * US), 0);
	}
}
