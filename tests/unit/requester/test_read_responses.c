/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses judged before anything comes of them: their opcode by the READ's progress, their
 * syndrome, the request that they belong to (C9-120, C9-133, C9-135). */
#include "recv_fixture.h"
#include "virt-to-phys/payload_ref.h"

static void read_request(uint32_t packets)
{
	send_request(0, USER_RDMA_READ, packets * FX_MTU, 0);
	sent();
}

static void response(uint8_t opcode, uint32_t psn)
{
	read_response(opcode, psn, opcode == WIRE_RC_ATOMIC_ACK ? 0 : FX_MTU);
}

/* Nothing that precedes is released by what is dropped, and no credits are taken. */
TEST(c9_133__an_impossible_response_changes_nothing)
{
	fx->qp[0]->rrc.credits = 0;
	send_request(0, USER_RDMA_WRITE, 8, 0);
	send_request(0, USER_RDMA_READ, 2 * FX_MTU, 64);
	send_request(0, USER_ATOMIC_FA, 8, 128);
	send_request(0, USER_RDMA_WRITE, 8, 192);
	sent();
	response(WIRE_RC_READ_RESP_FIRST, P(0)); /* to a WRITE */
	response(WIRE_RC_READ_RESP_FIRST, P(4)); /* to a WRITE behind */
	response(WIRE_RC_READ_RESP_MIDDLE, P(4));
	response(WIRE_RC_READ_RESP_LAST, P(1));
	response(WIRE_RC_READ_RESP_ONLY, P(3)); /* to an atomic */
	response(WIRE_RC_ATOMIC_ACK, P(1));	/* to a READ */
	fx_assert_counter(drop_resp_opcode, 6);
	assert_int_equal(fx->qp[0]->rrc.credits, 0);
	assert_int_equal(fx->qp[0]->rrc.unacked_psn, P(0));
	assert_no_retransmission();
	fx_assert_no_cqe();
}

/* A response with an AETH that is no ACK (C9-120, C9-135); a MIDDLE has none. */
TEST(c9_135__syndromes_of_responses)
{
	static const uint8_t bad[] = {0x20, 0x40, 0x5f, 0x60, 0x63, 0x64, 0x7f, 0x80, 0x9f, 0xff};

	read_request(3);
	send_request(0, USER_ATOMIC_FA, 8, 64);
	sent();
	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		struct wire_headers h = {.opcode = WIRE_RC_READ_RESP_FIRST, .syndrome = bad[i]};

		h.psn = P(0);
		respond_with(0, h, FX_MTU, 1);
		rrc_poll(fx->e);
	}
	fx_assert_counter(drop_ack_syndrome, RTE_DIM(bad));
	assert_int_equal(fx->memory[0], 0);
	response(WIRE_RC_READ_RESP_FIRST, P(0));
	respond_with(0,
		     (struct wire_headers){
			     .opcode = WIRE_RC_READ_RESP_MIDDLE, .psn = P(1), .syndrome = 0xff},
		     FX_MTU, 1);
	response(WIRE_RC_READ_RESP_LAST, P(2));
	fx_assert_cqe(USER_RDMA_READ, 0);
	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		struct wire_headers h = {.opcode = WIRE_RC_ATOMIC_ACK, .syndrome = bad[i]};

		h.psn = P(3);
		respond_with(0, h, 0, 0);
		rrc_poll(fx->e);
	}
	fx_assert_counter(drop_ack_syndrome, 2 * RTE_DIM(bad));
	fx_assert_no_cqe();
	response(WIRE_RC_ATOMIC_ACK, P(3));
	fx_assert_cqe(USER_ATOMIC_FA, 64);
}

/* Others have changed the tables, and one of them holds the entry just now: the response waits, it is
 * not lost. */
TEST(read_response__refers_to_what_another_lcore_holds)
{
	struct v2p *v = &fx->h->v2p;
	struct tpt_hold hold;
	struct rte_mbuf *m;

	fx_fill_memory(2 * FX_MTU, FX_MTU, 5);
	read_request(1);
	respond_with(0,
		     (struct wire_headers){.opcode = WIRE_RC_READ_RESP_ONLY,
					   .psn = P(0),
					   .syndrome = aeth_ack(AETH_CREDIT_INVALID)},
		     FX_MTU, 1);
	m = fx_take(CHANNEL_HP_RRC);
	arrival_of(m)->payload_elsewhere = 1;
	assert_true(payload_ref_make(fx->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA, FX_PD,
				     FX_READ_KEY, FX_VA + 2 * FX_MTU, FX_MTU, V2P_LOCAL_READ, NULL,
				     (uint8_t *)arrival_of(m)->payload));
	fx_put(CHANNEL_HP_RRC, m);
	v->generation++;
	assert_true(tpt_take(&v->mpt_cache, v2p_index(v, FX_READ_KEY), NULL, &hold));
	rrc_poll(fx->e);
	fx_assert_no_cqe();
	tpt_release(&hold);
	rrc_poll(fx->e);
	fx_assert_cqe(USER_RDMA_READ, 0);
	fx_assert_counter(drop_payload_gone, 0);
	fx_assert_pattern(fx->memory, FX_MTU, 5);
}

/* An acknowledgement of any kind has no payload. */
TEST(c9_133__acknowledgements_with_payload)
{
	struct wire_headers h = {.opcode = WIRE_RC_ACK, .syndrome = aeth_ack(3), .psn = P(0)};

	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_ATOMIC_FA, 8, 64);
	sent();
	respond_with(0, h, 4, 0);
	h.syndrome = aeth_nak(AETH_NAK_REMOTE_ACCESS);
	respond_with(0, h, 4, 0);
	h.opcode = WIRE_RC_ATOMIC_ACK;
	h.psn = P(1);
	h.syndrome = aeth_ack(3);
	respond_with(0, h, 4, 0);
	rrc_poll(fx->e);
	fx_assert_counter(drop_resp_length, 3);
	fx_assert_no_cqe();
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	respond_ack(0, P(0));
	fx_assert_cqe(USER_SEND, 0);
}

/* A READ of 2^31 bytes with an MTU of 256 has 2^23 responses: alone it fits. */
TEST(c9_061__the_largest_messages)
{
	struct qp *q = fx->qp[0];
	struct packet p;

	q->mtu_bytes = 256;
	send_request(0, USER_RDMA_READ, 1u << 31, 0);
	send_request(0, USER_RDMA_WRITE, 8, 64);
	rtc_poll(fx->e);
	assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(qp_outstanding(q), PSN_WINDOW);
	assert_false(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(q->rtc.parked, PARK_PSN);
	respond_with(0,
		     (struct wire_headers){.opcode = WIRE_RC_READ_RESP_FIRST,
					   .psn = P(0),
					   .syndrome = aeth_ack(31)},
		     256, 1);
	rrc_poll(fx->e);
	assert_int_equal(q->rrc.unacked_psn, P(1));
	rtc_poll(fx->e);
	assert_true(take_packet(CHANNEL_RTC_RPG, &p));
	assert_int_equal(p.headers.psn, psn_add(FX_PSN, PSN_WINDOW));
}

/* Credits come with the responses that have an AETH. */
TEST(c9_158__credits_of_responses)
{
	struct wire_headers h = {
		.opcode = WIRE_RC_READ_RESP_FIRST, .syndrome = aeth_ack(3), .msn = 5, .psn = P(0)};
	struct qp *q = fx->qp[0];

	q->rrc.credits = 0;
	q->rtc.ssn = 9; /* eight before it */
	read_request(3);
	respond_with(0, h, FX_MTU, 1);
	rrc_poll(fx->e);
	assert_int_equal(q->rrc.credits, CREDITS_CAME | (5 + aeth_credits(3)));
	h = (struct wire_headers){
		.opcode = WIRE_RC_READ_RESP_MIDDLE, .syndrome = aeth_ack(4), .msn = 6, .psn = P(1)};
	for (unsigned i = 0; i < 2; i++) { /* the second time as a duplicate */
		respond_with(0, h, FX_MTU, 1);
		rrc_poll(fx->e);
	}
	fx_assert_counter(ack_duplicate, 1);
	assert_int_equal(q->rrc.credits, CREDITS_CAME | (5 + aeth_credits(3)));
	respond(0, P(1), aeth_nak(AETH_NAK_REMOTE_ACCESS), 7); /* nor with a NAK's duplicate */
	fx_assert_counter(ack_duplicate, 2);
	assert_int_equal(q->rrc.credits, CREDITS_CAME | (5 + aeth_credits(3)));
	respond(0, P(1), aeth_ack(4), 8);
	assert_int_equal(q->rrc.credits, CREDITS_CAME | (8 + aeth_credits(4)));
}
