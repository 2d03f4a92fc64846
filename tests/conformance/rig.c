/* SPDX-License-Identifier: BSD-3-Clause */
/* The scripted peer: see rig.h. */
#include "rig.h"
#include "wire/crc.h"

static int forced_pad = -1;
static bool bad_icrc, alternate, alternate_here;
static uint8_t traffic_class;

int rig_begin_test(void **state)
{
	machine_set_test(*state);
	return 0;
}

struct sim *rig_create(const struct sim_params *p)
{
	struct sim_params alone = *p;
	struct sim *s;

	alone.alone = true;
	forced_pad = -1;
	bad_icrc = alternate = alternate_here = false;
	traffic_class = 0;
	s = sim_create(&alone);
	s->node[0].hca->engines[0].settings.first_probe_us = 0;
	return s;
}

struct sim *rig_make(enum qp_service service)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.service = service;
	p.no_credits = true;
	return rig_create(&p);
}

struct engine_settings *rig_settings(void)
{
	static struct hca_config c;

	hca_config_defaults(&c);
	return &c.settings;
}

void rig_end(struct sim *s)
{
	sim_run(s, MS);
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

/* ---- packets into the HCA ---- */

struct wire_headers rig_headers(struct sim *s, unsigned qp, uint8_t opcode, uint32_t psn,
				uint64_t remote, uint32_t dma_len)
{
	struct sim_node *n = &s->node[0];

	return (struct wire_headers){
		.opcode = opcode,
		.psn = psn & PSN_MASK,
		.dest_qp = n->qp[qp].qpn,
		.pkey = 0xffff,
		.va = n->va + remote,
		.rkey = n->key,
		.dma_len = dma_len,
		.qkey = 0x11111111,
		.src_qp = s->node[1].qp[qp].qpn,
		.invalidate_rkey = wire_opcodes[opcode].headers & WIRE_HAS_IETH
					   ? rig_window(s, 0, n->memory_bytes)
					   : 0,
	};
}

void rig_force_pad(struct sim *s, unsigned pad)
{
	forced_pad = (int)pad;
}

void rig_bad_icrc(struct sim *s)
{
	bad_icrc = true;
}

void rig_traffic_class(struct sim *s, uint8_t next)
{
	traffic_class = next;
}

void rig_alternate(struct sim *s, bool now)
{
	alternate = alternate_here = now;
}

void rig_alternate_end(struct sim *s)
{
	alternate = true;
	alternate_here = false;
}

static void peer_path(struct sim *s, struct wire_path *path)
{
	*path = (struct wire_path){.sport = 0xc123,
				   .ttl = 64,
				   .tos = traffic_class,
				   .is_ipv6 = s->node[1].ip[10] != 0xff};
	memcpy(path->src_mac, sim_macs[1], 6);
	memcpy(path->dst_mac, sim_macs[0], 6);
	memcpy(path->src_ip, s->node[1].ip, 16);
	memcpy(path->dst_ip, s->node[0].ip, 16);
	if (alternate)
		sim_alternate_ip(s, 1, path->src_ip);
	if (alternate_here)
		sim_alternate_ip(s, 0, path->dst_ip);
}

void rig_send(struct sim *s, struct wire_headers h, const void *payload, uint32_t bytes)
{
	uint8_t frame[WIRE_ENCAP_BYTES_MAX + WIRE_TRANSPORT_BYTES_MAX + 3 * 4096], *bth, *p, *l3;
	uint32_t pad = forced_pad >= 0 ? (uint32_t)forced_pad : -bytes & 3, headers;
	uint8_t opcode = h.opcode;
	struct wire_template t;
	struct wire_path path;

	forced_pad = -1;
	h.pad = (uint8_t)pad;
	if (!wire_opcodes[opcode].defined)
		h.opcode = WIRE_RC_SEND_ONLY; /* a BTH and nothing else */
	peer_path(s, &path);
	wire_template_build(&t, &path);
	bth = frame + t.encap_bytes;
	headers = wire_write_transport(bth, &h);
	bth[0] = opcode;
	p = bth + headers;
	for (uint32_t i = 0; i < bytes + pad; i++)
		p[i] = i >= bytes ? 0
		       : payload  ? ((const uint8_t *)payload)[i]
				  : (uint8_t)(i * 7 + 1);
	wire_stamp(frame, &t, headers + bytes + pad + WIRE_ICRC_BYTES, 1);
	l3 = frame + t.l3_offset;
	wire_icrc_store(p + bytes + pad,
			wire_icrc(l3, (unsigned)(p + bytes + pad - l3), t.is_ipv6) ^
				(bad_icrc ? 1u : 0u));
	bad_icrc = false;
	traffic_class = 0;
	sim_wire_send(s, 1, frame, (unsigned)(p + bytes + pad + WIRE_ICRC_BYTES - frame));
}

void rig_request(struct sim *s, unsigned qp, uint8_t opcode, uint32_t psn, uint64_t remote,
		 uint32_t dma_len, uint32_t bytes)
{
	struct wire_headers h = rig_headers(s, qp, opcode, psn, remote, dma_len);

	h.ackreq = 1;
	rig_send(s, h, NULL, bytes);
}

void rig_write(struct sim *s, uint32_t psn, uint64_t remote, uint32_t bytes)
{
	rig_request(s, 0, WIRE_RC_WRITE_ONLY, psn, remote, bytes, bytes);
}

void rig_read(struct sim *s, uint32_t psn, uint64_t remote, uint32_t bytes)
{
	rig_request(s, 0, WIRE_RC_READ_REQUEST, psn, remote, bytes, 0);
}

void rig_written(struct sim *s, uint32_t psn, uint64_t remote, uint32_t bytes, uint32_t msn)
{
	rig_write(s, psn, remote, bytes);
	rig_expect_ack(s, psn, aeth_ack(0), msn);
}

void rig_ack(struct sim *s, unsigned qp, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct wire_headers h = rig_headers(s, qp, WIRE_RC_ACK, psn, 0, 0);

	h.syndrome = syndrome;
	h.msn = msn & PSN_MASK;
	rig_send(s, h, NULL, 0);
}

void rig_read_response(struct sim *s, unsigned qp, uint8_t opcode, uint32_t psn, uint32_t msn,
		       const void *payload, uint32_t bytes)
{
	struct wire_headers h = rig_headers(s, qp, opcode, psn, 0, 0);

	h.syndrome = aeth_ack(AETH_CREDIT_INVALID);
	h.msn = msn & PSN_MASK;
	rig_send(s, h, payload, bytes);
}

/* ---- packets out of the HCA ---- */

static bool take_frame(struct sim *s, uint8_t *to, unsigned *bytes, uint64_t *at_ns)
{
	struct sim_wire_end *end = &s->end[1];
	struct rte_mbuf *m;

	if (!end->count)
		return false;
	m = end->queue[0].m;
	*at_ns = end->queue[0].at_ns;
	*bytes = m->data_len;
	memcpy(to, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	rte_pktmbuf_free(m);
	memmove(end->queue, end->queue + 1, --end->count * sizeof(end->queue[0]));
	return true;
}

bool rig_recv(struct sim *s, struct rig_packet *out, uint64_t ns)
{
	static uint8_t frame[PACKET_ROOM_BYTES];
	uint64_t end = s->now_ns + ns;
	struct wire_frame f;
	unsigned bytes;

	while (!take_frame(s, frame, &bytes, &out->at_ns)) {
		if (s->now_ns >= end)
			return false;
		sim_step(s);
	}
	assert_int_equal(wire_parse_frame(frame, bytes, &f), WIRE_OK);
	out->h = f.h;
	out->payload = frame + f.payload_offset;
	out->bytes = f.payload_bytes;
	out->sport = f.sport;
	wire_address16(out->src_ip, f.src_ip, f.is_ipv6);
	wire_address16(out->dst_ip, f.dst_ip, f.is_ipv6);
	out->tos = f.tos;
	out->tci = f.has_vlan ? f.vlan_tci : -1;
	out->ttl = f.ttl;
	out->icrc_right = wire_icrc(frame + f.l3_offset, f.transport_end - f.l3_offset,
				    f.is_ipv6) == wire_icrc_load(frame + f.transport_end);
	assert_true(out->icrc_right);
	return true;
}

struct rig_packet rig_expect(struct sim *s, uint8_t opcode, uint32_t psn)
{
	struct rig_packet p = {0};

	if (!rig_recv(s, &p, MS))
		fail_msg("no packet came; %s PSN %#x was expected", wire_opcode_name(opcode),
			 psn & PSN_MASK);
	if (p.h.opcode != opcode || p.h.psn != (psn & PSN_MASK))
		fail_msg("%s PSN %#x (syndrome %#x) came; %s PSN %#x was expected",
			 wire_opcode_name(p.h.opcode), p.h.psn, p.h.syndrome,
			 wire_opcode_name(opcode), psn & PSN_MASK);
	return p;
}

struct rig_packet rig_expect_ack(struct sim *s, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct rig_packet p = rig_expect(s, WIRE_RC_ACK, psn);

	assert_int_equal(aeth_kind(p.h.syndrome), aeth_kind(syndrome));
	if (aeth_kind(syndrome) != AETH_ACK)
		assert_int_equal(p.h.syndrome, syndrome);
	assert_int_equal(p.h.msn, msn & PSN_MASK);
	return p;
}

struct rig_packet rig_expect_nak(struct sim *s, uint32_t psn, enum aeth_nak code, uint32_t msn)
{
	return rig_expect_ack(s, psn, aeth_nak(code), msn);
}

void rig_expect_responses(struct sim *s, uint32_t psn, uint32_t packets)
{
	rig_expect(s, packets > 1 ? WIRE_RC_READ_RESP_FIRST : WIRE_RC_READ_RESP_ONLY, psn);
	for (uint32_t i = 1; i + 1 < packets; i++)
		rig_expect(s, WIRE_RC_READ_RESP_MIDDLE, psn + i);
	if (packets > 1)
		rig_expect(s, WIRE_RC_READ_RESP_LAST, psn + packets - 1);
}

void rig_expect_empty(struct sim *s, uint32_t psn, uint32_t msn)
{
	struct rig_packet p = rig_expect(s, WIRE_RC_READ_RESP_ONLY, psn);

	assert_int_equal(p.bytes, 0);
	assert_int_equal(p.h.msn, msn);
	assert_int_equal(aeth_kind(p.h.syndrome), AETH_ACK);
}

void rig_silent(struct sim *s, uint64_t ns)
{
	struct rig_packet p;

	if (rig_recv(s, &p, ns))
		fail_msg("%s PSN %#x (syndrome %#x) came; nothing was expected",
			 wire_opcode_name(p.h.opcode), p.h.psn, p.h.syndrome);
}

/* ---- the client of the HCA ---- */

struct cqe rig_expect_cqe(struct sim *s, uint8_t opcode, uint8_t syndrome, uint32_t wqe_offset)
{
	struct cqe c;

	assert_true(sim_wait(s, 0, &c, 200 * MS));
	assert_int_equal(c.opcode, opcode);
	if (opcode == USER_INVALID)
		assert_int_equal(c.imm_or_error & 0xff, syndrome);
	assert_int_equal(c.wqe_offset, wqe_offset);
	return c;
}

void rig_no_cqe(struct sim *s)
{
	struct cqe c;

	assert_false(sim_poll_cq(s, 0, &c));
}

void rig_expect_event(struct sim *s, enum eqe_type type, uint32_t number)
{
	struct eqe e;

	assert_true(sim_poll_event(s, 0, &e));
	assert_int_equal(e.type, type);
	assert_int_equal(e.number, number);
}

void rig_quiet(struct sim *s, uint64_t ns)
{
	rig_silent(s, ns);
	rig_no_cqe(s);
}

void rig_expect_same(struct sim *s, unsigned first, unsigned end, uint8_t opcode)
{
	for (unsigned i = first; i < end; i++)
		rig_expect_cqe(s, opcode, 0, i * SIM_STRIDE);
}

void rig_expect_list(struct sim *s, unsigned first, const uint8_t *opcodes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rig_expect_cqe(s, opcodes[i], 0, (first + i) * SIM_STRIDE);
}

void rig_no_event(struct sim *s)
{
	struct eqe e;

	assert_false(sim_poll_event(s, 0, &e));
}

static void drop_everything(struct sim *s)
{
	struct rig_packet p;
	struct cqe c;
	struct eqe e;

	while (rig_recv(s, &p, 0))
		;
	while (sim_poll_cq(s, 0, &c))
		;
	while (sim_poll_event(s, 0, &e))
		;
}

void rig_reconnect(struct sim *s, unsigned qp)
{
	sim_run(s, 5 * US);
	sim_modify(s, 0, qp, QP_RST, 0);
	drop_everything(s);
	sim_modify(s, 0, qp, QP_INIT, 0);
	sim_modify(s, 0, qp, QP_RTR, 0);
	sim_modify(s, 0, qp, QP_RTS, 0);
}

static uint32_t make_key(struct sim *s, uint64_t offset, uint64_t length, uint32_t access,
			 uint32_t pd, uint32_t flags)
{
	static uint32_t serial;
	struct sim_node *n = &s->node[0];
	uint32_t index = 16 + serial++ % 200;
	struct mpt_entry e = {.key = 0xdef00000u + (index << KEY_TAG_BITS),
			      .pd = pd ? pd : sim_context(s, 0, 0)->pd,
			      .access = access,
			      .flags = flags,
			      .start = n->va + offset,
			      .length = length,
			      .phys = n->memory + offset};

	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, e.key), &e,
				  sizeof(e), NULL, 0),
			 CEU_OK);
	return e.key;
}

uint32_t rig_region(struct sim *s, uint64_t offset, uint64_t length, uint32_t access, uint32_t pd)
{
	return make_key(s, offset, length, access, pd, 0);
}

uint32_t rig_window(struct sim *s, uint64_t offset, uint64_t length)
{
	return make_key(s, offset, length,
			ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ, 0,
			MPT_INVALIDATE_REMOTE);
}

uint32_t rig_peer_region(struct sim *s, uint64_t offset, uint64_t at, uint32_t bytes)
{
	struct sim_node *n = &s->node[1];
	uint32_t key = n->key + (1 << 8);
	struct mpt_entry e = {.key = key,
			      .pd = sim_context(s, 1, 0)->pd,
			      .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
					ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE,
			      .start = n->va + offset,
			      .length = bytes,
			      .phys = n->memory + at};

	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, key), &e,
				  sizeof(e), NULL, 0),
			 CEU_OK);
	return key;
}

void rig_revoke(struct sim *s, uint32_t key)
{
	assert_int_equal(ceu_exec(s->node[0].ceu, CEU_HW2SW_MPT, key, NULL, 0, NULL, 0), CEU_OK);
}

uint32_t rig_revoke_midway(struct sim *s, uint32_t key, uint32_t psn, uint32_t received)
{
	uint32_t mtu = wire_mtu_bytes(s->params.mtu), bytes, made;
	uint8_t *memory = s->node[0].memory;

	rig_revoke(s, key);
	made = (uint32_t)sim_counter(s, 0, COUNTER_read_response_packets) - received;
	assert_true(made > 0);
	bytes = (1 + made) * mtu;
	for (uint64_t i = 0; i < s->node[0].memory_bytes; i++)
		memory[i] ^= 0xff;
	for (uint32_t at = mtu; at < bytes; at += mtu) {
		struct rig_packet p = rig_expect(s, WIRE_RC_READ_RESP_MIDDLE, ++psn);

		assert_int_equal(p.bytes, mtu);
		for (uint32_t i = 0; i < mtu; i++)
			if ((p.payload[i] ^ memory[at + i]) != 0xff)
				fail_msg("byte %u of PSN %#x was read after its key went", i, psn);
	}
	return psn_add(psn, 1);
}

void rig_holds_pattern(struct sim *s, uint64_t offset, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (s->node[0].memory[offset + i] != (uint8_t)(i * 7 + 1))
			fail_msg("byte %u of what was sent is not at %#x", i, (unsigned)offset);
}

void rig_untouched(struct sim *s, uint64_t offset, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (s->node[0].memory[offset + i])
			fail_msg("byte %u at %#x was written", i, (unsigned)offset);
}

uint32_t rig_epsn(struct sim *s, unsigned qp)
{
	return sim_context(s, 0, qp)->ee.expected_psn;
}

enum qp_state rig_state(struct sim *s, unsigned qp)
{
	struct qp *q = sim_context(s, 0, qp);

	if (!q)
		fail_msg("queue pair %u is gone", qp);
	return q ? qp_state(q) : QP_RST;
}

void rig_expect_refusal(struct sim *s, unsigned qp, uint32_t psn, enum aeth_nak code, uint32_t msn)
{
	rig_expect_nak(s, psn, code, msn);
	rig_silent(s, 20 * US);
	assert_int_equal(rig_state(s, qp), QP_ERR);
	assert_int_equal(rig_epsn(s, qp), psn & PSN_MASK);
	rig_expect_event(
		s, code == AETH_NAK_REMOTE_ACCESS ? EQE_WQ_ACCESS_ERROR : EQE_WQ_INVAL_REQ_ERROR,
		s->node[0].qp[qp].qpn);
}
