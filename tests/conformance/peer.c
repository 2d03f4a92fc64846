/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer of a requester: see peer.h. Opcodes are written as numbers of IBTA
 * table 38 on purpose: a wrong constant of lib/common/wire must not agree with itself.
 */
#include "peer.h"

struct sim_params peer_params(void)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;

	p.mtu = 1;
	p.timeout = 14;
	p.psn = PEER_PSN;
	return p;
}

struct sim *peer_create_without_credits(const struct sim_params *p)
{
	struct sim *s = rig_create(p);

	for (unsigned n = 0; n < 2; n++)
		for (uint64_t i = 0; i < s->node[n].memory_bytes; i++)
			s->node[n].memory[i] = (uint8_t)((i >> 8) * 31 + i * 7 + n * 101);
	for (unsigned q = 0; q < p->qps; q++)
		sim_context(s, 0, q)->rrc.proven = 1;
	return s;
}

struct sim *peer_create(const struct sim_params *p)
{
	struct sim *s = peer_create_without_credits(p);

	for (unsigned q = 0; q < p->qps && p->service == SERVICE_RC; q++)
		rig_ack(s, q, p->psn - 1, aeth_ack(AETH_CREDIT_INVALID), 0);
	sim_run(s, 10 * US);
	return s;
}

struct sim *peer_make(void)
{
	struct sim_params p = peer_params();

	return peer_create(&p);
}

struct sim_wr peer_wr(uint8_t opcode, uint32_t bytes)
{
	struct sim_wr wr = SIM_WR(opcode, 0, bytes, .imm = 0x11223344, .remote = PEER_FAR);

	if (sim_traits[opcode] & USER_SCATTERS)
		wr.sge[0].offset = PEER_INTO;
	if (opcode == USER_ATOMIC_CS || opcode == USER_ATOMIC_FA) {
		wr.sge[0].length = 8;
		wr.swap_add = 0x123456789abcdef0;
		wr.compare = 0x0fedcba987654321;
	}
	return wr;
}

uint32_t peer_post(struct sim *s, uint8_t opcode, uint32_t bytes)
{
	struct sim_wr wr = peer_wr(opcode, bytes);

	return sim_post(s, 0, 0, &wr);
}

void peer_ack(struct sim *s, uint32_t psn, uint32_t msn)
{
	rig_ack(s, 0, psn, 0x1f, msn);
}

void peer_nak(struct sim *s, uint32_t psn, uint8_t code, uint32_t msn)
{
	rig_ack(s, 0, psn, 0x60 | code, msn);
}

void peer_rnr(struct sim *s, uint32_t psn, uint8_t timer, uint32_t msn)
{
	rig_ack(s, 0, psn, 0x20 | timer, msn);
}

static uint32_t mtu_of(struct sim *s)
{
	return sim_context(s, 0, 0)->mtu_bytes;
}

static uint32_t packets_of(struct sim *s, uint32_t bytes)
{
	return bytes ? (bytes + mtu_of(s) - 1) / mtu_of(s) : 1;
}

void peer_read_responses(struct sim *s, uint32_t psn, uint32_t bytes, uint32_t first, uint32_t last,
			 uint32_t msn)
{
	uint32_t count = packets_of(s, bytes), mtu = mtu_of(s);

	for (uint32_t i = first; i <= last; i++) {
		uint8_t opcode = count == 1 ? 0x10 : i == 0 ? 0x0d : i == count - 1 ? 0x0f : 0x0e;

		rig_read_response(s, 0, opcode, psn + i, msn,
				  s->node[1].memory + PEER_FAR + (uint64_t)i * mtu,
				  i == count - 1 ? bytes - i * mtu : mtu);
	}
}

void peer_empty_response(struct sim *s, uint32_t psn, uint32_t msn)
{
	rig_read_response(s, 0, 0x10, psn, msn, NULL, 0);
}

void peer_atomic_response(struct sim *s, uint32_t psn, uint64_t orig, uint32_t msn)
{
	struct wire_headers h = rig_headers(s, 0, 0x12, psn, 0, 0);

	h.syndrome = 0x1f;
	h.msn = msn;
	h.orig = orig;
	rig_send(s, h, NULL, 0);
}

uint32_t peer_length(const struct sim_wr *wr)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < wr->sges; i++)
		bytes += wr->sge[i].length;
	return bytes;
}

/* Byte `at` of the message. */
static uint8_t message_byte(struct sim *s, const struct sim_wr *wr, uint32_t at)
{
	unsigned i = 0;

	while (at >= wr->sge[i].length)
		at -= wr->sge[i++].length;
	return s->node[0].memory[wr->sge[i].offset + at];
}

static uint8_t expected_opcode(const struct sim_wr *wr, bool first, bool last, uint8_t service)
{
	/* first, middle, last, only: IBTA table 38, reliable connection */
	static const uint8_t opcodes[32][4] = {
		[USER_SEND] = {0x00, 0x01, 0x02, 0x04},
		[USER_SEND_IMM] = {0x00, 0x01, 0x03, 0x05},
		[USER_SEND_INV] = {0x00, 0x01, 0x16, 0x17},
		[USER_RDMA_WRITE] = {0x06, 0x07, 0x08, 0x0a},
		[USER_RDMA_WRITE_IMM] = {0x06, 0x07, 0x09, 0x0b},
		[USER_RDMA_READ] = {0, 0, 0, 0x0c},
		[USER_ATOMIC_CS] = {0, 0, 0, 0x13},
		[USER_ATOMIC_FA] = {0, 0, 0, 0x14},
		[USER_ATOMIC_WRITE] = {0, 0, 0, 0x1d},
	};
	static const uint8_t services[] = {
		[SERVICE_RC] = 0, [SERVICE_UC] = 0x20, [SERVICE_UD] = 0x60};

	return services[service] + opcodes[wr->opcode][first && last ? 3
						       : first	     ? 0
						       : last	     ? 2
								     : 1];
}

static void check_headers(struct sim *s, const struct sim_wr *wr, const struct rig_packet *p,
			  bool first, bool last)
{
	bool atomic = wr->opcode == USER_ATOMIC_CS || wr->opcode == USER_ATOMIC_FA;
	const struct sim_node *peer = &s->node[1];

	assert_int_equal(p->h.dest_qp, peer->qp[0].qpn);
	assert_int_equal(p->h.pkey, 0xffff);
	assert_int_equal(p->h.tver, 0);
	assert_int_equal(p->h.pad, -p->bytes & 3);
	assert_int_equal(p->h.se, last && wr->solicited);
	if (sim_context(s, 0, 0)->service != SERVICE_RC)
		assert_int_equal(p->h.ackreq, 0);
	if (sim_traits[wr->opcode] & USER_RADDR && first) {
		assert_int_equal(p->h.va, (uintptr_t)peer->memory + wr->remote);
		assert_int_equal(p->h.rkey, wr->rkey ? wr->rkey : peer->key);
		if (!atomic)
			assert_int_equal(p->h.dma_len, peer_length(wr));
	}
	if (atomic)
		assert_int_equal(p->h.swap_add, wr->swap_add);
	if (wr->opcode == USER_ATOMIC_CS)
		assert_int_equal(p->h.compare, wr->compare);
	if (last && (wr->opcode == USER_SEND_IMM || wr->opcode == USER_RDMA_WRITE_IMM))
		assert_int_equal(p->h.imm, wr->imm);
	if (last && wr->opcode == USER_SEND_INV)
		assert_int_equal(p->h.invalidate_rkey, wr->imm);
}

uint32_t peer_expect_from(struct sim *s, const struct sim_wr *wr, uint32_t psn, uint32_t from,
			  struct rig_packet *last)
{
	uint32_t length = peer_length(wr), count = packets_of(s, length), mtu = mtu_of(s);
	struct rig_packet p;

	if (sim_traits[wr->opcode] & USER_SCATTERS) {
		p = rig_expect(s, expected_opcode(wr, true, true, SERVICE_RC), psn);
		check_headers(s, wr, &p, true, true);
		assert_int_equal(p.bytes, 0);
		if (last)
			*last = p;
		return psn_add(psn, wr->opcode == USER_RDMA_READ ? count : 1);
	}
	for (uint32_t i = from; i < count; i++) {
		bool at_end = i == count - 1;
		uint32_t bytes = at_end ? length - i * mtu : mtu;

		p = rig_expect(s,
			       expected_opcode(wr, i == 0, at_end, sim_context(s, 0, 0)->service),
			       psn + i);
		assert_int_equal(p.bytes, bytes);
		check_headers(s, wr, &p, i == 0, at_end);
		for (uint32_t k = 0; k < bytes; k++)
			if (p.payload[k] != message_byte(s, wr, i * mtu + k))
				fail_msg("byte %u of packet %u is wrong", k, i);
		for (uint32_t k = 0; k < p.h.pad; k++)
			assert_int_equal(p.payload[bytes + k], 0);
	}
	if (last)
		*last = p;
	return psn_add(psn, count);
}

uint32_t peer_expect(struct sim *s, const struct sim_wr *wr, uint32_t psn, struct rig_packet *last)
{
	return peer_expect_from(s, wr, psn, 0, last);
}

void peer_expect_error(struct sim *s, uint8_t syndrome, uint32_t wqe_offset)
{
	rig_expect_cqe(s, USER_INVALID, syndrome, wqe_offset);
}

void peer_expect_failed(struct sim *s, uint8_t syndrome, unsigned failed, unsigned end)
{
	peer_expect_error(s, syndrome, failed * SIM_STRIDE);
	while (++failed < end)
		peer_expect_error(s, SYNDROME_WR_FLUSH, failed * SIM_STRIDE);
}

void peer_post_list(struct sim *s, const struct sim_wr *const *wr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sim_post(s, 0, 0, wr[i]);
}

uint32_t peer_expect_list(struct sim *s, uint32_t psn, const struct sim_wr *const *wr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		psn = peer_expect(s, wr[i], psn, NULL);
	return psn;
}
