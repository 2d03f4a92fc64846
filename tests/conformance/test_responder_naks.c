/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's rules on keys, receive buffers, and the acknowledgements it builds: their PSNs,
 * syndromes, schedule (C9-89 to C9-91, C9-95, C9-111 to C9-119, C9-124 to C9-126, C9-129). */
#include "rig.h"

enum { PSN = 0x100, AT = 4096, RECV = 1 << 20, MTU = 1024 };

static void request(struct sim *s, uint8_t opcode, uint32_t psn, uint64_t at, uint32_t dma_len,
		    uint32_t bytes)
{
	rig_request(s, 0, opcode, psn, at, dma_len, bytes);
}

static void keyed(struct sim *s, uint32_t key, uint8_t opcode, uint32_t psn, uint64_t at,
		  uint32_t dma_len, uint32_t bytes)
{
	struct wire_headers h = rig_headers(s, 0, opcode, psn, at, dma_len);

	h.ackreq = 1;
	h.rkey = key;
	rig_send(s, h, NULL, bytes);
}

/* ---- C9-89, C9-90: keys ---- */

static const struct {
	uint8_t opcode;
	uint32_t dma_len, bytes;
	uint8_t right;
} accesses[] = {
	{WIRE_RC_WRITE_ONLY, 64, 64, ACCESS_REMOTE_WRITE},
	{WIRE_RC_WRITE_ONLY_IMM, 64, 64, ACCESS_REMOTE_WRITE},
	{WIRE_RC_WRITE_FIRST, MTU + 64, MTU, ACCESS_REMOTE_WRITE},
	{WIRE_RC_READ_REQUEST, 64, 0, ACCESS_REMOTE_READ},
	{WIRE_RC_CMP_SWAP, 0, 0, ACCESS_REMOTE_ATOMIC},
	{WIRE_RC_FETCH_ADD, 0, 0, ACCESS_REMOTE_ATOMIC},
};
#define ACCESSES (sizeof(accesses) / sizeof(accesses[0]))

/* The access through that key is refused, and nothing is touched. */
static void access_refused(struct sim *s, unsigned i, uint32_t key, uint64_t at)
{
	rig_reconnect(s, 0);
	sim_post_recv(s, 0, 0, RECV, 1000);
	keyed(s, key, accesses[i].opcode, PSN, at, accesses[i].dma_len, accesses[i].bytes);
	rig_expect_refusal(s, 0, PSN, AETH_NAK_REMOTE_ACCESS, 0);
	rig_untouched(s, 0, 4 * MTU);
}

TEST_RC(c9_089__wrong_key_right_or_domain)
{
	uint32_t own = s->node[0].key;
	struct rig_packet p;

	for (unsigned i = 0; i < ACCESSES; i++) {
		uint32_t lacks = rig_region(s, 0, 4 * MTU, 0xf & ~accesses[i].right, 0);
		uint32_t has = rig_region(s, 0, 4 * MTU, accesses[i].right | ACCESS_LOCAL_WRITE, 0);
		uint32_t foreign = rig_region(s, 0, 4 * MTU, 0xf, 77);

		access_refused(s, i, 0, 0);
		access_refused(s, i, own ^ 0x100000, 0); /* its index, another generation */
		access_refused(s, i, own + 1, 0);
		access_refused(s, i, lacks, 0);
		access_refused(s, i, foreign, 0);
		rig_reconnect(s, 0);
		sim_post_recv(s, 0, 0, RECV, 1000);
		keyed(s, has, accesses[i].opcode, PSN, 0, accesses[i].dma_len, accesses[i].bytes);
		assert_true(rig_recv(s, &p, MS));
		assert_int_equal(aeth_kind(p.h.syndrome), AETH_ACK);
		assert_int_equal(rig_state(s, 0), QP_RTS);
		memset(s->node[0].memory, 0, 4 * MTU);
		rig_revoke(s, has);
		access_refused(s, i, has, 0);
		rig_revoke(s, lacks);
		rig_revoke(s, foreign);
	}
}

/* A region from MTU to 3 MTU: an access that begins before it, ends behind it, or wraps is
 * outside. */
TEST_RC(c9_089__bounds_of_the_region)
{
	uint32_t key = rig_region(s, MTU, 2 * MTU, 0xf, 0);
	struct rig_packet p;

	for (unsigned i = 0; i < ACCESSES; i++) {
		uint32_t length = accesses[i].dma_len ? accesses[i].dma_len : 8;
		uint32_t step = accesses[i].dma_len ? 1 : 8; /* atomics are aligned */
		/* a WRITE is checked packet by packet, a READ as a whole */
		uint32_t reach = accesses[i].bytes ? accesses[i].bytes : length;
		uint64_t va = s->node[0].va;

		access_refused(s, i, key, MTU - step);
		access_refused(s, i, key, 3 * MTU - reach + step);
		access_refused(s, i, key, 3 * MTU);
		access_refused(s, i, key, 3 * MTU + 8);
		access_refused(s, i, key, (uint64_t)0 - va);	      /* address 0 */
		access_refused(s, i, key, (uint64_t)0 - 8 - va);      /* the end wraps */
		access_refused(s, i, key, MTU + ((uint64_t)1 << 63)); /* far away */
		for (unsigned end = 0; end < 2; end++) {
			rig_reconnect(s, 0);
			sim_post_recv(s, 0, 0, RECV, 1000);
			keyed(s, key, accesses[i].opcode, PSN, end ? 3 * MTU - length : MTU,
			      accesses[i].dma_len, accesses[i].bytes);
			assert_true(rig_recv(s, &p, MS));
			assert_int_equal(aeth_kind(p.h.syndrome), AETH_ACK);
		}
		memset(s->node[0].memory, 0, 4 * MTU);
	}
}

/* The key is revoked before packet n of a WRITE: that one is refused, earlier ones have been
 * written. */
TEST_RC(c9_089__key_taken_away_meanwhile)
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE,
					  WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST,
					  WIRE_RC_WRITE_LAST_IMM};

	for (uint32_t n = 0; n < 5; n++) {
		uint32_t key = rig_region(s, 0, 4 * MTU, 0xf, 0), packets = n < 4 ? n : 3;

		rig_reconnect(s, 0);
		sim_post_recv(s, 0, 0, RECV, 1000);
		for (uint32_t i = 0; i < packets; i++) {
			keyed(s, key, opcodes[i], PSN + i, 0, 3 * MTU + 100, MTU);
			rig_expect_ack(s, PSN + i, aeth_ack(0), 0);
		}
		rig_revoke(s, key);
		keyed(s, key, opcodes[n], PSN + packets, 0, 3 * MTU + 100, n < 3 ? MTU : 100);
		rig_expect_refusal(s, 0, PSN + packets, AETH_NAK_REMOTE_ACCESS, 0);
		for (uint32_t i = 0; i < packets; i++)
			rig_holds_pattern(s, i * MTU, MTU);
		rig_untouched(s, packets * MTU, MTU);
		rig_expect_cqe(s, USER_INVALID, n == 4 ? SYNDROME_LOCAL_ACCESS : SYNDROME_WR_FLUSH,
			       0);
		rig_no_cqe(s);
		memset(s->node[0].memory, 0, 4 * MTU);
	}
}

TEST_RC(c9_090__what_precedes_is_done_before_the_nak)
{
	sim_post_recv(s, 0, 0, RECV, 1000);
	rig_send(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN, AT, 64), NULL, 64);
	request(s, WIRE_RC_READ_REQUEST, PSN + 1, 0, 200 * MTU, 0);
	request(s, WIRE_RC_SEND_ONLY, PSN + 201, 0, 0, 64);
	keyed(s, 0x1234, WIRE_RC_WRITE_ONLY, PSN + 202, AT + 64, 64, 64);
	rig_expect_responses(s, PSN + 1, 200);
	rig_holds_pattern(s, AT, 64);
	rig_expect_cqe(s, USER_RECV, 0, 0);
	rig_expect_refusal(s, 0, PSN + 202, AETH_NAK_REMOTE_ACCESS, 3);
	rig_untouched(s, AT + 64, 64);
}

/* ---- C9-91: receive buffers ---- */

/* SEND of 3 packets (MTU, MTU, 100) into a receive of this many bytes: `bad` is refused, 3:
 * none. */
static void send_into(struct sim *s, uint32_t room, uint32_t bad)
{
	static const uint8_t opcodes[] = {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE,
					  WIRE_RC_SEND_LAST};
	static const uint32_t lengths[] = {MTU, MTU, 100};

	rig_reconnect(s, 0);
	memset(s->node[0].memory + RECV, 0, 4 * MTU);
	sim_post_recv(s, 0, 0, RECV, room);
	sim_post_recv(s, 0, 0, RECV + 8 * MTU, MTU);
	for (uint32_t i = 0; i < 3; i++) {
		request(s, opcodes[i], PSN + i, 0, 0, lengths[i]);
		if (i == bad) {
			rig_expect_refusal(s, 0, PSN + i, AETH_NAK_INVALID_REQUEST, 0);
			assert_int_equal(sim_context(s, 0, 0)->ee.refused,
					 0); /* the receive's fault */
			rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_LENGTH, 0);
			rig_expect_cqe(s, USER_INVALID, SYNDROME_WR_FLUSH, SIM_RQ_STRIDE);
			rig_untouched(s, RECV + room, MTU);
			return;
		}
		rig_expect_ack(s, PSN + i, aeth_ack(0), i == 2);
		rig_holds_pattern(s, RECV + i * MTU, lengths[i]);
	}
	assert_int_equal(rig_expect_cqe(s, USER_RECV, 0, 0).byte_count, 2 * MTU + 100);
	rig_untouched(s, RECV + 2 * MTU + 100, MTU);
}

TEST_RC(c9_091__send_longer_than_its_receive_at_each_packet)
{
	send_into(s, 0, 0);
	send_into(s, 1, 0);
	send_into(s, MTU - 1, 0);
	send_into(s, MTU, 1);
	send_into(s, 2 * MTU - 1, 1);
	send_into(s, 2 * MTU, 2);
	send_into(s, 2 * MTU + 99, 2);
	send_into(s, 2 * MTU + 100, 3);
	send_into(s, 3 * MTU, 3);
}

/* A SEND without payload fits into a receive without entries; so does a WRITE with immediate. */
TEST_RC(c9_091__empty_receive_is_enough_for_nothing)
{
	sim_post_recv(s, 0, 0, 0, 0);
	sim_post_recv(s, 0, 0, 0, 0);
	request(s, WIRE_RC_SEND_ONLY, PSN, 0, 0, 0);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_cqe(s, USER_RECV, 0, 0);
	request(s, WIRE_RC_WRITE_ONLY_IMM, PSN + 1, AT, 64, 64);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 2);
	assert_int_equal(rig_expect_cqe(s, USER_RECV_RDMA_IMM, 0, SIM_RQ_STRIDE).byte_count, 64);
}

/* ---- C9-95, C9-116: acknowledgements and their time ---- */

TEST_RC(c9_095__ack_carries_the_most_recent_psn)
{
	for (uint32_t i = 0; i < 30; i++)
		rig_write(s, PSN + i, AT, 4);
	rig_expect_ack(s, PSN + 29, aeth_ack(0), 30);
	rig_write(s, PSN + 30, AT, 4);
	rig_write(s, PSN + 2, AT, 4); /* a duplicate takes nothing back */
	rig_expect_ack(s, PSN + 30, aeth_ack(0), 31);
	rig_silent(s, 10 * US);
}

TEST_RC(c9_116__ackreq_on_any_packet_draws_an_ack)
{
	static const uint8_t opcodes[] = {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE,
					  WIRE_RC_WRITE_MIDDLE, WIRE_RC_WRITE_LAST};

	for (uint32_t asks = 0; asks < 4; asks++) {
		rig_reconnect(s, 0);
		for (uint32_t i = 0; i < 4; i++) {
			struct wire_headers h =
				rig_headers(s, 0, opcodes[i], PSN + i, AT, 3 * MTU + 4);

			h.ackreq = i == asks;
			rig_send(s, h, NULL, i < 3 ? MTU : 4);
			if (i == asks)
				rig_expect_ack(s, PSN + i, aeth_ack(0), i == 3);
		}
		sim_run(s, 2 * US);
		assert_int_equal(rig_epsn(s, 0), PSN + 4);
	}
}

/* One answer may serve several that ask; its PSN is that of the last or greater. */
TEST_RC(c9_116__one_ack_for_several_that_ask)
{
	rig_write(s, PSN, AT, 4);
	rig_write(s, PSN + 1, AT, 4);
	rig_send(s, rig_headers(s, 0, WIRE_RC_WRITE_ONLY, PSN + 2, AT, 4), NULL, 4);
	rig_expect_ack(s, PSN + 2, aeth_ack(0), 3);
	rig_silent(s, 10 * US);
}

/* ---- C9-111, C9-113, C9-113.a1, C9-119, C9-124 to C9-126: NAKs ---- */

/* Each kind of NAK, drawn by the second request. */
static const struct nak {
	uint8_t opcode, syndrome;
	uint32_t ahead, dma_len, bytes, key;
} naks[] = {
	{WIRE_RC_WRITE_ONLY, 0x60, 3, 64, 64, 0},
	{WIRE_RC_READ_REQUEST, 0x60, 1, 64, 0, 0},
	{WIRE_RC_FETCH_ADD, 0x60, 7, 0, 0, 0},
	{WIRE_RC_SEND_MIDDLE, 0x61, 0, 0, MTU, 0},
	{WIRE_RC_READ_REQUEST, 0x61, 0, UINT32_MAX, 0, 0},
	{0x1f, 0x61, 0, 0, 0, 0},
	{WIRE_RC_WRITE_ONLY, 0x62, 0, 64, 64, 0x1234},
	{WIRE_RC_READ_REQUEST, 0x62, 0, 4 * MTU, 0, 0x1234},
	{WIRE_RC_CMP_SWAP, 0x62, 0, 0, 0, 0x1234},
	{WIRE_RC_SEND_ONLY, 0x21, 0, 0, 64, 0},
	{WIRE_RC_SEND_FIRST, 0x21, 0, 0, MTU, 0},
	{WIRE_RC_WRITE_ONLY_IMM, 0x21, 0, 64, 64, 0},
};

static struct rig_packet draw_nak(struct sim *s, const struct nak *n)
{
	struct rig_packet p;

	rig_reconnect(s, 0);
	rig_written(s, PSN, AT, 64, 1);
	keyed(s, n->key ? n->key : s->node[0].key, n->opcode, PSN + 1 + n->ahead, AT, n->dma_len,
	      n->bytes);
	assert_true(rig_recv(s, &p, MS));
	return p;
}

TEST_RC(c9_119__naks_as_tabled)
{
	for (unsigned i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
		struct rig_packet p = draw_nak(s, &naks[i]);

		assert_int_equal(p.h.opcode, WIRE_RC_ACK);
		assert_int_equal(p.bytes, 0);
		assert_int_equal(p.h.syndrome, naks[i].syndrome);
		assert_int_equal(p.h.psn, PSN + 1);
		assert_int_equal(rig_epsn(s, 0), PSN + 1);
		assert_int_equal(p.h.msn, 1);
	}
}

TEST_RC(c9_119__acknowledgements_as_tabled)
{
	rig_write(s, PSN, AT, 64);
	rig_read(s, PSN + 1, AT, 2 * MTU);
	request(s, WIRE_RC_FETCH_ADD, PSN + 3, AT, 0, 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct rig_packet p;

		assert_true(rig_recv(s, &p, MS));
		assert_int_equal(p.h.psn, PSN + i);
		assert_int_equal(p.h.syndrome >> 5, 0);
	}
}

/* An access with a wrong key behind `before` good requests. */
static void refused_behind(struct sim *s, unsigned access, uint32_t before)
{
	rig_reconnect(s, 0);
	sim_post_recv(s, 0, 0, RECV, 1000);
	for (uint32_t i = 0; i < before; i++)
		rig_write(s, PSN + i, AT, 4);
	keyed(s, 0x1234, accesses[access].opcode, PSN + before, AT, accesses[access].dma_len,
	      accesses[access].bytes);
	if (before)
		rig_expect_ack(s, PSN + before - 1, aeth_ack(0), before);
	rig_expect_refusal(s, 0, PSN + before, AETH_NAK_REMOTE_ACCESS, before);
}

TEST_RC(c9_124__remote_access_error_has_the_psn_of_its_request)
{
	for (unsigned i = 0; i < ACCESSES; i++)
		for (uint32_t before = 0; before < 3; before++)
			refused_behind(s, i, before);
}

/* The bounds or the key fail within a WRITE: the PSN is that packet's, not the first's. */
TEST_RC(c9_124__during_a_write)
{
	for (uint32_t good = 1; good < 4; good++) {
		uint32_t key, all = (good + 1) * MTU;

		rig_reconnect(s, 0);
		key = rig_region(s, AT, good == 1 ? MTU : all,
				 ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE, 0);
		keyed(s, key, WIRE_RC_WRITE_FIRST, PSN, AT, all, MTU);
		rig_expect_ack(s, PSN, aeth_ack(0), 0);
		for (uint32_t i = 1; i < good; i++) {
			request(s, WIRE_RC_WRITE_MIDDLE, PSN + i, 0, 0, MTU);
			rig_expect_ack(s, PSN + i, aeth_ack(0), 0);
		}
		if (good > 1)
			rig_revoke(s, key);
		request(s, WIRE_RC_WRITE_LAST, PSN + good, 0, 0, MTU);
		rig_expect_refusal(s, 0, PSN + good, AETH_NAK_REMOTE_ACCESS, 0);
		rig_holds_pattern(s, AT, MTU);
		rig_untouched(s, AT + good * MTU, MTU);
	}
}

TEST_RC(c9_125__invalid_request_has_the_psn_of_its_request)
{
	for (uint32_t before = 0; before < 5; before++) {
		rig_reconnect(s, 0);
		for (uint32_t i = 0; i < before; i++)
			rig_write(s, PSN + i, AT, 4);
		request(s, WIRE_RC_WRITE_LAST, PSN + before, AT, 0, 64);
		if (before)
			rig_expect_ack(s, PSN + before - 1, aeth_ack(0), before);
		rig_expect_refusal(s, 0, PSN + before, AETH_NAK_INVALID_REQUEST, before);
	}
}

/* The responder's own memory refuses: the receive's key is wrong, or its second MTU lies outside of
 * the region. */
TEST_RC(c9_126__remote_operational_error)
{
	for (uint32_t n = 0; n < 2; n++) {
		struct wqe_data *d = (struct wqe_data *)(s->node[0].qp[0].rq + 16);

		rig_reconnect(s, 0);
		sim_post_recv(s, 0, 0, s->node[0].memory_bytes - n * MTU - 1, 4 * MTU);
		if (n == 0)
			d->lkey ^= 0x100000;
		for (uint32_t i = 0; i < n; i++) {
			request(s, WIRE_RC_SEND_FIRST, PSN, 0, 0, MTU);
			rig_expect_ack(s, PSN, aeth_ack(0), 0);
		}
		request(s, n ? WIRE_RC_SEND_LAST : WIRE_RC_SEND_ONLY, PSN + n, 0, 0, MTU);
		if (n)
			request(s, WIRE_RC_SEND_ONLY, PSN + 2, 0, 0, MTU);
		rig_expect_nak(s, PSN + n, AETH_NAK_REMOTE_OPERATION, 0);
		rig_silent(s, 100 * US);
		assert_int_equal(rig_state(s, 0), QP_ERR);
		assert_int_equal(rig_epsn(s, 0), PSN + n);
		rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_PROT, 0);
		rig_no_cqe(s);
	}
}

/* A receive descriptor with an inline unit is none. */
TEST_RC(c9_126__receive_descriptor_that_is_none)
{
	sim_post_recv(s, 0, 0, RECV, 4 * MTU);
	((struct wqe_data *)(s->node[0].qp[0].rq + 16))->length |= WQE_INLINE;
	request(s, WIRE_RC_SEND_ONLY, PSN, 0, 0, 64);
	rig_expect_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
	rig_expect_cqe(s, USER_INVALID, SYNDROME_LOCAL_QP_OP, 0);
	assert_int_equal(rig_state(s, 0), QP_ERR);
	assert_int_equal(sim_counter(s, 0, COUNTER_bad_recv_wqe), 1);
}

/* A client that armed for solicited completions is woken by those that the peer's bit marks, by
 * each kind of message that completes a receive, and once. */
TEST_RC(events__a_received_solicited_bit)
{
	static const uint8_t opcodes[] = {WIRE_RC_SEND_ONLY, WIRE_RC_SEND_ONLY_IMM,
					  WIRE_RC_SEND_ONLY_INV, WIRE_RC_WRITE_ONLY_IMM};
	struct sim_node *n = &s->node[0];

	for (unsigned i = 0; i < 3 * sizeof(opcodes); i++) {
		struct wire_headers h = rig_headers(s, 0, opcodes[i / 3], PSN + i, AT, 64);
		bool solicited = i % 3;

		if (i % 3 == 0)
			n->cq_record->arm_solicited++;
		h.se = solicited;
		sim_post_recv(s, 0, 0, RECV, 1000);
		rig_send(s, h, NULL, 64);
		assert_true(sim_wait(s, 0, &(struct cqe){0}, MS));
		if (i % 3 == 1)
			rig_expect_event(s, EQE_COMPLETION, n->cqn);
		rig_no_event(s);
	}
}

/* The client says that it posted more than its queue holds: nothing can be trusted. */
TEST_RC(events__catastrophe_of_a_receive_queue)
{
	s->node[0].qp[0].record->rq_posted = SIM_RQ_ENTRIES + 1;
	request(s, WIRE_RC_SEND_ONLY, PSN, 0, 0, 64);
	rig_expect_nak(s, PSN, AETH_NAK_REMOTE_OPERATION, 0);
	rig_expect_event(s, EQE_WQ_CATAS_ERROR, s->node[0].qp[0].qpn);
	rig_no_event(s);
	assert_int_equal(rig_state(s, 0), QP_ERR);
	sim_run(s, 10 * US);
	rig_no_cqe(s);
}

/* ---- C9-113, C9-129: receiver not ready ---- */

TEST_RC(c9_113__rnr_nak_has_the_psn_of_its_packet)
{
	rig_write(s, PSN, AT, 64);
	request(s, WIRE_RC_SEND_ONLY, PSN + 1, 0, 0, 64);
	rig_expect_ack(s, PSN, aeth_ack(0), 1);
	rig_expect_ack(s, PSN + 1, aeth_rnr(1), 1);
	request(s, WIRE_RC_SEND_ONLY, PSN + 1, 0, 0, 64); /* too early: again */
	rig_expect_ack(s, PSN + 1, aeth_rnr(1), 1);
	assert_int_equal(rig_state(s, 0), QP_RTS);
	rig_no_event(s);
	sim_post_recv(s, 0, 0, RECV, 64);
	request(s, WIRE_RC_SEND_ONLY, PSN + 1, 0, 0, 64);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 2);
	rig_holds_pattern(s, RECV, 64);
	assert_int_equal(sim_counter(s, 0, COUNTER_nak_rnr_sent), 2);
}

/* A WRITE with immediate needs its receive with its last packet only. */
TEST_RC(c9_113__rnr_nak_of_a_write_with_immediate)
{
	request(s, WIRE_RC_WRITE_FIRST, PSN, AT, MTU + 64, MTU);
	request(s, WIRE_RC_WRITE_LAST_IMM, PSN + 1, AT, 0, 64);
	rig_expect_ack(s, PSN, aeth_ack(0), 0);
	rig_expect_ack(s, PSN + 1, aeth_rnr(1), 0);
	rig_holds_pattern(s, AT, MTU);
	rig_untouched(s, AT + MTU, 64);
	sim_post_recv(s, 0, 0, RECV, 64);
	request(s, WIRE_RC_WRITE_LAST_IMM, PSN + 1, AT, 0, 64);
	rig_expect_ack(s, PSN + 1, aeth_ack(0), 1);
	rig_holds_pattern(s, AT + MTU, 64);
	assert_int_equal(rig_expect_cqe(s, USER_RECV_RDMA_IMM, 0, 0).byte_count, MTU + 64);
	request(s, WIRE_RC_WRITE_ONLY_IMM, PSN + 2, AT + 4096, 64, 64);
	rig_expect_ack(s, PSN + 2, aeth_rnr(1), 1);
	rig_untouched(s, AT + 4096, 64);
}

TEST_RC(c9_129__each_timer_code)
{
	for (unsigned code = 0; code < 32; code++) {
		struct rig_packet p;

		s->params.min_rnr_timer = (uint8_t)code;
		if (code & 1)
			rig_reconnect(s, 0);
		else
			sim_modify(s, 0, 0, QP_RTS, QP_ATTR_MIN_RNR_TIMER);
		request(s, WIRE_RC_SEND_ONLY, PSN, 0, 0, 64);
		p = rig_expect(s, WIRE_RC_ACK, PSN);
		assert_int_equal(p.h.syndrome, 0x20 + code);
	}
}

/* Rule 89's text: a WRITE's length is checked packet by packet. */
TEST_RC(c9_089__write_is_checked_packet_by_packet)
{
	uint32_t key = rig_region(s, 0, MTU + 100, 0xf, 0);

	keyed(s, key, WIRE_RC_WRITE_FIRST, PSN, 0, 3 * MTU, MTU);
	rig_expect_ack(s, PSN, aeth_ack(0), 0);
	rig_holds_pattern(s, 0, MTU);
	keyed(s, key, WIRE_RC_WRITE_MIDDLE, PSN + 1, 0, 0, MTU);
	rig_expect_refusal(s, 0, PSN + 1, AETH_NAK_REMOTE_ACCESS, 0);
	rig_untouched(s, MTU, MTU);
}
