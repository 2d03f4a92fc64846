/* SPDX-License-Identifier: BSD-3-Clause */
/* The HCA that the stateful targets share: see world.h. */
#include <rte_mbuf.h>

#include "requester/requester.h"
#include "responder/responder.h"
#include "wire/crc.h"
#include "world.h"

enum { DRY_STEPS = 64, ALL = (1 << WORLD_QPS) - 1 };

struct sim *world;
struct world_watch world_watch;

static const struct plan {
	uint8_t service; /* enum qp_service */
	uint8_t state;	 /* enum qp_state */
	bool srq, asks, equal;
} plan[WORLD_QPS] = {
	[WORLD_RC] = {.service = SERVICE_RC, .state = QP_RTS},
	[WORLD_SRQ] = {.service = SERVICE_RC, .state = QP_RTS, .srq = true, .equal = true},
	[WORLD_ASKS] = {.service = SERVICE_RC, .state = QP_RTS, .asks = true, .equal = true},
	[WORLD_RTR] = {.service = SERVICE_RC, .state = QP_RTR},
	[WORLD_UC] = {.service = SERVICE_UC, .state = QP_RTS},
	[WORLD_UD] = {.service = SERVICE_UD, .state = QP_RTS},
	[WORLD_ERR] = {.service = SERVICE_RC, .state = QP_ERR},
	[WORLD_SQD] = {.service = SERVICE_RC, .state = QP_SQD, .asks = true},
};

static const struct sim_identity identity[2] = {
	{.qpn = WORLD_QPN + 1,
	 .psn = WORLD_PSN,
	 .key = WORLD_KEY,
	 .va = WORLD_VA,
	 .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}},
	{.qpn = WORLD_PEER_QPN + 1,
	 .psn = WORLD_PSN,
	 .key = WORLD_KEY + 0x100,
	 .va = WORLD_VA,
	 .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}},
};

static uint8_t *vault;
static struct qp rest[WORLD_QPS]; /* the contexts as bring() left them */
static bool putting_back;	  /* from now on nothing is checked */
static unsigned int packets_at_rest, descriptors_at_rest;

/* ---- output ---- */

static bool leaves(struct sim *s, int from, const uint8_t *frame, unsigned int bytes, void *arg)
{
	struct wire_frame f;

	if (from == 1)
		return false;
	REQUIRE(wire_parse_frame(frame, bytes, &f) == WIRE_OK);
	REQUIRE(wire_icrc(frame + f.l3_offset, f.transport_end - f.l3_offset, f.is_ipv6) ==
		wire_icrc_load(frame + f.transport_end));
	REQUIRE(f.payload_bytes <= WORLD_MTU || wire_opcodes[f.h.opcode].service == SERVICE_UD);
	if (world_watch.packet && !putting_back)
		world_watch.packet(&f);
	return true;
}

static bool is_receive(const struct cqe *c)
{
	return c->opcode >= USER_RECV && c->opcode <= USER_RECV_INV;
}

static void take_results(void)
{
	struct cqe c;
	struct eqe e;

	while (sim_poll_cq(world, 0, &c)) {
		if (world_watch.completion && !putting_back)
			world_watch.completion(&c);
		if (is_receive(&c) && c.my_qpn == world->node[0].qp[WORLD_SRQ].qpn)
			sim_post_srq_recv(world, 0, 0, WORLD_RECEIVE_BYTES);
	}
	while (sim_poll_event(world, 0, &e))
		;
}

/* Frames to groups come back to the peer, too. */
static void empty_peer(void)
{
	struct sim_wire_end *end = &world->end[1];

	while (end->count)
		rte_pktmbuf_free(end->queue[--end->count].m);
}

static unsigned int step(void)
{
	unsigned int handled = sim_step(world);

	take_results();
	empty_peer();
	return handled;
}

void world_run(unsigned int steps)
{
	while (steps--)
		step();
}

/* Until nothing happens, for so many steps at most; false: they did not suffice. Two quiet ones: a
 * stage may wake one that has had its turn, and what is on the wire takes a step. */
static bool settle(unsigned int steps)
{
	unsigned int quiet = 0;

	while (steps-- && quiet < 2)
		quiet = step() ? 0 : quiet + 1;
	return quiet == 2;
}

/* ---- making and putting back ---- */

/* A message that a reset ends keeps its descriptor. */
static void fill_srq(void)
{
	const struct sim_node *n = &world->node[0];

	while (srq_claimed(srq_find(&n->hca->srqs, n->srq.srqn)) < SIM_SRQ_ENTRIES / 2)
		sim_post_srq_recv(world, 0, 0, WORLD_RECEIVE_BYTES);
}

static void ask(unsigned int qp)
{
	static const struct sim_wr requests[] = {
		{.opcode = USER_SEND, .sges = 1, .sge = {{0, 600, 0}}},
		{.opcode = USER_RDMA_WRITE, .sges = 1, .sge = {{0, 300, 0}}},
		{.opcode = USER_RDMA_READ, .sges = 2, .sge = {{4096, 500, 0}, {8192, 200, 0}}},
		{.opcode = USER_ATOMIC_FA, .sges = 1, .sge = {{512, 8, 0}}},
	};

	for (unsigned int i = 0; i < RTE_DIM(requests); i++)
		if (plan[qp].state == QP_RTS || i == 0)
			sim_post(world, 0, qp, &requests[i]);
}

/* From RST to where its requests may be posted. */
static void connect_qp(unsigned int qp)
{
	world->params.service = plan[qp].service;
	world->params.srq = plan[qp].srq;
	world->params.equal = plan[qp].equal;
	sim_modify(world, 0, qp, QP_INIT, 0);
	for (unsigned int i = 0; i < WORLD_RECEIVES && !plan[qp].srq; i++)
		sim_post_recv(world, 0, qp, (uint64_t)i * WORLD_RECEIVE_BYTES, WORLD_RECEIVE_BYTES);
	sim_modify(world, 0, qp, QP_RTR, 0);
	if (plan[qp].state != QP_RTR)
		sim_modify(world, 0, qp, QP_RTS, 0);
}

/* All of them (a bit each) at once: what takes turns are the polls. */
static void bring(unsigned int qps)
{
	bool asks = false;

	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		if (!(qps >> i & 1))
			continue;
		connect_qp(i);
		if (plan[i].asks)
			ask(i);
		asks |= plan[i].asks;
	}
	if (asks)
		world_run(4);
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		world->params.service = plan[i].service;
		if (qps >> i & 1 && (plan[i].state == QP_SQD || plan[i].state == QP_ERR))
			sim_modify(world, 0, i, (enum qp_state)plan[i].state, 0);
	}
	world_run(2);
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		if (!(qps >> i & 1))
			continue;
		rest[i] = *sim_context(world, 0, i);
		if (world_watch.restored)
			world_watch.restored(i);
	}
}

/* Into RST; nothing is left of what they did. */
static void take_down(unsigned int qps)
{
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		world->params.service = plan[i].service;
		if (qps >> i & 1 && qp_state(sim_context(world, 0, i)) != QP_RST)
			sim_modify(world, 0, i, QP_RST, 0);
	}
	world_run(2);
}

unsigned int world_frame(uint8_t *frame, struct wire_headers h, unsigned int bytes)
{
	struct wire_path path = {.sport = 0xc123, .ttl = 64};
	struct wire_template t;
	unsigned int at;

	memcpy(path.src_mac, sim_macs[1], 6);
	memcpy(path.dst_mac, sim_macs[0], 6);
	memcpy(path.src_ip, identity[1].ip, 16);
	memcpy(path.dst_ip, identity[0].ip, 16);
	wire_template_build(&t, &path);
	h.pad = (uint8_t)(-bytes & 3);
	at = t.encap_bytes + wire_write_transport(frame + t.encap_bytes, &h);
	memset(frame + at, 0x5a, bytes + h.pad);
	at += bytes + h.pad;
	wire_stamp(frame, &t, at + WIRE_ICRC_BYTES - t.encap_bytes, 1);
	wire_icrc_store(frame + at, wire_icrc(frame + t.l3_offset, at - t.l3_offset, false));
	return at + WIRE_ICRC_BYTES;
}

static void guard(uint32_t key, uint32_t pd, uint32_t access)
{
	struct mpt_entry e = {.key = key,
			      .pd = pd,
			      .access = access,
			      .start = WORLD_VAULT_VA,
			      .length = WORLD_VAULT_BYTES,
			      .phys = vault};
	struct sim_node *n = &world->node[0];

	REQUIRE(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, key), &e, sizeof(e), NULL,
			 0) == CEU_OK);
}

static unsigned int packets_held(void)
{
	const struct engine *e = world->node[0].hca->engines;

	return rte_mempool_in_use_count(world->packets) - requester_stock(e) - responder_stock(e);
}

static void stop(void)
{
	sim_destroy(world);
	free(vault);
}

/* Once: later an input may have been at work. */
static void learn_background(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	take_down(ALL);
	bring(ALL);
	world_run(DRY_STEPS);
	fuzz_background();
}

void world_start(void)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	if (world)
		return;
	p.alone = p.srq = true;
	p.qps = WORLD_QPS;
	p.mtu = 1;
	p.timeout = 18;
	p.memory_bytes = WORLD_BYTES;
	p.identity[0] = &identity[0];
	p.identity[1] = &identity[1];
	world = sim_create(&p);
	world->tap = leaves;
	if (!vault) {
		atexit(stop);
		vault = calloc(1, WORLD_VAULT_BYTES);
	}
	REQUIRE(vault);
	guard(WORLD_KEY_READ_ONLY, sim_context(world, 0, 0)->pd, ACCESS_REMOTE_READ);
	guard(WORLD_KEY_FOREIGN, 77, 0xf);
	fill_srq();
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		world->params.service = plan[i].service;
		world->params.srq = plan[i].srq;
		sim_renew(world, 0, i);
	}
	bring(ALL);
	learn_background();
	packets_at_rest = packets_held();
	descriptors_at_rest = rte_mempool_in_use_count(world->descriptors);
}

#define SAME(field) (!memcmp(&now->field, &then->field, sizeof(now->field)))

/* Has nothing but the responder, whose fields are the last, taken requests, and is it done with them? Then
 * the queue pair stands in the same lists as before. */
static bool has_only_answered(const struct qp *now, const struct qp *then)
{
	return !memcmp(now, then, offsetof(struct qp, ee)) && SAME(ee.starved) &&
	       SAME(ee.has_posted) && SAME(ee_gap) && SAME(respg.head) && SAME(respg.active) &&
	       SAME(respg.notify) && SAME(respg.flow);
}

/* The queue pairs (a bit each) that have to go through RST. With the others it is enough to write their
 * context back: only if all modules are `quiet`. */
static unsigned int put_back_contexts(bool quiet)
{
	unsigned int qps = 0;

	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		struct qp *now = sim_context(world, 0, i);
		bool posts = now->record->rq_posted != (plan[i].srq ? 0 : WORLD_RECEIVES);

		if (!posts && !memcmp(now, &rest[i], sizeof(*now)))
			continue;
		if (posts || !quiet || !has_only_answered(now, &rest[i])) {
			qps |= 1u << i;
			continue;
		}
		*now = rest[i];
		if (world_watch.restored)
			world_watch.restored(i);
	}
	return qps;
}

void world_restore(void)
{
	static const uint8_t zeros[WORLD_VAULT_BYTES];
	unsigned int qps;

	qps = put_back_contexts(settle(8));
	REQUIRE(!memcmp(vault, zeros, sizeof(zeros)));
	putting_back = true;
	if (qps) {
		take_down(qps);
		bring(qps);
	}
	putting_back = false;
	fill_srq();
	for (unsigned int i = 0; i < DRY_STEPS && packets_held() != packets_at_rest; i++)
		world_run(1);
	REQUIRE(packets_held() == packets_at_rest);
	/* WQEParse keeps one. */
	REQUIRE(rte_mempool_in_use_count(world->descriptors) <= descriptors_at_rest + 1);
	fuzz_hide_background();
}

/* ---- after a hostile client ---- */

static void execute(enum ceu_op op, uint32_t number, const void *in, uint32_t bytes)
{
	REQUIRE(ceu_exec(world->node[0].ceu, op, number, in, bytes, NULL, 0) == CEU_OK);
}

static void renew_cq(struct sim_node *n)
{
	struct ceu_cq cq = {.log_entries = SIM_CQ_LOG, .buffer = n->cq, .record = n->cq_record};

	n->cqn ^= 1;
	for (unsigned int i = 0; i < 1u << SIM_CQ_LOG; i++)
		n->cq[i] = (struct cqe){.owner = CQE_OWNER_HW};
	memset(n->cq_record, 0, sizeof(*n->cq_record));
	n->cq_taken = 0;
	REQUIRE(ceu_map_context(n->ceu, CEU_CONTEXT_CQ, n->cqn) == CEU_OK);
	execute(CEU_SW2HW_CQ, n->cqn, &cq, sizeof(cq));
}

static void renew_srq(struct sim_node *n)
{
	struct ceu_srq srq = {.pd = sim_context(world, 0, 0)->pd,
			      .entries = SIM_SRQ_ENTRIES,
			      .stride = SIM_RQ_STRIDE,
			      .ring = n->srq.ring,
			      .record = n->srq.record};

	n->srq.srqn ^= 1;
	n->srq.posted = n->srq.record->posted = 0;
	REQUIRE(ceu_map_context(n->ceu, CEU_CONTEXT_SRQ, n->srq.srqn) == CEU_OK);
	execute(CEU_SW2HW_SRQ, n->srq.srqn, &srq, sizeof(srq));
}

/* No doorbell is left: each slot's phase is that of the round before. */
static void empty_doorbells(struct sim_node *n)
{
	uint32_t taken = n->page->uar->consumer_index;

	n->doorbells = taken;
	for (uint32_t i = 0; i < UAR_DOORBELLS; i++) {
		uint32_t at = taken + i;

		n->page->uar->doorbell[at % UAR_DOORBELLS] =
			at / UAR_DOORBELLS & 1 ? DOORBELL_PHASE : 0;
	}
}

/* Numbers are never used twice. */
static void begin_anew(void)
{
	sim_destroy(world);
	world = NULL;
	world_start();
}

void world_rebuild(void)
{
	struct sim_node *n = &world->node[0];
	uint32_t cqn = n->cqn, srqn = n->srq.srqn;
	struct eqe e;

	if (n->qp[0].qpn > 0xf00000) {
		begin_anew();
		return;
	}
	take_down(ALL);
	world_run(2);
	empty_doorbells(n);
	world_run(2);
	renew_cq(n);
	renew_srq(n);
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		world->params.service = plan[i].service;
		world->params.srq = plan[i].srq;
		sim_renew(world, 0, i);
	}
	execute(CEU_HW2SW_CQ, cqn, NULL, 0);
	execute(CEU_HW2SW_SRQ, srqn, NULL, 0);
	while (sim_poll_event(world, 0, &e))
		;
	fill_srq();
	bring(ALL);
}
