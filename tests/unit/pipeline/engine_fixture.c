/* SPDX-License-Identifier: BSD-3-Clause */
/* See engine_fixture.h. Test code only. */
#include <rte_malloc.h>
#include "world_eal.h"
#include "send-queue/send_queue.h"
#include "engine_fixture.h"
#include "pipeline/machine.h"

struct fx *fx;

static struct rte_mbuf *hidden[FX_PACKETS + FX_DESCRIPTORS];
static unsigned hidden_count;

TEST_GROUP(.setup = world_eal, .teardown = world_eal_end);

/* ---- the port ---- */

static uint16_t port_rx(struct link_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct fx_port *p = (struct fx_port *)port;
	unsigned got = 0;

	assert_true(n > 0);
	while (got < n && p->rx_next < p->rx_count)
		m[got++] = p->rx[p->rx_next++];
	return got;
}

static uint16_t port_tx(struct link_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct fx_port *p = (struct fx_port *)port;
	unsigned took = RTE_MIN((unsigned)n, p->tx_room);

	for (unsigned i = 0; i < took; i++) {
		assert_true(p->tx_count < FX_PORT_FRAMES);
		p->tx[p->tx_count++] = m[i];
	}
	return took;
}

/* ---- making ---- */

struct wire_path fx_path(bool ipv6, bool vlan, bool towards_us)
{
	struct wire_path p = {
		.sport = 0xc123, .ttl = 64, .is_ipv6 = ipv6, .has_vlan = vlan, .vlan_tci = 0x2064};

	for (unsigned i = 0; i < 16; i++) {
		p.src_ip[i] = (uint8_t)(towards_us ? 0x20 + i : 0x40 + i);
		p.dst_ip[i] = (uint8_t)(towards_us ? 0x40 + i : 0x20 + i);
	}
	if (!ipv6) {
		memcpy(p.src_ip, ip_v4_prefix, sizeof(ip_v4_prefix));
		memcpy(p.dst_ip, ip_v4_prefix, sizeof(ip_v4_prefix));
	}
	return p;
}

void fx_make_qp(struct qp *q, uint32_t qpn, uint32_t index)
{
	memset(q, 0, sizeof(*q));
	q->state = QP_RTS;
	q->service = SERVICE_RC;
	q->epoch = 5;
	q->mtu_code = wire_mtu_code(FX_MTU);
	q->mtu_bytes = FX_MTU;
	q->pkey = 0xffff;
	q->client = FX_CLIENT;
	q->retry_cnt = q->rrc.retry_left = 3;
	q->rnr_retry = q->rrc.rnr_left = 2;
	q->timeout = 8; /* 1.05 ms */
	q->max_rd_atomic = 4;
	q->pd = FX_PD;
	q->dest_qpn = FX_DEST_QPN + (qpn & 0xff);
	q->qkey = 0x11111111;
	q->cqn_snd = q->cqn_rcv = FX_CQN;
	q->sq_bytes = FX_SQ_BYTES;
	q->index = index;
	q->sq_psn = q->rtc.next_psn = q->rrc.unacked_psn = FX_PSN;
	q->rtc.ssn = 1;
	q->rrc.proven = 1;
	q->rrc.credits = CREDITS_UNLIMITED; /* as most peers */
	__atomic_store_n(&q->qpn, qpn, __ATOMIC_RELEASE);
}

void fx_service(unsigned qp, enum qp_service service)
{
	fx->qp[qp]->service = service;
}

static void make_qps(const struct fx_options *o)
{
	struct wire_path path = fx_path(o->ipv6, o->vlan, false);

	for (unsigned i = 0; i < FX_QPS; i++) {
		uint32_t qpn = FX_QPN + i + 1, index = qpn & fx->h->qps.mask;
		struct qp *q = qp_at(&fx->h->qps, index);

		fx_make_qp(q, qpn, index);
		fx->qp[i] = q;
		fx->sq[i] = calloc(1, FX_SQ_BYTES);
		q->sq = fx->sq[i];
		memcpy(q->path[0].peer_ip, path.dst_ip, 16);
		wire_template_build(&q->path[0].template, &path);
	}
}

static void make_memory(uint32_t key, uint32_t access, uint64_t start, uint64_t length)
{
	struct mpt_entry m = {.key = key,
			      .pd = FX_PD,
			      .access = access,
			      .start = start,
			      .length = length,
			      .phys = fx->memory};

	assert_int_equal(v2p_write_mpt(&fx->h->v2p, &m), 0);
}

static struct rte_mempool *make_pool(const char *name, unsigned n, unsigned room)
{
	struct rte_mempool *p =
		rte_pktmbuf_pool_create(name, n, 0, MESSAGE_PRIV_BYTES, room, SOCKET_ID_ANY);

	assert_non_null(p);
	return p;
}

static void make_hca(const struct fx_options *o)
{
	struct hca_config c;

	hca_config_defaults(&c);
	strcpy(c.name, "fx");
	c.qps = o->qps ? o->qps : 64;
	c.engines = o->engines ? o->engines : 1;
	c.cqs = 64;
	c.mpts = 256;
	c.packets = fx->packets;
	c.descriptors = fx->descriptors;
	c.link = &fx->port.port;
	if (o->timer_slots)
		c.settings.timer_slots = o->timer_slots;
	if (o->timer_tick_ns)
		c.settings.timer_tick_ns = o->timer_tick_ns;
	c.gids[0] = fx_path(false, o->vlan, false);
	c.gids[1] = fx_path(true, o->vlan, false);
	c.gid_count = 2;
	assert_int_equal(hca_create(&c, &fx->h), 0);
	fx->e = fx->h->engines;
	fx->e->now_ns = FX_START_NS;
}

/* Bytes allocated from DPDK's heap: an HCA frees all of its own. */
static size_t heap_bytes(void)
{
	struct rte_malloc_socket_stats s;

	assert_int_equal(rte_malloc_get_socket_stats(rte_socket_id(), &s), 0);
	return s.heap_allocsz_bytes;
}

static size_t heap_before;

int fx_setup(void **state)
{
	static const struct fx_options none;
	const struct fx_options *o = *state ? *state : &none;

	machine_set_test(o->name);
	fx = aligned_alloc(64, RTE_ALIGN(sizeof(*fx), 64));
	memset(fx, 0, sizeof(*fx));
	fx->port.port = (struct link_port){.rx_burst = port_rx, .tx_burst = port_tx};
	fx->port.tx_room = FX_PORT_FRAMES;
	fx->memory = calloc(1, FX_MEMORY_BYTES);
	fx->page = aligned_alloc(4096, RTE_ALIGN(sizeof(*fx->page), 4096));
	memset(fx->page, 0, sizeof(*fx->page));
	fx->cq = aligned_alloc(64, sizeof(struct cqe) << FX_CQ_LOG);
	memset(fx->cq, 0xff, sizeof(struct cqe) << FX_CQ_LOG);
	heap_before = heap_bytes();
	fx->packets = make_pool("fx_packets", FX_PACKETS, PACKET_ROOM_BYTES);
	fx->descriptors = make_pool("fx_descriptors", FX_DESCRIPTORS, DESCRIPTOR_ROOM_BYTES);
	hidden_count = 0;
	make_hca(o);
	make_qps(o);
	make_memory(FX_KEY, 0xf, FX_VA, FX_MEMORY_BYTES);
	make_memory(FX_READ_KEY, 0, FX_VA, FX_MEMORY_BYTES);
	make_memory(FX_HUGE_KEY, 0xf, FX_HUGE_VA, 1ull << 32);
	assert_int_equal(
		cq_write(&fx->h->completion, FX_CQN, FX_CLIENT, fx->cq, FX_CQ_LOG, &fx->cq_record),
		0);
	eq_write(&fx->h->completion, FX_CLIENT, fx->page, -1);
	hca_client_attach(fx->h, FX_CLIENT, 0, fx->page->uar);
	return 0;
}

/* ---- unmaking ---- */

static void close_qps(void)
{
	const uint32_t requester = 1u << WAKE_WS | 1u << WAKE_RTC | 1u << WAKE_RRC;

	for (unsigned i = 0; i < FX_QPS; i++) {
		__atomic_store_n(&fx->qp[i]->qpn, 0, __ATOMIC_SEQ_CST);
		hca_close_qp(fx->h, fx->qp[i]);
	}
	for (unsigned round = 0; round < 20; round++) {
		hca_poll_stage(fx->e, STAGE_DOORBELL_WQE);
		hca_poll_stage(fx->e, STAGE_SEGMENTATION);
		hca_poll_stage(fx->e, STAGE_REQUESTER_RECV);
	}
	for (unsigned i = 0; i < FX_QPS; i++)
		assert_int_equal(fx->qp[i]->closed & requester, requester);
}

int fx_teardown(void **state)
{
	fx_refill();
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		fx_unfill(i);
	hca_client_detach(fx->h, FX_CLIENT);
	close_qps();
	assert_int_equal(fx->e->held_total, 0);
	hca_destroy(fx->h);
	for (; fx->port.rx_next < fx->port.rx_count; fx->port.rx_next++)
		rte_pktmbuf_free(fx->port.rx[fx->port.rx_next]);
	for (unsigned i = 0; i < fx->port.tx_count; i++)
		rte_pktmbuf_free(fx->port.tx[i]);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
	assert_int_equal(rte_mempool_in_use_count(fx->descriptors), 0);
	rte_mempool_free(fx->packets);
	rte_mempool_free(fx->descriptors);
	assert_true(heap_bytes() == heap_before);
	for (unsigned i = 0; i < FX_QPS; i++)
		free(fx->sq[i]);
	free(fx->memory);
	free(fx->page);
	free(fx->cq);
	free(fx);
	return 0;
}

/* ---- elements ---- */

static const uint8_t traits_of[USER_OPCODES] = {
#define OPERATION(id, code, services, traits, packets, wr, wc, call) [USER_##id] = traits,
#include "host-abi/user_opcodes.def"
};

struct rte_mbuf *fx_request(unsigned qp, uint8_t opcode, uint32_t length, uint32_t wqe_offset)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(fx->descriptors);
	bool huge = length > FX_MEMORY_BYTES;
	struct wqe_data d = {.length = length,
			     .lkey = huge ? FX_HUGE_KEY : FX_KEY,
			     .addr = huge ? FX_HUGE_VA : FX_VA};

	if (!m) /* so that the compiler sees it, too */
		abort();
	*request_of(m) = (struct request){.qpn = fx->qp[qp]->qpn,
					  .opcode = opcode,
					  .service = fx->qp[qp]->service,
					  .flags = REQUEST_SIGNALED,
					  .wqe_offset = wqe_offset,
					  .wqe_bytes = 32,
					  .client = FX_CLIENT,
					  .length = length,
					  .data_first = 16,
					  .data_units = length ? 1 : 0,
					  .epoch = fx->qp[qp]->epoch,
					  .traits = traits_of[opcode],
					  .raddr = 0x1000,
					  .rkey = 0x99};
	memset(request_wqe(m), 0, 32);
	memcpy(request_wqe(m) + 16, &d, sizeof(d));
	if (fx->qp[qp]->service == SERVICE_UD) {
		struct wqe_ud u = {.dmac = {2}, .qpn = FX_DEST_QPN};

		request_of(m)->ud_offset = 32;
		memcpy(request_wqe(m) + 32, &u, sizeof(u));
	}
	return m;
}

/* Requests inside of the engine count as held by their client; fillers (no QPN) do not. */
static void account(enum channel_id which, struct rte_mbuf *m, uint32_t n)
{
	switch (which) {
	case CHANNEL_DBP_WS:
	case CHANNEL_WS_WP:
	case CHANNEL_WP_WS:
	case CHANNEL_WP_DP:
	case CHANNEL_DP_RTC:
	case CHANNEL_RTC_RRC:
		if (!request_of(m)->qpn)
			return;
		fx->e->held[request_of(m)->client] += n;
		fx->e->held_total += n;
		return;
	default:
		return;
	}
}

struct rte_mbuf *fx_take(enum channel_id from)
{
	struct rte_mbuf *m;

	if (!channel_take(&fx->e->channel[from], &m, 1))
		return NULL;
	account(from, m, -1);
	return m;
}

void fx_put(enum channel_id to, struct rte_mbuf *m)
{
	assert_true(channel_room(&fx->e->channel[to]) > 0);
	account(to, m, 1);
	assert_int_equal(channel_try_put(&fx->e->channel[to], &m, 1), 1);
}

unsigned fx_ring_count(enum channel_id which)
{
	return rte_ring_count(fx->e->channel[which].ring);
}

void fx_fill(enum channel_id which, unsigned room)
{
	while (rte_ring_free_count(fx->e->channel[which].ring) > room) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(fx->descriptors);

		assert_non_null(m);
		memset(request_of(m), 0, sizeof(struct request));
		assert_int_equal(channel_try_put(&fx->e->channel[which], &m, 1), 1);
	}
}

void fx_unfill(enum channel_id which)
{
	struct rte_mbuf *m;

	while ((m = fx_take(which)))
		rte_pktmbuf_free(m);
}

void fx_exhaust(struct rte_mempool *pool, unsigned leave)
{
	while (rte_mempool_avail_count(pool) > leave)
		hidden[hidden_count++] = rte_pktmbuf_alloc(pool);
}

void fx_refill(void)
{
	while (hidden_count)
		rte_pktmbuf_free(hidden[--hidden_count]);
}

/* ---- results ---- */

const struct cqe *fx_cqe(void)
{
	static struct cqe c;
	struct cqe *at = &fx->cq[fx->cq_taken & ((1u << FX_CQ_LOG) - 1)];

	if (__atomic_load_n(&at->owner, __ATOMIC_ACQUIRE) & CQE_OWNER_HW)
		return NULL;
	c = *at;
	at->owner = CQE_OWNER_HW;
	__atomic_store_n(&fx->cq_record.consumer_index, ++fx->cq_taken, __ATOMIC_RELEASE);
	return &c;
}

void fx_assert_cqe(uint8_t opcode, uint32_t wqe_offset)
{
	const struct cqe *c = fx_cqe();

	assert_non_null(c);
	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->wqe_offset, wqe_offset);
	assert_int_equal(c->is_send, 1);
}

void fx_assert_error(uint8_t syndrome, uint32_t wqe_offset)
{
	const struct cqe *c = fx_cqe();

	assert_non_null(c);
	assert_int_equal(c->opcode, USER_INVALID);
	assert_int_equal(c->imm_or_error & 0xff, syndrome);
	assert_int_equal(c->wqe_offset, wqe_offset);
	assert_int_equal(c->is_send, 1);
}

void fx_assert_no_cqe(void)
{
	assert_null(fx_cqe());
}

uint8_t fx_pattern(uint8_t seed, uint32_t i)
{
	return (uint8_t)(seed + 7 * i + (i >> 8));
}

void fx_fill_memory(uint32_t offset, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		fx->memory[offset + i] = fx_pattern(seed, i);
}

void fx_assert_pattern(const uint8_t *p, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (p[i] != fx_pattern(seed, i))
			fail_msg("byte %u of %u is %02x, not %02x", i, bytes, p[i],
				 fx_pattern(seed, i));
}

uint64_t fx_counter(enum counter which)
{
	return hca_counter(fx->h, which);
}
