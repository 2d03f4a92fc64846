/* SPDX-License-Identifier: BSD-3-Clause */
/* ExecutionEngine by itself, where whole HCAs do not show it: waits, full rings, bounds, a client that
 * lies, packets at random. What it does with each request is tested in tests/conformance. */
#include "execution_engine.h"
#include "responder_fixture.h"
#include "virt-to-phys/payload_ref.h"

TEST(rc_write__address_is_kept_over_packets)
{
	uint32_t total = 2 * FX_MTU + 5;

	fx->e.settings.nt_copy_bytes = 1;
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_WRITE_FIRST, .psn = FX_PSN, .va = FX_VA + 3,
		.rkey = FX_KEY, .dma_len = total);
	fx_poll(1);
	fx_send(FX_MTU, 2, .opcode = WIRE_RC_WRITE_MIDDLE, .psn = FX_PSN + 1);
	fx_send(5, 3, .opcode = WIRE_RC_WRITE_LAST, .psn = 0, .ackreq = 1);
	fx_poll(1);
	fx_assert_pattern(fx->memory + 3, FX_MTU, 1);
	fx_assert_pattern(fx->memory + 3 + FX_MTU, FX_MTU, 2);
	fx_assert_pattern(fx->memory + 3 + 2 * FX_MTU, 5, 3);
	assert_int_equal(fx->memory[2], 0xee);
	assert_int_equal(fx->memory[3 + total], 0xee);
	fx_assert_ack(0, 31, 1);
	fx_assert_no_frame();
	fx_assert_counter(executed_bytes, total);
}

/* In one burst, and in one of its own, the second is judged alike, and not as the first was. */
TEST(rc_write__behind_one_of_one_packet)
{
	enum { NAK = 3 << 5 };
	static const struct {
		uint32_t bytes, dma_len, key, va, ahead, executed;
		uint8_t syndrome;
	} rows[] = {
		{64, 64, FX_KEY, FX_VA + 64, 1, 2, 31},
		{64, 64, FX_KEY, FX_VA + 64, 0, 1, 31}, /* a duplicate */
		{0, 0, 1, 0, 1, 2, 31},
		{64, 64, FX_KEY, FX_VA, 2, 1, NAK | AETH_NAK_SEQUENCE},
		{64, 60, FX_KEY, FX_VA, 1, 1, NAK | AETH_NAK_INVALID_REQUEST},
		{FX_MTU + 4, FX_MTU + 4, FX_KEY, FX_VA, 1, 1, NAK | AETH_NAK_INVALID_REQUEST},
		{64, 64, FX_READ_KEY, FX_VA, 1, 1, NAK | AETH_NAK_REMOTE_ACCESS},
		{64, 64, FX_KEY, FX_VA - 1, 1, 1, NAK | AETH_NAK_REMOTE_ACCESS},
	};

	for (unsigned i = 0; i < 2 * RTE_DIM(rows); i++) {
		uint64_t executed = fx_counter(COUNTER_executed);
		unsigned row = i / 2;

		memset(&fx->qp->ee, 0, sizeof(fx->qp->ee));
		fx->qp->state = QP_RTS;
		fx_send(64, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA,
			.rkey = FX_KEY, .dma_len = 64);
		if (i % 2)
			fx_poll(1);
		fx_send(rows[row].bytes, 2, .opcode = WIRE_RC_WRITE_ONLY,
			.psn = psn_add(FX_PSN, rows[row].ahead), .va = rows[row].va,
			.rkey = rows[row].key, .dma_len = rows[row].dma_len, .ackreq = 1);
		fx_poll(1);
		assert_int_equal(fx_frame()->h.syndrome, rows[row].syndrome);
		assert_int_equal(fx_counter(COUNTER_executed) - executed, rows[row].executed);
		fx_assert_pattern(fx->memory, 64, 1);
	}
}

/* The same of SENDs: what their descriptors are like makes no difference. */
TEST(send__behind_one_of_one_packet)
{
	static const struct {
		unsigned units;
		struct wqe_data data[2];
		uint32_t executed;
		enum aeth_kind kind;
		uint8_t code;
	} rows[] = {
		{1, {{64, FX_KEY, FX_VA + 64}}, 2, AETH_ACK, 0},
		{2, {{32, FX_KEY, FX_VA + 64}, {32, FX_KEY, FX_VA + 96}}, 2, AETH_ACK, 0},
		{0, {{0}}, 1, AETH_RNR, 12},
		{1, {{63, FX_KEY, FX_VA}}, 1, AETH_NAK, AETH_NAK_INVALID_REQUEST},
		{1, {{64 | WQE_INLINE, FX_KEY, FX_VA}}, 1, AETH_NAK, AETH_NAK_REMOTE_OPERATION},
		{1, {{64, FX_READ_KEY, FX_VA}}, 1, AETH_NAK, AETH_NAK_REMOTE_OPERATION},
	};

	for (unsigned i = 0; i < 2 * RTE_DIM(rows); i++) {
		uint64_t executed = fx_counter(COUNTER_executed);
		const struct fx_frame *f;
		unsigned row = i / 2;

		memset(&fx->qp->ee, 0, sizeof(fx->qp->ee));
		memset(&fx->qp->rwm, 0, sizeof(fx->qp->rwm));
		fx->record.rq_posted = 0;
		fx->qp->state = QP_RTS;
		fx_post_simple(0, 64);
		if (rows[row].units)
			fx_post(rows[row].units, rows[row].data);
		fx_send(64, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
		if (i % 2)
			fx_poll(1);
		fx_send(64, 2, .opcode = WIRE_RC_SEND_ONLY, .psn = psn_add(FX_PSN, 1), .ackreq = 1);
		fx_poll(1);
		f = fx_frame();
		assert_int_equal(aeth_kind(f->h.syndrome), rows[row].kind);
		if (rows[row].kind != AETH_ACK)
			assert_int_equal(aeth_value(f->h.syndrome), rows[row].code);
		assert_int_equal(fx_counter(COUNTER_executed) - executed, rows[row].executed);
		if (rows[row].executed == 2)
			fx_assert_pattern(fx->memory + 64, 64, 2);
	}
}

/* Another lcore holds what the READ needs: it continues when that is over, each time. */
enum { PAGES_KEY = 0x5522, PAGE = 4096 };

/* A region of three pages: the fourth of memory, the second, and one that is missing. */
static void make_pages(void)
{
	const uint64_t page[3] = {(uintptr_t)fx->memory + 3 * PAGE, (uintptr_t)fx->memory + PAGE,
				  0};
	struct mpt_entry m = {.key = PAGES_KEY,
			      .pd = FX_PD,
			      .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ |
					ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC,
			      .flags = MPT_PAGES,
			      .start = FX_VA,
			      .length = 3 * PAGE,
			      .mtt_first = 6,
			      .log_page = 12};

	assert_int_equal(v2p_write_mtt(&fx->v2p, m.mtt_first, page, 3), 0);
	assert_int_equal(v2p_write_mpt(&fx->v2p, &m), 0);
}

TEST(rc_write__into_a_page_that_is_not_there)
{
	make_pages();
	fx_send(200, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA + 2 * PAGE - 100,
		.rkey = PAGES_KEY, .dma_len = 200, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_nak(AETH_NAK_REMOTE_ACCESS), 0);
	assert_int_equal(fx_counter(COUNTER_v2p_length_error), 1);
}

TEST(rc_read__waits_for_virt_to_phys)
{
	struct tpt_hold hold;
	uint64_t made;

	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = FX_MEMORY_BYTES);
	for (unsigned n = 1; n <= 2; n++) {
		fx_poll(1);
		made = fx_counter(COUNTER_read_response_packets);
		assert_true(made && made < FX_MEMORY_BYTES / FX_MTU);
		assert_true(tpt_take(&fx->v2p.mpt_cache, v2p_index(&fx->v2p, FX_KEY), NULL, &hold));
		fx_poll(3);
		assert_int_equal(fx_counter(COUNTER_read_response_packets), made);
		assert_int_equal(fx_counter(COUNTER_v2p_pending), n);
		tpt_release(&hold);
	}
	fx_poll(20);
	assert_int_equal(fx_counter(COUNTER_read_response_packets), FX_MEMORY_BYTES / FX_MTU);
	assert_int_equal(fx->qp->state, QP_RTS);
}

TEST(rc_read__duplicate_waits_for_virt_to_phys)
{
	struct tpt_hold hold;

	fx_send_read(FX_QPN, FX_PSN, 1);
	fx_poll(3);
	fx_frame();
	assert_true(tpt_take(&fx->v2p.mpt_cache, v2p_index(&fx->v2p, FX_KEY), NULL, &hold));
	fx_send_read(FX_QPN, FX_PSN, 1);
	fx_poll(3);
	fx_assert_no_frame();
	tpt_release(&hold);
	fx_poll(3);
	assert_int_equal(fx_frame()->h.psn, FX_PSN);
	fx_assert_counter(drop_duplicate, 0);
}

/* Has the request that was sent last refer to memory behind its target. Its turn ends with the copy: it is
 * the first bytes of the target. */
static void refer_to_what_ends(void)
{
	struct rte_mbuf *m;

	assert_int_equal(channel_take(&fx->e.channel[CHANNEL_HP_EE], &m, 1), 1);
	arrival_of(m)->payload_elsewhere = 1;
	assert_true(payload_ref_make(&fx->port, V2P_EE_DATA,
				     &(struct v2p_access){.pd = FX_PD,
							  .key = FX_READ_KEY,
							  .va = FX_VA + FX_MTU,
							  .length = FX_MTU,
							  .rights = V2P_LOCAL_READ},
				     (uint64_t *)fx->memory, (uint8_t *)arrival_of(m)->payload));
	channel_put_one(&fx->e.channel[CHANNEL_HP_EE], m);
}

/* It is as if it had not come; the next one with its number is executed. */
TEST(payload__copied_too_late)
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_ONLY, WIRE_RC_SEND_ONLY};

	fx_post_simple(0, FX_MTU);
	for (uint32_t i = 0; i < RTE_DIM(opcodes); i++) {
		struct wire_headers h = fx_write(FX_PSN + i);

		h.opcode = opcodes[i];
		h.dma_len = FX_MTU;
		memset(fx->memory, 0x11, FX_MTU);
		fx_send_to(FX_QPN, h, FX_MTU, 0);
		refer_to_what_ends();
		fx_poll(2);
		fx_assert_counter(drop_payload_gone, i + 1);
		fx_assert_no_frame();
		fx_assert_no_cqe();
		fx_send_to(FX_QPN, h, FX_MTU, 7);
		fx_poll(2);
		fx_assert_ack(FX_PSN + i, 31, i + 1);
		fx_assert_pattern(fx->memory, FX_MTU, 7);
	}
	fx_assert_cqe(USER_RECV, FX_MTU, 0, 0);
}

TEST(ud_send__reserved_opcode)
{
	fx->qp->service = SERVICE_UD;
	fx_post_simple(0, 100);
	fx->qp->qkey = 0; /* the parser's result for an unknown header */
	fx_send(8, 6, .opcode = 0x7f, .psn = 1);
	fx_poll(1);
	fx_assert_no_cqe();
	fx_assert_counter(drop_ud_qkey, 1);
}

TEST(send__client_claims_too_many)
{
	fx->record.rq_posted = FX_RQ_ENTRIES + 1;
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_nak(AETH_NAK_REMOTE_OPERATION), 0);
	fx_assert_no_frame();
	assert_int_equal(fx->qp->state, QP_ERR);
	fx_assert_event(EQE_WQ_CATAS_ERROR, FX_QPN);
	fx_poll(2);
	fx_assert_no_cqe(); /* nothing of it is believed */
	fx_assert_no_frame();
}

TEST(error__flush_is_bounded_per_poll)
{
	fx->qp->rq_entries = 128;
	fx->qp->record->rq_posted = 100;
	qp_set_error(&fx->e, fx->qp);
	assert_int_equal(fx_poll(1), EE_FLUSH_BUDGET);
	assert_int_equal(fx_poll(1), 100 - EE_FLUSH_BUDGET);
	assert_int_equal(fx_poll(1), 0);
	assert_int_equal(fx->qp->rwm.consumed, 100);
}

TEST(output_full__no_packet_is_taken)
{
	struct channel *out = &fx->e.channel[CHANNEL_RESPG_TXA];
	struct wire_headers h = fx_write(FX_PSN);
	unsigned answers = channel_infos[CHANNEL_EE_RESPG].depth;
	unsigned sent = 0;

	while (channel_room(out))
		channel_put_one(out, rte_pktmbuf_alloc(fx->e.packets));
	while (sent < answers + 100) { /* one ACK each */
		h.psn = psn_add(FX_PSN, sent++);
		fx_send_to(FX_QPN, h, 4, 0);
		responder_exec_poll(&fx->e);
	}
	assert_int_equal(rte_ring_count(fx->e.channel[CHANNEL_EE_RESPG].ring), answers);
	assert_int_equal(rte_ring_count(fx->e.channel[CHANNEL_HP_EE].ring), 100);
	assert_int_equal(fx->qp->ee.msn, answers);
	assert_int_equal(responder_exec_poll(&fx->e), 0);
}

/* Anything that HeaderParser may let through, in any order: no crash, nothing lost, PSNs never go
 * back. */
TEST(storm__random_requests)
{
	uint64_t x = 88172645463325252ull;
	struct wire_headers h;

	fx->e.settings.e2e_credits = true;
	for (unsigned i = 0; i < 30000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		h = (struct wire_headers){.opcode = x % 24,
					  .psn = psn_add(fx->qp->ee.expected_psn,
							 (x >> 8) % 16 < 3 ? (x >> 12) % 9 - 6 : 0),
					  .ackreq = x >> 40 & 1,
					  .va = FX_VA + (x >> 20) % FX_MEMORY_BYTES,
					  .dma_len = (x >> 44) % 1024};
		h.rkey = (x >> 30) % 16 ? FX_KEY : 0x99;
		if (!(wire_opcodes[h.opcode].flags & WIRE_REQUEST) && h.opcode != 0x15)
			continue;
		if (fx->qp->state == QP_ERR && (x >> 50) % 8 == 0 && !fx->qp->respg.active.listed) {
			struct qp_link starved = fx->qp->ee.starved;

			memset(&fx->qp->ee, 0, sizeof(fx->qp->ee));
			fx->qp->ee.starved = starved;
			fx->qp->state = QP_RTS;
		}
		if ((x >> 25) % 4 == 0 &&
		    fx->record.rq_posted - fx->qp->rwm.consumed < FX_RQ_ENTRIES)
			fx_post_simple((x >> 9) % 4096, (x >> 28) % 1200);
		fx_send(wire_opcodes[h.opcode].headers & WIRE_HAS_PAYLOAD
				? ((x >> 36) % 4 ? FX_MTU : (x >> 37) % 300)
				: 0,
			1, .opcode = h.opcode, .psn = h.psn, .ackreq = h.ackreq, .va = h.va,
			.dma_len = h.dma_len, .rkey = h.rkey);
		if (x >> 60 > 10 || rte_ring_free_count(fx->e.channel[CHANNEL_HP_EE].ring) == 0)
			fx_poll(1);
		fx->frame_count = fx->frame_next = 0;
		fx->cq_record.consumer_index = (uint32_t)fx->completion.cqs[FX_CQN & 63].produced;
		for (unsigned k = 0; k < 128; k++)
			fx->cq[k].owner = CQE_OWNER_HW;
	}
	for (unsigned i = 0; i < 20; i++) {
		fx_poll(1);
		fx->frame_count = 0;
	}
	assert_int_equal(rte_mempool_in_use_count(fx->rx), 0);
	assert_true(fx_counter(COUNTER_executed) > 100);
	assert_true(fx_counter(COUNTER_nak_invalid_sent) > 100);
}
