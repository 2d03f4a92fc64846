/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer with hundreds of queue pairs takes all it can get; beside it, one queue pair of another
 * client performs one operation after another. Its service is measured in rounds and in virtual
 * time: nothing depends on the speed of a machine.
 */
#include "requester/requester.h"
#include "rig.h"

enum {
	BUFFERS = 2047, /* packet buffers, in all */
	WIRE_ROOM = 64, /* frames on their way at most */
};

/* `qps` queue pairs, the last one the victim's. */
static struct sim_params crowd(unsigned qps)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.qps = qps;
	p.own = qps - 1;
	p.mtu = 5;
	p.packets = BUFFERS;
	p.no_credits = true;
	return p;
}

/* One READ of several packets; requests of a node lie side by side. */
static struct sim_wr read_of(uint32_t bytes)
{
	return (struct sim_wr){
		.opcode = USER_RDMA_READ, .remote = 1 << 20, .sge = {{0, bytes, 0}}, .sges = 1};
}

/* All requests of one side, as fast as its doorbells and completions allow. */
static void run_all(struct sim *s, unsigned qps, unsigned each, const struct sim_wr *wr)
{
	unsigned posted = 0, done = 0, all = qps * each;
	uint64_t end = s->now_ns + 100 * MS;
	struct cqe c;

	while (done < all) {
		for (unsigned n = 0; n < 32 && posted < all && posted - done < 900; n++, posted++)
			sim_post(s, 0, posted % qps, wr);
		sim_step(s);
		while (sim_poll_cq(s, 0, &c)) {
			assert_int_equal(c.opcode, wr->opcode);
			done++;
		}
		assert_true(s->now_ns < end);
	}
}

/* READs of 200 queue pairs wait at their peer, of each as many as may be outstanding, more than
 * there are packet buffers: none is turned away, so none has to be sent again. */
TEST(crowd__reads_of_many)
{
	struct sim_params p = crowd(201);
	struct sim_wr wr = read_of(16384);
	struct sim *s = sim_create(&p);

	s->wire_room = WIRE_ROOM;
	run_all(s, 200, 16, &wr);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_loss_timeouts), 0);
	rig_end(s);
}

/* ---- retransmit buffers ---- */

enum {
	VICTIM_OPS = 20,
	VICTIM_BYTES = 65536, /* of an operation: 16 packets */
};

/* One operation of the victim after the other; returns the ns that they took. */
static uint64_t victims_time(struct sim *s, unsigned victim, uint8_t opcode)
{
	uint64_t begin = s->now_ns;
	struct sim_wr wr = {
		.opcode = opcode, .remote = 1 << 20, .sge = {{0, VICTIM_BYTES, 0}}, .sges = 1};
	struct cqe c;

	for (unsigned i = 0; i < VICTIM_OPS; i++) {
		sim_post(s, 0, victim, &wr);
		do
			assert_true(sim_wait(s, 0, &c, 20 * MS));
		while (c.my_qpn != s->node[0].qp[victim].qpn);
		assert_int_equal(c.opcode, opcode);
	}
	return s->now_ns - begin;
}

/* What the attacker of a row does before the victim begins. */
struct hoard {
	const char *name;
	unsigned qps;	  /* the attacker's */
	uint8_t timeout;  /* theirs */
	bool proven;	  /* their peers have acknowledged something, and then fall silent */
	uint8_t opcode;	  /* of what is never answered */
	uint32_t bytes;	  /* of each, */
	unsigned each;	  /* and how many on each queue pair */
	unsigned entries; /* scatter-gather entries of each */
};

/* Everything that leaves for the attacker's peers from now on is lost. */
static void fall_silent(struct sim *s, unsigned qps)
{
	for (unsigned i = 0; i < qps; i++)
		sim_context(s, 0, i)->dest_qpn ^= 0x800000;
}

static void post_to_all(struct sim *s, unsigned qps, unsigned each, const struct sim_wr *wr)
{
	struct cqe c;

	for (unsigned i = 0; i < qps * each; i++) {
		sim_post(s, 0, i % qps, wr);
		if (i % 32 == 31)
			sim_run(s, 4000);
		while (sim_poll_cq(s, 0, &c))
			;
	}
	sim_run(s, 2 * MS);
	while (sim_poll_cq(s, 0, &c))
		;
}

static uint64_t time_beside(const struct hoard *h, bool attacked)
{
	struct sim_params p = crowd(h->qps + 1);
	struct sim_wr wr = {.opcode = h->opcode, .remote = 2 << 20, .sges = h->entries};
	struct sim_wr hello = {
		.opcode = USER_RDMA_WRITE, .remote = 2 << 20, .sge = {{0, 64, 0}}, .sges = 1};
	struct sim *s;
	uint64_t ns;

	for (unsigned i = 0; i < h->entries; i++)
		wr.sge[i] = (struct sim_sge){3 << 20, h->bytes / h->entries, 0};
	p.timeout = h->timeout;
	p.packets = 8191;
	s = sim_create(&p);
	if (h->proven)
		post_to_all(s, h->qps, 1, &hello);
	fall_silent(s, h->qps);
	if (attacked)
		post_to_all(s, h->qps, h->each, &wr);
	ns = victims_time(s, h->qps, h->opcode);
	sim_destroy(s);
	return ns;
}

/* A silent peer holds buffers for as long as it likes; the victim is as quick as without it. */
TEST(hoard__of_the_silent)
{
	static const struct hoard rows[] = {
		{"one packet each, for ever", 1100, 0, false, USER_RDMA_WRITE, 64, 1, 1},
		{"the same, timeout 31", 1100, 31, false, USER_RDMA_WRITE, 64, 1, 1},
		{"once acknowledged", 10, 0, true, USER_RDMA_WRITE, 4 << 20, 1, 1},
		{"once acknowledged, many", 100, 0, true, USER_RDMA_WRITE, 1 << 20, 1, 1},
		{"READs", 300, 0, true, USER_RDMA_READ, 4096, 16, 1},
		{"scatter entries", 300, 0, true, USER_RDMA_READ, 4096, 16, 4},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint64_t alone = time_beside(&rows[i], false);
		uint64_t beside = time_beside(&rows[i], true);

		print_message("%s: %u us, %u us alone\n", rows[i].name, (unsigned)(beside / US),
			      (unsigned)(alone / US));
		if (beside > alone + alone / 9)
			fail_msg("%s", rows[i].name);
	}
}

/* A timeout of 0 or of hours: when buffers are short, those whose user holds more than is left give
 * way after two seconds of silence; who holds little, and whose peer is as silent, does not. */
TEST(hoard__gives_way)
{
	static const uint8_t timeouts[] = {0, 31};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(timeouts); i++) {
		struct sim_params p = crowd(11);
		struct sim_wr hoard = {.opcode = USER_RDMA_WRITE, .sge = {{0, 4 << 20, 0}}};
		struct sim_wr few = {.opcode = USER_RDMA_WRITE, .sge = {{0, 100 * 4096, 0}}};
		struct sim_wr hello = {.opcode = USER_RDMA_WRITE, .sge = {{0, 64, 0}}};
		struct sim *s;
		struct cqe c;

		hoard.sges = few.sges = hello.sges = 1;
		p.memory_bytes = 8 << 20;
		p.timeout = timeouts[i];
		p.packets = 8191;
		s = sim_create(&p);
		post_to_all(s, 11, 1, &hello);
		fall_silent(s, 11);
		post_to_all(s, 10, 1, &hoard);
		sim_post(s, 0, 10, &few);
		sim_run(s, MS);
		s->step_ns = MS;
		sim_run(s, 1900 * MS);
		assert_int_equal(sim_counter(s, 0, COUNTER_gave_way), 0);
		sim_run(s, 3000 * MS);
		assert_int_not_equal(sim_counter(s, 0, COUNTER_gave_way), 0);
		assert_int_equal(qp_state(sim_context(s, 0, 10)), QP_RTS);
		assert_true(sim_wait(s, 0, &c, MS));
		assert_int_equal(c.opcode, USER_INVALID);
		assert_int_equal(c.imm_or_error, SYNDROME_RETRY_EXC);
		sim_destroy(s);
	}
}
