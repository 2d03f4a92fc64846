/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two HCAs over a bad wire: random operations of every kind and size, random loss, duplication,
 * reordering and corruption from a seed. Every operation completes exactly once, in order, with its
 * data right, and everything is given back. SOFTHCA_SEEDS=first,count chooses the runs; the seed is
 * printed when one fails.
 */
#include "rig.h"

#define QPS    3
#define WINDOW 16	    /* operations outstanding on a QP */
#define SLOT   (256u << 10) /* memory of one operation, on each side */
#define OPS    60	    /* operations on each QP in one run */

struct op {
	struct sim_wr wr;
	uint32_t wqe, bytes, recv_offset;
	uint64_t seed, expected;
	bool done;
};

struct run {
	struct sim *s;
	uint64_t seed;
	struct op op[QPS][OPS];
	unsigned posted[QPS], done[QPS], received[QPS], recvs[QPS];
	uint64_t counter[QPS]; /* expected value of the peer's atomic word */
};

static uint8_t pattern(uint64_t seed, uint32_t i)
{
	return (uint8_t)(seed >> 3 ^ i * 31 ^ i >> 8);
}

static void fill(uint8_t *p, uint32_t bytes, uint64_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		p[i] = pattern(seed, i);
}

static bool same(const uint8_t *p, uint32_t bytes, uint64_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (p[i] != pattern(seed, i))
			return false;
	return true;
}

static uint64_t slot(unsigned q, unsigned k)
{
	return (uint64_t)(q * WINDOW + k % WINDOW) * SLOT;
}

/* An atomic's word on the peer: behind all slots. */
static uint64_t word(unsigned q)
{
	return (uint64_t)QPS * WINDOW * SLOT + q * 64;
}

static uint32_t random_bytes(struct sim *s)
{
	static const uint32_t most[] = {0, 1, 64, 1024, 5000, 40000, SLOT - 1};

	return sim_random(s) % (most[sim_random(s) % 7] + 1);
}

static bool consumes(uint8_t opcode)
{
	return opcode == USER_SEND || opcode == USER_SEND_IMM || opcode == USER_RDMA_WRITE_IMM;
}

static void post(struct run *r, unsigned q)
{
	static const uint8_t kinds[] = {USER_RDMA_WRITE, USER_RDMA_WRITE_IMM, USER_SEND,
					USER_SEND_IMM,	 USER_RDMA_READ,      USER_ATOMIC_FA,
					USER_ATOMIC_CS};
	unsigned k = r->posted[q]++;
	struct op *o = &r->op[q][k];
	struct sim *s = r->s;
	uint64_t at = slot(q, k);

	*o = (struct op){.seed = sim_random(s), .bytes = random_bytes(s)};
	o->wr.opcode = kinds[sim_random(s) % 7];
	o->wr.fence = sim_random(s) % 8 == 0;
	o->wr.imm = (uint32_t)o->seed;
	o->wr.remote = at;
	o->wr.sges = 1;
	if (o->wr.opcode == USER_ATOMIC_FA || o->wr.opcode == USER_ATOMIC_CS) {
		o->bytes = 8;
		o->expected = r->counter[q];
		o->wr.remote = word(q);
		o->wr.compare = o->expected;
		o->wr.swap_add = o->wr.opcode == USER_ATOMIC_FA ? o->seed & 0xffff : o->seed;
		r->counter[q] =
			o->wr.opcode == USER_ATOMIC_FA ? o->expected + o->wr.swap_add : o->seed;
	} else if (o->wr.opcode == USER_RDMA_READ) {
		fill(s->node[1].memory + at, o->bytes, o->seed);
		memset(s->node[0].memory + at, 0, o->bytes);
	} else {
		fill(s->node[0].memory + at, o->bytes, o->seed);
		memset(s->node[1].memory + at, 0, o->bytes);
	}
	if (consumes(o->wr.opcode))
		o->recv_offset = sim_post_recv(s, 1, q, at, o->bytes);
	o->wr.sge[0] = (struct sim_sge){at, o->bytes, 0};
	if (o->bytes > 1 && sim_random(s) & 1 && o->bytes != 8) {
		uint32_t cut = sim_random(s) % o->bytes;

		o->wr.sge[1] = (struct sim_sge){at + cut, o->bytes - cut, 0};
		o->wr.sge[0].length = cut;
		o->wr.sges = 2;
	}
	o->wqe = sim_post(s, 0, q, &o->wr);
}

static unsigned qp_of(struct run *r, int node, uint32_t qpn)
{
	for (unsigned q = 0; q < QPS; q++)
		if (r->s->node[node].qp[q].qpn == qpn)
			return q;
	fail_msg("completion for a QP that there is not");
	return 0;
}

static void check_done(struct run *r, const struct cqe *c)
{
	unsigned q = qp_of(r, 0, c->my_qpn), k = r->done[q]++;
	struct op *o = &r->op[q][k];
	uint8_t *local = r->s->node[0].memory + slot(q, k),
		*remote = r->s->node[1].memory + slot(q, k);
	uint64_t got;

	if (c->opcode != o->wr.opcode || c->wqe_offset != o->wqe)
		sim_print_counters(r->s);
	if (c->opcode != o->wr.opcode || c->wqe_offset != o->wqe)
		fail_msg("seed %lu: qp %u op %u: completion %#x syndrome %#x at %u instead of %#x "
			 "at %u",
			 (unsigned long)r->seed, q, k, c->opcode, c->imm_or_error, c->wqe_offset,
			 o->wr.opcode, o->wqe);
	if (o->wr.opcode == USER_ATOMIC_FA || o->wr.opcode == USER_ATOMIC_CS) {
		memcpy(&got, local, 8);
		if (got != o->expected)
			fail_msg("seed %lu: qp %u op %u: atomic returned %lx, not %lx",
				 (unsigned long)r->seed, q, k, (unsigned long)got,
				 (unsigned long)o->expected);
	} else if (!same(o->wr.opcode == USER_RDMA_READ ? local : remote, o->bytes, o->seed)) {
		fail_msg("seed %lu: qp %u op %u (%#x, %u bytes): data differ",
			 (unsigned long)r->seed, q, k, o->wr.opcode, o->bytes);
	}
	o->done = true;
}

static void check_received(struct run *r, const struct cqe *c)
{
	unsigned q = qp_of(r, 1, c->my_qpn);
	struct op *o;

	do
		o = &r->op[q][r->received[q]++];
	while (!consumes(o->wr.opcode));
	if (c->opcode == USER_INVALID || c->wqe_offset != o->recv_offset ||
	    c->byte_count != o->bytes)
		fail_msg("seed %lu: qp %u: wrong receive completion %#x, %u bytes instead of %u",
			 (unsigned long)r->seed, q, c->opcode, c->byte_count, o->bytes);
	if (o->wr.opcode != USER_SEND && c->imm_or_error != o->wr.imm)
		fail_msg("seed %lu: wrong immediate", (unsigned long)r->seed);
	r->recvs[q]++;
}

static void poll_all(struct run *r)
{
	struct cqe c;

	while (sim_poll_cq(r->s, 1, &c))
		check_received(r, &c);
	while (sim_poll_cq(r->s, 0, &c))
		check_done(r, &c);
}

static bool finished(const struct run *r)
{
	for (unsigned q = 0; q < QPS; q++)
		if (r->done[q] < OPS)
			return false;
	return true;
}

static void check_end(struct run *r)
{
	for (unsigned q = 0; q < QPS; q++) {
		uint64_t value;
		unsigned wanted = 0;

		memcpy(&value, r->s->node[1].memory + word(q), 8);
		assert_true(value == r->counter[q]);
		for (unsigned k = 0; k < OPS; k++)
			wanted += consumes(r->op[q][k].wr.opcode);
		assert_int_equal(r->recvs[q], wanted);
	}
}

static void one_run(uint64_t seed, struct sim_faults faults)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct run *r = calloc(1, sizeof(*r));
	uint64_t limit;

	p.seed = seed;
	p.qps = QPS;
	p.mtu = 1 + seed % 5;
	p.psn = 0xffffff - seed % 100;
	p.payload_refs = seed & 1;
	p.singly = p.payload_refs && seed & 8;
	p.whole_trains = seed & 2;
	p.equal = seed & 4;
	p.memory_bytes = word(QPS);
	r->seed = seed;
	r->s = sim_create(&p);
	r->s->faults = faults;
	limit = r->s->now_ns + 60000 * MS;
	while (!finished(r)) {
		for (unsigned q = 0; q < QPS; q++)
			while (r->posted[q] < OPS && r->posted[q] - r->done[q] < WINDOW)
				post(r, q);
		sim_run(r->s, 50000);
		poll_all(r);
		if (r->s->now_ns > limit)
			fail_msg("seed %lu: stuck at %u %u %u", (unsigned long)seed, r->done[0],
				 r->done[1], r->done[2]);
	}
	sim_run(r->s, 50 * MS);
	poll_all(r);
	check_end(r);
	if (!sim_quiet(r->s))
		fail_msg("seed %lu: not everything was given back", (unsigned long)seed);
	sim_destroy(r->s);
	free(r);
}

static void seeds(uint64_t first, uint64_t count, struct sim_faults faults)
{
	const char *chosen = getenv("SOFTHCA_SEEDS");

	if (chosen && sscanf(chosen, "%lu,%lu", &first, &count) < 1)
		fail_msg("SOFTHCA_SEEDS=first,count");
	for (uint64_t i = first; i < first + count; i++)
		one_run(i, faults);
}

TEST(c9_146__perfect_wire)
{
	seeds(1, 5, (struct sim_faults){0});
}

TEST(c9_146__loss)
{
	seeds(100, 20, (struct sim_faults){.loss_ppm = 10000});
}

TEST(c9_146__duplication)
{
	seeds(200, 20, (struct sim_faults){.duplicate_ppm = 10000});
}

TEST(c9_146__reordering)
{
	seeds(300, 20, (struct sim_faults){.reorder_ppm = 10000});
}

TEST(c9_146__corruption)
{
	seeds(400, 10, (struct sim_faults){.corrupt_ppm = 10000});
}

TEST(c9_146__everything_at_once)
{
	seeds(500, 40,
	      (struct sim_faults){.loss_ppm = 10000,
				  .duplicate_ppm = 10000,
				  .reorder_ppm = 10000,
				  .corrupt_ppm = 1000});
}
