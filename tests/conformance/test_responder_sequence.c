/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules on packet sequence numbers: the expected one, the gap, the silence after
 * it (C9-62, C9-63, C9-74 to C9-80, C9-114, C9-121, C9-122). */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, MTU = 1024 };

/* The same without AckReq. */
static void write_quietly(struct sim *s, uint32_t psn, uint64_t at, uint32_t bytes)
{
	rig_send(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, psn, at, bytes), NULL, bytes);
}

/* ---- C9-62, C9-63 ---- */

/* Each response of a long exchange has its PSN, in the order of the requests. */
static void responses_in_order(struct sim *s, uint32_t psn)
{
	rig_write(s, psn, AT, 100);
	rig_read(s, psn + 1, AT, 2 * MTU + 10);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, psn + 4, AT + 4096, 0, 0);
	rig_write(s, psn + 5, AT, 100);
	rig_read(s, psn + 6, AT, 0);
	rig_read(s, psn + 7, AT, MTU);
	rig_request(s, 0, WIRE_RC_CMP_SWAP, psn + 8, AT + 4096, 0, 0);
	rig_write(s, psn + 9, AT, 100);
	rig_expect_ack(s, psn, aeth_ack(0), 1);
	rig_expect_responses(s, psn + 1, 3);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, psn + 4);
	rig_expect_ack(s, psn + 5, aeth_ack(0), 4);
	rig_expect(s, WIRE_RC_READ_RESP_ONLY, psn + 6);
	rig_expect(s, WIRE_RC_READ_RESP_ONLY, psn + 7);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, psn + 8);
	rig_expect_ack(s, psn + 9, aeth_ack(0), 8);
	rig_silent(s, MS);
}

TEST(c9_063__responses_in_the_order_of_the_requests_past_the_wrap)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	for (p.psn = 0xfffff5; p.psn <= 0xffffff; p.psn++) {
		struct sim *s = rig_create(&p);

		responses_in_order(s, p.psn);
		assert_int_equal(rig_epsn(s, 0), (p.psn + 10) & PSN_MASK);
		rig_end(s);
	}
}

/* A request of any kind, alone, is acknowledged. */
TEST_RC(c9_063__every_kind_of_request_is_acknowledged)
{
	static const struct {
		uint8_t opcode, answer;
		uint32_t bytes;
	} rows[] = {
		{WIRE_RC_SEND_ONLY, WIRE_RC_ACK, 64},
		{WIRE_RC_SEND_ONLY_IMM, WIRE_RC_ACK, 64},
		{WIRE_RC_SEND_ONLY_INV, WIRE_RC_ACK, 64},
		{WIRE_RC_WRITE_ONLY, WIRE_RC_ACK, 64},
		{WIRE_RC_WRITE_ONLY_IMM, WIRE_RC_ACK, 64},
		{WIRE_RC_READ_REQUEST, WIRE_RC_READ_RESP_ONLY, 0},
		{WIRE_RC_CMP_SWAP, WIRE_RC_ATOMIC_ACK, 0},
		{WIRE_RC_FETCH_ADD, WIRE_RC_ATOMIC_ACK, 0},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_packet p;

		sim_post_recv(s, 0, 0, 1 << 20, 1000);
		rig_request(s, 0, rows[i].opcode, PSN + i, AT, rows[i].bytes, rows[i].bytes);
		p = rig_expect(s, rows[i].answer, PSN + i);
		assert_int_equal(p.h.msn, i + 1);
		assert_int_equal(p.h.dest_qp, s->node[1].qp[0].qpn);
		assert_int_equal(p.h.pkey, 0xffff);
	}
}

/* ---- C9-74, C9-75, C9-77 ---- */

TEST_RC(c9_074__psn_is_compared_before_execution)
{
	rig_written(s, PSN, AT, 64, 1);
	memset(s->node[0].memory + AT, 0, 64);
	rig_write(s, PSN, AT, 64); /* behind */
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_write(s, PSN + 2, AT, 64); /* ahead */
	rig_expect_nak(s, PSN + 1, AETH_NAK_SEQUENCE, 1);
	rig_untouched(s, AT, 64);
	rig_write(s, PSN + 1, AT, 64); /* this one */
	rig_expect_ack(s, PSN + 2, aeth_ack(0), 3);
	rig_holds_pattern(s, AT, 64);
}

/* The expected PSN grows by 1, by a READ's responses after a READ. */
static void expected_psn(uint8_t mtu_code)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	uint32_t mtu = wire_mtu_bytes(mtu_code), psn;
	const uint32_t reads[] = {0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1, 10 * mtu};
	struct rig_packet got;
	struct sim *s;

	p.mtu = mtu_code;
	psn = p.psn = 0xfffff0;
	s = rig_create(&p);
	for (unsigned i = 0; i < sizeof(reads) / 4; i++) {
		uint32_t packets = reads[i] ? (reads[i] + mtu - 1) / mtu : 1;

		rig_read(s, psn, AT, reads[i]);
		for (uint32_t k = 0; k < packets; k++)
			assert_true(rig_recv(s, &got, MS));
		psn = (psn + packets) & PSN_MASK;
		assert_int_equal(rig_epsn(s, 0), psn);
		rig_written(s, psn, AT, 64, 2 * i + 2);
		psn = (psn + 1) & PSN_MASK;
	}
	rig_end(s);
}

TEST(c9_075__expected_psn_after_reads_and_others)
{
	for (uint8_t mtu = 1; mtu <= 5; mtu++)
		expected_psn(mtu);
}

/* WRITEs and atomics on the same word by turns: each finds what the one before it has left. */
TEST_RC(c9_077__expected_requests_are_executed_in_order)
{
	for (uint32_t i = 0; i < 10; i++) {
		uint64_t value = 1000 * i;
		struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN + 2 * i, AT, 8);

		rig_send(s, h, &value, 8);
		h = rig_headers(s, 0, WIRE_RC_FETCH_ADD, PSN + 2 * i + 1, AT, 0);
		h.swap_add = 1;
		rig_send(s, h, NULL, 0);
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_true(rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2 * i + 1).h.orig == 1000 * i);
	assert_true(*(uint64_t *)(s->node[0].memory + AT) == 9001);
	assert_int_equal(rig_epsn(s, 0), PSN + 20);
}

/* ---- C9-76: states ---- */

static void dropped_in_state(struct sim *s)
{
	uint64_t before = sim_counter(s, 0, COUNTER_drop_qp_state);
	uint32_t epsn = rig_epsn(s, 0);

	rig_write(s, PSN, AT, 64);
	rig_write(s, PSN + 5, AT, 64);
	rig_silent(s, 10 * US);
	rig_untouched(s, AT, 64);
	assert_int_equal(rig_epsn(s, 0), epsn);
	assert_true(sim_counter(s, 0, COUNTER_drop_qp_state) == before + 2);
}

TEST_RC(c9_076__no_state_but_a_receiving_one_moves_the_expected_psn)
{
	sim_modify(s, 0, 0, QP_RST, 0);
	dropped_in_state(s);
	sim_modify(s, 0, 0, QP_INIT, 0);
	dropped_in_state(s);
	sim_modify(s, 0, 0, QP_RTR, 0);
	rig_no_event(s);
	rig_written(s, PSN, AT, 64, 1);
	sim_modify(s, 0, 0, QP_RTS, 0);
	rig_written(s, PSN + 1, AT, 64, 2);
	sim_modify(s, 0, 0, QP_SQD, 0);
	rig_written(s, PSN + 2, AT, 64, 3);
	assert_int_equal(rig_epsn(s, 0), PSN + 3);
	memset(s->node[0].memory + AT, 0, 64);
	sim_modify(s, 0, 0, QP_ERR, 0);
	dropped_in_state(s);
}

/* The first packet in RTR raises an event, once; in RTS there is none. */
TEST_RC(events__communication_established)
{
	rig_written(s, PSN, AT, 64, 1);
	rig_no_event(s);
	sim_modify(s, 0, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_INIT, 0);
	sim_modify(s, 0, 0, QP_RTR, 0);
	rig_write(s, PSN, AT, 64);
	rig_written(s, PSN + 1, AT, 64, 2);
	rig_expect_event(s, EQE_COMM_EST, s->node[0].qp[0].qpn);
	rig_no_event(s);
}

/* Bad packets do not move it either. */
TEST_RC(c9_076__bad_packets_leave_the_expected_psn)
{
	struct wire_headers h;

	rig_written(s, PSN, AT, 64, 1);
	rig_write(s, PSN + 3, AT, 64);
	rig_expect_nak(s, PSN + 1, AETH_NAK_SEQUENCE, 1);
	assert_int_equal(rig_epsn(s, 0), PSN + 1);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN + 1, 0, 0, 64);
	rig_expect_ack(s, PSN + 1, aeth_rnr(1), 1);
	assert_int_equal(rig_epsn(s, 0), PSN + 1);
	h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN + 1, AT, 64);
	h.rkey = 0x1234;
	rig_send(s, h, NULL, 64);
	rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_REMOTE_ACCESS, 1);
}

/* ---- C9-78, C9-79: regions ---- */

/* 2^23 PSNs before the expected one are duplicates, all others are not in the valid region. */
TEST_RC(c9_079__borders_of_the_valid_region)
{
	static const struct {
		uint32_t ahead;
		bool duplicate;
	} rows[] = {{1, false},	      {2, false},	{0x7fffff, false},
		    {0x800000, true}, {0x800001, true}, {0xffffff, true}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rig_reconnect(s, 0);
		memset(s->node[0].memory + AT, 0, 128);
		rig_written(s, PSN, AT, 64, 1);
		rig_write(s, PSN + 1 + rows[i].ahead, AT + 64, 64);
		if (rows[i].duplicate)
			rig_expect_ack(s, PSN, aeth_ack(0), 1);
		else
			rig_expect_nak(s, PSN + 1, AETH_NAK_SEQUENCE, 1);
		rig_silent(s, MS);
		rig_untouched(s, AT + 64, 64);
		assert_int_equal(rig_epsn(s, 0), PSN + 1);
		assert_int_equal(rig_state(s, 0), QP_RTS);
		rig_no_event(s);
	}
}

/* All that came before the gap is done and answered in front of the NAK. */
TEST_RC(c9_079__what_precedes_is_done_before_the_nak)
{
	uint32_t packets = 40;

	sim_post_recv(s, 0, 0, 1 << 20, 1000);
	write_quietly(s, PSN, AT, 100);
	rig_read(s, PSN + 1, AT, packets * MTU);
	rig_send(s, rig_headers(s, 0, WIRE_RC_SEND_ONLY, PSN + 1 + packets, 0, 0), NULL, 500);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 2 + packets, AT + 4096, 0, 0);
	rig_write(s, PSN + 10 + packets, AT + 100, 100);
	rig_expect_responses(s, PSN + 1, packets);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2 + packets);
	rig_expect_nak(s, PSN + 3 + packets, AETH_NAK_SEQUENCE, 4);
	rig_expect_cqe(s, USER_RECV, 0, 0);
	rig_untouched(s, AT + 100, 100);
}

/* ---- C9-80, C9-114, C9-121, C9-122: the silence after the NAK ---- */

static void open_gap(struct sim *s)
{
	rig_written(s, PSN, AT, 64, 1);
	rig_write(s, PSN + 2, AT + 64, 64);
	rig_expect_nak(s, PSN + 1, AETH_NAK_SEQUENCE, 1);
}

TEST_RC(c9_080__silence_until_the_expected_request)
{
	s->node[0].hca->engines[0].settings.loss_recovery = LOSS_RECOVERY_STANDARD;
	open_gap(s);
	for (uint32_t i = 0; i < 10; i++)
		rig_write(s, PSN + 2 + i, AT + 64, 64);
	rig_read(s, PSN + 2, AT, 64);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 3, AT + 64, 0, 0);
	rig_request(s, 0, 0x1f, PSN + 3, 0, 0, 0);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN + 4, 0, 0, 64);
	rig_silent(s, MS);
	rig_untouched(s, AT + 64, 64);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_out_of_sequence), 15);
	assert_int_equal(sim_context(s, 0, 0)->ee.ahead, 15);
	rig_written(s, PSN + 1, AT + 64, 64, 2);
	rig_write(s, PSN + 3, AT, 64); /* a new gap draws a new NAK */
	rig_expect_nak(s, PSN + 2, AETH_NAK_SEQUENCE, 2);
}

/* The request with the expected PSN may itself be bad: it draws its own NAK. */
TEST_RC(c9_114__the_expected_request_may_draw_a_nak)
{
	open_gap(s);
	rig_request(s, 0, WIRE_RC_WRITE_MIDDLE, PSN + 1, AT, 0, MTU);
	rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_INVALID_REQUEST, 1);
}

/* The same after an RNR NAK: packets in flight behind it are dropped silently. */
TEST_RC(c9_114__silence_after_an_rnr_nak)
{
	rig_request(s, 0, WIRE_RC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_request(s, 0, WIRE_RC_SEND_MIDDLE, PSN + 1, 0, 0, MTU);
	rig_request(s, 0, WIRE_RC_SEND_LAST, PSN + 2, 0, 0, MTU);
	rig_expect_ack(s, PSN, aeth_rnr(1), 0);
	rig_silent(s, 100 * US);
	sim_post_recv(s, 0, 0, 1 << 20, 3 * MTU);
	rig_request(s, 0, WIRE_RC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_request(s, 0, WIRE_RC_SEND_MIDDLE, PSN + 1, 0, 0, MTU);
	rig_request(s, 0, WIRE_RC_SEND_LAST, PSN + 2, 0, 0, MTU);
	rig_expect_ack(s, PSN + 2, aeth_ack(0), 1);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 3 * MTU);
}

TEST_RIG_WITH(c9_121__nak_reports_the_expected_psn_past_the_wrap, p.psn = 0xffffff)
{
	rig_write(s, 0xffffff, AT, 64);
	rig_write(s, 3, AT + 64, 64);
	rig_expect_ack(s, 0xffffff, aeth_ack(0), 1);
	rig_expect_nak(s, 0, AETH_NAK_SEQUENCE, 1);
	rig_written(s, 0, AT + 64, 64, 2);
}

/* Before any packet has come, too. */
TEST_RC(c9_121__gap_at_the_first_packet)
{
	rig_write(s, PSN + 1, AT, 64);
	rig_expect_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	rig_untouched(s, AT, 64);
}

TEST_RC(c9_122__all_but_the_expected_and_duplicates_are_dropped)
{
	open_gap(s);
	rig_write(s, PSN + 3, AT + 64, 64);
	rig_write(s, PSN + 1 + 0x7fffff, AT + 64, 64);
	rig_read(s, PSN + 9, AT, 64);
	rig_silent(s, 100 * US);
	rig_untouched(s, AT + 64, 64);
	assert_int_equal(rig_epsn(s, 0), PSN + 1);
}

TEST_RC(c9_123__duplicates_are_served_after_the_nak)
{
	rig_read(s, PSN, AT, 2 * MTU);
	rig_expect_responses(s, PSN, 2);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 2, AT + 4096, 0, 0);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2);
	rig_write(s, PSN + 4, AT, 64);
	rig_expect_nak(s, PSN + 3, AETH_NAK_SEQUENCE, 2);
	rig_read(s, PSN, AT, 2 * MTU);
	rig_expect_responses(s, PSN, 2);
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 2, AT + 4096, 0, 0);
	rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2);
	assert_int_equal(rig_epsn(s, 0), PSN + 3);
}

/* Only the expected PSN ends it: a duplicate is answered, and draws no second NAK afterwards. */
TEST_RC(c9_114__no_second_nak_before_the_expected_request)
{
	open_gap(s);
	rig_written(s, PSN, AT, 64, 1);
	rig_write(s, PSN + 2, AT + 64, 64);
	rig_silent(s, 100 * US);
	rig_untouched(s, AT + 64, 64);
	rig_write(s, PSN + 1, AT + 64, 64);
	rig_expect_ack(s, PSN + 2, aeth_ack(0), 3);
}

/* ---- several connections ---- */

/* The PSN that the one expects does not make a packet of the other its next one. */
TEST(c9_074__each_connection_counts_for_itself)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, 64, .remote = AT);
	struct sim *s;

	p.qps = 2;
	s = sim_create(&p);
	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 1, &wr);
	assert_true(sim_settle(s, MS));
	sim_post(s, 0, 0, &wr);
	assert_true(sim_settle(s, MS));
	for (unsigned i = 0; i < 2; i++) /* in one burst with the next */
		sim_post(s, 0, 0, &wr);
	sim_post(s, 0, 1, &wr);
	assert_true(sim_settle(s, MS));
	assert_int_equal(sim_context(s, 1, 0)->ee.msn, 3);
	assert_int_equal(sim_context(s, 1, 1)->ee.msn, 4);
	sim_destroy(s);
}
