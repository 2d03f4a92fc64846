/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reaction point and pacing (doc/transport.md#congestion): what a notification does to a queue
 * pair, and what becomes of several that share a link of 40 Gbit/s.
 */
#include "rig.h"

enum {
	QPS = 3,
	MESSAGE = 65536,
	DEPTH = 8, /* messages outstanding */
	LINK = 40000,
	HEADERS = 58, /* Ethernet, IPv4, UDP, BTH, ICRC */
	BTH_AT = 42,
};

struct load {
	struct sim *s;
	uint8_t opcode; /* WRITE: node 0 sends requests; READ: responses */
	unsigned posted[QPS], done[QPS];
	bool wants[QPS];
	uint64_t bytes[QPS]; /* of payload that left node 0 */
};

static bool see(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct load *l = arg;
	const uint8_t *bth = frame + BTH_AT;

	if (from == 0 && bytes > 200)
		l->bytes[bth[7] - 1] += bytes - HEADERS;
	return false;
}

static int poster(const struct load *l)
{
	return l->opcode == USER_RDMA_READ;
}

static void keep_busy(struct load *l)
{
	struct cqe c;

	while (sim_poll_cq(l->s, poster(l), &c)) {
		assert_int_not_equal(c.opcode, USER_INVALID);
		l->done[(c.my_qpn & 0xff) - 1]++;
	}
	for (unsigned i = 0; i < QPS; i++) {
		struct sim_wr wr =
			SIM_WR(l->opcode, i * MESSAGE, MESSAGE, .remote = (i + 1) * MESSAGE);

		while (l->wants[i] && l->posted[i] - l->done[i] < DEPTH) {
			sim_post(l->s, poster(l), i, &wr);
			l->posted[i]++;
		}
	}
}

static void run(struct load *l, uint64_t ns)
{
	for (uint64_t end = l->s->now_ns + ns; l->s->now_ns < end;) {
		keep_busy(l);
		sim_step(l->s);
	}
}

static const struct sim_network_config network = {
	.port_mbps = 2 * LINK,
	.queue_bytes = 32768,
	.link_mbps = LINK,
	.delay_ns = 500,
	.kind = {.kmin = 5000, .kmax = 200000, .pmax_ppm = 10000},
};

static struct load *begin(uint8_t opcode, const struct sim_network_config *net)
{
	static struct load l;
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct hca_config c;

	hca_config_defaults(&c);
	c.settings.cc = CC_DCQCN;
	p.settings = &c.settings;
	p.network = net;
	p.qps = QPS;
	p.mtu = 5;
	p.timeout = 14;
	p.memory_bytes = 1 << 20;
	l = (struct load){.s = sim_create(&p), .opcode = opcode};
	l.s->tap = see;
	l.s->tap_arg = &l;
	return &l;
}

/* Mean rate of each QP over that time, Mbit/s of payload. */
static void measure(struct load *l, uint64_t ns, unsigned mbps[QPS])
{
	uint64_t before[QPS];

	memcpy(before, l->bytes, sizeof(before));
	run(l, ns);
	for (unsigned i = 0; i < QPS; i++)
		mbps[i] = (unsigned)((l->bytes[i] - before[i]) * 8000 / ns);
	printf("%4u ms: %u %u %u Mbit/s\n", (unsigned)(l->s->now_ns / MS), mbps[0], mbps[1],
	       mbps[2]);
}

/* The first n QPs share the link: none has less or more than that part of an equal share, and all
 * together fill nine tenths. */
static void share(struct load *l, unsigned n, unsigned percent_off)
{
	unsigned mbps[QPS], total = 0;

	measure(l, 10 * MS, mbps);
	for (unsigned i = 0; i < n; i++) {
		total += mbps[i];
		assert_true(mbps[i] >= LINK / n * (100 - percent_off) / 100);
		assert_true(mbps[i] <= LINK / n * (100 + percent_off) / 100);
	}
	assert_true(total > LINK * 9 / 10);
}

/* Two begin together; ten milliseconds later they share evenly. A third joins, and leaves. */
static void two_and_a_third(uint8_t opcode)
{
	struct load *l = begin(opcode, &network);

	l->wants[0] = l->wants[1] = true;
	run(l, 10 * MS);
	share(l, 2, 25);
	l->wants[2] = true;
	run(l, 10 * MS);
	share(l, 3, 50);
	l->wants[2] = false;
	run(l, 10 * MS);
	share(l, 2, 25);
	assert_int_equal(sim_network_dropped(l->s->net), 0);
	assert_int_equal(sim_counter(l->s, 0, COUNTER_rp_cnp_ignored), 0);
	l->wants[0] = l->wants[1] = false;
	run(l, 20 * MS);
	assert_true(sim_quiet(l->s));
	sim_destroy(l->s);
}

TEST(dcqcn__requests_share_a_link)
{
	two_and_a_third(USER_RDMA_WRITE);
}

TEST(dcqcn__read_responses_share_a_link)
{
	two_and_a_third(USER_RDMA_READ);
}

/* Without the network's marks it costs nothing: nobody is ever limited. */
TEST(dcqcn__uncongested_flows_are_unlimited)
{
	struct sim_network_config net = network;
	struct load *l;

	net.port_mbps = LINK / 2;
	l = begin(USER_RDMA_WRITE, &net);
	l->wants[0] = true;
	run(l, 10 * MS);
	assert_int_equal(sim_context(l->s, 0, 0)->rtc.flow.cc.rate, 0);
	assert_int_equal(sim_counter(l->s, 0, COUNTER_rp_cnp_handled), 0);
	assert_true(l->bytes[0] * 8 / (10 * MS / 1000) > LINK / 2 * 95 / 100);
	l->wants[0] = false;
	run(l, MS);
	sim_destroy(l->s);
}
