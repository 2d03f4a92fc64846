/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks of switches: see the header. */
#include <stdlib.h>
#include "sim_network.h"
#include "wire/encap.h"

/* A frame arrives: at a switch, or at the node that it is for. */
struct event {
	uint64_t at_ns, number;
	struct rte_mbuf *m;
	uint16_t station; /* a switch: leaves, then spines; or ARRIVED */
	uint16_t from, to;
};

enum { ARRIVED = UINT16_MAX };

struct sim_network {
	struct sim_network_config config;
	unsigned nodes, switches;
	uint64_t rng, numbers;
	struct sim_link *node; /* from each node */
	struct sim_switch *at;
	struct event *heap; /* the earliest first */
	unsigned count, room;
};

static unsigned leaf_of(const struct sim_network *n, unsigned node)
{
	return node % n->config.leaves;
}

/* ---- making ---- */

static uint32_t mbps_of(const struct sim_network_config *c, unsigned spine)
{
	return c->slow_mbps && spine == c->slow_spine ? c->slow_mbps : c->spine_mbps;
}

/* A leaf has its nodes' links at their numbers, then those to the spines; a spine one to each leaf. */
static void make_leaf(struct sim_network *n, unsigned leaf)
{
	const struct sim_network_config *c = &n->config;
	struct sim_switch *w = &n->at[leaf];

	w->ports = n->nodes + (c->leaves > 1 ? c->spines : 0);
	for (unsigned i = 0; i < w->ports; i++)
		w->port[i].link =
			i < n->nodes
				? (struct sim_link){.mbps = c->link_mbps, .delay_ns = c->delay_ns}
				: (struct sim_link){.mbps = mbps_of(c, i - n->nodes),
						    .delay_ns = c->delay_ns +
								(i - n->nodes) * c->detour_ns};
}

static void make_spine(struct sim_network *n, unsigned spine)
{
	const struct sim_network_config *c = &n->config;
	struct sim_switch *w = &n->at[c->leaves + spine];

	w->ports = c->leaves;
	for (unsigned i = 0; i < w->ports; i++)
		w->port[i].link =
			(struct sim_link){.mbps = mbps_of(c, spine), .delay_ns = c->delay_ns};
}

static bool valid(const struct sim_network_config *c, unsigned nodes)
{
	return c->leaves <= SIM_LEAVES_MAX && c->spines <= SIM_SPINES_MAX &&
	       nodes + c->spines <= SIM_PORTS_MAX && (c->leaves <= 1 || c->spines);
}

struct sim_network *sim_network_create(const struct sim_network_config *config, unsigned nodes,
				       uint64_t seed)
{
	struct sim_network *n = calloc(1, sizeof(*n));

	if (!n || !valid(config, nodes)) {
		free(n);
		return NULL;
	}
	n->config = *config;
	n->config.leaves = RTE_MAX(1u, config->leaves);
	n->nodes = nodes;
	n->switches = n->config.leaves + (n->config.leaves > 1 ? config->spines : 0);
	n->rng = seed;
	n->room = 1024;
	n->node = calloc(nodes, sizeof(*n->node));
	n->at = calloc(n->switches, sizeof(*n->at));
	n->heap = malloc(n->room * sizeof(*n->heap));
	if (!n->node || !n->at || !n->heap) {
		sim_network_destroy(n);
		return NULL;
	}
	for (unsigned i = 0; i < nodes; i++)
		n->node[i] =
			(struct sim_link){.mbps = config->port_mbps, .delay_ns = config->delay_ns};
	for (unsigned i = 0; i < n->switches; i++) {
		n->at[i].kind = config->kind;
		n->at[i].rng = sim_next_random(&n->rng);
		if (i < n->config.leaves)
			make_leaf(n, i);
		else
			make_spine(n, i - n->config.leaves);
	}
	return n;
}

void sim_network_empty(struct sim_network *n)
{
	for (unsigned i = 0; i < n->count; i++)
		rte_pktmbuf_free(n->heap[i].m);
	n->count = 0;
}

void sim_network_destroy(struct sim_network *n)
{
	if (!n)
		return;
	sim_network_empty(n);
	free(n->heap);
	free(n->at);
	free(n->node);
	free(n);
}

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void put(struct sim_network *n, struct event e)
{
	unsigned i = n->count++;

	if (n->count > n->room) {
		n->room *= 2;
		n->heap = realloc(n->heap, n->room * sizeof(*n->heap));
		if (!n->heap)
			abort();
	}
	e.number = n->numbers++;
	for (; i && before(&e, &n->heap[(i - 1) / 2]); i = (i - 1) / 2)
		n->heap[i] = n->heap[(i - 1) / 2];
	n->heap[i] = e;
}

static struct event take(struct sim_network *n)
{
	struct event first = n->heap[0], last = n->heap[--n->count];
	unsigned i = 0, child;

	for (; (child = 2 * i + 1) < n->count; i = child) {
		if (child + 1 < n->count && before(&n->heap[child + 1], &n->heap[child]))
			child++;
		if (!before(&n->heap[child], &last))
			break;
		n->heap[i] = n->heap[child];
	}
	n->heap[i] = last;
	return first;
}

/* ---- the way of a frame ---- */

/* The UDP source port, by which switches tell connections apart; 0: there is none. */
static unsigned source_port(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned at = WIRE_ETHERNET_BYTES +
		      (frame[12] == 0x86 && frame[13] == 0xdd ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);

	return m->data_len < at + 2 ? 0 : (unsigned)frame[at] << 8 | frame[at + 1];
}

static unsigned spine_of(struct sim_network *n, const struct event *e)
{
	uint64_t key = source_port(e->m) | (uint64_t)e->from << 16 | (uint64_t)e->to << 32;

	if (n->config.spray_ppm && sim_next_random(&n->rng) % 1000000 < n->config.spray_ppm)
		return sim_next_random(&n->rng) % n->config.spines;
	return sim_next_random(&key) % n->config.spines;
}

/* Out of which port of its station, and where to. */
static unsigned route(struct sim_network *n, struct event *e)
{
	unsigned leaf = leaf_of(n, e->to), spine;

	if (e->station == leaf) {
		e->station = ARRIVED;
		return e->to;
	}
	if (e->station >= n->config.leaves) {
		e->station = leaf;
		return leaf;
	}
	spine = spine_of(n, e);
	e->station = n->config.leaves + spine;
	return n->nodes + spine;
}

static void forward(struct sim_network *n, struct event e)
{
	struct sim_switch *w = &n->at[e.station];
	unsigned port = route(n, &e);

	if (sim_switch_forward(w, port, rte_pktmbuf_mtod(e.m, uint8_t *), e.m->data_len, e.at_ns,
			       &e.at_ns))
		put(n, e);
	else
		rte_pktmbuf_free(e.m);
}

bool sim_network_takes(const struct sim_network *n, unsigned node, uint64_t now_ns)
{
	return sim_link_queued(&n->node[node], now_ns) <= n->config.queue_bytes;
}

void sim_network_send(struct sim_network *n, unsigned from, unsigned to, struct rte_mbuf *m,
		      uint64_t now_ns, uint64_t late_ns)
{
	put(n, (struct event){.at_ns = sim_link_send(&n->node[from], m->data_len, now_ns) + late_ns,
			      .m = m,
			      .station = leaf_of(n, from),
			      .from = from,
			      .to = to});
}

struct rte_mbuf *sim_network_take(struct sim_network *n, uint64_t now_ns, unsigned *node)
{
	struct event e;

	while (n->count && n->heap[0].at_ns <= now_ns) {
		e = take(n);
		if (e.station == ARRIVED) {
			*node = e.to;
			return e.m;
		}
		forward(n, e);
	}
	return NULL;
}

/* ---- looks ---- */

uint64_t sim_network_due(const struct sim_network *n)
{
	return n->count ? n->heap[0].at_ns : UINT64_MAX;
}

unsigned sim_network_count(const struct sim_network *n)
{
	return n->count;
}

struct sim_port *sim_network_port(struct sim_network *n, unsigned node)
{
	return &n->at[leaf_of(n, node)].port[node];
}

static uint64_t sum(const struct sim_network *n, size_t field)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < n->switches; i++)
		for (unsigned k = 0; k < n->at[i].ports; k++)
			all += *(const uint32_t *)((const char *)&n->at[i].port[k] + field);
	return all;
}

uint64_t sim_network_dropped(const struct sim_network *n)
{
	return sum(n, offsetof(struct sim_port, dropped));
}

uint64_t sim_network_marked(const struct sim_network *n)
{
	return sum(n, offsetof(struct sim_port, marked));
}
