/* SPDX-License-Identifier: BSD-3-Clause */
/* The notification point (doc/transport.md#congestion): which packets draw a congestion notification
 * packet, and how often. */
#include "peer.h"

enum { PSN = 0x100, AT = 4096, LEN = 64, CE = WIRE_ECN_CE };

/* Those CNPs that leave within `ns`, each checked; other packets are ignored. */
static unsigned cnps(struct sim *s, uint64_t ns)
{
	static const uint8_t zero[WIRE_CNP_RESERVED_BYTES];
	struct rig_packet p;
	unsigned n = 0;

	for (uint64_t end = s->now_ns + ns; s->now_ns < end;) {
		if (!rig_recv(s, &p, end - s->now_ns) || p.h.opcode != WIRE_CNP)
			continue;
		n++;
		assert_int_equal(p.h.psn, 0);
		assert_int_equal(p.h.becn, 1);
		assert_int_equal(p.h.fecn | p.h.ackreq | p.h.se | p.h.pad | p.h.tver, 0);
		assert_int_equal(p.h.pkey, 0xffff);
		assert_int_equal(p.h.dest_qp, s->node[1].qp[0].qpn);
		assert_int_equal(p.tos, 48 << 2);
		assert_int_equal(p.bytes, sizeof(zero));
		assert_memory_equal(p.payload, zero, sizeof(zero));
	}
	return n;
}

static void send_marked(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	rig_traffic_class(s, CE);
	rig_request(s, 0, opcode, psn, AT, bytes, bytes);
}

static void counted(struct sim *s, unsigned marked, unsigned sent)
{
	assert_int_equal(sim_counter(s, 0, COUNTER_np_ecn_marked_roce_packets), marked);
	assert_int_equal(sim_counter(s, 0, COUNTER_np_cnp_sent), sent);
}

/* ---- what draws a CNP ---- */

TEST_RC(cnp__answers_a_marked_request)
{
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, MS), 1);
	counted(s, 1, 1);
	assert_int_equal(rig_epsn(s, 0), PSN + 1); /* which is executed as any other */
	rig_holds_pattern(s, AT, LEN);
}

static struct sim *make_v6(void)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.no_credits = p.ipv6 = true;
	return rig_create(&p);
}

RIG_TEST(cnp__ipv6, make_v6())
{
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, MS), 1);
}

RIG_TEST(cnp__unreliable_connection, rig_make(SERVICE_UC))
{
	send_marked(s, WIRE_UC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, MS), 1);
}

/* A queue was long, whatever becomes of the packet. */
TEST_RC(cnp__answers_duplicates_and_packets_ahead)
{
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, LEN, LEN);
	assert_int_equal(cnps(s, MS), 0);
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, MS), 1);
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN + 2, LEN);
	assert_int_equal(cnps(s, MS), 1);
}

/* The requester is the notification point of what it has asked for. */
TEST_PEER(cnp__answers_a_marked_read_response)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, LEN);
	uint32_t at = sim_post(s, 0, 0, &rd);

	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	rig_traffic_class(s, CE);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_ONLY, PSN, 1, NULL, LEN);
	assert_int_equal(cnps(s, MS), 1);
	counted(s, 1, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, at);
}

/* ---- what draws none ---- */

TEST_RC(cnp__none_for_unmarked_packets)
{
	for (uint8_t ecn = 0; ecn < CE; ecn++) {
		rig_traffic_class(s, 0xfc | ecn);
		rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN + ecn, AT, LEN, LEN);
	}
	assert_int_equal(cnps(s, MS), 0);
	counted(s, 0, 0);
}

/* Neither those whose ICRC is checked by HeaderParser nor those checked with the copy. */
TEST_RC(cnp__none_for_a_wrong_icrc)
{
	for (uint32_t bytes = LEN; bytes <= 1024; bytes *= 16) {
		rig_bad_icrc(s);
		send_marked(s, WIRE_RC_WRITE_ONLY, PSN, bytes);
		assert_int_equal(cnps(s, MS), 0);
	}
	counted(s, 0, 0);
}

TEST_RC(cnp__none_to_strangers)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, LEN);

	s->node[1].ip[15] ^= 1;
	rig_traffic_class(s, CE);
	rig_send(s, h, NULL, LEN);
	s->node[1].ip[15] ^= 1;
	h.pkey = 0x1234;
	rig_traffic_class(s, CE);
	rig_send(s, h, NULL, LEN);
	assert_int_equal(cnps(s, MS), 0);
	counted(s, 0, 0);
}

TEST_PEER(cnp__none_for_a_marked_acknowledgement)
{
	uint32_t at = peer_post(s, USER_RDMA_WRITE, LEN);

	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_traffic_class(s, CE);
	peer_ack(s, PSN, 1);
	assert_int_equal(cnps(s, MS), 0);
	counted(s, 1, 0);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
}

RIG_TEST(cnp__none_for_datagrams, rig_make(SERVICE_UD))
{
	sim_post_recv(s, 0, 0, 0, 1024);
	send_marked(s, WIRE_UD_SEND_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, MS), 0);
	counted(s, 1, 0);
}

TEST_RC(cnp__none_from_a_queue_pair_in_error)
{
	sim_modify(s, 0, 0, QP_ERR, 0);
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, MS), 0);
	counted(s, 0, 0);
}

/* ---- how often ---- */

static struct sim *make_interval(uint32_t us)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct hca_config c;

	hca_config_defaults(&c);
	if (us)
		c.settings.min_time_between_cnps = us;
	p.settings = &c.settings;
	p.no_credits = true;
	return rig_create(&p);
}

/* A marked packet each microsecond, for 400 µs. */
static void flood(struct sim *s, unsigned expected)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < 400; i++) {
		send_marked(s, WIRE_RC_WRITE_ONLY, PSN + i, LEN);
		n += cnps(s, US);
	}
	n += cnps(s, MS);
	assert_int_equal(n, expected);
	counted(s, 400, expected);
}

RIG_TEST(cnp__one_each_50_us, make_interval(0))
{
	flood(s, 400 / 50);
}

RIG_TEST(cnp__interval_is_a_setting, make_interval(4))
{
	flood(s, 400 / 4);
}

/* A new life begins without a past, and without the other's CNPs. */
TEST_RC(cnp__interval_ends_with_the_connection)
{
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, 5 * US), 1);
	rig_reconnect(s, 0);
	send_marked(s, WIRE_RC_WRITE_ONLY, PSN, LEN);
	assert_int_equal(cnps(s, 5 * US), 1);
}
