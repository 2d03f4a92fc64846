/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors end to end: bad requests in their turn, dead peers that cost nobody else anything, hostile
 * doorbells and descriptors. */
#include "rig.h"

static struct sim *make(unsigned qps)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.qps = qps;
	p.rnr_retry = 3;
	p.retry_cnt = 2;
	return sim_create(&p);
}

static void expect(struct sim *s, int node, uint8_t opcode, uint32_t syndrome, uint32_t offset)
{
	struct cqe c;

	assert_true(sim_wait(s, node, &c, 200 * MS));
	assert_int_equal(c.opcode, opcode);
	if (opcode == USER_INVALID)
		assert_int_equal(c.imm_or_error & 0xff, syndrome);
	assert_int_equal(c.wqe_offset, offset);
}

static void end(struct sim *s)
{
	struct cqe c;

	sim_run(s, 10 * MS);
	assert_false(sim_poll_cq(s, 0, &c));
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

static struct sim_wr write_of(uint32_t bytes)
{
	return SIM_WR(USER_RDMA_WRITE, 0, bytes, .remote = 1 << 20);
}

SIM_TEST(bad_request__completes_in_its_turn_and_flushes_the_rest, make(1), end)
{
	struct sim_wr good = write_of(5000), bad = write_of(5000), worse = write_of(64);
	uint32_t at[4];

	bad.sge[0].key = 0x777;
	worse.opcode = 0x1f;
	at[0] = sim_post(s, 0, 0, &good);
	at[1] = sim_post(s, 0, 0, &bad);
	at[2] = sim_post(s, 0, 0, &worse);
	at[3] = sim_post(s, 0, 0, &good);
	expect(s, 0, USER_RDMA_WRITE, 0, at[0]);
	expect(s, 0, USER_INVALID, SYNDROME_LOCAL_PROT, at[1]);
	expect(s, 0, USER_INVALID, SYNDROME_WR_FLUSH, at[2]);
	expect(s, 0, USER_INVALID, SYNDROME_WR_FLUSH, at[3]);
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
	expect(s, 0, USER_INVALID, SYNDROME_WR_FLUSH, sim_post(s, 0, 0, &good));
	assert_int_equal(sim_counter(s, 0, COUNTER_bad_wqe_access), 1);
}

SIM_TEST(c9_142__retry_exhausted_and_nobody_else_waits, make(2), end)
{
	struct sim_wr wr = write_of(3000);
	struct qp *dead = sim_context(s, 0, 0);
	struct cqe c;
	unsigned done = 0;
	uint32_t at;

	dead->dest_qpn ^= 0x5500; /* a QP that is not there */
	at = sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 20; i++) {
		sim_post(s, 0, 1, &wr);
		assert_true(sim_wait(s, 0, &c, MS / 10));
		done += c.opcode == USER_RDMA_WRITE;
	}
	assert_int_equal(done, 20);
	expect(s, 0, USER_INVALID, SYNDROME_RETRY_EXC, at);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts),
			 3); /* retry_cnt 2: sent three times */
}

/* Seven QPs with dead peers, one after another, post as much as they may; the eighth is served at
 * once. */
static void dead_peers(uint8_t opcode, uint32_t bytes)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = write_of(bytes);
	struct sim *s;
	struct cqe c;

	p.settings = rig_settings();
	p.settings->swpb_elements = 64;
	p.settings->rpb_elements = 64;
	p.qps = SIM_QPS;
	p.timeout = 0; /* they never give up */
	s = sim_create(&p);
	wr.opcode = opcode;
	for (unsigned q = 0; q < SIM_QPS - 1; q++) {
		sim_context(s, 0, q)->dest_qpn ^= 0x5500;
		for (unsigned i = 0; i < 16; i++)
			sim_post(s, 0, q, &wr);
		sim_run(s, 100000);
	}
	for (unsigned i = 0; i < 20; i++) {
		sim_post(s, 0, SIM_QPS - 1, &wr);
		assert_true(sim_wait(s, 0, &c, MS));
		assert_int_equal(c.opcode, opcode);
		assert_int_equal(c.my_qpn, s->node[0].qp[SIM_QPS - 1].qpn);
	}
	sim_destroy(s);
}

TEST(isolation__dead_peers_leave_packet_buffers)
{
	dead_peers(USER_RDMA_WRITE, 20000);
}

TEST(isolation__dead_peers_leave_read_buffers)
{
	dead_peers(USER_RDMA_READ, 20000);
}

/* More doorbells than there are descriptors, for a QP with a dead peer: its timer still runs, all
 * of them complete in error, and then the client's other QP is served. */
SIM_TEST(isolation__doorbells_beyond_the_descriptors, make(2), end)
{
	struct sim_node *n = &s->node[0];
	struct sim_wr wr = write_of(64);
	unsigned posted = 0, failed = 0;
	struct cqe c;

	sim_context(s, 0, 0)->dest_qpn ^= 0x5500;
	while (posted < 6000) {
		while (posted < 6000 &&
		       n->doorbells - n->page->uar->consumer_index < UAR_DOORBELLS) {
			sim_post(s, 0, 0, &wr);
			posted++;
		}
		sim_run(s, 100000);
		while (sim_poll_cq(s, 0, &c))
			failed += c.opcode == USER_INVALID;
	}
	for (unsigned i = 0; i < 1000 && failed < posted; i++) {
		sim_run(s, 100000);
		while (sim_poll_cq(s, 0, &c))
			failed += c.opcode == USER_INVALID;
	}
	assert_int_equal(failed, posted);
	expect(s, 0, USER_RDMA_WRITE, 0, sim_post(s, 0, 1, &wr));
}

TEST(c9_061__message_of_more_than_2_to_the_23_packets_is_refused)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = write_of(1u << 30);
	struct sim *s;

	p.mtu = 1;
	s = sim_create(&p);
	wr.sges = 3;
	wr.sge[1] = wr.sge[2] = wr.sge[0];
	wr.sge[2].length = 1;
	expect(s, 0, USER_INVALID, SYNDROME_LOCAL_LENGTH, sim_post(s, 0, 0, &wr));
	end(s);
}

SIM_TEST(doorbells__random_bits, make(2), end)
{
	struct sim_node *n = &s->node[0];
	struct cqe c;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t bits = sim_random(s);
		uint32_t phase = n->doorbells / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;

		if (i & 1) /* a QP that exists */
			bits = (bits & 0xffffffffull) |
			       (uint64_t)(n->qp[i >> 1 & 1].qpn << 8 | (bits >> 32 & 0xff)) << 32;
		bits = (bits & ~(uint64_t)DOORBELL_PHASE) | phase;
		n->page->uar->doorbell[n->doorbells++ % UAR_DOORBELLS] = bits;
		if (i % 64 == 0)
			sim_run(s, 2000);
		while (sim_poll_cq(s, 0, &c))
			;
	}
	sim_run(s, 100 * MS);
	while (sim_poll_cq(s, 0, &c))
		sim_run(s, 1000);
}

TEST(descriptors__random_bytes)
{
	for (unsigned seed = 0; seed < 40; seed++) {
		struct sim *s = make(1);
		struct sim_node *n = &s->node[0];
		struct cqe c;

		s->rng = seed;
		for (unsigned i = 0; i < 300; i++) {
			struct sim_wr wr = write_of(64);
			uint8_t *w;

			wr.opcode = sim_random(s) % 0x20;
			w = n->qp[0].sq + sim_post(s, 0, 0, &wr);
			for (unsigned k = 0; k < 1 + sim_random(s) % 20; k++)
				w[sim_random(s) % 64] = sim_random(s);
			sim_run(s, sim_random(s) % 4000);
			while (sim_poll_cq(s, 0, &c))
				;
		}
		sim_run(s, 300 * MS);
		while (sim_poll_cq(s, 0, &c))
			sim_run(s, 1000);
		while (sim_poll_cq(s, 1, &c))
			;
		end(s);
	}
}
