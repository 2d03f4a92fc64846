/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The catalogue of errors, with both sides of each: the completions of request and receive, the
 * states of both queue pairs, the event of the responder's client, and the counters. In every row
 * the request before the bad one completes, the one behind it is flushed. Then queue pairs that are
 * moved to ERR, reset and destroyed under load.
 */
#include "rig.h"

enum { MTU = 1024, FAR = 1 << 20, FAR_KEY = 0x7700, LENGTH = 3 * MTU, LONG = 600000 };

enum fault {
	WRONG_KEY,    /* the remote key is none */
	WRONG_BOUND,  /* packet `at` leaves the remote region */
	WRONG_RIGHT,  /* the remote region does not allow it */
	KEY_GOES,     /* the remote region is taken away before packet `at` arrives */
	WRONG_GATHER, /* entry `at` of the request has no key */
	WRONG_RECV,   /* entry `at` of the receive has no key */
	SHORT_RECV,   /* the receive ends before packet `at` */
	NO_RECV,
	NO_ANSWER, /* nothing comes back */
};

#define NO_EVENT   0xff
#define NO_COUNTER COUNTER_COUNT
#define LIVES	   QP_RTS

struct row {
	const char *name;
	uint8_t opcode;
	enum fault fault;
	unsigned at;
	uint8_t syndrome;	  /* of the request */
	uint8_t recv_syndrome;	  /* of the receive, 0: none is used */
	uint8_t event;		  /* responder's */
	enum counter told, tells; /* requester's, responder's */
	enum qp_state responder;
};

#define ACCESS_NAK EQE_WQ_ACCESS_ERROR, COUNTER_nak_access_received, COUNTER_nak_access_sent, QP_ERR
#define INVALID_NAK                                                                                \
	EQE_WQ_INVAL_REQ_ERROR, COUNTER_nak_invalid_received, COUNTER_nak_invalid_sent, QP_ERR
#define OPERATION_NAK NO_EVENT, COUNTER_nak_operation_received, COUNTER_nak_operation_sent, QP_ERR
#define OWN_FAULT     NO_EVENT, COUNTER_bad_wqe_access, NO_COUNTER, LIVES

/* clang-format off */
static const struct row rows[] = {
	{"write, wrong key", USER_RDMA_WRITE, WRONG_KEY, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write with immediate, wrong key", USER_RDMA_WRITE_IMM, WRONG_KEY, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"read, wrong key", USER_RDMA_READ, WRONG_KEY, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"compare and swap, wrong key", USER_ATOMIC_CS, WRONG_KEY, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"fetch and add, wrong key", USER_ATOMIC_FA, WRONG_KEY, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, first packet out of bounds", USER_RDMA_WRITE, WRONG_BOUND, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, middle packet out of bounds", USER_RDMA_WRITE, WRONG_BOUND, 1, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, last packet out of bounds", USER_RDMA_WRITE, WRONG_BOUND, 2, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"read, last packet out of bounds", USER_RDMA_READ, WRONG_BOUND, 2, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, not allowed", USER_RDMA_WRITE, WRONG_RIGHT, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"read, not allowed", USER_RDMA_READ, WRONG_RIGHT, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"fetch and add, not allowed", USER_ATOMIC_FA, WRONG_RIGHT, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, key gone before the first packet", USER_RDMA_WRITE, KEY_GOES, 0, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, key gone before the middle packet", USER_RDMA_WRITE, KEY_GOES, 1, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, key gone before the last packet", USER_RDMA_WRITE, KEY_GOES, 2, SYNDROME_REMOTE_ACCESS, 0, ACCESS_NAK},
	{"write, first entry without a key", USER_RDMA_WRITE, WRONG_GATHER, 0, SYNDROME_LOCAL_PROT, 0, OWN_FAULT},
	{"write, middle entry without a key", USER_RDMA_WRITE, WRONG_GATHER, 1, SYNDROME_LOCAL_PROT, 0, OWN_FAULT},
	{"write, last entry without a key", USER_RDMA_WRITE, WRONG_GATHER, 2, SYNDROME_LOCAL_PROT, 0, OWN_FAULT},
	{"send, last entry without a key", USER_SEND, WRONG_GATHER, 2, SYNDROME_LOCAL_PROT, 0, OWN_FAULT},
	{"read, first entry without a key", USER_RDMA_READ, WRONG_GATHER, 0, SYNDROME_LOCAL_PROT, 0, OWN_FAULT},
	{"read, last entry without a key", USER_RDMA_READ, WRONG_GATHER, 2, SYNDROME_LOCAL_PROT, 0, OWN_FAULT},
	{"send, first entry of the receive without a key", USER_SEND, WRONG_RECV, 0, SYNDROME_REMOTE_OP, SYNDROME_LOCAL_PROT, OPERATION_NAK},
	{"send, last entry of the receive without a key", USER_SEND, WRONG_RECV, 1, SYNDROME_REMOTE_OP, SYNDROME_LOCAL_PROT, OPERATION_NAK},
	{"send, the receive ends in the first packet", USER_SEND, SHORT_RECV, 0, SYNDROME_REMOTE_INVAL_REQ, SYNDROME_LOCAL_LENGTH, INVALID_NAK},
	{"send, the receive ends in the middle packet", USER_SEND, SHORT_RECV, 1, SYNDROME_REMOTE_INVAL_REQ, SYNDROME_LOCAL_LENGTH, INVALID_NAK},
	{"send, the receive ends in the last packet", USER_SEND_IMM, SHORT_RECV, 2, SYNDROME_REMOTE_INVAL_REQ, SYNDROME_LOCAL_LENGTH, INVALID_NAK},
	{"send, no receive", USER_SEND, NO_RECV, 0, SYNDROME_RNR_RETRY_EXC, 0, NO_EVENT, COUNTER_rnr_retry_exceeded, COUNTER_nak_rnr_sent, LIVES},
	{"write with immediate, no receive", USER_RDMA_WRITE_IMM, NO_RECV, 0, SYNDROME_RNR_RETRY_EXC, 0, NO_EVENT, COUNTER_rnr_retry_exceeded, COUNTER_nak_rnr_sent, LIVES},
	{"send, no answer", USER_SEND, NO_ANSWER, 0, SYNDROME_RETRY_EXC, 0, NO_EVENT, COUNTER_retry_exceeded, COUNTER_duplicate_requests, LIVES},
	{"write, no answer", USER_RDMA_WRITE, NO_ANSWER, 0, SYNDROME_RETRY_EXC, 0, NO_EVENT, COUNTER_retry_exceeded, COUNTER_duplicate_requests, LIVES},
	{"read, no answer", USER_RDMA_READ, NO_ANSWER, 0, SYNDROME_RETRY_EXC, 0, NO_EVENT, COUNTER_retry_exceeded, COUNTER_duplicate_requests, LIVES},
	{"fetch and add, no answer", USER_ATOMIC_FA, NO_ANSWER, 0, SYNDROME_RETRY_EXC, 0, NO_EVENT, COUNTER_retry_exceeded, COUNTER_duplicate_requests, LIVES},
};
/* clang-format on */

/* The wire's part in a row. */
struct wire {
	const struct row *row;
	bool armed;
	unsigned frames; /* of the bad request, so far */
	uint8_t held[4][2048];
	unsigned held_bytes[4], holds;
};

static bool tap(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct wire *w = arg;

	if (!w->armed)
		return false;
	if (w->row->fault == NO_ANSWER)
		return from == 1;
	if (w->row->fault != KEY_GOES || from != 0 || w->frames++ < w->row->at || w->holds == 4)
		return false;
	memcpy(w->held[w->holds], frame, bytes);
	w->held_bytes[w->holds++] = bytes;
	return true;
}

/* A separate key for the second half of the responder's memory. */
static void add_region(struct sim *s, uint32_t access)
{
	struct mpt_entry m = {
		.pd = 2, .access = access, .key = FAR_KEY, .length = s->node[1].memory_bytes - FAR};

	m.start = (uintptr_t)s->node[1].memory + FAR;
	m.phys = s->node[1].memory + FAR;
	assert_int_equal(ceu_exec(s->node[1].ceu, CEU_SW2HW_MPT,
				  v2p_index(&s->node[1].hca->v2p, FAR_KEY), &m, sizeof(m), NULL, 0),
			 CEU_OK);
}

static void remove_region(struct sim *s, struct wire *w)
{
	sim_run(s, 20 * US);
	assert_int_equal(ceu_exec(s->node[1].ceu, CEU_HW2SW_MPT, FAR_KEY, NULL, 0, NULL, 0),
			 CEU_OK);
	w->armed = false;
	for (unsigned i = 0; i < w->holds; i++)
		sim_wire_send(s, 0, w->held[i], w->held_bytes[i]);
}

static struct sim_wr good_request(void)
{
	return SIM_WR(USER_RDMA_WRITE, 0, 200, .remote = 100);
}

static struct sim_wr bad_request(struct sim *s, const struct row *row)
{
	bool atomic = row->opcode == USER_ATOMIC_CS || row->opcode == USER_ATOMIC_FA;
	uint32_t each = row->fault == WRONG_GATHER ? MTU : atomic ? 8 : LENGTH;
	struct sim_wr wr = {.opcode = row->opcode, .remote = FAR, .rkey = FAR_KEY};

	wr.sges = LENGTH / each < 4 ? LENGTH / each : 1;
	for (unsigned i = 0; i < wr.sges; i++)
		wr.sge[i] = (struct sim_sge){4096 * (i + 1), each, 0};
	if (row->fault == WRONG_GATHER)
		wr.sge[row->at].key = 0x5555;
	if (row->fault == WRONG_KEY)
		wr.rkey = 0x5555;
	if (row->fault == WRONG_BOUND)
		wr.remote = s->node[1].memory_bytes - row->at * MTU - MTU / 2;
	return wr;
}

static void post_receive(struct sim *s, const struct row *row)
{
	struct sim_sge list[2] = {{FAR, LENGTH / 2, 0}, {FAR + 8192, LENGTH / 2, 0}};

	if (row->fault == NO_RECV)
		return;
	if (row->fault == WRONG_RECV)
		list[row->at].key = 0x5555;
	if (row->fault == SHORT_RECV)
		list[0].length = row->at * MTU + MTU / 2;
	sim_post_recv_list(s, 1, 0, list, row->fault == SHORT_RECV ? 1 : 2);
}

static void expect(struct sim *s, uint8_t opcode, uint8_t syndrome, uint32_t at)
{
	struct cqe c;

	assert_true(sim_wait(s, 0, &c, 500 * MS));
	assert_int_equal(c.is_send, 1);
	assert_int_equal(c.opcode, opcode);
	if (opcode == USER_INVALID)
		assert_int_equal(c.imm_or_error & 0xff, syndrome);
	assert_int_equal(c.wqe_offset, at);
}

static void expect_receive(struct sim *s, const struct row *row)
{
	bool posted = row->fault != NO_RECV;
	struct cqe c;

	/* One that was not used is flushed with its QP; one that got a message whose ACK was lost
	 * is complete. */
	if (row->recv_syndrome || (posted && row->responder == QP_ERR)) {
		assert_true(sim_poll_cq(s, 1, &c));
		assert_int_equal(c.is_send, 0);
		assert_int_equal(c.opcode, USER_INVALID);
		assert_int_equal(c.imm_or_error & 0xff,
				 row->recv_syndrome ? row->recv_syndrome : SYNDROME_WR_FLUSH);
	} else if (row->fault == NO_ANSWER && row->opcode == USER_SEND) {
		assert_true(sim_poll_cq(s, 1, &c));
		assert_int_equal(c.opcode, USER_RECV);
	}
	assert_false(sim_poll_cq(s, 1, &c));
}

static void expect_both_sides(struct sim *s, const struct row *row)
{
	struct eqe e;

	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
	assert_int_equal(qp_state(sim_context(s, 1, 0)), row->responder);
	if (row->event != NO_EVENT) {
		assert_true(sim_poll_event(s, 1, &e));
		assert_int_equal(e.type, row->event);
		assert_int_equal(e.number, s->node[1].qp[0].qpn);
	}
	assert_false(sim_poll_event(s, 0, &e));
	assert_false(sim_poll_event(s, 1, &e));
	assert_int_equal(sim_counter(s, 0, row->told), 1);
	if (row->fault == NO_ANSWER) /* each packet came again, whatever there was of it */
		assert_true(sim_counter(s, 1, row->tells) >= 2);
	else if (row->tells != NO_COUNTER)
		assert_int_equal(sim_counter(s, 1, row->tells), row->fault == NO_RECV ? 4 : 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), row->fault == NO_ANSWER ? 3 : 0);
}

static void one_row(void **state)
{
	const struct row *row = *state;
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct wire w = {.row = row};
	struct sim_wr good = good_request(), bad;
	uint32_t at[3];
	struct sim *s;

	machine_set_test(row->name);
	p.retry_cnt = 2;
	p.rnr_retry = 3;
	s = sim_create(&p);
	s->tap = tap;
	s->tap_arg = &w;
	add_region(s, row->fault == WRONG_RIGHT ? ACCESS_LOCAL_WRITE : 0xf);
	post_receive(s, row);
	bad = bad_request(s, row);
	at[0] = sim_post(s, 0, 0, &good);
	expect(s, USER_RDMA_WRITE, 0, at[0]);
	sim_run(s, 20 * US);
	w.armed = true;
	at[1] = sim_post(s, 0, 0, &bad);
	if (row->fault == KEY_GOES)
		remove_region(s, &w);
	at[2] = sim_post(s, 0, 0, &good);
	expect(s, USER_INVALID, row->syndrome, at[1]);
	expect(s, USER_INVALID, SYNDROME_WR_FLUSH, at[2]);
	w.armed = false;
	assert_true(sim_settle(s, 1000 * MS));
	expect_receive(s, row);
	expect_both_sides(s, row);
	rig_no_cqe(s);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* ---- a READ whose memory goes while it is answered ---- */

static void read__key_gone_in_the_middle_of_the_answer(void **state)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s = sim_create(&p);
	struct sim_wr wr = SIM_WR(USER_RDMA_READ, 0, LONG, .remote = FAR, .rkey = FAR_KEY);
	struct eqe e;
	uint32_t at;

	add_region(s, 0xf);
	at = sim_post(s, 0, 0, &wr);
	while (!s->end[1].sent)
		sim_step(s);
	assert_int_equal(ceu_exec(s->node[1].ceu, CEU_HW2SW_MPT, FAR_KEY, NULL, 0, NULL, 0),
			 CEU_OK);
	expect(s, USER_INVALID, SYNDROME_REMOTE_ACCESS, at);
	assert_true(sim_settle(s, 1000 * MS));
	assert_in_range(sim_counter(s, 1, COUNTER_read_response_packets), 1, LONG / MTU - 1);
	assert_int_equal(sim_counter(s, 1, COUNTER_nak_access_sent), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_nak_access_received), 1);
	assert_int_equal(qp_state(sim_context(s, 0, 0)), QP_ERR);
	assert_int_equal(qp_state(sim_context(s, 1, 0)), QP_ERR);
	assert_true(sim_poll_event(s, 1, &e));
	assert_int_equal(e.type, EQE_WQ_ACCESS_ERROR);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* ---- under load ---- */

enum ending { TO_ERR, TO_RST, TO_NOTHING };

struct load {
	uint32_t at[2][10];
	unsigned done[2]; /* completions of QP 0 by node */
	bool failed[2];
};

/* Completions of QP 0 come in order, each once; behind the first that failed all are flushed. */
static void take(struct sim *s, struct load *l)
{
	struct cqe c;

	for (int n = 0; n < 2; n++)
		while (sim_poll_cq(s, n, &c)) {
			if (c.my_qpn != s->node[n].qp[0].qpn) {
				assert_int_equal(c.opcode, USER_RDMA_WRITE);
				continue;
			}
			assert_in_range(l->done[n], 0, 9);
			assert_int_equal(c.wqe_offset, l->at[n][l->done[n]]);
			l->done[n]++;
			if (l->failed[n])
				assert_int_equal(c.imm_or_error & 0xff, SYNDROME_WR_FLUSH);
			l->failed[n] |= c.opcode == USER_INVALID;
		}
}

static void end_qp(struct sim *s, int node, enum ending ending)
{
	static const uint8_t op[] = {
		[TO_ERR] = CEU_2ERR, [TO_RST] = CEU_2RST, [TO_NOTHING] = CEU_HW2SW_QP};

	assert_int_equal(
		ceu_exec(s->node[node].ceu, op[ending], s->node[node].qp[0].qpn, NULL, 0, NULL, 0),
		CEU_OK);
}

/* READs and WRITEs in both directions, few retransmit buffers, all of them full; after some
 * microseconds one side's QP ends. */
static void one_load(enum ending ending, int node, unsigned after_us)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct load l = {0};
	struct sim_wr wr[2] = {SIM_WR(USER_RDMA_WRITE, 0, 200000, .remote = FAR),
			       SIM_WR(USER_RDMA_READ, FAR + 300000, 100000, .remote = FAR)};
	struct sim_wr other = good_request();
	struct sim *s;

	p.settings = rig_settings();
	p.settings->swpb_elements = 64;
	p.settings->rpb_elements = 4;
	p.qps = 2;
	p.retry_cnt = 2;
	s = sim_create(&p);
	for (unsigned i = 0; i < 10; i++)
		for (int n = 0; n < 2; n++)
			l.at[n][i] = sim_post(s, n, 0, &wr[(i + n) & 1]);
	sim_run(s, after_us * US);
	take(s, &l);
	end_qp(s, node, ending);
	for (unsigned i = 0; i < 5; i++) { /* the other QP continues */
		sim_post(s, 0, 1, &other);
		sim_post(s, 1, 1, &other);
	}
	for (unsigned i = 0; i < 400; i++) {
		sim_run(s, 100 * US);
		take(s, &l);
	}
	assert_true(sim_settle(s, 1000 * MS));
	take(s, &l);
	assert_true(sim_counter(s, 0, COUNTER_requests) >= 5);
	assert_int_equal(qp_state(sim_context(s, 0, 1)), QP_RTS);
	/* A QP in ERR completes everything it had; a destroyed one completes nothing more. */
	if (ending == TO_ERR)
		assert_int_equal(l.done[node], 10);
	assert_int_equal(l.done[!node], 10);
	if (ending == TO_NOTHING)
		assert_null(sim_context(s, node, 0));
	else
		assert_int_equal(qp_state(sim_context(s, node, 0)),
				 ending == TO_ERR ? QP_ERR : QP_RST);
	if (l.failed[!node]) {
		assert_int_equal(qp_state(sim_context(s, !node, 0)), QP_ERR);
		assert_int_equal(sim_counter(s, !node, COUNTER_retry_exceeded), 1);
		assert_true(sim_counter(s, node,
					ending == TO_ERR   ? COUNTER_drop_qp_state
					: ending == TO_RST ? COUNTER_drop_qp_state
							   : COUNTER_drop_rx_qpn) > 0);
	}
	if (!sim_quiet(s))
		fail_msg("ending %d of node %d after %u us: not all was given back", ending, node,
			 after_us);
	sim_destroy(s);
}

static void under_load(enum ending ending)
{
	for (unsigned after = 0; after < 40; after += 1 + after / 8)
		for (int node = 0; node < 2; node++)
			one_load(ending, node, after);
}

static void load__moved_to_err(void **state)
{
	under_load(TO_ERR);
}

static void load__reset(void **state)
{
	under_load(TO_RST);
}

static void load__destroyed(void **state)
{
	under_load(TO_NOTHING);
}

static int hand_over(void **state)
{
	return 0; /* *state is the row, as passed to the test */
}

#define UNIT(f)                                                                                    \
	{                                                                                          \
#f, f, rig_begin_test, NULL, (void *)(uintptr_t) #f                                \
	}
#define ROWS (sizeof(rows) / sizeof(rows[0]))

int main(void)
{
	static struct CMUnitTest tests[ROWS + 4];
	static char names[ROWS][80];
	unsigned n = 0;

	for (; n < ROWS; n++) {
		snprintf(names[n], sizeof(names[n]), "error__%s", rows[n].name);
		for (char *c = names[n]; *c; c++)
			*c = *c == ' ' || *c == ',' ? '_' : *c;
		tests[n] =
			(struct CMUnitTest){names[n], one_row, hand_over, NULL, (void *)&rows[n]};
	}
	tests[n++] = (struct CMUnitTest)UNIT(read__key_gone_in_the_middle_of_the_answer);
	tests[n++] = (struct CMUnitTest)UNIT(load__moved_to_err);
	tests[n++] = (struct CMUnitTest)UNIT(load__reset);
	tests[n++] = (struct CMUnitTest)UNIT(load__destroyed);
	return _cmocka_run_group_tests("catalogue", tests, n, NULL, NULL);
}
