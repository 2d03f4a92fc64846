/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams to multicast groups between two HCAs: who receives them, how one receiver's fault
 * affects the others, and that nothing is left over.
 */
#include "rig.h"

#define GRH	40
#define MESSAGE 100u
#define BIG	3000u
#define PLACE	8192u /* of memory, for each receive */

static const uint8_t group4[16] = {[10] = 0xff, [11] = 0xff, 239, 1, 1, 1};
static const uint8_t other4[16] = {[10] = 0xff, [11] = 0xff, 239, 1, 1, 2};
static const uint8_t group6[16] = {0xff, 0x0e, [15] = 1};

static struct sim *make_with(const struct sim_params *with)
{
	struct sim_params p = *with;
	struct sim *s;

	p.service = SERVICE_UD;
	p.qps = SIM_QPS;
	p.mtu = 5;
	s = sim_create(&p);
	for (unsigned i = 0; i < BIG; i++)
		s->node[0].memory[i] = (uint8_t)(i * 7 + 3);
	return s;
}

static struct sim *make(void)
{
	const struct sim_params p = SIM_PARAMS_DEFAULT;

	return make_with(&p);
}

static enum ceu_status command(struct sim *s, uint8_t op, int node, unsigned qp,
			       const uint8_t *group)
{
	struct ceu_multicast in;

	memcpy(in.mgid, group, sizeof(in.mgid));
	return ceu_exec(s->node[node].ceu, op, s->node[node].qp[qp].qpn, &in, sizeof(in), NULL, 0);
}

static void attach(struct sim *s, int node, unsigned qp, const uint8_t *group)
{
	assert_int_equal(command(s, CEU_ATTACH_MGM, node, qp, group), CEU_OK);
}

static void detach(struct sim *s, int node, unsigned qp, const uint8_t *group)
{
	assert_int_equal(command(s, CEU_DETACH_MGM, node, qp, group), CEU_OK);
}

static uint64_t place_of(unsigned qp)
{
	return 65536 + (uint64_t)qp * PLACE;
}

static void post_recv(struct sim *s, int node, unsigned qp)
{
	sim_post_recv(s, node, qp, place_of(qp), PLACE);
}

static void send_to(struct sim *s, unsigned qp, const uint8_t *group, uint32_t bytes)
{
	struct sim_wr wr = SIM_WR(USER_SEND, 0, bytes, .unsignaled = true, .ud_qpn = MULTICAST_QPN,
				  .ud_qkey = 0x11111111, .ud_group = group);

	sim_post(s, 0, qp, &wr);
}

/* The QPs of that node that received one message, by bit; each of them once, all of its bytes. */
static unsigned received(struct sim *s, int node, uint32_t bytes)
{
	struct sim_node *n = &s->node[node];
	unsigned got = 0;
	struct cqe c;

	sim_run(s, MS);
	while (sim_poll_cq(s, node, &c)) {
		unsigned qp = 0;

		while (n->qp[qp].qpn != c.my_qpn)
			qp++;
		assert_int_equal(c.opcode, USER_RECV);
		assert_int_equal(c.byte_count, bytes + GRH);
		assert_int_equal(got >> qp & 1, 0);
		got |= 1u << qp;
		assert_memory_equal(n->memory + place_of(qp) + GRH, s->node[0].memory, bytes);
	}
	return got;
}

static void end(struct sim *s)
{
	struct eqe e;

	sim_run(s, MS);
	for (int i = 0; i < 2; i++) {
		struct cqe c;

		assert_false(sim_poll_cq(s, i, &c));
		while (sim_poll_event(s, i, &e))
			assert_int_equal(e.type, EQE_COMM_EST);
	}
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* ---- who gets it ---- */

static void to_those_attached(bool ipv6, uint32_t bytes)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	const uint8_t *group = ipv6 ? group6 : group4;
	struct sim *s;
	const uint8_t *grh;

	p.ipv6 = ipv6;
	s = make_with(&p);
	for (int node = 0; node < 2; node++)
		for (unsigned i = 0; i < SIM_QPS; i++)
			post_recv(s, node, i);
	for (unsigned i = 1; i < 5; i++)
		attach(s, 1, i, group);
	attach(s, 1, 6, other4);
	attach(s, 0, 2, group); /* one on the sender's device */
	send_to(s, 0, group, bytes);
	assert_int_equal(received(s, 1, bytes), 0x1e);
	assert_int_equal(received(s, 0, bytes), 0x04);
	grh = s->node[1].memory + place_of(1);
	assert_memory_equal(grh + 24 + (ipv6 ? 0 : 12), group + (ipv6 ? 0 : 12), ipv6 ? 16 : 4);
	assert_int_equal(sim_counter(s, 1, COUNTER_rx_multicast), 1);
	assert_int_equal(sim_counter(s, 1, COUNTER_multicast_copies), 4);
	assert_int_equal(sim_counter(s, 0, COUNTER_multicast_copies), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_multicast_requests), 1);
	end(s);
}

TEST(multicast__to_each_queue_pair_attached_once)
{
	to_those_attached(false, MESSAGE);
	to_those_attached(true, MESSAGE);
	to_those_attached(false, BIG); /* its ICRC is checked by HeaderParser, too */
	to_those_attached(true, 0);
}

SIM_TEST(multicast__the_sender_if_attached, make(), end)
{
	post_recv(s, 0, 0);
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 0, MESSAGE), 0);
	attach(s, 0, 0, group4);
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 0, MESSAGE), 1);
}

SIM_TEST(multicast__nobody_listens, make(), end)
{
	post_recv(s, 1, 0);
	attach(s, 1, 0, group4);
	send_to(s, 0, other4, MESSAGE);
	assert_int_equal(received(s, 1, MESSAGE), 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_rx_multicast), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_multicast), 1);
}

SIM_TEST(multicast__detached, make(), end)
{
	for (unsigned i = 0; i < 3; i++) {
		post_recv(s, 1, i);
		attach(s, 1, i, group4);
	}
	assert_int_equal(command(s, CEU_ATTACH_MGM, 1, 1, group4), CEU_BAD_SYS_STATE);
	detach(s, 1, 1, group4);
	assert_int_equal(command(s, CEU_DETACH_MGM, 1, 1, group4), CEU_BAD_SYS_STATE);
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 1, MESSAGE), 0x5);
	detach(s, 1, 0, group4);
	detach(s, 1, 2, group4);
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 1, MESSAGE), 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_rx_multicast), 1);
	attach(s, 1, 1, group4);
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 1, MESSAGE), 0x2);
}

/* A datagram to a queue pair's own number is not for its groups. */
SIM_TEST(multicast__unicast_goes_to_one, make(), end)
{
	struct sim_wr wr = SIM_WR(USER_SEND, 0, MESSAGE, .unsignaled = true,
				  .ud_qpn = s->node[1].qp[1].qpn, .ud_qkey = 0x11111111);

	for (unsigned i = 0; i < 3; i++) {
		post_recv(s, 1, i);
		attach(s, 1, i, group4);
	}
	sim_post(s, 0, 0, &wr);
	assert_int_equal(received(s, 1, MESSAGE), 0x2);
	/* And what is for a group must have a group's address. */
	wr.ud_qpn = MULTICAST_QPN;
	sim_post(s, 0, 0, &wr);
	assert_int_equal(received(s, 1, MESSAGE), 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_rx_multicast), 1);
}

/* ---- one's fault is not the others' ---- */

SIM_TEST(multicast__q_key_of_each, make(), end)
{
	for (unsigned i = 0; i < 4; i++) {
		post_recv(s, 1, i);
		attach(s, 1, i, group4);
	}
	sim_context(s, 1, 1)->qkey = 0x22222222;
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 1, MESSAGE), 0xd);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_ud_qkey), 1);
}

SIM_TEST(multicast__no_receive_no_state_no_partition, make(), end)
{
	for (unsigned i = 0; i < 5; i++) {
		if (i != 2)
			post_recv(s, 1, i);
		attach(s, 1, i, group4);
	}
	sim_context(s, 1, 1)->pkey = 0x8001;
	sim_modify(s, 1, 3, QP_RST, 0);
	send_to(s, 0, group4, MESSAGE);
	assert_int_equal(received(s, 1, MESSAGE), 0x11);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_rx_pkey), 1);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_no_receive), 1);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_qp_state), 1);
}

static void corrupted(uint32_t bytes)
{
	struct sim *s = make();

	for (unsigned i = 0; i < 4; i++) {
		post_recv(s, 1, i);
		attach(s, 1, i, group4);
	}
	s->faults.corrupt_ppm = 1000000;
	send_to(s, 0, group4, bytes);
	assert_int_equal(received(s, 1, bytes), 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_multicast_copies), 0);
	s->faults.corrupt_ppm = 0;
	send_to(s, 0, group4, bytes);
	assert_int_equal(received(s, 1, bytes), 0xf);
	end(s);
}

TEST(multicast__a_damaged_one_is_nobodys)
{
	corrupted(MESSAGE);
	corrupted(BIG);
}

/* ---- many ---- */

/* More references than HP_EE has places: HeaderParser waits, and no queue pair misses one. */
SIM_TEST(multicast__each_of_many_to_each, make(), end)
{
	enum { MESSAGES = 100 };
	unsigned got[SIM_QPS] = {0}, total = 0;
	struct cqe c;

	for (unsigned i = 0; i < SIM_QPS; i++) {
		attach(s, 1, i, group4);
		for (unsigned k = 0; k < MESSAGES; k++)
			post_recv(s, 1, i);
	}
	for (unsigned k = 0; k < MESSAGES; k++)
		send_to(s, 0, group4, MESSAGE);
	for (unsigned k = 0; k < 10; k++) {
		sim_run(s, MS);
		for (; sim_poll_cq(s, 1, &c); total++)
			for (unsigned i = 0; i < SIM_QPS; i++)
				got[i] += s->node[1].qp[i].qpn == c.my_qpn;
	}
	for (unsigned i = 0; i < SIM_QPS; i++)
		assert_int_equal(got[i], MESSAGES);
	assert_int_equal(total, MESSAGES * SIM_QPS);
}

/* Frames and references lie in every ring when the queue pairs leave, as any client may. */
SIM_TEST(multicast__destroyed_while_they_come, make(), end)
{
	struct cqe c;

	for (unsigned i = 0; i < SIM_QPS; i++)
		attach(s, 1, i, group4);
	for (unsigned round = 0; round < SIM_QPS; round++) {
		for (unsigned i = 0; i < SIM_QPS; i++)
			for (unsigned k = 0; k < 20; k++)
				post_recv(s, 1, i);
		for (unsigned k = 0; k < 60; k++)
			send_to(s, 0, group4, MESSAGE);
		sim_run(s, 2 * US + round * US);
		if (round % 2) /* the number of a destroyed one stays in the group */
			detach(s, 1, round, group4);
		sim_renew(s, 1, round);
		sim_run(s, MS);
		while (sim_poll_cq(s, 1, &c))
			assert_int_not_equal(c.my_qpn, 0);
	}
}

/* Clones run out: some miss some, which is counted, and all is well again. */
TEST(multicast__without_buffers)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	unsigned n = 0;
	struct rte_mbuf *held[8192];
	struct sim *s;

	s = make_with(&p);
	for (unsigned i = 0; i < SIM_QPS; i++) {
		attach(s, 1, i, group4);
		post_recv(s, 1, i);
	}
	send_to(s, 0, group4, MESSAGE);
	while (!s->end[1].count)
		sim_step(s);
	while (rte_mempool_avail_count(s->packets) > 2)
		held[n++] = rte_pktmbuf_alloc(s->packets);
	sim_run(s, MS);
	assert_true(sim_counter(s, 1, COUNTER_drop_multicast_buffer) > 0);
	assert_true(sim_counter(s, 1, COUNTER_multicast_copies) > 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_multicast_copies) +
				 sim_counter(s, 1, COUNTER_drop_multicast_buffer),
			 SIM_QPS);
	rte_pktmbuf_free_bulk(held, n);
	(void)received(s, 1, MESSAGE);
	end(s);
}
