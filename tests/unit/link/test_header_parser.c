/* SPDX-License-Identifier: BSD-3-Clause */
/* HeaderParser: frames from the port, what passes into HP_RRC and HP_EE, what does not by its
 * counter. */
#include "engine_fixture.h"
#include "header_parser.h"
#include "hp.h"
#include "link/link.h"
#include "virt-to-phys/payload_ref.h"
#include "wire/psn.h"

/* A good frame for queue pair 0 that a test spoils. */
struct frame {
	struct wire_headers h;
	struct wire_path path;
	uint32_t payload;
	bool keep_icrc; /* false: it is made right again after spoiling */
	bool omitted;	/* marked: the ICRC, which is wrong, does not count */
	uint16_t cut;	/* bytes missing at the end */
};

static struct frame good(uint8_t opcode)
{
	return (struct frame){.h = {.opcode = opcode,
				    .psn = 7,
				    .pkey = 0xffff,
				    .dest_qp = fx->qp[0]->qpn,
				    .syndrome = 0x1f},
			      .path = fx_path(false, false, true)};
}

/* Puts it into the port; spoil(frame, offset of the BTH) may be NULL. */
static void receive(struct frame f, void (*spoil)(uint8_t *frame, unsigned bth))
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fx->packets);
	uint8_t *l2 = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_template t;
	unsigned n, end;

	f.h.pad = -f.payload & 3;
	wire_template_build(&t, &f.path);
	n = wire_write_transport(l2 + t.encap_bytes, &f.h);
	end = t.encap_bytes + n + f.payload + f.h.pad;
	memset(l2 + t.encap_bytes + n, 0x5a, f.payload + f.h.pad);
	wire_stamp(l2, &t, end + 4 - t.encap_bytes, 3);
	if (f.keep_icrc)
		wire_icrc_store(l2 + end,
				wire_icrc(l2 + t.l3_offset, end - t.l3_offset, t.is_ipv6));
	if (spoil)
		spoil(l2, t.encap_bytes);
	if (!f.keep_icrc)
		wire_icrc_store(l2 + end,
				wire_icrc(l2 + t.l3_offset, end - t.l3_offset, t.is_ipv6));
	if (f.omitted) {
		wire_icrc_store(l2 + end, 0);
		m->ol_flags |= ICRC_OMITTED;
	}
	m->data_len = m->pkt_len = end + 4 - f.cut;
	assert_true(fx->port.rx_count < FX_PORT_FRAMES);
	fx->port.rx[fx->port.rx_count++] = m;
}

static void dropped(enum counter why)
{
	uint64_t before = fx_counter(why);

	hp_poll(fx->e);
	if (fx_counter(why) != before + 1)
		fail_msg("%s was not counted", counter_name(why));
	assert_int_equal(fx_ring_count(CHANNEL_HP_RRC), 0);
	assert_int_equal(fx_ring_count(CHANNEL_HP_EE), 0);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
}

static void passed(enum channel_id to)
{
	struct rte_mbuf *m;

	assert_int_equal(hp_poll(fx->e), 1);
	m = fx_take(to);
	assert_non_null(m);
	rte_pktmbuf_free(m);
}

static void flip_payload(uint8_t *frame, unsigned bth)
{
	frame[bth + 20] ^= 1;
}

/* A packet that was sent again may be the very mbuf that came before, and be an answer by now: what
 * ExecutionEngine has added stays. */
TEST(hp_poll__the_same_frame_once_more)
{
	struct rte_mbuf *m;

	receive(good(WIRE_RC_SEND_ONLY), NULL);
	hp_poll(fx->e);
	m = fx_take(CHANNEL_HP_EE);
	arrival_of(m)->response = RESPONSE_ACK;
	rte_mbuf_refcnt_update(m, 1);
	fx->port.rx[fx->port.rx_count++] = m;
	passed(CHANNEL_HP_EE);
	assert_int_equal(arrival_of(m)->response, RESPONSE_ACK);
	rte_pktmbuf_free(m);
}

/* Payloads over 512 bytes are checked by the module that copies them: icrc_bytes says how much
 * there is to check. */
static void assert_icrc_bytes(uint32_t payload, bool omitted, bool later)
{
	struct frame f = good(WIRE_RC_SEND_ONLY);
	struct rte_mbuf *m;

	f.payload = payload;
	f.omitted = omitted;
	receive(f, NULL);
	assert_int_equal(hp_poll(fx->e), 1);
	m = fx_take(CHANNEL_HP_EE);
	assert_non_null(m);
	assert_int_equal(arrival_of(m)->icrc_bytes, later ? m->data_len - 14 - 4 : 0);
	rte_pktmbuf_free(m);
}

TEST(hp_poll__icrc_of_long_payloads_later)
{
	struct frame f = good(WIRE_RC_SEND_ONLY);

	f.payload = 513;
	f.keep_icrc = true;
	receive(f, flip_payload);
	passed(CHANNEL_HP_EE);
	f.payload = 512;
	receive(f, flip_payload);
	dropped(COUNTER_drop_rx_icrc);
	assert_icrc_bytes(0, false, false);
	assert_icrc_bytes(512, false, false);
	assert_icrc_bytes(513, false, true);
	assert_icrc_bytes(FX_MTU, false, true);
	assert_icrc_bytes(512, true, false);
	assert_icrc_bytes(513, true, false);
}

/* What a peer asks for is news, not late, however many packets after it was ready to migrate. */
TEST(hp_poll__migration_is_no_later_for_many_packets)
{
	struct frame f = good(WIRE_RC_WRITE_ONLY);
	struct qp *q = fx->qp[0];

	q->way.alternate = 1;
	q->way.migration = MIGRATION_ARMED;
	for (unsigned quarters = 0; quarters < 8; quarters++) {
		f.h.migreq = 0;
		f.h.psn = q->ee.expected_psn = psn_add(q->ee.expected_psn, PSN_WINDOW / 2);
		receive(f, NULL);
		passed(CHANNEL_HP_EE);
		f.h.migreq = 1;
		receive(f, NULL);
		dropped(COUNTER_drop_rx_migration);
	}
}

static void admit(const struct wire_path *path, uint8_t bits)
{
	struct peer_list *l = &fx->h->admitted[0];

	memcpy(l->prefix[l->count].ip, path->src_ip, 16);
	l->prefix[l->count++].bits = bits;
}

TEST(hp_poll__admitted_senders)
{
	struct frame f;

	fx_service(0, SERVICE_UD);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct wire_path listed = fx_path(v6, false, true);
		unsigned dropped_before = 0;

		fx->h->config.admitted.count = 0;
		admit(&(struct wire_path){.src_ip = {0xfe, 0x80}}, 64);
		admit(&listed, 123);
		for (unsigned bit = v6 ? 0 : 96; bit < 128; bit++) {
			f = good(WIRE_UD_SEND_ONLY);
			f.path = listed;
			f.path.src_ip[bit / 8] ^= 0x80 >> bit % 8;
			receive(f, NULL);
			if (bit >= 123) {
				passed(CHANNEL_HP_EE);
				continue;
			}
			dropped(COUNTER_drop_rx_peer);
			dropped_before++;
		}
		assert_int_equal(dropped_before, v6 ? 123 : 27);
	}
	assert_int_equal(fx->qp[0]->hp.refused, 123 + 27);
}

/* The fields in front of the BTH (IPv4): 8 bytes of UDP, 20 of IP, 2 of Ethernet. */
static void ethernet_type(uint8_t *frame, unsigned bth)
{
	frame[bth - 8 - 20 - 2] = 0x88;
}

static void ip_options(uint8_t *frame, unsigned bth)
{
	frame[bth - 8 - 20] = 0x46;
}

static void ip_fragment(uint8_t *frame, unsigned bth)
{
	frame[bth - 8 - 20 + 6] |= 0x20;
}

static void udp_length(uint8_t *frame, unsigned bth)
{
	frame[bth - 8 + 5] ^= 4;
}

/* Each way not to be a RoCE packet has its own counter. */
TEST(hp_poll__no_roce_packet)
{
	static const struct {
		void (*spoil)(uint8_t *frame, unsigned bth);
		enum counter why;
	} rows[] = {
		{ethernet_type, COUNTER_drop_rx_not_roce},
		{ip_options, COUNTER_drop_rx_version},
		{ip_fragment, COUNTER_drop_rx_fragmented},
		{udp_length, COUNTER_drop_rx_length},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		receive(good(WIRE_RC_SEND_ONLY), rows[i].spoil);
		dropped(rows[i].why);
	}
	fx_assert_counter(drop_rx_truncated, 0);
}

static void ip_checksum(uint8_t *frame, unsigned bth)
{
	frame[bth - 8 - 10] ^= 1;
}

TEST(hp_poll__checksum)
{
	receive(good(WIRE_RC_SEND_ONLY), ip_checksum);
	dropped(COUNTER_drop_rx_checksum);
}

static void stalls(enum channel_id full)
{
	receive(good(WIRE_RC_SEND_ONLY), NULL);
	receive(good(WIRE_RC_ACK), NULL);
	fx_fill(full, 0);
	assert_int_equal(hp_poll(fx->e), 0);
	assert_int_equal(fx->port.rx_next, 0); /* they wait in the port */
	fx_unfill(full);
	fx_fill(full, 1); /* room for one: one is taken, whatever it is */
	assert_int_equal(hp_poll(fx->e), 1);
	fx_unfill(CHANNEL_HP_EE);
	fx_unfill(CHANNEL_HP_RRC);
	assert_int_equal(hp_poll(fx->e), 1);
}

TEST(hp_poll__stalls_when_requests_are_full)
{
	stalls(CHANNEL_HP_EE);
}

TEST(hp_poll__stalls_when_responses_are_full)
{
	stalls(CHANNEL_HP_RRC);
}

/* n frames that are dropped, at that time. */
static void poll_with(unsigned n, uint64_t now_ns)
{
	struct frame f = good(WIRE_RC_ACK);

	f.cut = 8;
	fx->port.rx_count = fx->port.rx_next = 0;
	for (unsigned i = 0; i < n; i++)
		receive(f, NULL);
	fx->e->now_ns = now_ns;
	hp_poll(fx->e);
}

/* Timers learn until when the port was polled: it had no more frames, or cannot have held any from
 * then, or there has been no room for its frames for long. */
TEST(hp_poll__reports_what_it_has_heard)
{
	struct engine *e = fx->e;

	assert_true(e->heard_ns == UINT64_MAX);
	poll_with(0, 1000);
	assert_int_equal(e->heard_ns, 1000);
	poll_with(BURST + 1, 2000);
	assert_int_equal(e->heard_ns, 1000);
	e->now_ns = 3000;
	hp_poll(e);
	assert_int_equal(e->heard_ns, 3000);
	fx_fill(CHANNEL_HP_RRC, 0);
	poll_with(0, 4000);
	assert_int_equal(e->heard_ns, 3000);
	fx_unfill(CHANNEL_HP_RRC);
	for (unsigned i = 1; i < 4096 / BURST; i++) {
		poll_with(BURST, 4000 + i);
		assert_int_equal(e->heard_ns, 3000);
	}
	poll_with(BURST, 9000);
	assert_int_equal(e->heard_ns, 3000);
	poll_with(4096 / BURST, 9500);
	for (unsigned i = 0; i < 4096 / BURST; i++)
		poll_with(BURST, 10000);
	assert_in_range(e->heard_ns, 9000, 9999);
	fx_fill(CHANNEL_HP_RRC, 0);
	for (unsigned i = 1; i <= 5; i++)
		poll_with(0, i * 1000000000ull);
	assert_in_range(e->heard_ns, 9000, 9999);
	poll_with(0, 6000000000);
	assert_int_equal(e->heard_ns, 6000000000);
	fx_unfill(CHANNEL_HP_RRC);
}

TEST(hp_poll__order_and_bursts)
{
	for (unsigned i = 0; i < 100; i++) {
		struct frame f = good(WIRE_RC_SEND_ONLY);

		f.h.psn = i;
		receive(f, NULL);
	}
	assert_int_equal(hp_poll(fx->e), BURST);
	while (hp_poll(fx->e))
		;
	for (unsigned i = 0; i < 100; i++) {
		struct rte_mbuf *m = fx_take(CHANNEL_HP_EE);

		assert_int_equal(arrival_of(m)->headers.psn, i);
		rte_pktmbuf_free(m);
	}
}

/* What packets of a run have in common is judged once; the rest is each one's own, as are mistakes. */
TEST(hp_poll__run)
{
	static const struct {
		unsigned qp;
		uint32_t psn;
		uint16_t pkey;
		void (*spoil)(uint8_t *frame, unsigned bth);
	} rows[] = {
		{0, 7, 0xffff, NULL},  {0, 8, 0xffff, NULL},  {0, 9, 0xffff, ip_checksum},
		{0, 10, 0xffff, NULL}, {0, 11, 0xffff, NULL}, {0, 12, 0xffff, flip_payload},
		{0, 13, 0xffff, NULL}, {0, 14, 0x1234, NULL}, {0, 15, 0x1234, NULL},
		{1, 16, 0xffff, NULL}, {0, 17, 0xffff, NULL},
	};
	static const uint32_t passed[] = {7, 8, 10, 11, 13, 16, 17};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct frame f = good(WIRE_RC_WRITE_ONLY);

		f.payload = 24;
		f.keep_icrc = true;
		f.h.dest_qp = fx->qp[rows[i].qp]->qpn;
		f.h.psn = f.h.va = rows[i].psn;
		f.h.ackreq = rows[i].psn & 1;
		f.h.pkey = rows[i].pkey;
		receive(f, rows[i].spoil);
	}
	assert_int_equal(hp_poll(fx->e), RTE_DIM(rows));
	for (unsigned i = 0; i < RTE_DIM(passed); i++) {
		struct rte_mbuf *m = fx_take(CHANNEL_HP_EE);
		const struct arrival *a = arrival_of(m);

		assert_int_equal(a->headers.psn, passed[i]);
		assert_int_equal(a->headers.va, passed[i]);
		assert_int_equal(a->headers.ackreq, passed[i] & 1);
		assert_int_equal(a->qpn, fx->qp[passed[i] == 16]->qpn);
		assert_int_equal(a->payload_bytes, 24);
		assert_int_equal(a->payload[0], 0x5a);
		rte_pktmbuf_free(m);
	}
	fx_assert_counter(drop_rx_checksum, 1);
	fx_assert_counter(drop_rx_icrc, 1);
	fx_assert_counter(drop_rx_pkey, 2);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
}

/* ---- a queue pair of another engine ---- */

static struct fx_options two_engines = {.engines = 2};

static struct channel *of_peer(enum channel_id id)
{
	return &fx->h->engines[1].channel[id];
}

/* Fills or empties a ring of the other engine. */
static void peer_ring(enum channel_id id, void (*change)(enum channel_id id))
{
	fx->e = &fx->h->engines[1];
	change(id);
	fx->e = &fx->h->engines[0];
}

static void fill(enum channel_id id)
{
	fx_fill(id, 0);
}

static void receive_for(unsigned qp, uint8_t opcode)
{
	struct frame f = good(opcode);

	f.h.dest_qp = fx->qp[qp]->qpn;
	receive(f, NULL);
}

/* As `softhca fifos` shows it. */
static void counted_one(const struct channel *c)
{
	assert_int_equal(c->put, 1);
	assert_int_equal(c->high_water, 1);
	assert_int_equal(c->full, 0);
}

TEST_OPTIONS(hp_poll__hands_over_to_the_other_engine, &two_engines)
{
	static const struct {
		uint8_t opcode;
		enum channel_id to;
	} rows[] = {{WIRE_RC_SEND_ONLY, CHANNEL_HP_EE}, {WIRE_RC_ACK, CHANNEL_HP_RRC}};

	fx->qp[1]->engine = 1;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rte_mbuf *m;

		receive_for(0, rows[i].opcode);
		receive_for(1, rows[i].opcode);
		assert_int_equal(hp_poll(fx->e), 2);
		fx_assert_counter(rx_handed_over, i + 1);
		counted_one(of_peer(rows[i].to));
		counted_one(&fx->e->channel[rows[i].to]);
		assert_int_equal(channel_take(of_peer(rows[i].to), &m, 1), 1);
		assert_int_equal(arrival_of(m)->qpn, fx->qp[1]->qpn);
		rte_pktmbuf_free(m);
		m = fx_take(rows[i].to);
		assert_non_null(m);
		assert_int_equal(arrival_of(m)->qpn, fx->qp[0]->qpn);
		rte_pktmbuf_free(m);
		assert_int_equal(fx_ring_count(CHANNEL_HP_EE) + fx_ring_count(CHANNEL_HP_RRC), 0);
	}
	fx->qp[1]->engine = 0;
}

/* Its ring has no room: dropped and given back, and only that one. */
TEST_OPTIONS(hp_poll__ring_of_the_other_engine_is_full, &two_engines)
{
	static const enum channel_id rings[] = {CHANNEL_HP_EE, CHANNEL_HP_RRC};

	fx->qp[1]->engine = 1;
	for (unsigned i = 0; i < RTE_DIM(rings); i++) {
		peer_ring(rings[i], fill);
		receive_for(1, i ? WIRE_RC_ACK : WIRE_RC_SEND_ONLY);
		receive_for(0, i ? WIRE_RC_ACK : WIRE_RC_SEND_ONLY);
		assert_int_equal(hp_poll(fx->e), 2);
		fx_assert_counter(drop_rx_full, i + 1);
		rte_pktmbuf_free(fx_take(rings[i]));
		assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
		peer_ring(rings[i], fx_unfill);
	}
	fx->qp[1]->engine = 0;
}

/* ---- datagrams to groups ---- */

static const uint8_t mgid[16] = {[10] = 0xff, [11] = 0xff, 239, 1, 1, 1};

static void listen_to_group(unsigned qp)
{
	fx_service(qp, SERVICE_UD);
	assert_int_equal(multicast_attach(&fx->h->multicast, mgid, fx->qp[qp]->qpn), 0);
}

static void receive_for_group(void (*spoil)(uint8_t *frame, unsigned bth))
{
	struct frame f = good(WIRE_UD_SEND_ONLY);

	f.h.dest_qp = MULTICAST_QPN;
	memcpy(f.path.dst_ip, mgid, 16);
	receive(f, spoil);
}

static void taken_for(struct rte_mbuf *m, unsigned qp)
{
	assert_non_null(m);
	assert_int_equal(arrival_of(m)->qpn, fx->qp[qp]->qpn);
	assert_int_equal(arrival_of(m)->headers.dest_qp, MULTICAST_QPN);
	assert_int_equal(arrival_of(m)->icrc_bytes, 0);
	rte_pktmbuf_free(m);
}

TEST_OPTIONS(hp_poll__group_over_engines, &two_engines)
{
	struct rte_mbuf *m;

	fx->qp[1]->engine = 1;
	listen_to_group(0);
	listen_to_group(1);
	listen_to_group(2);
	receive_for_group(NULL);
	assert_int_equal(hp_poll(fx->e), 1);
	taken_for(fx_take(CHANNEL_HP_EE), 0);
	taken_for(fx_take(CHANNEL_HP_EE), 2);
	assert_int_equal(channel_take(of_peer(CHANNEL_HP_EE), &m, 1), 1);
	taken_for(m, 1);
	/* the other engine is behind: its queue pair misses it, alone */
	peer_ring(CHANNEL_HP_EE, fill);
	receive_for_group(NULL);
	assert_int_equal(hp_poll(fx->e), 1);
	taken_for(fx_take(CHANNEL_HP_EE), 0);
	taken_for(fx_take(CHANNEL_HP_EE), 2);
	fx_assert_counter(drop_rx_full, 1);
	fx_assert_counter(multicast_copies, 5);
	fx_assert_counter(rx_multicast, 2);
	peer_ring(CHANNEL_HP_EE, fx_unfill);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
	fx->qp[1]->engine = 0;
}

/* Frames that do not fit wait, and with them those in the port; afterwards all continues. */
TEST(hp_poll__group_waits_for_room)
{
	for (unsigned i = 0; i < 3; i++)
		listen_to_group(i);
	fx_fill(CHANNEL_HP_EE, 2);
	receive_for_group(NULL);
	receive_for(0, WIRE_UD_SEND_ONLY);
	receive_for(0, WIRE_UD_SEND_ONLY);
	assert_int_equal(hp_poll(fx->e), 2); /* as many as there was room for */
	assert_int_equal(hp_poll(fx->e), 0);
	fx_assert_counter(multicast_copies, 1);
	fx_assert_counter(rx_packets, 2);
	for (unsigned i = 0; i < 6; i++) {
		fx->e->now_ns += 1000000000; /* too long: timers may advance all the same */
		assert_int_equal(hp_poll(fx->e), 0);
	}
	assert_true(fx->e->heard_ns == fx->e->now_ns);
	fx_unfill(CHANNEL_HP_EE);
	assert_int_equal(hp_poll(fx->e), 1);
	taken_for(fx_take(CHANNEL_HP_EE), 1);
	taken_for(fx_take(CHANNEL_HP_EE), 2);
	rte_pktmbuf_free(fx_take(CHANNEL_HP_EE));
	assert_null(fx_take(CHANNEL_HP_EE));
	fx_assert_counter(drop_rx_full, 0);
	assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
}

/* Left in HeaderParser when the HCA ends: given back (fx_teardown() looks). */
TEST(hp_poll__group_waits_at_the_end)
{
	listen_to_group(0);
	listen_to_group(1);
	fx_fill(CHANNEL_HP_EE, 1);
	receive_for_group(NULL);
	assert_int_equal(hp_poll(fx->e), 1);
	fx_assert_counter(multicast_copies, 1);
}

/* A device is removed whose payload frames refer to that wait for room: the others are delivered, each from
 * where it stood. */
TEST(link_drop_orphans__half_delivered)
{
	const struct payload_ref ref = {.v2p = &fx->h->v2p};

	for (unsigned i = 0; i < 3; i++)
		listen_to_group(i);
	for (unsigned gone = 1; gone < 4; gone++) { /* bits: the first, the second */
		fx_fill(CHANNEL_HP_EE, 2);
		receive_for_group(NULL);
		receive_for_group(NULL);
		assert_int_equal(hp_poll(fx->e), 2); /* two have the first one */
		for (unsigned i = 0; i < 2; i++) {
			struct arrival *a = arrival_of(fx->e->hp->waiting[i]);

			a->payload_elsewhere = gone >> i & 1;
			memcpy((uint8_t *)(uintptr_t)a->payload, &ref, sizeof(ref));
		}
		link_drop_orphans(fx->e, ref.v2p);
		fx_unfill(CHANNEL_HP_EE);
		if (gone == 3)
			receive_for_group(NULL);
		hp_poll(fx->e);
		for (unsigned qp = gone == 2 ? 2 : 0; qp < 3; qp++)
			taken_for(fx_take(CHANNEL_HP_EE), qp);
		assert_null(fx_take(CHANNEL_HP_EE));
		assert_int_equal(rte_mempool_in_use_count(fx->packets), 0);
	}
}

TEST(hp_poll__group_nobody_or_damaged)
{
	struct frame f = good(WIRE_UD_SEND_ONLY);

	f.h.dest_qp = MULTICAST_QPN;
	receive(f, NULL); /* to an address of one */
	dropped(COUNTER_drop_rx_multicast);
	listen_to_group(0);
	f.payload = 600;
	f.keep_icrc = true;
	memcpy(f.path.dst_ip, mgid, 16);
	receive(f, flip_payload);
	dropped(COUNTER_drop_rx_icrc);
	fx->qp[0]->pkey = 0x8001;
	receive_for_group(NULL);
	dropped(COUNTER_drop_rx_pkey);
	fx->qp[0]->pkey = 0xffff;
	admit(&(struct wire_path){.src_ip = {0xfe, 0x80}}, 64);
	receive_for_group(NULL);
	dropped(COUNTER_drop_rx_peer);
	fx->h->admitted[0].count = 0;
	assert_int_equal(multicast_detach(&fx->h->multicast, mgid, fx->qp[0]->qpn), 0);
	receive_for_group(NULL);
	dropped(COUNTER_drop_rx_multicast);
	assert_int_equal(multicast_attach(&fx->h->multicast, mgid, 0x123456), 0); /* has gone */
	receive_for_group(NULL);
	dropped(COUNTER_rx_multicast);
	fx_assert_counter(multicast_copies, 0);
}
