/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP, neighbour discovery and ping between two ring ports, and what is malformed. */
#include <arpa/inet.h>

#include "fixture.h"
#include "port_internal.h"
#include "nd.h"

/* Polls until ip is resolved from p->a or given up. */
static int resolve(struct pair *p, const uint8_t *ip, uint8_t mac[6])
{
	int result;

	for (unsigned int i = 0; i < 10; i++) {
		result = port_resolve(p->a, ip, mac);
		if (result != -EAGAIN)
			return result;
		turn(p);
	}
	return -EAGAIN;
}

static void expect_mac(const uint8_t mac[6], uint8_t last)
{
	const uint8_t expected[6] = {2, [5] = last};

	assert_memory_equal(mac, expected, 6);
}

TEST_PAIR(resolve__arp)
{
	struct port_address a;
	uint8_t mac[6];

	set_v4(&a, 2);
	assert_int_equal(port_resolve(p->a, a.ip, mac), -EAGAIN);
	assert_int_equal(resolve(p, a.ip, mac), 0);
	expect_mac(mac, 2);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_arp_answered), 1);
	/* question and answer have left unasked for */
	assert_int_equal(port_link(p->a)->sent_later, 1);
	assert_int_equal(port_link(p->b)->sent_later, 1);
	/* b has learnt a from the question */
	set_v4(&a, 1);
	assert_int_equal(port_resolve(p->b, a.ip, mac), 0);
	expect_mac(mac, 1);
}

TEST_PAIR(resolve__neighbour_discovery)
{
	struct port_address a;
	uint8_t mac[6];

	set_v6(&a, 2);
	assert_int_equal(resolve(p, a.ip, mac), 0);
	expect_mac(mac, 2);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_nd_answered), 1);
	set_v6(&a, 1);
	assert_int_equal(port_resolve(p->b, a.ip, mac), 0);
}

/* The automatic address of each port: of MAC 02:00:00:00:00:last. */
TEST_PAIR(resolve__link_local)
{
	const uint8_t address[16] = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = 2};
	struct port_info info;
	uint8_t mac[6];

	port_info(p->b, &info);
	assert_int_equal(info.n_addresses, 3);
	assert_memory_equal(info.address[0].ip, address, 16);
	assert_int_equal(info.address[0].prefix_len, 64);
	assert_false(info.address[1].v6);
	assert_true(info.address[2].v6);
	assert_int_equal(resolve(p, address, mac), 0);
	expect_mac(mac, 2);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_nd_answered), 1);
}

TEST(resolve__link_local_configured_counts_once)
{
	struct port_config a = ring_config("a", "a", 1);
	struct port_info info;
	struct port *port;

	memcpy(a.addresses.at[1].ip, (const uint8_t[16]){0xfe, 0x80, [11] = 0xff, 0xfe, 0, 0, 1},
	       16);
	port = open_port(&a);
	port_info(port, &info);
	assert_int_equal(info.n_addresses, 2);
	assert_true(info.address[0].v6);
	assert_false(info.address[1].v6);
	port_destroy(port);
	assert_no_leak();
}

static void expect_source(const struct port *port, int expected, const char *text)
{
	uint8_t ip[16] = {[10] = 0xff, 0xff};
	bool v6 = strchr(text, ':') != NULL;

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, text, v6 ? ip : ip + 12), 1);
	if (port_source(port, ip) != expected)
		fail_msg("to %s: from %d", text, port_source(port, ip));
}

/* 0: fe80::ff:fe00:1, 1: 10.0.0.1/24, 2: fd00::1/64, 3: 10.0.1.9/24, 4: fd00:0:0:1::9/64 */
TEST(source__of_every_destination)
{
	struct port_config a = ring_config("a", "a", 1);
	struct port *port;

	set_v4(&a.addresses.at[2], 9);
	a.addresses.at[2].ip[14] = 1;
	set_v6(&a.addresses.at[3], 9);
	a.addresses.at[3].ip[7] = 1;
	a.addresses.count = 4;
	port = open_port(&a);
	expect_source(port, 1, "10.0.0.1"); /* its own */
	expect_source(port, 3, "10.0.1.9");
	expect_source(port, 4, "fd00:0:0:1::9");
	expect_source(port, 1, "10.0.0.77");
	expect_source(port, 3, "10.0.1.77");
	expect_source(port, 2, "fd00::77");
	expect_source(port, 4, "fd00:0:0:1::77");
	expect_source(port, 0, "fe80::77");
	expect_source(port, -ENETUNREACH, "10.0.2.1");
	expect_source(port, -ENETUNREACH, "2001:db8::1");
	expect_source(port, 1, "239.1.2.3");
	expect_source(port, 0, "ff02::1:2");
	expect_source(port, 2, "ff0e::1:2");
	port_destroy(port);
	a.gateways.has_v4 = a.gateways.has_v6 = true;
	memcpy(a.gateways.v4, a.addresses.at[0].ip, 16);
	a.gateways.v4[15] = 254;
	memcpy(a.gateways.v6, a.addresses.at[1].ip, 16);
	a.gateways.v6[15] = 254;
	port = open_port(&a);
	expect_source(port, 1, "10.0.2.1");
	expect_source(port, 2, "2001:db8::1");
	port_destroy(port);
	assert_no_leak();
}

TEST(resolve__with_vlan)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct port_address address;
	uint8_t mac[6];
	struct pair p;

	a.vlan = b.vlan = 77;
	p = open_pair(&a, &b);
	set_v4(&address, 2);
	assert_int_equal(resolve(&p, address.ip, mac), 0);
	set_v6(&address, 2);
	assert_int_equal(resolve(&p, address.ip, mac), 0);
	close_pair(&p);
}

TEST_PAIR(resolve__own_and_groups_at_once)
{
	static const uint8_t group_v4[16] = {[10] = 0xff, 0xff, 239, 0x81, 2, 3};
	static const uint8_t group_v6[16] = {0xff, 2, [12] = 1, 2, 3, 4};
	struct port_address a;
	uint8_t mac[6];

	set_v4(&a, 1);
	assert_int_equal(port_resolve(p->a, a.ip, mac), 0);
	expect_mac(mac, 1);
	assert_int_equal(port_resolve(p->a, group_v4, mac), 0);
	assert_memory_equal(mac, ((uint8_t[]){1, 0, 0x5e, 1, 2, 3}), 6);
	assert_int_equal(port_resolve(p->a, group_v6, mac), 0);
	assert_memory_equal(mac, ((uint8_t[]){0x33, 0x33, 1, 2, 3, 4}), 6);
}

TEST(resolve__gateway)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	uint8_t far_v4[16] = {[10] = 0xff, 0xff, 192, 168, 0, 1}, far_v6[16] = {0xfe, 0xc0, 1};
	struct port_address gateway;
	uint8_t mac[6];
	struct pair p;

	a.gateways.has_v4 = true;
	set_v4(&gateway, 2);
	memcpy(a.gateways.v4, gateway.ip, 16);
	p = open_pair(&a, &b);
	assert_int_equal(resolve(&p, far_v4, mac), 0);
	expect_mac(mac, 2);
	assert_int_equal(port_resolve(p.a, far_v6, mac), -EHOSTUNREACH);
	assert_int_equal(port_resolve(p.b, far_v4, mac), -EHOSTUNREACH);
	port_set_gateways(p.b, &(struct port_gateways){.has_v4 = true,
						       .v4 = {[10] = 0xff, 0xff, 10, [15] = 1}});
	assert_int_equal(port_resolve(p.b, far_v4, mac), 0);
	expect_mac(mac, 1);
	port_set_gateways(p.a, &(struct port_gateways){.has_v4 = false});
	assert_int_equal(port_resolve(p.a, far_v4, mac), -EHOSTUNREACH);
	close_pair(&p);
}

/* How many RoCE frames from a, to these two addresses at b's MAC address, are b's. */
static unsigned int roce_arrives(struct pair *p, uint8_t ip)
{
	struct rte_mbuf *m[BURST];
	unsigned int n;
	struct rte_mbuf *v4 = roce_v4(2, 1, 0), *v6 = roce_v6(2, 1);

	rte_pktmbuf_mtod(v4, uint8_t *)[33] = ip;
	rte_pktmbuf_mtod(v6, uint8_t *)[53] = ip;
	send_one(p->a, v4);
	send_one(p->a, v6);
	n = receive(p->b, m, BURST);
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static void move(struct port *port, const struct port_addresses *to)
{
	struct port_info before, after;

	port_info(port, &before);
	after = before;
	port_move(port, to, &after);
	port_moved(port, &before);
	port_info(port, &before);
	assert_memory_equal(&before, &after, sizeof(after));
}

/* Whoever waits for an answer of the new addresses gets one at once. */
TEST_PAIR(move__neighbours_are_told)
{
	struct port_addresses to = {.count = 2};
	struct port_info info;
	uint8_t mac[6];

	set_v4(&to.at[0], 7);
	set_v6(&to.at[1], 7);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(resolve(p, to.at[i].ip, mac), -EAGAIN);
	assert_int_equal(roce_arrives(p, 2), 2);
	assert_true(port_moves(p->b, &to));
	move(p->b, &to);
	assert_false(port_moves(p->b, &to));
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(resolve(p, to.at[i].ip, mac), 0);
		expect_mac(mac, 2);
	}
	assert_int_equal(port_counter(p->b, PORT_COUNTER_arp_answered), 0);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_nd_answered), 0);
	assert_int_equal(roce_arrives(p, 2), 0);
	assert_int_equal(roce_arrives(p, 7), 2);
	port_info(p->b, &info);
	assert_int_equal(info.n_addresses, 3);
	assert_memory_equal(info.address[1].ip, to.at[0].ip, 16);
	to.count = 1;
	assert_true(port_moves(p->b, &to));
	move(p->b, &to);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_announced), 2); /* the one was there */
	assert_int_equal(roce_arrives(p, 7), 1);
}

/* An echo request from a to b with `bytes` of payload. */
static struct rte_mbuf *ping_v4(uint16_t bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	struct rte_ipv4_hdr *ip;
	struct rte_icmp_hdr *icmp;

	put_ether(m, 2, 1, RTE_ETHER_TYPE_IPV4);
	ip = grow(m, sizeof(*ip));
	ip->version_ihl = 0x45;
	ip->total_length = rte_cpu_to_be_16(sizeof(*ip) + sizeof(*icmp) + bytes);
	ip->time_to_live = 1;
	ip->next_proto_id = 1;
	ip->src_addr = rte_cpu_to_be_32(0x0a000001);
	ip->dst_addr = rte_cpu_to_be_32(0x0a000002);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	icmp = grow(m, sizeof(*icmp) + bytes);
	icmp->icmp_type = 8;
	icmp->icmp_seq_nb = rte_cpu_to_be_16(77);
	icmp->icmp_cksum = ~rte_raw_cksum(icmp, sizeof(*icmp) + bytes);
	return m;
}

static struct rte_mbuf *ping_v6(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	struct rte_ipv6_hdr *ip;
	struct icmpv6_header *icmp;

	put_ether(m, 2, 1, RTE_ETHER_TYPE_IPV6);
	ip = grow(m, sizeof(*ip));
	ip->vtc_flow = rte_cpu_to_be_32(0x60000000);
	ip->payload_len = rte_cpu_to_be_16(13);
	ip->proto = 58;
	ip->hop_limits = 3;
	ip->src_addr[0] = ip->dst_addr[0] = 0xfd;
	ip->src_addr[15] = 1;
	ip->dst_addr[15] = 2;
	icmp = grow(m, 13);
	icmp->type = ICMPV6_ECHO_REQUEST;
	icmp->checksum = rte_ipv6_udptcp_cksum(ip, icmp);
	return m;
}

TEST_PAIR(ping__is_answered)
{
	send_one(p->a, ping_v4(56));
	send_one(p->a, ping_v4(0));
	send_one(p->a, ping_v6());
	/* b receives, answers; a takes the answers and, correct as they are, ignores them */
	turn(p);
	turn(p);
	turn(p);
	turn(p);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_ping_answered), 3);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_rx_icmp), 2);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_rx_icmpv6), 1);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_drop_control_other), 3);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_drop_icmp_malformed), 0);
}

static struct rte_mbuf *arp_request(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	struct rte_arp_hdr *arp;

	put_ether(m, 2, 9, RTE_ETHER_TYPE_ARP);
	arp = grow(m, sizeof(*arp));
	arp->arp_hardware = rte_cpu_to_be_16(1);
	arp->arp_protocol = rte_cpu_to_be_16(0x0800);
	arp->arp_hlen = 6;
	arp->arp_plen = 4;
	arp->arp_opcode = rte_cpu_to_be_16(1);
	arp->arp_data.arp_sha.addr_bytes[0] = 2;
	arp->arp_data.arp_sha.addr_bytes[5] = 9;
	arp->arp_data.arp_sip = rte_cpu_to_be_32(0x0a000009);
	arp->arp_data.arp_tip = rte_cpu_to_be_32(0x0a000002);
	return m;
}

static struct rte_mbuf *solicitation(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);
	uint8_t source[16] = {0xfd, [15] = 9}, group[16] = {0xff, 2, [11] = 1, 0xff, [15] = 2};
	uint8_t mac[6] = {2, [5] = 9};
	struct nd_frame *nd;

	put_ether(m, 2, 9, RTE_ETHER_TYPE_IPV6);
	nd = grow(m, sizeof(*nd));
	nd->icmp.type = ND_SOLICITATION;
	nd->target[0] = 0xfd;
	nd->target[15] = 2;
	nd->option_type = ND_OPTION_SOURCE_MAC;
	nd_finish(nd, source, group, mac);
	return m;
}

/* Computes the checksum of a message that was spoilt after it was built. */
static void seal(struct rte_mbuf *m)
{
	struct nd_frame *nd = rte_pktmbuf_mtod_offset(m, struct nd_frame *, 14);

	nd->icmp.checksum = 0;
	nd->icmp.checksum = rte_ipv6_udptcp_cksum(&nd->ip, &nd->icmp);
}

/* Sends m to b and expects neither an answer nor anything learnt, and `why` counted. */
static void expect_ignored(struct pair *p, struct rte_mbuf *m, enum port_counter_id why)
{
	uint64_t before = port_counter(p->b, why);
	uint64_t answers = port_counter(p->b, PORT_COUNTER_tx_frames);

	send_one(p->a, m);
	turn(p);
	turn(p);
	if (port_counter(p->b, why) != before + 1)
		fail_msg("not counted as %s", port_counter_name(why));
	assert_int_equal(port_counter(p->b, PORT_COUNTER_tx_frames), answers);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_neighbour_learnt), 0);
}

TEST_PAIR(arp__malformed_is_ignored)
{
	static const struct {
		uint8_t offset, value;
	} spoilt[] = {{15, 6}, {16, 9}, {18, 5}, {19, 16}, {21, 7}, {21, 0}, {22, 1}, {27, 8}};
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < RTE_DIM(spoilt); i++) {
		m = arp_request();
		rte_pktmbuf_mtod(m, uint8_t *)[spoilt[i].offset] = spoilt[i].value;
		expect_ignored(p, m, PORT_COUNTER_drop_arp_malformed);
	}
	for (uint16_t cut = 1; cut <= 24; cut++) {
		m = arp_request();
		rte_pktmbuf_trim(m, cut);
		expect_ignored(p, m, PORT_COUNTER_drop_arp_malformed);
	}
	m = arp_request();
	rte_pktmbuf_mtod(m, uint8_t *)[41] = 3; /* somebody else */
	expect_ignored(p, m, PORT_COUNTER_drop_control_other);
}

TEST_PAIR(arp__reply_nobody_asked_for_is_not_learnt)
{
	struct rte_mbuf *m = arp_request();

	rte_pktmbuf_mtod(m, uint8_t *)[21] = 2;
	rte_pktmbuf_mtod(m, uint8_t *)[41] = 3;
	send_one(p->a, m);
	turn(p);
	turn(p);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_neighbour_learnt), 0);
}

TEST_PAIR(nd__malformed_is_ignored)
{
	/* offset in the frame, value; the checksum is right again afterwards */
	static const struct {
		uint8_t offset, value;
	} spoilt[] = {
		{14 + 7, 254},	 /* hop limit */
		{14 + 41, 1},	 /* code */
		{14 + 48, 0xff}, /* target is a group */
		{14 + 65, 0},	 /* option of length 0 */
		{14 + 65, 2},	 /* option sticks out */
		{14 + 8, 0xff},	 /* source is a group */
	};
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < RTE_DIM(spoilt); i++) {
		m = solicitation();
		rte_pktmbuf_mtod(m, uint8_t *)[spoilt[i].offset] = spoilt[i].value;
		seal(m);
		expect_ignored(p, m, PORT_COUNTER_drop_nd_malformed);
	}
	m = solicitation(); /* duplicate address detection must not carry a MAC */
	memset(rte_pktmbuf_mtod_offset(m, void *, 14 + 8), 0, 16);
	seal(m);
	expect_ignored(p, m, PORT_COUNTER_drop_nd_malformed);
	m = solicitation();
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 60] ^= 1; /* checksum wrong */
	expect_ignored(p, m, PORT_COUNTER_drop_icmp_malformed);
	m = solicitation();
	rte_pktmbuf_trim(m, 1);
	expect_ignored(p, m, PORT_COUNTER_drop_icmp_malformed);
	for (uint16_t bytes = 8; bytes < 24; bytes++) {
		m = solicitation();
		rte_pktmbuf_mtod(m, uint8_t *)[14 + 5] = bytes;
		seal(m);
		expect_ignored(p, m, PORT_COUNTER_drop_nd_malformed);
	}
}

TEST_PAIR(nd__duplicate_address_detection_is_answered_to_all)
{
	struct rte_mbuf *m = solicitation();

	memset(rte_pktmbuf_mtod_offset(m, void *, 14 + 8), 0, 16);
	rte_pktmbuf_trim(m, 8);
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 5] = 24;
	seal(m);
	send_one(p->a, m);
	turn(p);
	turn(p);
	turn(p);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_nd_answered), 1);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_rx_icmpv6), 1);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_drop_nd_malformed), 0);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_neighbour_learnt), 0);
}

TEST_PAIR(ping__malformed_is_ignored)
{
	struct rte_mbuf *m = ping_v4(4);

	rte_pktmbuf_mtod(m, uint8_t *)[14 + 20 + 6] ^= 1; /* ICMP checksum */
	expect_ignored(p, m, PORT_COUNTER_drop_icmp_malformed);
	m = ping_v4(4);
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 8] ^= 1; /* header checksum */
	expect_ignored(p, m, PORT_COUNTER_drop_icmp_malformed);
	m = ping_v4(4);
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 3] = 200; /* longer than the frame */
	expect_ignored(p, m, PORT_COUNTER_drop_icmp_malformed);
	m = ping_v4(4);
	rte_pktmbuf_mtod(m, uint8_t *)[14] = 0x4f; /* options that are not there */
	expect_ignored(p, m, PORT_COUNTER_drop_icmp_malformed);
	m = ping_v4(4);
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 20] = 0; /* an answer to nothing */
	rte_pktmbuf_mtod(m, uint8_t *)[14 + 22] += 8;
	expect_ignored(p, m, PORT_COUNTER_drop_control_other);
}

/* A ping whose sender has the address 02:00:00:00:from. */
static void ping_from(struct pair *p, uint16_t from)
{
	struct rte_mbuf *m = ping_v4(0), *got[1];
	const uint8_t be[2] = {(uint8_t)(from >> 8), (uint8_t)from};

	memcpy(rte_pktmbuf_mtod(m, uint8_t *) + 10, be, 2);
	send_one(p->a, m);
	receive(p->b, got, 1);
}

TEST_PAIR(control__flood_of_forged_sources_is_bounded)
{
	for (uint16_t i = 0; i < 600; i++)
		ping_from(p, i);
	assert_true(port_counter(p->b, PORT_COUNTER_drop_rx_control_full) >= 600 - 256 - 8);
}

/* In times of the test's own: 64 at once, then one each 10 ms; others are not concerned. */
TEST(control__a_source_has_a_rate)
{
	struct source_limit l = {.key = 0x9e3779b97f4a7c15};
	const uint64_t hz = 1000000000, start = 5 * hz, frame = hz / SOURCE_PER_SECOND;

	for (unsigned int i = 0; i < SOURCE_BURST; i++)
		assert_true(source_admit(&l, 1, start, hz));
	assert_false(source_admit(&l, 1, start, hz));
	assert_false(source_admit(&l, 1, start + frame - 1, hz));
	assert_true(source_admit(&l, 2, start, hz));
	assert_true(source_admit(&l, 1, start + frame, hz));
	assert_false(source_admit(&l, 1, start + frame, hz));
	for (unsigned int i = 0; i < SOURCE_BURST; i++) /* forgotten */
		assert_true(source_admit(&l, 1, start + hz, hz));
	assert_false(source_admit(&l, 1, start + hz, hz));
}

/* The flood of one source leaves the ring to the others, who have their answers. */
TEST_PAIR(control__flood_of_one_source_is_its_own)
{
	struct source_limit *l = &p->b->queue[0].sources;
	const uint64_t hour = 3600 * rte_get_tsc_hz();

	ping_from(p, 1);
	for (unsigned int i = 0; i < RTE_DIM(l->empty_at); i++) /* as if it had sent for an hour */
		if (l->empty_at[i])
			l->empty_at[i] += hour;
	for (unsigned int i = 0; i < 600; i++)
		ping_from(p, 1);
	assert_int_equal(port_counter(p->b, PORT_COUNTER_drop_rx_control_rate), 600);
	for (uint16_t from = 2; from < 10; from++)
		ping_from(p, from);
	port_poll_control(p->b);
	assert_true(port_counter(p->b, PORT_COUNTER_ping_answered) >=
		    1 + 4); /* some share its bucket */
	for (unsigned int i = 0; i < 4; i++)
		turn(p);
}
