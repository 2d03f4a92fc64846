/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable service between two HCAs, the sender's side: a failed send stops only the send queue
 * (SQE), which its client restarts; lengths, Q_Keys, completions.
 */
#include "rig.h"

#define QKEY 0x11111111u

static struct sim *make(enum qp_service service)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.service = service;
	return sim_create(&p);
}

static struct sim_wr send_of(struct sim *s, uint32_t bytes)
{
	struct sim_wr wr = SIM_WR(USER_SEND, 0, bytes);

	if (s->params.service == SERVICE_UD) {
		wr.ud_qpn = s->node[1].qp[0].qpn;
		wr.ud_qkey = QKEY;
	}
	return wr;
}

static void expect(struct sim *s, int node, uint8_t opcode, uint32_t offset)
{
	struct cqe c;

	assert_true(sim_wait(s, node, &c, 20 * MS));
	assert_int_equal(c.opcode, opcode);
	assert_int_equal(c.wqe_offset, offset);
}

static void expect_error(struct sim *s, uint32_t syndrome, uint32_t offset)
{
	struct cqe c;

	assert_true(sim_wait(s, 0, &c, 20 * MS));
	assert_int_equal(c.opcode, USER_INVALID);
	assert_int_equal(c.imm_or_error & 0xff, syndrome);
	assert_int_equal(c.wqe_offset, offset);
	assert_int_equal(c.is_send, 1);
}

static void assert_nothing(struct sim *s, int node)
{
	struct cqe c;

	assert_false(sim_poll_cq(s, node, &c));
}

static void assert_state(struct sim *s, enum qp_state state)
{
	assert_int_equal(qp_state(sim_context(s, 0, 0)), state);
}

static void end(struct sim *s)
{
	struct eqe e;

	sim_run(s, MS);
	assert_nothing(s, 0);
	assert_nothing(s, 1);
	while (sim_poll_event(s, 0, &e)) /* a failed send raises none: its completion reports it */
		assert_int_equal(e.type, EQE_COMM_EST);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* ---- SQE ---- */

/* The send completes in error, later ones are flushed, in order; receiving continues; then the
 * queue is restarted. */
static void stopped_and_taken_up(enum qp_service service, const struct sim_wr *bad,
				 uint32_t syndrome)
{
	struct sim *s = make(service);
	struct sim_wr good = send_of(s, 64), wr = *bad, back;
	uint32_t at[5], recv;

	wr.ud_qpn = good.ud_qpn;
	wr.ud_qkey = good.ud_qkey;
	for (unsigned i = 0; i < 3; i++)
		sim_post_recv(s, 1, 0, 8192 * (i + 1), 4096);
	recv = sim_post_recv(s, 0, 0, 65536, 4096);
	at[0] = sim_post(s, 0, 0, &good);
	at[1] = sim_post(s, 0, 0, &wr);
	for (unsigned i = 2; i < 5; i++)
		at[i] = sim_post(s, 0, 0, i == 3 ? &wr : &good);
	expect(s, 0, USER_SEND, at[0]);
	expect_error(s, syndrome, at[1]);
	assert_state(s, QP_SQE);
	for (unsigned i = 2; i < 5; i++)
		expect_error(s, SYNDROME_WR_FLUSH, at[i]);
	expect(s, 1, USER_RECV, 0);
	/* a request posted now is flushed, too */
	expect_error(s, SYNDROME_WR_FLUSH, sim_post(s, 0, 0, &good));
	assert_nothing(s, 1);
	/* The other direction */
	back = good;
	if (service == SERVICE_UD)
		back.ud_qpn = s->node[0].qp[0].qpn;
	expect(s, 1, USER_SEND, sim_post(s, 1, 0, &back));
	expect(s, 0, USER_RECV, recv);
	sim_modify(s, 0, 0, QP_RTS, 0);
	for (unsigned i = 1; i < 3; i++) {
		expect(s, 0, USER_SEND, sim_post(s, 0, 0, &good));
		expect(s, 1, USER_RECV, i * SIM_RQ_STRIDE);
	}
	assert_state(s, QP_RTS);
	end(s);
}

TEST(sqe__a_bad_request_stops_the_send_queue)
{
	static const struct {
		enum qp_service service;
		uint32_t syndrome;
		struct sim_wr wr;
	} rows[] = {
		{SERVICE_UC, SYNDROME_LOCAL_PROT, {USER_SEND, .sge = {{0, 64, 0x777}}, .sges = 1}},
		/* known before its first packet */
		{SERVICE_UC,
		 SYNDROME_LOCAL_PROT,
		 {USER_SEND, .sge = {{0, 5000, 0x777}}, .sges = 1}},
		{SERVICE_UC,
		 SYNDROME_LOCAL_QP_OP,
		 {USER_RDMA_READ, .sge = {{0, 64, 0}}, .sges = 1}},
		{SERVICE_UC, SYNDROME_LOCAL_QP_OP, {USER_SEND_INV, .sge = {{0, 64, 0}}, .sges = 1}},
		{SERVICE_UC,
		 SYNDROME_LOCAL_LENGTH,
		 {USER_RDMA_WRITE, .sge = {{0, 0x7fffffff, 0}, {0, 2, 0}}, .sges = 2}},
		{SERVICE_UD, SYNDROME_LOCAL_PROT, {USER_SEND, .sge = {{0, 64, 0x777}}, .sges = 1}},
		{SERVICE_UD,
		 SYNDROME_LOCAL_QP_OP,
		 {USER_RDMA_WRITE, .sge = {{0, 64, 0}}, .sges = 1}},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("row %u\n", i);
		stopped_and_taken_up(rows[i].service, &rows[i].wr, rows[i].syndrome);
	}
}

/* A request posted before SQERR2RTS is flushed even if its doorbell is taken only afterwards. */
SIM_TEST(uc__stale_doorbells_are_flushed, make(SERVICE_UC), end)
{
	struct sim_wr good = send_of(s, 64), bad = good;
	uint32_t at[100];

	bad.sge[0].key = 0x777;
	sim_post_recv(s, 1, 0, 8192, 4096);
	expect_error(s, SYNDROME_LOCAL_PROT, sim_post(s, 0, 0, &bad));
	for (unsigned i = 0; i < 100; i++)
		at[i] = sim_post(s, 0, 0, i % 7 ? &good : &bad);
	/* All doorbells are taken, and none completed: pipeline_depth holds most of them back */
	while (s->node[0].hca->engines[0].held_total == 0)
		hca_poll_stage(s->node[0].hca->engines, STAGE_DOORBELL_WQE);
	hca_poll_stage(s->node[0].hca->engines, STAGE_DOORBELL_WQE);
	hca_poll_stage(s->node[0].hca->engines, STAGE_DOORBELL_WQE);
	assert_nothing(s, 0);
	sim_modify(s, 0, 0, QP_RTS, 0);
	for (unsigned i = 0; i < 100; i++)
		expect_error(s, SYNDROME_WR_FLUSH, at[i]);
	assert_state(s, QP_RTS);
	assert_nothing(s, 1);
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &good));
	expect(s, 1, USER_RECV, 0);
}

/* A QP in SQE may go to ERR, and then everything is flushed, what is bad itself as well. */
static void error_after_sqe(enum qp_service service)
{
	struct sim *s = make(service);
	struct sim_wr bad = send_of(s, 64), worse = bad;
	struct cqe c;

	bad.sge[0].key = 0x777;
	worse.opcode = USER_RDMA_READ;
	sim_post_recv(s, 0, 0, 8192, 4096);
	expect_error(s, SYNDROME_LOCAL_QP_OP, sim_post(s, 0, 0, &worse));
	assert_state(s, QP_SQE);
	assert_nothing(s, 0);
	sim_modify(s, 0, 0, QP_ERR, 0);
	assert_true(sim_wait(s, 0, &c, MS));
	assert_int_equal(c.is_send, 0);
	assert_int_equal(c.imm_or_error & 0xff, SYNDROME_WR_FLUSH);
	expect_error(s, SYNDROME_WR_FLUSH, sim_post(s, 0, 0, &worse));
	expect_error(s, SYNDROME_WR_FLUSH, sim_post(s, 0, 0, &bad));
	assert_state(s, QP_ERR);
	end(s);
}

TEST(sqe__error_after_it)
{
	error_after_sqe(SERVICE_UC);
	error_after_sqe(SERVICE_UD);
}

/* ---- a UD sender ---- */

TEST(ud__one_mtu_and_not_more)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr;
	struct cqe c;
	struct sim *s;

	p.service = SERVICE_UD;
	s = sim_create(&p);
	wr = send_of(s, sim_context(s, 0, 0)->mtu_bytes); /* the port's */
	sim_post_recv(s, 1, 0, 65536, 8192);
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	assert_true(sim_wait(s, 1, &c, MS));
	assert_int_equal(c.byte_count, 40 + wr.sge[0].length);
	wr.sge[0].length++;
	expect_error(s, SYNDROME_LOCAL_LENGTH, sim_post(s, 0, 0, &wr));
	assert_state(s, QP_SQE);
	end(s);
}

/* A Q_Key with the top bit set is not sent: that of the QP is, which only who may set it chose. */
SIM_TEST(ud__privileged_qkey_is_that_of_the_qp, make(SERVICE_UD), end)
{
	struct sim_wr wr = send_of(s, 64);

	sim_post_recv(s, 1, 0, 65536, 4096);
	wr.ud_qkey = 0x80000001;
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	expect(s, 1, USER_RECV, 0); /* both QPs have the same */
	wr.ud_qkey = 0x00000001;
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	sim_run(s, MS);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_ud_qkey), 1);
}

/* Nor does one arrive, even of no bytes, whose network header the receive has no right to. */
TEST(ud__header_that_may_not_be_written)
{
	static const struct sim_sge entries[] = {{0, 40, 0x7777}, {64, 64, 0}};

	for (uint32_t bytes = 0; bytes <= 8; bytes += 8) {
		struct sim *s = make(SERVICE_UD);
		struct sim_wr wr = send_of(s, bytes);
		struct cqe c;

		sim_post_recv_list(s, 1, 0, entries, RTE_DIM(entries));
		sim_post(s, 0, 0, &wr);
		assert_true(sim_wait(s, 1, &c, 20 * MS));
		assert_int_equal(c.opcode, USER_INVALID);
		assert_int_equal(c.imm_or_error & 0xff, SYNDROME_LOCAL_PROT);
		expect(s, 0, USER_SEND, 0);
		sim_destroy(s);
	}
}

/* QP 1 of two HCAs, as connection managers use it: numbers in the reserved range, a Q_Key that is
 * controlled. */
TEST(gsi__datagrams_between_qps_1)
{
	const struct sim_identity identity[2] = {
		{.qpn = 1, .psn = 7, .key = 0x1234500, .ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}},
		{.qpn = 1, .psn = 9, .key = 0x5432100, .ip = {[10] = 0xff, 0xff, 10, 0, 0, 2}}};
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr;
	struct cqe c;
	struct sim *s;

	p.service = SERVICE_UD;
	p.qkey = 0x80010000;
	p.identity[0] = &identity[0];
	p.identity[1] = &identity[1];
	s = sim_create(&p);
	wr = send_of(s, 256);
	assert_int_equal(wr.ud_qpn, 1);
	wr.ud_qkey = 0x80010000;
	wr.sge[0].key = 0;
	sim_post_recv(s, 1, 0, 65536, 4096);
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	assert_true(sim_wait(s, 1, &c, MS));
	assert_int_equal(c.byte_count, 40 + 256);
	assert_int_equal(c.remote_qpn, 1);
	wr.ud_qkey = QKEY; /* of ordinary software */
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	sim_run(s, MS);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_ud_qkey), 1);
	end(s);
}

SIM_TEST(ud__inline_and_empty, make(SERVICE_UD), end)
{
	struct sim_wr wr = send_of(s, 60);

	memset(s->node[0].memory, 0x5a, 60);
	wr.is_inline = true;
	sim_post_recv(s, 1, 0, 65536, 4096);
	sim_post_recv(s, 1, 0, 131072, 40);
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	expect(s, 1, USER_RECV, 0);
	assert_memory_equal(s->node[1].memory + 65536 + 40, s->node[0].memory, 60);
	wr.is_inline = false;
	wr.sges = 0;
	expect(s, 0, USER_SEND, sim_post(s, 0, 0, &wr));
	expect(s, 1, USER_RECV, SIM_RQ_STRIDE);
}

/* Unsignaled requests complete nothing, and what follows them still does, in order. */
SIM_TEST(uc__unsignaled_requests_complete_nothing, make(SERVICE_UC), end)
{
	struct sim_wr quiet = send_of(s, 3000), wr = quiet;
	uint32_t at = 0;

	quiet.unsignaled = true;
	for (unsigned i = 0; i < 5; i++) {
		sim_post_recv(s, 1, 0, 65536, 4096);
		at = sim_post(s, 0, 0, i < 4 ? &quiet : &wr);
	}
	expect(s, 0, USER_SEND, at);
	for (unsigned i = 0; i < 5; i++)
		expect(s, 1, USER_RECV, i * SIM_RQ_STRIDE);
}
