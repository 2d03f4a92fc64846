/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring ports: who owns what, order, back pressure, the loop, what is let through. */
#include "fixture.h"
#include "pipeline/icrc.h"

TEST_PAIR(ring__moves_an_unshared_frame_itself)
{
	struct rte_mbuf *sent = roce_v4(2, 1, 7), *got[2];

	assert_int_equal(send_one(p->a, sent), 1);
	assert_int_equal(receive(p->b, got, 2), 1);
	assert_ptr_equal(got[0], sent);
	assert_int_equal(rte_mbuf_refcnt_read(sent), 1);
	rte_pktmbuf_free(sent);
}

/* Kept by its sender alone: the receiver has the other half of its private area. */
TEST_PAIR(ring__passes_a_kept_frame_as_it_is)
{
	struct rte_mbuf *sent = roce_v4(2, 1, 7), *got[2];

	rte_mbuf_refcnt_update(sent, 1);
	assert_int_equal(send_one(p->a, sent), 1);
	assert_int_equal(receive(p->b, got, 2), 1);
	assert_ptr_equal(got[0], sent);
	assert_int_equal(rte_mbuf_refcnt_read(sent), 2);
	rte_pktmbuf_free(got[0]);
	rte_pktmbuf_free(sent);
}

TEST_PAIR(ring__clones_a_shared_frame)
{
	struct rte_mbuf *sent = roce_v4(2, 1, 7), *got[2];

	memset(rte_mbuf_to_priv(sent), 0xaa, PRIV_BYTES);
	rte_mbuf_refcnt_update(sent, 2); /* the sender's, and an earlier transmission's */
	assert_int_equal(send_one(p->a, sent), 1);
	assert_int_equal(receive(p->b, got, 2), 1);
	assert_ptr_not_equal(got[0], sent);
	assert_ptr_equal(rte_pktmbuf_mtod(got[0], void *), rte_pktmbuf_mtod(sent, void *));
	assert_int_equal(rte_pktmbuf_data_len(got[0]), rte_pktmbuf_data_len(sent));
	assert_int_equal(rte_pktmbuf_pkt_len(got[0]), rte_pktmbuf_pkt_len(sent));
	/* one reference each: sender, earlier transmission, receiver */
	assert_int_equal(rte_mbuf_refcnt_read(sent), 3);
	/* the receiver's private area is its own */
	memset(rte_mbuf_to_priv(got[0]), 0x55, PRIV_BYTES);
	assert_int_equal(((uint8_t *)rte_mbuf_to_priv(sent))[PRIV_BYTES - 1], 0xaa);
	rte_pktmbuf_free(got[0]);
	assert_int_equal(rte_mbuf_refcnt_read(sent), 2);
	rte_pktmbuf_free(sent);
	rte_pktmbuf_free(sent);
}

/* Whichever way a frame takes: itself, as a clone, back to the sender. Others get no mark. */
TEST_PAIR(ring__keeps_the_mark_of_an_omitted_icrc)
{
	for (unsigned i = 0; i < 8; i++) {
		uint64_t mark = i & 1 ? ICRC_OMITTED : 0;
		struct rte_mbuf *sent = roce_v4(i & 2 ? 1 : 2, 1, 7), *got[1];

		sent->ol_flags = mark;
		rte_mbuf_refcnt_update(sent, i & 4 ? 2 : 0);
		assert_int_equal(send_one(p->a, sent), 1);
		assert_int_equal(receive(i & 2 ? p->a : p->b, got, 1), 1);
		assert_int_equal(got[0] != sent, i >> 2);
		assert_true((got[0]->ol_flags & ICRC_OMITTED) == mark);
		rte_pktmbuf_free(got[0]);
		for (unsigned k = 0; k < (i & 4) / 2; k++)
			rte_pktmbuf_free(sent);
	}
}

TEST_PAIR(ring__receiver_may_outlive_sender)
{
	struct rte_mbuf *sent = roce_v4(2, 1, 7), *got[1];

	rte_mbuf_refcnt_update(sent, 1);
	send_one(p->a, sent);
	rte_pktmbuf_free(sent);
	assert_int_equal(receive(p->b, got, 1), 1);
	assert_int_equal(tag_of(got[0]), 7);
	rte_pktmbuf_free(got[0]);
}

TEST_PAIR(ring__clones_a_shared_clone)
{
	struct rte_mbuf *direct = roce_v4(2, 1, 9), *got[1];
	struct rte_mbuf *view = rte_pktmbuf_alloc(clones);

	rte_pktmbuf_attach(view, direct);
	rte_mbuf_refcnt_update(view, 2);
	send_one(p->a, view);
	assert_int_equal(receive(p->b, got, 1), 1);
	assert_ptr_not_equal(got[0], view);
	assert_int_equal(rte_mbuf_refcnt_read(view), 2);
	rte_mbuf_refcnt_update(view, -1);
	rte_pktmbuf_free(view);
	rte_pktmbuf_free(direct);
	assert_int_equal(tag_of(got[0]), 9);
	rte_pktmbuf_free(got[0]);
}

TEST_PAIR(ring__full_is_short_and_in_order)
{
	struct link_port *link = port_link(p->a);
	struct rte_mbuf *m[BURST];
	uint32_t sent = 0, got = 0;
	uint16_t n;

	do {
		for (uint32_t i = 0; i < BURST; i++) {
			m[i] = roce_v4(2, 1, sent + i);
			if (i % 3 == 0)
				rte_mbuf_refcnt_update(m[i], 1);
		}
		n = link->tx_burst(link, 0, m, BURST);
		for (uint32_t i = 0; i < BURST; i++) {
			if (i % 3 == 0)
				rte_pktmbuf_free(m[i]);
		}
		sent += n;
	} while (n == BURST);
	rte_pktmbuf_free_bulk(m + n, BURST - n);
	assert_int_equal(sent, PORT_RING_FRAMES);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_tx_wire_full), 1);
	while ((n = receive(p->b, m, BURST)) > 0) {
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(tag_of(m[i]), got++);
		rte_pktmbuf_free_bulk(m, n);
	}
	assert_int_equal(got, sent);
}

TEST_PAIR(ring__no_clones_left_is_short)
{
	struct rte_mbuf *hoard[POOL_FRAMES], *sent = roce_v4(2, 1, 7), *got[1];

	assert_int_equal(rte_pktmbuf_alloc_bulk(clones, hoard, POOL_FRAMES), 0);
	rte_mbuf_refcnt_update(sent, 2);
	assert_int_equal(send_one(p->a, sent), 0);
	assert_int_equal(rte_mbuf_refcnt_read(sent), 3);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_tx_clone_empty), 1);
	rte_pktmbuf_free_bulk(hoard, POOL_FRAMES);
	assert_int_equal(send_one(p->a, sent), 1);
	assert_int_equal(receive(p->b, got, 1), 1);
	rte_pktmbuf_free(got[0]);
	rte_pktmbuf_free(sent);
	rte_pktmbuf_free(sent);
}

TEST_PAIR(ring__own_frames_come_back)
{
	struct link_port *link = port_link(p->a);
	struct rte_mbuf *m[4] = {roce_v4(2, 1, 0), roce_v4(1, 1, 1), roce_v4(1, 1, 2),
				 roce_v4(2, 1, 3)};
	struct rte_mbuf *got[4];

	assert_int_equal(link->tx_burst(link, 0, m, 4), 4);
	assert_int_equal(receive(p->a, got, 4), 2);
	assert_int_equal(tag_of(got[0]), 1);
	assert_int_equal(tag_of(got[1]), 2);
	rte_pktmbuf_free_bulk(got, 2);
	assert_int_equal(receive(p->b, got, 4), 2);
	assert_int_equal(tag_of(got[1]), 3);
	rte_pktmbuf_free_bulk(got, 2);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_tx_looped), 2);
}

TEST(ring__to_itself)
{
	struct port_config c = ring_config("solo", "solo", 1);
	struct port *port = open_port(&c);
	struct rte_mbuf *got[2];

	send_one(port, roce_v4(1, 1, 5));
	assert_int_equal(receive(port, got, 2), 1);
	rte_pktmbuf_free(got[0]);
	port_destroy(port);
	assert_no_leak();
}

/* ---- several queues ---- */

enum { QUEUES = 3, INDEX_MASK = 15 };

static struct port_config spread_config(const char *name, const char *peer, uint8_t last)
{
	struct port_config c = ring_config(name, peer, last);

	c.queues = QUEUES;
	return c;
}

/* For the queue pair of that number, whose index says which queue its engine has. */
static struct rte_mbuf *for_qp(uint32_t qpn, uint8_t to, uint8_t from, uint32_t tag)
{
	struct rte_mbuf *m = roce_v4(to, from, tag);
	uint32_t word = rte_cpu_to_be_32(qpn);

	memcpy(rte_pktmbuf_mtod_offset(m, void *, 46), &word, sizeof(word));
	return m;
}

static void make_qps(struct port *port)
{
	for (uint32_t index = 0; index <= INDEX_MASK; index++)
		link_set_queue(port_link(port)->spread, 0xabc0 | index, INDEX_MASK, index % QUEUES);
}

static uint16_t send_from(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return port_link(port)->tx_burst(port_link(port), queue, m, n);
}

static uint16_t receive_at(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct link_port *link = port_link(port);
	bool pending = link->rx_pending(link, queue);
	uint16_t got = link->rx_burst(link, queue, m, n);

	assert_int_equal(pending, got > 0);
	return got;
}

/* Whichever queue they are sent from, frames arrive where their queue pairs' engine receives, in order. */
static void arrive_by_queue_pair(struct port *from, struct port *to, uint8_t address)
{
	struct rte_mbuf *m[BURST];

	make_qps(to);
	for (uint16_t queue = 0; queue < QUEUES; queue++) {
		for (uint32_t i = 0; i < BURST; i++)
			m[i] = for_qp(0xabc0 | (i * 7 & INDEX_MASK), address, 9, i);
		assert_int_equal(send_from(from, queue, m, BURST), BURST);
		for (uint32_t at = 0; at < QUEUES; at++) {
			uint16_t n = receive_at(to, at, m, BURST), k = 0;

			for (uint32_t i = 0; i < BURST; i++)
				if ((i * 7 & INDEX_MASK) % QUEUES == at)
					assert_int_equal(tag_of(m[k++]), i);
			assert_int_equal(n, k);
			rte_pktmbuf_free_bulk(m, n);
		}
	}
}

TEST(spread__by_queue_pair)
{
	struct port_config a = spread_config("a", "b", 1), b = spread_config("b", "a", 2);
	struct pair p = open_pair(&a, &b);

	arrive_by_queue_pair(p.a, p.b, 2);
	arrive_by_queue_pair(p.b, p.a, 1);
	close_pair(&p);
}

/* Each queue gets its turn of what is sent to one. A full ring to the queue of the same number holds up
 * those behind; what is for another one is dropped. */
TEST(spread__full_ring_and_turns)
{
	struct port_config a = spread_config("a", "b", 1), b = spread_config("b", "a", 2);
	struct pair p = open_pair(&a, &b);
	struct rte_mbuf *m[3];
	uint32_t sent = 0;

	make_qps(p.b);
	do
		m[0] = for_qp(0xabc0, 2, 1, sent++);
	while (send_from(p.a, 0, m, 1));
	assert_int_equal(sent, PORT_RING_FRAMES / QUEUES + 1);
	m[2] = m[0];
	m[0] = for_qp(0xabc1, 2, 1, 1);
	m[1] = for_qp(0xabc2, 2, 1, 2);
	assert_int_equal(send_from(p.a, 0, m, 3), 2);
	assert_int_equal(send_from(p.a, 1, m + 2, 1), 1);
	for (uint16_t turn = 0; turn < QUEUES; turn++) { /* from queues 0, 1, 2 */
		assert_int_equal(receive_at(p.b, 0, m, 1), 1);
		assert_int_equal(tag_of(m[0]) == sent - 1, turn == 1);
		rte_pktmbuf_free(m[0]);
	}
	for (sent = 0; !port_counter(p.a, PORT_COUNTER_drop_tx_engine_full); sent++) {
		m[0] = for_qp(0xabc1, 2, 1, sent);
		assert_int_equal(send_from(p.a, 0, m, 1), 1);
	}
	assert_int_equal(sent, PORT_RING_FRAMES / QUEUES);
	close_pair(&p); /* with what is left in the rings */
}

/* Before there is a queue pair, and what is not RoCE: at the first. */
TEST(spread__of_nothing)
{
	struct port_config a = spread_config("a", "b", 1), b = spread_config("b", "a", 2);
	struct pair p = open_pair(&a, &b);
	struct rte_mbuf *m = for_qp(0xabc1, 2, 1, 5);

	assert_int_equal(send_from(p.a, 2, &m, 1), 1);
	assert_int_equal(receive_at(p.b, 0, &m, 1), 1);
	rte_pktmbuf_free(m);
	close_pair(&p);
}

TEST(ring__lone_port_drops)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct port_config c = ring_config("c", "c", 3);
	struct port *first = open_port(&a), *second;
	struct port_info info;

	assert_int_equal(send_one(first, roce_v4(2, 1, 0)), 1);
	assert_int_equal(port_counter(first, PORT_COUNTER_drop_tx_link_down), 1);
	second = open_port(&b);
	port_info(first, &info);
	assert_true(info.link_up);
	assert_int_equal(info.path_mtu_bytes, 4096);
	send_one(first, roce_v4(2, 1, 1));
	port_stop(second);
	port_info(first, &info);
	assert_false(info.link_up);
	assert_int_equal(port_start(second), 0);
	send_one(first, roce_v4(2, 1, 2));
	port_destroy(second);
	/* and again with another of that name */
	second = open_port(&b);
	port_info(first, &info);
	assert_true(info.link_up);
	port_destroy(first);
	/* The wire that it made is still there; another port, in its place, makes one, too. */
	first = open_port(&c);
	port_info(first, &info);
	assert_true(info.link_up);
	port_destroy(first);
	port_destroy(second);
	assert_no_leak();
}

TEST(config__contradictions_are_refused)
{
	struct port_config good = ring_config("a", "b", 1), c;
	struct port *port, *twin;

#define REFUSED(change, error)                                                                     \
	do {                                                                                       \
		c = good;                                                                          \
		change;                                                                            \
		assert_int_equal(port_create(&c, packets, clones, &port), error);                  \
	} while (0)
	REFUSED(c.name[0] = 0, -EINVAL);
	REFUSED(memset(c.name, 'x', sizeof(c.name)), -EINVAL);
	REFUSED(c.peer[0] = 0, -EINVAL);
	REFUSED(c.queues = 0, -EINVAL);
	REFUSED(c.queues = PORT_QUEUES_MAX + 1, -EINVAL);
	REFUSED(c.addresses.count = PORT_ADDRESSES_MAX + 1, -EINVAL);
	REFUSED(c.addresses.at[0].prefix_len = 33, -EINVAL);
	REFUSED(c.addresses.at[0].v6 = true, -EINVAL);
	REFUSED(strcpy(c.backup, "eth1"), -EINVAL);
	REFUSED(c.mac[0] = 1, -EINVAL);
	REFUSED(c.vlan = 4095, -EINVAL);
	REFUSED(c.mtu_bytes = 300, -EINVAL);
	REFUSED(c.impairment.loss = 1.5, -EINVAL);
	REFUSED(c.type = PORT_TYPE_COUNT, -EINVAL);
	REFUSED((c.type = PORT_TAP, strcpy(c.device, "x,remote=eth0")), -EINVAL);
	REFUSED(strcpy(c.capture_path, "/nonexistent/dir/x"), -ENOENT);
#undef REFUSED
	twin = open_port(&good);
	assert_int_equal(port_create(&good, packets, clones, &port), -EEXIST);
	port_destroy(twin);
	assert_no_leak();
}

/* Sends m from a to b and expects it dropped under `why`. */
static void expect_drop(struct pair *p, struct rte_mbuf *m, enum port_counter_id why)
{
	uint64_t before = port_counter(p->b, why);
	struct rte_mbuf *got[1];

	assert_int_equal(send_one(p->a, m), 1);
	assert_int_equal(receive(p->b, got, 1), 0);
	if (port_counter(p->b, why) != before + 1)
		fail_msg("not counted as %s", port_counter_name(why));
}

static void expect_pass(struct pair *p, struct rte_mbuf *m)
{
	struct rte_mbuf *got[1];

	assert_int_equal(send_one(p->a, m), 1);
	assert_int_equal(receive(p->b, got, 1), 1);
	rte_pktmbuf_free(got[0]);
}

static uint8_t *at(struct rte_mbuf *m, uint32_t offset)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, offset);
}

TEST_PAIR(classify__ipv4)
{
	struct rte_mbuf *m;

	expect_pass(p, roce_v4(2, 1, 0));
	m = roce_v4(2, 1, 0); /* to a group */
	memcpy(at(m, 30), (uint8_t[]){224, 1, 2, 3}, 4);
	memcpy(at(m, 0), (uint8_t[]){1, 0, 0x5e, 1, 2, 3}, 6);
	expect_pass(p, m);
	m = roce_v4(2, 1, 0);
	rte_pktmbuf_append(m, 2); /* Ethernet padding */
	expect_pass(p, m);
	expect_drop(p, roce_v4(3, 1, 0), PORT_COUNTER_drop_rx_not_our_mac);
	m = roce_v4(2, 1, 0);
	*at(m, 33) = 3;
	expect_drop(p, m, PORT_COUNTER_drop_rx_not_our_ip);
	m = roce_v4(2, 1, 0);
	*at(m, 37) ^= 1; /* another UDP port */
	expect_drop(p, m, PORT_COUNTER_drop_rx_other);
	m = roce_v4(2, 1, 0);
	*at(m, 23) = 6;
	expect_drop(p, m, PORT_COUNTER_drop_rx_other);
	m = roce_v4(2, 1, 0);
	*at(m, 20) = 0x20; /* more fragments */
	expect_drop(p, m, PORT_COUNTER_drop_rx_fragment);
	m = roce_v4(2, 1, 0);
	*at(m, 20) = 0x40; /* do not fragment */
	expect_pass(p, m);
	m = roce_v4(2, 1, 0);
	*at(m, 14) = 0x46;
	expect_drop(p, m, PORT_COUNTER_drop_rx_fragment);
	m = roce_v4(2, 1, 0);
	rte_pktmbuf_trim(m, 1);
	expect_drop(p, m, PORT_COUNTER_drop_rx_short);
	m = roce_v4(2, 1, 0);
	*at(m, 17) = 43; /* no room for BTH and ICRC */
	expect_drop(p, m, PORT_COUNTER_drop_rx_short);
	for (uint16_t bytes = 0; bytes < 42; bytes++) {
		m = roce_v4(2, 1, 0);
		rte_pktmbuf_trim(m, ROCE_FRAME_BYTES - bytes);
		expect_drop(p, m, PORT_COUNTER_drop_rx_short);
	}
}

TEST_PAIR(classify__ipv6)
{
	struct rte_mbuf *m;

	expect_pass(p, roce_v6(2, 1));
	m = roce_v6(2, 1);
	*at(m, 14 + 39) = 9;
	expect_drop(p, m, PORT_COUNTER_drop_rx_not_our_ip);
	m = roce_v6(2, 1);
	*at(m, 14 + 6) = 44; /* fragment header */
	expect_drop(p, m, PORT_COUNTER_drop_rx_other);
	m = roce_v6(2, 1);
	rte_pktmbuf_trim(m, 1);
	expect_drop(p, m, PORT_COUNTER_drop_rx_short);
}

static struct rte_mbuf *tagged(struct rte_mbuf *m, uint16_t tci)
{
	uint8_t *p;

	assert_non_null(rte_pktmbuf_prepend(m, 4));
	p = at(m, 0);
	memmove(p, p + 4, 12);
	memcpy(p + 12, (uint8_t[]){0x81, 0, tci >> 8, tci & 0xff}, 4);
	return m;
}

TEST_PAIR(classify__vlan)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);

	expect_pass(p, tagged(roce_v4(2, 1, 0), 0xa000)); /* priority tag */
	expect_drop(p, tagged(roce_v4(2, 1, 0), 5), PORT_COUNTER_drop_rx_not_our_vlan);
	close_pair(p);
	a.vlan = b.vlan = 5;
	*p = open_pair(&a, &b);
	expect_pass(p, tagged(roce_v4(2, 1, 0), 0xa005));
	expect_pass(p, tagged(roce_v6(2, 1), 5));
	expect_drop(p, tagged(roce_v4(2, 1, 0), 6), PORT_COUNTER_drop_rx_not_our_vlan);
	expect_drop(p, roce_v4(2, 1, 0), PORT_COUNTER_drop_rx_not_our_vlan);
}
