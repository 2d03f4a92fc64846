/* SPDX-License-Identifier: BSD-3-Clause */
/* HCAs that compete in a network: see the header. */
#include "rig.h"
#include "scenario.h"

enum { DEPTH_MAX = 64 };

struct play {
	const struct scenario *c;
	struct sim *s;
	struct outcome *o;
	struct sim_flow flow[SCENARIO_FLOWS];
	uint64_t begin_ns;
	unsigned posted[SCENARIO_FLOWS], done[SCENARIO_FLOWS];
	uint64_t posted_ns[SCENARIO_FLOWS][DEPTH_MAX];
	unsigned room; /* for times */
};

static unsigned now_ms(const struct play *p)
{
	return (unsigned)((p->s->now_ns - p->begin_ns) / MS);
}

static int poster(const struct play *p, unsigned flow)
{
	return p->c->opcode == USER_RDMA_READ ? p->flow[flow].to : p->flow[flow].from;
}

static uint8_t opcode_of(const struct play *p)
{
	return p->c->opcode ? p->c->opcode : USER_RDMA_WRITE;
}

/* ---- making ---- */

static void lay_flows(struct play *p)
{
	const struct scenario *c = p->c;
	uint8_t senders = (uint8_t)c->senders;

	for (uint8_t i = 0; i < senders; i++)
		p->flow[i] = (struct sim_flow){i + 1, 0};
	if (c->victim)
		p->flow[senders] = (struct sim_flow){senders + 1, senders + 2};
	p->o->flows = senders + c->victim;
}

static void make(struct play *p, uint64_t seed)
{
	const struct scenario *c = p->c;
	struct sim_params params = SIM_PARAMS_DEFAULT;
	struct hca_config config;

	hca_config_defaults(&config);
	config.settings.cc = c->cc;
	config.settings.path_spread = RTE_MAX(1u, c->spread);
	lay_flows(p);
	params.settings = &config.settings;
	params.nodes = 1 + c->senders + 2 * c->victim;
	params.qps = p->o->flows;
	params.flows = p->flow;
	params.network = &c->network;
	params.mtu = 5;
	params.timeout = 14;
	params.memory_bytes = 2 << 20;
	params.packets = 32767;
	params.seed = seed;
	params.equal = c->equal;
	p->s = sim_create(&params);
	for (unsigned i = 0; i < params.nodes; i++)
		p->s->node[i].hca->engines[0].settings.loss_recovery =
			i == 0 ? c->receiver : c->sender;
	if (c->step_us)
		p->s->step_ns = c->step_us * 1000ull;
	p->begin_ns = p->s->now_ns;
}

/* ---- playing ---- */

static bool wants(const struct play *p, unsigned flow)
{
	bool last = flow + 1 == p->c->senders && p->c->joins_ms;

	return !last || (now_ms(p) >= p->c->joins_ms && now_ms(p) < p->c->leaves_ms);
}

static void keep_time(struct play *p, unsigned flow, uint64_t since_ns)
{
	struct outcome *o = p->o;

	if (flow >= p->c->senders || since_ns < p->begin_ns + p->c->warm_ms * MS)
		return;
	if (o->times == p->room) {
		p->room = p->room ? 2 * p->room : 4096;
		o->took_ns = realloc(o->took_ns, p->room * sizeof(*o->took_ns));
		assert_non_null(o->took_ns);
	}
	o->took_ns[o->times++] = (uint32_t)(p->s->now_ns - since_ns);
}

static void take_completions(struct play *p, int node)
{
	struct cqe c;

	while (sim_poll_cq(p->s, node, &c)) {
		unsigned flow = (c.my_qpn & 0xff) - 1;

		if (c.opcode == USER_INVALID)
			fail_msg("flow %u: error %#x after %u ms", flow, c.imm_or_error & 0xff,
				 now_ms(p));
		if (c.opcode == USER_RECV) {
			sim_post_recv(p->s, node, flow, flow * SCENARIO_BYTES, SCENARIO_BYTES);
			continue;
		}
		keep_time(p, flow, p->posted_ns[flow][p->done[flow]++ % p->c->depth]);
		if (now_ms(p) < SCENARIO_WINDOWS)
			p->o->messages[flow][now_ms(p)]++;
	}
}

static void post(struct play *p, unsigned flow)
{
	const struct sim_wr wr = SIM_WR(opcode_of(p), flow * SCENARIO_BYTES, SCENARIO_BYTES,
					.remote = flow * SCENARIO_BYTES);

	while (wants(p, flow) && p->posted[flow] - p->done[flow] < p->c->depth) {
		p->posted_ns[flow][p->posted[flow]++ % p->c->depth] = p->s->now_ns;
		sim_post(p->s, poster(p, flow), flow, &wr);
	}
}

static void play(struct play *p, unsigned until_ms)
{
	while (now_ms(p) < until_ms) {
		for (unsigned i = 0; i < p->s->nodes; i++)
			take_completions(p, i);
		for (unsigned i = 0; i < p->o->flows; i++)
			post(p, i);
		sim_step(p->s);
	}
}

static bool all_done(const struct play *p)
{
	for (unsigned i = 0; i < p->o->flows; i++)
		if (p->done[i] != p->posted[i])
			return false;
	return true;
}

/* What has been posted is completed, and everything comes back. */
static void end(struct play *p)
{
	for (uint64_t until_ns = p->s->now_ns + 2000 * MS;
	     !all_done(p) && p->s->now_ns < until_ns;) {
		sim_step(p->s);
		for (unsigned i = 0; i < p->s->nodes; i++)
			take_completions(p, i);
	}
	assert_true(all_done(p));
	sim_run(p->s, 150 * MS); /* the queue of a slow port; a copy of what was kept ages */
	assert_true(sim_quiet(p->s));
	assert_int_equal(p->s->no_room, 0);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void look(struct play *p)
{
	struct outcome *o = p->o;

	o->windows = RTE_MIN(p->c->warm_ms + p->c->run_ms, (unsigned)SCENARIO_WINDOWS);
	o->dropped = sim_network_dropped(p->s->net);
	o->marked = sim_network_marked(p->s->net);
	for (unsigned i = 0; i < p->s->nodes; i++) {
		o->cnps += sim_counter(p->s, i, COUNTER_rp_cnp_handled);
		o->timeouts += sim_counter(p->s, i, COUNTER_loss_timeouts);
		o->sent += sim_counter(p->s, i, COUNTER_request_packets);
		o->again += sim_counter(p->s, i, COUNTER_retransmitted_packets);
	}
	if (o->times)
		qsort(o->took_ns, o->times, sizeof(*o->took_ns), by_size);
}

/* Receives for SENDs: as many as may be outstanding, and more. */
static void post_receives(struct play *p)
{
	for (unsigned i = 0; i < p->o->flows && opcode_of(p) == USER_SEND; i++)
		for (unsigned k = 0; k < 2 * p->c->depth; k++)
			sim_post_recv(p->s, p->flow[i].to, i, i * SCENARIO_BYTES, SCENARIO_BYTES);
}

struct outcome *scenario_run(const struct scenario *c, uint64_t seed)
{
	struct play *p = calloc(1, sizeof(*p));
	struct outcome *o = calloc(1, sizeof(*o));

	assert_true(p && o && c->depth <= DEPTH_MAX && c->senders + c->victim <= SCENARIO_FLOWS);
	p->c = c;
	p->o = o;
	make(p, seed);
	post_receives(p);
	play(p, c->warm_ms);
	p->s->faults = c->faults;
	play(p, c->warm_ms + c->run_ms);
	p->s->faults = (struct sim_faults){0};
	end(p);
	look(p);
	sim_destroy(p->s);
	free(p);
	return o;
}

void scenario_free(struct outcome *o)
{
	free(o->took_ns);
	free(o);
}

/* ---- looks ---- */

double scenario_mbps(const struct outcome *o, unsigned flow, unsigned from_ms, unsigned to_ms)
{
	uint64_t messages = 0;

	for (unsigned i = from_ms; i < to_ms; i++)
		messages += o->messages[flow][i];
	return (double)messages * SCENARIO_BYTES * 8 / 1000 / (to_ms - from_ms);
}

double scenario_total_mbps(const struct scenario *c, const struct outcome *o)
{
	double total = 0;

	for (unsigned i = 0; i < c->senders; i++)
		total += scenario_mbps(o, i, c->warm_ms, c->warm_ms + c->run_ms);
	return total;
}

uint32_t scenario_quantile(const struct outcome *o, double quantile)
{
	unsigned at = (unsigned)(quantile * o->times);

	return o->times ? o->took_ns[RTE_MIN(at, o->times - 1)] : 0;
}
