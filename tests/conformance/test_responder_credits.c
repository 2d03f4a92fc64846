/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules of end-to-end flow control: the credits of each acknowledgement, and
 * unsolicited acknowledgements. */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, LEN = 100 };

static struct sim *make(uint32_t psn)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.psn = psn;
	return rig_create(&p);
}

static void post(struct sim *s, unsigned n)
{
	while (n--)
		sim_post_recv(s, 0, 0, 0, LEN);
}

static void expect_credits(struct sim *s, uint32_t psn, uint32_t msn, uint8_t code)
{
	struct rig_packet p = rig_expect_ack(s, psn, aeth_ack(0), msn);

	assert_int_equal(aeth_value(p.h.syndrome), code);
}

RIG_TEST(c9_155__initial_credits_carry_initial_psn_minus_one, make(0))
{
	rig_silent(s, MS); /* nothing is posted */
	post(s, 5);
	expect_credits(s, 0xffffff, 0, 4);
	rig_silent(s, MS);
	post(s, 1);
	rig_silent(s, MS); /* the next acknowledgement will carry them */
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, 0, AT, LEN, LEN);
	expect_credits(s, 0, 1, 5);
	assert_int_equal(sim_counter(s, 0, COUNTER_acks_unsolicited), 1);
}

/* In SQD as in RTS: counted, and announced unsolicited. */
RIG_TEST(c9_155__credits_in_sqd, make(PSN))
{
	sim_modify(s, 0, 0, QP_SQD, 0);
	rig_silent(s, MS);
	post(s, 3);
	expect_credits(s, PSN - 1, 0, 3);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, LEN);
	expect_credits(s, PSN, 1, 2);
	rig_silent(s, MS);
	assert_int_equal(rig_state(s, 0), QP_SQD);
}

RIG_TEST(c9_152__unsolicited_ack_repeats_the_last_positive_one, make(PSN))
{
	post(s, 1);
	expect_credits(s, PSN - 1, 0, 1);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, LEN);
	expect_credits(s, PSN, 1, 0);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN + 1, AT, 2 * 1024, 0);
	rig_expect_responses(s, PSN + 1, 2);
	rig_silent(s, MS);
	post(s, 3);
	expect_credits(s, PSN + 2, 2, 3); /* Acknowledge, although the last was a READ response */
	rig_silent(s, MS);
}

RIG_TEST(c9_080__no_unsolicited_ack_while_a_nak_is_out, make(PSN))
{
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN + 1, AT, LEN, LEN);
	rig_expect_ack(s, PSN, aeth_nak(AETH_NAK_SEQUENCE), 0);
	post(s, 1);
	rig_silent(s, 10 * MS);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, LEN, LEN);
	expect_credits(s, PSN + 1, 2, 1); /* that one was kept */
	rig_silent(s, MS);
}

RIG_TEST(c9_114__no_unsolicited_ack_while_an_rnr_nak_is_out, make(PSN))
{
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, LEN);
	rig_expect_ack(s, PSN, aeth_rnr(1), 0);
	post(s, 3);
	rig_silent(s, 10 * MS);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, LEN);
	expect_credits(s, PSN, 1, 2);
	rig_silent(s, MS);
}

TEST_RC(c9_150_2_1__none_where_they_are_off)
{
	post(s, 3);
	rig_silent(s, MS);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, LEN, LEN);
	expect_credits(s, PSN, 1, AETH_CREDIT_INVALID);
}

RIG_TEST(c9_157_2_1__only_what_consumes_a_receive_costs_a_credit, make(PSN))
{
	struct rig_packet p;

	post(s, 3);
	expect_credits(s, PSN - 1, 0, 3);
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, LEN, LEN);
	expect_credits(s, PSN, 1, 3);
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN + 1, AT, LEN, 0);
	p = rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN + 1);
	assert_int_equal(p.h.syndrome, aeth_ack(3));
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 2, AT, 0, 0);
	p = rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2);
	assert_int_equal(p.h.syndrome, aeth_ack(3));
	rig_request(s, 0, WIRE_RC_WRITE_ONLY_IMM, PSN + 3, AT, LEN, LEN);
	expect_credits(s, PSN + 3, 4, 2);
	rig_request(s, 0, WIRE_RC_SEND_FIRST, PSN + 4, 0, 0, 1024);
	rig_recv(s, &p, MS); /* longer than its receive: refused */
	assert_int_equal(aeth_kind(p.h.syndrome), AETH_NAK);
}

/* MSN plus credits, the LSN, is the same before, within and after a message. */
RIG_TEST(c9_161__the_lsn_does_not_step_back_within_a_message, make(PSN))
{
	static const uint8_t opcodes[] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE,
					  WIRE_RC_SEND_MIDDLE, WIRE_RC_SEND_LAST};

	sim_post_recv(s, 0, 0, 0, 4096);
	post(s, 1);
	expect_credits(s, PSN - 1, 0, 2);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t done = i == 3;

		rig_request(s, 0, opcodes[i], PSN + i, 0, 0, 1024);
		expect_credits(s, PSN + i, done, (uint8_t)(2 - done));
	}
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN + 4, 0, 0, LEN);
	expect_credits(s, PSN + 4, 2, 0);
}

/* Two HCAs: acknowledgements within a long message do not hold up the next one, for which a receive
 * was posted and announced before. */
TEST(c9_161__the_next_message_does_not_wait)
{
	enum { LONG = 300 * 1024 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s = sim_create(&p);
	struct sim_wr wr = SIM_WR(USER_SEND, 0, LONG);
	struct cqe c;

	for (unsigned i = 0; i < 2; i++)
		sim_post_recv(s, 1, 0, i * LONG, LONG);
	sim_run(s, 100 * US); /* their credits are known */
	for (unsigned i = 0; i < 2; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(sim_wait(s, 0, &c, 10 * MS));
		assert_int_equal(c.opcode, USER_SEND);
	}
	assert_true(sim_counter(s, 0, COUNTER_acks) > 2);
	assert_int_equal(sim_counter(s, 0, COUNTER_park_credit), 0);
	sim_destroy(s);
}
