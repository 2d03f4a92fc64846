/* SPDX-License-Identifier: BSD-3-Clause */
/* The rule of shares.h: what one user gets whatever the others do, what he cannot have, and that
 * nothing is lost. */
#include "test.h"
#include "base/shares.h"

enum { TOTAL = 12800, RESERVE = TOTAL / 4, ASSURED = RESERVE / SHARES_USERS, OWNER = 7 };

static struct shares *s;
static struct share_client client[SHARES_USERS + 1];

static int start(void **state)
{
	s = shares_create(OWNER);
	shares_set_total(s, SHARE_keys, 0, TOTAL);
	shares_set_total(s, SHARE_keys, 1, TOTAL);
	for (uint32_t i = 0; i <= SHARES_USERS; i++)
		assert_int_equal(share_client_begin(s, 1000 + i, (int32_t)i + 1, &client[i]), 0);
	return 0;
}

static int stop(void **state)
{
	struct share_info info;

	for (uint32_t i = 0; i <= SHARES_USERS; i++)
		share_client_end(&client[i]);
	shares_info(s, SHARE_keys, 0, &info);
	assert_int_equal(info.used, 0);
	assert_int_equal(shares_holders(s, NULL, 0), 0);
	shares_destroy(s);
	return 0;
}

/* Takes one by one until refused. */
static uint64_t take_all(struct share_client *c)
{
	uint64_t n = 0;

	while (share_take(c, SHARE_keys, 1) == 0)
		n++;
	return n;
}

#undef TEST
#define TEST(name) TEST_WITH(name, start, stop)

TEST(user__has_no_more_than_his_part)
{
	assert_int_equal(share_take(&client[0], SHARE_keys, TOTAL / 2 + 1), -ENOSPC);
	assert_int_equal(take_all(&client[0]), TOTAL / 2);
	assert_int_equal(share_take(&client[0], SHARE_keys, UINT64_MAX), -ENOSPC);
	share_give(&client[0], SHARE_keys, 10);
	assert_int_equal(take_all(&client[0]), 10);
}

/* Two who take all that they get leave his assured part to each of the others. */
TEST(user__gets_his_assured_part_whatever_others_do)
{
	uint64_t taken;

	taken = take_all(&client[0]) + take_all(&client[1]);
	assert_int_equal(taken, TOTAL - RESERVE + 2 * ASSURED);
	for (uint32_t i = 2; i < SHARES_USERS; i++)
		assert_int_equal(take_all(&client[i]), ASSURED);
	/* more users than there are assured parts */
	assert_int_equal(take_all(&client[SHARES_USERS]), 0);
}

/* Clients of one user share his part, whatever their number. */
TEST(user__is_no_more_with_many_clients)
{
	struct share_client more[4];
	uint64_t taken = 0;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(share_client_begin(s, 1000, 50 + i, &more[i]), 0);
		taken += take_all(&more[i]);
	}
	assert_int_equal(taken, TOTAL / 2);
	assert_int_equal(take_all(&client[0]), 0);
	for (int i = 0; i < 4; i++)
		share_client_end(&more[i]);
	assert_int_equal(take_all(&client[0]), TOTAL / 2);
}

TEST(owner__and_root_leave_the_reserve)
{
	static const uint32_t uid[] = {0, OWNER};
	struct share_client trusted;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(share_client_begin(s, uid[i], 99, &trusted), 0);
		assert_int_equal(take_all(&trusted), TOTAL / 4 * 3); /* as one client */
		/* whose own assured part is left, too: one client has no more than three
		 * quarters */
		assert_int_equal(take_all(&client[0]), 2 * ASSURED);
		share_client_end(&trusted);
		share_give(&client[0], SHARE_keys, 2 * ASSURED);
	}
}

TEST(hca__each_has_its_own)
{
	struct share_client other;

	assert_int_equal(share_client_begin(s, 1000, 99, &other), 0);
	other.hca = 1;
	assert_int_equal(take_all(&client[0]), TOTAL / 2);
	assert_int_equal(take_all(&other), TOTAL / 2);
	share_client_end(&other);
}

/* What is on its way back is still the user's, after the end of his client, too. */
TEST(leaving__counts_until_it_is_back)
{
	struct share_user *u;

	assert_int_equal(take_all(&client[0]), TOTAL / 2);
	u = share_leave(&client[0], SHARE_keys, 100);
	assert_int_equal(share_take(&client[0], SHARE_keys, 100), -ENOSPC);
	assert_false(share_fits(&client[0], SHARE_keys, 1, false));
	assert_true(share_fits(&client[0], SHARE_keys, 100, true));
	assert_false(share_fits(&client[0], SHARE_keys, 101, true));
	share_client_end(&client[0]);
	assert_int_equal(share_client_begin(s, 1000, 99, &client[0]), 0);
	assert_int_equal(take_all(&client[0]), TOTAL / 2 - 100);
	share_return(u, SHARE_keys, 0, 100);
	assert_int_equal(take_all(&client[0]), 100);
}

/* What is used up is refilled over time; a user who has spent more than his part waits longer,
 * whatever connections he closes. */
TEST(spent__comes_back_in_turns)
{
	unsigned int turns = 0;

	shares_set_total(s, SHARE_control_us, 0, TOTAL); /* a quarter of it for one user */
	assert_int_equal(share_use(&client[0], SHARE_control_us, 1), 0);
	share_spend(&client[0], SHARE_control_us, 5 * (TOTAL / 4));
	share_client_end(&client[0]);
	assert_int_equal(share_client_begin(s, 1000, 1, &client[0]), 0);
	while (share_use(&client[0], SHARE_control_us, 1)) {
		assert_int_equal(share_use(&client[1], SHARE_control_us, ASSURED), 0);
		share_refill(s, SHARE_control_us);
		turns++;
	}
	assert_int_equal(turns, 5);
	share_refill(s, SHARE_control_us);
}

/* However many users have spent too much: all together pay it back as slowly as one. */
TEST(spent__comes_back_to_all_together)
{
	unsigned int seconds = 0;

	for (int i = 0; i < 3; i++)
		share_spend(&client[i], SHARE_held_up_ms, 3 * 27);
	while (share_refill_together(s, SHARE_held_up_ms))
		seconds++;
	assert_int_equal(seconds, 8);
	assert_int_equal(share_use(&client[0], SHARE_held_up_ms, 0), 0);
}

TEST(part__of_a_user_may_be_set)
{
	shares_set_user_part(s, 10);
	assert_int_equal(take_all(&client[0]), TOTAL / 10);
}

/* What he holds beyond a lower limit stays his, but counts for nobody else, and comes back whole. */
TEST(part__of_a_user_may_change_while_he_holds_more)
{
	struct share_info info;

	assert_int_equal(take_all(&client[0]), TOTAL / 2);
	shares_set_user_part(s, 10);
	assert_int_equal(take_all(&client[0]), 0);
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(take_all(&client[i]), TOTAL / 10);
	share_give(&client[0], SHARE_keys, TOTAL / 2 - 1);
	shares_set_user_part(s, 0);
	assert_int_equal(take_all(&client[0]), TOTAL / 2 - 1);
	shares_set_total(s, SHARE_keys, 0, TOTAL * 2);
	assert_int_equal(take_all(&client[0]), TOTAL / 2);
	shares_info(s, SHARE_keys, 0, &info);
	assert_int_equal(info.used, TOTAL + 2 * (TOTAL / 10));
}

TEST(shown__who_holds_what_and_who_was_refused)
{
	struct share_holder h[8];
	struct share_info info;

	assert_int_equal(share_take(&client[3], SHARE_keys, 5), 0);
	assert_int_equal(share_take(&client[3], SHARE_keys, TOTAL), -ENOSPC);
	assert_int_equal(shares_holders(s, h, 8), 2);
	assert_int_equal(h[0].uid, 1003);
	assert_int_equal(h[0].pid, 0);
	assert_int_equal(h[0].held, 5);
	assert_int_equal(h[0].most, TOTAL / 2);
	assert_int_equal(h[0].refused, 1);
	assert_int_equal(h[1].pid, 4);
	assert_int_equal(h[1].held, 5);
	shares_info(s, SHARE_keys, 0, &info);
	assert_int_equal(info.used, 5);
	assert_int_equal(info.refused, 1);
	assert_int_equal(info.assured, ASSURED);
}

/* Of little there are fewer assured parts, but some. */
TEST(rows__leave_something_of_any_total)
{
	for (uint64_t total = 12; total < 200; total++) {
		shares_set_total(s, SHARE_keys, 0, total);
		assert_true(take_all(&client[0]) > 0);
		take_all(&client[1]);
		assert_int_equal(share_take(&client[2], SHARE_keys, 1), 0);
		for (int i = 0; i < 3; i++)
			share_give(&client[i], SHARE_keys, client[i].held[SHARE_keys]);
	}
}
