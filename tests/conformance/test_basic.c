/* SPDX-License-Identifier: BSD-3-Clause */
/* Each operation of each service, end to end, over a perfect wire: data, completions, and
 * everything given back. */
#include "rig.h"

static void fill(uint8_t *p, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(i * 7 + seed * 13 + 1);
}

/* How the regions lie in all tests: each runs once for each way. */
static struct {
	bool paged, busy, refs, singly;
} way;

static int contiguous(void **state)
{
	memset(&way, 0, sizeof(way));
	return rig_begin_test(state);
}

static int paged(void **state)
{
	way.paged = true;
	return rig_begin_test(state);
}

static int busy(void **state)
{
	way.paged = way.busy = true;
	return rig_begin_test(state);
}

static int refs(void **state)
{
	memset(&way, 0, sizeof(way));
	way.refs = true;
	return rig_begin_test(state);
}

static int singly(void **state)
{
	memset(&way, 0, sizeof(way));
	way.refs = way.singly = true;
	return rig_begin_test(state);
}

static struct sim *sim_for(struct sim_params *p)
{
	p->paged = way.paged;
	p->busy = way.busy;
	p->payload_refs = way.refs;
	p->singly = way.singly;
	return sim_create(p);
}

static void expect(struct sim *s, int node, uint8_t opcode, uint32_t offset)
{
	struct cqe c;

	assert_true(sim_wait(s, node, &c, 100 * MS));
	assert_int_equal(c.opcode, opcode);
	assert_int_equal(c.wqe_offset, offset);
}

static const uint32_t sizes[] = {0, 1, 3, 8, 64, 255, 1024, 1025, 4096, 65536, 1 << 20};

static void move(struct sim *s, uint8_t opcode, uint32_t bytes, bool recv)
{
	struct sim_wr wr = {.opcode = opcode,
			    .remote = 2 << 20,
			    .sge = {{0, bytes / 3, 0}, {bytes / 3, bytes - bytes / 3, 0}},
			    .sges = 2,
			    .imm = 0x12345678};
	bool read = opcode == USER_RDMA_READ;
	uint8_t *from = s->node[read].memory + (read ? 2 << 20 : 0),
		*to = s->node[!read].memory + (read ? 0 : 2 << 20);
	uint32_t sent, received = 0;

	fill(from, bytes, bytes + opcode);
	memset(to, 0xee, bytes + 1);
	if (recv)
		received = sim_post_recv(s, 1, 0, 2 << 20, bytes);
	sent = sim_post(s, 0, 0, &wr);
	expect(s, 0, opcode, sent);
	if (recv) {
		struct cqe c;

		assert_true(sim_wait(s, 1, &c, MS));
		assert_int_equal(c.wqe_offset, received);
		assert_int_equal(c.is_send, 0);
		assert_int_equal(c.byte_count, bytes);
		if (opcode == USER_SEND_IMM || opcode == USER_RDMA_WRITE_IMM)
			assert_int_equal(c.imm_or_error, 0x12345678);
	}
	if (!recv)
		sim_run(s, MS); /* a UC WRITE completes when it is sent */
	assert_memory_equal(from, to, bytes);
	assert_int_equal(to[bytes], 0xee);
}

static void all_sizes(uint8_t service, uint8_t opcode, bool recv)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.service = service;
	s = sim_for(&p);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		move(s, opcode, sizes[i], recv);
	sim_run(s, MS);
	assert_true(sim_quiet(s));
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	sim_destroy(s);
}

#define TEST_EACH_WAY(name)                                                                        \
	static void name(void **state);                                                            \
	TEST_AS(name, name, contiguous, NULL, #name)                                               \
	TEST_AS(name##_paged, name, paged, NULL, #name)                                            \
	TEST_AS(name##_busy, name, busy, NULL, #name)                                              \
	TEST_AS(name##_refs, name, refs, NULL, #name)                                              \
	TEST_AS(name##_singly, name, singly, NULL, #name)                                          \
	static void name(void **state)

#define TEST_SIZES(name, service, opcode, recv)                                                    \
	TEST_EACH_WAY(name)                                                                        \
	{                                                                                          \
		all_sizes(service, opcode, recv);                                                  \
	}

TEST_SIZES(rc__write, SERVICE_RC, USER_RDMA_WRITE, false)
TEST_SIZES(rc__write_imm, SERVICE_RC, USER_RDMA_WRITE_IMM, true)
TEST_SIZES(rc__send, SERVICE_RC, USER_SEND, true)
TEST_SIZES(rc__send_imm, SERVICE_RC, USER_SEND_IMM, true)
TEST_SIZES(rc__read, SERVICE_RC, USER_RDMA_READ, false)
TEST_SIZES(uc__write, SERVICE_UC, USER_RDMA_WRITE, false)
TEST_SIZES(uc__send, SERVICE_UC, USER_SEND, true)

TEST_EACH_WAY(rc__atomics)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s = sim_for(&p);
	struct sim_wr fa = SIM_WR(USER_ATOMIC_FA, 8, 8, .remote = 64, .swap_add = 5);
	struct sim_wr cs =
		SIM_WR(USER_ATOMIC_CS, 16, 8, .remote = 64, .swap_add = 77, .compare = 105);
	uint64_t *target = (uint64_t *)(s->node[1].memory + 64),
		 *result = (uint64_t *)s->node[0].memory;

	*target = 100;
	expect(s, 0, USER_ATOMIC_FA, sim_post(s, 0, 0, &fa));
	assert_int_equal(result[1], 100);
	assert_int_equal(*target, 105);
	expect(s, 0, USER_ATOMIC_CS, sim_post(s, 0, 0, &cs));
	assert_int_equal(result[2], 105);
	assert_int_equal(*target, 77);
	expect(s, 0, USER_ATOMIC_CS, sim_post(s, 0, 0, &cs));
	assert_int_equal(result[2], 77);
	assert_int_equal(*target, 77);
	sim_run(s, MS);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

TEST_EACH_WAY(ud__send)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = SIM_WR(USER_SEND_IMM, 0, 1000, .imm = 7, .ud_qkey = 0x11111111);
	struct sim *s;
	struct cqe c;

	p.service = SERVICE_UD;
	s = sim_for(&p);
	wr.ud_qpn = s->node[1].qp[0].qpn;
	fill(s->node[0].memory, 1000, 3);
	sim_post_recv(s, 1, 0, 4096, 2000);
	expect(s, 0, USER_SEND_IMM, sim_post(s, 0, 0, &wr));
	assert_true(sim_wait(s, 1, &c, MS));
	assert_int_equal(c.byte_count, 1040);
	assert_int_equal(c.remote_qpn, s->node[0].qp[0].qpn);
	assert_true(c.rlid_flags & CQE_HAS_GRH);
	assert_memory_equal(s->node[0].memory, s->node[1].memory + 4096 + 40, 1000);
	wr.ud_qkey = 0x22222222; /* wrong: dropped, and the sender does not notice */
	expect(s, 0, USER_SEND_IMM, sim_post(s, 0, 0, &wr));
	sim_run(s, MS);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_ud_qkey), 1);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

TEST_EACH_WAY(rc__inline_and_chain_of_doorbells)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s = sim_for(&p);
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, 60, .is_inline = true);
	uint32_t offset[100];

	fill(s->node[0].memory, 60, 9);
	for (unsigned i = 0; i < 100; i++) {
		wr.remote = i * 64;
		offset[i] = sim_post(s, 0, 0, &wr);
	}
	for (unsigned i = 0; i < 100; i++)
		expect(s, 0, USER_RDMA_WRITE, offset[i]);
	for (unsigned i = 0; i < 100; i++)
		assert_memory_equal(s->node[1].memory + i * 64, s->node[0].memory, 60);
	sim_run(s, MS);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* A packet over a page border, while another lcore holds the second page: it is executed again as a
 * whole. */
TEST(rc__write_over_a_page_that_is_held)
{
	enum { FIRST_MTT = 64, PAGE = 4096, AT = 4 * PAGE - 100, BYTES = 200 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES, .remote = AT);
	struct tpt_hold hold;
	uint32_t offset;
	struct sim *s;

	p.paged = true;
	s = sim_create(&p);
	fill(s->node[0].memory, BYTES, 3);
	offset = sim_post(s, 0, 0, &wr);
	assert_true(
		tpt_take(&s->node[1].hca->v2p.mtt_cache, (FIRST_MTT + 4) / MTT_WORDS, NULL, &hold));
	sim_run(s, 20 * US);
	assert_int_equal(sim_counter(s, 1, COUNTER_executed), 0);
	tpt_release(&hold);
	expect(s, 0, USER_RDMA_WRITE, offset);
	assert_memory_equal(s->node[1].memory + AT, s->node[0].memory, BYTES);
	sim_destroy(s);
}
