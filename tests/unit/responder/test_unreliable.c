/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connection and datagram: nothing is ever answered. */
#include "responder_fixture.h"

static void as_uc(void)
{
	fx->qp->service = SERVICE_UC;
}

static void as_ud(void)
{
	fx->qp->service = SERVICE_UD;
}

TEST(uc_send_and_write__executed_without_an_answer)
{
	as_uc();
	fx_post_simple(0, 1000);
	fx_post_simple(0, 1000);
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_SEND_FIRST, .psn = FX_PSN, .ackreq = 1);
	fx_send(FX_MTU, 2, .opcode = WIRE_UC_SEND_MIDDLE, .psn = FX_PSN + 1);
	fx_send(5, 3, .opcode = WIRE_UC_SEND_LAST_IMM, .psn = 0, .imm = 9);
	fx_send(6, 4, .opcode = WIRE_UC_WRITE_ONLY_IMM, .psn = 1, .va = FX_VA + 4096,
		.rkey = FX_KEY, .dma_len = 6, .imm = 10);
	fx_poll(1);
	fx_assert_no_frame();
	fx_assert_cqe(USER_RECV_IMM, 2 * FX_MTU + 5, 9, 0);
	fx_assert_cqe(USER_RECV_RDMA_IMM, 6, 10, FX_RQ_STRIDE);
	fx_assert_pattern(fx->memory + 2 * FX_MTU, 5, 3);
	fx_assert_pattern(fx->memory + 4096, 6, 4);
}

TEST(uc_gap__drops_until_the_next_first_and_reuses_the_receive)
{
	as_uc();
	fx_post_simple(0, 1000);
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_SEND_FIRST, .psn = FX_PSN);
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_SEND_MIDDLE, .psn = 0); /* one is missing */
	fx_send(5, 1, .opcode = WIRE_UC_SEND_LAST, .psn = 1);
	fx_poll(1);
	fx_assert_no_cqe();
	fx_assert_counter(drop_uc_sequence, 2);
	fx_send(7, 9, .opcode = WIRE_UC_SEND_ONLY, .psn = 500);
	fx_poll(1);
	fx_assert_cqe(USER_RECV, 7, 0, 0);
	fx_assert_pattern(fx->memory, 7, 9);
	fx_assert_no_frame();
}

TEST(uc_gap__first_midway_begins_a_new_message)
{
	as_uc();
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_WRITE_FIRST, .psn = FX_PSN, .va = FX_VA,
		.rkey = FX_KEY, .dma_len = 2 * FX_MTU);
	fx_send(FX_MTU, 2, .opcode = WIRE_UC_WRITE_FIRST, .psn = 40, .va = FX_VA + 8192,
		.rkey = FX_KEY, .dma_len = FX_MTU + 1);
	fx_send(1, 3, .opcode = WIRE_UC_WRITE_LAST, .psn = 41);
	fx_poll(1);
	assert_int_equal(fx->memory[8192 + FX_MTU], fx_pattern(3, 0));
	fx_assert_counter(executed, 1);
	fx_assert_counter(drop_uc_sequence, 1);
}

/* The message is given up for good: nothing that comes late may go into its buffer. */
TEST(uc_gap__the_missing_packet_comes_late)
{
	as_uc();
	fx_post_simple(0, 1000);
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_SEND_FIRST, .psn = FX_PSN);
	fx_send(FX_MTU, 2, .opcode = WIRE_UC_SEND_MIDDLE, .psn = 0);
	fx_send(FX_MTU, 2, .opcode = WIRE_UC_SEND_MIDDLE, .psn = FX_PSN + 1);
	fx_send(5, 3, .opcode = WIRE_UC_SEND_LAST, .psn = 0);
	fx_poll(1);
	fx_assert_no_cqe();
	fx_assert_counter(drop_uc_sequence, 3);
	assert_int_equal(fx->memory[FX_MTU], 0xee);
}

TEST(uc__last_without_a_first)
{
	as_uc();
	fx_send(5, 3, .opcode = WIRE_UC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 5);
	fx_send(5, 3, .opcode = WIRE_UC_WRITE_LAST, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_counter(drop_uc_sequence, 1);
	fx_assert_counter(drop_uc_request, 0);
}

/* A packet that is refused costs its message: what follows must not complete it. */
TEST(uc__refused_midway)
{
	as_uc();
	fx_post_simple(0, 1000);
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_SEND_FIRST, .psn = FX_PSN);
	fx_send(FX_MTU - 4, 1, .opcode = WIRE_UC_SEND_MIDDLE, .psn = FX_PSN + 1);
	fx_send(5, 1, .opcode = WIRE_UC_SEND_LAST, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_no_cqe();
	fx_assert_counter(drop_uc_request, 1);
	fx_assert_counter(drop_uc_sequence, 1);
	fx_send(7, 9, .opcode = WIRE_UC_SEND_ONLY, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_cqe(USER_RECV, 7, 0, 0);
	fx_assert_pattern(fx->memory, 7, 9);
}

TEST(uc__no_receive_posted)
{
	as_uc();
	fx_send(FX_MTU, 1, .opcode = WIRE_UC_SEND_FIRST, .psn = FX_PSN);
	fx_send(5, 1, .opcode = WIRE_UC_SEND_LAST, .psn = FX_PSN + 1);
	fx_poll(1);
	fx_assert_no_frame();
	fx_assert_counter(drop_no_receive, 1);
	fx_assert_counter(drop_uc_sequence, 1);
	assert_int_equal(fx->qp->state, QP_RTS);
}

TEST(uc__refused_requests_are_dropped)
{
	as_uc();
	fx_post_simple(0, 10);
	fx_send(8, 1, .opcode = WIRE_UC_WRITE_ONLY, .psn = FX_PSN, .va = FX_VA, .rkey = 0x99,
		.dma_len = 8);
	fx_send(8, 1, .opcode = WIRE_UC_WRITE_ONLY, .psn = FX_PSN + 1, .va = FX_VA, .rkey = FX_KEY,
		.dma_len = 9);
	fx_send(8, 1, .opcode = WIRE_UC_WRITE_ONLY_IMM, .psn = 0, .va = FX_VA, .rkey = FX_READ_KEY,
		.dma_len = 8);
	fx_send(11, 1, .opcode = WIRE_UC_SEND_ONLY, .psn = 1); /* too long */
	fx_send(8, 1, .opcode = 0x3f, .psn = 2);
	fx_poll(1);
	fx_assert_no_frame();
	fx_assert_no_cqe();
	fx_assert_no_event();
	fx_assert_counter(executed, 0);
	assert_int_equal(fx->memory[0], 0xee);
	assert_int_equal(fx->qp->state, QP_RTS);
	fx_send(10, 1, .opcode = WIRE_UC_SEND_ONLY, .psn = 2);
	fx_poll(1);
	fx_assert_cqe(USER_RECV, 10, 0, 0); /* the receive was given back */
}

TEST(uc__local_error_ends_the_qp)
{
	const struct wqe_data d = {.length = 100, .lkey = 0x99, .addr = FX_VA};

	as_uc();
	fx_post(1, &d);
	fx_send(8, 1, .opcode = WIRE_UC_SEND_ONLY, .psn = FX_PSN);
	fx_poll(1);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_PROT, 0);
	assert_int_equal(fx->qp->state, QP_ERR);
	fx_assert_no_frame();
}

static void assert_ud_completion(uint32_t byte_count, uint32_t sl)
{
	const struct cqe *c = fx_cqe();

	assert_non_null(c);
	assert_int_equal(c->opcode, USER_RECV);
	assert_int_equal(c->byte_count, byte_count);
	assert_int_equal(c->remote_qpn, 0x55);
	assert_int_equal(c->rlid_flags, CQE_HAS_GRH | sl);
}

TEST(ud_send__grh_of_ipv4)
{
	static const uint8_t zeros[20];

	as_ud();
	fx->keep_rx = true;
	fx_post_simple(0, 100);
	fx_send(60, 6, .opcode = WIRE_UD_SEND_ONLY, .psn = 12345, .qkey = 0x11111111,
		.src_qp = 0x55);
	fx_poll(1);
	assert_ud_completion(100, CQE_SL_IPV4);
	assert_memory_equal(fx->memory, zeros, 20);
	assert_int_equal(fx->memory[20], 0x45);
	assert_int_equal(fx->memory[21], 0x20);
	assert_int_equal(fx->memory[20 + 9], 17);
	fx_assert_pattern(fx->memory + 40, 60, 6);
	fx_assert_no_frame();
}

TEST(ud_send__grh_of_ipv6)
{
	as_ud();
	fx->ipv6 = true;
	fx_post_simple(0, 100);
	fx_send(7, 6, .opcode = WIRE_UD_SEND_ONLY, .psn = 12345, .qkey = 0x11111111,
		.src_qp = 0x55);
	fx_poll(1);
	assert_ud_completion(47, CQE_SL_IPV6);
	assert_int_equal(fx->memory[0] >> 4, 6);
	assert_int_equal(fx->memory[8], 0x20);	/* source address */
	assert_int_equal(fx->memory[24], 0x40); /* destination address */
	fx_assert_pattern(fx->memory + 40, 7, 6);
}

TEST(ud_send__dropped)
{
	as_ud();
	fx_send(7, 6, .opcode = WIRE_UD_SEND_ONLY, .qkey = 0x11111111, .src_qp = 0x55);
	fx_poll(1);
	fx_assert_counter(drop_no_receive, 1);
	fx_post_simple(0, 46);
	fx_send(6, 6, .opcode = WIRE_UD_SEND_ONLY, .qkey = 0x11111112, .src_qp = 0x55);
	fx_send(7, 6, .opcode = WIRE_UD_SEND_ONLY, .qkey = 0x11111111, .src_qp = 0x55);
	fx_poll(1);
	fx_assert_counter(drop_ud_qkey, 1);
	fx_assert_counter(drop_ud_length, 1);
	fx_assert_no_cqe();
	assert_int_equal(fx->memory[0], 0xee);
	fx_send(6, 6, .opcode = WIRE_UD_SEND_ONLY_IMM, .qkey = 0x11111111, .src_qp = 0x55,
		.imm = 3);
	fx_poll(1);
	fx_assert_cqe(USER_RECV_IMM, 46, 3, 0);
}

TEST(ud_send__reserved_opcode)
{
	as_ud();
	fx_post_simple(0, 100);
	fx->qp->qkey = 0; /* the parser's result for an unknown header */
	fx_send(8, 6, .opcode = 0x7f, .psn = 1);
	fx_poll(1);
	fx_assert_no_cqe();
	fx_assert_counter(drop_ud_qkey, 1);
}

TEST(ud_send__the_first_one_is_no_connection)
{
	as_ud();
	fx->qp->state = QP_RTR;
	fx_post_simple(0, 100);
	fx_send(8, 6, .opcode = WIRE_UD_SEND_ONLY, .qkey = 0x11111111, .src_qp = 0x55);
	fx_poll(1);
	assert_ud_completion(48, CQE_SL_IPV4);
	fx_assert_no_event();
}

/* Memory is refused for the GRH, and there is no payload that it could be refused for. */
TEST(ud_send__no_memory_for_the_grh)
{
	const struct wqe_data d = {.length = 100, .lkey = 0x99, .addr = FX_VA};

	as_ud();
	fx_post(1, &d);
	fx_send(0, 6, .opcode = WIRE_UD_SEND_ONLY, .qkey = 0x11111111, .src_qp = 0x55);
	fx_poll(1);
	fx_assert_cqe(USER_INVALID, 0, SYNDROME_LOCAL_PROT, 0);
	assert_int_equal(fx->qp->state, QP_ERR);
}
