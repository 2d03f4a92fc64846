/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and multicast groups: the reports byte by byte, queries good and bad, and frames to groups,
 * which go to the wire and come back.
 */
#include "fixture.h"
#include "port_internal.h"

static const uint8_t group4[16] = {[10] = 0xff, [11] = 0xff, 239, 129, 2, 3};
static const uint8_t group6[16] = {0xff, 0x0e, [13] = 7, 8, 9};

static uint8_t *at(struct rte_mbuf *m, uint16_t offset)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, offset);
}

/* What a sends unprompted now, one frame as it lies on the wire; NULL: nothing. */
static struct rte_mbuf *said_by(struct port *port, struct port *peer)
{
	struct rte_mbuf *m[1];
	void *frame;

	port_poll_control(port);
	assert_int_equal(receive(port, m, 1), 0);
	return rte_ring_sc_dequeue(peer->queue[0].rx_ring, &frame) ? NULL : frame;
}

static struct rte_mbuf *report_of(struct pair *p, const uint8_t *ip, bool leave)
{
	struct rte_mbuf *m;

	if (leave)
		port_leave(p->a, ip);
	else
		assert_int_equal(port_join(p->a, ip), 0);
	m = said_by(p->a, p->b);
	assert_non_null(m);
	return m;
}

static void expect_v4_report(struct rte_mbuf *m, uint8_t type)
{
	static const uint8_t ether[14] = {1, 0, 0x5e, 0, 0, 22, 2, 0, 0, 0, 0, 1, 8, 0};
	const uint8_t ip[24] = {0x46, 0xc0, 0, 40, 0,	0, 0x40, 0,  1,	   2, 0, 0,
				10,   0,    0, 1,  224, 0, 0,	 22, 0x94, 4, 0, 0};
	const uint8_t igmp[16] = {0x22, 0, 0, 0, 0, 0, 0, 1, type, 0, 0, 0, 239, 129, 2, 3};

	assert_int_equal(rte_pktmbuf_data_len(m), 54);
	assert_memory_equal(at(m, 0), ether, sizeof(ether));
	assert_int_equal(rte_raw_cksum(at(m, 14), 24), 0xffff);
	assert_int_equal(rte_raw_cksum(at(m, 38), 16), 0xffff);
	memset(at(m, 24), 0, 2);
	memset(at(m, 40), 0, 2);
	assert_memory_equal(at(m, 14), ip, sizeof(ip));
	assert_memory_equal(at(m, 38), igmp, sizeof(igmp));
	rte_pktmbuf_free(m);
}

TEST_PAIR(groups__igmp_reports)
{
	expect_v4_report(report_of(p, group4, false), 4);
	assert_null(said_by(p->a, p->b)); /* again, but not yet */
	expect_v4_report(report_of(p, group4, true), 3);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_reports_sent), 2);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_groups_joined), 1);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_groups_left), 1);
}

static uint16_t icmpv6_sum(struct rte_mbuf *m, uint16_t offset, uint16_t bytes)
{
	struct rte_ipv6_hdr ip = *(struct rte_ipv6_hdr *)at(m, 14);
	uint32_t sum;

	ip.proto = 58;
	ip.payload_len = rte_cpu_to_be_16(bytes);
	sum = rte_raw_cksum(at(m, offset), bytes) + rte_ipv6_phdr_cksum(&ip, 0);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void expect_v6_report(struct rte_mbuf *m, uint8_t type)
{
	static const uint8_t ether[14] = {0x33, 0x33, 0, 0, 0, 0x16, 2, 0, 0, 0, 0, 1, 0x86, 0xdd};
	static const uint8_t ip[48] = {0x60, 0, 0, 0, 0, 36, 0, 1,
				       /* fe80::ff:fe00:1, ff02::16 */
				       0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1,
				       0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16,
				       /* hop by hop */
				       58, 0, 5, 2, 0, 0, 1, 0};
	uint8_t mld[28] = {143, 0, 0, 0, 0, 0, 0, 1, type};

	memcpy(mld + 12, group6, 16);
	assert_int_equal(rte_pktmbuf_data_len(m), 14 + 40 + 8 + 28);
	assert_memory_equal(at(m, 0), ether, sizeof(ether));
	assert_memory_equal(at(m, 14), ip, sizeof(ip));
	assert_int_equal(icmpv6_sum(m, 62, 28), 0xffff);
	memset(at(m, 64), 0, 2);
	assert_memory_equal(at(m, 62), mld, sizeof(mld));
	rte_pktmbuf_free(m);
}

TEST_PAIR(groups__mld_reports)
{
	expect_v6_report(report_of(p, group6, false), 4);
	assert_null(said_by(p->a, p->b));
	expect_v6_report(report_of(p, group6, true), 3);
}

TEST(groups__a_port_without_ipv4_says_nothing_of_it)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct pair p;

	a.addresses.count = 0;
	p = open_pair(&a, &b);
	assert_int_equal(port_join(p.a, group4), 0);
	assert_null(said_by(p.a, p.b));
	expect_v6_report(report_of(&p, group6, false), 4);
	close_pair(&p);
}

/* Joined while the link is down: said when it is up. */
TEST(groups__said_when_the_link_is_up)
{
	struct port_config a = ring_config("a", "b", 1), b = ring_config("b", "a", 2);
	struct pair p;
	struct rte_mbuf *m[1];

	p.a = open_port(&a);
	assert_int_equal(port_join(p.a, group4), 0);
	port_poll_control(p.a);
	assert_int_equal(receive(p.a, m, 1), 0);
	p.b = open_port(&b);
	expect_v4_report(said_by(p.a, p.b), 4);
	port_stop(p.b);
	assert_int_equal(port_start(p.b), 0);
	expect_v4_report(said_by(p.a, p.b), 4);
	close_pair(&p);
}

/* ---- queries ---- */

/* An IPv4 packet with router alert; checksums are made when it is sent. */
static struct rte_mbuf *igmp_query(uint16_t bytes)
{
	static const uint8_t header[38] = {1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
					   /* IP */
					   0x46, 0xc0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 2,
					   224, 0, 0, 1, 0x94, 4, 0, 0};
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);

	memcpy(grow(m, sizeof(header)), header, sizeof(header));
	grow(m, bytes);
	*at(m, 17) = (uint8_t)(24 + bytes);
	*at(m, 38) = 0x11;
	return m;
}

static void finish_igmp(struct rte_mbuf *m)
{
	uint16_t bytes = rte_pktmbuf_data_len(m) - 38, sum;

	sum = ~rte_raw_cksum(at(m, 14), 24);
	memcpy(at(m, 24), &sum, 2);
	sum = ~rte_raw_cksum(at(m, 38), bytes);
	memcpy(at(m, 40), &sum, 2);
}

/* Its effect on that counter of port a. */
static void expect_count(struct pair *p, struct rte_mbuf *m, enum port_counter_id counter)
{
	uint64_t before = port_counter(p->a, counter);
	struct rte_mbuf *none[1];

	assert_int_equal(send_one(p->b, m), 1);
	assert_int_equal(receive(p->a, none, 1), 0);
	port_poll_control(p->a);
	assert_int_equal(port_counter(p->a, counter), before + 1);
}

static void query(struct pair *p, struct rte_mbuf *m)
{
	expect_count(p, m, PORT_COUNTER_queries);
}

TEST_PAIR(groups__igmp_queries)
{
	struct membership *joined;
	struct rte_mbuf *m;

	rte_pktmbuf_free(report_of(p, group4, false));
	joined = &p->a->groups.entry[0];
	m = igmp_query(12); /* v3, general; within 12.7 s */
	*at(m, 39) = 127;
	*at(m, 46) = 3;
	finish_igmp(m);
	query(p, m);
	assert_true(p->a->groups.general_ms[0] > 0);
	assert_int_equal(p->a->groups.robustness[0], 3);
	p->a->groups.general_ms[0] = 0;
	m = igmp_query(8); /* v2, of the group, and Ethernet's padding */
	*at(m, 39) = 100;
	memcpy(at(m, 42), group4 + 12, 4);
	finish_igmp(m);
	grow(m, 8);
	query(p, m);
	assert_true(joined->answer_ms > 0);
	assert_true(p->a->groups.general_ms[0] == 0);
	assert_int_equal(p->a->groups.robustness[0], 0);
	joined->answer_ms = 0;
	m = igmp_query(8); /* v1 */
	finish_igmp(m);
	query(p, m);
	assert_true(p->a->groups.general_ms[0] > 0);
	m = igmp_query(20); /* v3, of the group and two sources: as one of the group */
	*at(m, 39) = 0xff;
	memcpy(at(m, 42), group4 + 12, 4);
	*at(m, 49) = 2;
	finish_igmp(m);
	query(p, m);
	assert_true(joined->answer_ms > 0);
	m = igmp_query(16); /* another host's report */
	*at(m, 38) = 0x22;
	finish_igmp(m);
	expect_count(p, m, PORT_COUNTER_drop_control_other);
}

/* Faults of a query. */
struct flaw {
	uint16_t bytes; /* of its message */
	uint16_t at;	/* this byte of the frame has this value; 0: none */
	uint8_t value;
	uint16_t spoilt; /* this one changes when the checksums are made already; 0: none */
};

/* Each of them is counted; nothing is answered, whatever family (0: IPv4, 1: IPv6) asks. */
static void each_malformed(const struct flaw *flaws, size_t n, unsigned int family,
			   struct rte_mbuf *(*new_query)(uint16_t bytes),
			   void (*finish)(struct rte_mbuf *m))
{
	struct pair p = open_default();

	for (size_t i = 0; i < n; i++) {
		struct rte_mbuf *m = new_query(flaws[i].bytes);

		if (flaws[i].at)
			*at(m, flaws[i].at) = flaws[i].value;
		finish(m);
		if (flaws[i].spoilt)
			*at(m, flaws[i].spoilt) ^= 1;
		expect_count(&p, m, PORT_COUNTER_drop_group_malformed);
	}
	assert_true(p.a->groups.general_ms[family] == 0);
	close_pair(&p);
}

TEST(groups__igmp_malformed)
{
	static const struct flaw flaws[] = {
		{.bytes = 12, .spoilt = 24},		   /* header's checksum */
		{.bytes = 12, .spoilt = 40},		   /* message's checksum */
		{.bytes = 10},				   /* between two versions */
		{.bytes = 12, .at = 17, .value = 24 + 13}, /* longer than the frame */
		{.bytes = 12, .at = 17, .value = 24 + 7},  /* too short */
		{.bytes = 12, .at = 14, .value = 0x44},	   /* header shorter than a header */
		{.bytes = 12, .at = 14, .value = 0x4f},	   /* header longer than the frame */
		{.bytes = 12, .at = 20, .value = 0x20},	   /* more fragments */
	};

	each_malformed(flaws, RTE_DIM(flaws), 0, igmp_query, finish_igmp);
}

/* With a hop-by-hop header of eight bytes; checksum when it is sent. */
static struct rte_mbuf *mld_query(uint16_t bytes)
{
	static const uint8_t header[62] = {0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd,
					   /* IPv6 */
					   0x60, 0, 0, 0, 0, 0, 0, 1, 0xfe, 0x80, 0, 0, 0, 0, 0, 0,
					   0, 0, 0, 0xff, 0xfe, 0, 0, 2, 0xff, 2, 0, 0, 0, 0, 0, 0,
					   0, 0, 0, 0, 0, 0, 0, 1,
					   /* hop by hop, router alert behind padding */
					   58, 0, 1, 0, 5, 2, 0, 0};
	struct rte_mbuf *m = rte_pktmbuf_alloc(packets);

	memcpy(grow(m, sizeof(header)), header, sizeof(header));
	grow(m, bytes);
	*at(m, 19) = (uint8_t)(8 + bytes);
	*at(m, 62) = 130;
	return m;
}

static void finish_mld(struct rte_mbuf *m)
{
	uint16_t sum = ~icmpv6_sum(m, 62, rte_pktmbuf_data_len(m) - 62);

	memcpy(at(m, 64), &sum, 2);
}

TEST_PAIR(groups__mld_queries)
{
	struct membership *joined;
	struct rte_mbuf *m;

	rte_pktmbuf_free(report_of(p, group6, false));
	joined = &p->a->groups.entry[0];
	m = mld_query(28); /* v2, general */
	*at(m, 66) = 0x9a;
	*at(m, 86) = 4;
	finish_mld(m);
	query(p, m);
	assert_true(p->a->groups.general_ms[1] > 0);
	assert_int_equal(p->a->groups.robustness[1], 4);
	p->a->groups.general_ms[1] = 0;
	m = mld_query(24); /* v1, of the group */
	*at(m, 66) = 0x7f;
	memcpy(at(m, 70), group6, 16);
	finish_mld(m);
	query(p, m);
	assert_true(joined->answer_ms > 0);
	assert_true(p->a->groups.general_ms[1] == 0);
	m = mld_query(28); /* another host's report */
	*at(m, 62) = 143;
	finish_mld(m);
	expect_count(p, m, PORT_COUNTER_drop_control_other);
}

TEST(groups__mld_malformed)
{
	static const struct flaw flaws[] = {
		{.bytes = 28, .spoilt = 64},		  /* checksum */
		{.bytes = 26},				  /* between two versions */
		{.bytes = 28, .at = 19, .value = 8 + 29}, /* longer than the frame */
		{.bytes = 28, .at = 19, .value = 8 + 7},  /* shorter than a header */
		{.bytes = 28, .at = 55, .value = 200},	  /* options beyond the end */
		{.bytes = 28, .at = 58, .value = 1},	  /* no router alert */
		{.bytes = 28, .at = 57, .value = 200},	/* an option that ends beyond its header */
		{.bytes = 28, .at = 21, .value = 2},	/* hop limit: it was forwarded */
		{.bytes = 28, .at = 22, .value = 0x20}, /* not link-local */
		{.bytes = 28, .at = 54, .value = 59},	/* another protocol */
	};

	each_malformed(flaws, RTE_DIM(flaws), 1, mld_query, finish_mld);
}

/* ---- frames to groups ---- */

static struct rte_mbuf *roce_to_group(uint32_t tag)
{
	struct rte_mbuf *m = roce_v4(2, 1, tag);

	memcpy(at(m, 0), (uint8_t[]){1, 0, 0x5e, 1, 2, 3}, 6);
	memcpy(at(m, 30), group4 + 12, 4);
	return m;
}

static void drain(struct port *port)
{
	struct rte_mbuf *none[1];

	port_poll_control(port);
	assert_int_equal(receive(port, none, 1), 0);
}

TEST_PAIR(groups__frames_come_back_to_who_listens)
{
	struct rte_mbuf *sent, *got[2];

	assert_int_equal(send_one(p->a, roce_to_group(1)), 1); /* no port here does */
	assert_int_equal(receive(p->a, got, 2), 0);
	assert_int_equal(receive(p->b, got, 2), 1);
	rte_pktmbuf_free(got[0]);
	assert_int_equal(port_join(p->a, group4), 0);
	drain(p->a);
	drain(p->b);
	sent = roce_to_group(2);
	assert_int_equal(send_one(p->a, sent), 1);
	assert_int_equal(receive(p->a, got, 2), 1);
	assert_ptr_not_equal(got[0], sent); /* with its own metadata */
	assert_int_equal(tag_of(got[0]), 2);
	assert_int_equal(receive(p->b, got + 1, 1), 1);
	assert_int_equal(tag_of(got[1]), 2);
	rte_pktmbuf_free_bulk(got, 2);
	assert_int_equal(port_counter(p->a, PORT_COUNTER_tx_group_looped), 1);
	port_leave(p->a, group4);
	assert_int_equal(send_one(p->a, roce_to_group(3)), 1);
	assert_int_equal(receive(p->a, got, 2), 0);
	drain(p->a);
	assert_int_equal(receive(p->b, got, 2), 1);
	rte_pktmbuf_free(got[0]);
}

/* Among others, in order, each where it belongs; with a capture's or a sender's references. */
TEST_PAIR(groups__during_a_burst)
{
	static const uint32_t at_b[] = {0, 1, 2, 4, 5};
	struct link_port *link = port_link(p->a);
	struct rte_mbuf *m[6], *got[8];

	assert_int_equal(port_join(p->a, group4), 0);
	drain(p->a);
	drain(p->b);
	m[0] = roce_v4(2, 1, 0);
	m[1] = roce_to_group(1);
	m[2] = roce_to_group(2);
	m[3] = roce_v4(1, 1, 3); /* to ourselves */
	m[4] = roce_to_group(4);
	m[5] = roce_v4(2, 1, 5);
	rte_mbuf_refcnt_update(m[4], 1);
	assert_int_equal(link->tx_burst(link, 0, m, 6), 6);
	assert_int_equal(receive(p->b, got, 8), 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(tag_of(got[i]), at_b[i]);
	rte_pktmbuf_free_bulk(got, 5);
	assert_int_equal(receive(p->a, got, 8), 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(tag_of(got[i]), i + 1);
	rte_pktmbuf_free_bulk(got, 4);
	rte_pktmbuf_free(m[4]);
}

/* Not taken by the wire: nothing of it has come back, and it comes once when it is sent later. */
TEST_PAIR(groups__the_wire_is_full)
{
	struct rte_mbuf *m, *got[BURST];
	unsigned int n = 0;

	assert_int_equal(port_join(p->a, group4), 0);
	drain(p->a);
	drain(p->b);
	while ((m = roce_v4(2, 1, 9)), send_one(p->a, m) == 1)
		n++;
	rte_pktmbuf_free(m);
	m = roce_to_group(1);
	assert_int_equal(send_one(p->a, m), 0);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_int_equal(receive(p->a, got, BURST), 0);
	for (uint16_t k; n > 0 && (k = receive(p->b, got, BURST)) > 0; n -= k)
		rte_pktmbuf_free_bulk(got, k);
	assert_int_equal(send_one(p->a, m), 1);
	assert_int_equal(receive(p->a, got, BURST), 1);
	rte_pktmbuf_free(got[0]);
	assert_int_equal(receive(p->b, got, BURST), 1);
	rte_pktmbuf_free(got[0]);
}

/* Its own receiver is behind: the wire has it nevertheless. */
TEST_PAIR(groups__own_receiver_is_behind)
{
	struct rte_mbuf *got[BURST];
	uint16_t n;

	assert_int_equal(port_join(p->a, group4), 0);
	drain(p->a);
	drain(p->b);
	for (unsigned int i = 0; i < LOOP_RING_FRAMES + 10; i++) {
		assert_int_equal(send_one(p->a, roce_to_group(i)), 1);
		assert_int_equal(receive(p->b, got, 1), 1);
		rte_pktmbuf_free(got[0]);
	}
	assert_int_equal(port_counter(p->a, PORT_COUNTER_drop_tx_group_loop), 10);
	while ((n = receive(p->a, got, BURST)) > 0)
		rte_pktmbuf_free_bulk(got, n);
}

/* A port whose wire leads back to itself gets each once. */
TEST(groups__wire_to_itself)
{
	struct port_config c = ring_config("a", "a", 1);
	struct port *port = open_port(&c);
	struct rte_mbuf *got[2];

	assert_int_equal(port_join(port, group4), 0);
	drain(port);
	drain(port);
	assert_int_equal(send_one(port, roce_to_group(1)), 1);
	assert_int_equal(receive(port, got, 2), 1);
	rte_pktmbuf_free(got[0]);
	port_destroy(port);
	assert_no_leak();
}
