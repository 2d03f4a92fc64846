/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: several queue pairs take from one; effects on the wire and at the client.
 * SOFTHCA_SEEDS=first,count chooses the runs under loss. */
#include "rig.h"

enum { PSN = 0x100, SLOT = 8192, MTU = 1024, QPS = 4 };

static struct sim_params params(enum qp_service service)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.service = (uint8_t)service;
	p.qps = QPS;
	p.srq = true;
	p.psn = PSN;
	return p;
}

static struct sim *pair(enum qp_service service)
{
	struct sim_params p = params(service);

	return sim_create(&p);
}

static struct sim *scripted(enum qp_service service)
{
	struct sim_params p = params(service);

	return rig_create(&p);
}

static uint32_t post(struct sim *s, int node)
{
	return sim_post_srq_recv(s, node, s->node[node].srq.posted % SIM_SRQ_ENTRIES * SLOT, SLOT);
}

static void arm(struct sim *s, int node, uint32_t limit)
{
	struct ceu_srq_limit in = {.limit = limit};

	assert_int_equal(ceu_exec(s->node[node].ceu, CEU_ARM_SRQ, s->node[node].srq.srqn, &in,
				  sizeof(in), NULL, 0),
			 CEU_OK);
}

static unsigned count_events(struct sim *s, int node, enum eqe_type type)
{
	unsigned n = 0;
	struct eqe e;

	while (sim_poll_event(s, node, &e))
		n += e.type == type;
	return n;
}

/* A message of which more has to come: QP 0 holds a descriptor for it. */
static void begin_message(struct sim *s)
{
	rig_send(s, rig_headers(s, 0, WIRE_RC_SEND_FIRST, PSN, 0, 0), NULL, MTU);
	rig_silent(s, MS);
}

/* One that UC abandons, since its middle was lost. */
static void give_up_message(struct sim *s)
{
	rig_send(s, rig_headers(s, 0, WIRE_UC_SEND_FIRST, PSN, 0, 0), NULL, MTU);
	rig_send(s, rig_headers(s, 0, WIRE_UC_SEND_LAST, PSN + 2, 0, 0), NULL, 7);
	rig_silent(s, MS);
}

static void end(struct sim *s)
{
	sim_run(s, 10 * MS);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* Interleaved messages of several queue pairs: descriptors are taken in the order of the ring, as
 * messages begin, and complete as they end. */
RIG_TEST(srq__descriptors_go_in_order_to_whoever_opens_a_message, scripted(SERVICE_RC))
{
	uint32_t qpn = s->node[0].qp[0].qpn, tag = post(s, 0);
	struct cqe c;

	post(s, 0);
	post(s, 0);
	rig_silent(s, MS); /* no credits are offered */
	rig_send(s, rig_headers(s, 2, WIRE_RC_SEND_FIRST, PSN, 0, 0), NULL, MTU);
	rig_send(s, rig_headers(s, 0, WIRE_RC_SEND_FIRST, PSN, 0, 0), NULL, MTU);
	rig_request(s, 1, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	c = rig_expect_cqe(s, USER_RECV, 0, tag + 2);
	assert_int_equal(c.my_qpn, qpn + 1);
	rig_request(s, 0, WIRE_RC_SEND_LAST, PSN + 1, 0, 0, 9);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 1);
	c = rig_expect_cqe(s, USER_RECV, 0, tag + 1);
	assert_int_equal(c.my_qpn, qpn);
	assert_int_equal(c.byte_count, MTU + 9);
	rig_request(s, 2, WIRE_RC_SEND_LAST, PSN + 1, 0, 0, 9);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 1);
	c = rig_expect_cqe(s, USER_RECV, 0, tag);
	assert_int_equal(c.my_qpn, qpn + 2);
	rig_holds_pattern(s, 0, MTU);
	rig_holds_pattern(s, 2 * SLOT, 7);
}

RIG_TEST(c9_158_2_1__with_an_srq_every_credit_is_11111b, scripted(SERVICE_RC))
{
	struct rig_packet p;

	for (unsigned i = 0; i < 5; i++)
		post(s, 0);
	rig_silent(s, MS);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	p = rig_expect_ack(s, PSN, aeth_ack(0), 1);
	assert_int_equal(p.h.syndrome, aeth_ack(AETH_CREDIT_INVALID));
	rig_request(s, 0, WIRE_RC_READ_REQUEST, PSN + 1, 0, 16, 0);
	p = rig_expect(s, WIRE_RC_READ_RESP_ONLY, PSN + 1);
	assert_int_equal(p.h.syndrome, aeth_ack(AETH_CREDIT_INVALID));
	rig_request(s, 0, WIRE_RC_FETCH_ADD, PSN + 2, 0, 0, 0);
	p = rig_expect(s, WIRE_RC_ATOMIC_ACK, PSN + 2);
	assert_int_equal(p.h.syndrome, aeth_ack(AETH_CREDIT_INVALID));
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7); /* a duplicate */
	p = rig_expect_ack(s, PSN + 2, aeth_ack(0), 3);
	assert_int_equal(p.h.syndrome, aeth_ack(AETH_CREDIT_INVALID));
	assert_int_equal(sim_counter(s, 0, COUNTER_srq_taken), 1);
}

RIG_TEST(srq__empty_is_rnr_and_one_post_serves_one, scripted(SERVICE_RC))
{
	uint32_t tag;

	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect_ack(s, PSN, aeth_rnr(1), 0);
	rig_request(s, 1, WIRE_RC_WRITE_ONLY_IMM, PSN, 0, 7, 7);
	rig_expect_ack(s, PSN, aeth_rnr(1), 0);
	tag = post(s, 0);
	rig_request(s, 1, WIRE_RC_WRITE_ONLY_IMM, PSN, 0, 7, 7);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_cqe(s, USER_RECV_RDMA_IMM, 0, tag);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect_ack(s, PSN, aeth_rnr(1), 0);
	tag = post(s, 0);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_cqe(s, USER_RECV, 0, tag);
}

RIG_TEST(srq__limit_event_once_and_again_when_armed_again, scripted(SERVICE_RC))
{
	uint32_t srqn = s->node[0].srq.srqn, psn = PSN;
	struct control_srq_attr attr;

	for (unsigned i = 0; i < 4; i++)
		post(s, 0);
	arm(s, 0, 3);
	for (unsigned i = 0; i < 4; i++) {
		rig_request(s, 0, WIRE_RC_SEND_ONLY, psn++, 0, 0, 7);
		rig_expect(s, WIRE_RC_ACK, psn - 1);
		if (i == 1)
			rig_expect_event(s, EQE_SRQ_LIMIT, srqn);
		rig_no_event(s);
	}
	assert_int_equal(
		ceu_exec(s->node[0].ceu, CEU_QUERY_SRQ, srqn, NULL, 0, &attr, sizeof(attr)),
		CEU_OK);
	assert_int_equal(attr.limit, 0);
	assert_int_equal(attr.available, 0);
	arm(s, 0, 1); /* it is empty */
	rig_expect_event(s, EQE_SRQ_LIMIT, srqn);
	post(s, 0);
	arm(s, 0, 1);
	rig_no_event(s);
	rig_request(s, 1, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect(s, WIRE_RC_ACK, PSN);
	rig_expect_event(s, EQE_SRQ_LIMIT, srqn);
	rig_no_event(s);
}

/* A queue pair in ERR returns its descriptor and takes no more; the others continue. */
RIG_TEST(srq__in_err_the_held_one_is_flushed_then_last_wqe, scripted(SERVICE_RC))
{
	uint32_t qpn = s->node[0].qp[0].qpn, tag = post(s, 0);

	post(s, 0);
	begin_message(s);
	sim_modify(s, 0, 0, QP_ERR, 0);
	rig_no_event(s); /* not before the completion */
	sim_run(s, 10 * US);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_WR_FLUSH, tag);
	rig_expect_event(s, EQE_LAST_WQE, qpn);
	rig_request(s, 0, WIRE_RC_SEND_LAST, PSN + 1, 0, 0, 7);
	rig_silent(s, MS);
	sim_modify(s, 0, 1, QP_ERR, 0); /* which holds none */
	sim_run(s, 10 * US);
	rig_no_cqe(s);
	rig_expect_event(s, EQE_LAST_WQE, qpn + 1);
	rig_request(s, 2, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_cqe(s, USER_RECV, 0, tag + 1);
	rig_no_event(s);
}

RIG_TEST(srq__after_a_fatal_nak_last_wqe_follows_the_error, scripted(SERVICE_RC))
{
	uint32_t qpn = s->node[0].qp[0].qpn, tag = sim_post_srq_recv(s, 0, 0, 10);

	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 11);
	rig_expect_nak(s, PSN, AETH_NAK_INVALID_REQUEST, 0);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_LENGTH, tag);
	sim_run(s, 10 * US);
	rig_no_cqe(s);
	rig_expect_event(s, EQE_WQ_INVAL_REQ_ERROR, qpn);
	rig_expect_event(s, EQE_LAST_WQE, qpn);
	rig_no_event(s);
}

/* A reset within a message: the queue pair's descriptor is lost, the SRQ is not. */
RIG_TEST(srq__reset_loses_the_held_one_alone, scripted(SERVICE_RC))
{
	uint32_t tag = post(s, 0);

	post(s, 0);
	begin_message(s);
	rig_reconnect(s, 0);
	rig_request(s, 0, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_cqe(s, USER_RECV, 0, tag + 1);
	rig_no_cqe(s);
}

RIG_TEST(srq__uc_message_given_up_leaves_it_to_the_next, scripted(SERVICE_UC))
{
	uint32_t tag = post(s, 0);
	struct cqe c;

	give_up_message(s);
	rig_no_cqe(s);
	rig_send(s, rig_headers(s, 1, WIRE_UC_SEND_ONLY, PSN, 0, 0), NULL, 7); /* none for it */
	rig_quiet(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_no_receive), 1);
	rig_send(s, rig_headers(s, 0, WIRE_UC_SEND_ONLY, PSN + 3, 0, 0), NULL, 9);
	c = rig_expect_cqe(s, USER_RECV, 0, tag);
	assert_int_equal(c.byte_count, 9);
	rig_holds_pattern(s, 0, 9);
}

RIG_TEST(srq__uc_given_up_and_in_err_is_flushed, scripted(SERVICE_UC))
{
	uint32_t tag = post(s, 0);

	give_up_message(s);
	sim_modify(s, 0, 0, QP_ERR, 0);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_WR_FLUSH, tag);
	rig_expect_event(s, EQE_LAST_WQE, s->node[0].qp[0].qpn);
}

SIM_TEST(srq__ud_messages_of_several_queue_pairs, pair(SERVICE_UD), end)
{
	struct sim_wr wr = SIM_WR(USER_SEND_IMM, 0, 500, .ud_qkey = 0x11111111);
	struct cqe c;

	memset(s->node[0].memory, 0x5a, 500);
	for (unsigned i = 0; i < QPS; i++) {
		uint32_t tag = post(s, 1);

		wr.imm = i;
		wr.ud_qpn = s->node[1].qp[i].qpn;
		sim_post(s, 0, 0, &wr);
		assert_true(sim_wait(s, 1, &c, 10 * MS));
		assert_int_equal(c.opcode, USER_RECV_IMM);
		assert_int_equal(c.my_qpn, s->node[1].qp[i].qpn);
		assert_int_equal(c.remote_qpn, s->node[0].qp[0].qpn);
		assert_int_equal(c.imm_or_error, i);
		assert_int_equal(c.byte_count, 540);
		assert_int_equal(c.wqe_offset, tag);
		assert_memory_equal(s->node[1].memory + i * SLOT + 40, s->node[0].memory, 500);
		assert_true(sim_wait(s, 0, &c, 10 * MS));
	}
}

/* A client that says it posted more than the ring holds loses the SRQ and the queue pairs that need
 * it; those that hold a descriptor finish their message. */
RIG_TEST(srq__hostile_count_ends_it, scripted(SERVICE_RC))
{
	uint32_t qpn = s->node[0].qp[0].qpn, tag = post(s, 0);

	begin_message(s);
	s->node[0].srq.record->posted += SIM_SRQ_ENTRIES + 1;
	for (unsigned i = 1; i < 3; i++) {
		rig_request(s, i, WIRE_RC_SEND_ONLY, PSN, 0, 0, 7);
		rig_expect_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
		sim_run(s, 10 * US);
		if (i == 1)
			rig_expect_event(s, EQE_SRQ_ERROR, s->node[0].srq.srqn);
		rig_expect_event(s, EQE_WQ_CATAS_ERROR, qpn + i);
		rig_expect_event(s, EQE_LAST_WQE, qpn + i);
		rig_no_event(s);
		rig_no_cqe(s);
	}
	rig_request(s, 0, WIRE_RC_SEND_LAST, PSN + 1, 0, 0, 9);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 1);
	rig_expect_cqe(s, USER_RECV, 0, tag);
	assert_int_equal(sim_counter(s, 0, COUNTER_srq_errors), 1);
}

/* The messages that one node has sent and received on its queue pairs, and the tags returned. */
struct account {
	uint32_t sent[QPS], received[QPS];
	bool posted[4096], back[4096];
	uint8_t slot[4096]; /* by tag: where its memory lies */
	bool busy[SIM_SRQ_ENTRIES];
	unsigned completions;
};

enum { OPS = 60, FIRST_TAG = 0x1000 };

static uint32_t size_of(unsigned qp, uint32_t n)
{
	return 1 + (qp * 977 + n * 613) % 5000;
}

/* Sends what there is room for: each message says by its immediate data which it is. */
static void send_some(struct sim *s, struct account *a)
{
	for (unsigned k = 0; k < QPS; k++) {
		struct sim_wr wr = SIM_WR(USER_SEND_IMM, (QPS - k) * 64, size_of(k, a->sent[k]),
					  .imm = k << 16 | a->sent[k]);

		if (a->sent[k] == OPS || a->sent[k] > a->received[k] + 8)
			continue;
		sim_post(s, 0, k, &wr);
		a->sent[k]++;
	}
}

/* Into memory that no descriptor uses: one may be held for long while others come and go. */
static void post_one(struct sim *s, struct account *a)
{
	uint8_t slot = 0;
	uint32_t tag;

	while (a->busy[slot])
		slot++;
	tag = sim_post_srq_recv(s, 1, (uint64_t)slot * SLOT, SLOT) - FIRST_TAG;
	a->busy[slot] = true;
	a->slot[tag] = slot;
	a->posted[tag] = true;
}

static void take_receives(struct sim *s, struct account *a)
{
	struct cqe c;

	while (sim_poll_cq(s, 1, &c)) {
		unsigned k = c.my_qpn - s->node[1].qp[0].qpn, tag = c.wqe_offset - FIRST_TAG;

		assert_int_equal(c.opcode, USER_RECV_IMM);
		assert_true(k < QPS);
		assert_int_equal(c.imm_or_error, k << 16 | a->received[k]); /* in order */
		assert_int_equal(c.byte_count, size_of(k, a->received[k]));
		assert_true(tag < QPS * OPS && a->posted[tag]);
		assert_false(a->back[tag]); /* once */
		a->back[tag] = true;
		a->busy[a->slot[tag]] = false;
		assert_memory_equal(s->node[1].memory + a->slot[tag] * SLOT,
				    s->node[0].memory + (QPS - k) * 64, c.byte_count);
		a->received[k]++;
		a->completions++;
	}
}

static void under_loss(uint64_t seed)
{
	struct sim_params p = params(SERVICE_RC);
	struct account a = {0};
	struct sim *s;
	struct cqe c;

	p.seed = seed;
	s = sim_create(&p);
	s->faults = (struct sim_faults){.loss_ppm = 20000,
					.duplicate_ppm = 20000,
					.reorder_ppm = 20000,
					.corrupt_ppm = 5000};
	for (unsigned i = 0; i < SLOT; i++)
		s->node[0].memory[i] = (uint8_t)(i * 31 + (i >> 8));
	for (unsigned turn = 0; turn < 40000 && a.completions < QPS * OPS; turn++) {
		/* Seldom enough for all of them: RNR is part of it. */
		while (s->node[1].srq.posted < a.completions + 1 + sim_random(s) % 8 &&
		       s->node[1].srq.posted < QPS * OPS)
			post_one(s, &a);
		send_some(s, &a);
		sim_run(s, 20 * US);
		take_receives(s, &a);
		while (sim_poll_cq(s, 0, &c))
			assert_int_equal(c.opcode, USER_SEND_IMM);
	}
	if (a.completions != QPS * OPS)
		fail_msg("seed %lu: %u of %u messages", (unsigned long)seed, a.completions,
			 (unsigned)(QPS * OPS));
	assert_true(sim_counter(s, 1, COUNTER_nak_rnr_sent) > 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_srq_taken), QPS * OPS);
	s->faults = (struct sim_faults){0};
	sim_run(s, 50 * MS);
	end(s);
}

TEST(srq__under_loss_each_descriptor_completes_once)
{
	const char *chosen = getenv("SOFTHCA_SEEDS");
	uint64_t first = 1, count = 6;

	if (chosen && sscanf(chosen, "%lu,%lu", &first, &count) < 1)
		fail_msg("SOFTHCA_SEEDS=first,count");
	for (uint64_t seed = first; seed < first + count; seed++)
		under_loss(seed);
}

/* The peer dies under load: every posted receive completes or is still posted. */
SIM_TEST(srq__errors_under_load_lose_no_descriptor, pair(SERVICE_RC), end)
{
	struct sim_wr wr = SIM_WR(USER_SEND, 0, 5000);
	struct control_srq_attr attr;
	unsigned completed = 0;
	struct cqe c;

	for (unsigned i = 0; i < SIM_SRQ_ENTRIES; i++)
		post(s, 1);
	for (unsigned k = 0; k < QPS; k++)
		for (unsigned i = 0; i < 5; i++)
			sim_post(s, 0, k, &wr);
	sim_run(s, 4 * US); /* in the middle */
	for (unsigned k = 0; k < QPS; k++)
		sim_modify(s, 1, k, QP_ERR, 0);
	sim_run(s, 100 * US);
	while (sim_poll_cq(s, 1, &c)) {
		if (c.opcode == USER_INVALID)
			assert_int_equal(c.imm_or_error & 0xff, SYNDROME_WR_FLUSH);
		completed++;
	}
	assert_int_equal(count_events(s, 1, EQE_LAST_WQE), QPS);
	assert_int_equal(ceu_exec(s->node[1].ceu, CEU_QUERY_SRQ, s->node[1].srq.srqn, NULL, 0,
				  &attr, sizeof(attr)),
			 CEU_OK);
	assert_true(completed > 0);
	assert_int_equal(completed + attr.available, SIM_SRQ_ENTRIES);
	for (unsigned k = 0; k < QPS; k++)
		sim_modify(s, 0, k, QP_ERR, 0);
	sim_run(s, 10 * US);
	assert_int_equal(count_events(s, 0, EQE_LAST_WQE), QPS);
}
