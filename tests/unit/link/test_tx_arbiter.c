/* SPDX-License-Identifier: BSD-3-Clause */
/* Link transmit: two rings in turn, and frames that the port does not take. */
#include "engine_fixture.h"
#include "link/link.h"
#include "tx_arbiter.h"

static void put(enum channel_id to, unsigned n, uint32_t first)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);

		m->data_len = m->pkt_len = 100;
		packet_of(m)->qpn = first + i;
		fx_put(to, m);
	}
}

TEST(txa_poll__alternates)
{
	put(CHANNEL_RPG_TXA, 3 * BURST, 0);
	put(CHANNEL_RESPG_TXA, 3 * BURST, 1000);
	while (txa_poll(fx->e))
		;
	assert_int_equal(fx->port.tx_count, 6 * BURST);
	for (unsigned i = 0; i < 6 * BURST; i++) {
		unsigned burst = i / BURST, within = burst / 2 * BURST + i % BURST;

		assert_int_equal(packet_of(fx->port.tx[i])->qpn, within + (burst & 1) * 1000);
	}
	fx_assert_counter(tx_packets, 6 * BURST);
	fx_assert_counter(tx_bytes, 6 * BURST * 100);
}

TEST(txa_poll__one_ring_alone)
{
	for (unsigned i = 0; i < 5; i++) {
		put(i & 1 ? CHANNEL_RPG_TXA : CHANNEL_RESPG_TXA, 1, i);
		txa_poll(fx->e);
		assert_int_equal(fx->port.tx_count, i + 1);
	}
	assert_int_equal(txa_poll(fx->e), 0);
	assert_int_equal(fx->e->channel[CHANNEL_RPG_TXA].empty, 6 + 1); /* the idle poll: one */
}

TEST(txa_poll__port_takes_some)
{
	fx->port.tx_room = 3;
	put(CHANNEL_RPG_TXA, 10, 0);
	for (unsigned i = 0; i < 6; i++)
		txa_poll(fx->e);
	assert_int_equal(fx->port.tx_count, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(packet_of(fx->port.tx[i])->qpn, i);
	fx_assert_counter(drop_tx_stuck, 0);
	fx_assert_counter(tx_bytes, 1000);
}

/* The port takes nothing: for 2 ms all waits, then what waits here is lost by name. */
TEST(txa_poll__stuck_port)
{
	fx->port.tx_room = 0;
	put(CHANNEL_RPG_TXA, 2 * BURST, 0);
	for (unsigned i = 0; i <= 20; i++) {
		txa_poll(fx->e);
		fx_assert_counter(drop_tx_stuck, 0);
		fx->e->now_ns += 100000;
	}
	assert_int_equal(fx_ring_count(CHANNEL_RPG_TXA), BURST);
	txa_poll(fx->e);
	fx_assert_counter(drop_tx_stuck, BURST);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), BURST);
	fx->port.tx_room = FX_PORT_FRAMES;
	txa_poll(fx->e);
	assert_int_equal(fx->port.tx_count, BURST);
	assert_int_equal(packet_of(fx->port.tx[0])->qpn, BURST);
	fx_assert_counter(drop_tx_stuck, BURST);
}

/* While others have the CPU no transmission is tried: that does not make a port stuck. */
TEST(txa_poll__interrupted)
{
	fx->port.tx_room = 0;
	put(CHANNEL_RPG_TXA, BURST, 0);
	for (unsigned i = 0; i < 4; i++) {
		txa_poll(fx->e);
		fx->e->now_ns += 50000000;
	}
	fx_assert_counter(drop_tx_stuck, 0);
	fx->port.tx_room = FX_PORT_FRAMES;
	txa_poll(fx->e);
	assert_int_equal(fx->port.tx_count, BURST);
}

/* A port that takes a frame now and then is slow, not stuck. */
TEST(txa_poll__slow_port)
{
	put(CHANNEL_RPG_TXA, 10, 0);
	for (unsigned i = 0; i < 20; i++) {
		fx->port.tx_room = i & 1;
		txa_poll(fx->e);
		fx->e->now_ns += 1500000;
	}
	fx_assert_counter(drop_tx_stuck, 0);
	assert_int_equal(fx->port.tx_count, 10);
}

/* What the port has sent of its own accord is work: who receives it may have to be woken. */
TEST(header_parse_poll__port_sends_later)
{
	static const struct {
		uint32_t more;
		unsigned work;
	} rows[] = {{0, 0}, {1, 1}, {0, 0}, {3, 1}, {0, 0}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		fx->port.port.sent_later += rows[i].more;
		assert_int_equal(header_parse_poll(fx->e), rows[i].work);
	}
}
