/* SPDX-License-Identifier: BSD-3-Clause */
/* Which groups are reported when: joins, leaves, repeats, queries. In times of the test's own. */
#include "fixture.h"
#include "membership.h"

static struct memberships t;
static struct membership_record records[MEMBERSHIP_RECORDS_MAX];

static int begin(void **state)
{
	t = (struct memberships){0};
	return 0;
}

static int end(void **state)
{
	membership_free(&t);
	return 0;
}

/* 239.1.x.y, or ff0e::x:y. */
static const uint8_t *group(unsigned int n, bool v6)
{
	static uint8_t ip[2][16] = {{[10] = 0xff, [11] = 0xff, 239, 1}, {0xff, 0x0e}};

	ip[v6][14] = (uint8_t)(n >> 8);
	ip[v6][15] = (uint8_t)n;
	return ip[v6];
}

static void join(unsigned int n, bool v6, uint64_t now_ms)
{
	bool first;

	assert_int_equal(membership_join(&t, group(n, v6), now_ms, &first), 0);
	assert_true(first);
}

static void nothing_due(uint64_t now_ms)
{
	assert_int_equal(membership_due(&t, false, now_ms, records), 0);
	assert_int_equal(membership_due(&t, true, now_ms, records), 0);
}

/* One report of one family, of one group, and nothing else. */
static void due(uint64_t now_ms, bool v6, uint8_t type, unsigned int n)
{
	assert_int_equal(membership_due(&t, v6, now_ms, records), 1);
	assert_int_equal(records[0].type, type);
	assert_memory_equal(records[0].ip, group(n, v6), 16);
	nothing_due(now_ms);
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

TEST(membership__a_change_is_reported_twice)
{
	for (int v6 = 0; v6 < 2; v6++) {
		uint64_t now = 1000 + (uint64_t)v6 * 100000, again;

		join(1, v6, now);
		due(now, v6, MEMBERSHIP_TO_EXCLUDE, 1);
		again = t.next_ms;
		assert_true(again > now && again <= now + MEMBERSHIP_REPEAT_MS);
		nothing_due(again - 1);
		due(again, v6, MEMBERSHIP_TO_EXCLUDE, 1);
		assert_true(t.next_ms == UINT64_MAX);
		nothing_due(now + 50000);
		assert_true(membership_leave(&t, group(1, v6), now + 50000));
		due(now + 50000, v6, MEMBERSHIP_TO_INCLUDE, 1);
		due(now + 52000, v6, MEMBERSHIP_TO_INCLUDE, 1);
		assert_int_equal(t.count, 0);
		nothing_due(now + 90000);
	}
}

TEST(membership__users_are_counted)
{
	bool first = true;

	join(1, false, 10);
	due(10, false, MEMBERSHIP_TO_EXCLUDE, 1);
	due(2000, false, MEMBERSHIP_TO_EXCLUDE, 1);
	assert_int_equal(membership_join(&t, group(1, false), 2000, &first), 0);
	assert_false(first);
	nothing_due(5000);
	assert_false(membership_leave(&t, group(1, false), 5000));
	nothing_due(5000);
	assert_true(membership_leave(&t, group(1, false), 5000));
	due(5000, false, MEMBERSHIP_TO_INCLUDE, 1);
}

/* The newest change is what is said. */
TEST(membership__left_and_joined_again)
{
	join(1, false, 10);
	due(10, false, MEMBERSHIP_TO_EXCLUDE, 1);
	assert_true(membership_leave(&t, group(1, false), 11));
	due(11, false, MEMBERSHIP_TO_INCLUDE, 1);
	join(1, false, 12);
	due(12, false, MEMBERSHIP_TO_EXCLUDE, 1);
	due(2000, false, MEMBERSHIP_TO_EXCLUDE, 1);
	nothing_due(9000);
	assert_int_equal(t.count, 1);
}

TEST(membership__not_of_those_that_everybody_is_in)
{
	static const uint8_t silent[][16] = {{[10] = 0xff, [11] = 0xff, 224, 0, 0, 1},
					     {0xff, 0x02, [15] = 1},
					     {0xff, 0x01, [15] = 9},
					     {0xff, 0x00, [15] = 9}};
	bool first;

	for (unsigned int i = 0; i < RTE_DIM(silent); i++) {
		assert_int_equal(membership_join(&t, silent[i], 5, &first), 0);
		membership_query(&t, i > 0, silent[i], 0, 0, 5);
		membership_query(&t, i > 0, NULL, 0, 0, 5);
	}
	nothing_due(10000);
	membership_announce(&t, 10000);
	nothing_due(20000);
	for (unsigned int i = 0; i < RTE_DIM(silent); i++)
		assert_true(membership_leave(&t, silent[i], 20000));
	assert_int_equal(t.count, 0);
}

TEST(membership__general_query)
{
	uint64_t when;

	for (unsigned int n = 1; n < 4; n++)
		join(n, false, 10);
	join(1, true, 10);
	for (uint64_t now = 10; now < 3000; now++)
		while (membership_due(&t, false, now, records) ||
		       membership_due(&t, true, now, records))
			;
	membership_query(&t, false, NULL, 0, 500, 3000);
	when = t.next_ms;
	assert_true(when > 3000 && when <= 3500);
	membership_query(&t, false, NULL, 0, 10000, 3000); /* the answer comes no later for it */
	assert_true(t.next_ms <= when);
	nothing_due(3000);
	assert_int_equal(membership_due(&t, true, when, records), 0);
	assert_int_equal(membership_due(&t, false, when, records), 3);
	for (unsigned int n = 0; n < 3; n++)
		assert_int_equal(records[n].type, MEMBERSHIP_IS_EXCLUDE);
	nothing_due(20000);
	membership_query(&t, true, NULL, 0, 0, 20000);
	due(20001, true, MEMBERSHIP_IS_EXCLUDE, 1);
}

TEST(membership__query_of_a_group)
{
	join(1, false, 10);
	join(2, false, 10);
	while (membership_due(&t, false, 10, records) || membership_due(&t, false, 5000, records))
		;
	membership_query(&t, false, group(3, false), 0, 100, 6000); /* not ours */
	membership_query(&t, true, group(1, true), 0, 100, 6000);
	nothing_due(7000);
	membership_query(&t, false, group(2, false), 0, 100, 8000);
	nothing_due(8000);
	due(8100, false, MEMBERSHIP_IS_EXCLUDE, 2);
	membership_query(&t, false, group(2, false), 0, 100, 9000);
	assert_true(membership_leave(&t, group(2, false), 9001));
	due(9001, false, MEMBERSHIP_TO_INCLUDE, 2); /* says it all */
	membership_query(&t, false, group(2, false), 0, 100, 9002);
	due(11000, false, MEMBERSHIP_TO_INCLUDE, 2);
	nothing_due(20000);
}

/* Programs that join and leave as fast as they can while nothing can be reported, since the link is
 * down: what is remembered of that is bounded, and of groups that are joined nothing is lost. */
TEST(membership__joined_and_left_on_and_on)
{
	unsigned int left = 0, n;

	join(60000, false, 5);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 5 * MEMBERSHIP_LEFT_MAX; i++) {
			join(i, false, 10);
			assert_true(membership_leave(&t, group(i, false), 10));
		}
		assert_int_equal(t.count, 1 + MEMBERSHIP_LEFT_MAX);
	}
	join(0, false, 11); /* one of those that are remembered */
	for (uint64_t now = 20; now < 5000; now++)
		while ((n = membership_due(&t, false, now, records)) > 0)
			for (unsigned int i = 0; i < n; i++)
				left += records[i].type == MEMBERSHIP_TO_INCLUDE;
	assert_int_equal(left, 2 * (MEMBERSHIP_LEFT_MAX - 1));
	assert_int_equal(t.count, 2);
	assert_int_equal(t.left, 0);
	assert_true(membership_leave(&t, group(0, false), 5000));
	assert_int_equal(t.left, 1);
}

/* Queries without end that want their answers at once get some of them. */
TEST(membership__flood_of_general_queries)
{
	unsigned int reports = 0;

	join(1, true, 1);
	for (uint64_t now = 1; now < 4000; now++)
		while (membership_due(&t, true, now, records))
			;
	for (uint64_t now = 4000; now < 6000; now++) {
		membership_query(&t, true, NULL, 0, 0, now);
		while (membership_due(&t, true, now, records))
			reports++;
	}
	assert_in_range(reports, 15, 2000 / MEMBERSHIP_GENERAL_MS + 1);
}

TEST(membership__as_often_as_the_querier_wants)
{
	uint64_t now = 400;
	unsigned int n = 0;

	membership_query(&t, false, NULL, 5, 100, 10);
	nothing_due(90);
	membership_query(&t, false, NULL, 5, 1, 95);
	nothing_due(300);
	join(1, false, now);
	for (; now < 20000; now++)
		n += membership_due(&t, false, now, records);
	assert_int_equal(n, 5);
}

TEST(membership__many_in_several_reports)
{
	enum { MANY = 2 * MEMBERSHIP_RECORDS_MAX + 10 };
	unsigned int reports = 0, n, total = 0;

	for (unsigned int i = 0; i < MANY; i++)
		join(i, true, 10);
	while ((n = membership_due(&t, true, 10, records)) > 0) {
		reports++;
		total += n;
	}
	assert_int_equal(reports, 3);
	assert_int_equal(total, MANY);
	while (membership_due(&t, true, 3000, records))
		;
	for (unsigned int i = 0; i < MANY; i++)
		assert_true(membership_leave(&t, group(i, true), 4000));
	while (membership_due(&t, true, 4000, records))
		;
	while (membership_due(&t, true, 6000, records))
		;
	assert_int_equal(t.count, 0);
}

TEST(membership__announced_anew)
{
	join(1, false, 10);
	due(10, false, MEMBERSHIP_TO_EXCLUDE, 1);
	due(2000, false, MEMBERSHIP_TO_EXCLUDE, 1);
	membership_announce(&t, 3000);
	due(3000, false, MEMBERSHIP_TO_EXCLUDE, 1);
	due(5000, false, MEMBERSHIP_TO_EXCLUDE, 1);
	nothing_due(9000);
}
