/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations and their proof: see traffic.h. */
#include "traffic.h"

#define LIMIT_NS 60000000000ull
#define GUARD	 0xee
#define GUARDS	 8u
#define SPARE	 (7 + 63 + GUARDS) /* at most: in front of a piece, longer than needed, behind it */

/* ---- memory ---- */

/* Of operation k of a QP: role 0 is the asking node's side, role 1 the other's. */
static uint64_t slot(unsigned role, unsigned qp, unsigned k)
{
	return (uint64_t)((role * SIM_QPS + qp) * TRAFFIC_OPS + k) * TRAFFIC_SLOT;
}

/* An atomic's word on the other side: behind all slots. */
static uint64_t word(unsigned qp)
{
	return (uint64_t)2 * SIM_QPS * TRAFFIC_OPS * TRAFFIC_SLOT + qp * 64;
}

static uint8_t pattern(uint64_t seed, uint32_t i)
{
	return (uint8_t)(seed >> 3 ^ i * 31 ^ i >> 8);
}

/* `from`: which byte of the message the first one is. */
static void fill(uint8_t *p, uint32_t bytes, uint64_t seed, uint32_t from)
{
	for (uint32_t i = 0; i < bytes; i++)
		p[i] = pattern(seed, from + i);
}

static bool same(const uint8_t *p, uint32_t bytes, uint64_t seed, uint32_t from)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (p[i] != pattern(seed, from + i))
			return false;
	return true;
}

static bool untouched(const uint8_t *p)
{
	for (uint32_t i = 0; i < GUARDS; i++)
		if (p[i] != GUARD)
			return false;
	return true;
}

/* Cuts a message into pieces that do not touch each other. */
static void cut(struct sim *s, struct sim_sge *list, unsigned pieces, uint64_t at, uint32_t bytes,
		unsigned places)
{
	uint32_t left = bytes, each = TRAFFIC_SLOT / places;

	assert_true(pieces == 1 || bytes <= pieces * (each - SPARE));
	for (unsigned i = 0; i < pieces; i++) {
		uint32_t rest = (pieces - 1 - i) * (each - SPARE), n = left;

		if (i + 1 < pieces) {
			uint32_t least = left > rest ? left - rest : 0, most = left;

			if (most > each - SPARE)
				most = each - SPARE;
			n = least + sim_random(s) % (most - least + 1);
		}
		list[i] = (struct sim_sge){at + i * each + sim_random(s) % 8, n, 0};
		left -= n;
	}
}

/* Pattern, or GUARD everywhere, and guards in front of and behind each piece. */
static void prepare(uint8_t *memory, const struct sim_sge *list, unsigned n, uint64_t seed,
		    bool data)
{
	uint32_t from = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t *p = memory + list[i].offset;

		memset(p, GUARD, list[i].length + GUARDS);
		if (data)
			fill(p, list[i].length, seed, from);
		from += list[i].length;
	}
}

static bool proven(const uint8_t *memory, const struct sim_sge *list, unsigned n, uint64_t seed,
		   uint32_t bytes)
{
	uint32_t from = 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t here = list[i].length < bytes - from ? list[i].length : bytes - from;

		if (!same(memory + list[i].offset, here, seed, from) ||
		    !untouched(memory + list[i].offset + list[i].length))
			return false;
		from += here;
	}
	return from == bytes;
}

/* ---- failures ---- */

static void wrong(struct traffic *t, int node, unsigned qp, unsigned k, const char *what,
		  const struct cqe *c)
{
	struct traffic_op *o = &t->flow[node][qp].op[k];

	sim_print_counters(t->s);
	fail_msg("%s: node %d qp %u op %u (%#x, %u bytes): %s%s (opcode %#x, syndrome or imm %#x, "
		 "at %u, %u bytes)",
		 t->label, node, qp, k, o->opcode, o->bytes, what, c ? "" : "; no completion",
		 c ? c->opcode : 0, c ? c->imm_or_error : 0, c ? c->wqe_offset : 0,
		 c ? c->byte_count : 0);
}

/* ---- posting ---- */

static bool is_atomic(uint8_t opcode)
{
	return opcode == USER_ATOMIC_CS || opcode == USER_ATOMIC_FA;
}

static bool consumes(uint8_t opcode)
{
	return opcode == USER_SEND || opcode == USER_SEND_IMM || opcode == USER_RDMA_WRITE_IMM;
}

void traffic_begin(struct traffic *t, struct sim *s, const char *label, ...)
{
	va_list args;

	memset(t, 0, sizeof(*t));
	t->s = s;
	t->lost_max = UINT32_MAX;
	va_start(args, label);
	vsnprintf(t->label, sizeof(t->label), label, args);
	va_end(args);
	for (int n = 0; n < 2; n++)
		memset(s->node[n].memory + word(0), 0, SIM_QPS * 64);
}

/* The buffers that an operation needs on its own side and on the other. */
static void place(struct traffic *t, int node, unsigned qp, unsigned k)
{
	struct traffic_op *o = &t->flow[node][qp].op[k];
	struct sim *s = t->s;
	bool to_us = is_atomic(o->opcode) || o->opcode == USER_RDMA_READ;
	struct sim_sge there = {o->remote, o->bytes, 0};

	cut(s, o->local, o->pieces, slot(0, qp, k), o->bytes, 4);
	prepare(s->node[node].memory, o->local, o->pieces, o->seed, !to_us);
	if (consumes(o->opcode) && o->opcode != USER_RDMA_WRITE_IMM) {
		cut(s, o->recv, o->recv_pieces, slot(1, qp, k), o->bytes, 2);
		o->recv[o->recv_pieces - 1].length += o->seed >> 8 & 63; /* longer than needed */
		prepare(s->node[!node].memory, o->recv, o->recv_pieces, 0, false);
	} else if (!is_atomic(o->opcode)) {
		prepare(s->node[!node].memory, &there, 1, o->seed, to_us);
	}
}

struct traffic_op *traffic_add(struct traffic *t, int node, unsigned qp, uint8_t opcode,
			       uint32_t bytes)
{
	struct traffic_flow *f = &t->flow[node][qp];
	struct traffic_op *o = &f->op[f->ops];

	assert_true(f->ops < TRAFFIC_OPS && bytes <= TRAFFIC_BYTES_MAX);
	*o = (struct traffic_op){.opcode = opcode,
				 .bytes = is_atomic(opcode) ? 8 : bytes,
				 .pieces = 1,
				 .recv_pieces = 1,
				 .seed = sim_random(t->s)};
	o->imm = (uint32_t)o->seed;
	o->remote = is_atomic(opcode) ? word(qp) : slot(1, qp, f->ops) + (o->seed >> 16 & 63);
	f->ops++;
	return o;
}

static void post(struct traffic *t, int node, unsigned qp)
{
	struct traffic_flow *f = &t->flow[node][qp];
	struct traffic_op *o = &f->op[f->posted++];
	struct sim_wr wr = {.opcode = o->opcode,
			    .fence = o->fence,
			    .unsignaled = o->unsignaled,
			    .is_inline = o->is_inline,
			    .imm = o->imm,
			    .remote = o->remote,
			    .sges = o->bytes ? o->pieces : 0};

	memcpy(wr.sge, o->local, sizeof(wr.sge));
	if (is_atomic(o->opcode)) {
		o->expected = wr.compare = f->atomic;
		wr.swap_add = o->opcode == USER_ATOMIC_FA ? o->seed & 0xffff : o->seed;
		f->atomic = wr.swap_add + (o->opcode == USER_ATOMIC_FA ? f->atomic : 0);
	}
	o->wqe = sim_post(t->s, node, qp, &wr);
}

static void post_recv(struct traffic *t, int node, unsigned qp)
{
	struct traffic_flow *f = &t->flow[node][qp];
	struct traffic_op *o = &f->op[f->recv_posted++];

	if (!consumes(o->opcode))
		return;
	o->recv_wqe = sim_post_recv_list(t->s, !node, qp, o->recv,
					 o->opcode == USER_RDMA_WRITE_IMM ? 0 : o->recv_pieces);
}

/* Posts what is due. When the next is. */
static uint64_t post_due(struct traffic *t)
{
	uint64_t next = UINT64_MAX, now = t->s->now_ns;

	for (int node = 0; node < 2; node++)
		for (unsigned q = 0; q < SIM_QPS; q++) {
			struct traffic_flow *f = &t->flow[node][q];

			while (f->recv_posted < f->ops && f->op[f->recv_posted].recv_ns <= now)
				post_recv(t, node, q);
			while (f->posted < f->ops && f->op[f->posted].post_ns <= now)
				post(t, node, q);
			if (f->recv_posted < f->ops && f->op[f->recv_posted].recv_ns < next)
				next = f->op[f->recv_posted].recv_ns;
			if (f->posted < f->ops && f->op[f->posted].post_ns < next)
				next = f->op[f->posted].post_ns;
		}
	return next;
}

/* ---- the proof ---- */

/* Everything about it is as it must be once it has completed. */
static void prove(struct traffic *t, int node, unsigned qp, unsigned k, const struct cqe *c)
{
	struct traffic_op *o = &t->flow[node][qp].op[k];
	const uint8_t *here = t->s->node[node].memory, *there = t->s->node[!node].memory;
	struct sim_sge far = {o->remote, o->bytes, 0};

	if (is_atomic(o->opcode)) {
		uint8_t got[8], want[8];

		memcpy(want, &o->expected, 8);
		for (unsigned i = 0, n = 0; i < o->pieces; i++)
			for (unsigned b = 0; b < o->local[i].length; b++)
				got[n++] = here[o->local[i].offset + b];
		if (memcmp(got, want, 8))
			wrong(t, node, qp, k, "wrong value", c);
	} else if (o->opcode == USER_RDMA_READ) {
		if (!proven(here, o->local, o->pieces, o->seed, o->bytes))
			wrong(t, node, qp, k, "wrong data", c);
	} else if (!consumes(o->opcode) || o->opcode == USER_RDMA_WRITE_IMM) {
		if (!proven(there, &far, 1, o->seed, o->bytes))
			wrong(t, node, qp, k, "wrong data", c);
	}
}

/* A flow ends with this error, or is flushed behind it. */
static void failed(struct traffic *t, int node, unsigned qp, const struct cqe *c)
{
	struct traffic_flow *f = &t->flow[node][qp];
	uint8_t syndrome = c->imm_or_error & 0xff;
	unsigned k = f->done;

	if (t->s->lost <= t->lost_max)
		wrong(t, node, qp, k, "failed", c);
	while (!f->failed && k < f->ops && f->op[k].unsignaled && f->op[k].wqe != c->wqe_offset)
		prove(t, node, qp, k++, c);
	if (k >= f->ops || f->op[k].wqe != c->wqe_offset)
		wrong(t, node, qp, k < f->ops ? k : 0, "out of turn", c);
	if (syndrome != (f->failed ? SYNDROME_WR_FLUSH : SYNDROME_RETRY_EXC))
		wrong(t, node, qp, k, "wrong error", c);
	f->failed = true;
	f->done = k + 1;
}

static void completed(struct traffic *t, int node, unsigned qp, const struct cqe *c)
{
	struct traffic_flow *f = &t->flow[node][qp];

	if (c->opcode == USER_INVALID) {
		failed(t, node, qp, c);
		return;
	}
	while (f->done < f->ops && f->op[f->done].unsignaled)
		prove(t, node, qp, f->done++, NULL);
	if (f->done >= f->posted || f->failed)
		wrong(t, node, qp, f->ops - 1, "one completion too many", c);
	if (c->opcode != f->op[f->done].opcode || c->wqe_offset != f->op[f->done].wqe)
		wrong(t, node, qp, f->done, "wrong completion", c);
	prove(t, node, qp, f->done++, c);
}

/* `node` is the one that asked, not the one that received. */
static void received(struct traffic *t, int node, unsigned qp, const struct cqe *c)
{
	struct traffic_flow *f = &t->flow[node][qp];
	struct traffic_op *o;
	unsigned k;

	while (f->received < f->ops && !consumes(f->op[f->received].opcode))
		f->received++;
	k = f->received++;
	if (k >= f->ops)
		wrong(t, node, qp, f->ops ? f->ops - 1 : 0, "one receive too many", c);
	o = &f->op[k];
	if (c->opcode == USER_INVALID || c->wqe_offset != o->recv_wqe || c->byte_count != o->bytes)
		wrong(t, node, qp, k, "wrong receive", c);
	if (o->opcode != USER_SEND && c->imm_or_error != o->imm)
		wrong(t, node, qp, k, "wrong immediate", c);
	if (o->opcode != USER_RDMA_WRITE_IMM &&
	    !proven(t->s->node[!node].memory, o->recv, o->recv_pieces, o->seed, o->bytes))
		wrong(t, node, qp, k, "wrong data received", c);
}

static unsigned qp_of(struct traffic *t, int node, uint32_t qpn)
{
	for (unsigned q = 0; q < SIM_QPS; q++)
		if (t->s->node[node].qp[q].qpn == qpn)
			return q;
	fail_msg("%s: a completion for a QP that there is not", t->label);
	return 0;
}

static void poll_all(struct traffic *t)
{
	struct cqe c;

	/* Receives first: a send has been received when it completes. */
	for (int node = 0; node < 2; node++)
		while (sim_poll_cq(t->s, node, &c))
			(c.is_send ? completed : received)(t, c.is_send ? node : !node,
							   qp_of(t, node, c.my_qpn), &c);
}

static bool finished(const struct traffic *t)
{
	for (int node = 0; node < 2; node++)
		for (unsigned q = 0; q < SIM_QPS; q++)
			if (t->flow[node][q].done < t->flow[node][q].ops)
				return false;
	return true;
}

static void prove_end(struct traffic *t, int node, unsigned q)
{
	struct traffic_flow *f = &t->flow[node][q];
	uint64_t value;

	if (f->failed || !f->ops)
		return;
	while (f->received < f->ops && !consumes(f->op[f->received].opcode))
		f->received++;
	if (f->received != f->ops)
		wrong(t, node, q, f->received, "was not received", NULL);
	memcpy(&value, t->s->node[!node].memory + word(q), 8);
	if (value != f->atomic)
		wrong(t, node, q, f->ops - 1, "the atomic's word is wrong", NULL);
}

/* What a QP without progress waits for. */
static void print_qp(struct traffic *t, int node, unsigned qp)
{
	const struct qp *q = sim_context(t->s, node, qp);

	fprintf(stderr,
		"node %d qp %u: state %u, next PSN %#x, unacked %#x, expected %#x, timers armed %u "
		"%u, parked %u, rnr %u, retransmitting %u, credits %#x, LSN %#x, next SSN %#x\n",
		node, qp, q->state, q->rtc.next_psn, q->rrc.unacked_psn, q->ee.expected_psn,
		q->tc.armed[0], q->tc.armed[1], q->rtc.parked, q->rrc.rnr_waiting,
		q->rrc.retransmitting, q->rrc.credits, q->rtc.lsn, q->rtc.ssn);
}

static void stuck(struct traffic *t, const char *what)
{
	for (int node = 0; node < 2; node++)
		for (unsigned q = 0; q < SIM_QPS; q++)
			if (t->flow[node][q].ops || t->flow[!node][q].ops)
				print_qp(t, node, q);
	for (int node = 0; node < 2; node++)
		for (unsigned q = 0; q < SIM_QPS; q++)
			if (t->flow[node][q].done < t->flow[node][q].ops)
				wrong(t, node, q, t->flow[node][q].done, what, NULL);
}

bool traffic_run(struct traffic *t)
{
	uint64_t limit = t->s->now_ns + LIMIT_NS, next;
	bool due = true, failures = false;

	for (int node = 0; node < 2; node++)
		for (unsigned q = 0; q < SIM_QPS; q++)
			for (unsigned k = 0; k < t->flow[node][q].ops; k++)
				place(t, node, q, k);
	for (;;) {
		next = post_due(t);
		poll_all(t);
		if (finished(t))
			break;
		if (!due && next == UINT64_MAX)
			stuck(t, "stuck: nothing is due any more");
		if (t->s->now_ns > limit)
			stuck(t, "stuck for a minute");
		due = sim_advance(t->s, next < limit ? next : limit);
		if (!due && next != UINT64_MAX) {
			t->s->now_ns = next;
			due = true;
		}
	}
	if (!sim_settle(t->s, LIMIT_NS))
		fail_msg("%s: something is due for ever", t->label);
	poll_all(t);
	for (int node = 0; node < 2; node++)
		for (unsigned q = 0; q < SIM_QPS; q++) {
			prove_end(t, node, q);
			failures |= t->flow[node][q].failed;
		}
	if (!sim_quiet(t->s))
		fail_msg("%s: not everything was given back", t->label);
	return !failures;
}
