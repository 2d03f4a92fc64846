/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that a responder drops: in HeaderParser (P_Key, version, ICRC, address, service), on UC
 * (a message with a fault), on UD (Q_Key, buffers). None of them is answered. */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, RECV = 1 << 20, MTU = 1024, GRH = 40 };

static void request(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t dma_len, uint32_t bytes)
{
	rig_request(s, 0, opcode, psn, AT, dma_len, bytes);
}

static void quiet(struct sim *s)
{
	rig_quiet(s, 5 * US);
}

/* ---- the edge ---- */

/* A WRITE that is dropped for that reason and no other, although it is the expected one. */
static void dropped(struct sim *s, struct wire_headers h, enum counter reason)
{
	uint64_t before = sim_counter(s, 0, reason), executed = sim_counter(s, 0, COUNTER_executed);

	h.ackreq = 1;
	rig_send(s, h, NULL, 64);
	quiet(s);
	assert_true(sim_counter(s, 0, reason) == before + 1);
	assert_true(sim_counter(s, 0, COUNTER_executed) == executed);
	rig_untouched(s, AT, 64);
	assert_int_equal(rig_state(s, 0), QP_RTS);
}

static void taken(struct sim *s, struct wire_headers h)
{
	h.ackreq = 1;
	rig_send(s, h, NULL, 64);
	rig_expect_ack(s, h.psn, aeth_ack(0), (h.psn - PSN + 1) & PSN_MASK);
	rig_holds_pattern(s, AT, 64);
	memset(s->node[0].memory + AT, 0, 64);
}

TEST_RC(edge__pkey)
{
	/* ours is full member of the default partition: any member of it may talk to us */
	static const struct {
		uint16_t pkey;
		bool fits;
	} rows[] = {{0xffff, true},  {0x7fff, true},  {0xfffe, false}, {0x0000, false},
		    {0x8000, false}, {0x7ffe, false}, {0xbfff, false}};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, psn, AT, 64);

		h.pkey = rows[i].pkey;
		if (rows[i].fits) {
			taken(s, h);
			psn++;
		} else {
			dropped(s, h, COUNTER_drop_rx_pkey);
		}
	}
	sim_context(s, 0, 0)->pkey = 0x7fff; /* two limited members may not */
	dropped(s,
		(struct wire_headers){.opcode = WIRE_RC_WRITE_ONLY,
				      .psn = psn,
				      .dest_qp = s->node[0].qp[0].qpn,
				      .pkey = 0x7fff,
				      .dma_len = 64},
		COUNTER_drop_rx_pkey);
	taken(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, psn, AT, 64));
}

TEST_RC(edge__version_and_bits)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64);

	for (unsigned tver = 1; tver < 16; tver++) {
		h.tver = (uint8_t)tver;
		dropped(s, h, COUNTER_drop_rx_tver);
	}
	h.tver = 0;
	taken(s, h);
	for (unsigned bits = 1; bits < 16; bits++) { /* these mean nothing here */
		h.psn = PSN + bits;
		h.migreq = bits & 1;
		h.fecn = bits >> 1 & 1;
		h.becn = bits >> 2 & 1;
		h.se = bits >> 3 & 1;
		taken(s, h);
	}
}

/* Short and long packets: their ICRCs are checked in different places. */
TEST_RC(edge__icrc)
{
	static const uint32_t lengths[] = {0, 64, 512, 516, 1000, 1024};

	for (unsigned i = 0; i < sizeof(lengths) / 4; i++) {
		rig_bad_icrc(s);
		request(s, WIRE_RC_WRITE_ONLY, PSN + i, lengths[i], lengths[i]);
		quiet(s);
		rig_untouched(s, AT, MTU);
		assert_true(sim_counter(s, 0, COUNTER_drop_rx_icrc) == i + 1);
		request(s, WIRE_RC_WRITE_ONLY, PSN + i, lengths[i], lengths[i]);
		rig_expect_ack(s, PSN + i, aeth_ack(0), i + 1);
		rig_holds_pattern(s, AT, lengths[i]);
		memset(s->node[0].memory + AT, 0, MTU);
	}
}

static void from_the_peer_only(bool ipv6)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.ipv6 = ipv6;
	p.no_credits = true;
	s = rig_create(&p);
	for (unsigned byte = ipv6 ? 0 : 12; byte < 16; byte++) {
		s->node[1].ip[byte] ^= 4;
		dropped(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64),
			COUNTER_drop_rx_address);
		s->node[1].ip[byte] ^= 4;
	}
	assert_int_equal(sim_context(s, 0, 0)->hp.refused, ipv6 ? 16 : 4);
	taken(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64));
	rig_end(s);
}

TEST(edge__source_address_ipv4)
{
	from_the_peer_only(false);
}

TEST(edge__source_address_ipv6)
{
	from_the_peer_only(true);
}

/* The other family's address with the same bytes at its end is another. */
TEST_RC(edge__source_address_of_the_other_family)
{
	uint8_t peer[16], own[16];

	memcpy(peer, s->node[1].ip, 16);
	memcpy(own, s->node[0].ip, 16);
	memset(s->node[1].ip, 0xfd, 12);
	memset(s->node[0].ip, 0xfd, 12);
	dropped(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64), COUNTER_drop_rx_address);
	memcpy(s->node[1].ip, peer, 16);
	memcpy(s->node[0].ip, own, 16);
	taken(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64));
}

TEST_RC(edge__unknown_queue_pair)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64);
	static const uint32_t others[] = {0, 1, 0xffffff, 0x20002, 0x30001};

	for (unsigned i = 0; i < sizeof(others) / 4; i++) {
		h.dest_qp = others[i];
		dropped(s, h, COUNTER_drop_rx_qpn);
	}
}

/* Every opcode against every service: only its own opcodes, and RC's reserved ones, come through.
 */
TEST(edge__opcode_against_service)
{
	for (enum qp_service service = SERVICE_RC; service <= SERVICE_UD; service++) {
		struct sim *s = rig_make(service);

		for (unsigned o = 0; o < 256; o++) {
			const struct wire_opcode *op = &wire_opcodes[o];
			bool other = op->defined ? op->service != service : service != SERVICE_RC;
			struct wire_headers h = rig_headers(s, 0, (uint8_t)o, PSN, AT, 64);

			if (o == WIRE_CNP)
				dropped(s, h, COUNTER_rp_cnp_ignored);
			else if ((!op->defined && o >= 0x20) || o == WIRE_SACK)
				dropped(s, h, COUNTER_drop_rx_opcode);
			else if (other)
				dropped(s, h, COUNTER_drop_rx_service);
		}
		rig_end(s);
	}
}

static bool cut_the_frame(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	unsigned *cut = arg, less = *cut;

	if (from == 0 || less == 0)
		return false;
	*cut = 0;
	sim_wire_send(s, from, frame, bytes - less);
	return true;
}

TEST_RC(edge__cut_frames)
{
	unsigned cut;

	s->tap = cut_the_frame;
	s->tap_arg = &cut;
	for (unsigned less = 1; less < 100; less += 7) {
		cut = less;
		dropped(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64),
			COUNTER_drop_rx_truncated);
	}
	cut = 0;
	taken(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64));
}

/* ---- UC ---- */

static void uc_executed(struct sim *s, uint32_t messages)
{
	rig_silent(s, 5 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_executed), messages);
}

RIG_TEST(uc__nothing_is_answered, rig_make(SERVICE_UC))
{
	static const uint8_t opcodes[] = {WIRE_UC_WRITE_ONLY, WIRE_UC_SEND_ONLY,
					  WIRE_UC_SEND_ONLY_IMM, WIRE_UC_WRITE_ONLY_IMM};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		sim_post_recv(s, 0, 0, RECV, 1000);
		request(s, opcodes[i], PSN + i, 64, 64);
		uc_executed(s, i + 1);
		rig_holds_pattern(s, i & 3 && i < 3 ? RECV : AT, 64);
	}
}

/* The next first or only packet is accepted whatever its PSN; others only if they continue the
 * message. */
RIG_TEST(uc__a_gap_costs_its_message, rig_make(SERVICE_UC))
{
	struct cqe c;

	sim_post_recv(s, 0, 0, RECV, 3 * MTU);
	request(s, WIRE_UC_SEND_FIRST, PSN, 0, MTU);
	request(s, WIRE_UC_SEND_LAST, PSN + 2, 0, 100); /* one is missing */
	quiet(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_sequence), 1);
	request(s, WIRE_UC_SEND_MIDDLE, PSN + 3, 0, MTU); /* of no message */
	request(s, WIRE_UC_SEND_LAST, PSN + 4, 0, 100);
	quiet(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_sequence), 3);
	request(s, WIRE_UC_SEND_FIRST, PSN + 10, 0, MTU);
	request(s, WIRE_UC_SEND_MIDDLE, PSN + 11, 0, MTU);
	request(s, WIRE_UC_SEND_MIDDLE, PSN + 11, 0, MTU); /* UC knows no duplicates */
	request(s, WIRE_UC_SEND_LAST, PSN + 12, 0, 100);
	quiet(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_sequence), 5);
	request(s, WIRE_UC_SEND_FIRST, PSN + 50, 0, MTU); /* its receive serves this one */
	request(s, WIRE_UC_SEND_LAST, PSN + 51, 0, 100);
	c = rig_expect_cqe(s, USER_RECV, 0, 0);
	assert_int_equal(c.byte_count, MTU + 100);
	request(s, WIRE_UC_WRITE_ONLY, PSN - 20, 64, 64); /* behind: taken as well */
	uc_executed(s, 2);
	assert_int_equal(rig_epsn(s, 0), PSN - 19);
	assert_int_equal(rig_state(s, 0), QP_RTS);
}

/* A new message begins within one: that one is given up. */
RIG_TEST(uc__a_first_packet_ends_the_message_before, rig_make(SERVICE_UC))
{
	sim_post_recv(s, 0, 0, RECV, 3 * MTU);
	request(s, WIRE_UC_SEND_FIRST, PSN, 0, MTU);
	request(s, WIRE_UC_SEND_ONLY, PSN + 1, 0, 77);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 77);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_sequence), 1);
	request(s, WIRE_UC_WRITE_FIRST, PSN + 2, 2 * MTU, MTU);
	request(s, WIRE_UC_WRITE_ONLY, PSN + 3, 64, 64);
	request(s, WIRE_UC_WRITE_LAST, PSN + 4, 0, MTU); /* no QP's number any more */
	uc_executed(s, 2);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_sequence), 3);
}

/* A packet that RC would refuse is dropped with its message, and the connection continues. */
RIG_TEST(uc__bad_requests_are_dropped_with_their_message, rig_make(SERVICE_UC))
{
	struct wire_headers h;
	uint32_t psn = PSN, n = 0;

	request(s, WIRE_UC_WRITE_ONLY, psn++, MTU + 4, MTU + 4);
	request(s, WIRE_UC_WRITE_FIRST, psn++, 2 * MTU, MTU - 4);
	request(s, WIRE_UC_WRITE_ONLY, psn++, 60, 64);
	request(s, WIRE_UC_WRITE_ONLY, psn++, 68, 64);
	h = rig_headers(s, 0, WIRE_UC_WRITE_ONLY, psn++, AT, 64);
	h.rkey = 0x1234;
	rig_send(s, h, NULL, 64);
	rig_request(s, 0, WIRE_UC_WRITE_ONLY, psn++, s->node[0].memory_bytes - 63, 64, 64);
	quiet(s);
	n = 6;
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_request), n);
	request(s, WIRE_UC_WRITE_FIRST, psn++, 2 * MTU, MTU);
	request(s, WIRE_UC_SEND_LAST, psn, 0, MTU); /* another operation's */
	request(s, WIRE_UC_WRITE_LAST, psn++, 0, MTU);
	quiet(s);
	assert_true(sim_counter(s, 0, COUNTER_drop_uc_request) > n);
	assert_int_equal(sim_counter(s, 0, COUNTER_executed), 0);
	request(s, WIRE_UC_SEND_ONLY, psn++, 0, 64); /* no receive */
	quiet(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_no_receive), 1);
	sim_post_recv(s, 0, 0, RECV, 63);
	request(s, WIRE_UC_SEND_ONLY, psn++, 0, 64); /* too short */
	request(s, WIRE_UC_SEND_FIRST, psn++, 0, MTU - 4);
	request(s, WIRE_UC_SEND_ONLY, psn++, 0, MTU + 4);
	quiet(s);
	request(s, WIRE_UC_SEND_ONLY, psn++, 0, 63);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 63);
	rig_holds_pattern(s, RECV, 63);
	s->params.access = 0;
	sim_modify(s, 0, 0, QP_RTS, QP_ATTR_ACCESS);
	memset(s->node[0].memory + AT, 0, MTU);
	request(s, WIRE_UC_WRITE_ONLY, psn++, 64, 64);
	quiet(s);
	rig_untouched(s, AT, 64);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_no_event(s);
}

RIG_TEST(uc__states, rig_make(SERVICE_UC))
{
	sim_modify(s, 0, 0, QP_RST, 0);
	request(s, WIRE_UC_WRITE_ONLY, PSN, 64, 64);
	uc_executed(s, 0);
	sim_modify(s, 0, 0, QP_INIT, 0);
	request(s, WIRE_UC_WRITE_ONLY, PSN, 64, 64);
	uc_executed(s, 0);
	sim_modify(s, 0, 0, QP_RTR, 0);
	request(s, WIRE_UC_WRITE_ONLY, PSN, 64, 64);
	uc_executed(s, 1);
	rig_expect_event(s, EQE_COMM_EST, s->node[0].qp[0].qpn);
	sim_modify(s, 0, 0, QP_RTS, 0);
	__atomic_store_n(&sim_context(s, 0, 0)->state, QP_SQE, __ATOMIC_SEQ_CST);
	request(s, WIRE_UC_WRITE_ONLY, PSN + 1, 64, 64);
	uc_executed(s, 2);
	sim_modify(s, 0, 0, QP_ERR, 0);
	request(s, WIRE_UC_WRITE_ONLY, PSN + 2, 64, 64);
	uc_executed(s, 2);
}

/* The receiver's own fault ends the QP, on UC and UD too. */
TEST(unreliable__own_memory_refused)
{
	static const enum qp_service services[] = {SERVICE_UC, SERVICE_UD};

	for (unsigned i = 0; i < 2; i++) {
		struct sim *s = rig_make(services[i]);

		sim_post_recv(s, 0, 0, RECV, 1000);
		((struct wqe_data *)(s->node[0].qp[0].rq + 16))->lkey ^= 0x100000;
		request(s, i ? WIRE_UD_SEND_ONLY : WIRE_UC_SEND_ONLY, PSN, 0, 64);
		rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_PROT, 0);
		quiet(s);
		assert_int_equal(rig_state(s, 0), QP_ERR);
		rig_end(s);
	}
}

/* ---- UD ---- */

TEST(ud__message_behind_the_grh)
{
	for (int ipv6 = 0; ipv6 <= 1; ipv6++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		const uint8_t *m;
		struct sim *s;
		struct cqe c;

		p.service = SERVICE_UD;
		p.ipv6 = ipv6;
		s = rig_create(&p);
		m = s->node[0].memory + RECV;
		memset(s->node[0].memory + RECV, 0xee, GRH);
		sim_post_recv(s, 0, 0, RECV, GRH + 64);
		request(s, ipv6 ? WIRE_UD_SEND_ONLY_IMM : WIRE_UD_SEND_ONLY, PSN, 0, 64);
		c = rig_expect_cqe(s, ipv6 ? USER_RECV_IMM : USER_RECV, 0, 0);
		assert_int_equal(c.byte_count, GRH + 64);
		assert_int_equal(c.remote_qpn, s->node[1].qp[0].qpn);
		assert_int_equal(c.rlid_flags, CQE_HAS_GRH | (ipv6 ? CQE_SL_IPV6 : CQE_SL_IPV4));
		rig_holds_pattern(s, RECV + GRH, 64);
		if (ipv6) {
			assert_int_equal(m[0] >> 4, 6);
			assert_memory_equal(m + 8, s->node[1].ip, 16);
			assert_memory_equal(m + 24, s->node[0].ip, 16);
		} else { /* 20 bytes of nothing, then the header */
			rig_untouched(s, RECV, 20);
			assert_int_equal(m[20], 0x45);
			assert_memory_equal(m + 32, s->node[1].ip + 12, 4);
			assert_memory_equal(m + 36, s->node[0].ip + 12, 4);
		}
		quiet(s);
		rig_end(s);
	}
}

RIG_TEST(ud__wrong_qkey, rig_make(SERVICE_UD))
{
	struct wire_headers h = rig_headers(s, 0, WIRE_UD_SEND_ONLY, PSN, 0, 0);

	sim_post_recv(s, 0, 0, RECV, 1000);
	for (unsigned bit = 0; bit < 32; bit++) {
		h.qkey = 0x11111111 ^ 1u << bit;
		rig_send(s, h, NULL, 64);
		quiet(s);
		assert_int_equal(sim_counter(s, 0, COUNTER_drop_ud_qkey), bit + 1);
	}
	assert_int_equal(sim_context(s, 0, 0)->ee.refused, 32);
	rig_untouched(s, RECV, 1000);
	h.qkey = 0x11111111;
	rig_send(s, h, NULL, 64);
	rig_expect_cqe(s, USER_RECV, 0, 0);
}

/* Too short for the message and the 40 bytes before it: dropped, and the receive stays. */
RIG_TEST(ud__receives_too_short_or_missing, rig_make(SERVICE_UD))
{
	request(s, WIRE_UD_SEND_ONLY, PSN, 0, 64);
	quiet(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_no_receive), 1);
	sim_post_recv(s, 0, 0, RECV, GRH + 63);
	request(s, WIRE_UD_SEND_ONLY, PSN, 0, 64);
	quiet(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_ud_length), 1);
	rig_untouched(s, RECV, GRH + 64);
	request(s, WIRE_UD_SEND_ONLY, 7, 0, 63); /* any PSN */
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, GRH + 63);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_no_event(s);
}

RIG_TEST(ud__states, rig_make(SERVICE_UD))
{
	sim_modify(s, 0, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_INIT, 0);
	sim_post_recv(s, 0, 0, RECV, 1000);
	sim_post_recv(s, 0, 0, RECV, 1000);
	request(s, WIRE_UD_SEND_ONLY, PSN, 0, 64);
	quiet(s);
	sim_modify(s, 0, 0, QP_RTR, 0);
	request(s, WIRE_UD_SEND_ONLY, PSN, 0, 64);
	rig_expect_cqe(s, USER_RECV, 0, 0);
	rig_no_event(s);
	sim_modify(s, 0, 0, QP_ERR, 0);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_WR_FLUSH, SIM_RQ_STRIDE);
	request(s, WIRE_UD_SEND_ONLY, PSN, 0, 64);
	quiet(s);
}
