/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connection: every kind of request, acknowledgements and duplicates. */
#include "responder_fixture.h"

#define ACK_NO_CREDITS 31

TEST(rc_send_only__writes_and_completes)
{
	fx->keep_rx = true;
	fx_post_simple(64, 300);
	fx_send(99, 5, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN, .ackreq = 1);
	fx_poll(1);
	fx_assert_pattern(fx->memory + 64, 99, 5);
	assert_int_equal(fx->memory[64 + 99], 0xee);
	fx_assert_cqe(USER_RECV, 99, 0, 0);
	fx_assert_ack(FX_PSN, ACK_NO_CREDITS, 1);
	fx_assert_no_frame();
	fx_assert_counter(executed, 1);
	fx_assert_counter(executed_bytes, 99);
}

TEST(rc_send__scatters_three_packets_over_entries)
{
	const struct wqe_data d[] = {
		{100, FX_KEY, FX_VA}, {0, FX_KEY, FX_VA}, {500, FX_KEY, FX_VA + 1000}};

	fx->qp->rq_stride = 128;
	fx_post_simple(0, 0);
	fx->record.rq_posted = 0;
	fx_post(3, d);
	fx_send(FX_MTU, 0, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_send(FX_MTU, 50, .opcode = WIRE_RC_SEND_MIDDLE, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_no_frame();
	fx_assert_no_cqe();
	fx_assert_pattern(fx->memory, 100, 0);
	assert_int_equal(fx->memory[1000], fx_pattern(0, 100));
	assert_int_equal(fx->memory[1000 + 156], fx_pattern(50, 0));
	fx_send(3, 9, .opcode = WIRE_RC_SEND_LAST_IMM, .psn = 0, .imm = 0x12345678);
	fx_poll(1);
	fx_assert_no_frame(); /* not requested */
}

TEST(rc_send_last_imm__completes_whole_message)
{
	fx_post_simple(0, 1000);
	fx_post_simple(2000, 1000);
	fx_send(FX_MTU, 0, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_send(10, 3, .opcode = WIRE_RC_SEND_LAST_IMM, .psn = FX_PSN + 1, .imm = 0xdeadbeef,
		.ackreq = 1);
	fx_send(0, 0, .opcode = WIRE_RC_SEND_ONLY, .psn = 0, .ackreq = 1);
	fx_poll(1);
	fx_assert_cqe(USER_RECV_IMM, FX_MTU + 10, 0xdeadbeef, 0);
	fx_assert_cqe(USER_RECV, 0, 0, FX_RQ_STRIDE);
	fx_assert_ack(0, ACK_NO_CREDITS, 2); /* one for both */
	fx_assert_no_frame();
	fx_assert_pattern(fx->memory + FX_MTU, 10, 3);
}

enum { WINDOW = 0x4711 };

static void make_window(uint32_t pd, uint32_t flags)
{
	struct mpt_entry m = {.key = WINDOW,
			      .pd = pd,
			      .access = ACCESS_REMOTE_WRITE,
			      .flags = flags,
			      .start = FX_VA,
			      .length = 64,
			      .phys = fx->memory};

	assert_int_equal(v2p_write_mpt(&fx->v2p, &m), 0);
}

static void write_window(uint32_t psn)
{
	fx_send(4, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = psn & PSN_MASK, .va = FX_VA,
		.rkey = WINDOW, .dma_len = 4, .ackreq = 1);
	fx_poll(1);
}

TEST(rc_send_inv__invalidates_the_key)
{
	make_window(FX_PD, MPT_INVALIDATE_REMOTE);
	write_window(FX_PSN);
	fx_assert_ack(FX_PSN, ACK_NO_CREDITS, 1);
	fx_post_simple(0, 1000);
	fx_send(4, 0, .opcode = WIRE_RC_SEND_ONLY_INV, .psn = FX_PSN + 1, .invalidate_rkey = WINDOW,
		.ackreq = 1);
	fx_poll(1);
	fx_assert_cqe(USER_RECV_INV, 4, WINDOW, 0);
	fx_assert_ack(FX_PSN + 1, ACK_NO_CREDITS, 2);
	fx_send(4, 0, .opcode = WIRE_RC_SEND_ONLY_INV, .psn = FX_PSN + 1, .invalidate_rkey = WINDOW,
		.ackreq = 1); /* not executed again */
	fx_poll(1);
	fx_assert_ack(FX_PSN + 1, ACK_NO_CREDITS, 2);
	write_window(0);
	fx_assert_ack(0, aeth_nak(AETH_NAK_REMOTE_ACCESS), 2);
}

TEST(rc_send_inv__with_the_last_packet)
{
	make_window(FX_PD, MPT_INVALIDATE_REMOTE);
	fx_post_simple(0, 1000);
	fx_send(FX_MTU, 0, .opcode = WIRE_RC_SEND_FIRST, .psn = FX_PSN);
	fx_poll(1);
	assert_true(fx_key_is_valid(WINDOW));
	fx_send(4, 0, .opcode = WIRE_RC_SEND_LAST_INV, .psn = FX_PSN + 1, .invalidate_rkey = WINDOW,
		.ackreq = 1);
	fx_poll(1);
	fx_assert_cqe(USER_RECV_INV, FX_MTU + 4, WINDOW, 0);
	fx_assert_ack(FX_PSN + 1, ACK_NO_CREDITS, 1);
	write_window(0);
	fx_assert_ack(0, aeth_nak(AETH_NAK_REMOTE_ACCESS), 1);
}

TEST(rc_send_inv__a_key_that_is_not_to_be_invalidated)
{
	static const struct {
		uint32_t key, pd, flags;
		enum counter counter;
	} bad[] = {
		{FX_KEY, FX_PD, 0, COUNTER_v2p_flags_error},
		{WINDOW, FX_PD + 1, MPT_INVALIDATE_REMOTE, COUNTER_v2p_pd_error},
		{WINDOW + 0x10000, FX_PD, MPT_INVALIDATE_REMOTE, COUNTER_v2p_key_error},
		{0, FX_PD, MPT_INVALIDATE_REMOTE, COUNTER_v2p_key_error},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (i) {
			fx_teardown(state);
			fx_setup(state);
		}
		make_window(bad[i].pd, bad[i].flags);
		fx_post_simple(0, 1000);
		fx_send(4, 0, .opcode = WIRE_RC_SEND_ONLY_INV, .psn = FX_PSN,
			.invalidate_rkey = bad[i].key, .ackreq = 1);
		fx_poll(1);
		fx_assert_no_frame();
		fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_ACCESS, 0);
		fx_assert_event(EQE_WQ_ACCESS_ERROR, FX_QPN);
		assert_int_equal(fx->qp->state, QP_ERR);
		assert_int_equal(fx_counter(bad[i].counter), 1);
		assert_true(fx_key_is_valid(WINDOW));
		assert_true(fx_key_is_valid(FX_KEY));
	}
}

/* An error before that leaves the key as it is. */
TEST(rc_send_inv__not_when_the_message_fails)
{
	make_window(FX_PD, MPT_INVALIDATE_REMOTE);
	fx_post_simple(0, 3);
	fx_send(4, 0, .opcode = WIRE_RC_SEND_ONLY_INV, .psn = FX_PSN, .invalidate_rkey = WINDOW);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_nak(AETH_NAK_INVALID_REQUEST), 0);
	assert_true(fx_key_is_valid(WINDOW));
}

TEST(rc_write_only__writes_and_is_acknowledged)
{
	fx->keep_rx = true;
	fx_send(64, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA + 8, .rkey = FX_KEY,
		.dma_len = 64, .ackreq = 1);
	fx_poll(1);
	fx_assert_pattern(fx->memory + 8, 64, 1);
	fx_assert_ack(FX_PSN, ACK_NO_CREDITS, 1);
	fx_assert_no_cqe();
}

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
	fx_assert_ack(0, ACK_NO_CREDITS, 1);
	fx_assert_no_frame();
}

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

TEST(rc_write__crosses_a_page_border)
{
	make_pages();
	fx_send(200, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA + PAGE - 100,
		.rkey = PAGES_KEY, .dma_len = 200, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, ACK_NO_CREDITS, 1);
	fx_assert_pattern(fx->memory + 4 * PAGE - 100, 100, 1);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(fx->memory[PAGE + i], fx_pattern(1, 100 + i));
	assert_int_equal(fx->memory[4 * PAGE], 0xee);
	assert_int_equal(fx->memory[PAGE + 100], 0xee);
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

TEST(rc_write_imm__consumes_a_receive)
{
	fx_post_simple(512, 1);
	fx_send(FX_MTU, 1, .opcode = WIRE_RC_WRITE_FIRST, .psn = FX_PSN, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = FX_MTU + 4);
	fx_send(4, 3, .opcode = WIRE_RC_WRITE_LAST_IMM, .psn = FX_PSN + 1, .imm = 77, .ackreq = 1,
		.se = 1);
	fx_poll(1);
	fx_assert_pattern(fx->memory + FX_MTU, 4, 3);
	fx_assert_cqe(USER_RECV_RDMA_IMM, FX_MTU + 4, 77, 0);
	fx_assert_ack(FX_PSN + 1, ACK_NO_CREDITS, 1);
}

TEST(rc_read__answered_in_packets)
{
	static const uint8_t opcodes[] = {WIRE_RC_READ_RESP_FIRST, WIRE_RC_READ_RESP_MIDDLE,
					  WIRE_RC_READ_RESP_LAST};

	for (unsigned i = 0; i < 600; i++)
		fx->memory[i] = fx_pattern(4, i);
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 2 * 256 + 33);
	fx_poll(1);
	for (unsigned i = 0; i < 3; i++) {
		const struct fx_frame *f = fx_frame();

		assert_int_equal(f->h.opcode, opcodes[i]);
		assert_int_equal(f->h.psn, psn_add(FX_PSN, i));
		assert_int_equal(f->bytes, i < 2 ? 256 : 33);
		assert_memory_equal(f->payload, fx->memory + i * 256, f->bytes);
		if (i != 1) {
			assert_int_equal(f->h.syndrome, ACK_NO_CREDITS);
			assert_int_equal(f->h.msn, 1);
		}
	}
	fx_assert_no_frame();
	assert_int_equal(fx->qp->ee.expected_psn, 1);
	assert_false(fx->qp->respg.active.listed);
	fx_assert_counter(read_response_packets, 3);
}

/* Another lcore holds what the READ needs: it continues when that is over, each time. */
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

TEST(rc_read__large_mtu_fused_copy_with_pad)
{
	fx->qp->mtu_bytes = 4096;
	for (unsigned i = 0; i < 8192; i++)
		fx->memory[i] = fx_pattern(4, i);
	for (unsigned n = 4096; n < 4100; n++) {
		fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST,
			.psn = fx->qp->ee.comm_est ? fx->qp->ee.expected_psn : FX_PSN,
			.va = FX_VA + 1, .rkey = FX_READ_KEY, .dma_len = n + 3000);
		fx_poll(1);
		fx_assert_pattern(fx->memory, 1, 4);
		assert_memory_equal(fx_frame()->payload, fx->memory + 1, 4096);
		assert_memory_equal(fx->frames[fx->frame_next].payload, fx->memory + 4097,
				    n - 1096);
		assert_int_equal(fx_frame()->bytes, n - 1096);
	}
}

TEST(rc_read__zero_length_is_one_only_without_key_check)
{
	const struct fx_frame *f;

	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN, .va = 1, .rkey = 0x999,
		.dma_len = 0);
	fx_poll(1);
	f = fx_frame();
	assert_int_equal(f->h.opcode, WIRE_RC_READ_RESP_ONLY);
	assert_int_equal(f->bytes, 0);
	fx_assert_no_frame();
	assert_int_equal(fx->qp->ee.expected_psn, psn_add(FX_PSN, 1));
}

static void send_atomic(uint8_t opcode, uint32_t psn, uint64_t swap_add, uint64_t compare)
{
	fx_send(0, 0, .opcode = opcode, .psn = psn, .va = FX_VA + 16, .rkey = FX_KEY,
		.swap_add = swap_add, .compare = compare);
}

static void assert_atomic(uint32_t psn, uint64_t orig, uint32_t msn)
{
	const struct fx_frame *f = fx_frame();

	assert_int_equal(f->h.opcode, WIRE_RC_ATOMIC_ACK);
	assert_int_equal(f->h.psn, psn & PSN_MASK);
	assert_int_equal(f->h.orig, orig);
	assert_int_equal(f->h.msn, msn);
}

TEST(rc_atomic__executes_and_replays)
{
	uint64_t *p = (uint64_t *)(fx->memory + 16);

	*p = 100;
	send_atomic(WIRE_RC_FETCH_ADD, FX_PSN, 5, 0);
	send_atomic(WIRE_RC_CMP_SWAP, FX_PSN + 1, 7, 105);
	send_atomic(WIRE_RC_CMP_SWAP, 0, 8, 105);
	fx_poll(1);
	assert_atomic(FX_PSN, 100, 1);
	assert_atomic(FX_PSN + 1, 105, 2);
	assert_atomic(0, 7, 3);
	assert_int_equal(*p, 7);
	send_atomic(WIRE_RC_FETCH_ADD, FX_PSN, 5, 0);
	send_atomic(WIRE_RC_FETCH_ADD, FX_PSN - 1, 5, 0);
	fx_poll(1);
	assert_atomic(FX_PSN, 100, 3);
	fx_assert_no_frame();
	assert_int_equal(*p, 7);
	fx_assert_counter(drop_duplicate, 1);
	fx_assert_counter(duplicate_requests, 1);
}

TEST(rc_ack__precedes_a_read_and_follows_it)
{
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8, .ackreq = 1);
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN + 1, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = 8);
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = 0, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, ACK_NO_CREDITS, 1);
	assert_int_equal(fx_frame()->h.opcode, WIRE_RC_READ_RESP_ONLY);
	fx_assert_ack(0, ACK_NO_CREDITS, 3);
	fx_assert_no_frame();
}

TEST(rc_ack__carries_credits)
{
	fx->e.settings.e2e_credits = true;
	for (unsigned i = 0; i < 4; i++)
		fx_post_simple(0, 100);
	fx_send(8, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN, .ackreq = 1);
	fx_poll(1);
	fx_assert_ack(FX_PSN, aeth_ack(aeth_credit_code(3)), 1);
}

TEST(rc_ack__one_for_each_qp)
{
	struct wire_headers h = fx_write(FX_PSN);

	for (unsigned i = 0; i < 5; i++) {
		h.psn = psn_add(FX_PSN, i);
		fx_send_to(FX_QPN, h, 4, 0);
		fx_send_to(FX_QPN2, h, 4, 0);
	}
	fx_poll(1);
	fx_assert_ack(FX_PSN + 4, ACK_NO_CREDITS, 5);
	fx_assert_ack(FX_PSN + 4, ACK_NO_CREDITS, 5);
	fx_assert_no_frame();
	fx_assert_counter(acks_sent, 2);
}

TEST(rc_duplicate_write__not_executed_but_acknowledged)
{
	for (unsigned i = 0; i < 3; i++)
		fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = psn_add(FX_PSN, i), .va = FX_VA,
			.rkey = FX_KEY, .dma_len = 8);
	fx_poll(1);
	fx_assert_no_frame();
	memset(fx->memory, 0, 8);
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8);
	fx_send(8, 1, .opcode = WIRE_RC_SEND_ONLY, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_ack(0, ACK_NO_CREDITS, 3);
	fx_assert_no_frame();
	assert_int_equal(fx->memory[0], 0);
	fx_assert_counter(duplicate_requests, 2);
	fx_assert_counter(executed, 3);
}

TEST(rc_duplicate_read__read_again_with_its_own_psns)
{
	const struct fx_frame *f;

	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 4 * FX_MTU);
	fx_poll(1);
	fx->frame_next = fx->frame_count;
	memset(fx->memory, 0x33, 4 * FX_MTU);
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN + 1, .va = FX_VA + FX_MTU,
		.rkey = FX_KEY, .dma_len = 2 * FX_MTU);
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN + 1, .va = FX_VA + FX_MTU,
		.rkey = FX_KEY, .dma_len = 4 * FX_MTU); /* reaches beyond the PSNs executed */
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN, .va = FX_VA, .rkey = 0x99,
		.dma_len = FX_MTU);
	fx_poll(1);
	f = fx_frame();
	assert_int_equal(f->h.opcode, WIRE_RC_READ_RESP_FIRST);
	assert_int_equal(f->h.psn, FX_PSN + 1);
	assert_int_equal(f->payload[0], 0x33);
	f = fx_frame();
	assert_int_equal(f->h.opcode, WIRE_RC_READ_RESP_LAST);
	assert_int_equal(f->h.psn, 0);
	fx_assert_no_frame();
	fx_assert_counter(drop_duplicate, 2);
	assert_int_equal(fx->qp->ee.expected_psn, 2);
}

/* The ACK of a duplicate has the PSN of the last request: in front of the answer to a duplicate
 * READ it would deny that one. */
TEST(c9_105__ack_of_a_duplicate_waits_for_the_read_behind_it)
{
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8);
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN + 1, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = 8);
	send_atomic(WIRE_RC_FETCH_ADD, 0, 1, 0);
	fx_poll(1);
	fx->frame_next = fx->frame_count;
	fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 8);
	fx_send(0, 0, .opcode = WIRE_RC_READ_REQUEST, .psn = FX_PSN + 1, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = 8);
	send_atomic(WIRE_RC_FETCH_ADD, 0, 1, 0);
	fx_poll(1);
	assert_int_equal(fx_frame()->h.opcode, WIRE_RC_READ_RESP_ONLY);
	assert_int_equal(fx_frame()->h.opcode, WIRE_RC_ATOMIC_ACK);
	fx_assert_ack(0, ACK_NO_CREDITS, 3);
	fx_assert_no_frame();
}

/* As many results are kept as the peer may have outstanding. */
static void results_are_kept(unsigned most)
{
	fx->qp->max_dest_rd_atomic = (uint8_t)most;
	for (unsigned i = 0; i < most + 2; i++) {
		send_atomic(WIRE_RC_FETCH_ADD, psn_add(FX_PSN, i), 1, 0);
		fx_poll(1);
	}
	fx->frame_next = fx->frame_count;
	for (unsigned i = 0; i < most + 2; i++) {
		send_atomic(WIRE_RC_FETCH_ADD, psn_add(FX_PSN, i), 1, 0);
		fx_poll(1);
	}
	for (unsigned i = 2; i < most + 2; i++) {
		const struct fx_frame *f = fx_frame();

		assert_int_equal(f->h.psn, psn_add(FX_PSN, i));
		assert_int_equal(f->h.orig - fx->frames[0].h.orig, i);
	}
	fx_assert_no_frame();
	fx_assert_counter(drop_duplicate, 2);
	fx_assert_counter(executed, most + 2);
}

TEST(o9_067__results_of_max_dest_rd_atomic_are_kept)
{
	results_are_kept(3);
}

TEST(o9_067__results_beyond_the_context_are_kept)
{
	results_are_kept(READS_MAX);
}

TEST(first_packet__raises_comm_est_once_in_rtr)
{
	fx->qp->state = QP_RTR;
	for (unsigned i = 0; i < 2; i++)
		fx_send(8, 1, .opcode = WIRE_RC_WRITE_ONLY, .psn = psn_add(FX_PSN, i), .va = FX_VA,
			.rkey = FX_KEY, .dma_len = 8);
	fx_poll(1);
	fx_assert_event(EQE_COMM_EST, FX_QPN);
	fx_assert_no_event();
	fx_assert_counter(executed, 2);
}
