/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table, row by row of its state table, in virtual time. */
#include "test.h"
#include "neighbour.h"

static struct neighbours table;
static const uint8_t mac_1[6] = {2, 0, 0, 0, 0, 1}, mac_2[6] = {2, 0, 0, 0, 0, 2};

static const uint8_t *ip(unsigned int n)
{
	static uint8_t address[16];

	memset(address, 0, sizeof(address));
	address[0] = 0xfd;
	address[14] = n >> 8;
	address[15] = n & 0xff;
	return address;
}

static int reset(void **state)
{
	memset(&table, 0, sizeof(table));
	return 0;
}

/* How many questions are due at that time. */
static unsigned int due(uint64_t now_ms)
{
	unsigned int cursor = 0, n = 0;

	while (neighbour_due(&table, &cursor, now_ms))
		n++;
	return n;
}

#undef TEST
#define TEST(name) TEST_WITH(name, reset, NULL)

TEST(neighbour__asked_then_known)
{
	uint8_t mac[6];

	assert_int_equal(neighbour_find(&table, ip(1), 0, mac), -EAGAIN);
	assert_int_equal(due(0), 1);
	assert_int_equal(due(0), 0);
	assert_int_equal(neighbour_find(&table, ip(1), 1, mac), -EAGAIN);
	assert_true(neighbour_learn(&table, ip(1), mac_1, false, 2));
	assert_int_equal(neighbour_find(&table, ip(1), 3, mac), 0);
	assert_memory_equal(mac, mac_1, 6);
	assert_int_equal(due(100000), 0);
}

TEST(neighbour__unanswered_fails_and_is_forgotten)
{
	unsigned int asked = 0;
	uint64_t now = 0;
	uint8_t mac[6];

	neighbour_find(&table, ip(1), now, mac);
	while (neighbour_find(&table, ip(1), now, mac) == -EAGAIN && now < 10000)
		asked += due(now++);
	assert_int_equal(asked, NEIGHBOUR_TRIES);
	assert_int_equal(now, 2351);
	assert_int_equal(table.failed, 1);
	assert_int_equal(neighbour_find(&table, ip(1), now, mac), -EHOSTUNREACH);
	assert_int_equal(due(now + NEIGHBOUR_HOLD_MS), 0);
	assert_int_equal(neighbour_find(&table, ip(1), now, mac), -EAGAIN);
	assert_int_equal(due(now + NEIGHBOUR_HOLD_MS), 1);
}

/* The control thread asks in each of its turns: as long as nothing is due, that costs nothing. */
TEST(neighbour__no_entry_is_looked_at_before_it_is_due)
{
	unsigned int cursor, asked = 0;
	uint8_t mac[6];

	for (unsigned int i = 0; i < NEIGHBOURS_ASKED_MAX; i++)
		neighbour_find(&table, ip(i), i % 2, mac);
	for (uint64_t now = 0; now < 5000; now++) {
		asked += due(now);
		cursor = 0;
		assert_null(neighbour_due(&table, &cursor, now));
		assert_int_equal(cursor, 0);
	}
	assert_int_equal(asked, NEIGHBOURS_ASKED_MAX * NEIGHBOUR_TRIES);
	assert_int_equal(table.n_timed, 0);
}

TEST(neighbour__late_answer_counts)
{
	uint8_t mac[6];

	neighbour_find(&table, ip(1), 0, mac);
	for (uint64_t now = 0; now < 2400; now++)
		due(now);
	assert_int_equal(neighbour_find(&table, ip(1), 2400, mac), -EHOSTUNREACH);
	assert_true(neighbour_learn(&table, ip(1), mac_1, false, 2401));
	assert_int_equal(neighbour_find(&table, ip(1), 2402, mac), 0);
}

TEST(neighbour__stale_is_used_and_asked_again)
{
	uint64_t old = NEIGHBOUR_FRESH_MS + 1;
	uint8_t mac[6];

	neighbour_learn(&table, ip(1), mac_1, true, 0);
	assert_int_equal(neighbour_find(&table, ip(1), old, mac), 0);
	assert_int_equal(due(old), 1);
	assert_int_equal(neighbour_find(&table, ip(1), old, mac), 0);
	assert_false(neighbour_learn(&table, ip(1), mac_1, false, old + 1));
	assert_int_equal(due(old + 5000), 0);
	/* and without an answer */
	neighbour_find(&table, ip(1), 3 * old, mac);
	for (uint64_t now = 3 * old; now < 3 * old + 2400; now++)
		due(now);
	assert_int_equal(neighbour_find(&table, ip(1), 3 * old + 2400, mac), -EHOSTUNREACH);
}

TEST(neighbour__unasked_is_not_learnt)
{
	uint8_t mac[6];

	assert_false(neighbour_learn(&table, ip(1), mac_1, false, 0));
	assert_int_equal(neighbour_find(&table, ip(1), 0, mac), -EAGAIN);
	assert_true(neighbour_learn(&table, ip(2), mac_1, true, 0));
	assert_false(neighbour_learn(&table, ip(2), mac_1, true, 0));
	assert_int_equal(neighbour_find(&table, ip(2), 0, mac), 0);
}

/* Strangers who make themselves known replace each other, and nothing that is used. */
TEST(neighbour__flood_of_strangers)
{
	const unsigned int used = NEIGHBOURS_MAX - NEIGHBOURS_ASKED_MAX;
	uint8_t mac[6];

	neighbour_find(&table, ip(9999), 0, mac);
	for (unsigned int i = 0; i < used; i++) {
		neighbour_find(&table, ip(20000 + i), 0, mac);
		assert_true(neighbour_learn(&table, ip(20000 + i), mac_1, false, 0));
	}
	for (unsigned int i = 0; i < 3 * NEIGHBOURS_MAX; i++)
		assert_true(neighbour_learn(&table, ip(i), mac_1, true, i + 1));
	assert_int_equal(neighbour_find(&table, ip(3 * NEIGHBOURS_MAX - 1), 7000, mac), 0);
	assert_false(neighbour_has(&table, ip(3 * NEIGHBOURS_MAX - NEIGHBOURS_UNASKED_MAX - 2)));
	for (unsigned int i = 0; i < used; i++)
		assert_int_equal(neighbour_find(&table, ip(20000 + i), 7000, mac), 0);
	/* the one that is waited for survived */
	assert_true(neighbour_learn(&table, ip(9999), mac_2, false, 7000));
	assert_int_equal(table.n_timed, 0);
}

/* Another MAC is believed when the known one no longer answers. */
TEST(neighbour__another_mac_is_verified)
{
	static const uint16_t asked_ms[] = {0, 50, 150};
	uint8_t mac[6];

	neighbour_find(&table, ip(1), 0, mac);
	assert_true(neighbour_learn(&table, ip(1), mac_1, false, 1));
	assert_false(neighbour_learn(&table, ip(1), mac_2, false, NEIGHBOUR_HOLD_MS));
	assert_int_equal(due(NEIGHBOUR_HOLD_MS), 0); /* confirmed a moment ago */
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t now = 2000 * (i + 1);

		assert_false(neighbour_learn(&table, ip(1), mac_2, i == 1, now));
		assert_int_equal(due(now), 1);
		assert_false(neighbour_learn(&table, ip(1), mac_2, i == 1, now + 1));
		assert_int_equal(neighbour_find(&table, ip(1), now + 1, mac), 0);
		assert_memory_equal(mac, mac_1, 6);
		assert_false(neighbour_learn(&table, ip(1), mac_1, false, now + 2));
		assert_int_equal(table.n_timed, 0);
	}
	for (unsigned int i = 0; i < 3; i++) {
		assert_false(neighbour_learn(&table, ip(1), mac_2, false, 6000 + asked_ms[i]));
		assert_int_equal(due(6000 + asked_ms[i]), 1);
	}
	assert_true(neighbour_learn(&table, ip(1), mac_2, false, 6151));
	assert_int_equal(neighbour_find(&table, ip(1), 6152, mac), 0);
	assert_memory_equal(mac, mac_2, 6);
}

/* Neighbours that do not exist replace each other before any that does. */
TEST(neighbour__failed_go_first)
{
	uint8_t mac[6];

	for (unsigned int i = NEIGHBOURS_ASKED_MAX; i < NEIGHBOURS_MAX; i++) {
		neighbour_find(&table, ip(i), 0, mac);
		assert_true(neighbour_learn(&table, ip(i), mac_1, false, 0));
	}
	for (unsigned int i = 0; i < NEIGHBOURS_ASKED_MAX; i++)
		neighbour_find(&table, ip(i), 1, mac);
	for (uint64_t now = 1; now < 2400; now++)
		due(now);
	assert_int_equal(table.failed, NEIGHBOURS_ASKED_MAX);
	for (unsigned int i = 0; i < NEIGHBOURS_ASKED_MAX; i++)
		assert_int_equal(neighbour_find(&table, ip(10000 + i), 2400, mac), -EAGAIN);
	for (unsigned int i = NEIGHBOURS_ASKED_MAX; i < NEIGHBOURS_MAX; i++)
		assert_true(neighbour_has(&table, ip(i)));
}

TEST(neighbour__table_full_of_questions)
{
	uint8_t mac[6];

	for (unsigned int i = 0; i < NEIGHBOURS_MAX - NEIGHBOURS_ASKED_MAX; i++) {
		neighbour_find(&table, ip(6000 + i), 0, mac);
		assert_true(neighbour_learn(&table, ip(6000 + i), mac_1, false, 0));
	}
	for (unsigned int i = 0; i < NEIGHBOURS_ASKED_MAX; i++) {
		assert_false(neighbour_has(&table, ip(i)));
		assert_int_equal(neighbour_find(&table, ip(i), 0, mac), -EAGAIN);
		assert_true(neighbour_has(&table, ip(i)));
	}
	assert_int_equal(neighbour_find(&table, ip(5000), 0, mac), -ENOSPC);
	assert_int_equal(due(0), NEIGHBOURS_ASKED_MAX);
	/* Known neighbours stay known. */
	for (unsigned int i = 0; i < NEIGHBOURS_MAX - NEIGHBOURS_ASKED_MAX; i++)
		assert_int_equal(neighbour_find(&table, ip(6000 + i), 0, mac), 0);
	/* A stranger finds no room. */
	assert_false(neighbour_learn(&table, ip(5000), mac_1, true, 0));
	assert_int_equal(neighbour_find(&table, ip(5001), 0, mac), -ENOSPC);
	assert_int_equal(due(0), 0);
}

TEST(neighbour__forget)
{
	uint8_t mac[6];

	neighbour_learn(&table, ip(1), mac_1, true, 0);
	neighbour_find(&table, ip(2), 0, mac);
	neighbour_forget(&table);
	assert_int_equal(neighbour_find(&table, ip(1), 0, mac), -EAGAIN);
	assert_int_equal(due(0), 2);
	assert_int_equal(table.n_timed, 2);
}
