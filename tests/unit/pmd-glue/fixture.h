/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_PMD_GLUE_FIXTURE_H
#define TESTS_PMD_GLUE_FIXTURE_H
/*
 * What the pmd-glue tests share: EAL without hugepages or root, pools, ring ports, frames. One
 * thread plays both the data path and the control thread.
 */
#include "test.h"
#include "world_eal.h"

#include <rte_arp.h>
#include <rte_ethdev.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "base/limits.h"
#include "pmd-glue/port.h"

enum {
	PRIV_BYTES = 192, /* MESSAGE_PRIV_BYTES, without pulling in lib/hca/pipeline */
	POOL_FRAMES = 2047,
	ROCE_FRAME_BYTES = 14 + 20 + 8 + 12 + 4 + 16, /* 16 bytes of payload */
};

static struct rte_mempool *packets, *clones;

static int start_eal(void **state)
{
	if (world_eal(state))
		return -1;
	packets = rte_pktmbuf_pool_create("packets", POOL_FRAMES, 0, PRIV_BYTES, PACKET_ROOM_BYTES,
					  SOCKET_ID_ANY);
	clones = rte_pktmbuf_pool_create("clones", POOL_FRAMES, 0, PRIV_BYTES, 0, SOCKET_ID_ANY);
	return packets && clones ? 0 : -1;
}

static int stop_eal(void **state)
{
	rte_mempool_free(packets);
	rte_mempool_free(clones);
	return rte_eal_cleanup();
}

TEST_GROUP(.setup = start_eal, .teardown = stop_eal);

/* Every buffer is back in its pool. */
static inline void assert_no_leak(void)
{
	assert_int_equal(rte_mempool_in_use_count(packets), 0);
	assert_int_equal(rte_mempool_in_use_count(clones), 0);
}

static inline void set_v4(struct port_address *a, uint8_t last)
{
	const uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 0, [14] = 0, last};

	*a = (struct port_address){.prefix_len = 24};
	memcpy(a->ip, ip, 16);
}

static inline void set_v6(struct port_address *a, uint8_t last)
{
	const uint8_t ip[16] = {0xfd, 0, [15] = last};

	*a = (struct port_address){.v6 = true, .prefix_len = 64};
	memcpy(a->ip, ip, 16);
}

/* Ring port `name` towards `peer`: 10.0.0.last, fd00::last, MAC 02:00:00:00:00:last. */
static inline struct port_config ring_config(const char *name, const char *peer, uint8_t last)
{
	struct port_config c = {
		.type = PORT_RING, .queues = 1, .socket = SOCKET_ID_ANY, .addresses.count = 2};

	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.peer, sizeof(c.peer), "%s", peer);
	c.mac[0] = 2;
	c.mac[5] = last;
	set_v4(&c.addresses.at[0], last);
	set_v6(&c.addresses.at[1], last);
	return c;
}

static inline struct port *open_port(const struct port_config *c)
{
	struct port *port = NULL;

	assert_int_equal(port_create(c, packets, clones, &port), 0);
	assert_int_equal(port_start(port), 0);
	return port;
}

struct pair {
	struct port *a, *b;
};

static inline struct pair open_pair(const struct port_config *a, const struct port_config *b)
{
	struct pair p = {open_port(a), open_port(b)};

	return p;
}

/* Ports a and b. */
static inline struct pair open_default(void)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);

	return open_pair(&a, &b);
}

static inline void close_pair(struct pair *p)
{
	port_destroy(p->a);
	port_destroy(p->b);
	assert_no_leak();
}

/* Appends n zero bytes to m and returns them. */
static inline void *grow(struct rte_mbuf *m, uint16_t n)
{
	void *p = rte_pktmbuf_append(m, n);

	assert_non_null(p);
	return memset(p, 0, n);
}

static inline void put_ether(struct rte_mbuf *m, uint8_t to, uint8_t from, uint16_t type)
{
	struct rte_ether_hdr *e = grow(m, sizeof(*e));

	e->dst_addr.addr_bytes[0] = e->src_addr.addr_bytes[0] = 2;
	e->dst_addr.addr_bytes[5] = to;
	e->src_addr.addr_bytes[5] = from;
	e->ether_type = rte_cpu_to_be_16(type);
}

static inline void put_udp(struct rte_mbuf *m, uint16_t payload)
{
	struct rte_udp_hdr *u = grow(m, sizeof(*u) + payload);

	u->dst_port = rte_cpu_to_be_16(4791);
	u->dgram_len = rte_cpu_to_be_16(sizeof(*u) + payload);
}

/* A RoCE frame between the ports numbered so; tag lies where the payload is. */
static inline struct rte_mbuf *roce_v4(uint8_t to, uint8_t from, uint32_t tag)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	struct rte_ipv4_hdr *ip;

	assert_non_null(m);
	put_ether(m, to, from, RTE_ETHER_TYPE_IPV4);
	ip = grow(m, sizeof(*ip));
	ip->version_ihl = 0x45;
	ip->total_length = rte_cpu_to_be_16(ROCE_FRAME_BYTES - 14);
	ip->next_proto_id = 17;
	ip->src_addr = rte_cpu_to_be_32(0x0a000000 | from);
	ip->dst_addr = rte_cpu_to_be_32(0x0a000000 | to);
	put_udp(m, 32);
	memcpy(rte_pktmbuf_mtod_offset(m, void *, 54), &tag, sizeof(tag));
	return m;
}

static inline uint32_t tag_of(const struct rte_mbuf *m)
{
	uint32_t tag;

	memcpy(&tag, rte_pktmbuf_mtod_offset(m, void *, 54), sizeof(tag));
	return tag;
}

static inline struct rte_mbuf *roce_v6(uint8_t to, uint8_t from)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	struct rte_ipv6_hdr *ip;

	assert_non_null(m);
	put_ether(m, to, from, RTE_ETHER_TYPE_IPV6);
	ip = grow(m, sizeof(*ip));
	ip->vtc_flow = rte_cpu_to_be_32(0x60000000);
	ip->payload_len = rte_cpu_to_be_16(40);
	ip->proto = 17;
	ip->src_addr[0] = ip->dst_addr[0] = 0xfd;
	ip->src_addr[15] = from;
	ip->dst_addr[15] = to;
	put_udp(m, 32);
	return m;
}

static inline uint16_t send_one(struct port *port, struct rte_mbuf *m)
{
	struct link_port *link = port_link(port);

	return link->tx_burst(link, 0, &m, 1);
}

static inline uint16_t receive(struct port *port, struct rte_mbuf **frames, uint16_t n)
{
	struct link_port *link = port_link(port);

	return link->rx_burst(link, 0, frames, n);
}

/* One turn of everything; RoCE frames that come are an error. */
static inline void turn(struct pair *p)
{
	struct rte_mbuf *m[BURST];

	port_poll_control(p->a);
	assert_int_equal(receive(p->a, m, BURST), 0);
	port_poll_control(p->b);
	assert_int_equal(receive(p->b, m, BURST), 0);
}

/* A case on its own ports a and b. */
#define TEST_PAIR(name)                                                                            \
	static void name##_on(struct pair *p);                                                     \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct pair p = open_default();                                                    \
                                                                                                   \
		name##_on(&p);                                                                     \
		close_pair(&p);                                                                    \
	}                                                                                          \
	static void name##_on(struct pair *p)

#endif
