/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of switches and networks (sim_switch.h, sim_network.h), by itself. */
#include "test.h"
#include "sim.h"
#include "wire/encap.h"
#include "world_eal.h"

TEST_GROUP(.setup = world_eal);

enum {
	MBPS = 8000, /* a byte takes a nanosecond */
	BYTES = 1000,
	TAKES = BYTES + SIM_GAP_BYTES, /* ns */
	ECT_0 = 2
};

static void make_frame(uint8_t *frame, uint8_t tos, uint16_t sport)
{
	memset(frame, 0, BYTES);
	frame[12] = 0x08;
	frame[14] = 0x45;
	frame[15] = tos;
	frame[16] = (BYTES - 14) >> 8;
	frame[17] = (BYTES - 14) & 0xff;
	frame[23] = 17;
	frame[34] = sport >> 8;
	frame[35] = sport & 0xff;
}

static struct sim_switch make_switch(struct sim_switch_kind kind)
{
	return (struct sim_switch){.kind = kind,
				   .rng = 1,
				   .ports = 2,
				   .port = {{.link = {.mbps = MBPS, .delay_ns = 500}},
					    {.link = {.mbps = MBPS, .delay_ns = 500}}}};
}

/* Offers frames for a port all at once. Returns how many it takes. */
static unsigned offer(struct sim_switch *w, unsigned port, unsigned frames, uint64_t now_ns)
{
	uint8_t frame[BYTES];
	unsigned taken = 0;
	uint64_t at_ns;

	for (unsigned i = 0; i < frames; i++) {
		make_frame(frame, 0, 0);
		taken += sim_switch_forward(w, port, frame, BYTES, now_ns, &at_ns);
	}
	return taken;
}

TEST(switch__sends_one_after_the_other)
{
	struct sim_switch w = make_switch((struct sim_switch_kind){0});
	uint8_t frame[BYTES];
	uint64_t at_ns;

	make_frame(frame, 0, 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(sim_switch_forward(&w, 0, frame, BYTES, 10000, &at_ns));
		assert_int_equal(at_ns, 10000 + i * TAKES + 500);
	}
	assert_int_equal(sim_link_queued(&w.port[0].link, 10000), 3 * TAKES);
	assert_int_equal(sim_link_queued(&w.port[0].link, 10000 + TAKES), 2 * TAKES);
	assert_true(sim_switch_forward(&w, 1, frame, BYTES, 10000, &at_ns));
	assert_int_equal(at_ns, 10000 + TAKES + 500);
	assert_true(sim_switch_forward(&w, 0, frame, BYTES, 20000, &at_ns));
	assert_int_equal(at_ns, 20000 + TAKES + 500);
}

TEST(switch__drops_what_exceeds_its_buffer)
{
	struct sim_switch w = make_switch((struct sim_switch_kind){.buffer_bytes = 10 * TAKES});

	assert_int_equal(offer(&w, 0, 7, 10000), 7);
	assert_int_equal(offer(&w, 1, 7, 10000), 3);
	assert_int_equal(w.port[1].dropped, 4);
	assert_int_equal(offer(&w, 1, 7, 10000 + TAKES), 2); /* each port has sent one */
}

TEST(switch__shares_its_buffer)
{
	struct sim_switch w = make_switch(
		(struct sim_switch_kind){.buffer_bytes = 12 * TAKES, .share_eighths = 8});

	assert_int_equal(offer(&w, 0, 20, 10000), 6);
	assert_int_equal(offer(&w, 1, 20, 10000), 3);
}

/* Frames marked of a thousand that meet a queue of so many bytes. */
static unsigned marked_at(uint64_t queued, uint8_t tos)
{
	struct sim_switch w = make_switch(
		(struct sim_switch_kind){.kmin = 5000, .kmax = 15000, .pmax_ppm = 400000});
	uint8_t frame[BYTES];
	unsigned marked = 0;
	uint64_t at_ns;

	for (unsigned i = 0; i < 1000; i++) {
		make_frame(frame, tos, 0);
		w.port[0].link.free_ps = (10000 + queued) * 1000;
		assert_true(sim_switch_forward(&w, 0, frame, BYTES, 10000, &at_ns));
		marked += (frame[15] & WIRE_ECN_BITS) == WIRE_ECN_CE;
	}
	assert_int_equal(w.port[0].marked, marked);
	return marked;
}

TEST(switch__marks_as_its_queue_grows)
{
	assert_int_equal(marked_at(5000, ECT_0), 0);
	assert_in_range(marked_at(10000, ECT_0), 160, 240);
	assert_in_range(marked_at(14999, ECT_0), 350, 450);
	assert_int_equal(marked_at(15000, ECT_0), 1000);
	assert_int_equal(marked_at(15000, 0), 0);
}

/* Two leaves, two spines, of which one is 5 us farther: sends `frames` of one connection from node 0
 * to node 1, ever later. Returns how many arrived behind one sent later. */
static unsigned overtaken(uint32_t spray_ppm, unsigned frames, uint16_t sport, uint64_t *last_ns)
{
	const struct sim_network_config config = {.leaves = 2,
						  .spines = 2,
						  .port_mbps = MBPS,
						  .link_mbps = MBPS,
						  .spine_mbps = MBPS,
						  .delay_ns = 500,
						  .detour_ns = 5000,
						  .spray_ppm = spray_ppm};
	struct rte_mempool *pool = rte_pktmbuf_pool_create("switch", 1023, 0, 0, 2048, 0);
	struct sim_network *n = sim_network_create(&config, 2, 1);
	unsigned highest = 0, late = 0, node, sequence;
	struct rte_mbuf *m;

	for (unsigned i = 0; i < frames; i++) {
		m = rte_pktmbuf_alloc(pool);
		assert_non_null(m);
		make_frame((uint8_t *)rte_pktmbuf_append(m, BYTES), 0, sport);
		memcpy(rte_pktmbuf_mtod_offset(m, void *, 100), &i, sizeof(i));
		sim_network_send(n, 0, 1, m, 10000, 0);
	}
	while (sim_network_count(n)) {
		*last_ns = sim_network_due(n);
		m = sim_network_take(n, *last_ns, &node);
		if (!m)
			continue;
		assert_int_equal(node, 1);
		memcpy(&sequence, rte_pktmbuf_mtod_offset(m, void *, 100), sizeof(sequence));
		late += sequence < highest;
		highest = RTE_MAX(highest, sequence);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(highest, frames - 1);
	sim_network_destroy(n);
	rte_mempool_free(pool);
	return late;
}

/* A frame is sent four times, and a link's delay away each time. */
TEST(network__keeps_a_connection_on_one_way)
{
	bool near = false, far = false;
	uint64_t last_ns;

	for (uint16_t sport = 0xc000; sport < 0xc010; sport++) {
		assert_int_equal(overtaken(0, 100, sport, &last_ns), 0);
		near |= last_ns == 10000 + 103 * TAKES + 4 * 500;
		far |= last_ns == 10000 + 103 * TAKES + 4 * 500 + 5000;
	}
	assert_true(near && far);
}

TEST(network__sprays_some_over_all_ways)
{
	uint64_t last_ns;

	assert_in_range(overtaken(100000, 1000, 0xc000, &last_ns), 20, 600);
}
