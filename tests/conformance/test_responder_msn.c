/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules on message sequence numbers and credits, and the properties of the reliable
 * connection as a whole (C9-146 to C9-149, C9-150.2.1, C9-155, C9-157.2.1, C9-158.2.1). */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, RECV = 1 << 20, MTU = 1024 };

static struct sim *with_credits(unsigned qps)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.qps = qps;
	return rig_create(&p);
}

static void request(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t dma_len, uint32_t bytes)
{
	rig_request(s, 0, opcode, psn, AT, dma_len, bytes);
}

static void write_one(struct sim *s, uint32_t psn)
{
	request(s, WIRE_RC_WRITE_ONLY, psn, 4, 4);
}

/* ---- MSN ---- */

TEST_RC(c9_147__msn_in_every_aeth)
{
	for (uint32_t i = 0; i < 3; i++)
		write_one(s, PSN + i);
	rig_expect_ack(s, PSN + 2, aeth_ack(0), 3);
	request(s, WIRE_RC_READ_REQUEST, PSN + 3, 2 * MTU, 0);
	assert_in_range(rig_expect(s, WIRE_RC_READ_RESP_FIRST, PSN + 3).h.msn, 3, 4);
	assert_int_equal(rig_expect(s, WIRE_RC_READ_RESP_LAST, PSN + 4).h.msn, 4);
	request(s, WIRE_RC_READ_REQUEST, PSN + 5, 4, 0);
	assert_int_equal(rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN + 5).h.msn, 5);
	request(s, WIRE_RC_FETCH_ADD, PSN + 6, 0, 0);
	assert_int_equal(rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 6).h.msn, 6);
	request(s, WIRE_RC_SEND_ONLY, PSN + 7, 0, 4);
	rig_expect_ack(s, PSN + 7, aeth_rnr(1), 6);
	write_one(s, PSN + 7);
	rig_expect_ack(s, PSN + 7, aeth_ack(0), 7);
	write_one(s, PSN + 9);
	rig_expect_nak(s, PSN + 8, AETH_NAK_SEQUENCE, 7);
}

/* From 0, by one for each new message that is complete, whatever its packets; past its wrap. */
static void messages(struct sim *s, uint32_t msn)
{
	rig_reconnect(s, 0);
	sim_context(s, 0, 0)->ee.msn = msn;
	request(s, WIRE_RC_WRITE_FIRST, PSN, 2 * MTU + 4, MTU);
	rig_expect_ack(s, PSN, aeth_ack(0), msn);
	request(s, WIRE_RC_WRITE_MIDDLE, PSN + 1, 0, MTU);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), msn);
	request(s, WIRE_RC_WRITE_LAST, PSN + 2, 0, 4);
	rig_expect_ack(s, PSN + 2, aeth_ack(0), msn + 1);
	request(s, WIRE_RC_WRITE_LAST, PSN + 2, 0, 4); /* a duplicate */
	rig_expect_ack(s, PSN + 2, aeth_ack(0), msn + 1);
	sim_post_recv(s, 0, 0, RECV, 1000);
	request(s, WIRE_RC_SEND_ONLY_IMM, PSN + 3, 0, 4);
	rig_expect_ack(s, PSN + 3, aeth_ack(0), msn + 2);
	request(s, WIRE_RC_READ_REQUEST, PSN + 4, 5 * MTU, 0);
	rig_expect_responses(s, PSN + 4, 5);
	request(s, WIRE_RC_CMP_SWAP, PSN + 9, 0, 0);
	assert_int_equal(rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 9).h.msn, (msn + 4) & PSN_MASK);
	request(s, WIRE_RC_CMP_SWAP, PSN + 9, 0, 0);
	assert_int_equal(rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 9).h.msn, (msn + 4) & PSN_MASK);
	write_one(s, PSN + 10);
	rig_expect_ack(s, PSN + 10, aeth_ack(0), msn + 5);
}

TEST_RC(c9_148__counts_new_messages_from_zero_and_wraps)
{
	messages(s, 0);
	for (uint32_t msn = 0xfffffa; msn <= 0xffffff; msn++)
		messages(s, msn);
	messages(s, 0); /* zero again after a reset */
	rig_reconnect(s, 0);
	write_one(s, PSN);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
}

TEST_RC(c9_149__msn_in_naks_and_answers_to_duplicates)
{
	for (uint32_t i = 0; i < 5; i++)
		write_one(s, PSN + i);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 5);
	write_one(s, PSN + 1);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 5);
	write_one(s, PSN + 6);
	rig_expect_nak(s, PSN + 5, AETH_NAK_SEQUENCE, 5);
	write_one(s, PSN + 3);
	rig_expect_ack(s, PSN + 4, aeth_ack(0), 5);
	request(s, WIRE_RC_WRITE_LAST, PSN + 5, 0, 4);
	rig_expect_refusal(s, 0, PSN + 5, AETH_NAK_INVALID_REQUEST, 5);
}

/* ---- credits ---- */

RIG_TEST(c9_150_2_1__every_queue_gives_its_own_credits, with_credits(4))
{
	for (unsigned qp = 0; qp < 4; qp++)
		for (unsigned i = 0; i < qp + 1; i++)
			sim_post_recv(s, 0, qp, RECV, 100);
	for (unsigned n = 0; n < 4; n++) {
		struct rig_packet p;

		assert_true(rig_recv(s, &p, MS)); /* the initial ones */
		assert_int_equal(p.h.psn, PSN - 1);
		assert_in_range(p.h.syndrome, 1, 4);
		assert_int_equal(p.h.dest_qp, s->node[1].qp[p.h.syndrome - 1].qpn);
	}
}

/* The counts that the codes represent. */
RIG_TEST(c9_158_2_1__each_count_of_receives, with_credits(1))
{
	static const uint32_t counts[] = {0,  1,  2,  3,  4,   6,   8,	 12,  16, 24,
					  32, 48, 64, 96, 128, 192, 256, 384, 512};
	uint32_t psn = PSN;
	unsigned code = 0;

	for (uint32_t posted = 0; posted <= SIM_RQ_ENTRIES; posted++) {
		struct rig_packet p;

		while (code + 1 < sizeof(counts) / 4 && counts[code + 1] <= posted)
			code++;
		write_one(s, psn);
		do /* unsolicited ones may come before */
			assert_true(rig_recv(s, &p, MS));
		while (p.h.psn != psn);
		assert_int_equal(p.h.syndrome, code);
		assert_int_equal(p.h.msn, psn - PSN + 1);
		psn++;
		sim_post_recv(s, 0, 0, RECV, 100);
		sim_run(s, MS); /* the first one is seen */
	}
}

/*
 * One less for each SEND and WRITE with immediate, with the packet that completes it: until then
 * the MSN does not count the message, and LSN = MSN + credits must not step back (C9-161).
 */
RIG_TEST(c9_157_2_1__one_for_each_message_that_takes_a_receive, with_credits(1))
{
	for (unsigned i = 0; i < 4; i++)
		sim_post_recv(s, 0, 0, RECV, 4 * MTU);
	rig_expect_ack(s, PSN - 1, aeth_ack(0), 0);
	request(s, WIRE_RC_SEND_FIRST, PSN, 0, MTU);
	assert_int_equal(rig_expect_ack(s, PSN, aeth_ack(0), 0).h.syndrome, 4);
	request(s, WIRE_RC_SEND_LAST, PSN + 1, 0, MTU);
	assert_int_equal(rig_expect_ack(s, PSN + 1, aeth_ack(0), 1).h.syndrome, 3);
	request(s, WIRE_RC_WRITE_FIRST, PSN + 2, MTU + 4, MTU);
	assert_int_equal(rig_expect_ack(s, PSN + 2, aeth_ack(0), 1).h.syndrome, 3);
	request(s, WIRE_RC_WRITE_LAST_IMM, PSN + 3, 0, 4);
	assert_int_equal(rig_expect_ack(s, PSN + 3, aeth_ack(0), 2).h.syndrome, 2);
	request(s, WIRE_RC_SEND_ONLY, PSN, 0, MTU); /* a duplicate takes none */
	assert_int_equal(rig_expect_ack(s, PSN + 3, aeth_ack(0), 2).h.syndrome, 2);
}

/* None in RST and INIT; those posted in INIT are announced in RTR. */
RIG_TEST(c9_155__credits_by_state, with_credits(1))
{
	sim_post_recv(s, 0, 0, RECV, 100);
	rig_expect_ack(s, PSN - 1, aeth_ack(0), 0);
	sim_modify(s, 0, 0, QP_RST, 0);
	sim_post_recv(s, 0, 0, RECV, 100);
	rig_silent(s, MS);
	s->node[0].qp[0].record->rq_posted = s->node[0].qp[0].rq_posted = 0;
	sim_modify(s, 0, 0, QP_INIT, 0);
	sim_post_recv(s, 0, 0, RECV, 100);
	sim_post_recv(s, 0, 0, RECV, 100);
	rig_silent(s, MS);
	sim_modify(s, 0, 0, QP_RTR, 0);
	assert_int_equal(rig_expect_ack(s, PSN - 1, aeth_ack(0), 0).h.syndrome, 2);
	sim_modify(s, 0, 0, QP_RTS, 0);
	rig_silent(s, MS);
	sim_modify(s, 0, 0, QP_ERR, 0);
	sim_post_recv(s, 0, 0, RECV, 100);
	rig_silent(s, MS);
}

/* ---- C9-146: at most once, in order, intact, over a bad wire ---- */

/* A peer that goes back N: sends from `una` on, loses, doubles and swaps packets. */
static void send_window(struct sim *s, uint32_t una, uint32_t total)
{
	uint32_t n = RTE_MIN(total - una, 16u), order[17];

	for (uint32_t i = 0; i < n; i++)
		order[i] = una + i;
	for (uint32_t i = 1; i < n; i++)
		if (sim_random(s) % 8 == 0)
			RTE_SWAP(order[i - 1], order[i]);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t m = order[i], word[2] = {m, ~m};
		struct wire_headers h =
			rig_headers(s, 0, m % 3 == 2 ? WIRE_RC_FETCH_ADD : WIRE_RC_SEND_ONLY,
				    s->params.psn + m, AT, 0);
		unsigned times = sim_random(s) % 6 ? 1 : sim_random(s) % 3;

		h.ackreq = i + 1 == n || sim_random(s) % 4 == 0;
		h.swap_add = 1;
		while (times--)
			rig_send(s, h, word, m % 3 == 2 ? 0 : 8);
	}
}

/* The progress that answers report; an atomic is acknowledged by its own answer. */
static uint32_t take_answers(struct sim *s, uint32_t una)
{
	struct rig_packet p;

	while (rig_recv(s, &p, 10 * US)) {
		uint32_t m = (p.h.psn - s->params.psn) & PSN_MASK;

		if (sim_random(s) % 10 == 0) /* lost */
			continue;
		if (p.h.opcode == WIRE_RC_ATOMIC_ACK)
			assert_true(p.h.orig == m / 3);
		else if (aeth_kind(p.h.syndrome) == AETH_NAK)
			m--; /* all before it */
		for (; (int32_t)(m << 8) >= (int32_t)(una << 8); una++)
			if (una % 3 == 2 && !(p.h.opcode == WIRE_RC_ATOMIC_ACK && una == m))
				break;
	}
	return una;
}

TEST(c9_146__at_most_once_in_order_intact)
{
	enum { TOTAL = 90 };

	for (unsigned seed = 0; seed < 10; seed++) {
		struct sim_params params = SIM_PARAMS_DEFAULT;
		uint32_t una = 0, got = 0;
		struct sim *s;
		struct cqe c;

		params.psn = 0xffffd0;
		params.seed = seed;
		params.no_credits = true;
		s = rig_create(&params);
		for (unsigned i = 0; i < TOTAL; i++)
			sim_post_recv(s, 0, 0, RECV + 8 * i, 8);
		for (unsigned round = 0; una < TOTAL; round++) {
			assert_true(round < 1000);
			send_window(s, una, TOTAL);
			una = take_answers(s, una);
		}
		for (uint32_t m = 0; m < TOTAL; m++) {
			uint32_t word[2] = {m, ~m};

			if (m % 3 == 2)
				continue;
			assert_true(sim_poll_cq(s, 0, &c));
			assert_int_equal(c.byte_count, 8);
			assert_memory_equal(s->node[0].memory + RECV + 8 * got++, word, 8);
		}
		rig_no_cqe(s);
		assert_true(*(uint64_t *)(s->node[0].memory + AT) == TOTAL / 3);
		rig_end(s);
	}
}
