/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connection: every NAK, RNR, silence, states, flushing, and a full ring behind. */
#include "execution_engine.h"
#include "responder_fixture.h"

static const uint8_t invalid = 0x61, access_error = 0x62, operation = 0x63, sequence = 0x60;

static void assert_broken(uint8_t syndrome, uint32_t msn)
{
	fx_poll(1);
	fx_assert_ack(psn_add(FX_PSN, msn), syndrome, msn);
	fx_assert_no_frame();
	assert_int_equal(fx->qp->state, QP_ERR);
}

static void assert_refused(uint8_t syndrome, enum eqe_type event)
{
	assert_broken(syndrome, 0);
	fx_assert_event(event, FX_QPN);
	fx_assert_no_event();
	assert_int_equal(fx->memory[0], 0xee);
}

TEST(gap__one_nak_then_silence)
{
	struct wire_headers h = fx_write(FX_PSN);

	for (unsigned i = 0; i < 4; i++) {
		h.psn = psn_add(FX_PSN, i);
		if (i != 1)
			fx_send_to(FX_QPN, h, 4, 0);
	}
	fx_poll(1);
	fx_assert_ack(FX_PSN, 31, 1);
	fx_assert_ack(FX_PSN + 1, sequence, 1);
	fx_assert_no_frame();
	fx_assert_counter(drop_out_of_sequence, 2);
	h.psn = FX_PSN + 1;
	fx_send_to(FX_QPN, h, 4, 0);
	h.psn = 2;
	fx_send_to(FX_QPN, h, 4, 0);
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, 31, 2);
	fx_assert_ack(0, sequence, 2);
	fx_assert_no_frame();
	assert_int_equal(fx->qp->state, QP_RTS);
}

/* Only the expected packet ends the silence; duplicates are answered in it. */
TEST(c9_114__no_second_nak_after_a_duplicate)
{
	struct wire_headers h = fx_write(FX_PSN);
	static const uint32_t psns[] = {0, 2, 0, 3, 2};

	for (unsigned i = 0; i < sizeof(psns) / sizeof(psns[0]); i++) {
		h.psn = psn_add(FX_PSN, psns[i]);
		fx_send_to(FX_QPN, h, 4, 0);
		fx_poll(1);
	}
	fx_assert_ack(FX_PSN, 31, 1);
	fx_assert_ack(FX_PSN + 1, sequence, 1);
	fx_assert_ack(FX_PSN, 31, 1);
	fx_assert_no_frame();
}

/* And a NAK for the sequence would overtake the wait after an RNR NAK. */
TEST(c9_114__no_nak_after_an_rnr_nak_and_a_duplicate)
{
	fx_send(4, 0, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 4);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, aeth_rnr(12), 1);
	fx_send(4, 0, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 4);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = 0);
	fx_poll(1);
	fx_assert_ack(FX_PSN, 31, 1);
	fx_assert_no_frame();
}

TEST(send__rnr_until_posted)
{
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_LAST, .psn = FX_PSN + 1, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_rnr(12), 0);
	fx_assert_no_frame(); /* the rest draws nothing: the RNR must win */
	fx_post_simple(0, 2 * FX_MTU);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_LAST, .psn = FX_PSN + 1, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, 31, 1);
	fx_assert_cqe(USER_RECV, 2 * FX_MTU, 0, 0);
	fx_assert_counter(nak_rnr_sent, 1);
}

TEST(write_imm__rnr_at_its_last_packet)
{
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_WRITE_FIRST, .psn = FX_PSN, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = FX_MTU + 8);
	fx_send(8, 5, .opcode = WIRE_RC_WRITE_LAST_IMM, .psn = FX_PSN + 1, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, aeth_rnr(12), 0);
	assert_int_equal(fx->memory[FX_MTU], 0xee);
	fx_post_simple(0, 0);
	fx_send(8, 5, .opcode = WIRE_RC_WRITE_LAST_IMM, .psn = FX_PSN + 1, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, 31, 1);
	fx_assert_pattern(fx->memory + FX_MTU, 8, 5);
	fx_assert_cqe(USER_RECV_RDMA_IMM, FX_MTU + 8, 0, 0);
}

TEST(opcode__reserved)
{
	fx_send(8, 1, .opcode = 0x15, .psn = FX_PSN);
	assert_refused(invalid, EQE_WQ_INVAL_REQ_ERROR);
	fx_assert_counter(nak_invalid_sent, 1);
}

TEST(opcode__middle_without_first)
{
	fx_post_simple(0, 4000);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_MIDDLE, .psn = FX_PSN);
	assert_refused(invalid, EQE_WQ_INVAL_REQ_ERROR);
	fx_poll(1);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, 0);
}

TEST(opcode__other_message_before_last)
{
	static const uint8_t bad[] = {WIRE_RC_SEND_FIRST,   WIRE_RC_SEND_ONLY, WIRE_RC_WRITE_MIDDLE,
				      WIRE_RC_READ_REQUEST, WIRE_RC_FETCH_ADD, WIRE_RC_WRITE_ONLY};

	for (unsigned i = 0; i < sizeof(bad); i++) {
		if (i) {
			fx_teardown(state);
			fx_setup(state);
		}
		fx_post_simple(0, 4000);
		fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
		fx_send(bad[i] == WIRE_RC_READ_REQUEST || bad[i] == WIRE_RC_FETCH_ADD ? 0 : FX_MTU,
			1, .opcode = bad[i], .psn = FX_PSN + 1, .va = FX_VA, .rkey = FX_KEY,
			.dma_len = FX_MTU);
		fx_poll(1);
		fx_assert_ack(FX_PSN + 1, invalid, 0);
		fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_QP_OP, 0); /* the receive in use */
		assert_int_equal(fx->qp->state, QP_ERR);
	}
}

TEST(length__does_not_fit_the_opcode)
{
	static const struct {
		uint8_t opcode;
		uint8_t pad;
		uint32_t bytes, dma_len;
	} bad[] = {
		{WIRE_RC_SEND_FIRST, 0, FX_MTU - 4, 0},
		{WIRE_RC_SEND_FIRST, 0, FX_MTU + 4, 0},
		{WIRE_RC_SEND_FIRST, 3, FX_MTU - 3, 0},
		{WIRE_RC_SEND_ONLY, 0, FX_MTU + 1, 0},
		{WIRE_RC_WRITE_FIRST, 0, FX_MTU, FX_MTU},
		{WIRE_RC_WRITE_FIRST, 0, FX_MTU, 5},
		{WIRE_RC_WRITE_ONLY, 0, 8, 9},
		{WIRE_RC_WRITE_ONLY, 0, 8, 7},
		{WIRE_RC_WRITE_FIRST, 0, FX_MTU, (1u << 31) + 1},
		{WIRE_RC_READ_REQUEST, 0, 0, (1u << 31) + 1},
		{WIRE_RC_READ_REQUEST, 0, 4, 4},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (i) {
			fx_teardown(state);
			fx_setup(state);
		}
		fx_post_simple(0, 4000);
		fx_send(bad[i].bytes, 1, .opcode = bad[i].opcode, .psn = FX_PSN, .va = FX_VA,
			.rkey = FX_KEY, .dma_len = bad[i].dma_len, .pad = bad[i].pad);
		assert_refused(invalid, EQE_WQ_INVAL_REQ_ERROR);
	}
}

TEST(length__last_is_empty_or_wrong)
{
	for (unsigned n = 0; n < 10; n += 9) {
		if (n) {
			fx_teardown(state);
			fx_setup(state);
		}
		fx_send(FX_MTU, 1, .opcode = WIRE_RC_WRITE_FIRST, .psn = FX_PSN, .va = FX_VA,
			.rkey = FX_KEY, .dma_len = FX_MTU + 8);
		fx_send(n, 1, .opcode = WIRE_RC_WRITE_LAST, .psn = FX_PSN + 1);
		fx_poll(1);
		fx_assert_ack(FX_PSN + 1, invalid, 0);
		fx_assert_no_frame();
	}
}

TEST(access__not_enabled_on_the_qp)
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_ONLY, WIRE_RC_READ_REQUEST,
					  WIRE_RC_CMP_SWAP};
	static const uint8_t rights[] = {ACCESS_REMOTE_WRITE, ACCESS_REMOTE_READ,
					 ACCESS_REMOTE_ATOMIC};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		if (i) {
			fx_teardown(state);
			fx_setup(state);
		}
		fx->qp->access &= (uint8_t)~rights[i];
		fx_send(0, 0, .opcode = opcodes[i], .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY);
		assert_refused(invalid, EQE_WQ_INVAL_REQ_ERROR);
	}
}

TEST(access__rkey_violations)
{
	static const struct {
		uint8_t opcode;
		uint32_t key;
		uint64_t va;
		uint32_t pd;
	} bad[] = {
		{WIRE_RC_WRITE_ONLY, 0x999, FX_VA, FX_PD},
		{WIRE_RC_WRITE_ONLY, FX_READ_KEY, FX_VA, FX_PD},
		{WIRE_RC_WRITE_ONLY, FX_KEY, FX_VA - 1, FX_PD},
		{WIRE_RC_WRITE_ONLY, FX_KEY, FX_VA + FX_MEMORY_BYTES - 7, FX_PD},
		{WIRE_RC_WRITE_ONLY, FX_KEY, FX_VA, FX_PD + 1},
		{WIRE_RC_READ_REQUEST, 0x999, FX_VA, FX_PD},
		{WIRE_RC_READ_REQUEST, FX_KEY, UINT64_MAX - 3, FX_PD},
		{WIRE_RC_FETCH_ADD, FX_READ_KEY, FX_VA, FX_PD},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (i) {
			fx_teardown(state);
			fx_setup(state);
		}
		fx->qp->pd = bad[i].pd;
		fx_send(bad[i].opcode == WIRE_RC_WRITE_ONLY ? 8 : 0, 1, .opcode = bad[i].opcode,
			.psn = FX_PSN, .va = bad[i].va, .rkey = bad[i].key, .dma_len = 8);
		assert_refused(access_error, EQE_WQ_ACCESS_ERROR);
		fx_assert_counter(nak_access_sent, 1);
	}
}

TEST(access__zero_length_write_checks_no_key)
{
	fx_send(0, 0, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = 1, .rkey = 0x999,
		.ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, 31, 1);
}

TEST(access__key_revoked_during_a_write)
{
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_WRITE_FIRST, .psn = FX_PSN, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = FX_MTU + 8);
	fx_poll(1);
	v2p_invalidate_mpt(&fx->v2p, FX_KEY);
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_LAST, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, access_error, 0);
	assert_int_equal(fx->memory[FX_MTU], 0xee);
}

TEST(atomic__unaligned)
{
	fx_send(0, 0, .opcode = WIRE_RC_FETCH_ADD, .psn = FX_PSN, .va = FX_VA + 4, .rkey = FX_KEY,
		.swap_add = 1);
	assert_refused(invalid, EQE_WQ_INVAL_REQ_ERROR);
}

TEST(read__more_than_max_dest_rd_atomic)
{
	fx->qp->max_dest_rd_atomic = 2;
	for (unsigned i = 0; i < 3; i++)
		fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = psn_add(FX_PSN, i),
			.va = FX_VA, .rkey = FX_KEY, .dma_len = 4);
	fx_poll(2);
	assert_int_equal(fx_frame()->h.psn,
			 FX_PSN); /* requests before the NAK are answered (C9-87) */
	assert_int_equal(fx_frame()->h.opcode, WIRE_RC_READ_RESP_ONLY);
	fx_assert_ack(0, invalid, 2);
	fx_assert_no_frame();
	assert_int_equal(fx->qp->state, QP_ERR);
}

TEST(send__longer_than_the_buffers)
{
	fx_post_simple(0, FX_MTU + 3);
	fx_post_simple(0, 100);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_LAST, .psn = FX_PSN + 1);
	fx_poll(2);
	fx_assert_ack(FX_PSN + 1, invalid, 0);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_LENGTH, 0);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, FX_RQ_STRIDE);
	fx_assert_no_cqe();
	assert_int_equal(fx->memory[FX_MTU], 0xee);
}

TEST(send__local_protection_error)
{
	const struct wqe_data d = {.length = 100, .lkey = FX_READ_KEY, .addr = FX_VA};

	fx_post(1, &d);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	assert_broken(operation, 0);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_PROT, 0);
	fx_assert_no_event();
}

TEST(send__bad_descriptor)
{
	const struct wqe_data d = {.length = WQE_INLINE | 4, .lkey = FX_KEY, .addr = FX_VA};

	fx_post(1, &d);
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	assert_broken(operation, 0);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_QP_OP, 0);
	fx_assert_counter(bad_recv_wqe, 1);
}

TEST(send__client_claims_too_many)
{
	fx->record.rq_posted = FX_RQ_ENTRIES + 1;
	fx_send(4, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN);
	assert_broken(operation, 0);
	fx_assert_event(EQE_WQ_CATAS_ERROR, FX_QPN);
	fx_poll(2);
	fx_assert_no_cqe(); /* nothing of it is believed */
	fx_assert_no_frame();
}

TEST(nak__follows_the_pending_ack)
{
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8, .ackreq = 1);
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN + 1, .va = FX_VA, .rkey = 0x99,
		.dma_len = 8);
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = 0, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, 31, 1);
	fx_assert_ack(FX_PSN + 1, access_error, 1);
	fx_assert_no_frame();
	fx_assert_counter(drop_qp_state, 1);
}

TEST(duplicate__never_draws_a_nak)
{
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN - 1, .va = FX_VA, .rkey = 0x99,
		.dma_len = 8);
	fx_send(0, 1, .opcode = 0x15, .psn = FX_PSN - 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN - 1, 31, 0);
	fx_assert_no_frame();
	assert_int_equal(fx->qp->state, QP_RTS);
}

TEST(state__packets_are_dropped)
{
	static const uint8_t states[] = {QP_RST, QP_INIT, QP_ERR};
	struct wire_headers h = fx_write(FX_PSN);

	for (unsigned i = 0; i < sizeof(states); i++) {
		fx->qp->state = states[i];
		fx_send_to(FX_QPN, h, 4, 0);
		fx_poll(1);
	}
	fx_send_to(FX_QPN + 0x10000, h, 4, 0); /* same index, former number */
	fx_poll(1);
	fx_assert_no_frame();
	fx_assert_counter(drop_qp_state, 4);
	assert_int_equal(fx->memory[0], 0xee);
}

TEST(error__flushes_open_receive_first_and_again)
{
	fx_post_simple(0, 1000);
	fx_post_simple(0, 1000);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_poll(1);
	qp_set_error(&fx->e, fx->qp);
	assert_int_equal(fx_poll(1), 2);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, 0);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, FX_RQ_STRIDE);
	fx_assert_no_cqe();
	fx_post_simple(0, 1000);
	fx_poll(1);
	fx_assert_no_cqe();
	wake_post(&fx->e.wake[WAKE_EE], &fx->qp->wake[WAKE_EE], fx->qp->index);
	fx_poll(1);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_WR_FLUSH, 2 * FX_RQ_STRIDE);
	fx_assert_no_cqe();
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
