/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of engines, ports and buffers on a machine with several nodes (../made_up_nodes.h). */
#include <sys/stat.h>

#include "test.h"
#include "world_eal.h"
#include "wrap.h"
#include <rte_mempool.h>
#include "../made_up_nodes.h"
#include "device.h"
#include "node_view.h"
#include "lcores.h"
#include "placement.h"
#include "pools.h"

static char sysfs[64];
static const char device[] = "0000:03:00.0";

/* DPDK creates no pool on a node that this machine lacks: the test records the requests. */
static struct rte_mempool *made[16];
static int made_on[16];
static unsigned made_count;

WRAP(struct rte_mempool *, rte_pktmbuf_pool_create, const char *name, unsigned n, unsigned cache,
     uint16_t priv, uint16_t room, int socket)
{
	struct rte_mempool *pool =
		__real_rte_pktmbuf_pool_create(name, n, cache, priv, room, NODE_ANY);

	assert_non_null(pool);
	assert_int_equal(made_up.preferred, socket);
	made[made_count] = pool;
	made_on[made_count++] = socket;
	return pool;
}

/* The node that the pool was asked of. */
static int node_of(const struct rte_mempool *pool)
{
	for (unsigned i = 0; i < made_count; i++)
		if (made[i] == pool)
			return made_on[i];
	return NODE_ANY;
}

/* The port's device is on that node; -1: the kernel does not say. */
static void device_on(int node)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sysfs, device);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "%d\n", node);
	fclose(file);
}

static int make_sysfs(void)
{
	char command[256];

	snprintf(sysfs, sizeof(sysfs), "/tmp/softhca-sysfs-XXXXXX");
	if (!mkdtemp(sysfs))
		return -1;
	snprintf(command, sizeof(command), "mkdir -p %s/bus/pci/devices/%s", sysfs, device);
	return system(command);
}

static int remove_sysfs(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r %s", sysfs);
	return system(command);
}

/* One HCA with that many engines; pci: with that device behind its port. */
static void one_hca(struct config *c, unsigned engines, bool pci)
{
	*c = (struct config){.hcas = 1};
	c->hca[0].engines = engines;
	c->hca[0].port.type = pci ? PORT_PCI : PORT_RING;
	snprintf(c->hca[0].port.device, sizeof(c->hca[0].port.device), "%s", device);
	for (unsigned e = 0; e <= ENGINES_MAX; e++)
		for (unsigned s = 0; s < STAGE_COUNT; s++)
			c->hca[0].cpu[e][s] = CONFIG_CPU_AUTO;
}

static void lcores(struct config *c, unsigned first, unsigned last)
{
	for (unsigned cpu = first; cpu <= last; cpu++)
		c->daemon.lcores.cpu[c->daemon.lcores.count++] = (uint16_t)cpu;
}

enum { NO_LIST = 99 };
static const struct row {
	int device;	      /* its node; -1: unknown, a ring port */
	unsigned first, last; /* daemon.lcores */
	unsigned engines;
	int cpus[5]; /* expected, of each engine */
	int node;    /* expected, of the HCA */
} rows[] = {
	{-1, NO_LIST, 0, 1, {7}, 3},	  /* the last CPU, as usual */
	{1, NO_LIST, 0, 1, {3}, 1},	  /* the last one near the port */
	{1, NO_LIST, 0, 2, {3, 3}, 1},	  /* one CPU for an HCA without a list */
	{-1, 0, 7, 3, {0, 1, 2}, 0},	  /* in turn */
	{2, 0, 7, 2, {4, 5}, 2},	  /* near the port first */
	{2, 0, 7, 5, {4, 5, 6, 7, 0}, 2}, /* an unshared CPU before a near one; 6: next door */
	{3, 0, 1, 3, {0, 1, 0}, 3},	  /* nothing near */
};

TEST(engines__are_placed_near_their_ports)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct config_cpus cpus;
		struct config c;

		device_on(r->device);
		one_hca(&c, r->engines, r->device >= 0);
		if (r->first != NO_LIST)
			lcores(&c, r->first, r->last);
		assert_int_equal(placement_cpus(&c, sysfs, &cpus), 0);
		assert_int_equal(c.hca[0].port_node, r->device);
		assert_int_equal(c.hca[0].node, r->node);
		assert_int_equal(c.hca[0].port.socket, r->node);
		for (unsigned e = 0; e < r->engines; e++) {
			assert_int_equal(c.hca[0].cpu[e][0], r->cpus[e]);
			assert_int_equal(c.hca[0].cpu[e][STAGE_COUNT - 1], r->cpus[e]);
			assert_int_equal(c.hca[0].engine_node[e], r->cpus[e] / 2);
		}
	}
}

/* Three stages on node 2, one on node 0, one where there is room: the list's CPU on node 0. */
TEST(an_engine__lies_where_most_of_its_stages_run)
{
	struct config_cpus cpus;
	struct config c;

	one_hca(&c, 1, false);
	lcores(&c, 1, 1);
	c.hca[0].cpu[0][STAGE_DOORBELL_WQE] = 0;
	c.hca[0].cpu[0][STAGE_HEADER_PARSE] = 4;
	c.hca[0].cpu[0][STAGE_REQUESTER_RECV] = 5;
	c.hca[0].cpu[0][STAGE_RESPONDER_EXEC] = 4;
	assert_int_equal(placement_cpus(&c, sysfs, &cpus), 0);
	assert_int_equal(cpus.count, 4);
	assert_int_equal(c.hca[0].engine_node[0], 2);
	c.hca[0].cpu[0][STAGE_DOORBELL_WQE] = MADE_UP_CPUS; /* may not run there */
	assert_int_equal(placement_cpus(&c, sysfs, &cpus), -EINVAL);
}

/* Two engines on node 0 and one on node 3: each node has its share of the buffers. */
TEST(buffers__lie_on_the_nodes_of_the_engines)
{
	static struct config c;
	static struct pools pools;
	const struct config_buffers none = {0};
	struct config_buffers part;
	struct config_cpus cpus;
	struct node_pools *near, *far, *more;
	struct rte_mbuf *held;

	one_hca(&c, 3, false);
	lcores(&c, 0, 1);
	lcores(&c, 7, 7);
	c.daemon.packet_buffers = c.daemon.descriptor_buffers = 3000;
	c.daemon.clone_buffers = 1500;
	assert_int_equal(placement_cpus(&c, sysfs, &cpus), 0);
	assert_int_equal(pools_make(&pools, &c), 0);
	assert_int_equal(pools.count, 2);
	near = pools_take(&pools, 0, &none);
	far = pools_take(&pools, 3, &none);
	assert_int_equal(node_of(near->packets), 0);
	assert_int_equal(near->packets->size, 2000);
	assert_string_equal(near->packets->name, "packets");
	assert_int_equal(node_of(far->packets), 3);
	assert_int_equal(far->packets->size, 1000);
	assert_int_equal(node_of(far->descriptors), 3);
	assert_int_equal(node_of(far->clones), 3);
	assert_int_equal(far->clones->size, 500);
	assert_string_equal(far->packets->name, "packets_3");
	assert_int_equal(made_up.preferred, NODE_ANY);
	/* Whoever finds no room brings its own, which stays for as long as somebody uses it. */
	part = far->room;
	assert_ptr_equal(pools_take(&pools, 3, &part), far);
	part.clones = 100;
	more = pools_take(&pools, 3, &part);
	assert_string_equal(more->packets->name, "packets_more2");
	assert_int_equal(more->clones->size, 100);
	assert_int_equal(node_of(more->clones), 3);
	pools_give(&pools, more, &part);
	assert_null(more->packets);
	assert_null(rte_mempool_lookup("packets_more2"));
	assert_ptr_equal(pools_take(&pools, 3, &part), more);
	held = rte_pktmbuf_alloc(more->packets);
	pools_give(&pools, more, &part);
	assert_non_null(more->packets);
	rte_pktmbuf_free(held);
	assert_ptr_equal(pools_take(&pools, 3, &part), more);
	pools_free(&pools);
	assert_null(rte_mempool_lookup("packets_3"));
}

/* An HCA that comes later finds its place among the lcores that there are, the emptiest one. */
TEST(join__among_the_lcores)
{
	static struct lcore_loop loops[2] = {{.cpu = 7, .bell_count = 1}, {.cpu = 3}};
	struct lcores l = {.loops = loops, .count = 2};
	static struct config c;
	struct config_error error;

	one_hca(&c, 1, false);
	assert_int_equal(placement_join(&l, &c.hca[0], sysfs, &error), 0);
	assert_int_equal(c.hca[0].cpu[0][STAGE_RESPONDER_EXEC], 3);
	assert_int_equal(c.hca[0].engine_node[0], node_of_cpu(3));
	c.hca[0].cpu[0][STAGE_RESPONDER_EXEC] = 5;
	assert_int_equal(placement_join(&l, &c.hca[0], sysfs, &error), -EINVAL);
	assert_non_null(strstr(error.text, "no lcore on CPU 5"));
}

static void assert_numbers(const json_t *array, const int expected[2])
{
	assert_int_equal(json_array_size(array), 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(json_integer_value(json_array_get(array, i)), expected[i]);
}

/* What `softhca status` and `softhca topology` say of a port on node 1 whose engines are on nodes 0
 * and 3. */
TEST(views__tell_node_and_distance)
{
	static const int nodes[] = {0, 3}, distances[] = {21, 42};
	struct hca_section s = {.name = "far", .engines = 2, .port_node = 1, .engine_node = {0, 3}};
	struct device d = {.section = &s};
	json_t *view = json_object(), *engines;

	node_put(view, &s);
	assert_numbers(json_object_get(view, "engine_nodes"), nodes);
	assert_numbers(json_object_get(view, "distances"), distances);
	engines_put(view, &d, 1);
	engines = json_object_get(view, "engines");
	assert_int_equal(json_object_size(engines), 2);
	for (unsigned e = 0; e < 2; e++) {
		json_t *it = json_object_get(engines, e ? "far/1" : "far/0");

		assert_int_equal(json_integer_value(json_object_get(it, "port_node")), 1);
		assert_int_equal(json_integer_value(json_object_get(it, "node")), nodes[e]);
		assert_int_equal(json_integer_value(json_object_get(it, "distance")), distances[e]);
		assert_int_equal(json_array_size(json_object_get(it, "cpus")), STAGE_COUNT);
	}
	json_decref(view);
}

static int group_setup(void **state)
{
	made_up_nodes(true);
	return world_eal(state) ? -1 : make_sysfs();
}

static int group_teardown(void **state)
{
	return remove_sysfs();
}

TEST_GROUP(.setup = group_setup, .teardown = group_teardown);
