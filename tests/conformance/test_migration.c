/* SPDX-License-Identifier: BSD-3-Clause */
/* Automatic path migration: packet by packet, and two HCAs whose path dies under their traffic. */
#include "peer.h"
#include "traffic.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU, BOTH = QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE };

static struct control_qp_attr attributes(struct sim *s)
{
	struct control_qp_attr a;

	assert_int_equal(ceu_exec(s->node[0].ceu, CEU_QUERY_QP, s->node[0].qp[0].qpn, NULL, 0, &a,
				  sizeof(a)),
			 CEU_OK);
	return a;
}

static void assert_state(struct sim *s, enum control_mig_state state)
{
	assert_int_equal(attributes(s).path_mig_state, state);
}

/* The packet came along that path, and says that its sender has (not) migrated. */
static void assert_way(struct sim *s, const struct rig_packet *p, bool alternate, uint8_t migreq)
{
	uint8_t from[16], to[16];

	memcpy(from, s->node[0].ip, 16);
	memcpy(to, s->node[1].ip, 16);
	if (alternate) {
		sim_alternate_ip(s, 0, from);
		sim_alternate_ip(s, 1, to);
	}
	assert_memory_equal(p->src_ip, from, 16);
	assert_memory_equal(p->dst_ip, to, 16);
	assert_int_equal(p->h.migreq, migreq);
}

/* A WRITE from the peer, which may say that it has migrated. */
static void write_from_peer(struct sim *s, uint32_t psn, uint8_t migreq)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, psn, 0, MTU);

	h.ackreq = 1;
	h.migreq = migreq;
	rig_send(s, h, NULL, MTU);
}

static struct sim *rearmed(void)
{
	struct sim_params p = peer_params();
	struct sim *s;

	p.timeout = 8;
	p.retry_cnt = 1;
	p.alternate_timeout = 10;
	s = peer_create(&p);
	sim_modify(s, 0, 0, QP_RTS, BOTH);
	return s;
}

/* The peer's first packet, PSN, says that it is ready, too. */
static struct sim *armed(void)
{
	struct sim *s = rearmed();

	write_from_peer(s, PSN, 0);
	rig_expect(s, WIRE_RC_ACK, PSN);
	assert_state(s, CONTROL_MIG_ARMED);
	return s;
}

/* ---- APM-1, APM-2: who is ready ---- */

/* Requests, repeated ones, and answers. */
RIG_TEST(apm_001__migreq_follows_the_state, peer_make())
{
	static const struct {
		uint32_t mask;
		uint8_t migreq;
	} steps[] = {{0, 0}, {QP_ATTR_ALT_PATH, 1}, {QP_ATTR_PATH_MIG_STATE, 0}};

	for (uint32_t i = 0; i < 3; i++) {
		struct rig_packet p;

		if (steps[i].mask)
			sim_modify(s, 0, 0, QP_RTS, steps[i].mask);
		peer_post(s, USER_RDMA_WRITE, MTU);
		p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
		assert_way(s, &p, false, steps[i].migreq);
		peer_nak(s, PSN + i, AETH_NAK_SEQUENCE, i);
		p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
		assert_way(s, &p, false, steps[i].migreq);
		peer_ack(s, PSN + i, i + 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, i * SIM_STRIDE);
		write_from_peer(s, PSN + i, 0);
		p = rig_expect(s, WIRE_RC_ACK, PSN + i);
		assert_way(s, &p, false, steps[i].migreq);
	}
	assert_state(s, CONTROL_MIG_ARMED);
}

/* A packet that was sent before says now what its queue pair says. */
RIG_TEST(apm_001__what_is_sent_again_is_of_its_time, peer_make())
{
	struct rig_packet p;

	sim_modify(s, 0, 0, QP_RTS, QP_ATTR_ALT_PATH);
	peer_post(s, USER_RDMA_WRITE, MTU);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	assert_way(s, &p, false, 1);
	sim_modify(s, 0, 0, QP_RTS, QP_ATTR_PATH_MIG_STATE);
	peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	assert_way(s, &p, false, 0);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

RIG_TEST(apm_002__armed_by_migreq_0, rearmed())
{
	assert_state(s, CONTROL_MIG_REARM);
	write_from_peer(s, PSN, 1);
	rig_expect(s, WIRE_RC_ACK, PSN);
	assert_state(s, CONTROL_MIG_REARM);
	rig_bad_icrc(s);
	write_from_peer(s, PSN + 1, 0);
	rig_silent(s, 20 * US);
	assert_state(s, CONTROL_MIG_REARM);
	rig_alternate(s, true); /* not there yet */
	write_from_peer(s, PSN + 1, 0);
	rig_silent(s, 20 * US);
	assert_state(s, CONTROL_MIG_REARM);
	rig_alternate(s, false);
	write_from_peer(s, PSN + 1, 0);
	rig_expect(s, WIRE_RC_ACK, PSN + 1);
	assert_state(s, CONTROL_MIG_ARMED);
	rig_no_event(s);
}

/* ---- APM-3: the retry counter is used up ---- */

static uint64_t wait_for(struct sim *s, struct rig_packet *p, uint32_t psn)
{
	uint64_t start = s->now_ns;

	assert_true(rig_recv(s, p, 20 * MS));
	assert_int_equal(p->h.psn, psn);
	return s->now_ns - start;
}

/* Everything outstanding goes on there, in order, whole; a READ, too. */
RIG_TEST(apm_003__goes_on_along_the_alternate_path, armed())
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 3 * MTU), rd = peer_wr(USER_RDMA_READ, MTU);
	struct rig_packet p;

	peer_posts(s, &wr, &rd);
	for (unsigned tries = 0; tries < 2; tries++) {
		peer_expect(s, &wr, PSN, &p);
		assert_way(s, &p, false, 0);
		peer_expect(s, &rd, PSN + 3, &p);
		assert_way(s, &p, false, 0);
		while (!rig_recv(s, &p, 0) && sim_counter(s, 0, COUNTER_loss_timeouts) == tries)
			sim_step(s);
	}
	rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
	peer_expect(s, &wr, PSN, &p);
	assert_way(s, &p, true, 1);
	peer_expect(s, &rd, PSN + 3, &p);
	assert_way(s, &p, true, 1);
	assert_state(s, CONTROL_MIG_MIGRATED);
	peer_ack(s, PSN + 2, 1); /* the former path is none any more */
	rig_quiet(s, 20 * US);
	rig_alternate(s, true);
	peer_ack(s, PSN + 2, 1);
	peer_read_responses(s, PSN + 3, MTU, 0, 0, 2);
	rig_expect_done(s, 0, USER_RDMA_WRITE, USER_RDMA_READ);
	peer_post(s, USER_RDMA_WRITE, MTU);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 4);
	assert_way(s, &p, true, 1);
	peer_ack(s, PSN + 4, 3);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
	assert_int_equal(sim_counter(s, 0, COUNTER_path_migrations), 1);
}

/* A kept packet is copied for the other path; without a buffer it waits for one. */
RIG_TEST(apm_003__waits_for_a_buffer, armed())
{
	static struct rte_mbuf *hoard[8192];
	struct rig_packet p;
	unsigned n = 0;

	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	while (!sim_counter(s, 0, COUNTER_loss_timeouts))
		sim_step(s);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	while ((hoard[n] = rte_pktmbuf_alloc(s->packets)))
		n++;
	rig_silent(s, 3 * MS);
	assert_int_not_equal(sim_counter(s, 0, COUNTER_packet_empty), 0);
	rte_pktmbuf_free_bulk(hoard, n);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	assert_way(s, &p, true, 1);
	rig_alternate(s, true);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* There, too, it has retry_cnt tries, with the timeout of that path; then it fails. */
RIG_TEST(apm_003__with_its_timeout_and_a_new_counter, armed())
{
	static const uint8_t timeouts[] = {8, 8, 10};
	struct rig_packet p;

	peer_post(s, USER_RDMA_WRITE, MTU);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t ttr = 4096ull << timeouts[i], after = wait_for(s, &p, PSN);

		assert_in_range(after, ttr, 4 * ttr);
		assert_way(s, &p, i > 0, i > 0);
	}
	peer_expect_error(s, SYNDROME_RETRY_EXC, 0);
	rig_reconnect(s, 0);
}

/* Sequence NAKs count as well. Without an alternate path, or not armed, the queue pair fails. */
RIG_TEST(apm_003__naks_count, armed())
{
	struct rig_packet p;

	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	for (unsigned i = 0; i < 2; i++) {
		sim_context(s, 0, 0)->rrc.nak_psn = 0; /* as if long ago */
		peer_nak(s, PSN, AETH_NAK_SEQUENCE, 0);
		p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
		assert_way(s, &p, i > 0, i > 0);
	}
	rig_alternate(s, true);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
}

RIG_TEST(apm_003__not_before_it_is_armed, rearmed())
{
	struct rig_packet p;

	peer_post(s, USER_RDMA_WRITE, MTU);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	wait_for(s, &p, PSN);
	assert_way(s, &p, false, 0);
	peer_expect_error(s, SYNDROME_RETRY_EXC, 0);
	rig_no_event(s);
	rig_reconnect(s, 0);
	assert_state(s, CONTROL_MIG_MIGRATED);
	peer_post(s, USER_RDMA_WRITE, MTU);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	assert_way(s, &p, false, 0); /* a new life knows no alternate path */
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* ---- APM-4, APM-5: the peer asks ---- */

/* A request, and a response to what was sent along the former path. */
RIG_TEST(apm_004__follows_a_request, armed())
{
	struct rig_packet p;

	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_alternate(s, true);
	write_from_peer(s, PSN + 1, 1);
	p = rig_expect(s, WIRE_RC_ACK, PSN + 1);
	assert_way(s, &p, true, 1);
	rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
	rig_holds_pattern(s, 0, MTU);
	wait_for(s, &p, PSN);
	assert_way(s, &p, true, 1);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_no_event(s);
}

RIG_TEST(apm_004__follows_a_response, armed())
{
	struct wire_headers ack = rig_headers(s, 0, WIRE_RC_ACK, PSN, 0, 0);

	ack.syndrome = aeth_ack(AETH_CREDIT_INVALID);
	ack.msn = ack.migreq = 1;
	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	rig_alternate(s, true);
	rig_send(s, ack, NULL, 0);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
	assert_state(s, CONTROL_MIG_MIGRATED);
}

/* A long packet, whose ICRC others check, moves nothing if it is damaged. */
TEST_PEER_WITH(apm_004__but_not_a_damaged_packet, p.mtu = 5)
{
	struct wire_headers h;

	sim_modify(s, 0, 0, QP_RTS, BOTH);
	write_from_peer(s, PSN, 0);
	rig_expect(s, WIRE_RC_ACK, PSN);
	h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN + 1, 0, 4096);
	h.migreq = h.ackreq = 1;
	rig_alternate(s, true);
	for (unsigned good = 0; good < 2; good++) {
		if (!good)
			rig_bad_icrc(s);
		rig_send(s, h, NULL, 4096);
		sim_run(s, 20 * US);
		assert_state(s, good ? CONTROL_MIG_MIGRATED : CONTROL_MIG_ARMED);
	}
	rig_expect(s, WIRE_RC_ACK, PSN + 1);
}

RIG_TEST(apm_005__another_path_is_refused, armed())
{
	const uint32_t qpn = s->node[0].qp[0].qpn;

	for (unsigned i = 0; i < 3; i++) { /* one event, however often */
		if (i == 2)
			rig_alternate_end(s);
		write_from_peer(s, PSN + 1, 1);
		rig_silent(s, 20 * US);
	}
	rig_expect_event(s, EQE_PATH_MIG_ERR, qpn);
	rig_no_event(s);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_migration), 3);
	assert_state(s, CONTROL_MIG_ARMED);
	rig_alternate(s, false);
	write_from_peer(s, PSN + 1, 0);
	rig_expect(s, WIRE_RC_ACK, PSN + 1);
}

/* What the peer sent before it was ready says nothing of the path it takes now, however late it comes: a request
 * that another one has overtaken, a response to what was sent before. */
RIG_TEST(apm_005__but_for_a_late_packet, rearmed())
{
	struct wire_headers ack = rig_headers(s, 0, WIRE_RC_ACK, PSN, 0, 0);

	peer_post(s, USER_RDMA_WRITE, MTU);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	write_from_peer(s, PSN + 1, 0);
	rig_expect(s, WIRE_RC_ACK, PSN); /* a sequence NAK */
	assert_state(s, CONTROL_MIG_ARMED);
	write_from_peer(s, PSN, 1);
	rig_expect(s, WIRE_RC_ACK, PSN + 1);
	ack.syndrome = aeth_ack(AETH_CREDIT_INVALID);
	ack.msn = ack.migreq = 1;
	rig_send(s, ack, NULL, 0);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	assert_state(s, CONTROL_MIG_ARMED);
	rig_no_event(s);
	write_from_peer(s, PSN + 2, 1); /* news */
	rig_silent(s, 20 * US);
	rig_expect_event(s, EQE_PATH_MIG_ERR, s->node[0].qp[0].qpn);
}

/* ---- APM-6, APM-7: the program ---- */

static enum ceu_status set_state(struct sim *s, uint8_t op, uint32_t state)
{
	struct ceu_modify m = {
		.attr = {.mask = QP_ATTR_PATH_MIG_STATE, .path_mig_state = (uint8_t)state}};

	return ceu_exec(s->node[0].ceu, op, s->node[0].qp[0].qpn, &m, sizeof(m), NULL, 0);
}

RIG_TEST(apm_006__the_program_migrates, armed())
{
	struct control_qp_attr a = attributes(s);
	struct rig_packet p;

	assert_memory_equal(a.av.dgid, s->node[1].ip, 16);
	assert_int_equal(a.timeout, 8);
	assert_int_equal(set_state(s, CEU_RTS2RTS, CONTROL_MIG_MIGRATED), CEU_OK);
	rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
	peer_post(s, USER_RDMA_WRITE, MTU);
	p = rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	assert_way(s, &p, true, 1);
	rig_alternate(s, true);
	peer_ack(s, PSN, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	a = attributes(s);
	assert_memory_equal(a.av.dgid, p.dst_ip, 16);
	assert_memory_equal(a.alternate.dgid, p.dst_ip, 16);
	assert_int_equal(a.timeout, 10);
	assert_int_equal(a.av.hop_limit, 63);
}

/* From which state to which, by which command. */
TEST(apm_002__only_these_changes)
{
	static const struct {
		struct sim *(*make)(void);
		uint8_t op, to;
		enum ceu_status status;
	} rows[] = {
		{peer_make, CEU_RTS2RTS, CONTROL_MIG_MIGRATED, CEU_OK},
		{peer_make, CEU_RTS2RTS, CONTROL_MIG_REARM, CEU_BAD_PARAM}, /* no other path */
		{peer_make, CEU_RTS2RTS, CONTROL_MIG_ARMED, CEU_BAD_PARAM},
		{rearmed, CEU_RTS2RTS, CONTROL_MIG_MIGRATED, CEU_BAD_PARAM},
		{rearmed, CEU_RTS2RTS, CONTROL_MIG_REARM, CEU_OK},
		{rearmed, CEU_RTS2RTS, CONTROL_MIG_ARMED, CEU_BAD_PARAM},
		{armed, CEU_RTS2RTS, CONTROL_MIG_REARM, CEU_BAD_PARAM},
		{armed, CEU_RTS2SQD, CONTROL_MIG_MIGRATED, CEU_BAD_PARAM}, /* no attribute of it */
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim *s = rows[i].make();
		uint8_t before = attributes(s).path_mig_state;

		assert_int_equal(set_state(s, rows[i].op, rows[i].to), rows[i].status);
		assert_state(s, before);
		rig_end(s);
	}
}

/* Where the queue pair does not send it cannot be rearmed; armed it can be moved. */
RIG_TEST(apm_006__in_sqd, armed())
{
	sim_modify(s, 0, 0, QP_SQD, 0);
	sim_run(s, 10 * US);
	assert_int_equal(set_state(s, CEU_SQD2SQD, CONTROL_MIG_MIGRATED), CEU_OK);
	rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
	sim_modify(s, 0, 0, QP_SQD, QP_ATTR_ALT_PATH);
	assert_int_equal(set_state(s, CEU_SQD2SQD, CONTROL_MIG_REARM), CEU_BAD_PARAM);
	assert_int_equal(set_state(s, CEU_SQD2RTS, CONTROL_MIG_REARM), CEU_OK);
	assert_state(s, CONTROL_MIG_REARM);
}

/* To and fro: each time another path is loaded, in all places that paths have. */
RIG_TEST(apm_007__again_and_again, armed())
{
	for (uint32_t i = 0; i < 7; i++) {
		struct rig_packet p;

		if (i) {
			struct ceu_modify m = {.attr = {.mask = BOTH,
							.path_mig_state = CONTROL_MIG_REARM,
							.alternate_timeout = 8,
							.alternate_port = 1}};

			memcpy(m.alternate.src_ip, s->node[0].ip, 16);
			memcpy(m.attr.alternate.dgid, s->node[1].ip, 16);
			if (i % 2 == 0) {
				sim_alternate_ip(s, 0, m.alternate.src_ip);
				sim_alternate_ip(s, 1, m.attr.alternate.dgid);
			}
			assert_int_equal(ceu_exec(s->node[0].ceu, CEU_RTS2RTS, s->node[0].qp[0].qpn,
						  &m, sizeof(m), NULL, 0),
					 CEU_OK);
			write_from_peer(s, PSN + i, 0);
			p = rig_expect(s, WIRE_RC_ACK, PSN + i);
			assert_way(s, &p, i % 2, 0);
		}
		assert_int_equal(set_state(s, CEU_RTS2RTS, CONTROL_MIG_MIGRATED), CEU_OK);
		rig_expect_event(s, EQE_PATH_MIG, s->node[0].qp[0].qpn);
		rig_alternate(s, i % 2 == 0);
	}
}

/* ---- two HCAs ---- */

/* Nothing passes between the first addresses any more from that time on. */
static bool path_is_dead(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct wire_frame f;
	uint8_t ip[16];

	if (s->now_ns < *(uint64_t *)arg || wire_parse_frame(frame, bytes, &f) != WIRE_OK)
		return false;
	wire_address16(ip, f.src_ip, f.is_ipv6);
	return memcmp(ip, s->node[from].ip, 16) == 0;
}

static void add(struct traffic *t, int node, unsigned qp)
{
	static const uint8_t kinds[] = {USER_RDMA_WRITE, USER_RDMA_WRITE_IMM, USER_SEND,
					USER_RDMA_READ,	 USER_ATOMIC_FA,      USER_ATOMIC_CS};
	struct sim *s = t->s;
	struct traffic_op *o = traffic_add(t, node, qp, kinds[sim_random(s) % 6],
					   sim_random(s) % TRAFFIC_BYTES_MAX);

	o->post_ns = o->recv_ns = s->now_ns + sim_random(s) % 60000;
	o->recv_pieces = 2;
	if (!(sim_traits[o->opcode] & USER_EIGHT_BYTES) && o->bytes > TRAFFIC_PIECE_MAX)
		o->pieces = 4;
}

static void one_death(struct sim *s, uint64_t seed)
{
	static struct traffic t;
	struct sim_params p = s->params;
	uint64_t death_ns = UINT64_MAX;

	p.seed = seed;
	p.mtu = 1 + seed % 5;
	sim_reset(s, &p);
	s->tap = path_is_dead;
	s->tap_arg = &death_ns;
	for (int n = 0; n < 2; n++)
		for (unsigned q = 0; q < p.qps; q++)
			sim_modify(s, n, q, QP_RTS, BOTH);
	traffic_begin(&t, s, "both are armed, seed %lu", (unsigned long)seed);
	for (unsigned q = 0; q < p.qps; q++)
		traffic_add(&t, 0, q, USER_RDMA_WRITE, 64);
	assert_true(traffic_run(&t));
	traffic_begin(&t, s, "the path dies, seed %lu", (unsigned long)seed);
	for (unsigned q = 0; q < p.qps; q++)
		for (unsigned k = 0; k < 2 * (TRAFFIC_OPS - 1); k++)
			add(&t, k % 2, q);
	s->faults.loss_ppm = seed % 3 ? 0 : 20000;
	death_ns = s->now_ns + sim_random(s) % 80000;
	t.lost_max = UINT32_MAX; /* nothing may fail */
	if (!traffic_run(&t))
		fail_msg("seed %lu: a queue pair has failed", (unsigned long)seed);
	s->tap = NULL;
	s->faults.loss_ppm = 0;
}

/* With payload in the frames, and with references. */
TEST(apm_003__nothing_is_lost_when_the_path_dies)
{
	for (unsigned refs = 0; refs < 2; refs++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		uint64_t migrations = 0;
		struct sim *s;

		p.memory_bytes = TRAFFIC_MEMORY;
		p.qps = 3;
		p.retry_cnt = 4;
		p.payload_refs = refs;
		s = sim_create(&p);
		for (uint64_t seed = 1; seed <= 300; seed++)
			one_death(s, seed);
		for (int n = 0; n < 2; n++)
			migrations += sim_counter(s, n, COUNTER_path_migrations);
		print_message("%lu migrations\n", (unsigned long)migrations);
		assert_true(migrations > 300);
		sim_destroy(s);
	}
}
