/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine that the responder's tests run on. Test code only. */
#include <rte_errno.h>
#include "world_eal.h"
#include "pipeline/machine.h"
#include "responder_fixture.h"

struct fx *fx;

enum { PACKETS = 255, RX_PACKETS = 511, HELD_MAX = 256 };

static struct {
	struct rte_mbuf *m;
	uint8_t copy[512];
	uint32_t bytes;
} held[HELD_MAX];
static unsigned helds;
static struct wire_template to_us;

TEST_GROUP(.setup = world_eal, .teardown = world_eal_end);

static struct wire_path path_of(bool ipv6, bool towards_us)
{
	struct wire_path p = {.sport = 0xc123, .ttl = 64, .tos = 0x20, .is_ipv6 = ipv6};

	for (unsigned i = 0; i < 16; i++) {
		p.src_ip[i] = (uint8_t)(towards_us ? 0x20 + i : 0x40 + i);
		p.dst_ip[i] = (uint8_t)(towards_us ? 0x40 + i : 0x20 + i);
	}
	return p;
}

static void make_qp(struct qp *q, uint32_t qpn, uint32_t index, struct qp_record *record)
{
	struct wire_path path = path_of(fx->ipv6, false);

	memset(q, 0, sizeof(*q));
	q->state = QP_RTS;
	q->service = SERVICE_RC;
	q->mtu_code = 1;
	q->mtu_bytes = FX_MTU;
	q->pkey = 0xffff;
	q->client = FX_CLIENT;
	q->min_rnr_timer = 12;
	q->max_dest_rd_atomic = 4;
	q->access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
	q->pd = FX_PD;
	q->dest_qpn = FX_DEST_QPN;
	q->qkey = 0x11111111;
	q->cqn_rcv = FX_CQN;
	q->rq = fx->rq;
	q->rq_pd = FX_PD;
	q->rq_entries = FX_RQ_ENTRIES;
	q->rq_stride = FX_RQ_STRIDE;
	q->index = index;
	q->record = record;
	q->rq_psn = FX_PSN;
	wire_template_build(&q->path[0].template, &path);
	q->qpn = qpn;
}

static void make_memory(uint32_t key, uint32_t access)
{
	struct mpt_entry m = {.key = key,
			      .pd = FX_PD,
			      .access = access,
			      .start = FX_VA,
			      .length = FX_MEMORY_BYTES,
			      .phys = fx->memory};

	assert_int_equal(v2p_write_mpt(&fx->v2p, &m), 0);
}

static struct rte_mempool *make_pool(const char *name, unsigned n)
{
	struct rte_mempool *p =
		rte_pktmbuf_pool_create(name, n, 0, MESSAGE_PRIV_BYTES, PACKET_ROOM_BYTES, 0);

	assert_non_null(p);
	return p;
}

static void make_tables(void)
{
	struct engine *e = &fx->e;
	struct v2p_config v2p = {.name = "fx",
				 .mpts = 256,
				 .mtts = 256,
				 .mpt_cache_lines = 16,
				 .mtt_cache_lines = 4,
				 .counters = stage_counters(e, STAGE_RESPONDER_EXEC),
				 .socket = SOCKET_ID_ANY};

	assert_int_equal(qp_table_create(&fx->qps, 16), 0);
	assert_int_equal(v2p_create(&fx->v2p, &v2p), 0);
	assert_int_equal(completion_create(&fx->completion, 64, 16, 16), 0);
	e->qps = &fx->qps;
	e->v2p = &fx->v2p;
	fx->port = (struct v2p_port){.v2p = &fx->v2p,
				     .counters = stage_counters(e, STAGE_RESPONDER_EXEC)};
	e->v2p_port[STAGE_RESPONDER_EXEC] = &fx->port;
	e->completion = &fx->completion;
	assert_int_equal(cq_write(&fx->completion, FX_CQN, FX_CLIENT, fx->cq, 7, &fx->cq_record),
			 0);
	eq_write(&fx->completion, FX_CLIENT, fx->page, -1);
}

int fx_setup(void **state)
{
	static const enum channel_id channels[] = {CHANNEL_HP_EE, CHANNEL_EE_RESPG,
						   CHANNEL_RESPG_TXA};
	struct wire_path path;

	machine_set_test(*state);
	fx = aligned_alloc(4096, RTE_ALIGN(sizeof(*fx), 4096));
	memset(fx, 0, sizeof(*fx));
	fx->memory = aligned_alloc(4096, FX_MEMORY_BYTES);
	memset(fx->memory, 0xee, FX_MEMORY_BYTES);
	fx->page = calloc(1, sizeof(*fx->page));
	fx->e.count = 1;
	fx->e.settings.quantum_bytes = 4 * FX_MTU;
	for (unsigned i = 0; i < sizeof(fx->cq) / sizeof(fx->cq[0]); i++)
		fx->cq[i].owner = CQE_OWNER_HW;
	make_tables();
	fx->e.packets = fx->e.clones = make_pool("fx_packets", PACKETS);
	fx->rx = make_pool("fx_rx", RX_PACKETS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(channel_create(&fx->e.channel[channels[i]], channels[i], "fx",
						false, SOCKET_ID_ANY),
				 0);
	for (unsigned i = 0; i < WAKE_COUNT; i++)
		wake_list_init(&fx->e.wake[i]);
	make_memory(FX_KEY, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE |
				    ACCESS_REMOTE_ATOMIC);
	make_memory(FX_READ_KEY, ACCESS_REMOTE_READ);
	fx->qp = qp_at(&fx->qps, FX_QPN & fx->qps.mask);
	fx->qp2 = qp_at(&fx->qps, FX_QPN2 & fx->qps.mask);
	make_qp(fx->qp, FX_QPN, FX_QPN & fx->qps.mask, &fx->record);
	make_qp(fx->qp2, FX_QPN2, FX_QPN2 & fx->qps.mask, &fx->record2);
	path = path_of(false, true);
	wire_template_build(&to_us, &path);
	helds = 0;
	return responder_create(&fx->e);
}

static void check_held(void)
{
	for (unsigned i = 0; i < helds; i++) {
		assert_memory_equal(rte_pktmbuf_mtod(held[i].m, void *), held[i].copy,
				    held[i].bytes);
		rte_pktmbuf_free(held[i].m);
	}
	helds = 0;
}

int fx_teardown(void **state)
{
	responder_destroy(&fx->e);
	for (unsigned i = 0; i < CHANNEL_COUNT; i++)
		channel_destroy(&fx->e.channel[i]);
	check_held();
	assert_int_equal(rte_mempool_avail_count(fx->rx), RX_PACKETS);
	assert_int_equal(rte_mempool_avail_count(fx->e.packets), PACKETS);
	rte_mempool_free(fx->rx);
	rte_mempool_free(fx->e.packets);
	completion_destroy(&fx->completion);
	v2p_destroy(&fx->v2p);
	qp_table_destroy(&fx->qps);
	free(fx->page);
	free(fx->memory);
	free(fx);
	return 0;
}

uint8_t fx_pattern(uint8_t seed, uint32_t i)
{
	return (uint8_t)(seed + 7 * i + (i >> 8));
}

void fx_assert_pattern(const uint8_t *p, uint32_t bytes, uint8_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (p[i] != fx_pattern(seed, i))
			fail_msg("byte %u of %u is %02x, not %02x", i, bytes, p[i],
				 fx_pattern(seed, i));
}

static void fill_arrival(struct rte_mbuf *m, uint32_t qpn)
{
	struct arrival *a = arrival_of(m);
	struct wire_frame f;
	enum wire_error error = wire_parse_frame(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, &f);

	assert_true(error == WIRE_OK || error == WIRE_ERR_OPCODE);
	memset(a, 0xa5, sizeof(*a));
	a->icrc_bytes = 0; /* as if HeaderParser had checked it */
	a->qpn = qpn;
	a->headers = f.h;
	a->payload = rte_pktmbuf_mtod_offset(m, const uint8_t *, f.payload_offset);
	a->payload_elsewhere = a->congested = 0;
	a->packets = 1;
	a->payload_skip = 0;
	a->payload_bytes = f.payload_bytes;
	a->l3_offset = f.l3_offset;
	a->is_ipv6 = f.is_ipv6;
}

void fx_send_to(uint32_t qpn, struct wire_headers h, uint32_t payload_bytes, uint8_t seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fx->rx);
	uint8_t opcode = h.opcode;
	bool defined = wire_opcodes[opcode].defined;
	uint8_t *l2, *p;
	unsigned n;

	assert_non_null(m);
	if (fx->ipv6) {
		struct wire_path path = path_of(true, true);

		wire_template_build(&to_us, &path);
	}
	l2 = rte_pktmbuf_mtod(m, uint8_t *);
	h.opcode = defined ? opcode : (uint8_t)WIRE_RC_SEND_ONLY;
	h.dest_qp = qpn;
	h.pkey = 0xffff;
	if (!h.pad)
		h.pad = -payload_bytes & 3;
	n = wire_write_transport(l2 + to_us.encap_bytes, &h);
	p = l2 + to_us.encap_bytes + n;
	for (uint32_t i = 0; i < payload_bytes; i++)
		*p++ = fx_pattern(seed, i);
	memset(p, 0, h.pad + 4u);
	p += h.pad + 4;
	l2[to_us.encap_bytes] = opcode;
	m->data_len = (uint16_t)(p - l2);
	m->pkt_len = m->data_len;
	wire_stamp(l2, &to_us, m->data_len - to_us.encap_bytes, 9);
	fill_arrival(m, qpn);
	if (fx->keep_rx) {
		rte_mbuf_refcnt_update(m, 1);
		held[helds].m = m;
		held[helds].bytes = RTE_MIN(m->data_len, (uint16_t)512);
		memcpy(held[helds].copy, l2, held[helds].bytes);
		helds++;
	}
	channel_put_one(&fx->e.channel[CHANNEL_HP_EE], m);
}

static void collect(struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct fx_frame *to = &fx->frames[fx->frame_count++];
	struct wire_frame f;
	uint32_t icrc;

	assert_true(fx->frame_count <= FX_FRAMES);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->pkt_len, m->data_len);
	assert_int_equal(!!(m->ol_flags & ICRC_OMITTED), fx->e.settings.icrc == ICRC_NEVER);
	icrc_complete(m);
	assert_int_equal(wire_parse_frame(frame, m->data_len, &f), WIRE_OK);
	assert_int_equal(f.transport_end + 4, m->data_len);
	icrc = wire_icrc(frame + f.l3_offset, f.transport_end - f.l3_offset, f.is_ipv6);
	assert_int_equal(wire_icrc_load(frame + f.transport_end), icrc);
	assert_int_equal(packet_of(m)->flags, PACKET_BUILT);
	assert_int_equal(f.h.dest_qp, FX_DEST_QPN);
	assert_int_equal(f.h.pkey, 0xffff);
	assert_int_equal(f.h.migreq, 0);
	for (unsigned i = 0; i < f.h.pad; i++)
		assert_int_equal(frame[f.payload_offset + f.payload_bytes + i], 0);
	to->h = f.h;
	to->bytes = f.payload_bytes;
	memcpy(to->payload, frame + f.payload_offset, f.payload_bytes);
	rte_pktmbuf_free(m);
}

void fx_collect(void)
{
	struct rte_mbuf *m;

	while (channel_take(&fx->e.channel[CHANNEL_RESPG_TXA], &m, 1))
		collect(m);
}

void fx_send_read(uint32_t qpn, uint32_t psn, uint32_t packets)
{
	struct wire_headers h = {.opcode = WIRE_RC_READ_REQUEST,
				 .psn = psn & PSN_MASK,
				 .va = FX_VA,
				 .rkey = FX_KEY,
				 .dma_len = packets * FX_MTU};

	fx_send_to(qpn, h, 0, 0);
}

struct wire_headers fx_write(uint32_t psn)
{
	return (struct wire_headers){.opcode = WIRE_RC_WRITE_ONLY,
				     .psn = psn & PSN_MASK,
				     .va = FX_VA,
				     .rkey = FX_KEY,
				     .dma_len = 4,
				     .ackreq = 1};
}

void fx_send_write(uint32_t qpn, uint32_t psn, uint32_t key)
{
	struct wire_headers h = fx_write(psn);

	h.rkey = key;
	fx_send_to(qpn, h, 4, 1);
}

unsigned fx_poll(unsigned times)
{
	unsigned n = 0;

	while (times--) {
		n += responder_exec_poll(&fx->e);
		fx_collect();
	}
	return n;
}

const struct fx_frame *fx_frame(void)
{
	assert_true(fx->frame_next < fx->frame_count);
	return &fx->frames[fx->frame_next++];
}

void fx_assert_no_frame(void)
{
	assert_int_equal(fx->frame_next, fx->frame_count);
}

void fx_assert_ack(uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	const struct fx_frame *f = fx_frame();

	assert_int_equal(f->h.opcode, WIRE_RC_ACK);
	assert_int_equal(f->h.psn, psn & PSN_MASK);
	assert_int_equal(f->h.syndrome, syndrome);
	assert_int_equal(f->h.msn, msn);
	assert_int_equal(f->bytes, 0);
}

void fx_post(unsigned units, const struct wqe_data *data)
{
	struct qp *q = fx->qp;
	uint8_t *wqe = fx->rq + (size_t)(q->record->rq_posted % q->rq_entries) * q->rq_stride;

	memset(wqe, 0, q->rq_stride);
	memcpy(wqe + WQE_UNIT_BYTES, data, units * sizeof(*data));
	q->record->rq_posted++;
}

void fx_post_simple(uint32_t offset, uint32_t bytes)
{
	struct wqe_data d = {.length = bytes, .lkey = FX_KEY, .addr = FX_VA + offset};

	fx_post(1, &d);
}

const struct cqe *fx_cqe(void)
{
	struct cqe *c = &fx->cq[fx->cq_taken % 128];

	if (c->owner & CQE_OWNER_HW)
		return NULL;
	fx->cq_taken++;
	return c;
}

void fx_assert_cqe(uint8_t opcode, uint32_t byte_count, uint32_t imm_or_error, uint32_t wqe_offset)
{
	const struct cqe *c = fx_cqe();

	assert_non_null(c);
	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->is_send, 0);
	assert_int_equal(c->my_qpn, FX_QPN);
	assert_int_equal(c->imm_or_error, imm_or_error);
	assert_int_equal(c->wqe_offset, wqe_offset);
	if (opcode != USER_INVALID)
		assert_int_equal(c->byte_count, byte_count);
}

void fx_assert_no_cqe(void)
{
	assert_null(fx_cqe());
}

void fx_assert_event(enum eqe_type type, uint32_t number)
{
	const struct eqe *q = &fx->page->eq[fx->eq_taken++];

	assert_int_equal(q->owner, 1);
	assert_int_equal(q->type, type);
	assert_int_equal(q->number, number);
}

void fx_assert_no_event(void)
{
	assert_int_equal(fx->page->eq[fx->eq_taken].owner, 0);
}

uint64_t fx_counter(enum counter which)
{
	return counter_read(stage_counters(&fx->e, STAGE_RESPONDER_EXEC), which);
}
