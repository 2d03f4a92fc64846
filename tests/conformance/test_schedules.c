/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random schedules: a few operations of mixed kinds (unsignaled, fenced, inline, scattered, empty)
 * on one to three QPs, both directions at once, receives posted late, over a wire that loses,
 * duplicates, delays, reorders and corrupts, with any MTU, credits on or off, PSNs that start just
 * below the wrap, ICRCs computed or omitted, between strangers or equals. A schedule follows from its seed alone;
 * SOFTHCA_SEEDS=first,count chooses; the seed is printed when one fails. One simulation is used for
 * all of them, its QPs are reset in between: `make soak` runs many millions.
 */
#include "rig.h"
#include "traffic.h"

enum { QPS = 3, RETRIES = 7 };

static uint32_t pick(struct sim *s, const uint32_t *of, unsigned n)
{
	return of[sim_random(s) % n];
}

static struct sim_faults random_faults(struct sim *s)
{
	static const uint32_t ppm[] = {0, 0, 20000, 100000, 300000};
	static const uint32_t delays[] = {3000, 20000, 200000, 3000000};

	return (struct sim_faults){
		.loss_ppm = pick(s, ppm, 5),
		.duplicate_ppm = pick(s, ppm, 5),
		.reorder_ppm = pick(s, ppm, 5),
		.corrupt_ppm = pick(s, ppm, 5) / 4,
		.delay_ns = pick(s, delays, 4),
		.most_lost = RETRIES,
	};
}

static uint32_t random_bytes(struct sim *s, uint32_t mtu)
{
	switch (sim_random(s) % 6) {
	case 0:
		return 0;
	case 1:
		return sim_random(s) % 64;
	case 2:
		return mtu * (1 + sim_random(s) % 3) < TRAFFIC_BYTES_MAX ? mtu : 2 * mtu;
	default:
		mtu *= 1 + sim_random(s) % 4;
		return sim_random(s) % (mtu < TRAFFIC_BYTES_MAX ? mtu : TRAFFIC_BYTES_MAX);
	}
}

/* A time from now on at which something is posted: at once, soon, or much later. */
static uint64_t random_time(struct sim *s)
{
	static const uint32_t spans[] = {1, 1, 1, 5000, 50000, 500000};

	return s->now_ns + sim_random(s) % pick(s, spans, 6);
}

static void add(struct traffic *t, int node, unsigned qp, uint32_t mtu, bool last)
{
	static const uint8_t kinds[] = {USER_RDMA_WRITE, USER_RDMA_WRITE_IMM, USER_SEND,
					USER_SEND_IMM,	 USER_RDMA_READ,      USER_ATOMIC_FA,
					USER_ATOMIC_CS};
	struct sim *s = t->s;
	struct traffic_op *o =
		traffic_add(t, node, qp, kinds[sim_random(s) % 7], random_bytes(s, mtu));
	bool writes = !(sim_traits[o->opcode] & USER_SCATTERS);

	o->fence = sim_random(s) % 4 == 0;
	o->unsignaled = !last && sim_random(s) % 4 == 0;
	o->is_inline = writes && o->bytes <= TRAFFIC_INLINE_MAX && sim_random(s) % 2;
	if (!o->is_inline && o->bytes && !(sim_traits[o->opcode] & USER_EIGHT_BYTES))
		o->pieces = 1 + sim_random(s) % 4;
	if (o->pieces > 1 && o->bytes > o->pieces * TRAFFIC_PIECE_MAX)
		o->pieces = 4;
	o->recv_pieces = 2;
	o->post_ns = random_time(s);
	o->recv_ns = random_time(s);
}

static void one_schedule(struct sim *s, uint64_t seed)
{
	static struct traffic t;
	struct sim_params p = s->params;

	p.seed = seed;
	s->rng = seed;
	p.qps = 1 + sim_random(s) % QPS;
	p.mtu = 1 + sim_random(s) % 5;
	p.psn = (0xffffff - sim_random(s) % 16) & 0xffffff;
	p.timeout = 8 + sim_random(s) % 2;
	p.min_rnr_timer = 1 + sim_random(s) % 8;
	p.equal = seed / 6 & 1;
	p.whole_trains = seed / 72 & 1;
	p.max_rd_atomic = 1 + sim_random(s) % 4;
	for (int n = 0; n < 2; n++) {
		struct engine_settings *settings = &s->node[n].hca->engines[0].settings;

		settings->e2e_credits = sim_random(s) & 1;
		settings->path_spread = 1 + seed / 12 % 3;
		settings->icrc = seed / 3 & 1 ? ICRC_NEVER : ICRC_ALWAYS;
		settings->payload_refs = seed / 36 & 1;
	}
	sim_reset(s, &p);
	s->faults = random_faults(s);
	traffic_begin(&t, s, "SOFTHCA_SEEDS=%lu,1", (unsigned long)seed);
	for (int n = 0; n < 2; n++)
		for (unsigned q = 0; q < p.qps; q++)
			for (unsigned k = sim_random(s) % (TRAFFIC_OPS + 1); k; k--)
				add(&t, n, q, 128u << p.mtu, k == 1);
	traffic_run(&t);
}

TEST(c9_146__random_schedules)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	const char *chosen = getenv("SOFTHCA_SEEDS");
	unsigned long first = 1, count = 20000;
	struct hca_config narrow;
	struct sim *s[3];

	if (chosen && sscanf(chosen, "%lu,%lu", &first, &count) < 1)
		fail_msg("SOFTHCA_SEEDS=first,count");
	p.memory_bytes = TRAFFIC_MEMORY;
	p.qps = QPS;
	p.retry_cnt = RETRIES;
	s[0] = sim_create(&p);
	hca_config_defaults(&narrow);
	narrow.settings.ack_interval = 3;
	narrow.settings.quantum_bytes = 1500;
	narrow.settings.swpb_elements = 8;
	narrow.settings.rpb_elements = 2;
	narrow.settings.reb_elements = SGE_MAX;
	narrow.settings.pipeline_depth = 2;
	p.settings = &narrow.settings;
	s[1] = sim_create(&p);
	p.settings = NULL;
	p.paged = p.busy = true;
	s[2] = sim_create(&p);
	for (uint64_t seed = first; seed < first + count; seed++)
		one_schedule(s[seed % 3], seed);
	for (int i = 0; i < 3; i++)
		sim_destroy(s[i]);
	print_message("schedules: seeds %lu to %lu passed\n", first, first + count - 1);
}
