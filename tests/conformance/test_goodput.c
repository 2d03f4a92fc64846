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

/* Who keeps what comes early: the settings loss_recovery of node 0, which posts, and node 1. */
struct ends {
	enum loss_recovery poster, other;
};

static struct sim *connect(struct ends ends, uint64_t seed)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.mtu = 5;
	p.timeout = 14;
	p.packets = 16383;
	p.seed = seed;
	s = sim_create(&p);
	s->node[0].hca->engines[0].settings.loss_recovery = ends.poster;
	s->node[1].hca->engines[0].settings.loss_recovery = ends.other;
	s->net = (struct sim_switch){.mbps = LINK_MBPS,
				     .port_mbps = LINK_MBPS,
				     .kmin = UINT32_MAX,
				     .kmax = UINT32_MAX,
				     .buffer_bytes = UINT32_MAX};
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

#define STANDARD LOSS_RECOVERY_STANDARD
#define KEEP	 LOSS_RECOVERY_KEEP

/* Floors of the WRITEs of a sender that goes back N, in per cent, with a responder that keeps what
 * comes early. */
static const struct {
	const char *what;
	struct sim_faults faults;
	unsigned floor;
} rows[] = {
	{"loss 10^-3", {.loss_ppm = 1000}, 80},
	{"loss 10^-2", {.loss_ppm = 10000}, 70},
	{"loss 3*10^-2", {.loss_ppm = 30000}, 40},
	{"5 % up to 32 late", {.reorder_ppm = 50000, .delay_ns = 32 * 840}, 85},
};

TEST(goodput__of_a_standard_sender)
{
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		unsigned drops =
			share((struct ends){STANDARD, STANDARD}, USER_RDMA_WRITE, rows[i].faults);
		unsigned keeps =
			share((struct ends){STANDARD, KEEP}, USER_RDMA_WRITE, rows[i].faults);

		printf("%-18s WRITE: responder drops %3u %%, keeps %3u %%\n", rows[i].what, drops,
		       keeps);
		assert_true(keeps >= rows[i].floor && keeps >= drops);
	}
}
