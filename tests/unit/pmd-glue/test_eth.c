/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports with a driver, represented by DPDK's null device. */
#include <rte_dev.h>
#include "classify.h"
#include "fixture.h"
#include "pipeline/icrc.h"

/* The driver's frames, in buffers that still have the mark of their last use. */
static uint16_t receive_marked(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t n,
			       uint16_t room, void *arg)
{
	(void)port, (void)queue, (void)room, (void)arg;
	rte_pktmbuf_free_bulk(frames, n);
	for (uint16_t i = 0; i < n; i++) {
		frames[i] = roce_v4(1, 2, i);
		frames[i]->ol_flags |= ICRC_OMITTED;
	}
	return n;
}

TEST(eth__never_receives_the_mark_of_an_omitted_icrc)
{
	struct port_config c = ring_config("e", "", 1);
	struct rte_mbuf *got[BURST];
	struct port *port;
	uint16_t id, n;

	assert_int_equal(rte_eal_hotplug_add("vdev", "net_null0", ""), 0);
	c.type = PORT_PCI; /* any device that is there already */
	strcpy(c.device, "net_null0");
	port = open_port(&c);
	assert_int_equal(rte_eth_dev_get_port_by_name(c.device, &id), 0);
	assert_non_null(rte_eth_add_rx_callback(id, 0, receive_marked, NULL));
	n = receive(port, got, BURST);
	assert_int_equal(n, BURST);
	for (uint16_t i = 0; i < n; i++)
		assert_false(got[i]->ol_flags & ICRC_OMITTED);
	rte_pktmbuf_free_bulk(got, n);
	port_destroy(port);
	assert_int_equal(rte_eal_hotplug_remove("vdev", c.device), 0);
}

/* Frames of memif peers: what must be so for the zeros to stand in place of an ICRC. */
TEST(lacks_icrc__roce_that_ends_with_zeros)
{
	static const struct {
		bool v6;
		unsigned at; /* one byte that is different */
		bool lacks;
	} rows[] = {{false, 0, true},
		    {true, 0, true},
		    {false, 12, false}, /* EtherType */
		    {false, 23, false}, /* protocol */
		    {false, 36, false}, /* UDP port */
		    {false, 39, false}, /* length */
		    {true, 20, false},
		    {true, 59, false},
		    {false, ROCE_FRAME_BYTES - 4, false},
		    {false, ROCE_FRAME_BYTES - 1, false}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rte_mbuf *m = rows[i].v6 ? roce_v6(1, 2) : roce_v4(1, 2, 3);

		if (rows[i].at)
			++*rte_pktmbuf_mtod_offset(m, uint8_t *, rows[i].at);
		if (lacks_icrc(m) != rows[i].lacks)
			fail_msg("row %u", i);
		rte_pktmbuf_free(m);
	}
	assert_no_leak();
}
