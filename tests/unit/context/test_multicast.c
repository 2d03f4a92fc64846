/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of multicast groups: attachments, limits, concurrent readers. */
#include "context/multicast.h"
#include "engine_fixture.h"

static struct multicast_table *table;

static int make(void **state)
{
	table = malloc(sizeof(*table));
	multicast_table_create(table);
	return 0;
}

static int unmake(void **state)
{
	multicast_table_destroy(table);
	free(table);
	return 0;
}

/* Group number n: IPv6, or 239.0.x.y. */
static const uint8_t *group(unsigned n, bool v6)
{
	static uint8_t mgid[16];

	memset(mgid, 0, sizeof(mgid));
	if (v6) {
		mgid[0] = 0xff;
		mgid[1] = 0x0e;
	} else {
		mgid[10] = mgid[11] = 0xff;
		mgid[12] = 239;
	}
	mgid[14] = (uint8_t)(n >> 8);
	mgid[15] = (uint8_t)n;
	return mgid;
}

static unsigned listeners(const uint8_t *mgid)
{
	const struct multicast_group *g = multicast_find(table, mgid);
	unsigned n = 0;

	for (uint32_t i = 0; g && i < multicast_end(g); i++)
		n += multicast_member(g, i) != 0;
	return n;
}

#undef TEST
#define TEST(name) TEST_WITH(name, make, unmake)

TEST(multicast__attached_once_detached_once)
{
	assert_null(multicast_find(table, group(1, true)));
	assert_int_equal(multicast_detach(table, group(1, true), 7), -ENOENT);
	assert_int_equal(multicast_attach(table, group(1, true), 7), 0);
	assert_int_equal(multicast_attach(table, group(1, true), 7), -EEXIST);
	assert_int_equal(multicast_attach(table, group(1, true), 8), 0);
	assert_int_equal(multicast_attach(table, group(1, false), 7), 0);
	assert_int_equal(listeners(group(1, true)), 2);
	assert_int_equal(listeners(group(1, false)), 1);
	assert_int_equal(multicast_detach(table, group(2, true), 7), -ENOENT);
	assert_int_equal(multicast_detach(table, group(1, true), 9), -ENOENT);
	assert_int_equal(multicast_detach(table, group(1, true), 0), -ENOENT);
	assert_int_equal(multicast_detach(table, group(1, true), 7), 0);
	assert_int_equal(multicast_detach(table, group(1, true), 7), -ENOENT);
	assert_int_equal(listeners(group(1, true)), 1);
	assert_int_equal(multicast_detach(table, group(1, true), 8), 0);
	assert_null(multicast_find(table, group(1, true)));
	assert_int_equal(listeners(group(1, false)), 1);
	assert_int_equal(table->groups, 1);
	assert_int_equal(table->members, 1);
}

/* Who has a group when it goes may read it, and continues along its chain, until the table is told
 * that nobody has. */
TEST(multicast__readers_keep_a_group_that_goes)
{
	struct multicast_group *held[3];

	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(multicast_attach(table, group(n, false), 5), 0);
		held[n] = multicast_find(table, group(n, false));
	}
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(multicast_detach(table, group(n, false), 5), 0);
	assert_int_equal(multicast_attach(table, group(1, false), 6), 0);
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(multicast_end(held[n]), 1);
		assert_int_equal(multicast_member(held[n], 0), 0);
	}
	multicast_reap(table);
	assert_int_equal(listeners(group(1, false)), 1);
}

TEST(multicast__a_place_is_used_again)
{
	for (unsigned i = 1; i <= MULTICAST_QPS_MAX; i++)
		assert_int_equal(multicast_attach(table, group(3, true), i), 0);
	assert_int_equal(multicast_attach(table, group(3, true), 1000), -ENOMEM);
	assert_int_equal(multicast_detach(table, group(3, true), 50), 0);
	assert_int_equal(listeners(group(3, true)), MULTICAST_QPS_MAX - 1);
	assert_int_equal(multicast_attach(table, group(3, true), 1000), 0);
	assert_int_equal(listeners(group(3, true)), MULTICAST_QPS_MAX);
	assert_int_equal(multicast_attach(table, group(3, true), 50), -ENOMEM);
}

TEST(multicast__limits_of_the_device)
{
	for (unsigned n = 0; n < MULTICAST_GROUPS_MAX; n++)
		assert_int_equal(multicast_attach(table, group(n, true), 1), 0);
	assert_int_equal(multicast_attach(table, group(MULTICAST_GROUPS_MAX, true), 1), -ENOMEM);
	for (unsigned i = 2; table->members < MULTICAST_ATTACH_MAX; i++)
		for (unsigned n = 0; n < 1024 && table->members < MULTICAST_ATTACH_MAX; n++)
			assert_int_equal(multicast_attach(table, group(n, true), i), 0);
	assert_int_equal(multicast_attach(table, group(2000, true), 2), -ENOMEM);
	assert_int_equal(multicast_detach(table, group(2000, true), 1), 0);
	assert_int_equal(multicast_attach(table, group(9000, true), 1), 0);
	for (unsigned n = 0; n < 1024; n++)
		assert_int_equal(listeners(group(n, true)) > 1, true);
}
