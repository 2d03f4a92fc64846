/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes, not messages, are what queue pairs of equal demand share: four of them, one with messages
 * of 1 GiB, the others with short ones, all with more to send than the HCA lets out.
 *
 * What is looked at is every window of TURNS turns of each queue pair, wherever it begins. Of such
 * a window a queue pair may have lost or won a part of one turn at each end, so a deviation of 1 /
 * TURNS is what taking turns means; more is unfair. 16 turns of a quantum of 16 KiB are 256
 * packets; of the default, 128 KiB, 2048.
 */
#include "rig.h"

#define GIB (1ull << 30)

enum {
	QPS = 4,
	MTU = 4096,
	TURNS = 16,
	WINDOW_MAX = 4096,
	PACKETS = 10000,
	WARM_UP = 2000,	  /* packets until all peers have proven that they are there */
	WIRE_ROOM = 48,	  /* frames: less than the HCA can make in a round trip */
	FRAME_BYTES = 58, /* Ethernet, IPv4, UDP, BTH, ICRC */
	BTH_AT = 42,
};

struct flow {
	uint8_t opcode;
	uint32_t bytes;	       /* of a message */
	unsigned posted, done; /* messages */
	unsigned depth;	       /* messages outstanding */
};

struct fairness {
	struct sim *s;
	struct flow flow[QPS + 1]; /* the last one does not count */
	uint64_t from, to;	   /* offsets of the long regions of node 0, node 1 */
	uint32_t from_key, to_key;
	int side;	     /* whose packets count */
	uint8_t first, last; /* their opcodes */
	unsigned window;     /* packets */
	unsigned seen;
	struct {
		uint8_t qp;
		uint32_t bytes;
	} packet[WINDOW_MAX]; /* the last ones */
	uint64_t sum[QPS];
	unsigned worst; /* deviation from the mean, per mille */
};

/* Of the packets in the window: how far from the mean is the worst of those that take part? */
static void look_at_window(struct fairness *f)
{
	uint64_t total = 0, mean;
	unsigned n = 0;

	for (unsigned i = 0; i < QPS; i++) {
		total += f->sum[i];
		n += f->sum[i] != 0;
	}
	assert_true(n > 1);
	mean = total / n;
	for (unsigned i = 0; i < QPS; i++) {
		uint64_t d = f->sum[i] > mean ? f->sum[i] - mean : mean - f->sum[i];

		if (f->sum[i])
			f->worst = RTE_MAX(f->worst, (unsigned)(d * 1000 / mean));
	}
}

static bool see(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct fairness *f = arg;
	const uint8_t *bth = frame + BTH_AT;
	unsigned at = f->seen % f->window;

	if (from != f->side || bth[0] < f->first || bth[0] > f->last || bth[7] > QPS)
		return false;
	if (f->seen >= f->window)
		f->sum[f->packet[at].qp] -= f->packet[at].bytes;
	f->packet[at].qp = bth[7] - 1;
	f->packet[at].bytes = bytes - FRAME_BYTES;
	f->sum[f->packet[at].qp] += f->packet[at].bytes;
	if (++f->seen >= WARM_UP + f->window)
		look_at_window(f);
	return false;
}

/* All entries of a request name the same memory; with 1 GiB it is the long region. */
static void post(struct fairness *f, unsigned qp)
{
	struct flow *w = &f->flow[qp];
	bool is_long = w->bytes == GIB;
	struct sim_wr wr = {
		.opcode = w->opcode,
		.remote = is_long ? f->to : (qp + 1) << 16,
		.rkey = is_long ? f->to_key : 0,
		.sge = {{is_long ? f->from : qp << 16, w->bytes, is_long ? f->from_key : 0}},
		.sges = 1};

	if (w->opcode == USER_SEND)
		sim_post_recv(f->s, 1, qp, (qp + 1) << 16, w->bytes);
	sim_post(f->s, 0, qp, &wr);
	w->posted++;
}

/* Few enough in one step that the doorbells never overflow. */
static void post_some(struct fairness *f, unsigned qp)
{
	const struct flow *w = &f->flow[qp];

	for (unsigned n = 0; n < 32 && w->posted - w->done < w->depth; n++)
		post(f, qp);
}

static void run(struct fairness *f)
{
	uint64_t end = f->s->now_ns + 200 * MS;
	struct cqe c;

	while (f->seen < WARM_UP + f->window + PACKETS) {
		for (unsigned i = 0; i < QPS + 1; i++)
			post_some(f, i);
		sim_step(f->s);
		while (sim_poll_cq(f->s, 0, &c)) {
			assert_int_not_equal(c.opcode, USER_INVALID);
			f->flow[(c.my_qpn & 0xff) - 1].done++;
		}
		while (sim_poll_cq(f->s, 1, &c))
			;
		assert_true(f->s->now_ns < end);
	}
}

static void begin(struct fairness *f, struct engine_settings *settings)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.qps = QPS + 1;
	p.mtu = 5;
	p.descriptor_share = 4000; /* short messages can have as much outstanding as long ones */
	p.settings = settings;
	f->s = sim_create(&p);
	f->s->wire_room = WIRE_ROOM;
	f->s->tap = see;
	f->s->tap_arg = f;
	f->from = sim_map(f->s, 0, GIB, &f->from_key);
	f->to = sim_map(f->s, 1, GIB, &f->to_key);
	f->window = TURNS * QPS * settings->quantum_bytes / MTU;
	assert_true(f->window <= WINDOW_MAX);
}

static void finish(struct fairness *f)
{
	if (f->worst > 100)
		fail_msg("a window of %u packets was %u.%u %% from the mean", f->window,
			 f->worst / 10, f->worst % 10);
	for (unsigned i = 1; i < QPS; i++)
		assert_true(f->flow[i].done > 10);
	assert_int_equal(sim_counter(f->s, 0, COUNTER_retransmitted_packets), 0);
	sim_destroy(f->s);
}

static struct engine_settings settings_of(uint32_t quantum_bytes)
{
	struct hca_config c;

	hca_config_defaults(&c);
	c.settings.quantum_bytes = quantum_bytes;
	return c.settings;
}

static const uint32_t quanta[] = {16 << 10, 40 << 10, 128 << 10};

/* With each quantum; packets of node `side` with opcodes first .. last count. */
static void share(const struct flow flow[QPS + 1], int side, uint8_t first, uint8_t last)
{
	for (unsigned i = 0; i < RTE_DIM(quanta); i++) {
		struct engine_settings settings = settings_of(quanta[i]);
		struct fairness f = {.side = side, .first = first, .last = last};

		memcpy(f.flow, flow, sizeof(f.flow));
		begin(&f, &settings);
		run(&f);
		print_message("quantum %u: at most %u.%u %% from the mean\n", quanta[i],
			      f.worst / 10, f.worst % 10);
		finish(&f);
	}
}

TEST(fairness__writes)
{
	static const struct flow flow[QPS + 1] = {
		{.opcode = USER_RDMA_WRITE, .bytes = GIB, .depth = 1},
		{.opcode = USER_RDMA_WRITE, .bytes = 65536, .depth = 32},
		{.opcode = USER_RDMA_WRITE, .bytes = 4096, .depth = 400},
		{.opcode = USER_RDMA_WRITE, .bytes = 65536, .depth = 32},
	};

	share(flow, 0, WIRE_RC_SEND_FIRST, WIRE_RC_WRITE_ONLY_IMM);
}

/* A fifth one, which has a packet to send at times, cuts turns short. */
TEST(fairness__beside_a_light_one)
{
	static const struct flow flow[QPS + 1] = {
		{.opcode = USER_RDMA_WRITE, .bytes = GIB, .depth = 1},
		{.opcode = USER_RDMA_WRITE, .bytes = 65536, .depth = 32},
		{.opcode = USER_RDMA_WRITE, .bytes = 4096, .depth = 400},
		{.opcode = USER_RDMA_WRITE, .bytes = 65536, .depth = 32},
		{.opcode = USER_RDMA_WRITE, .bytes = 8192, .depth = 1},
	};

	share(flow, 0, WIRE_RC_SEND_FIRST, WIRE_RC_WRITE_ONLY_IMM);
}

TEST(fairness__sends_beside_a_long_write)
{
	static const struct flow flow[QPS + 1] = {
		{.opcode = USER_RDMA_WRITE, .bytes = GIB, .depth = 1},
		{.opcode = USER_SEND, .bytes = 65536, .depth = 32},
		{.opcode = USER_SEND, .bytes = 4096, .depth = 400},
		{.opcode = USER_RDMA_WRITE, .bytes = 4096, .depth = 400},
	};

	share(flow, 0, WIRE_RC_SEND_FIRST, WIRE_RC_WRITE_ONLY_IMM);
}

/* The READs of one queue pair take nothing from the others; and theirs come. */
TEST(fairness__reads_of_one)
{
	static const struct flow flow[QPS + 1] = {
		{.opcode = USER_RDMA_WRITE, .bytes = GIB, .depth = 1},
		{.opcode = USER_RDMA_WRITE, .bytes = 65536, .depth = 32},
		{.opcode = USER_SEND, .bytes = 4096, .depth = 400},
		{.opcode = USER_RDMA_READ, .bytes = 65536, .depth = 16},
	};

	share(flow, 0, WIRE_RC_SEND_FIRST, WIRE_RC_WRITE_ONLY_IMM);
}

/* The responder's side: the bytes of READ responses. */
TEST(fairness__read_responses)
{
	static const struct flow flow[QPS + 1] = {
		{.opcode = USER_RDMA_READ, .bytes = GIB, .depth = 1},
		{.opcode = USER_RDMA_READ, .bytes = 65536, .depth = 16},
		{.opcode = USER_RDMA_READ, .bytes = 32768, .depth = 16},
		{.opcode = USER_RDMA_READ, .bytes = 65536, .depth = 16},
	};

	share(flow, 1, WIRE_RC_READ_RESP_FIRST, WIRE_RC_READ_RESP_ONLY);
}
