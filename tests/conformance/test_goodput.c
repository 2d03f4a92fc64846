/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goodput on a bad network: 64-KiB WRITEs (or READs) with 32 outstanding over a link of 40 Gbit/s
 * that loses packets in both directions, or reorders them. Shares of the goodput of the same link
 * without faults, in virtual time, each the mean of a few seeds.
 */
#include <stdio.h>
#include "rig.h"

enum {
	OUTSTANDING = 32,
	BYTES = 65536,
	WARM_UP = 100,
	MESSAGES = 1000,
	SEEDS = 3,
	LINK_MBPS = 40000
};

#define STANDARD LOSS_RECOVERY_STANDARD
#define KEEP	 LOSS_RECOVERY_KEEP

/* Who keeps what comes early: the settings loss_recovery of node 0, which posts, and node 1. */
struct ends {
	enum loss_recovery poster, other;
};

static const struct sim_network_config network = {
	.port_mbps = LINK_MBPS, .queue_bytes = 32768, .link_mbps = LINK_MBPS, .delay_ns = 500};

static struct sim *connect(struct ends ends, uint64_t seed)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.mtu = 5;
	p.timeout = 14;
	p.packets = 16383;
	p.seed = seed;
	p.network = &network;
	s = sim_create(&p);
	s->node[0].hca->engines[0].settings.loss_recovery = ends.poster;
	s->node[1].hca->engines[0].settings.loss_recovery = ends.other;
	return s;
}

static void exchange(struct sim *s, uint8_t opcode, unsigned messages)
{
	const struct sim_wr wr = {
		.opcode = opcode, .remote = 1 << 20, .sge = {{0, BYTES, 0}}, .sges = 1};
	unsigned posted = 0, done = 0;
	struct cqe c;

	while (done < messages) {
		for (; posted < messages && posted - done < OUTSTANDING; posted++)
			sim_post(s, 0, 0, &wr);
		sim_step(s);
		for (; sim_poll_cq(s, 0, &c); done++)
			assert_int_equal(c.opcode, opcode);
	}
}

/* How long MESSAGES take, in ns, once the round trip has been measured. */
static uint64_t run(struct ends ends, uint8_t opcode, struct sim_faults faults, uint64_t seed)
{
	struct sim *s = connect(ends, seed);
	uint64_t ns;

	exchange(s, opcode, WARM_UP);
	s->faults = faults;
	ns = s->now_ns;
	exchange(s, opcode, MESSAGES);
	ns = s->now_ns - ns;
	s->faults = (struct sim_faults){0};
	rig_end(s);
	return ns;
}

/* Per cent of the goodput without faults. */
static unsigned share(struct ends ends, uint8_t opcode, struct sim_faults faults)
{
	uint64_t ideal = 0, ns = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		ideal += run(ends, opcode, (struct sim_faults){0}, seed);
		ns += run(ends, opcode, faults, seed);
	}
	return (unsigned)(100 * ideal / ns);
}

/* Floors in per cent: with a responder that keeps what comes early, of a sender that goes back N,
 * and of one that has learnt that it need not. */
static const struct {
	const char *what;
	struct sim_faults faults;
	unsigned standard, learnt;
} rows[] = {
	{"loss 10^-3", {.loss_ppm = 1000}, 82, 87},
	{"loss 10^-2", {.loss_ppm = 10000}, 72, 80},
	{"loss 3*10^-2", {.loss_ppm = 30000}, 40, 42},
	{"5 % up to 32 late", {.reorder_ppm = 50000, .delay_ns = 32 * 840}, 85, 85},
};

static unsigned writes(enum loss_recovery sender, enum loss_recovery responder, unsigned row)
{
	return share((struct ends){sender, responder}, USER_RDMA_WRITE, rows[row].faults);
}

TEST(goodput__of_writes)
{
	printf("%-18s %20s %20s %20s\n", "WRITE", "standard to standard", "standard to keep",
	       "keep to keep");
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		unsigned neither = writes(STANDARD, STANDARD, i), one = writes(STANDARD, KEEP, i),
			 both = writes(KEEP, KEEP, i);

		printf("%-18s %18u %% %18u %% %18u %%\n", rows[i].what, neither, one, both);
		assert_true(one >= rows[i].standard && one >= neither);
		assert_true(both >= rows[i].learnt);
	}
}

/* Toward a responder that drops nothing is worse than it was. */
TEST(goodput__of_writes_to_a_standard_responder)
{
	for (unsigned i = 0; i < RTE_DIM(rows); i++)
		assert_true(writes(KEEP, STANDARD, i) + 3 >= writes(STANDARD, STANDARD, i));
}
