/* SPDX-License-Identifier: BSD-3-Clause */
/* NUMA nodes: what is asked of libnuma, what of it is believed, and when nothing is asked at all.
 */
#include "test.h"
#include "../made_up_nodes.h"

static int none(void)
{
	return -1;
}

static int set_up(void **state)
{
	made_up.policy = false;
	made_up_nodes(true);
	return 0;
}

static int tear_down(void **state)
{
	nodes_use(NULL);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, set_up, tear_down)

TEST(nodes__are_as_libnuma_says)
{
	assert_int_equal(nodes_count(), MADE_UP_NODES);
	for (unsigned int cpu = 0; cpu < MADE_UP_CPUS; cpu++)
		assert_int_equal(node_of_cpu(cpu), cpu / 2);
	assert_int_equal(node_of_cpu(MADE_UP_CPUS), 0); /* unknown */
	assert_int_equal(node_distance(3, 3), 10);
	assert_int_equal(node_distance(0, 1), 21);
	assert_int_equal(node_distance(1, 2), 42);
	assert_int_equal(node_distance(NODE_ANY, 2), 0);
	assert_int_equal(node_distance(0, MADE_UP_NODES), 0);
}

TEST(memory__is_bound_and_moves_if_it_is_small)
{
	char memory[4096];

	node_bind(memory, sizeof(memory), 2);
	node_bind(memory, (size_t)NODE_MOVE_BYTES_MAX + 4096, 3);
	node_bind(memory, 0, 2);
	node_bind(memory, sizeof(memory), NODE_ANY);
	node_bind(memory, sizeof(memory), MADE_UP_NODES);
	assert_int_equal(made_up.binds, 2);
	assert_ptr_equal(made_up.bind[0].at, memory);
	assert_int_equal(made_up.bind[0].bytes, sizeof(memory));
	assert_int_equal(made_up.bind[0].node, 2);
	assert_true(made_up.bind[0].move);
	assert_int_equal(made_up.bind[1].node, 3);
	assert_false(made_up.bind[1].move);
	node_prefer(3);
	assert_int_equal(made_up.preferred, 3);
	node_prefer(NODE_ANY);
	assert_int_equal(made_up.preferred, NODE_ANY);
}

static void assert_nothing_is_placed(void)
{
	char memory[4096];

	made_up.binds = 0;
	made_up.preferred = NODE_ANY;
	node_bind(memory, sizeof(memory), 0);
	node_prefer(0);
	assert_int_equal(made_up.binds, 0);
	assert_int_equal(made_up.preferred, NODE_ANY);
}

TEST(memory__stays_where_numactl_puts_it)
{
	made_up.policy = true;
	made_up_nodes(true);
	assert_int_equal(nodes_count(), MADE_UP_NODES);
	assert_nothing_is_placed();
}

TEST(a_machine_without_numa__has_one_node)
{
	const struct nodes_calls calls = {.available = none,
					  .bind = made_up_bind,
					  .set_preferred = made_up_set_preferred,
					  .may_run = made_up_may_run};

	nodes_use(&calls);
	assert_int_equal(nodes_count(), 1);
	assert_int_equal(node_of_cpu(7), 0);
	assert_int_equal(node_distance(0, 0), 10);
	assert_nothing_is_placed();
}

/* libnuma itself: only what holds on every machine. */
TEST(this_machine__has_nodes)
{
	unsigned int cpu = 0;

	nodes_use(NULL);
	assert_true(nodes_count() >= 1);
	while (!node_cpu_allowed(cpu))
		cpu++;
	assert_int_equal(node_distance(node_of_cpu(cpu), node_of_cpu(cpu)), 10);
	assert_false(node_cpu_allowed(1u << 20));
}
