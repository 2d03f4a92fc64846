/* SPDX-License-Identifier: BSD-3-Clause */
/* ReqPktGen behind RequesterTransControl: whole frames in RPG_TXA, read back with
 * lib/common/wire. */
#include "requester_fixture.h"

struct got {
	struct wire_frame f;
	bool icrc_omitted;
	uint8_t bytes[FRAME_BYTES_MAX];
	uint32_t length;
};

/* The next frame, parsed, and its ICRC computed again; if it has none, as it would be captured. */
static void take_frame(struct got *g)
{
	struct rte_mbuf *m = fx_take(CHANNEL_RPG_TXA);
	uint32_t icrc;

	assert_non_null(m);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->pkt_len, m->data_len);
	g->icrc_omitted = m->ol_flags & ICRC_OMITTED;
	if (g->icrc_omitted)
		assert_int_equal(
			wire_icrc_load(rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len - 4)), 0);
	icrc_complete(m);
	assert_false(m->ol_flags & ICRC_OMITTED);
	g->length = m->data_len;
	memcpy(g->bytes, rte_pktmbuf_mtod(m, void *), g->length);
	rte_pktmbuf_free(m);
	assert_int_equal(wire_parse_frame(g->bytes, g->length, &g->f), WIRE_OK);
	assert_int_equal(g->f.transport_end + WIRE_ICRC_BYTES, g->length);
	icrc = wire_icrc(g->bytes + g->f.l3_offset, g->f.transport_end - g->f.l3_offset,
			 g->f.is_ipv6);
	assert_true(wire_icrc_load(g->bytes + g->f.transport_end) == icrc);
}

static const uint32_t sizes[] = {0,   1,   2,	3,   4,	   5,	       255,   256,
				 257, 258, 259, 260, 1000, FX_MTU - 1, FX_MTU};

/* Buffers that carried something before. */
static void used_buffers(void)
{
	struct rte_mbuf *m[FX_PACKETS];

	assert_int_equal(rte_pktmbuf_alloc_bulk(fx->packets, m, FX_PACKETS), 0);
	for (unsigned i = 0; i < FX_PACKETS; i++)
		memset(m[i]->buf_addr, 0xee, m[i]->buf_len);
	rte_pktmbuf_free_bulk(m, FX_PACKETS);
}

/* The i-th frame of that size, with everything that its place says. */
static void assert_frame(const struct got *g, const struct fx_options *o, unsigned i, uint32_t size)
{
	assert_int_equal(g->f.is_ipv6, o->ipv6);
	assert_int_equal(g->f.has_vlan, o->vlan);
	if (o->vlan)
		assert_int_equal(g->f.vlan_tci, 0x2064);
	assert_int_equal(g->f.h.opcode, WIRE_RC_SEND_ONLY_IMM);
	assert_int_equal(g->f.h.psn, psn_add(FX_PSN, i));
	assert_int_equal(g->f.h.pad, -size & 3);
	assert_int_equal(g->f.h.dest_qp, fx->qp[0]->dest_qpn);
	assert_int_equal(g->f.h.pkey, 0xffff);
	assert_int_equal(g->f.payload_bytes, size);
	assert_memory_equal(g->bytes + g->f.payload_offset, fx->memory, size);
	for (unsigned k = 0; k < g->f.h.pad; k++)
		assert_int_equal(g->bytes[g->f.payload_offset + size + k], 0);
}

static void frames_of_all_sizes(const struct fx_options *o, enum icrc_mode icrc)
{
	enum { TRAIN = 3 };
	static struct got g;

	fx->e->settings.icrc = icrc;
	fx_fill_memory(0, FX_MTU, 77);
	used_buffers();
	for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
		for (unsigned k = 0; k < TRAIN; k++)
			send_request(0, USER_SEND_IMM, sizes[i], 0);
		segmentation_poll(fx->e);
		for (unsigned k = 0; k < TRAIN; k++) {
			take_frame(&g);
			assert_int_equal(g.icrc_omitted, icrc == ICRC_NEVER);
			assert_int_equal(g.f.h.ackreq, k == TRAIN - 1);
			assert_frame(&g, o, TRAIN * i + k, sizes[i]);
		}
	}
}

static struct fx_options ipv4, ipv6 = {.ipv6 = true}, vlan = {.vlan = true},
			       ipv6_vlan = {.ipv6 = true, .vlan = true};

#define FRAMES(name, options, icrc)                                                                \
	TEST_OPTIONS(rpg_poll__##name, &(options))                                                 \
	{                                                                                          \
		frames_of_all_sizes(&(options), icrc);                                             \
	}

FRAMES(ipv4, ipv4, ICRC_ALWAYS)
FRAMES(ipv6, ipv6, ICRC_ALWAYS)
FRAMES(vlan, vlan, ICRC_ALWAYS)
FRAMES(ipv6_vlan, ipv6_vlan, ICRC_ALWAYS)
FRAMES(ipv4_without_icrc, ipv4, ICRC_NEVER)
FRAMES(ipv6_vlan_without_icrc, ipv6_vlan, ICRC_NEVER)

/* Short and long, to the port itself and to others. */
TEST(rpg_poll__icrc_to_others)
{
	static struct got g;

	fx->e->settings.icrc = ICRC_TO_OTHERS;
	for (unsigned i = 0; i < 4; i++) {
		fx->qp[0]->path[0].template.to_self = i & 1;
		send_request(0, USER_SEND, i & 2 ? FX_MTU : 5, 0);
		segmentation_poll(fx->e);
		take_frame(&g);
		assert_int_equal(g.icrc_omitted, i & 1);
	}
}

TEST(rpg_poll__headers_of_each_operation)
{
	static const uint8_t users[] = {USER_SEND,	     USER_SEND_INV,  USER_RDMA_WRITE,
					USER_RDMA_WRITE_IMM, USER_RDMA_READ, USER_ATOMIC_CS,
					USER_ATOMIC_FA};
	static struct got g;

	for (unsigned i = 0; i < RTE_DIM(users); i++) {
		struct rte_mbuf *m = fx_request(0, users[i], 8, 0);
		struct request *r = request_of(m);
		uint16_t headers;

		r->imm = 0x55667788;
		r->swap_add = 0x1234567890abcdef;
		r->compare = 0xfedcba;
		fx_put(CHANNEL_DP_RTC, m);
		segmentation_poll(fx->e);
		take_frame(&g);
		headers = wire_opcodes[g.f.h.opcode].headers;
		if (headers & WIRE_HAS_RETH) {
			assert_true(g.f.h.va == 0x1000);
			assert_int_equal(g.f.h.rkey, 0x99);
			assert_int_equal(g.f.h.dma_len, 8);
		}
		if (headers & WIRE_HAS_IMM)
			assert_int_equal(g.f.h.imm, 0x55667788);
		if (headers & WIRE_HAS_IETH)
			assert_int_equal(g.f.h.invalidate_rkey, 0x55667788);
		if (headers & WIRE_HAS_ATOMIC) {
			assert_true(g.f.h.swap_add == 0x1234567890abcdef);
			assert_true(users[i] == USER_ATOMIC_FA || g.f.h.compare == 0xfedcba);
			assert_int_equal(g.f.payload_bytes, 0);
		}
	}
}

static struct rte_mbuf *datagram(const struct wqe_ud *u, uint32_t length)
{
	struct rte_mbuf *m = fx_request(0, USER_SEND_IMM, length, 64);
	struct wqe_data d = {.length = length, .lkey = FX_KEY, .addr = FX_VA};

	request_of(m)->ud_offset = 16;
	request_of(m)->data_first = 64;
	request_of(m)->data_units = 1;
	memcpy(request_wqe(m) + 16, u, sizeof(*u));
	memcpy(request_wqe(m) + 64, &d, sizeof(d));
	return m;
}

TEST(rpg_poll__datagrams)
{
	static struct got g;

	fx_fill_memory(0, 512, 9);
	fx_service(0, SERVICE_UD);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct wire_path path = fx_path(v6, false, false);
		struct wqe_ud u = {.port = 1,
				   .gid_index = v6,
				   .is_ipv6 = v6,
				   .traffic_class = 0x68,
				   .dmac = {2, 3, 4, 5, 6, 7},
				   .hop_limit = 9,
				   .qpn = 0x123456,
				   .qkey = v6 ? 0x80000000u : 0x4444};

		path.dst_ip[13] ^= 0x55; /* another one than the template's */
		path.dst_ip[15] ^= 0xaa;
		memcpy(u.dip, path.dst_ip, 16);
		fx_put(CHANNEL_DP_RTC, datagram(&u, 333 + v6));
		segmentation_poll(fx->e);
		take_frame(&g);
		fx_assert_cqe(USER_SEND_IMM, 64);
		assert_int_equal(g.f.h.opcode, WIRE_UD_SEND_ONLY_IMM);
		assert_int_equal(g.f.is_ipv6, v6);
		assert_memory_equal(g.bytes, u.dmac, 6);
		assert_memory_equal(g.f.dst_ip, path.dst_ip + (v6 ? 0 : 12), v6 ? 16 : 4);
		assert_memory_equal(g.f.src_ip, path.src_ip + (v6 ? 0 : 12), v6 ? 16 : 4);
		assert_int_equal(g.f.tos, 0x68);
		assert_int_equal(g.f.ttl, 9);
		assert_int_equal(g.f.h.dest_qp, 0x123456);
		assert_int_equal(g.f.h.src_qp, fx->qp[0]->qpn);
		assert_int_equal(g.f.h.qkey, v6 ? fx->qp[0]->qkey : 0x4444);
		assert_int_equal(g.f.payload_bytes, 333 + v6);
	}
}

TEST(rpg_poll__datagram_without_hop_limit)
{
	struct wire_path path = fx_path(false, false, false);
	struct wqe_ud u = {.dmac = {2}, .qpn = 5};
	static struct got g;

	fx_service(0, SERVICE_UD);
	memcpy(u.dip, path.dst_ip, 16);
	fx_put(CHANNEL_DP_RTC, datagram(&u, 10));
	segmentation_poll(fx->e);
	take_frame(&g);
	assert_int_equal(g.f.ttl, WIRE_TTL_DEFAULT);
}

/* Each datagram says where it goes. */
TEST(rpg_poll__datagrams_icrc_to_others)
{
	struct wire_path path = fx_path(false, false, false);
	struct wqe_ud u = {.qpn = 5};
	static struct got g;

	fx->h->config.gids[0].src_mac[0] = 2;
	fx->e->settings.icrc = ICRC_TO_OTHERS;
	fx_service(0, SERVICE_UD);
	memcpy(u.dip, path.dst_ip, 16);
	for (unsigned i = 0; i < 4; i++) {
		memcpy(u.dmac, fx->e->gids[0].src_mac, 6);
		u.dmac[5] ^= i & 1;
		fx_put(CHANNEL_DP_RTC, datagram(&u, i & 2 ? 500 : 10));
		segmentation_poll(fx->e);
		take_frame(&g);
		assert_int_equal(g.icrc_omitted, !(i & 1));
	}
}

TEST(rpg_poll__datagram_from_an_address_that_is_not_there)
{
	struct wqe_ud u = {.gid_index = 2, .qpn = 5, .dmac = {2}};

	fx_service(0, SERVICE_UD);
	fx_put(CHANNEL_DP_RTC, datagram(&u, 10));
	segmentation_poll(fx->e);
	fx_assert_error(SYNDROME_LOCAL_QP_OP, 64);
	assert_int_equal(fx_ring_count(CHANNEL_RPG_TXA), 0);
	assert_int_equal(qp_state(fx->qp[0]), QP_SQE);
}

TEST(rpg_poll__output_full)
{
	static struct got g;

	fx_fill(CHANNEL_RPG_TXA, 1);
	send_request(0, USER_SEND, 3 * FX_MTU, 0);
	segmentation_poll(fx->e);
	assert_int_equal(fx_ring_count(CHANNEL_RTC_RPG), 2);
	fx_unfill(CHANNEL_RPG_TXA);
	segmentation_poll(fx->e);
	take_frame(&g);
	assert_int_equal(g.f.h.psn, FX_PSN + 1);
	take_frame(&g);
	assert_int_equal(g.f.h.psn, FX_PSN + 2);
}

/* One poll makes all that there is room for, however many bursts. */
TEST(rpg_poll__several_bursts)
{
	for (unsigned i = 0; i < 2 * BURST + 5; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);

		memset(packet_of(m), 0, sizeof(struct packet));
		packet_of(m)->qpn = fx->qp[0]->qpn;
		packet_of(m)->epoch = fx->qp[0]->epoch;
		packet_of(m)->headers.opcode = WIRE_RC_SEND_ONLY;
		fx_put(CHANNEL_RTC_RPG, m);
	}
	assert_int_equal(rpg_poll(fx->e), 2 * BURST + 5);
	assert_int_equal(fx_ring_count(CHANNEL_RPG_TXA), 2 * BURST + 5);
}

/* A packet kept for retransmission goes out again byte for byte. */
TEST(rpg_poll__built_frames_pass_unchanged)
{
	static struct got a, b;
	struct sw_element *sw;

	send_request(0, USER_SEND, 100, 0);
	segmentation_poll(fx->e);
	take_frame(&a);
	sw = sw_head(fx->e->mq, &fx->qp[0]->mq.sw);
	rte_mbuf_refcnt_update(sw->m, 1);
	fx_put(CHANNEL_RRC_RPG, sw->m);
	segmentation_poll(fx->e);
	take_frame(&b);
	assert_int_equal(a.length, b.length);
	assert_memory_equal(a.bytes, b.bytes, a.length);
}

/* Go-back-N over a READ: the packets behind it must not overtake its request. */
TEST(rpg_poll__retransmissions_in_order)
{
	static struct got g;

	send_request(0, USER_SEND, 8, 0);
	send_request(0, USER_RDMA_READ, 8, 64);
	send_request(0, USER_SEND, 8, 128);
	send_request(0, USER_RDMA_READ, 8, 192);
	segmentation_poll(fx->e);
	fx_unfill(CHANNEL_RPG_TXA);
	fx_unfill(CHANNEL_RTC_TC);
	respond(0, FX_PSN, aeth_nak(AETH_NAK_SEQUENCE), 0);
	assert_int_equal(fx_ring_count(CHANNEL_RRC_RPG), 4);
	rpg_poll(fx->e);
	for (unsigned i = 0; i < 4; i++) {
		take_frame(&g);
		assert_int_equal(g.f.h.psn, psn_add(FX_PSN, i));
	}
}

/* One of another number is gone; one of another epoch was reset, and has the same number. */
TEST(rpg_poll__queue_pair_gone_or_reset)
{
	for (unsigned reset = 0; reset < 2; reset++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);

		memset(packet_of(m), 0, sizeof(struct packet));
		packet_of(m)->qpn = fx->qp[0]->qpn + (reset ? 0 : 64);
		packet_of(m)->epoch = fx->qp[0]->epoch - reset;
		fx_put(CHANNEL_RTC_RPG, m);
		assert_int_equal(rpg_poll(fx->e), 1);
		assert_int_equal(fx_ring_count(CHANNEL_RPG_TXA), 0);
	}
}
