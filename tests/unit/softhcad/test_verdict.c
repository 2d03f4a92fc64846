/* SPDX-License-Identifier: BSD-3-Clause */
/* Whoever waits for a change learns what became of his. */
#include "test.h"
#include "verdict.h"

static struct verdicts v;
static char text[VERDICT_BYTES];

static void expect(uint32_t ticket, int ret, const char *what)
{
	text[0] = '\0';
	assert_int_equal(verdict_of(&v, ticket, text, sizeof(text)), ret);
	assert_string_equal(text, what);
}

TEST(verdict__is_of_the_change_that_was_asked_for)
{
	uint32_t first, second;

	verdict_fail(&v, -EIO, "of a change that nobody waits for");
	verdict_end(&v);
	first = verdict_begin(&v, "one: added");
	expect(first, -EAGAIN, "");
	verdict_fail(&v, -ENOMEM, "one: too large");
	verdict_fail(&v, -EIO, "two: the second failure");
	verdict_end(&v);
	second = verdict_begin(&v, "two: added");
	expect(first, -ENOMEM, "one: too large"); /* though another was asked for since */
	verdict_end(&v);
	verdict_end(&v);
	expect(second, 0, "two: added");
	expect(first, -ENOMEM, "one: too large");
}

TEST(verdict__is_forgotten_in_the_end)
{
	uint32_t first = verdict_begin(&v, "the first"), last = 0;

	verdict_end(&v);
	for (unsigned i = 0; i < VERDICTS; i++) {
		last = verdict_begin(&v, "another");
		verdict_end(&v);
	}
	expect(first, -EIO, "done, but the daemon's log has to say how it ended");
	expect(last, 0, "another");
	v.tickets = UINT32_MAX;
	assert_int_equal(verdict_begin(&v, ""), 1); /* 0 is nobody's */
}
