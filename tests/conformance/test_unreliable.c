/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable service, the receiver's side: the packets that UC and UD queue pairs drop silently,
 * and what they write of the others.
 */
#include "rig.h"

#define PSN 0x100u
#define MTU 1024u

/* ---- what a UC responder drops (doc/transport.md#unreliable-service; IBTA 9.8): never a word ----
 */

/* The packets had no effect: no answer, no completion, no event, no change of state. */
static void assert_ignored(struct sim *s)
{
	rig_silent(s, MS);
	rig_no_cqe(s);
	rig_no_event(s);
	assert_int_equal(rig_state(s, 0), QP_RTS);
}

/* The QP still works: a SEND of 10 bytes into the receive of that offset, whatever its PSN. */
static void assert_uc_continues(struct sim *s, uint32_t psn, uint32_t wqe_offset)
{
	rig_request(s, 0, WIRE_UC_SEND_ONLY, psn, 0, 0, 10);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, wqe_offset).byte_count, 10);
}

static struct sim *uc_rig(void)
{
	struct sim *s = rig_make(SERVICE_UC);

	for (unsigned i = 0; i < 4; i++)
		sim_post_recv(s, 0, 0, 65536 * (i + 1), 3 * MTU);
	return s;
}

RIG_TEST(uc__is_never_answered, uc_rig())
{
	rig_request(s, 0, WIRE_UC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_LAST, PSN + 1, 0, 0, 8);
	rig_request(s, 0, WIRE_UC_WRITE_ONLY, PSN + 2, 4096, 8, 8);
	rig_silent(s, MS);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, MTU + 8);
	rig_holds_pattern(s, 4096, 8);
}

RIG_TEST(uc__gap_drops_the_message, uc_rig())
{
	rig_request(s, 0, WIRE_UC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_LAST, PSN + 2, 0, 0, 8);
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_sequence), 1);
	assert_uc_continues(s, PSN + 3, 0); /* in the same receive */
}

/* A repeated packet is a gap, too: UC knows no duplicates. */
RIG_TEST(uc__repeated_packet_drops_the_message, uc_rig())
{
	rig_request(s, 0, WIRE_UC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_MIDDLE, PSN + 1, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_MIDDLE, PSN + 1, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_LAST, PSN + 2, 0, 0, 8);
	assert_ignored(s);
	assert_uc_continues(s, PSN + 3, 0);
}

RIG_TEST(uc__middle_and_last_without_a_first, uc_rig())
{
	static const uint8_t opcodes[] = {WIRE_UC_SEND_MIDDLE,	 WIRE_UC_SEND_LAST,
					  WIRE_UC_SEND_LAST_IMM, WIRE_UC_WRITE_MIDDLE,
					  WIRE_UC_WRITE_LAST,	 WIRE_UC_WRITE_LAST_IMM};

	for (unsigned i = 0; i < sizeof(opcodes); i++)
		rig_request(s, 0, opcodes[i], PSN, 0, 0, MTU);
	assert_ignored(s);
	assert_uc_continues(s, PSN, 0);
}

/* A message that begins while another is not at its end: that one is given up, this one taken. */
RIG_TEST(uc__message_that_begins_inside_another, uc_rig())
{
	rig_request(s, 0, WIRE_UC_SEND_FIRST, PSN, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_ONLY, PSN + 1, 0, 0, 20);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 20);
	rig_request(s, 0, WIRE_UC_WRITE_FIRST, PSN + 2, 4096, 2 * MTU, MTU);
	rig_request(s, 0, WIRE_UC_SEND_FIRST, PSN + 3, 0, 0, MTU);
	rig_request(s, 0, WIRE_UC_SEND_LAST, PSN + 4, 0, 0, 8);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, SIM_RQ_STRIDE).byte_count, MTU + 8);
}

/* After a gap the next message counts, wherever its PSN is. */
RIG_TEST(uc__psn_of_a_first_is_taken_as_it_comes, uc_rig())
{
	assert_uc_continues(s, PSN + 1000, 0);
	assert_int_equal(rig_epsn(s, 0), PSN + 1001);
	assert_uc_continues(s, 0xffffff, SIM_RQ_STRIDE);
	assert_int_equal(rig_epsn(s, 0), 0);
	assert_uc_continues(s, PSN, 2 * SIM_RQ_STRIDE);
}

RIG_TEST(uc__wrong_lengths_are_dropped, uc_rig())
{
	static const struct {
		uint8_t opcode;
		uint32_t dma_len, bytes;
	} rows[] = {
		{WIRE_UC_SEND_FIRST, 0, MTU - 4}, /* a first is a whole MTU */
		{WIRE_UC_SEND_ONLY, 0, MTU + 4},  {WIRE_UC_WRITE_FIRST, 2 * MTU, MTU - 4},
		{WIRE_UC_WRITE_ONLY, 9, 8}, /* RETH says otherwise */
		{WIRE_UC_WRITE_ONLY, 7, 8},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		rig_request(s, 0, rows[i].opcode, PSN + i, 4096, rows[i].dma_len, rows[i].bytes);
	assert_ignored(s);
	rig_untouched(s, 4096, 2 * MTU);
	assert_uc_continues(s, PSN + 10, 0);
}

RIG_TEST(uc__refused_access_is_dropped, uc_rig())
{
	struct wire_headers h = rig_headers(s, 0, WIRE_UC_WRITE_ONLY, PSN, 4096, 8);

	h.rkey ^= 1;
	rig_send(s, h, NULL, 8);
	h = rig_headers(s, 0, WIRE_UC_WRITE_ONLY, PSN + 1, s->node[0].memory_bytes - 7, 8);
	rig_send(s, h, NULL, 8);
	assert_ignored(s);
	rig_untouched(s, 4096, 8);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_request), 2);
	assert_uc_continues(s, PSN + 2, 0);
}

RIG_TEST(uc__longer_than_the_receive_or_none_posted, rig_make(SERVICE_UC))
{
	rig_request(s, 0, WIRE_UC_SEND_ONLY, PSN, 0, 0, 10);
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_no_receive), 1);
	sim_post_recv(s, 0, 0, 65536, 10);
	rig_request(s, 0, WIRE_UC_SEND_ONLY, PSN + 1, 0, 0, 11);
	assert_ignored(s);
	rig_untouched(s, 65536, 12);
	assert_uc_continues(s, PSN + 2, 0);
}

/* Nor does it know READ, atomics, invalidation; nor a packet from elsewhere or of another P_Key. */
RIG_TEST(uc__foreign_packets_are_dropped, uc_rig())
{
	static const uint8_t opcodes[] = {WIRE_RC_SEND_ONLY, WIRE_RC_READ_REQUEST,
					  WIRE_RC_FETCH_ADD, WIRE_RC_SEND_ONLY_INV,
					  WIRE_UD_SEND_ONLY};
	struct wire_headers h;

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		h = rig_headers(s, 0, opcodes[i], PSN, 4096, 8);
		rig_send(s, h, NULL, i == 0 || i > 2 ? 8 : 0);
	}
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_service), sizeof(opcodes));
	h = rig_headers(s, 0, WIRE_UC_SEND_ONLY, PSN, 0, 0);
	h.pkey = 0x1234;
	rig_send(s, h, NULL, 8);
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_pkey), 1);
	assert_uc_continues(s, PSN, 0);
}

/* ---- a UD receiver ---- */

static void datagram(struct sim *s, uint8_t opcode, uint32_t psn, uint32_t bytes)
{
	struct wire_headers h = rig_headers(s, 0, opcode, psn, 0, 0);

	h.src_qp = 0x123456;
	h.imm = 77;
	rig_send(s, h, NULL, bytes);
}

/* Forty bytes in front of the message, the IP header at their end; who sent it in the completion.
 */
RIG_TEST(ud__grh_and_sender, rig_make(SERVICE_UD))
{
	static const uint8_t zeros[20];
	const uint8_t *at;
	struct cqe c;

	sim_post_recv(s, 0, 0, 65536, 4096);
	datagram(s, WIRE_UD_SEND_ONLY_IMM, 5, 100);
	rig_silent(s, MS);
	c = rig_expect_cqe(s, USER_RECV_IMM, 0, 0);
	assert_int_equal(c.byte_count, 140);
	assert_int_equal(c.remote_qpn, 0x123456);
	assert_int_equal(c.imm_or_error, 77);
	assert_true(c.rlid_flags & CQE_HAS_GRH);
	at = s->node[0].memory + 65536;
	assert_memory_equal(at, zeros, 20);
	assert_int_equal(at[20], 0x45);
	assert_int_equal(at[20 + 9], 17);
	assert_memory_equal(at + 32, s->node[1].ip + 12, 4);
	assert_memory_equal(at + 36, s->node[0].ip + 12, 4);
	rig_holds_pattern(s, 65536 + 40, 100);
}

/* Each datagram stands for itself: no PSN is expected. The last one is of a whole MTU. */
RIG_TEST(ud__any_psn, rig_make(SERVICE_UD))
{
	static const uint32_t psns[] = {9, 9, 3, 0xffffff, 0};

	for (unsigned i = 0; i < 5; i++) {
		sim_post_recv(s, 0, 0, 65536, 4096);
		datagram(s, WIRE_UD_SEND_ONLY, psns[i], i * MTU / 4);
		assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, i * SIM_RQ_STRIDE).byte_count,
				 40 + i * MTU / 4);
	}
}

RIG_TEST(ud__dropped_without_a_word, rig_make(SERVICE_UD))
{
	struct wire_headers h = rig_headers(s, 0, WIRE_UD_SEND_ONLY, 5, 0, 0);

	datagram(s, WIRE_UD_SEND_ONLY, 5, 8); /* no receive */
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_no_receive), 1);
	sim_post_recv(s, 0, 0, 65536, 47);
	datagram(s, WIRE_UD_SEND_ONLY, 5, 8); /* with its GRH one byte too long */
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_ud_length), 1);
	h.qkey ^= 1;
	rig_send(s, h, NULL, 4);
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_ud_qkey), 1);
	h.qkey ^= 1;
	h.pkey = 0x8001;
	rig_send(s, h, NULL, 4);
	h.pkey = 0x7ffe;
	rig_send(s, h, NULL, 4);
	assert_ignored(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_pkey), 2);
	rig_untouched(s, 65536, 47);
	h.pkey = 0x7fff; /* a limited member may speak to a full one */
	rig_send(s, h, NULL, 4);
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 44);
}
