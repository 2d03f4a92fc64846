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
	assert_true(payload_ref_make(fx->e->v2p_port[STAGE_RESPONDER_EXEC], V2P_EE_DATA,
				     &(struct v2p_access){.pd = FX_PD,
							  .key = FX_READ_KEY,
							  .va = FX_VA + 2 * FX_MTU,
							  .length = FX_MTU,
							  .rights = V2P_LOCAL_READ},
				     NULL, (uint8_t *)arrival_of(m)->payload));
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

/* The response put last: the network has marked it. */
static void mark_last(void)
{
	unsigned n = fx_ring_count(CHANNEL_HP_RRC);

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = fx_take(CHANNEL_HP_RRC);

		arrival_of(m)->congested = i == n - 1;
		fx_put(CHANNEL_HP_RRC, m);
	}
}

static void assert_alike(const struct qp *a, const struct qp *b)
{
	assert_int_equal(qp_state(a), qp_state(b));
	assert_int_equal(a->rrc.unacked_psn, b->rrc.unacked_psn);
	assert_int_equal(a->rrc.reads_done, b->rrc.reads_done);
	assert_int_equal(a->rrc.credits, b->rrc.credits);
	assert_int_equal(a->rrc.marks, b->rrc.marks);
	assert_int_equal(a->rrc.retry_left, b->rrc.retry_left);
	assert_int_equal(mq_count(&a->mq.rd), mq_count(&b->mq.rd));
	assert_int_equal(mq_count(&a->mq.re), mq_count(&b->mq.re));
}

/* Responses of one poll are taken as those of several, whatever one of them is like. */
TEST(read_response__runs)
{
	enum { READS = 4, ODD = 1, BYTES = 64 };
	static const struct {
		struct wire_headers h;
		uint32_t psn, bytes;
		bool marked;
	} odd[] = {
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3, .msn = 1}, ODD, BYTES, false},
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3, .msn = 1}, ODD, BYTES, true},
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 0x60}, ODD, BYTES, false},
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3}, ODD + 1, BYTES, false},
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3}, ODD - 1, BYTES, false},
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3}, READS, BYTES, false},
		{{.opcode = WIRE_RC_READ_RESP_FIRST, .syndrome = 3}, ODD, BYTES, false},
		{{.opcode = WIRE_RC_ATOMIC_ACK, .syndrome = 3}, ODD, 0, false},
		{{.opcode = WIRE_RC_ACK, .syndrome = 3}, ODD - 1, 0, false},
		{{.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3},
		 ODD,
		 BYTES - 4,
		 false}, /* last: it is fatal */
	};
	const struct wire_headers even = {.opcode = WIRE_RC_READ_RESP_ONLY, .syndrome = 3};

	fx->e->settings.loss_recovery = LOSS_RECOVERY_STANDARD; /* the two share no places */
	for (unsigned k = 0; k < RTE_DIM(odd); k++) {
		uint32_t first = fx->qp[0]->rtc.next_psn;

		for (unsigned i = 0; i < 2 * READS; i++)
			send_request(i / READS, USER_RDMA_READ, BYTES, 64 * i);
		sent();
		assert_int_equal(qp_outstanding(fx->qp[1]), READS);
		for (unsigned i = 0; i < 2 * READS; i++) {
			bool is_odd = i % READS == ODD;
			struct wire_headers h = is_odd ? odd[k].h : even;

			h.psn = psn_add(first, is_odd ? odd[k].psn : i % READS);
			respond_with(i / READS, h, is_odd ? odd[k].bytes : BYTES, i % READS);
			if (is_odd && odd[k].marked)
				mark_last();
			if (i >= READS - 1) /* the first queue pair's in one poll */
				rrc_poll(fx->e);
		}
		assert_alike(fx->qp[0], fx->qp[1]);
		for (unsigned i = 0; i < 2 * READS; i++) { /* the rest */
			struct wire_headers h = even;

			h.psn = psn_add(first, i % READS);
			respond_with(i / READS, h, BYTES, i % READS);
			rrc_poll(fx->e);
		}
		assert_alike(fx->qp[0], fx->qp[1]);
		fx_unfill(CHANNEL_RRC_RPG);
		fx_unfill(CHANNEL_RRC_TC);
		rrc_poll(fx->e); /* the retransmission is over */
	}
	assert_int_equal(qp_state(fx->qp[0]), QP_ERR);
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
