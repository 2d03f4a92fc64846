/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues under queue pairs that come and go: on both nodes all queue pairs receive
 * through one SRQ of few requests; connections are moved to ERR, reset and destroyed at any moment,
 * over a wire that loses, duplicates, delays and corrupts. Requests of an SRQ are neither lost nor
 * used twice: each is available, held by one queue pair, or has completed; messages on undisturbed
 * connections complete. The client behaves like libsofthca: it posts only requests that have
 * completed. SOFTHCA_SEEDS=first,count chooses the runs.
 */
#include "rig.h"

enum {
	QPS = 4,
	WINDOW = 12,  /* sends of a flow that may be open */
	SLOT = 8192,  /* of memory, for a receive request */
	BYTES = 6000, /* of the longest message */
	STEPS = 120,
	TAGS = 4096, /* more than are ever open */
	FIRST_TAG = 0x1000,
	RETRIES = 7,
};
#define SOURCE	 ((uint64_t)SIM_SRQ_ENTRIES * SLOT) /* data to send */
#define TARGET	 (SOURCE + 2 * SLOT)		    /* data written and read */
#define MEMORY	 (TARGET + QPS * SLOT)
#define LIMIT_NS 60000000000ull

struct open_send {
	uint32_t wqe;
	uint8_t opcode;
	bool unsignaled;
};

/* The messages of one node on one queue pair. */
struct flow {
	struct open_send open[WINDOW];
	uint32_t posted, done; /* since the connection was made */
	uint32_t messages;     /* of them, those that take a receive request */
	uint32_t received;     /* by the other node */
};

/* The requests of one node's SRQ. */
struct stock {
	uint8_t slot[TAGS]; /* by tag */
	bool open[TAGS];    /* posted and not completed */
	bool busy[SIM_SRQ_ENTRIES];
	uint32_t posted, back, depth; /* depth: that many may be open */
};

struct lives {
	struct sim *s;
	struct flow flow[2][QPS]; /* by node that sends */
	struct stock stock[2];
	bool touched[QPS]; /* the connection may fail */
	uint64_t seed;
	unsigned connections, completed;
};

static void print_qp(struct lives *l, int node, unsigned qp)
{
	const struct qp *q = sim_context(l->s, node, qp);
	const struct flow *f = &l->flow[node][qp];

	if (!q)
		return;
	fprintf(stderr,
		"node %d, QP %u%s: state %u, %u of %u sends, next PSN %#x, unacked %#x, expected "
		"%#x, timers %u %u, parked %u, rnr %u, open message %u, held %u\n",
		node, qp, l->touched[qp] ? " (touched)" : "", q->state, f->done, f->posted,
		q->rtc.next_psn, q->rrc.unacked_psn, q->ee.expected_psn, q->tc.armed[0],
		q->tc.armed[1], q->rtc.parked, q->rrc.rnr_waiting, q->ee.message,
		q->rwm.fetched - q->rwm.consumed);
}

static void bad(struct lives *l, int node, unsigned qp, const char *what, uint32_t number)
{
	for (int n = 0; n < 2; n++) {
		for (unsigned k = 0; k < QPS; k++)
			print_qp(l, n, k);
		fprintf(stderr, "node %d: SRQ: depth %u, %u posted, %u back\n", n,
			l->stock[n].depth, l->stock[n].posted, l->stock[n].back);
	}
	fail_msg("SOFTHCA_SEEDS=%lu,1: node %d, QP %u: %s (%u)", (unsigned long)l->seed, node, qp,
		 what, number);
}

/* ---- posting ---- */

static void fill(struct lives *l, int node)
{
	struct stock *t = &l->stock[node];

	while (t->posted - t->back < t->depth) {
		uint8_t slot = 0;
		uint32_t tag;

		while (t->busy[slot])
			slot++;
		tag = sim_post_srq_recv(l->s, node, (uint64_t)slot * SLOT, SLOT) - FIRST_TAG;
		if (tag != t->posted || t->open[tag % TAGS])
			bad(l, node, 0, "tag", tag);
		t->busy[slot] = true;
		t->slot[tag % TAGS] = slot;
		t->open[tag % TAGS] = true;
		t->posted++;
	}
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == USER_SEND_IMM || opcode == USER_RDMA_WRITE_IMM;
}

static uint32_t random_bytes(struct sim *s)
{
	uint32_t r = (uint32_t)sim_random(s);

	return r & 1 ? r >> 1 & 127 : (r >> 1) % BYTES;
}

static void send_one(struct lives *l, int node, unsigned qp)
{
	static const uint8_t kinds[] = {USER_SEND_IMM,	     USER_SEND_IMM,   USER_SEND_IMM,
					USER_RDMA_WRITE_IMM, USER_RDMA_WRITE, USER_RDMA_READ};
	struct flow *f = &l->flow[node][qp];
	struct open_send *r = &f->open[f->posted % WINDOW];
	struct sim *s = l->s;
	struct sim_wr wr = {.remote = TARGET + (uint64_t)qp * SLOT, .sges = 1};

	if (f->posted - f->done == WINDOW)
		return;
	wr.opcode = kinds[sim_random(s) % (s->params.service == SERVICE_RC ? 6 : 5)];
	wr.imm = f->messages;
	wr.sge[0] = (struct sim_sge){SOURCE + qp * 64, random_bytes(s), 0};
	if (wr.opcode == USER_RDMA_READ)
		wr.sge[0].offset = TARGET + (uint64_t)qp * SLOT;
	wr.unsignaled = f->posted - f->done < WINDOW - 1 && sim_random(s) % 4 == 0;
	*r = (struct open_send){.opcode = wr.opcode, .unsignaled = wr.unsignaled};
	f->messages += takes_receive(wr.opcode);
	r->wqe = sim_post(s, node, qp, &wr);
	f->posted++;
}

/* ---- completions ---- */

static unsigned qp_of(struct lives *l, int node, uint32_t qpn)
{
	for (unsigned k = 0; k < QPS; k++)
		if (l->s->node[node].qp[k].qpn == qpn)
			return k;
	return QPS;
}

static void came_back(struct lives *l, int node, const struct cqe *c)
{
	struct stock *t = &l->stock[node];
	uint32_t tag = c->wqe_offset - FIRST_TAG;

	if (tag >= t->posted || !t->open[tag % TAGS])
		bad(l, node, 0, "a receive request completes that is not open", tag);
	t->open[tag % TAGS] = false;
	t->busy[t->slot[tag % TAGS]] = false;
	t->back++;
}

static void received(struct lives *l, int node, unsigned qp, const struct cqe *c)
{
	struct sim_node *n = &l->s->node[node];
	struct flow *f = &l->flow[!node][qp];
	uint32_t slot = l->stock[node].slot[(c->wqe_offset - FIRST_TAG) % TAGS];

	came_back(l, node, c);
	if (c->opcode == USER_INVALID) {
		if (!l->touched[qp])
			bad(l, node, qp, "a receive failed", c->imm_or_error);
		return;
	}
	/* UC recognises neither duplicates nor packets of a former connection. */
	if (l->s->params.service == SERVICE_RC && c->imm_or_error != f->received)
		bad(l, node, qp, "a message out of turn", c->imm_or_error);
	f->received = c->imm_or_error + 1;
	if (c->opcode == USER_RECV_IMM &&
	    memcmp(n->memory + (uint64_t)slot * SLOT, l->s->node[!node].memory + SOURCE + qp * 64,
		   c->byte_count))
		bad(l, node, qp, "wrong data", c->imm_or_error);
}

static void sent(struct lives *l, int node, unsigned qp, const struct cqe *c)
{
	struct flow *f = &l->flow[node][qp];

	while (f->done < f->posted && f->open[f->done % WINDOW].unsignaled &&
	       f->open[f->done % WINDOW].wqe != c->wqe_offset)
		f->done++;
	if (f->done == f->posted || f->open[f->done % WINDOW].wqe != c->wqe_offset)
		bad(l, node, qp, "a send out of turn", c->wqe_offset);
	if (c->opcode == USER_INVALID && !l->touched[qp])
		bad(l, node, qp, "a send failed", c->imm_or_error);
	f->done++;
	l->completed++;
}

/* gone: all that matters for this queue pair is that its receive requests are returned. */
static void poll_all(struct lives *l, unsigned gone)
{
	struct eqe e;
	struct cqe c;

	for (int node = 0; node < 2; node++) {
		while (sim_poll_cq(l->s, node, &c)) {
			unsigned k = qp_of(l, node, c.my_qpn);

			if (k == QPS)
				bad(l, node, 0, "a completion of nobody", c.my_qpn);
			else if (k == gone && !c.is_send)
				came_back(l, node, &c);
			else if (k != gone)
				(c.is_send ? sent : received)(l, node, k, &c);
		}
		while (sim_poll_event(l->s, node, &e))
			;
	}
}

/* ---- lives ---- */

static void begin(struct lives *l, unsigned qp)
{
	for (int node = 0; node < 2; node++) {
		l->flow[node][qp] = (struct flow){0};
		for (enum qp_state to = QP_INIT; to <= QP_RTS; to++)
			sim_modify(l->s, node, qp, to, 0);
	}
	l->touched[qp] = false;
	l->connections++;
}

/* Destroys both ends in their state, one after the other, and creates new ones. */
static void again(struct lives *l, unsigned qp)
{
	int first = sim_random(l->s) & 1;

	poll_all(l, QPS);
	l->touched[qp] = true;
	l->s->params.psn = sim_random(l->s) & 0xffffff; /* nothing of its former life fits */
	for (int i = 0; i < 2; i++) {
		bool renew = sim_random(l->s) & 1;

		if (!renew)
			sim_modify(l->s, first ^ i, qp, QP_RST, 0);
		poll_all(l, qp);
		if (renew) { /* its completions are its old number's */
			sim_modify(l->s, first ^ i, qp, QP_ERR, 0);
			sim_run(l->s, sim_random(l->s) % 4 * US);
			poll_all(l, qp);
			sim_modify(l->s, first ^ i, qp, QP_RST, 0);
			poll_all(l, qp);
			sim_renew(l->s, first ^ i, qp);
		}
		for (unsigned k = sim_random(l->s) % 20; k; k--)
			sim_step(l->s);
	}
	begin(l, qp);
}

static void to_err(struct lives *l, int node, unsigned qp)
{
	l->touched[qp] = true;
	if (qp_state(sim_context(l->s, node, qp)) != QP_ERR)
		sim_modify(l->s, node, qp, QP_ERR, 0);
}

static void one_step(struct lives *l)
{
	struct sim *s = l->s;
	unsigned qp = sim_random(s) % QPS, choice = sim_random(s) % 100;
	int node = sim_random(s) & 1;

	if (choice < 50)
		for (unsigned n = 1 + sim_random(s) % 6; n; n--)
			send_one(l, node, qp);
	else if (choice < 80)
		poll_all(l, QPS);
	else if (choice < 90)
		fill(l, node);
	else if (choice < 94)
		again(l, qp);
	else if (choice < 96)
		to_err(l, node, qp);
	else
		l->stock[node].depth = 1 + sim_random(s) % 16;
	sim_run(s, sim_random(s) % 15 * US);
}

/* ---- the end ---- */

/* Have all signalled messages of the flow completed? The last ones may be unsignalled. */
static bool is_over(const struct flow *f)
{
	for (uint32_t i = f->done; i < f->posted; i++)
		if (!f->open[i % WINDOW].unsignaled)
			return false;
	return true;
}

static bool finished(const struct lives *l)
{
	for (int node = 0; node < 2; node++)
		for (unsigned k = 0; k < QPS; k++)
			if (!l->touched[k] && !is_over(&l->flow[node][k]))
				return false;
	return true;
}

static void finish(struct lives *l)
{
	struct sim *s = l->s;
	uint64_t limit = s->now_ns + LIMIT_NS;
	bool due = true;

	/* One whose peer disappeared within a message holds a descriptor that others may wait
	 * for. */
	for (unsigned k = 0; k < QPS; k++)
		for (int node = 0; node < 2 && l->touched[k]; node++)
			to_err(l, node, k);
	for (;;) {
		poll_all(l, QPS);
		fill(l, 0);
		fill(l, 1);
		if (finished(l))
			return;
		for (int node = 0; node < 2; node++)
			for (unsigned k = 0; k < QPS; k++)
				if ((!due || s->now_ns > limit) && !l->touched[k] &&
				    !is_over(&l->flow[node][k]))
					bad(l, node, k, due ? "stuck for a minute" : "stuck",
					    l->flow[node][k].done);
		due = sim_advance(s, limit + 1);
	}
}

/* Every queue pair returns its descriptor; then all are available or completed. */
static void account(struct lives *l)
{
	struct control_srq_attr attr;

	for (unsigned k = 0; k < QPS; k++)
		for (int node = 0; node < 2; node++)
			to_err(l, node, k);
	sim_settle(l->s, LIMIT_NS);
	poll_all(l, QPS);
	for (int node = 0; node < 2; node++) {
		struct stock *t = &l->stock[node];

		assert_int_equal(ceu_exec(l->s->node[node].ceu, CEU_QUERY_SRQ,
					  l->s->node[node].srq.srqn, NULL, 0, &attr, sizeof(attr)),
				 CEU_OK);
		if (attr.available != t->posted - t->back)
			bad(l, node, 0, "of the SRQ's requests are there", attr.available);
		for (unsigned k = 0; k < QPS; k++)
			if (!is_over(&l->flow[node][k]))
				bad(l, node, k, "sends were not given back",
				    l->flow[node][k].posted - l->flow[node][k].done);
	}
	if (!sim_quiet(l->s))
		bad(l, 0, 0, "not everything was given back", 0);
}

static void one_life(struct lives *l, uint64_t seed)
{
	static const uint32_t ppm[] = {0, 0, 20000, 100000, 300000};
	static const uint32_t delays[] = {3000, 20000, 200000};
	struct sim *s = l->s;
	struct sim_params p = s->params;

	p.seed = l->seed = seed;
	s->rng = seed;
	p.mtu = 1 + sim_random(s) % 4;
	p.psn = sim_random(s) & 0xffffff;
	p.timeout = 8 + sim_random(s) % 2;
	p.min_rnr_timer = 1 + sim_random(s) % 8;
	p.max_rd_atomic = 1 + sim_random(s) % 4;
	sim_reset(s, &p);
	for (unsigned k = 0; k < QPS; k++) {
		l->flow[0][k] = l->flow[1][k] = (struct flow){0};
		l->touched[k] = false;
	}
	for (int node = 0; node < 2; node++)
		l->stock[node].depth = 1 + sim_random(s) % 16;
	s->faults = (struct sim_faults){.loss_ppm = ppm[sim_random(s) % 5],
					.duplicate_ppm = ppm[sim_random(s) % 5],
					.reorder_ppm = ppm[sim_random(s) % 5],
					.corrupt_ppm = ppm[sim_random(s) % 5] / 4,
					.delay_ns = delays[sim_random(s) % 3],
					.most_lost = RETRIES};
	for (unsigned i = 0; i < STEPS; i++)
		one_step(l);
	finish(l);
	account(l);
}

static void lives(enum qp_service service, uint64_t first, uint64_t count)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct lives *l = calloc(1, sizeof(*l));

	p.service = (uint8_t)service;
	p.qps = QPS;
	p.srq = true;
	p.memory_bytes = MEMORY;
	l->s = sim_create(&p);
	for (int node = 0; node < 2; node++)
		for (unsigned i = 0; i < 2 * SLOT; i++)
			l->s->node[node].memory[SOURCE + i] = (uint8_t)(i * 31 + (i >> 8) + node);
	for (uint64_t seed = first; seed < first + count; seed++)
		one_life(l, seed);
	print_message("%s: seeds %lu to %lu: %u connections, %u sends, %u receives\n",
		      service == SERVICE_RC ? "RC" : "UC", (unsigned long)first,
		      (unsigned long)(first + count - 1), l->connections, l->completed,
		      l->stock[0].back + l->stock[1].back);
	sim_destroy(l->s);
	free(l);
}

static void chosen(uint64_t *first, uint64_t *count)
{
	const char *seeds = getenv("SOFTHCA_SEEDS");

	if (seeds && sscanf(seeds, "%lu,%lu", first, count) < 1)
		fail_msg("SOFTHCA_SEEDS=first,count");
}

TEST(srq__no_request_is_lost_with_a_queue_pair)
{
	uint64_t first = 1, count = 400;

	chosen(&first, &count);
	lives(SERVICE_RC, first, count);
}

TEST(srq__no_request_is_lost_with_a_uc_queue_pair)
{
	uint64_t first = 1, count = 200;

	chosen(&first, &count);
	lives(SERVICE_UC, first, count);
}
