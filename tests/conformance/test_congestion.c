/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doc/transport.md#congestion. The notification point: which packets draw a congestion notification
 * packet, and how often. The reaction point: which of these count, and what they do to what a queue
 * pair sends.
 */
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

/* No free buffer holds zeros. */
static void soil_buffers(struct sim *s)
{
	unsigned n = 0;
	struct rte_mbuf **m = calloc(s->packets->size, sizeof(*m));

	while (n < s->packets->size && (m[n] = rte_pktmbuf_alloc(s->packets))) {
		memset(m[n]->buf_addr, 0xa5, m[n]->buf_len);
		n++;
	}
	rte_pktmbuf_free_bulk(m, n);
	free(m);
}

TEST_RC(cnp__answers_a_marked_request)
{
	soil_buffers(s);
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

/* ---- the reaction point ---- */

enum { LIMIT = 100, BYTES = 64 * 1024 };

/* Congestion control, which sets LIMIT Mbit/s at the first CNP, and lets nothing change it soon. */
static struct sim *make_limited(enum qp_service service)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct hca_config c;

	hca_config_defaults(&c);
	c.settings.cc = CC_DCQCN;
	c.settings.dcqcn.rate_to_set_on_first_cnp = LIMIT;
	c.settings.dcqcn.rpg_time_reset = 131071;
	p.settings = &c.settings;
	p.service = service;
	p.no_credits = true;
	p.timeout = 20;
	return rig_create(&p);
}

static struct wire_headers cnp(struct sim *s)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_CNP, 0, 0, 0);

	h.becn = 1;
	return h;
}

static void send_cnp(struct sim *s, struct wire_headers h)
{
	static const uint8_t zero[WIRE_CNP_RESERVED_BYTES];

	rig_send(s, h, zero, sizeof(zero));
	sim_run(s, 5 * US);
}

static void reacts(struct sim *s, bool does)
{
	const struct qp *q = sim_context(s, 0, 0);

	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_handled), does);
	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_ignored), !does);
	assert_int_equal(q->rtc.flow.cc.rate, does ? LIMIT * 1000 : 0);
	assert_int_equal(q->respg.flow.cc.rate, does ? LIMIT * 1000 : 0);
}

RIG_TEST(rp__a_cnp_limits_both_directions, make_limited(SERVICE_RC))
{
	send_cnp(s, cnp(s));
	reacts(s, true);
}

RIG_TEST(rp__unreliable_connection, make_limited(SERVICE_UC))
{
	send_cnp(s, cnp(s));
	reacts(s, true);
}

RIG_TEST(rp__not_for_datagrams, make_limited(SERVICE_UD))
{
	send_cnp(s, cnp(s));
	reacts(s, false);
}

TEST_RC(rp__not_without_congestion_control)
{
	send_cnp(s, cnp(s));
	reacts(s, false);
}

RIG_TEST(rp__not_from_strangers, make_limited(SERVICE_RC))
{
	s->node[1].ip[15] ^= 1;
	send_cnp(s, cnp(s));
	s->node[1].ip[15] ^= 1;
	reacts(s, false);
}

RIG_TEST(rp__not_of_another_partition, make_limited(SERVICE_RC))
{
	struct wire_headers h = cnp(s);

	h.pkey = 0x1234;
	send_cnp(s, h);
	reacts(s, false);
}

RIG_TEST(rp__not_without_becn, make_limited(SERVICE_RC))
{
	struct wire_headers h = cnp(s);

	h.becn = 0;
	send_cnp(s, h);
	reacts(s, false);
}

RIG_TEST(rp__not_for_an_unknown_queue_pair, make_limited(SERVICE_RC))
{
	struct wire_headers h = cnp(s);

	h.dest_qp ^= 0x800000;
	send_cnp(s, h);
	reacts(s, false);
}

RIG_TEST(rp__not_in_error, make_limited(SERVICE_RC))
{
	sim_modify(s, 0, 0, QP_ERR, 0);
	send_cnp(s, cnp(s));
	reacts(s, false);
}

RIG_TEST(rp__not_with_a_wrong_icrc, make_limited(SERVICE_RC))
{
	rig_bad_icrc(s);
	send_cnp(s, cnp(s));
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_icrc), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_handled), 0);
	assert_int_equal(sim_context(s, 0, 0)->rtc.flow.cc.rate, 0);
}

/* Longer ones would leave the check of their ICRC to a copy, which is never made. */
RIG_TEST(rp__not_of_another_length, make_limited(SERVICE_RC))
{
	static const uint8_t zero[1024];

	rig_bad_icrc(s);
	rig_send(s, cnp(s), zero, sizeof(zero));
	rig_send(s, cnp(s), zero, WIRE_CNP_RESERVED_BYTES - 4);
	sim_run(s, 5 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_ignored), 2);
	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_handled), 0);
	assert_int_equal(sim_context(s, 0, 0)->rtc.flow.cc.rate, 0);
}

RIG_TEST(rp__ends_with_the_connection, make_limited(SERVICE_RC))
{
	send_cnp(s, cnp(s));
	reacts(s, true);
	rig_reconnect(s, 0);
	sim_run(s, 10 * US);
	assert_int_equal(sim_context(s, 0, 0)->rtc.flow.cc.rate, 0);
	assert_int_equal(sim_context(s, 0, 0)->respg.flow.cc.rate, 0);
	send_cnp(s, cnp(s)); /* and begins anew */
	assert_int_equal(sim_context(s, 0, 0)->rtc.flow.cc.rate, LIMIT * 1000);
}

/* ---- pacing ---- */

/* Until BYTES have left: each packet is checked against the clock, behind a first burst. Returns the
 * time that they took. */
static uint64_t paced(struct sim *s)
{
	uint64_t from = s->now_ns, wire_bytes = 0, allowed;
	uint32_t bytes = 0;
	struct rig_packet p;

	while (bytes < BYTES) {
		assert_true(rig_recv(s, &p, 10 * MS));
		if (p.h.ackreq)
			rig_ack(s, 0, p.h.psn, aeth_ack(31), 1);
		bytes += p.bytes;
		wire_bytes += p.bytes + 58;
		allowed = (p.at_ns - from) * LIMIT / 8000;
		assert_true(wire_bytes <= allowed + 5 * 1100);
	}
	return s->now_ns - from;
}

static uint64_t at_limit(void)
{
	return BYTES * 8000ull / LIMIT;
}

RIG_TEST(pacing__requests, make_limited(SERVICE_RC))
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES);
	uint32_t at;
	uint64_t ns;

	send_cnp(s, cnp(s));
	at = sim_post(s, 0, 0, &wr);
	ns = paced(s);
	assert_true(ns > at_limit() * 9 / 10 && ns < at_limit() * 12 / 10);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
}

RIG_TEST(pacing__unreliable_requests, make_limited(SERVICE_UC))
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES);
	uint64_t ns;

	send_cnp(s, cnp(s));
	sim_post(s, 0, 0, &wr);
	ns = paced(s);
	assert_true(ns > at_limit() * 9 / 10 && ns < at_limit() * 12 / 10);
}

RIG_TEST(pacing__read_responses, make_limited(SERVICE_RC))
{
	uint64_t ns;

	send_cnp(s, cnp(s));
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, BYTES, 0);
	ns = paced(s);
	assert_true(ns > at_limit() * 9 / 10 && ns < at_limit() * 12 / 10);
}

/* Nor when they are behind READ responses that do, wherever in a burst these end. */
RIG_TEST(pacing__not_of_acknowledgements_behind_reads, make_limited(SERVICE_RC))
{
	enum { MTU = 1024 };
	struct rig_packet p;
	uint32_t psn = PSN;

	send_cnp(s, cnp(s));
	for (uint32_t n = 1; n <= 10; n++, psn++) {
		rig_request(s, 0, WIRE_RC_READ_REQUEST, psn, AT, n * MTU, 0);
		rig_request(s, 0, WIRE_RC_WRITE_ONLY, psn + n, AT, LEN, LEN);
		for (uint32_t end = psn + n; psn < end; psn++) {
			assert_true(rig_recv(s, &p, 10 * MS));
			assert_int_equal(p.h.psn, psn);
		}
		assert_true(rig_recv(s, &p, 10 * US));
		assert_int_equal(p.h.opcode, WIRE_RC_ACK);
	}
}

/* Acknowledgements of what the peer sends do not wait for our rate. */
RIG_TEST(pacing__not_of_acknowledgements, make_limited(SERVICE_RC))
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES);
	struct rig_packet p;
	unsigned acks = 0;

	send_cnp(s, cnp(s));
	sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 100; i++) {
		rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN + i, AT, LEN, LEN);
		while (rig_recv(s, &p, 3 * US))
			acks += p.h.opcode == WIRE_RC_ACK;
	}
	assert_int_equal(acks, 100);
	sim_modify(s, 0, 0, QP_RST, 0);
	sim_run(s, MS);
	while (rig_recv(s, &p, 0))
		;
}

/* What waits for its time does not delay failure: all is flushed at once. */
RIG_TEST(pacing__errors_do_not_wait, make_limited(SERVICE_RC))
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES);
	struct rig_packet p;
	struct cqe c;

	send_cnp(s, cnp(s));
	for (unsigned i = 0; i < 10; i++)
		sim_post(s, 0, 0, &wr);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, BYTES, 0);
	sim_run(s, 50 * US);
	sim_modify(s, 0, 0, QP_ERR, 0);
	sim_run(s, 10 * US);
	for (unsigned i = 0; i < 10; i++)
		assert_true(sim_poll_cq(s, 0, &c) && c.opcode == USER_INVALID);
	while (rig_recv(s, &p, MS))
		;
	sim_renew(s, 0, 0); /* nor is its number in use */
}

/* ---- delay ---- */

static struct sim *make_cc(enum congestion_control cc, unsigned qps)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct hca_config c;

	hca_config_defaults(&c);
	c.settings.cc = cc;
	p.settings = &c.settings;
	p.no_credits = true;
	p.timeout = 20;
	p.qps = qps;
	return rig_create(&p);
}

static uint32_t post_one(struct sim *s, unsigned qp)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, LEN);

	return sim_post(s, 0, qp, &wr);
}

static void first_packet_has(struct sim *s, uint8_t traffic_class)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, LEN);
	uint32_t at = sim_post(s, 0, 0, &wr);

	assert_int_equal(rig_expect(s, WIRE_RC_WRITE_ONLY, PSN).tos, traffic_class);
	rig_ack(s, 0, PSN, aeth_ack(31), 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
}

/* WRITEs whose acknowledgements take that long; not so long that probes are sent. */
static void round_trips(struct sim *s, unsigned n, uint64_t ns)
{
	const struct qp *q = sim_context(s, 0, 0);

	while (n--) {
		uint32_t at = post_one(s, 0), psn = q->rtc.next_psn;

		rig_expect(s, WIRE_RC_WRITE_ONLY, psn);
		sim_run(s, ns);
		rig_ack(s, 0, psn, aeth_ack(31), psn - PSN + 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
		sim_run(s, 2 * US); /* until the sender knows */
	}
}

static uint32_t rate_of(struct sim *s)
{
	return sim_context(s, 0, 0)->rtc.flow.cc.rate;
}

RIG_TEST(delay__longer_round_trips_limit, make_cc(CC_AUTO, 1))
{
	uint32_t rate;

	round_trips(s, 3, 5 * US);
	round_trips(s, 1, 40 * US); /* once: maybe the peer was busy */
	round_trips(s, 3, 5 * US);
	assert_int_equal(rate_of(s), 0);
	round_trips(s, 2, 40 * US);
	rate = rate_of(s);
	assert_true(rate && sim_context(s, 0, 0)->rtc.flow.cc.lent);
	round_trips(s, 1, 40 * US);
	assert_true(rate_of(s) < rate);
	rate = rate_of(s);
	round_trips(s, 8, 5 * US);
	assert_true(rate_of(s) > rate);
}

RIG_TEST(delay__a_cnp_takes_over, make_cc(CC_AUTO, 1))
{
	uint32_t rate;

	round_trips(s, 3, 5 * US);
	round_trips(s, 2, 40 * US);
	round_trips(s, 1, 5 * US); /* one that has sent nothing since is not meant */
	rate = rate_of(s);
	send_cnp(s, cnp(s));
	assert_true(rate_of(s) < rate && !sim_context(s, 0, 0)->rtc.flow.cc.lent);
	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_handled), 1);
}

/* Nothing is marked then, nor does a CNP count; a connection begins slowly. */
RIG_TEST(delay__alone, make_cc(CC_DELAY, 1))
{
	uint32_t rate = rate_of(s);

	assert_true(rate && rate < 40000 * 1000);
	first_packet_has(s, 0);
	send_cnp(s, cnp(s));
	assert_int_equal(sim_counter(s, 0, COUNTER_rp_cnp_ignored), 1);
	assert_true(rate_of(s) >= rate);
}

/* A port that takes nothing for a while is ours, not the network. */
RIG_TEST(delay__not_in_our_own_channels, make_cc(CC_AUTO, 2))
{
	const struct qp *q = sim_context(s, 0, 0);

	round_trips(s, 3, 5 * US);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t other = post_one(s, 1), at, psn = q->rtc.next_psn;

		s->wire_room = 1;
		sim_run(s, 5 * US);
		at = post_one(s, 0);
		sim_run(s, 40 * US);
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i); /* makes room */
		s->wire_room = 0;
		rig_ack(s, 1, PSN + i, aeth_ack(31), i + 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, other);
		rig_expect(s, WIRE_RC_WRITE_ONLY, psn);
		sim_run(s, 5 * US);
		rig_ack(s, 0, psn, aeth_ack(31), psn - PSN + 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
	}
	assert_int_equal(rate_of(s), 0);
}

/* ---- who may be marked ---- */

RIG_TEST(ect__under_congestion_control, make_limited(SERVICE_RC))
{
	first_packet_has(s, WIRE_ECN_ECT0);
	s->params.traffic_class = 0x68;
	rig_reconnect(s, 0);
	first_packet_has(s, 0x68 | WIRE_ECN_ECT0);
	s->params.traffic_class = 0x69; /* ECT(1): as the program says */
	rig_reconnect(s, 0);
	first_packet_has(s, 0x69);
}

TEST_RC(ect__not_otherwise)
{
	first_packet_has(s, 0);
	s->params.traffic_class = 0x68;
	rig_reconnect(s, 0);
	first_packet_has(s, 0x68);
}

/* ---- how networks tell packets apart ---- */

enum { NO_TAG = -1, VLAN = 77 };
#define TCI(priority, vlan) ((priority) << 13 | (vlan))

struct class_row {
	uint8_t asked_class, asked_sl;	 /* by the program */
	uint8_t traffic_class, priority; /* settings */
	bool priority_tag;
	uint16_t vlan;
	uint8_t tos; /* of all packets but CNPs */
	int tci, cnp_tci;
};

static const struct class_row classes[] = {
	{0, 0, 0, 0, false, 0, 0, NO_TAG, NO_TAG},
	{0x68, 3, 0, 0, false, 0, 0x68, NO_TAG, NO_TAG},
	{0, 0, 0x90, 5, false, 0, 0x90, NO_TAG, NO_TAG},
	{0, 0, 0, 0, true, 0, 0, TCI(0, 0), TCI(2, 0)},
	{0, 0, 0x90, 5, true, 0, 0x90, TCI(5, 0), TCI(2, 0)},
	{0x68, 11, 0x90, 5, true, 0, 0x68, TCI(3, 0), TCI(2, 0)},
	{0x68, 0, 0x90, 5, false, VLAN, 0x68, TCI(5, VLAN), TCI(2, VLAN)},
	{0, 7, 0x90, 5, true, VLAN, 0x90, TCI(7, VLAN), TCI(2, VLAN)},
};

static struct sim *make_class(const struct class_row *r, enum qp_service service)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct hca_config config;

	hca_config_defaults(&config);
	config.settings.traffic_class = r->traffic_class;
	config.settings.priority = r->priority;
	config.settings.priority_tag = r->priority_tag;
	config.settings.cnp_dscp = 46;
	config.settings.cnp_802p_prio = 2;
	p.settings = &config.settings;
	p.service = service;
	p.no_credits = true;
	p.traffic_class = r->asked_class;
	p.sl = r->asked_sl;
	p.vlan = r->vlan;
	return rig_create(&p);
}

static void has_class(struct sim *s, uint8_t opcode, uint32_t psn, uint8_t tos, int tci)
{
	struct rig_packet p = rig_expect(s, opcode, psn);

	assert_int_equal(p.tos, tos);
	assert_int_equal(p.tci, tci);
}

TEST(class__of_connections)
{
	for (const struct class_row *r = classes; r < classes + RTE_DIM(classes); r++) {
		struct sim *s = make_class(r, SERVICE_RC);
		uint32_t at = post_one(s, 0);

		has_class(s, WIRE_RC_WRITE_ONLY, PSN, r->tos, r->tci);
		rig_ack(s, 0, PSN, aeth_ack(31), 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, at);
		rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN, AT, LEN, 0);
		has_class(s, WIRE_RC_READ_RESP_ONLY, PSN, r->tos, r->tci);
		send_marked(s, WIRE_RC_WRITE_ONLY, PSN + 1, LEN);
		has_class(s, WIRE_CNP, 0, 46 << 2, r->cnp_tci);
		has_class(s, WIRE_RC_ACK, PSN + 1, r->tos, r->tci);
		rig_end(s);
	}
}

/* Of the VLAN of their address, which that of the simulation lacks. */
TEST(class__of_datagrams)
{
	for (const struct class_row *r = classes; r < classes + RTE_DIM(classes); r++) {
		struct sim *s = make_class(r, SERVICE_UD);
		struct sim_wr wr = SIM_WR(USER_SEND, 0, LEN, .ud_qpn = 5, .ud_qkey = 1,
					  .ud_traffic_class = r->asked_class, .ud_sl = r->asked_sl);

		sim_post(s, 0, 0, &wr);
		has_class(s, WIRE_UD_SEND_ONLY, PSN, r->tos,
			  r->priority_tag ? r->tci & ~VLAN : NO_TAG);
		rig_end(s);
	}
}
