/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses judged before anything comes of them: their opcode by the READ's progress, their
 * syndrome, the request that they belong to (C9-120, C9-133, C9-135). */
#include "recv_fixture.h"
#include "virt-to-phys/payload_ref.h"

static const uint8_t opcodes[] = {WIRE_RC_READ_RESP_FIRST, WIRE_RC_READ_RESP_MIDDLE,
				  WIRE_RC_READ_RESP_LAST, WIRE_RC_READ_RESP_ONLY};
enum { FIRST = 1, MIDDLE = 2, LAST = 4, ONLY = 8 };

static void read_request(uint32_t packets)
{
	send_request(0, USER_RDMA_READ, packets * FX_MTU, 0);
	sent();
}

static void response(uint8_t opcode, uint32_t psn)
{
	respond_with(0,
		     (struct wire_headers){.opcode = opcode,
					   .psn = psn,
					   .syndrome = aeth_ack(AETH_CREDIT_INVALID)},
		     opcode == WIRE_RC_ATOMIC_ACK ? 0 : FX_MTU, 1);
	rrc_poll(fx->e);
}

/* Of the four opcodes exactly those of `mask` are taken as the next response, which is number
 * `index` of a READ of `packets`; the last of the mask is. A dropped one changes nothing. */
static void assert_next(uint32_t index, uint8_t mask)
{
	struct qp *q = fx->qp[0];
	uint64_t drops = fx_counter(COUNTER_drop_resp_opcode);
	unsigned taken = 0;

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		if (mask >> i & 1) {
			taken = opcodes[i];
			continue;
		}
		response(opcodes[i], P(index));
		assert_int_equal(fx_counter(COUNTER_drop_resp_opcode), ++drops);
		assert_int_equal(q->rrc.read_packets, index);
		assert_no_retransmission();
	}
	response(taken, P(index));
	assert_int_equal(fx_counter(COUNTER_drop_resp_opcode), drops);
}

TEST(c9_133__opcodes_of_read_responses)
{
	for (uint32_t packets = 1; packets <= 4; packets++) {
		fx->qp[0]->rtc.next_psn = fx->qp[0]->rrc.unacked_psn = FX_PSN;
		read_request(packets);
		for (uint32_t i = 0; i < packets; i++)
			assert_next(i, packets == 1	  ? ONLY
				       : i == 0		  ? FIRST
				       : i == packets - 1 ? LAST
							  : MIDDLE);
		fx_assert_cqe(USER_RDMA_READ, 0);
		fx_assert_no_cqe();
	}
}

/* Asked again from `at`: there, and only there, it may start over or continue. */
static void ask_again(uint32_t packets, uint32_t at, uint8_t begin)
{
	unsigned qp = 0;
	struct qp *q = fx->qp[qp];

	q->rtc.next_psn = q->rrc.unacked_psn = FX_PSN;
	q->rrc.retry_left = 7;
	read_request(packets);
	for (uint32_t i = 0; i < at; i++)
		response(i ? WIRE_RC_READ_RESP_MIDDLE : WIRE_RC_READ_RESP_FIRST, P(i));
	expire(0, TIMER_LOSS);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(at));
	response(begin, P(at));
	for (uint32_t i = at + 1; i < packets; i++)
		assert_next(i, i == packets - 1 ? LAST : MIDDLE);
	fx_assert_cqe(USER_RDMA_READ, 0);
	fx_assert_counter(drop_resp_length, 0);
	fx_assert_no_cqe();
}

TEST(c9_133__opcodes_after_asking_again)
{
	for (uint32_t packets = 2; packets <= 5; packets++)
		for (uint32_t at = 0; at < packets; at++) {
			bool last = at == packets - 1;

			ask_again(packets, at,
				  last ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_READ_RESP_FIRST);
			if (at)
				ask_again(packets, at,
					  last ? WIRE_RC_READ_RESP_LAST : WIRE_RC_READ_RESP_MIDDLE);
		}
}

/* A repeated request from the middle of one READ does not let the next READ start over. */
TEST(c9_133__asking_again_ends_with_the_read)
{
	ask_again(4, 2, WIRE_RC_READ_RESP_FIRST);
	fx->qp[0]->rtc.next_psn = fx->qp[0]->rrc.unacked_psn = FX_PSN;
	read_request(4);
	assert_next(0, FIRST);
	assert_next(1, MIDDLE);
	assert_next(2, MIDDLE);
	assert_next(3, LAST);
	fx_assert_cqe(USER_RDMA_READ, 0);
}

/* Nor does it let a READ behind it start over. */
TEST(c9_133__asking_again_is_about_one_read)
{
	read_request(4);
	send_request(0, USER_RDMA_READ, 4 * FX_MTU, 64);
	sent();
	response(WIRE_RC_READ_RESP_FIRST, P(0));
	response(WIRE_RC_READ_RESP_MIDDLE, P(1));
	expire(0, TIMER_LOSS);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(2));
	assert_retransmission(WIRE_RC_READ_REQUEST, P(4));
	response(WIRE_RC_READ_RESP_FIRST, P(6));
	fx_assert_counter(drop_resp_opcode, 1);
	assert_no_retransmission();
	response(WIRE_RC_READ_RESP_FIRST, P(2));
	response(WIRE_RC_READ_RESP_LAST, P(3));
	fx_assert_cqe(USER_RDMA_READ, 0);
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

/* A READ or atomic further on has answered: the oldest one's response is lost. */
TEST(c9_134__response_of_a_later_read)
{
	send_request(0, USER_RDMA_WRITE, 8, 0);
	send_request(0, USER_RDMA_READ, FX_MTU, 64);
	send_request(0, USER_ATOMIC_FA, 8, 128);
	sent();
	response(WIRE_RC_ATOMIC_ACK, P(2));
	fx_assert_cqe(USER_RDMA_WRITE, 0);
	fx_assert_no_cqe();
	assert_retransmission(WIRE_RC_READ_REQUEST, P(1));
	assert_retransmission(WIRE_RC_FETCH_ADD, P(2));
}

TEST(c9_134__response_of_a_later_read_begins_with_its_first)
{
	for (unsigned i = 0; i < 4; i++)
		send_request(0, USER_RDMA_READ, (i & 1 ? 1 : 2) * FX_MTU, 64 * i);
	sent();
	response(WIRE_RC_READ_RESP_ONLY, P(2));
	fx_assert_counter(drop_resp_opcode, 0);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 4);
	fx_unfill(CHANNEL_RRC_RPG);
	fx->e->now_ns += 1000000;
	response(WIRE_RC_READ_RESP_FIRST, P(3));
	fx_assert_counter(drop_resp_opcode, 0);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 4);
	assert_retransmission(WIRE_RC_READ_REQUEST, P(0));
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

/* An acknowledgement of any kind has no payload. */
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

/* The network doubles an RNR NAK: one wait, one retry. */
TEST(c9_132__doubled_rnr_nak)
{
	send_request(0, USER_SEND, 8, 0);
	sent();
	for (unsigned i = 0; i < 5; i++)
		respond(0, P(0), aeth_rnr(1), 0);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_TC), 1);
	assert_int_equal(fx->qp[0]->rrc.rnr_left, 1);
	assert_int_equal(qp_state(fx->qp[0]), QP_RTS);
	expire(0, TIMER_RNR);
	assert_retransmission(WIRE_RC_SEND_ONLY, P(0));
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

TEST(c9_061__a_message_longer_than_the_window)
{
	fx->qp[0]->mtu_bytes = 256;
	fx_fill(CHANNEL_RTC_RPG, 4);
	send_request(0, USER_RDMA_WRITE, 1u << 31, 0);
	rtc_poll(fx->e);
	assert_int_equal(fx->qp[0]->rtc.parked, PARK_NONE);
	assert_int_equal(mq_count(&fx->qp[0]->mq.sw), 4);
}
