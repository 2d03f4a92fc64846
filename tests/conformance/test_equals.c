/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selective repeat between queue pairs that have agreed on it (doc/transport.md#between-equals): what is
 * missing is sent again and nothing else, once in a round trip; strangers never see it, and what they
 * send of it is an unknown opcode.
 */
#include "peer.h"
#include "pipeline/stepping.h"
#include "traffic.h"

enum { PSN = PEER_PSN, HIGH_PSN = 0x900000, MTU = PEER_MTU, AT = 4096 };

static struct sim *equal_peer(void)
{
	struct sim_params p = peer_params();

	p.equal = true;
	return peer_create(&p);
}

#define TEST_EQUAL(name) RIG_TEST(name, equal_peer())

/* A selective acknowledgement of `bytes`: `psn` is missing, and of what follows it these are kept. */
static void sack(struct sim *s, uint32_t psn, const uint32_t *kept, unsigned n, unsigned bytes)
{
	uint8_t map[WIRE_SACK_BYTES + 1] = {0};

	for (unsigned i = 0; i < n; i++) {
		uint32_t bit = psn_sub(kept[i], psn_add(psn, 1));

		map[bit / 8] |= (uint8_t)(1u << bit % 8);
	}
	rig_send(s, rig_headers(s, 0, WIRE_SACK, psn, 0, 0), map, bytes);
}

#define SACK(s, psn, ...)                                                                          \
	do {                                                                                       \
		const uint32_t kept[] = {__VA_ARGS__};                                             \
                                                                                                   \
		sack(s, psn, kept, RTE_DIM(kept), WIRE_SACK_BYTES);                                \
	} while (0)

/* ---- who repeats ---- */

static struct sim *high_peer(void)
{
	struct sim_params p = peer_params();

	p.equal = true;
	p.psn = HIGH_PSN;
	return peer_create(&p);
}

/* Whatever the PSN: before the first map has come nothing but the oldest packet is known to be missing. */
RIG_TEST(probe__of_one_packet_without_a_map, high_peer())
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, MTU);

	s->node[0].hca->engines[0].settings.first_probe_us = 1000;
	for (unsigned i = 0; i < 3; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 3; i++)
		rig_expect(s, WIRE_RC_WRITE_ONLY, HIGH_PSN + i);
	sim_run(s, 2 * MS);
	rig_expect(s, WIRE_RC_WRITE_ONLY, HIGH_PSN);
	rig_silent(s, 500 * US);
	peer_ack(s, HIGH_PSN + 2, 3);
	rig_expect_same(s, 0, 3, USER_RDMA_WRITE);
}

/* Only the holes, in order, once; again when what was sent after that has come. What was done is
 * acknowledged. */
TEST_EQUAL(sack__only_the_holes_are_sent_again)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, MTU);

	for (unsigned i = 0; i < 10; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 10; i++)
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
	SACK(s, PSN + 2, PSN + 3, PSN + 6, PSN + 8);
	for (unsigned i = 0; i < 4; i++)
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + (const uint32_t[]){2, 4, 5, 7}[i]);
	rig_expect_same(s, 0, 2, USER_RDMA_WRITE);
	SACK(s, PSN + 2, PSN + 3, PSN + 6, PSN + 8);
	rig_silent(s, 20 * US);
	SACK(s, PSN + 5, PSN + 6, PSN + 7, PSN + 8); /* it may be on its way */
	sim_post(s, 0, 0, &wr);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 10);
	SACK(s, PSN + 5, PSN + 6, PSN + 7, PSN + 8, PSN + 9, PSN + 10); /* it was lost again */
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 5);
	rig_silent(s, 10 * US);
	peer_ack(s, PSN + 10, 11);
	rig_expect_same(s, 2, 11, USER_RDMA_WRITE);
	rig_silent(s, 100 * MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 5);
}

/* Once loss_recovery is set back, a report of missing packets is a NAK: all of them go again, once. */
TEST_EQUAL(sack__after_the_setting_has_changed)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, MTU);

	for (unsigned i = 0; i < 4; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 4; i++)
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
	s->node[0].hca->engines[0].settings.loss_recovery = LOSS_RECOVERY_STANDARD;
	SACK(s, PSN, PSN + 1, PSN + 3);
	for (unsigned i = 0; i < 4; i++)
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
	SACK(s, PSN, PSN + 1, PSN + 3);
	rig_silent(s, 20 * US);
	peer_ack(s, PSN + 3, 4);
	rig_expect_same(s, 0, 4, USER_RDMA_WRITE);
}

/* New packets go on beside the repetition, and another hole among them is repeated at once. */
TEST_EQUAL(sack__another_hole_does_not_wait)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, MTU);

	for (unsigned i = 0; i < 4; i++)
		sim_post(s, 0, 0, &wr);
	for (unsigned i = 0; i < 4; i++)
		rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + i);
	SACK(s, PSN, PSN + 1);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN);
	sim_post(s, 0, 0, &wr);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 4);
	SACK(s, PSN, PSN + 1, PSN + 3);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 2);
	rig_silent(s, 20 * US);
	peer_ack(s, PSN + 4, 5);
	rig_expect_same(s, 0, 5, USER_RDMA_WRITE);
}

/* Impossible ones change nothing: of another length, of what was never sent, of what is done. */
TEST_EQUAL(sack__impossible_ones_are_dropped)
{
	const uint32_t next = PSN + 4, far = PSN + 200;
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 4 * MTU);

	peer_sends(s, PSN, &wr);
	sack(s, PSN, NULL, 0, WIRE_SACK_BYTES - 1);
	sack(s, PSN, NULL, 0, WIRE_SACK_BYTES + 1);
	sack(s, PSN, NULL, 0, 0);
	sack(s, PSN, &next, 1, WIRE_SACK_BYTES);
	sack(s, PSN + 2, &far, 1, WIRE_SACK_BYTES);
	sack(s, PSN + 4, NULL, 0, WIRE_SACK_BYTES);
	sack(s, PSN + (1 << 22), NULL, 0, WIRE_SACK_BYTES);
	sack(s, PSN - 1, NULL, 0, WIRE_SACK_BYTES);
	rig_silent(s, 20 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_sacks), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_resp_length), 2);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_ack_ghost), 4);
	assert_int_equal(sim_counter(s, 0, COUNTER_ack_duplicate), 2); /* one is peer_create()'s */
	assert_int_equal(sim_context(s, 0, 0)->rrc.unacked_psn, PSN);
	peer_ack(s, PSN + 3, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* Who has not agreed knows no such opcode. */
TEST_PEER(sack__of_a_stranger_is_an_unknown_opcode)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 4 * MTU);

	peer_sends(s, PSN, &wr);
	SACK(s, PSN, PSN + 2);
	rig_silent(s, 20 * US);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_opcode), 1);
	peer_ack(s, PSN + 3, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* The retry counter is the timer's alone: whoever asks for ever does not keep a request from failing. */
TEST_EQUAL(sack__without_progress_the_timer_counts)
{
	struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 2 * MTU);
	struct rig_packet p;
	unsigned asked = 0;

	sim_post(s, 0, 0, &wr);
	while (rig_state(s, 0) == QP_RTS && asked++ < 10000) {
		SACK(s, PSN, PSN + 1);
		while (rig_recv(s, &p, 500 * US))
			;
	}
	peer_expect_error(s, SYNDROME_RETRY_EXC, 0);
}

/* ---- READs ---- */

/* Responses that came are not asked for again: those missing are, each alone. */
TEST_EQUAL(read__only_the_holes_are_asked_for)
{
	enum { BYTES = 8 * MTU + 5 };
	struct sim_wr rd = peer_wr(USER_RDMA_READ, BYTES);
	struct rig_packet p;

	peer_sends(s, PSN, &rd);
	peer_read_responses(s, PSN, BYTES, 0, 1, 1);
	peer_read_responses(s, PSN, BYTES, 4, 5, 1);
	p = rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 2);
	assert_int_equal(p.h.dma_len, 2 * MTU);
	assert_int_equal(p.h.va, (uintptr_t)s->node[1].memory + PEER_FAR + 2 * MTU);
	peer_read_responses(s, PSN, BYTES, 7, 8, 1);
	p = rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 6);
	assert_int_equal(p.h.dma_len, MTU);
	rig_quiet(s, 10 * US);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_ONLY, PSN + 6, 1,
			  s->node[1].memory + PEER_FAR + 6 * MTU, MTU);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_FIRST, PSN + 2, 1,
			  s->node[1].memory + PEER_FAR + 2 * MTU, MTU);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_LAST, PSN + 3, 1,
			  s->node[1].memory + PEER_FAR + 3 * MTU, MTU);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	assert_memory_equal(s->node[0].memory + PEER_INTO, s->node[1].memory + PEER_FAR, BYTES);
	rig_silent(s, 100 * MS);
}

/* What was acknowledged behind a READ completes with it; nothing of it is sent again. */
TEST_EQUAL(read__an_acknowledgement_behind_it_is_not_lost)
{
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU), wr = peer_wr(USER_RDMA_WRITE, MTU);

	peer_posts(s, &rd, &wr, &wr);
	peer_expect(s, &rd, PSN, NULL);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 2);
	rig_expect(s, WIRE_RC_WRITE_ONLY, PSN + 3);
	peer_ack(s, PSN + 3, 3);
	assert_int_equal(rig_expect(s, WIRE_RC_READ_REQUEST, PSN).h.dma_len, 2 * MTU);
	rig_quiet(s, 10 * US);
	peer_read_responses(s, PSN, 2 * MTU, 0, 1, 1);
	rig_expect_cqe(s, USER_RDMA_READ, 0, 0);
	rig_expect_same(s, 1, 3, USER_RDMA_WRITE);
	rig_silent(s, 100 * MS);
}

/* A peer that takes longer than it seems is asked less often from hole to hole: the time of an answer counts from
 * the first time that it was asked, not from the last. */
TEST_EQUAL(read__a_round_trip_begins_with_the_first_repetition)
{
	enum { READS = 12, ANSWERS_US = 100 };
	struct sim_wr rd = peer_wr(USER_RDMA_READ, 4 * MTU);
	unsigned asked = 0;

	sim_context(s, 0, 0)->rrc.srtt_ns = 10 * US;
	for (unsigned i = 0, psn = PSN; i < READS; i++, psn += 4) {
		uint64_t until_ns = s->now_ns + ANSWERS_US * US;
		struct rig_packet p;

		peer_sends(s, psn, &rd);
		peer_read_responses(s, psn, 4 * MTU, 0, 0, i + 1);
		peer_read_responses(s, psn, 4 * MTU, 2, 3, i + 1);
		for (asked = 0; s->now_ns < until_ns;
		     asked += rig_recv(s, &p, until_ns - s->now_ns))
			;
		peer_read_responses(s, psn, 4 * MTU, 1, 1, i + 1);
		rig_expect_same(s, i, i + 1, USER_RDMA_READ);
	}
	assert_int_equal(asked, 1);
}

/* ---- who keeps ---- */

static struct rig_packet expect_sack(struct sim *s, uint32_t psn, uint64_t first)
{
	struct rig_packet p = rig_expect(s, WIRE_SACK, psn);
	uint64_t map[WIRE_SACK_BYTES / 8];

	assert_int_equal(p.bytes, WIRE_SACK_BYTES);
	assert_true(p.icrc_right);
	memcpy(map, p.payload, sizeof(map));
	if (map[0] != first)
		fail_msg("map %#lx, not %#lx", (unsigned long)map[0], (unsigned long)first);
	for (unsigned i = 1; i < RTE_DIM(map); i++)
		assert_true(map[i] == 0);
	return p;
}

static void write_at(struct sim *s, uint32_t psn, bool ask)
{
	struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_ONLY, psn, AT, 8);

	h.ackreq = ask;
	rig_send(s, h, NULL, 8);
}

/* Instead of the NAK, which comes once, the peer gets to know what is kept: at a gap, and when it asks. */
TEST_EQUAL(sack__tells_what_is_kept)
{
	write_at(s, PSN + 1, false);
	expect_sack(s, PSN, 1);
	write_at(s, PSN + 2, false);
	rig_silent(s, 10 * US);
	write_at(s, PSN + 3, true);
	expect_sack(s, PSN, 7);
	write_at(s, PSN + 5, false);
	expect_sack(s, PSN, 0x17);
	write_at(s, PSN, false);
	rig_expect_ack(s, PSN + 3, aeth_ack(0), 4);
	write_at(s, PSN + 6, true);
	expect_sack(s, PSN + 4, 3);
	write_at(s, PSN + 4, false);
	rig_expect_ack(s, PSN + 6, aeth_ack(0), 7);
	rig_silent(s, MS);
	assert_int_equal(sim_counter(s, 0, COUNTER_nak_sequence_sent), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_sacks_sent), 4);
}

/* A gap fills while its NAK waits. What was late makes patient; what a probe fills was lost. */
TEST_EQUAL(sack__no_patience_for_probes)
{
	struct qp *q = sim_context(s, 0, 0);

	for (uint32_t probe = 0, psn = PSN; probe < 2; probe++, psn += 2) {
		struct wire_headers h = rig_headers(s, 0, WIRE_RC_WRITE_FIRST, psn, AT, MTU + 8);

		h.ackreq = probe & 1;
		q->ee_gap.patience = 200;
		rig_request(s, 0, WIRE_RC_WRITE_LAST, psn + 1, 0, 0, 8);
		rig_silent(s, 120 * US);
		rig_send(s, h, NULL, MTU);
		for (struct rig_packet p; rig_recv(s, &p, 10 * US);)
			;
		assert_in_range(q->ee_gap.patience, probe ? 150 : 220, probe ? 150 : 280);
	}
}

/* ---- several ways ---- */

enum { WAYS = 4, WAYS_PACKETS = 20 };

static struct sim *make_spread(bool equal)
{
	struct sim_params p = peer_params();
	struct sim *s;

	p.equal = equal;
	s = peer_create(&p);
	s->node[0].hca->engines[0].settings.path_spread = WAYS;
	return s;
}

/* Sends WAYS_PACKETS packets in one message. Returns the UDP source port of the first. */
static unsigned send_bursts(struct sim *s, unsigned ways)
{
	unsigned first = 0;
	struct rig_packet p;

	peer_post(s, USER_RDMA_WRITE, WAYS_PACKETS * MTU);
	for (unsigned i = 0; i < WAYS_PACKETS; i++) {
		assert_true(rig_recv(s, &p, MS));
		assert_int_equal(p.h.psn, PSN + i);
		first = i ? first : p.sport;
		assert_int_equal(p.sport, 0xc000 | (first + i / 4 % ways));
	}
	return first;
}

/* Bursts take the ports in turn; a stranger sees one. */
TEST(spread__only_toward_equals)
{
	for (unsigned equal = 0; equal < 2; equal++) {
		struct sim *s = make_spread(equal);

		send_bursts(s, equal ? WAYS : 1);
		peer_ack(s, PSN + WAYS_PACKETS - 1, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		rig_end(s);
	}
}

/* What came along another way says nothing. What came behind it along its own shows that a packet is
 * missing, which then goes another way. */
RIG_TEST(spread__late_is_not_missing, make_spread(true))
{
	unsigned first = send_bursts(s, WAYS);
	struct rig_packet p;

	SACK(s, PSN + 4, PSN + 8, PSN + 9, PSN + 12, PSN + 16);
	rig_silent(s, 20 * US);
	assert_int_equal(sim_context(s, 0, 0)->rrc.window, 0);
	SACK(s, PSN + 4, PSN + 6, PSN + 8, PSN + 9, PSN + 12, PSN + 16);
	for (unsigned i = 4; i < 6; i++) {
		p = rig_expect(s, WIRE_RC_WRITE_MIDDLE, PSN + i);
		assert_int_equal(p.sport, 0xc000 | (first + 2));
	}
	SACK(s, PSN + 5, PSN + 6, PSN + 8, PSN + 9, PSN + 11, PSN + 12, PSN + 16);
	p = rig_expect(s, WIRE_RC_WRITE_MIDDLE, PSN + 10);
	assert_int_equal(p.sport, 0xc000 | (first + 3));
	rig_silent(s, 5 * US);
	peer_ack(s, PSN + WAYS_PACKETS - 1, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 3);
}

/* A frame that has not left yet stays as it is: it goes the same way twice. */
RIG_TEST(spread__what_waits_to_leave_keeps_its_way, make_spread(true))
{
	struct engine *e = s->node[0].hca->engines;
	unsigned sport[WAYS_PACKETS];
	struct rig_packet p;

	stepping_set(e, 1u << MODULE_TXA);
	peer_post(s, USER_RDMA_WRITE, WAYS_PACKETS * MTU);
	sim_run(s, 20 * US);
	SACK(s, PSN + 4, PSN + 6);
	sim_run(s, 20 * US);
	stepping_set(e, 0);
	for (unsigned i = 0; i < WAYS_PACKETS; i++) {
		p = rig_expect(s,
			       i ? i + 1 < WAYS_PACKETS ? WIRE_RC_WRITE_MIDDLE : WIRE_RC_WRITE_LAST
				 : WIRE_RC_WRITE_FIRST,
			       PSN + i);
		sport[i] = p.sport;
	}
	for (unsigned i = 4; i < 6; i++)
		assert_int_equal(rig_expect(s, WIRE_RC_WRITE_MIDDLE, PSN + i).sport, sport[i]);
	assert_int_equal(sport[4], 0xc000 | (sport[0] + 1));
	peer_ack(s, PSN + WAYS_PACKETS - 1, 1);
	rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
}

/* ---- both ---- */

/* Whatever is lost of the first packets in either direction, of any operation. */
TEST(c9_146__equals_lose_any_of_their_packets)
{
	static const uint8_t kinds[] = {USER_RDMA_WRITE, USER_SEND, USER_RDMA_READ, USER_ATOMIC_FA};
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.equal = true;
	p.memory_bytes = TRAFFIC_MEMORY;
	s = sim_create(&p);
	for (uint64_t mask = 0; mask < 4096; mask++) {
		static struct traffic t;

		sim_reset(s, &p);
		s->faults.drop_mask = mask & 63;
		s->faults.drop_mask_b = mask >> 6;
		traffic_begin(&t, s, "masks %#lx", (unsigned long)mask);
		for (unsigned i = 0; i < RTE_DIM(kinds); i++)
			traffic_add(&t, 0, 0, kinds[i], 1500);
		traffic_run(&t);
	}
	sim_destroy(s);
}
