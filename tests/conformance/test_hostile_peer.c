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
	return SIM_WR(USER_RDMA_READ, 0, bytes, .remote = 1 << 20);
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
	struct sim_wr wr = SIM_WR(opcode, 0, VICTIM_BYTES, .remote = 1 << 20);
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
	struct sim_wr hello = SIM_WR(USER_RDMA_WRITE, 0, 64, .remote = 2 << 20);
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

/* ---- what comes from the wire ---- */

enum {
	CROWD = 1000,	  /* queue pairs of the attacker; the victim has one more */
	FRAMES = 16,	  /* of his that arrive in each step; a poll takes 32 */
	ASKED = 8 * 4096, /* bytes of a READ of his, or of what he never acknowledges */
	RUN_OPS = 500,	  /* of the victim, and ... */
	RUN_DEPTH = 8,	  /* ... how many at a time: more packets than leave in a step */
	MADS = CROWD - 1, /* the queue pair that stands for QP 1 */
	MAD_BYTES = 256,
	MAD_ROOM = 40 + MAD_BYTES, /* with a GRH */
	MADS_POSTED = 256,	   /* receives for them ... */
	MADS_TAKEN = 4		   /* ... and how many its program can handle in a step */
};

struct flood {
	struct sim *s;
	unsigned next; /* queue pair that the next frame is for */
	uint32_t psn[CROWD];
	void (*attack)(struct flood *f, unsigned qp);
	unsigned done; /* operations of the victim */
	unsigned mads; /* that have been received */
};

static void one_byte(struct flood *f, unsigned qp)
{
	rig_request(f->s, qp, WIRE_RC_WRITE_ONLY, f->psn[qp]++, 4096, 1, 1);
}

static void read_flood(struct flood *f, unsigned qp)
{
	rig_request(f->s, qp, WIRE_RC_READ_REQUEST, f->psn[qp], 4096, ASKED, 0);
	f->psn[qp] += ASKED / 4096;
}

/* The first request over and over: half of them WRITEs, half READs, which take an answer. */
static void duplicates(struct flood *f, unsigned qp)
{
	uint32_t first = f->s->params.psn;

	if (f->psn[qp] < first + 8)
		one_byte(f, qp);
	else if (f->next & 1)
		rig_request(f->s, qp, WIRE_RC_WRITE_ONLY, first, 4096, 1, 1);
	else
		rig_request(f->s, qp, WIRE_RC_READ_REQUEST, first, 4096, ASKED, 0);
}

/* For which there is no receive: each draws an RNR NAK. */
static void unreceived(struct flood *f, unsigned qp)
{
	rig_request(f->s, qp, WIRE_RC_SEND_ONLY, f->psn[qp], 0, 0, 64);
}

/* Ahead of what is expected: each may draw a NAK. */
static void out_of_sequence(struct flood *f, unsigned qp)
{
	rig_request(f->s, qp, WIRE_RC_WRITE_ONLY, f->psn[qp] + 7, 4096, 1, 1);
}

/* Of packets that are outstanding, each time another one. */
static void nak_storm(struct flood *f, unsigned qp)
{
	rig_ack(f->s, qp, f->s->params.psn + f->psn[qp]++ % 8, aeth_nak(AETH_NAK_SEQUENCE), 0);
}

static void rnr_storm(struct flood *f, unsigned qp)
{
	rig_ack(f->s, qp, f->s->params.psn, aeth_rnr(1), 0);
}

static void ack_storm(struct flood *f, unsigned qp)
{
	rig_ack(f->s, qp, f->s->params.psn - 1, aeth_ack(AETH_CREDIT_INVALID), 0);
}

/* Datagrams for the queue pair that stands for QP 1, faster than its program takes them. */
static void mads(struct flood *f, unsigned qp)
{
	rig_request(f->s, MADS, WIRE_UD_SEND_ONLY, f->psn[qp]++, 0, 0, MAD_BYTES);
}

/* A datagram service on the last of the attacker's queue pairs, with receives for a burst. */
static void serve_mads(struct sim *s)
{
	s->params.service = SERVICE_UD;
	sim_renew(s, 0, MADS);
	for (enum qp_state to = QP_INIT; to <= QP_RTS; to++)
		sim_modify(s, 0, MADS, to, 0);
	s->params.service = SERVICE_RC;
	for (unsigned i = 0; i < MADS_POSTED; i++)
		sim_post_recv(s, 0, MADS, 3 << 20, MAD_ROOM);
}

/* The peer: acknowledges what the victim asks it to, and takes everything else in silence. */
static bool peer(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	const uint8_t *bth = frame + 42; /* Ethernet, IPv4, UDP */
	uint32_t to = bth[5] << 16 | bth[6] << 8 | bth[7],
		 psn = bth[9] << 16 | bth[10] << 8 | bth[11];

	if (from != 0)
		return false;
	if (to == s->node[1].qp[CROWD].qpn && bth[0] <= WIRE_RC_WRITE_ONLY_IMM && bth[8] & 0x80)
		rig_ack(s, CROWD, psn, aeth_ack(AETH_CREDIT_INVALID), 0);
	return true;
}

/* What has completed; who receives MADs is ready for a few more. */
static void take_completions(struct flood *f)
{
	struct cqe c;

	while (sim_poll_cq(f->s, 0, &c)) {
		f->done += c.is_send && c.my_qpn == f->s->node[0].qp[CROWD].qpn;
		f->mads += !c.is_send;
	}
	for (unsigned i = 0; i < MADS_TAKEN && f->mads; i++, f->mads--)
		sim_post_recv(f->s, 0, MADS, 3 << 20, MAD_ROOM);
}

/* One step of time, in which the attacker sends so many frames. */
static void step_beside(struct flood *f)
{
	for (unsigned i = 0; f->attack && i < FRAMES; i++, f->next++)
		f->attack(f, f->next % CROWD);
	sim_step(f->s);
	take_completions(f);
}

/* Steps that the victim's operations take. */
static unsigned victims_steps(struct flood *f)
{
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, VICTIM_BYTES);
	unsigned steps = 0;

	f->done = 0;
	for (unsigned posted = 0; f->done < RUN_OPS;) {
		while (posted < f->done + RUN_DEPTH)
			posted += sim_post(f->s, 0, CROWD, &wr) != UINT32_MAX;
		step_beside(f);
		assert_true(++steps < 10000);
	}
	return steps;
}

struct worst {
	const char *name;
	void (*attack)(struct flood *f, unsigned qp); /* NULL: he says nothing */
	bool outstanding;			      /* his queue pairs have packets outstanding */
	uint8_t timeout;			      /* theirs */
	enum counter seen_by; /* it grows by the attack while the victim is measured */
};

static unsigned steps_beside(const struct worst *w)
{
	struct sim_params p = crowd(CROWD + 1);
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, ASKED);
	struct flood f = {.attack = w->attack};
	uint64_t seen;
	unsigned steps;

	p.packets = 8191;
	p.timeout = w->timeout;
	f.s = rig_create(&p);
	f.s->tap = peer;
	for (unsigned i = 0; i < CROWD; i++)
		f.psn[i] = p.psn;
	if (w->outstanding)
		post_to_all(f.s, CROWD, 1, &wr);
	if (f.attack == mads)
		serve_mads(f.s);
	victims_steps(&f); /* its peer is proven, and the attack has begun */
	seen = sim_counter(f.s, 0, w->seen_by);
	steps = victims_steps(&f);
	assert_true(sim_counter(f.s, 0, w->seen_by) > seen);
	sim_destroy(f.s);
	return steps;
}

/* A peer with a thousand queue pairs does its worst; the victim keeps nine tenths of its rate. */
TEST(wire__a_peer_at_its_worst)
{
	static const struct worst rows[] = {
		{"one-byte messages", one_byte, false, 20, COUNTER_executed},
		{"READ flood", read_flood, false, 20, COUNTER_read_response_packets},
		{"duplicate flood", duplicates, false, 20, COUNTER_duplicate_requests},
		{"out of sequence", out_of_sequence, false, 20, COUNTER_drop_out_of_sequence},
		{"NAK storm", nak_storm, true, 20, COUNTER_nak_sequence_received},
		{"RNR NAK for ever", rnr_storm, true, 20, COUNTER_rnr_timeouts},
		{"SEND without a receive", unreceived, false, 20, COUNTER_nak_rnr_sent},
		{"old ACKs", ack_storm, true, 20, COUNTER_ack_duplicate},
		{"MAD flood", mads, false, 20, COUNTER_drop_no_receive},
		{"silence", NULL, true, 5, COUNTER_loss_timeouts},
	};
	static const struct worst nobody = {"", NULL, false, 20, COUNTER_acks};
	unsigned alone = steps_beside(&nobody);

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		unsigned steps = steps_beside(&rows[i]);

		print_message("%s: %u steps, %u alone\n", rows[i].name, steps, alone);
		if (steps > alone + alone / 9)
			fail_msg("%s", rows[i].name);
	}
}
