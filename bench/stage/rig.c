/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the pair of HCAs through the CEU and plays the client; see rig.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <rte_mbuf.h>
#include "command/ceu.h"
#include "pipeline/message.h"
#include "pmd-glue/port.h"
#include "rig.h"

enum {
	POOL_CACHE = 256,
	PACKETS = 4095,
	CLONES = 2047,
	PAGE = 4096,
	PD = 7,
	QPN_BASE = 0x123400,
	KEY_BASE = 0x456700,
	KEY_STEP = 0x100, /* the last byte is no part of its index */
	CQN = 3,
	MTU_4096 = 5
};

static int fail(const char *what)
{
	fprintf(stderr, "softhca-stage: %s failed\n", what);
	return -1;
}

static int make_pools(struct rig *r)
{
	r->packets = rte_pktmbuf_pool_create("packets", PACKETS, POOL_CACHE, MESSAGE_PRIV_BYTES,
					     PACKET_ROOM_BYTES, SOCKET_ID_ANY);
	r->descriptors =
		rte_pktmbuf_pool_create("descriptors", PACKETS, POOL_CACHE, MESSAGE_PRIV_BYTES,
					DESCRIPTOR_ROOM_BYTES, SOCKET_ID_ANY);
	r->clones = rte_pktmbuf_pool_create("clones", CLONES, POOL_CACHE, MESSAGE_PRIV_BYTES, 0,
					    SOCKET_ID_ANY);
	return r->packets && r->descriptors && r->clones ? 0 : fail("pools");
}

static int make_port(struct rig *r, unsigned i, const struct rig_options *o)
{
	static const char *const names[] = {"near", "away"};
	struct port_config c = {.type = PORT_RING,
				.queues = o->engines,
				.socket = SOCKET_ID_ANY,
				.addresses.count = 1};
	struct rig_side *s = &r->side[i];
	struct port_info info;

	snprintf(c.name, sizeof(c.name), "%s", names[i]);
	snprintf(c.peer, sizeof(c.peer), "%s", names[!i]);
	c.addresses.at[0] = (struct port_address){
		.ip = {[10] = 0xff, [11] = 0xff, 192, 168, 77, (uint8_t)(i + 1)}, .prefix_len = 24};
	if (port_create(&c, r->packets, r->clones, &s->port) || port_start(s->port))
		return fail("port");
	port_info(s->port, &info);
	memcpy(s->mac, info.mac, sizeof(s->mac));
	memcpy(s->ip, c.addresses.at[0].ip, sizeof(s->ip));
	return 0;
}

static int make_hca(struct rig *r, unsigned i, const struct rig_options *o)
{
	struct rig_side *s = &r->side[i];
	struct hca_config c;
	struct ceu_config u = {.engine_count = o->engines};

	hca_config_defaults(&c);
	c.settings.cc = o->cc;
	c.engines = o->engines;
	snprintf(c.name, sizeof(c.name), "%s", i ? "away" : "near");
	c.qps = c.cqs = c.mpts = 1024;
	c.packets = r->packets;
	c.descriptors = r->descriptors;
	c.link = port_link(s->port);
	c.gid_count = 1;
	memcpy(c.gids[0].src_mac, s->mac, 6);
	memcpy(c.gids[0].src_ip, s->ip, 16);
	if (hca_create(&c, &s->hca))
		return fail("HCA");
	u.qps = &s->hca->qps;
	u.v2p = &s->hca->v2p;
	u.completion = &s->hca->completion;
	if (!o->spread)
		hca_on_one_lcore(s->hca, true);
	u.engines = s->hca->engines;
	u.counters = &s->hca->counters;
	return ceu_create(&u, &s->ceu) || ceu_start(s->ceu) ? fail("CEU") : 0;
}

static void *pages(size_t bytes)
{
	void *p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);

	if (p)
		memset(p, 0, bytes);
	return p;
}

static int make_client(struct rig_client *c)
{
	c->page = pages(sizeof(*c->page));
	c->sq = pages(RIG_SLOTS * RIG_WQE_BYTES);
	c->rq = pages(RIG_SLOTS * RIG_RQ_STRIDE);
	c->record = pages(sizeof(*c->record));
	c->cq = pages(sizeof(*c->cq) << RIG_CQ_LOG);
	c->cq_record = pages(sizeof(*c->cq_record));
	c->data = pages(2 * RIG_DATA_BYTES);
	if (!c->page || !c->sq || !c->rq || !c->record || !c->cq || !c->cq_record || !c->data)
		return fail("client memory");
	for (unsigned i = 0; i < 1u << RIG_CQ_LOG; i++)
		c->cq[i].owner = CQE_OWNER_HW;
	return 0;
}

static int make_objects(struct rig_side *s, unsigned i, unsigned engine)
{
	struct rig_client *c = &s->client[engine];
	struct mpt_entry mpt = {.pd = PD,
				.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
					  ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
				.start = (uintptr_t)c->data,
				.length = 2 * RIG_DATA_BYTES,
				.phys = c->data};
	struct ceu_cq cq = {.client = (uint16_t)engine,
			    .log_entries = RIG_CQ_LOG,
			    .buffer = c->cq,
			    .record = c->cq_record};
	struct ceu_eq eq = {.page = c->page, .eventfd = eventfd(0, EFD_NONBLOCK)};
	struct ceu_qp qp = {.service = SERVICE_RC,
			    .pd = PD,
			    .client = (uint16_t)engine,
			    .engine = (uint16_t)hca_client_engine(s->hca, engine),
			    .cqn_snd = CQN + engine,
			    .cqn_rcv = CQN + engine,
			    .sq = c->sq,
			    .sq_bytes = RIG_SLOTS * RIG_WQE_BYTES,
			    .rq = c->rq,
			    .rq_stride = RIG_RQ_STRIDE,
			    .rq_entries = RIG_SLOTS,
			    .record = c->record};

	c->qpn = QPN_BASE + 5 + 2 * engine + i;
	c->key = mpt.key = KEY_BASE + KEY_STEP * engine + 9 + i;
	c->cqn = CQN + engine;
	if (ceu_exec(s->ceu, CEU_SW2HW_MPT, v2p_index(&s->hca->v2p, c->key), &mpt, sizeof(mpt),
		     NULL, 0))
		return fail("SW2HW_MPT");
	if (ceu_exec(s->ceu, CEU_SW2HW_EQ, engine, &eq, sizeof(eq), NULL, 0))
		return fail("SW2HW_EQ");
	if (ceu_map_context(s->ceu, CEU_CONTEXT_CQ, c->cqn) ||
	    ceu_map_context(s->ceu, CEU_CONTEXT_QP, c->qpn))
		return fail("MAP_ICM");
	if (ceu_exec(s->ceu, CEU_SW2HW_CQ, c->cqn, &cq, sizeof(cq), NULL, 0))
		return fail("SW2HW_CQ");
	if (ceu_exec(s->ceu, CEU_SW2HW_QP, c->qpn, &qp, sizeof(qp), NULL, 0))
		return fail("SW2HW_QP");
	hca_client_attach(s->hca, engine, qp.engine, c->page->uar);
	return 0;
}

static int modify(struct rig_side *s, uint8_t op, const struct rig_side *peer, unsigned engine,
		  uint32_t mask)
{
	uint32_t qpn = s->client[engine].qpn;
	struct ceu_modify m = {.attr = {.qpn = qpn,
					.mask = mask,
					.access = 0xf,
					.port = 1,
					.dest_qpn = peer->client[engine].qpn,
					.path_mtu = MTU_4096,
					.rq_psn = 100,
					.sq_psn = 100,
					.timeout = 18,
					.retry_cnt = 7,
					.rnr_retry = 7,
					.min_rnr_timer = 1,
					.max_rd_atomic = READS_MAX,
					.max_dest_rd_atomic = READS_MAX}};

	memcpy(m.attr.av.dgid, peer->ip, 16);
	memcpy(m.path.dst_mac, peer->mac, 6);
	memcpy(m.path.src_mac, s->mac, 6);
	memcpy(m.path.src_ip, s->ip, 16);
	return ceu_exec(s->ceu, op, qpn, &m, sizeof(m), NULL, 0) == CEU_OK ? 0 : fail("MODIFY_QP");
}

static int connect_side(struct rig_side *s, const struct rig_side *peer, unsigned engine)
{
	static const struct {
		uint8_t op;
		enum qp_state from, to;
	} steps[] = {
		{CEU_RST2INIT, QP_RST, QP_INIT},
		{CEU_INIT2RTR, QP_INIT, QP_RTR},
		{CEU_RTR2RTS, QP_RTR, QP_RTS},
	};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		const struct ceu_transition *t =
			ceu_transition_find(steps[i].from, steps[i].to, SERVICE_RC);

		if (modify(s, steps[i].op, peer, engine, t->required))
			return -1;
	}
	return 0;
}

static int make_clients(struct rig_side *s, unsigned i, unsigned engines)
{
	for (unsigned k = 0; k < engines; k++)
		if (make_client(&s->client[k]) || make_objects(s, i, k))
			return -1;
	return 0;
}

int rig_create(struct rig *r, const struct rig_options *options)
{
	struct rig_options o = *options;

	o.engines = o.engines ? o.engines : 1;
	*r = (struct rig){0};
	if (make_pools(r))
		return -1;
	for (unsigned i = 0; i < 2; i++)
		if (make_port(r, i, &o) || make_hca(r, i, &o) ||
		    make_clients(&r->side[i], i, o.engines))
			return -1;
	for (unsigned k = 0; k < o.engines; k++)
		if (connect_side(&r->side[0], &r->side[1], k) ||
		    connect_side(&r->side[1], &r->side[0], k))
			return -1;
	return 0;
}

static bool is_answered(enum user_opcode opcode)
{
	return opcode == USER_RDMA_READ || opcode == USER_ATOMIC_FA;
}

/* Writes one descriptor; returns its size in units. next_units: of the next one in the chain, 0:
 * last. */
static unsigned write_wqe(struct rig *r, unsigned engine, enum user_opcode opcode, uint32_t bytes,
			  uint32_t slot, unsigned next_units)
{
	struct rig_client *c = &r->side[0].client[engine];
	const struct rig_client *peer = &r->side[1].client[engine];
	uint8_t *at = c->sq + slot * RIG_WQE_BYTES;
	uint32_t next_offset = (slot + 1) % RIG_SLOTS * RIG_WQE_BYTES;
	struct wqe_next next = {.nda_nop = next_units ? next_offset | opcode : 0,
				.ee_nds = next_units,
				.flags = next_units ? 0 : WQE_SIGNALED};
	struct wqe_raddr raddr = {.rkey = peer->key,
				  .addr = (uintptr_t)peer->data +
					  (is_answered(opcode) ? 0 : RIG_DATA_BYTES)};
	struct wqe_data data = {.length = bytes,
				.lkey = c->key,
				.addr = (uintptr_t)c->data +
					(is_answered(opcode) ? RIG_DATA_BYTES : 0)};
	struct wqe_atomic atomic = {.swap_add = 1};
	uint8_t *p = at;

	memcpy(p, &next, sizeof(next));
	p += sizeof(next);
	if (opcode != USER_SEND) {
		memcpy(p, &raddr, sizeof(raddr));
		p += sizeof(raddr);
	}
	if (opcode == USER_ATOMIC_FA) {
		memcpy(p, &atomic, sizeof(atomic));
		p += sizeof(atomic);
	}
	memcpy(p, &data, sizeof(data));
	p += sizeof(data);
	return (unsigned)(p - at) / WQE_UNIT_BYTES;
}

static void ring_doorbell(struct rig_client *c, enum user_opcode opcode, uint32_t slot,
			  unsigned units)
{
	uint32_t phase = c->doorbells / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;
	uint64_t w0 =
		slot * RIG_WQE_BYTES / WQE_UNIT_BYTES << DOORBELL_OFFSET_SHIFT | phase | opcode;
	uint64_t w1 = c->qpn << DOORBELL_QPN_SHIFT | units;

	__atomic_store_n(&c->page->uar->doorbell[c->doorbells % UAR_DOORBELLS], w1 << 32 | w0,
			 __ATOMIC_RELEASE);
	c->doorbells++;
}

static void post_receives(struct rig_client *c, uint32_t bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *at = c->rq + (c->posted + i) % RIG_SLOTS * RIG_RQ_STRIDE;
		struct wqe_data data = {.length = bytes,
					.lkey = c->key,
					.addr = (uintptr_t)c->data + RIG_DATA_BYTES};

		memset(at, 0, RIG_RQ_STRIDE);
		memcpy(at + sizeof(struct wqe_next), &data, sizeof(data));
	}
	c->posted += n;
	__atomic_store_n(&c->record->rq_posted, c->posted, __ATOMIC_RELEASE);
}

void rig_post(struct rig *r, unsigned engine, enum user_opcode opcode, uint32_t bytes, unsigned n,
	      unsigned list)
{
	struct rig_client *c = &r->side[0].client[engine];
	unsigned units = opcode == USER_SEND ? 2 : opcode == USER_ATOMIC_FA ? 4 : 3;

	if (opcode == USER_SEND)
		post_receives(&r->side[1].client[engine], bytes, n);
	for (unsigned done = 0; done < n; done += list) {
		unsigned chain = n - done < list ? n - done : list;
		uint32_t first = c->posted % RIG_SLOTS;

		for (unsigned i = 0; i < chain; i++, c->posted++)
			write_wqe(r, engine, opcode, bytes, c->posted % RIG_SLOTS,
				  i + 1 < chain ? units : 0);
		ring_doorbell(c, opcode, first, units);
	}
}

/* Messages that a completion of side 0 covers: all up to its descriptor. */
static uint32_t account(struct rig_client *c, const struct cqe *e)
{
	uint32_t slot = e->wqe_offset / RIG_WQE_BYTES;
	uint32_t n = (slot + 1 - c->received) % RIG_SLOTS;

	c->received += n;
	return n;
}

int rig_poll(struct rig *r, unsigned engine, unsigned side)
{
	struct rig_client *c = &r->side[side].client[engine];
	int n = 0;

	for (;;) {
		struct cqe *e = &c->cq[c->polled & ((1u << RIG_CQ_LOG) - 1)];

		if (__atomic_load_n(&e->owner, __ATOMIC_ACQUIRE) & CQE_OWNER_HW)
			break;
		if (e->opcode == USER_INVALID) {
			fprintf(stderr, "softhca-stage: completion with error, syndrome 0x%x\n",
				e->imm_or_error & 0xff);
			return -1;
		}
		n += e->is_send ? (int)account(c, e) : 1;
		e->owner = CQE_OWNER_HW;
		c->polled++;
	}
	if (n)
		__atomic_store_n(&c->cq_record->consumer_index, c->polled, __ATOMIC_RELEASE);
	return n;
}
