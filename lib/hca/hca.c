/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assembles one HCA: tables, engines with their channels and modules. Control thread, except
 * hca_poll_stage(), the one place where a stage's name becomes a call.
 */
#include <errno.h>
#include <stdio.h>
#include <rte_malloc.h>
#include "base/nodes.h"
#include "hca/hca.h"
#include "link/link.h"
#include "pipeline/stepping.h"
#include "requester/requester.h"
#include "responder/responder.h"
#include "send-queue/send_queue.h"
#include "virt-to-phys/orphans.h"

_Static_assert((int)UAR_PAGES == (int)ENGINES_MAX, "a client has a doorbell page for each");

void hca_config_defaults(struct hca_config *c)
{
	enum { no, yes };
	enum { none };
	enum { keep = LOSS_RECOVERY_KEEP };

	*c = (struct hca_config){
		.name = "hca0",
		.socket = SOCKET_ID_ANY,
		.settings.icrc = ICRC_ALWAYS,
#define HCA_SETTING(key, kind, field, unit, def, min, max, change, doc) .field = def,
#include "hca/settings.def"
	};
}

static bool hca_power_of_two(uint32_t n, uint32_t max)
{
	return n != 0 && (n & (n - 1)) == 0 && n <= max;
}

static bool hca_config_valid(const struct hca_config *c)
{
	return c->engines >= 1 && c->engines <= ENGINES_MAX &&
	       hca_power_of_two(c->qps, 1u << QPN_INDEX_BITS_MAX) &&
	       hca_power_of_two(c->cqs, 1u << QPN_INDEX_BITS_MAX) &&
	       hca_power_of_two(c->srqs, 1u << QPN_INDEX_BITS_MAX) &&
	       hca_power_of_two(c->mpts, 1u << KEY_INDEX_BITS_MAX) &&
	       hca_power_of_two(c->mtts, 1u << MTT_INDEX_BITS_MAX) && c->mtts >= MTT_WORDS &&
	       hca_power_of_two(c->mpt_cache_bytes, 1u << 30) && c->mpt_cache_bytes >= 64 &&
	       hca_power_of_two(c->mtt_cache_bytes, 1u << 30) && c->mtt_cache_bytes >= 32 &&
	       c->packets && c->descriptors && c->link && c->gid_count <= GID_TABLE_MAX &&
	       c->settings.swpb_elements && c->settings.rpb_elements &&
	       c->settings.reb_elements >= SGE_MAX &&
	       hca_power_of_two(c->settings.timer_tick_ns, 1u << 26) && c->settings.timer_slots &&
	       c->settings.pipeline_depth && c->settings.ack_interval && c->settings.quantum_bytes;
}

static int channels_create(struct hca *h, struct engine *e)
{
	bool several = h->config.engines > 1;
	char prefix[48];
	int err = 0;

	snprintf(prefix, sizeof(prefix), "%.8s_%u", h->config.name, e->index);
	for (unsigned i = 0; i < CHANNEL_COUNT && !err; i++)
		err = channel_create(&e->channel[i], i, prefix,
				     several && channel_form(i) == FORM_FROM_EACH, e->socket);
	return err;
}

/* Sets the engine's node, and the pools there. */
static void engine_settle(struct engine *e, const struct hca_config *c)
{
	const struct engine_place *place = &c->place[e->index];
	const struct engine_place whole = {c->socket, c->packets, c->descriptors, c->clones};

	if (!place->packets)
		place = &whole;
	e->socket = place->socket;
	e->packets = place->packets;
	e->clones = place->clones ? place->clones : place->packets;
	e->descriptors = place->descriptors;
	e->descriptor_share =
		c->descriptor_share ? c->descriptor_share : place->descriptors->size / 4;
}

static int engine_create(struct hca *h, unsigned index)
{
	struct engine *e = &h->engines[index];
	int err;

	e->index = index;
	e->count = h->config.engines;
	e->heard_ns = UINT64_MAX;
	e->peers = h->engines;
	e->settings = h->config.settings;
	engine_settle(e, &h->config);
	node_prefer(e->socket);
	e->qps = &h->qps;
	e->v2p = &h->v2p;
	for (unsigned s = 0; s < STAGE_COUNT; s++)
		e->v2p_port[s] = &h->v2p_ports[index * STAGE_COUNT + s];
	e->completion = &h->completion;
	e->link = h->config.link;
	e->gids = h->config.gids;
	e->gid_count = h->config.gid_count;
	e->admitted = &h->admitted[0];
	e->multicast = &h->multicast;
	e->events = h->events;
	for (unsigned i = 0; i < WAKE_COUNT; i++)
		wake_list_init(&e->wake[i]);
	e->source_burst = BURST;
	err = stepping_create(e);
	if (!err)
		err = channels_create(h, e);
	if (!err)
		err = send_queue_create(e);
	if (!err)
		err = requester_create(e);
	if (!err)
		err = responder_create(e);
	return err ? err : link_create(e);
}

static void engine_destroy(struct engine *e)
{
	if (!e->peers)
		return;
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		channel_destroy(&e->channel[i]);
	link_destroy(e);
	responder_destroy(e);
	requester_destroy(e);
	send_queue_destroy(e);
	stepping_destroy(e);
}

/* Timer events of all engines: more than their channels hold, so that there is always one. */
static int events_create(struct hca *h)
{
	unsigned each = channel_infos[CHANNEL_RTC_TC].depth + channel_infos[CHANNEL_RRC_TC].depth +
			channel_infos[CHANNEL_TC_RRC].depth + 4 * BURST;
	char name[48];

	snprintf(name, sizeof(name), "%.8s_events", h->config.name);
	h->events = rte_pktmbuf_pool_create(name, each * h->config.engines, 0, MESSAGE_PRIV_BYTES,
					    0, h->config.socket);
	return h->events ? 0 : -ENOMEM;
}

static int tables_create(struct hca *h)
{
	const struct hca_config *c = &h->config;
	struct v2p_config v2p = {.name = c->name,
				 .mpts = c->mpts,
				 .mtts = c->mtts,
				 .mpt_cache_lines = c->mpt_cache_bytes / 64,
				 .mtt_cache_lines = c->mtt_cache_bytes / 32,
				 .counters = &h->counters,
				 .socket = c->socket};
	int err = qp_table_create(&h->qps, c->qps);

	if (!err)
		err = srq_table_create(&h->srqs, c->srqs);
	multicast_table_create(&h->multicast);
	if (!err)
		err = v2p_create(&h->v2p, &v2p);
	if (!err)
		err = completion_create(&h->completion, c->cqs, c->qps, c->srqs);
	return err ? err : events_create(h);
}

/* Contexts get their memory on first use: it must come from the HCA's node. */
static void contexts_bind(struct hca *h)
{
	const struct icm *const tables[] = {&h->qps.icm, &h->srqs.icm, &h->completion.icm};

	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		node_bind(tables[i]->reserved, tables[i]->reserved_bytes, h->config.socket);
}

static int v2p_ports_create(struct hca *h)
{
	unsigned n = h->config.engines * STAGE_COUNT;

	h->v2p_ports = rte_zmalloc_socket("v2p_ports", n * sizeof(struct v2p_port),
					  RTE_CACHE_LINE_SIZE, h->config.socket);
	if (!h->v2p_ports)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		h->v2p_ports[i] = (struct v2p_port){
			.v2p = &h->v2p,
			.counters = stage_counters(&h->engines[i / STAGE_COUNT],
						   (enum stage_id)(i % STAGE_COUNT))};
	return 0;
}

int hca_create(const struct hca_config *config, struct hca **out)
{
	struct hca *h;
	int err;

	if (!hca_config_valid(config))
		return -EINVAL;
	h = rte_zmalloc_socket("hca", sizeof(*h), RTE_CACHE_LINE_SIZE, config->socket);
	if (!h)
		return -ENOMEM;
	h->config = *config;
	h->admitted[0] = config->admitted;
	node_prefer(config->socket);
	h->engines = rte_zmalloc_socket("engines", config->engines * sizeof(struct engine),
					RTE_CACHE_LINE_SIZE, config->socket);
	err = h->engines ? tables_create(h) : -ENOMEM;
	if (!err)
		err = v2p_ports_create(h);
	if (!err)
		contexts_bind(h);
	for (unsigned i = 0; i < config->engines && !err; i++)
		err = engine_create(h, i);
	node_prefer(NODE_ANY);
	if (err) {
		hca_destroy(h);
		return err;
	}
	*out = h;
	return 0;
}

static void engine_change_settings(struct engine *e, const struct hca_config *c)
{
#define RESTART(field)
#define RUNTIME(field)							__atomic_store_n(&e->field, c->field, __ATOMIC_RELAXED);
#define HCA_SETTING(key, kind, field, unit, def, min, max, change, doc) change(field)
#include "hca/settings.def"
	RUNTIME(settings.payload_refs)
#undef RESTART
#undef RUNTIME
}

void hca_move(struct hca *h, const struct wire_path *gids, unsigned count)
{
	memcpy(h->config.gids, gids, count * sizeof(*gids));
	h->config.gid_count = count;
	for (unsigned i = 0; i < h->config.engines; i++)
		h->engines[i].gid_count = count;
}

void hca_change_settings(struct hca *h, const struct engine_settings *s)
{
	h->config.settings = *s;
	for (unsigned i = 0; i < h->config.engines; i++)
		engine_change_settings(&h->engines[i], &h->config);
}

/* The list that applied before is overwritten by the next change, when nobody reads it any more. */
void hca_admit(struct hca *h, const struct peer_list *peers, void (*quiesce)(void *ctx), void *ctx)
{
	h->admitted_at ^= 1;
	h->admitted[h->admitted_at] = *peers;
	for (unsigned i = 0; i < h->config.engines; i++)
		__atomic_store_n(&h->engines[i].admitted, hca_admitted(h), __ATOMIC_RELEASE);
	quiesce(ctx);
}

static void drop_orphans_of_channel(struct channel *c, const struct v2p *sender)
{
	struct rte_mbuf *m[BURST];
	unsigned left = rte_ring_count(c->ring), n;

	for (; left; left -= n) {
		n = rte_ring_sc_dequeue_burst(c->ring, (void **)m, RTE_MIN(left, (unsigned)BURST),
					      NULL);
		rte_ring_enqueue_bulk(c->ring, (void **)m, orphans_drop(m, n, sender), NULL);
	}
}

void hca_drop_orphans(struct hca *h, const struct hca *sender)
{
	for (unsigned i = 0; i < h->config.engines; i++) {
		struct engine *e = &h->engines[i];

		drop_orphans_of_channel(&e->channel[CHANNEL_HP_EE], &sender->v2p);
		drop_orphans_of_channel(&e->channel[CHANNEL_HP_RRC], &sender->v2p);
		link_drop_orphans(e, &sender->v2p);
		responder_drop_orphans(e, &sender->v2p);
		requester_drop_orphans(e, &sender->v2p);
	}
}

void hca_destroy(struct hca *h)
{
	if (!h)
		return;
	for (unsigned i = 0; h->engines && i < h->config.engines; i++)
		engine_destroy(&h->engines[i]);
	rte_mempool_free(h->events);
	completion_destroy(&h->completion);
	v2p_destroy(&h->v2p);
	rte_free(h->v2p_ports);
	multicast_table_destroy(&h->multicast);
	srq_table_destroy(&h->srqs);
	qp_table_destroy(&h->qps);
	rte_free(h->engines);
	rte_free(h);
}

void hca_engine_on_one_lcore(struct hca *h, unsigned engine)
{
	h->engines[engine].one_lcore = true;
}

void hca_on_one_lcore(struct hca *h, bool frames_too)
{
	h->completion.one_lcore = true;
	for (unsigned i = 0; i < h->config.engines; i++) {
		hca_engine_on_one_lcore(h, i);
		h->engines[i].frames_are_ours = frames_too;
		requester_on_one_lcore(&h->engines[i]);
	}
}

/* Polls the transmitter again at the end of the round, so that what the responder has generated
 * leaves now, not a round later. */
static unsigned execute_and_transmit(struct engine *e)
{
	unsigned n = responder_exec_poll(e);

	return e->one_lcore ? n + link_transmit(e) : n;
}

static unsigned stage_poll(struct engine *e, enum stage_id stage)
{
	switch (stage) {
	case STAGE_DOORBELL_WQE:
		return doorbell_wqe_poll(e);
	case STAGE_SEGMENTATION:
		return segmentation_poll(e);
	case STAGE_REQUESTER_RECV:
		return requester_recv_poll(e);
	case STAGE_RESPONDER_EXEC:
		return execute_and_transmit(e);
	case STAGE_HEADER_PARSE:
		return header_parse_poll(e);
	case STAGE_COUNT:
		break;
	}
	return 0;
}

unsigned hca_poll_stage(struct engine *e, enum stage_id stage)
{
	struct stage *s = &e->stage[stage];
	unsigned n = stage_poll(e, stage);

	__atomic_store_n(&s->polls, s->polls + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&s->busy_polls, s->busy_polls + (n != 0), __ATOMIC_RELAXED);
	return n;
}

unsigned hca_poll(struct hca *h, uint64_t now_ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->config.engines; i++) {
		h->engines[i].now_ns = now_ns;
		for (unsigned s = 0; s < STAGE_COUNT; s++)
			n += hca_poll_stage(&h->engines[i], s);
	}
	completion_round(&h->completion, stage_counters(&h->engines[0], STAGE_HEADER_PARSE));
	return n;
}

uint64_t hca_counter(const struct hca *h, enum counter which)
{
	uint64_t sum = counter_read(&h->counters, which);

	for (unsigned i = 0; i < h->config.engines; i++)
		for (unsigned s = 0; s < STAGE_COUNT; s++)
			sum += counter_read(&h->engines[i].stage[s].counters, which);
	return sum;
}

void hca_close_qp(struct hca *h, struct qp *q)
{
	struct engine *e = &h->engines[q->engine];

	for (unsigned t = 0; t < WAKE_COUNT; t++)
		wake_post(&e->wake[t], &q->wake[t], q->index);
}

bool hca_qp_closed(const struct qp *q)
{
	return __atomic_load_n(&q->closed, __ATOMIC_ACQUIRE) == QP_CLOSED_ALL;
}

unsigned hca_client_engine(const struct hca *h, uint32_t client)
{
	return client % h->config.engines;
}

int hca_client_node(const struct hca *h, uint32_t client)
{
	return h->engines[hca_client_engine(h, client)].socket;
}

void hca_client_attach(struct hca *h, uint32_t client, unsigned engine, struct uar_page *uar)
{
	dbp_set_client(&h->engines[engine], client, uar);
}

void hca_client_detach(struct hca *h, uint32_t client)
{
	for (unsigned i = 0; i < h->config.engines; i++)
		dbp_set_client(&h->engines[i], client, NULL);
}
