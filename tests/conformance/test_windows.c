/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows, local invalidate, fast registration (IBTA 10.6.7) with whole HCAs: a peer's
 * access through them and its end, their order among other requests, the fence, errors. Node 0
 * binds, node 1 is the peer; then the peer is scripted.
 */
#include "peer.h"

enum {
	PSN = PEER_PSN,
	MTU = PEER_MTU,
	AT = 4096, /* the window, in node 0's memory */
	LEN = 4096,
	OUT = 1 << 18, /* bytes outside it */
};
#define TAG(n) ((uint32_t)(n))

/* An entry of node 0's. */
static uint32_t entry(struct sim *s, uint32_t index, uint32_t access, uint32_t flags)
{
	struct sim_node *n = &s->node[0];
	struct mpt_entry e = {.key = 0xab000000u | (240 + index) << KEY_TAG_BITS,
			      .pd = sim_context(s, 0, 0)->pd,
			      .access = access,
			      .flags = flags};

	if (!(flags & MPT_CHANGES)) {
		e.start = n->va;
		e.length = n->memory_bytes;
		e.phys = n->memory;
	}
	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, e.key), &e,
				  sizeof(e), NULL, 0),
			 CEU_OK);
	return e.key;
}

static uint32_t region(struct sim *s)
{
	return entry(s, 1, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, 0);
}

static uint32_t window_1(struct sim *s)
{
	return entry(s, 2, 0, MPT_WINDOW_1);
}

static uint32_t window_2(struct sim *s)
{
	return entry(s, 3, 0, MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE);
}

static uint32_t fast(struct sim *s)
{
	return entry(s, 4, 0, MPT_FAST | MPT_INVALIDATE_REMOTE);
}

static struct wqe_bind bind_unit(struct sim *s, uint32_t key, uint32_t lkey)
{
	return (struct wqe_bind){.key = key,
				 .lkey = lkey,
				 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
				 .addr = s->node[0].va + AT,
				 .length = LEN};
}

static uint32_t post_bind(struct sim *s, unsigned qp, const struct wqe_bind *u)
{
	struct sim_wr wr = {.opcode = USER_BIND_MW, .units = u, .unit_bytes = sizeof(*u)};

	return sim_post(s, 0, qp, &wr);
}

static uint32_t post_bind_of(struct sim *s, unsigned qp, uint32_t key, uint32_t lkey)
{
	struct wqe_bind u = bind_unit(s, key, lkey);

	return post_bind(s, qp, &u);
}

static uint32_t post_invalidate(struct sim *s, unsigned qp, uint32_t key, bool fence)
{
	struct sim_wr wr = {.opcode = USER_LOCAL_INV, .imm = key, .fence = fence};

	return sim_post(s, 0, qp, &wr);
}

/* Two pages at AT under `key`, as if they lay at node 0's address of OUT. */
static uint32_t post_register(struct sim *s, unsigned qp, uint32_t key, uint32_t lkey)
{
	struct sim_node *n = &s->node[0];
	/* A page of the region begins where its address is a multiple of the page size. */
	uint64_t first = RTE_ALIGN(n->va + AT, 4096);
	const struct wqe_register u = {.key = key,
				       .lkey = lkey,
				       .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
				       .log_page = 12,
				       .pages = 2,
				       .iova = RTE_ALIGN(n->va + OUT, 4096),
				       .length = 8192};
	const uint64_t page[2] = {first, first + 4096};
	uint8_t unit[sizeof(u) + sizeof(page)];
	struct sim_wr wr = {.opcode = USER_REG_MR, .units = unit, .unit_bytes = sizeof(unit)};

	memcpy(unit, &u, sizeof(u));
	memcpy(unit + sizeof(u), page, sizeof(page));
	return sim_post(s, 0, qp, &wr);
}

/* The next completion of a node. */
static struct cqe next_cqe(struct sim *s, int node)
{
	struct cqe c = {0};

	assert_true(sim_wait(s, node, &c, 50 * MS));
	return c;
}

static void expect_done(struct sim *s, int node, uint8_t opcode, uint32_t offset)
{
	struct cqe c = next_cqe(s, node);

	assert_int_equal(c.opcode, opcode);
	assert_int_equal(c.wqe_offset, offset);
}

static void expect_error(struct sim *s, int node, uint8_t syndrome, uint32_t offset)
{
	struct cqe c = next_cqe(s, node);

	assert_int_equal(c.opcode, USER_INVALID);
	assert_int_equal(c.imm_or_error & 0xff, syndrome);
	assert_int_equal(c.wqe_offset, offset);
}

/* The peer writes through a key; `offset` in node 0's memory. */
static void peer_writes(struct sim *s, unsigned qp, uint32_t key, uint64_t offset, uint32_t bytes,
			uint8_t syndrome)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, bytes, .remote = offset, .rkey = key);
	uint32_t at = sim_post(s, 1, qp, &wr);

	if (syndrome)
		expect_error(s, 1, syndrome, at);
	else
		expect_done(s, 1, USER_RDMA_WRITE, at);
}

static struct sim *two(unsigned qps)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.qps = qps;
	s = sim_create(&p);
	memset(s->node[1].memory, 0x5a, LEN);
	return s;
}

SIM_TEST(window__the_peer_writes_within_it, two(2), sim_destroy)
{
	uint32_t key = window_2(s) | TAG(1), at = post_bind_of(s, 0, key, region(s));

	expect_done(s, 0, USER_BIND_MW, at);
	peer_writes(s, 0, key, AT, LEN, 0);
	assert_int_equal(s->node[0].memory[AT], 0x5a);
	assert_int_equal(s->node[0].memory[AT + LEN - 1], 0x5a);
	assert_int_equal(s->node[0].memory[AT + LEN], 0);
	peer_writes(s, 0, key, AT + LEN - 1, 2, SYNDROME_REMOTE_ACCESS);
	assert_int_equal(s->node[0].memory[AT + LEN], 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_v2p_length_error), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 1);
}

SIM_TEST(window_2__through_its_queue_pair_alone, two(2), sim_destroy)
{
	uint32_t key = window_2(s) | TAG(1), at = post_bind_of(s, 0, key, region(s));

	expect_done(s, 0, USER_BIND_MW, at);
	peer_writes(s, 1, key, AT, 8, SYNDROME_REMOTE_ACCESS);
	assert_int_equal(sim_counter(s, 0, COUNTER_v2p_pd_error), 1);
	assert_int_equal(s->node[0].memory[AT], 0);
	peer_writes(s, 0, key, AT, 8, 0);
}

SIM_TEST(window_1__through_any_queue_pair_until_it_moves, two(2), sim_destroy)
{
	uint32_t lkey = region(s), window = window_1(s), at;
	struct wqe_bind u = bind_unit(s, window | TAG(2), lkey);

	expect_done(s, 0, USER_BIND_MW, post_bind_of(s, 0, window | TAG(1), lkey));
	peer_writes(s, 0, window | TAG(1), AT, 8, 0);
	peer_writes(s, 1, window | TAG(1), AT, 8, 0);
	u.addr += LEN;
	at = post_bind(s, 1, &u);
	expect_done(s, 0, USER_BIND_MW, at);
	peer_writes(s, 0, window | TAG(2), AT + LEN, 8, 0);
	peer_writes(s, 0, window | TAG(1), AT, 8, SYNDROME_REMOTE_ACCESS);
	u = (struct wqe_bind){.key = window | TAG(3)}; /* to nothing */
	at = post_bind(s, 1, &u);
	expect_done(s, 0, USER_BIND_MW, at);
	peer_writes(s, 1, window | TAG(2), AT + LEN, 8, SYNDROME_REMOTE_ACCESS);
}

SIM_TEST(window_2__invalidated_locally, two(1), sim_destroy)
{
	uint32_t lkey = region(s), window = window_2(s), at[3];

	at[0] = post_bind_of(s, 0, window | TAG(1), lkey);
	at[1] = post_invalidate(s, 0, window | TAG(1), false);
	at[2] = post_bind_of(s, 0, window | TAG(2), lkey);
	expect_done(s, 0, USER_BIND_MW, at[0]);
	expect_done(s, 0, USER_LOCAL_INV, at[1]);
	expect_done(s, 0, USER_BIND_MW, at[2]);
	peer_writes(s, 0, window | TAG(2), AT, 8, 0);
	at[0] = post_invalidate(s, 0, window | TAG(2), false);
	expect_done(s, 0, USER_LOCAL_INV, at[0]);
	peer_writes(s, 0, window | TAG(2), AT, 8, SYNDROME_REMOTE_ACCESS);
	assert_int_equal(sim_counter(s, 0, COUNTER_local_invalidates), 2);
}

/* Three pages in another order than their addresses: a write through a window over them goes to two
 * of them. */
SIM_TEST(window_2__over_pages, two(1), sim_destroy)
{
	static struct ceu_write_mtt mtt;
	struct sim_node *n = &s->node[0];
	uint8_t *memory = (uint8_t *)RTE_ALIGN((uintptr_t)n->memory + OUT, 4096);
	uint64_t start = RTE_ALIGN(n->va + AT, 4096), at = start + 2048 - n->va;
	uint32_t key = window_2(s) | TAG(1);
	const struct mpt_entry e = {.key = 0xab00f500,
				    .pd = sim_context(s, 0, 0)->pd,
				    .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND,
				    .flags = MPT_PAGES,
				    .start = start,
				    .length = 3 * 4096,
				    .log_page = 12};
	const struct wqe_bind u = {.key = key,
				   .lkey = e.key,
				   .access = ACCESS_REMOTE_WRITE,
				   .addr = start + 2048,
				   .length = 4096};

	for (unsigned i = 0; i < 3; i++)
		mtt.page[i] = (uintptr_t)memory + (i + 2) % 3 * 4096;
	assert_int_equal(ceu_exec(n->ceu, CEU_WRITE_MTT, 3, &mtt, sizeof(mtt), NULL, 0), CEU_OK);
	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, e.key), &e,
				  sizeof(e), NULL, 0),
			 CEU_OK);
	expect_done(s, 0, USER_BIND_MW, post_bind(s, 0, &u));
	peer_writes(s, 0, key, at, 4096, 0);
	for (unsigned i = 0; i < 3 * 4096; i++)
		assert_int_equal(memory[i], i < 2048 || i >= 2 * 4096 + 2048 ? 0x5a : 0);
	peer_writes(s, 0, key, at + 2048, 2049, SYNDROME_REMOTE_ACCESS);
}

SIM_TEST(window_2__invalidated_by_the_peer, two(1), sim_destroy)
{
	uint32_t lkey = region(s), key = window_2(s) | TAG(1), at;
	struct sim_wr wr = {.opcode = USER_SEND_INV, .imm = key};
	struct cqe c;

	expect_done(s, 0, USER_BIND_MW, post_bind_of(s, 0, key, lkey));
	sim_post_recv(s, 0, 0, 0, 0);
	at = sim_post(s, 1, 0, &wr);
	c = next_cqe(s, 0);
	assert_int_equal(c.opcode, USER_RECV_INV);
	assert_int_equal(c.imm_or_error, key);
	expect_done(s, 1, USER_SEND_INV, at);
	peer_writes(s, 0, key, AT, 8, SYNDROME_REMOTE_ACCESS);
}

/* One of type 1, and one that another queue pair has bound: both sides fail, neither by a NAK, and
 * the window stays. */
TEST(window__not_invalidated_by_the_peer)
{
	for (unsigned type = 1; type <= 2; type++) {
		struct sim *s = two(2);
		uint32_t key = (type == 1 ? window_1(s) : window_2(s)) | TAG(1);
		struct sim_wr wr = {.opcode = USER_SEND_INV, .imm = key};
		struct cqe c;

		expect_done(s, 0, USER_BIND_MW, post_bind_of(s, 1, key, region(s)));
		sim_post_recv(s, 0, 0, 0, 0);
		sim_post(s, 1, 0, &wr);
		expect_error(s, 0, SYNDROME_LOCAL_ACCESS, 0);
		assert_true(sim_wait(s, 1, &c, 200 * MS));
		assert_int_equal(c.imm_or_error & 0xff, SYNDROME_RETRY_EXC);
		assert_int_equal(sim_counter(s, 1, COUNTER_nak_access_received), 0);
		peer_writes(s, 1, key, AT, LEN, 0);
		sim_destroy(s);
	}
}

SIM_TEST(fast__registered_used_and_invalidated_in_order, two(1), sim_destroy)
{
	uint32_t lkey = region(s), key = fast(s), at[5];
	uint64_t source = RTE_ALIGN(s->node[0].va + AT, 4096) - s->node[0].va,
		 named = RTE_ALIGN(s->node[0].va + OUT, 4096) - s->node[0].va;
	struct sim_wr wr = {.opcode = USER_RDMA_WRITE,
			    .remote = OUT,
			    .sge = {{named, 8192, key | TAG(1)}},
			    .sges = 1};

	memset(s->node[0].memory + source, 0x77, 8192);
	at[0] = post_register(s, 0, key | TAG(1), lkey);
	at[1] = sim_post(s, 0, 0, &wr); /* its key is good only when its turn comes */
	at[2] = post_invalidate(s, 0, key | TAG(1), false);
	at[3] = post_register(s, 0, key | TAG(2), lkey);
	wr.sge[0].key = key | TAG(2);
	wr.remote += 8192;
	at[4] = sim_post(s, 0, 0, &wr);
	expect_done(s, 0, USER_REG_MR, at[0]);
	expect_done(s, 0, USER_RDMA_WRITE, at[1]);
	expect_done(s, 0, USER_LOCAL_INV, at[2]);
	expect_done(s, 0, USER_REG_MR, at[3]);
	expect_done(s, 0, USER_RDMA_WRITE, at[4]);
	for (unsigned i = 0; i < 16384; i++)
		assert_int_equal(s->node[1].memory[OUT + i], 0x77);
	peer_writes(s, 0, key | TAG(2), named, 8, 0); /* a remote key, too */
	assert_int_equal(s->node[0].memory[source], 0x5a);
	wr.sge[0].key = key | TAG(1); /* of the last life */
	at[0] = sim_post(s, 0, 0, &wr);
	expect_error(s, 0, SYNDROME_LOCAL_PROT, at[0]);
}

/* ---- order: the peer is scripted ---- */

TEST_PEER(local__completes_behind_what_is_outstanding)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);
	uint32_t lkey = region(s), key = window_2(s) | TAG(1);

	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, key, lkey);
	peer_sends(s, PSN, &wr);
	peer_expect(s, &wr, PSN + 1, NULL); /* nothing waits for the bind */
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 1);
	rig_no_cqe(s);
	peer_ack(s, PSN, 1);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_BIND_MW);
	rig_no_cqe(s);
	peer_ack(s, PSN + 1, 2);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
}

TEST_PEER(local__completes_behind_a_read)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU);
	uint32_t lkey = region(s), key = window_2(s) | TAG(1);

	sim_post(s, 0, 0, &rd);
	post_bind_of(s, 0, key, lkey);
	peer_expect(s, &rd, PSN, NULL);
	peer_read_responses(s, PSN, 2 * MTU, 0, 0, 0);
	sim_run(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 1);
	rig_no_cqe(s);
	peer_read_responses(s, PSN, 2 * MTU, 1, 1, 1);
	rig_expect_done(s, 0, USER_RDMA_READ, USER_BIND_MW);
	/* and behind one that is a single packet, whose PSN it shares */
	rd = peer_wr(USER_RDMA_READ, 8);
	sim_post(s, 0, 0, &rd);
	post_invalidate(s, 0, key, false);
	peer_expect(s, &rd, PSN + 2, NULL);
	sim_run(s, 100 * US);
	rig_no_cqe(s);
	peer_read_responses(s, PSN + 2, 8, 0, 0, 2);
	rig_expect_done(s, 2, USER_RDMA_READ, USER_LOCAL_INV);
}

/* A READ into a fast-registered region, and behind it the end of its key; the peer has not
 * answered.
 */
static struct sim *read_then_invalidate(bool fence)
{
	struct sim *s = peer_make();
	uint32_t key = fast(s) | TAG(1);
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 8);

	rd.sge[0] = (struct sim_sge){RTE_ALIGN(s->node[0].va + OUT, 4096) - s->node[0].va, 8, key};
	post_register(s, 0, key, region(s));
	rig_expect_cqe(s, USER_REG_MR, 0, 0);
	sim_post(s, 0, 0, &rd);
	post_invalidate(s, 0, key, fence);
	rig_expect(s, WIRE_RC_READ_REQUEST, PSN);
	sim_run(s, 100 * US);
	return s;
}

RIG_TEST(local_inv__fence_waits_for_reads, read_then_invalidate(true))
{
	assert_int_equal(sim_counter(s, 0, COUNTER_local_invalidates), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_park_fence), 1);
	peer_read_responses(s, PSN, 8, 0, 0, 1);
	rig_expect_done(s, 1, USER_RDMA_READ, USER_LOCAL_INV);
}

RIG_TEST(local_inv__without_a_fence_takes_the_key_from_a_read, read_then_invalidate(false))
{
	assert_int_equal(sim_counter(s, 0, COUNTER_local_invalidates), 1);
	peer_read_responses(s, PSN, 8, 0, 0, 1);
	peer_expect_failed(s, SYNDROME_LOCAL_PROT, 1, 3);
}

TEST_PEER(local__sent_again_is_only_what_was_sent)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);
	uint32_t lkey = region(s), key = window_2(s) | TAG(1);

	post_bind_of(s, 0, key, lkey);
	rig_expect_cqe(s, USER_BIND_MW, 0, 0);
	sim_post(s, 0, 0, &wr);
	post_invalidate(s, 0, key, false);
	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, key, lkey);
	peer_expect_all(s, PSN, &wr, &wr);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	peer_expect_all(s, PSN, &wr, &wr);
	rig_no_cqe(s);
	peer_ack(s, PSN + 1, 2);
	rig_expect_done(s, 1, USER_RDMA_WRITE, USER_LOCAL_INV, USER_RDMA_WRITE, USER_BIND_MW);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 2);
}

/* ---- errors ---- */

TEST_PEER(bind__refused_ends_the_queue_pair_in_its_turn)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);
	uint32_t lkey = region(s), window = window_2(s);
	struct wqe_bind u = bind_unit(s, window | TAG(1), lkey);

	u.length = s->node[0].memory_bytes;
	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, window | TAG(2), lkey);
	post_bind(s, 0, &u);
	peer_sends(s, PSN, &wr);
	rig_quiet(s, MS);
	peer_ack(s, PSN, 1);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_BIND_MW);
	peer_expect_failed(s, SYNDROME_MW_BIND, 2, 4);
	assert_int_equal(rig_state(s, 0), QP_ERR);
	assert_int_equal(sim_counter(s, 0, COUNTER_bad_bind), 1);
}

TEST(local__each_refusal_has_its_counter)
{
	static const struct {
		uint8_t opcode;
		enum counter why;
	} rows[] = {
		{USER_BIND_MW, COUNTER_bad_bind},
		{USER_LOCAL_INV, COUNTER_bad_local_invalidate},
		{USER_REG_MR, COUNTER_bad_fast_registration},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct sim *s = peer_make();
		uint32_t lkey = region(s);

		if (rows[i].opcode == USER_BIND_MW)
			post_bind_of(s, 0, fast(s), lkey);
		else if (rows[i].opcode == USER_LOCAL_INV)
			post_invalidate(s, 0, lkey, false);
		else
			post_register(s, 0, window_1(s), lkey);
		rig_expect_cqe(s, USER_INVALID, SYNDROME_MW_BIND, 0);
		assert_int_equal(sim_counter(s, 0, rows[i].why), 1);
		assert_int_equal(rig_state(s, 0), QP_ERR);
		rig_end(s);
	}
}

TEST_PEER(local__flushed_in_err_is_not_executed)
{
	uint32_t lkey = region(s), key = window_2(s) | TAG(1);

	assert_int_equal(ceu_exec(s->node[0].ceu, CEU_2ERR, s->node[0].qp[0].qpn, NULL, 0, NULL, 0),
			 CEU_OK);
	post_bind_of(s, 0, key, lkey);
	post_invalidate(s, 0, key, true);
	peer_expect_failed(s, SYNDROME_WR_FLUSH, 0, 2);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 0);
}

/* Executed: it is flushed if an earlier request fails, and not if a later one does. */
TEST_PEER(local__between_failures)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);
	uint32_t lkey = region(s), window = window_1(s);

	post_bind_of(s, 0, window | TAG(1), lkey);
	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, window | TAG(2), lkey);
	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, window | TAG(3), lkey);
	peer_expect_all(s, PSN, &wr, &wr);
	rig_expect_cqe(s, USER_BIND_MW, 0, 0);
	peer_nak(s, PSN + 1, AETH_NAK_REMOTE_ACCESS, 1);
	rig_expect_done(s, 1, USER_RDMA_WRITE, USER_BIND_MW);
	peer_expect_failed(s, SYNDROME_REMOTE_ACCESS, 3, 5);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 3);
}

/* In ERR everything that has not completed is flushed in order, including local operations that
 * were executed: so a flushed completion says nothing about the key. Its owner revokes it. */
TEST_PEER(local__flushed_though_executed)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);
	uint32_t lkey = region(s), window = window_1(s);
	struct ceu *ceu = s->node[0].ceu;

	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, window | TAG(1), lkey);
	peer_expect(s, &wr, PSN, NULL);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 1);
	assert_int_equal(ceu_exec(ceu, CEU_2ERR, s->node[0].qp[0].qpn, NULL, 0, NULL, 0), CEU_OK);
	peer_expect_failed(s, SYNDROME_WR_FLUSH, 0, 2);
	sim_run(s, MS);
	rig_no_cqe(s);
	assert_int_equal(ceu_exec(ceu, CEU_HW2SW_MPT, lkey, NULL, 0, NULL, 0), CEU_BAD_SYS_STATE);
	assert_int_equal(ceu_exec(ceu, CEU_HW2SW_MPT, window, NULL, 0, NULL, 0), CEU_OK);
	assert_int_equal(ceu_exec(ceu, CEU_HW2SW_MPT, lkey, NULL, 0, NULL, 0), CEU_OK);
}

/* Unsignaled: executed in its turn, and silent; one that fails is not. */
SIM_TEST(local__unsignaled, two(1), sim_destroy)
{
	uint32_t lkey = region(s), window = window_2(s), at;
	struct wqe_bind u = bind_unit(s, window | TAG(1), lkey);
	struct sim_wr wr = {
		.opcode = USER_BIND_MW, .unsignaled = true, .units = &u, .unit_bytes = sizeof(u)};

	sim_post(s, 0, 0, &wr);
	at = post_invalidate(s, 0, window | TAG(1), false);
	expect_done(s, 0, USER_LOCAL_INV, at);
	sim_post(s, 0, 0, &wr);
	at = sim_post(s, 0, 0, &wr); /* is bound */
	expect_error(s, 0, SYNDROME_MW_BIND, at);
}

TEST(local__of_a_uc_queue_pair)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	uint32_t lkey, window, at[3];
	struct sim *s;

	p.service = SERVICE_UC;
	s = sim_create(&p);
	lkey = region(s);
	window = window_2(s);
	at[0] = post_bind_of(s, 0, window | TAG(1), lkey);
	expect_done(s, 0, USER_BIND_MW, at[0]);
	peer_writes(s, 0, window | TAG(1), AT, 8, 0);
	sim_run(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_uc_request), 0);
	at[0] = post_bind_of(s, 0, window | TAG(2), lkey); /* is bound */
	at[1] = post_invalidate(s, 0, window | TAG(1), false);
	expect_error(s, 0, SYNDROME_MW_BIND, at[0]);
	expect_error(s, 0, SYNDROME_WR_FLUSH, at[1]);
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_SQE);
	sim_destroy(s);
}

/* ---- little room ---- */

/* Four are a turn. */
TEST_PEER_WITH(local__more_than_a_turn_allows, p.settings = rig_settings(),
	       p.settings->quantum_bytes = 256)
{
	for (uint32_t i = 0, lkey = region(s), window = window_1(s); i < 20; i++)
		post_bind_of(s, 0, window | TAG(i), lkey);
	rig_expect_same(s, 0, 20, USER_BIND_MW);
}

TEST_PEER_WITH(local__more_than_there_are_buffers, p.settings = rig_settings(),
	       p.settings->swpb_elements = 8)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);

	sim_post(s, 0, 0, &wr);
	for (uint32_t i = 0, lkey = region(s), window = window_1(s); i < 20; i++)
		post_bind_of(s, 0, window | TAG(i), lkey);
	peer_expect(s, &wr, PSN, NULL);
	sim_run(s, 100 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds),
			 4); /* half of the pool, with the WRITE */
	assert_true(sim_counter(s, 0, COUNTER_park_buffer) > 0);
	rig_no_cqe(s);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_expect_same(s, 1, 21, USER_BIND_MW);
}

TEST_PEER(local__drained_only_when_completed)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 8);
	struct ceu_modify m = {.attr = {.mask = QP_ATTR_EN_SQD_ASYNC_NOTIFY}};
	uint32_t lkey = region(s), window = window_1(s);

	sim_post(s, 0, 0, &wr);
	post_bind_of(s, 0, window | TAG(1), lkey);
	peer_expect(s, &wr, PSN, NULL);
	assert_int_equal(
		ceu_exec(s->node[0].ceu, CEU_RTS2SQD, s->node[0].qp[0].qpn, &m, sizeof(m), NULL, 0),
		CEU_OK);
	post_bind_of(s, 0, window | TAG(2), lkey);
	sim_run(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_binds), 1);
	rig_no_event(s);
	peer_ack(s, PSN, 1);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_BIND_MW);
	sim_run(s, 100 * US);
	rig_expect_event(s, EQE_SQ_DRAINED, s->node[0].qp[0].qpn);
	rig_no_cqe(s);
}
