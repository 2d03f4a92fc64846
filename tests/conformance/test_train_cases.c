/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains (pipeline/train.h), case by case: what only the states may judge, acknowledgements,
 * retransmission, buffers, and what trains leave to others.
 */
#include "pipeline/stepping.h"
#include "rig.h"

enum { REMOTE = 2 << 20, BYTES = 300000, MTU = 1024, MESSAGES = 40 };

/* ---- what only the states may judge ---- */

static void add_to(struct sim *s, unsigned qp, unsigned number, uint64_t there)
{
	struct sim_wr wr = SIM_WR(USER_ATOMIC_FA, 8 * number, 8, .remote = there, .swap_add = 1);

	sim_post(s, 0, qp, &wr);
}

static struct sim *whole_trains(void)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.payload_refs = p.whole_trains = p.no_credits = true;
	p.settings = rig_settings();
	p.settings->ack_interval = 1; /* each train is acknowledged */
	s = sim_create(&p);
	sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = REMOTE));
	assert_true(sim_settle(s, MS));
	return s;
}

static void post_many(struct sim *s, uint8_t opcode, uint32_t bytes)
{
	for (unsigned i = 0; i < (bytes == BYTES ? 1 : MESSAGES); i++) {
		if (opcode == USER_SEND)
			sim_post_recv(s, 1, 0, REMOTE, bytes);
		sim_post(s, 0, 0, &SIM_WR(opcode, 8 * i, bytes, .remote = REMOTE + 8 * i));
	}
}

/* Trains of requests wait for node 1, or those of their responses for node 0. */
static void let_wait(struct sim *s, unsigned node, uint8_t opcode, uint32_t bytes)
{
	struct engine *requester = s->node[0].hca->engines, *responder = s->node[1].hca->engines;

	stepping_set(responder, 1u << MODULE_EE);
	post_many(s, opcode, bytes);
	sim_run(s, 20 * US);
	if (node)
		return;
	stepping_set(requester, 1u << MODULE_RRC);
	stepping_set(responder, 0);
	sim_run(s, 20 * US);
}

/* A long message has begun there. */
static void begin_long(struct sim *s, struct qp *q, uint8_t opcode)
{
	uint32_t expected = q->ee.expected_psn, unacked = q->rrc.unacked_psn;

	post_many(s, opcode, BYTES);
	while (q->ee.expected_psn == expected && q->rrc.unacked_psn == unacked)
		sim_step(s);
}

/* What is on its way to a queue pair that is no more finds none. */
TEST(trains__to_nobody)
{
	static const uint8_t opcodes[] = {USER_RDMA_WRITE, USER_RDMA_READ, USER_RDMA_WRITE};

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		struct sim *s = whole_trains();
		unsigned node = opcodes[i] == USER_RDMA_WRITE;

		let_wait(s, node, opcodes[i], i < 2 ? 64 : BYTES);
		sim_renew(s, node, 0);
		stepping_set(s->node[node].hca->engines, 0);
		sim_run(s, 50 * US);
		sim_destroy(s);
	}
}

/* A message joins no train behind the last packet of a long one, however alike they are. */
TEST(trains__of_messages_begin_with_one)
{
	enum { LONG = MTU + 64, SHORT = 64 };
	struct sim *s = whole_trains();

	for (unsigned i = 0; i < LONG + MESSAGES * SHORT; i++)
		s->node[0].memory[i] = (uint8_t)(i * 7 + i / 256);
	sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, LONG, .remote = REMOTE));
	for (unsigned i = 0; i < MESSAGES; i++)
		sim_post(s, 0, 0,
			 &SIM_WR(USER_RDMA_WRITE, LONG + i * SHORT, SHORT,
				 .remote = REMOTE + LONG + i * SHORT));
	assert_true(sim_settle(s, 60000 * MS));
	assert_memory_equal(s->node[1].memory + REMOTE, s->node[0].memory, LONG + MESSAGES * SHORT);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	sim_destroy(s);
}

/* A queue pair that has failed takes no more of what is on its way. */
TEST(trains__end_with_their_queue_pair)
{
	static const struct {
		uint8_t opcode;
		uint32_t bytes;
	} sorts[] = {
		{USER_RDMA_WRITE, BYTES}, {USER_SEND, BYTES}, {USER_RDMA_READ, BYTES},
		{USER_RDMA_WRITE, 64},	  {USER_SEND, 64},    {USER_RDMA_READ, 64},
		{USER_ATOMIC_FA, 8},
	};

	for (unsigned i = 0; i < 2 * RTE_DIM(sorts); i++) {
		unsigned node = i % 2; /* that fails */
		struct sim *s = whole_trains();
		struct qp *q = sim_context(s, node, 0);
		uint64_t read;
		uint32_t psn;

		if (sorts[i / 2].bytes == BYTES)
			begin_long(s, q, sorts[i / 2].opcode);
		else
			let_wait(s, node, sorts[i / 2].opcode, sorts[i / 2].bytes);
		sim_modify(s, node, 0, QP_ERR, 0);
		psn = q->ee.expected_psn;
		read = sim_counter(s, node, COUNTER_read_bytes);
		stepping_set(s->node[node].hca->engines, 0);
		sim_run(s, 50 * US);
		if (q->ee.expected_psn != psn || sim_counter(s, node, COUNTER_read_bytes) != read)
			fail_msg("row %u", i);
		assert_true(sim_settle(s, 60000 * MS));
		sim_destroy(s);
	}
}

/* An address may be that of a word, and the memory behind it not; or the other way round. */
TEST(trains__of_atomics_whose_memory_is_aligned_otherwise)
{
	for (unsigned shift = 0; shift <= 4; shift += 4) {
		struct sim *s = whole_trains();
		uint32_t key = rig_peer_region(s, REMOTE, REMOTE + 4, 4096);
		struct sim_wr wr = SIM_WR(USER_ATOMIC_FA, 0, 8, .remote = REMOTE + shift,
					  .rkey = key, .swap_add = 1);
		struct cqe cqe;

		assert_true(sim_wait(s, 0, &cqe, MS));
		memset(s->node[1].memory + REMOTE, 0, 64);
		for (unsigned i = 0; i < 8; i++)
			sim_post(s, 0, 0, &wr);
		assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
		assert_int_equal(cqe.imm_or_error & 0xff, SYNDROME_REMOTE_INVAL_REQ);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(s->node[1].memory[REMOTE + i], 0);
		sim_destroy(s);
	}
}

/* Makes trains of a WRITE such of a SEND, and the other way round; or of packets that are last. */
static bool retype(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	const bool *last = arg;
	struct wire_frame f;
	uint8_t *opcode;

	if (from || wire_parse_frame(frame, bytes, &f) != WIRE_OK)
		return false;
	opcode = (uint8_t *)frame + f.transport_offset;
	if (*opcode == WIRE_RC_WRITE_MIDDLE)
		*opcode = *last ? WIRE_RC_WRITE_LAST : WIRE_RC_SEND_MIDDLE;
	else if (*opcode == WIRE_RC_SEND_MIDDLE)
		*opcode = *last ? WIRE_RC_SEND_LAST : WIRE_RC_WRITE_MIDDLE;
	return false;
}

/* C9-81: in the middle of a message no packet of another is in sequence. */
TEST(c9_081__train_of_another_message)
{
	static const struct {
		uint8_t opcode;
		bool last;
		uint32_t executed; /* packets */
	} others[] = {
		{USER_RDMA_WRITE, false, 1},
		{USER_SEND, false, 1},
		{USER_RDMA_WRITE, true, 1},
		{USER_SEND, true, 2},
	};

	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		struct sim *s = whole_trains();
		uint64_t executed;
		bool last = others[i].last;
		struct cqe cqe;

		for (unsigned k = 0; k < 2; k++) /* one is used, and leaves room; one stays */
			sim_post_recv(s, 1, 0, REMOTE, BYTES);
		sim_post(s, 0, 0, &SIM_WR(USER_SEND, 0, 3 * MTU));
		assert_true(sim_settle(s, 1000 * MS));
		while (sim_poll_cq(s, 0, &cqe))
			;
		executed = sim_counter(s, 1, COUNTER_executed_bytes);
		s->tap = retype;
		s->tap_arg = &last;
		sim_post(s, 0, 0, &SIM_WR(others[i].opcode, 0, BYTES, .remote = REMOTE));
		assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
		assert_int_equal(cqe.imm_or_error & 0xff, SYNDROME_REMOTE_INVAL_REQ);
		assert_int_equal(sim_counter(s, 1, COUNTER_executed_bytes),
				 executed + others[i].executed * MTU);
		sim_destroy(s);
	}
}

/* A message of two packets loses the second, and the train behind it takes its place. */
static bool skip_last(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	uint32_t *psn = arg;
	struct wire_frame f;

	if (from || wire_parse_frame(frame, bytes, &f) != WIRE_OK)
		return false;
	if (f.h.opcode == WIRE_RC_WRITE_LAST)
		*psn = f.h.psn;
	else if (f.h.opcode == WIRE_RC_WRITE_ONLY && *psn)
		((uint8_t *)frame)[f.transport_offset + 11] = (uint8_t)*psn;
	return f.h.opcode == WIRE_RC_WRITE_LAST;
}

TEST(c9_081__train_in_the_middle_of_a_message)
{
	struct sim *s = whole_trains();
	uint32_t psn = 0;
	struct cqe cqe;

	assert_true(sim_wait(s, 0, &cqe, MS));
	s->tap = skip_last;
	s->tap_arg = &psn;
	sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, 2 * MTU, .remote = REMOTE));
	post_many(s, USER_RDMA_WRITE, 64);
	assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
	assert_int_not_equal(psn, 0);
	assert_int_equal(cqe.imm_or_error & 0xff, SYNDROME_REMOTE_INVAL_REQ);
	sim_destroy(s);
}

/* The right to write is asked for with each packet. */
TEST(c9_083__train_without_the_right_any_more)
{
	struct sim *s = whole_trains();
	struct qp *q = sim_context(s, 1, 0);
	uint64_t executed;
	struct cqe cqe;

	assert_true(sim_wait(s, 0, &cqe, MS));
	begin_long(s, q, USER_RDMA_WRITE);
	q->access = 0;
	executed = sim_counter(s, 1, COUNTER_executed_bytes);
	assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
	assert_int_not_equal(cqe.imm_or_error & 0xff, 0);
	assert_int_equal(sim_counter(s, 1, COUNTER_executed_bytes), executed);
	sim_destroy(s);
}

/* The sender's region goes while trains that refer to it are on their way. */
TEST(trains__whose_payload_is_gone)
{
	static const uint8_t opcodes[] = {USER_RDMA_WRITE, USER_SEND, USER_RDMA_READ};

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		bool read = opcodes[i] == USER_RDMA_READ;
		struct sim *s = whole_trains();
		struct sim_node *n = &s->node[read];
		struct qp *q = sim_context(s, !read, 0);
		uint32_t key = read ? rig_peer_region(s, REMOTE, REMOTE, BYTES)
				    : rig_region(s, 0, BYTES, ACCESS_LOCAL_WRITE, 0);
		uint32_t expected = q->ee.expected_psn, unacked = q->rrc.unacked_psn;
		struct sim_wr wr = SIM_WR(opcodes[i], 0, BYTES, .remote = REMOTE);

		wr.rkey = read ? key : 0;
		wr.sge[0].key = read ? 0 : key;
		sim_post_recv(s, 1, 0, REMOTE, BYTES);
		sim_post(s, 0, 0, &wr);
		while (q->ee.expected_psn == expected && q->rrc.unacked_psn == unacked)
			sim_step(s);
		assert_int_equal(ceu_exec(n->ceu, CEU_HW2SW_MPT, key, NULL, 0, NULL, 0), CEU_OK);
		sim_run(s, 20 * US);
		if (!sim_counter(s, !read, COUNTER_drop_payload_gone))
			fail_msg("row %u", i);
		sim_destroy(s);
	}
}

/* C9-92: a middle packet is as long as the path MTU. */
TEST(c9_092__train_of_packets_that_are_too_short)
{
	struct sim *s = whole_trains();
	struct qp *q = sim_context(s, 1, 0);
	struct cqe cqe;

	assert_true(sim_wait(s, 0, &cqe, MS));
	begin_long(s, q, USER_RDMA_WRITE);
	q->mtu_bytes = 2 * MTU;
	assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
	assert_int_equal(cqe.imm_or_error & 0xff, SYNDROME_REMOTE_INVAL_REQ);
	sim_destroy(s);
}

/* Of a WRITE, the first packet announces only the one train behind it. */
static bool shorten(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct wire_frame f;
	uint8_t *length;

	if (from || wire_parse_frame(frame, bytes, &f) != WIRE_OK ||
	    f.h.opcode != WIRE_RC_WRITE_FIRST)
		return false;
	length = (uint8_t *)frame + f.transport_offset + WIRE_BTH_BYTES + 12;
	wire_put_be16(length, 0);
	wire_put_be16(length + 2, (1 + TRAIN_PACKETS_MAX) * MTU);
	return false;
}

/* The last packet of a WRITE is no middle one. */
TEST(c9_094__train_at_the_end_of_a_write)
{
	struct sim *s = whole_trains();
	uint64_t executed = sim_counter(s, 1, COUNTER_executed_bytes);
	struct cqe cqe;

	assert_true(sim_wait(s, 0, &cqe, MS));
	s->tap = shorten;
	post_many(s, USER_RDMA_WRITE, BYTES);
	assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
	assert_int_equal(cqe.imm_or_error & 0xff, SYNDROME_REMOTE_INVAL_REQ);
	assert_int_equal(sim_counter(s, 1, COUNTER_executed_bytes),
			 executed + TRAIN_PACKETS_MAX * MTU);
	sim_destroy(s);
}

enum misplaced { OTHER_OPCODE, NO_FIRST, TOO_LONG };

static bool misplace(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	const enum misplaced *how = arg;
	struct wire_frame f;
	uint8_t *bth;

	if (wire_parse_frame(frame, bytes, &f) != WIRE_OK)
		return false;
	bth = (uint8_t *)frame + f.transport_offset;
	if (*how == TOO_LONG && f.h.opcode == WIRE_RC_READ_REQUEST) {
		wire_put_be16(bth + WIRE_BTH_BYTES + 12, 1); /* above 64 KiB */
	} else if (f.h.opcode == WIRE_RC_READ_RESP_MIDDLE) {
		if (*how == OTHER_OPCODE)
			bth[0] = WIRE_RC_READ_RESP_LAST;
		if (*how == NO_FIRST)
			bth[11]--;
	}
	return *how == NO_FIRST && f.h.opcode == WIRE_RC_READ_RESP_FIRST;
}

/* C9-133: what cannot be a response changes nothing. */
TEST(c9_133__train_of_responses_out_of_place)
{
	static const struct {
		enum misplaced how;
		uint32_t packets, taken;
	} misplaced[] = {
		{OTHER_OPCODE, 100, 1},
		{NO_FIRST, 100, 0},
		{TOO_LONG, 1 + TRAIN_PACKETS_MAX, TRAIN_PACKETS_MAX},
	};

	for (unsigned i = 0; i < RTE_DIM(misplaced); i++) {
		struct sim *s = whole_trains();
		enum misplaced how = misplaced[i].how;

		s->tap = misplace;
		s->tap_arg = &how;
		sim_post(s, 0, 0,
			 &SIM_WR(USER_RDMA_READ, 0, misplaced[i].packets * MTU, .remote = REMOTE));
		for (unsigned us = 0; us < 50 && !sim_counter(s, 0, COUNTER_drop_resp_opcode); us++)
			sim_step(s);
		if (!sim_counter(s, 0, COUNTER_drop_resp_opcode) ||
		    sim_counter(s, 0, COUNTER_read_bytes) != misplaced[i].taken * MTU)
			fail_msg("row %u", i);
		sim_destroy(s);
	}
}

/* ---- acknowledgements ---- */

enum { WRITE_AT = 4, REQUESTS = 12 }; /* one WRITE among READs */

/* Node 1 acknowledges the WRITE; the others have responses. */
static bool check_ack(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	unsigned *acks = arg;
	struct wire_frame f;

	if (from == 0 || wire_parse_frame(frame, bytes, &f) != WIRE_OK || f.h.opcode != WIRE_RC_ACK)
		return false;
	assert_int_equal(f.h.psn, psn_add(s->params.psn, WRITE_AT));
	++*acks;
	return false;
}

static bool loses_last(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct wire_frame f;

	return wire_parse_frame(frame, bytes, &f) == WIRE_OK &&
	       (f.h.opcode == WIRE_RC_WRITE_LAST || f.h.opcode == WIRE_RC_SEND_LAST);
}

/* Each train that requests it is acknowledged, not only the end of its message. */
TEST(trains__are_acknowledged_if_they_ask)
{
	static const uint8_t opcodes[] = {USER_RDMA_WRITE, USER_SEND};

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		struct sim *s = whole_trains();
		struct qp *q = sim_context(s, 0, 0);

		s->tap = loses_last;
		post_many(s, opcodes[i], BYTES);
		sim_run(s, 200 * US);
		assert_int_equal(q->rrc.unacked_psn, psn_sub(q->rtc.next_psn, 1));
		s->tap = NULL;
		assert_true(sim_settle(s, 1000 * MS));
		sim_destroy(s);
	}
}

/* C9-95: an acknowledgement that is due has the PSN of its request, whatever train comes behind it. */
TEST(c9_095__train_of_reads_behind_a_write)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	unsigned acks = 0;
	struct sim *s;

	p.payload_refs = p.whole_trains = true;
	p.settings = rig_settings();
	p.settings->ack_interval = 1;
	s = sim_create(&p);
	s->tap = check_ack;
	s->tap_arg = &acks;
	for (unsigned i = 0; i < REQUESTS; i++) {
		uint8_t opcode = i == WRITE_AT ? USER_RDMA_WRITE : USER_RDMA_READ;
		struct sim_wr wr = SIM_WR(opcode, 64 * i, 64, .remote = REMOTE);

		sim_post(s, 0, 0, &wr);
	}
	assert_true(sim_settle(s, 60000 * MS));
	assert_int_equal(acks, 1);
	sim_destroy(s);
}

/* ---- buffers that duplicates were in ---- */

enum { FEW = 128 }; /* buffers, so that they are used again soon */

static bool loses_answers(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	return from == 1;
}

/* A train of new READs or atomics counts as such, whatever its buffer held before. */
TEST(c9_108__train_in_the_buffer_of_duplicates)
{
	static const uint8_t opcodes[] = {USER_RDMA_READ, USER_ATOMIC_FA};

	for (unsigned i = 0; i < RTE_DIM(opcodes); i++) {
		struct sim *s = whole_trains();
		const struct qp *q = sim_context(s, 1, 0);
		unsigned n = rte_mempool_avail_count(s->packets) - FEW;
		void **kept = calloc(n, sizeof(*kept));

		assert_int_equal(rte_mempool_get_bulk(s->packets, kept, n), 0);
		s->tap = loses_answers;
		post_many(s, opcodes[i], 8);
		while (sim_counter(s, 1, COUNTER_duplicate_requests) < MESSAGES)
			sim_run(s, MS);
		s->tap = NULL;
		assert_true(sim_settle(s, 60000 * MS));
		for (unsigned k = 0; k < 80; k++) {
			post_many(s, opcodes[i], 8);
			assert_true(sim_settle(s, 60000 * MS));
			assert_int_equal(q->ee.reads_issued, q->respg.reads_done);
		}
		rte_mempool_put_bulk(s->packets, kept, n);
		free(kept);
		sim_destroy(s);
	}
}

/* ---- a queue pair that is reset while results of its atomics wait ---- */

/* Results of atomics in trains wait for RespPktGen in a FIFO that all queue pairs share. Trains of
 * READs have none there. */
static void reset_before_the_results(uint8_t opcode)
{
	enum { ATOMICS = 8, START = 1000 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;
	uint64_t *result;

	p.payload_refs = p.whole_trains = true;
	p.qps = 2;
	s = sim_create(&p);
	result = (uint64_t *)s->node[0].memory;
	*(uint64_t *)(s->node[1].memory + REMOTE) = START;
	for (unsigned qp = 0; qp < 2; qp++) /* the first packet of a connection joins no train */
		add_to(s, qp, qp, REMOTE + 64);
	assert_true(sim_settle(s, 60000 * MS));
	stepping_set(&s->node[1].hca->engines[0], 1u << MODULE_RESPG);
	for (unsigned i = 0; i < ATOMICS; i++)
		sim_post(s, 0, 0,
			 &SIM_WR(opcode, 8 * (2 + i), 8, .remote = REMOTE + 64, .swap_add = 1));
	sim_run(s, 20 * US);
	sim_modify(s, 1, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_RST, 0);
	stepping_set(&s->node[1].hca->engines[0], 0);
	for (unsigned i = 0; i < ATOMICS; i++)
		add_to(s, 1, 2 + i, REMOTE);
	assert_true(sim_settle(s, 60000 * MS));
	for (unsigned i = 0; i < ATOMICS; i++)
		assert_int_equal(result[2 + i], START + i);
	sim_destroy(s);
}

TEST(trains__of_atomics_leave_no_results_behind)
{
	reset_before_the_results(USER_ATOMIC_FA);
	reset_before_the_results(USER_RDMA_READ);
}

/* That FIFO has 1024 places; beyond them atomics wait one by one. */
TEST(trains__of_atomics_for_more_results_than_fit)
{
	enum { QPS = 96, ATOMICS = 16, START = 1000 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;
	uint64_t *result;

	p.payload_refs = p.whole_trains = true;
	p.qps = QPS;
	p.max_rd_atomic = ATOMICS;
	s = sim_create(&p);
	result = (uint64_t *)s->node[0].memory;
	for (unsigned qp = 0; qp < QPS; qp++) {
		*(uint64_t *)(s->node[1].memory + REMOTE + 8 * qp) = START * qp;
		add_to(s, qp, QPS * ATOMICS + qp, REMOTE + 8 * qp);
	}
	assert_true(sim_settle(s, 60000 * MS));
	stepping_set(&s->node[1].hca->engines[0], 1u << MODULE_RESPG);
	for (unsigned qp = 0; qp < QPS; qp++) {
		for (unsigned i = 0; i < ATOMICS; i++)
			add_to(s, qp, qp * ATOMICS + i, REMOTE + 8 * qp);
		sim_step(s);
	}
	sim_run(s, 200 * US);
	stepping_set(&s->node[1].hca->engines[0], 0);
	assert_true(sim_settle(s, 60000 * MS));
	for (unsigned i = 0; i < QPS * ATOMICS; i++)
		assert_int_equal(result[i], START * (i / ATOMICS) + 1 + i % ATOMICS);
	sim_destroy(s);
}

/* ---- retransmission ---- */

enum { SENT_MAX = 32 };

struct sent {
	const uint8_t *frame;
	uint32_t psn;
};

/* Loses the first train. */
static bool note_train(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct sent *sent = arg;
	struct wire_frame f;
	unsigned n = 0;

	if (from || wire_parse_frame(frame, bytes, &f) != WIRE_OK ||
	    (f.h.opcode != WIRE_RC_WRITE_MIDDLE && f.h.opcode != WIRE_RC_WRITE_ONLY))
		return false;
	for (; sent[n].frame; n++)
		assert_false(sent[n].frame == frame && sent[n].psn == f.h.psn);
	assert_true(n + 1 < SENT_MAX);
	sent[n] = (struct sent){frame, f.h.psn};
	return n == 0;
}

/* The receiver splits packets off a train, so its buffer must not arrive twice. */
TEST(trains__are_sent_once)
{
	static const struct {
		uint32_t bytes, messages;
	} trains[] = {{BYTES, 1}, {64, 8}};

	for (unsigned i = 0; i < RTE_DIM(trains); i++) {
		struct sent sent[SENT_MAX] = {{0}};
		struct sim_params p = SIM_PARAMS_DEFAULT;
		struct sim *s;

		p.payload_refs = p.whole_trains = true;
		s = sim_create(&p);
		s->tap = note_train;
		s->tap_arg = sent;
		for (unsigned k = 0; k < trains[i].messages; k++)
			sim_post(s, 0, 0,
				 &SIM_WR(USER_RDMA_WRITE, 0, trains[i].bytes, .remote = REMOTE));
		assert_true(sim_settle(s, 1000 * MS));
		assert_int_equal(sim_context(s, 1, 0)->ee.msn, trains[i].messages);
		assert_int_not_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
		sim_destroy(s);
	}
}

/* ---- buffers for packets that are split off trains ---- */

/* Loses the first packet of each queue pair but 0, whenever it is sent. */
static bool loses_first(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct wire_frame f;

	return from == 0 && wire_parse_frame(frame, bytes, &f) == WIRE_OK &&
	       f.h.dest_qp != s->node[1].qp[0].qpn && f.h.psn == s->params.psn;
}

/* Packets that are kept early, each a clone split off its train, leave clones for others. */
TEST(trains__that_come_early_leave_buffers_to_others)
{
	enum { QPS = 6, PACKETS = 16, SOON = 3000000 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr big = SIM_WR(USER_SEND, 0, BYTES);
	struct cqe cqe;
	struct sim *s;

	p.payload_refs = p.whole_trains = p.no_credits = true;
	p.qps = QPS;
	p.own = 1;
	p.timeout = 14;
	p.clones = 63;
	s = sim_create(&p);
	s->tap = loses_first;
	for (unsigned i = 0; i < (QPS - 1) * PACKETS; i++) {
		struct sim_wr wr =
			SIM_WR(USER_RDMA_WRITE, 0, i % PACKETS ? 64 : 48, .remote = REMOTE);

		sim_post(s, 0, 1 + i / PACKETS, &wr);
	}
	sim_run(s, MS);
	assert_int_not_equal(sim_counter(s, 1, COUNTER_early_kept), 0);
	sim_post_recv_list(s, 1, 0, (struct sim_sge[]){{REMOTE, 77777, 0}, {REMOTE, BYTES, 0}}, 2);
	sim_post(s, 0, 0, &big);
	assert_true(sim_wait(s, 1, &cqe, SOON));
	assert_int_equal(cqe.opcode, USER_RECV);
	sim_destroy(s);
}

/* Takes all that are free. Returns how many. */
static unsigned take_packets(struct sim *s, struct rte_mbuf **m)
{
	unsigned n = 0;

	while ((m[n] = rte_pktmbuf_alloc(s->packets)))
		n++;
	return n;
}

/* What is sent again needs a buffer, unless it was sent alone; it waits for one. */
TEST(trains__that_are_lost_wait_for_buffers)
{
	static const struct {
		uint8_t opcode;
		uint32_t bytes, messages;
		unsigned first; /* frame that is lost */
	} lost[] = {
		{USER_RDMA_WRITE, BYTES, 1, 1},
		{USER_RDMA_WRITE, 64, 8, 0},
		{USER_RDMA_READ, 64, 8, 0},
	};
	static struct rte_mbuf *hoard[8192];

	for (unsigned i = 0; i < 2 * RTE_DIM(lost); i++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		struct sim *s;
		unsigned n;

		p.payload_refs = p.whole_trains = true;
		p.equal = i % 2;
		p.settings = rig_settings();
		p.settings->ack_interval = 1;
		s = sim_create(&p);
		memset(s->node[0].memory, 0xa5, BYTES);
		memset(s->node[1].memory + REMOTE, 0x5a, BYTES);
		add_to(s, 0, BYTES, REMOTE + BYTES); /* shows the round trip */
		assert_true(sim_settle(s, 60000 * MS));
		s->faults.drop_mask = ~0ull << (s->end[0].sent + lost[i / 2].first);
		for (unsigned k = 0; k < lost[i / 2].messages; k++)
			sim_post(s, 0, 0,
				 &SIM_WR(lost[i / 2].opcode, 64 * k, lost[i / 2].bytes,
					 .remote = REMOTE + 64 * k));
		sim_run(s, 50 * US);
		s->faults.drop_mask = 0;
		n = take_packets(s, hoard);
		sim_run(s, 8 * MS);
		if (!sim_counter(s, 0, COUNTER_packet_empty))
			fail_msg("row %u", i);
		rte_pktmbuf_free_bulk(hoard, n);
		assert_true(sim_settle(s, 60000 * MS));
		assert_memory_equal(s->node[0].memory, s->node[1].memory + REMOTE,
				    lost[i / 2].messages * lost[i / 2].bytes);
		assert_true(sim_quiet(s));
		sim_destroy(s);
	}
}

/* ---- answers to trains, and what follows them ---- */

/* READs of a train may be of any length, and then each is answered by a frame of its own. */
static void read_unlike(struct sim *s, unsigned qp, unsigned reads)
{
	for (unsigned i = 0; i < reads; i++) {
		struct sim_wr wr = SIM_WR(USER_RDMA_READ, 4096 * qp + 64 * i, 8 + 8 * (i % 2),
					  .remote = REMOTE + 64 * i);

		sim_post(s, 0, qp, &wr);
	}
}

/* A selective acknowledgement cannot wait: there is a frame for it whatever trains were before it. */
TEST(trains__of_reads_leave_frames_to_others)
{
	enum { READERS = 9, READS = 16 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.payload_refs = p.whole_trains = p.equal = true;
	p.qps = READERS + 1;
	s = sim_create(&p);
	for (unsigned qp = 0; qp < READERS; qp++)
		add_to(s, qp, 8192 + qp, REMOTE + 64);
	assert_true(sim_settle(s, 60000 * MS));
	stepping_set(&s->node[1].hca->engines[0], 1u << MODULE_RESPG);
	for (unsigned qp = 0; qp < READERS; qp++)
		read_unlike(s, qp, READS);
	sim_run(s, 20 * US);
	s->tap = loses_first;
	read_unlike(s, READERS, 1);
	sim_post(s, 0, READERS, &SIM_WR(USER_RDMA_WRITE, 0, 64, .remote = REMOTE));
	sim_run(s, 20 * US);
	stepping_set(&s->node[1].hca->engines[0], 0);
	sim_run(s, 20 * US);
	s->tap = NULL;
	assert_int_not_equal(sim_counter(s, 1, COUNTER_sacks_sent), 0);
	assert_true(sim_settle(s, 60000 * MS));
	sim_destroy(s);
}

/* A poll answers READs with as many packets as it could without trains: what it answers is copied
 * by the next stages, and meanwhile nobody else is served. */
TEST(trains__of_responses_leave_time_to_others)
{
	enum { READERS = 8, LONG = 1 << 20 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	uint64_t before = 0, now, most = 0;
	struct sim *s;

	p.payload_refs = p.whole_trains = true;
	p.qps = READERS;
	s = sim_create(&p);
	for (unsigned qp = 0; qp < READERS; qp++)
		sim_post(s, 0, qp, &SIM_WR(USER_RDMA_READ, 0, LONG, .remote = REMOTE));
	while (before < READERS * LONG / MTU) {
		sim_step(s);
		now = sim_counter(s, 1, COUNTER_read_response_packets);
		most = RTE_MAX(most, now - before);
		before = now;
	}
	assert_in_range(most, BURST, 2 * BURST);
	assert_true(sim_settle(s, 60000 * MS));
	sim_destroy(s);
}

static bool look(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	return false;
}

/* A wire that somebody looks at sees the packets of a train one by one, and fails if one has another
 * ICRC than it would have alone. */
TEST(trains__have_the_icrcs_of_their_packets)
{
	static const struct {
		uint8_t opcode;
		uint32_t bytes;
	} rows[] = {{USER_RDMA_WRITE, BYTES}, {USER_SEND, BYTES},   {USER_RDMA_WRITE, 61},
		    {USER_SEND, 500},	      {USER_RDMA_READ, 61}, {USER_ATOMIC_FA, 8}};

	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		struct sim *s;

		p.payload_refs = p.icrcs = p.no_credits = true;
		p.ipv6 = i & 1;
		s = sim_create(&p);
		s->tap = look;
		sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = REMOTE));
		assert_true(sim_settle(s, MS));
		memset(s->node[0].memory, 0x5a, BYTES);
		post_many(s, rows[i / 2].opcode, rows[i / 2].bytes);
		assert_true(sim_settle(s, 100 * MS));
		assert_int_equal(sim_counter(s, 1, COUNTER_drop_rx_icrc), 0);
		assert_true(sim_quiet(s));
		sim_destroy(s);
	}
}
