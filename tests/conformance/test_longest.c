/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The longest messages, 2^31 bytes (C9-72), and as many PSNs outstanding as there may be, 2^23
 * (C9-61): at an MTU of 256 one such READ. Regions are address space folded over a few megabytes.
 * SOFTHCA_LONGEST=1: every operation goes all the way at every MTU, in minutes.
 */
#include "peer.h"

#define LONGEST (1u << 31)

enum { PSN = 0xfffff0, WINDOW = 1 << 23, KINDS = 3 };

static const struct {
	uint8_t opcode, first;
} kinds[KINDS] = {{USER_SEND, WIRE_RC_SEND_FIRST},
		  {USER_RDMA_WRITE, WIRE_RC_WRITE_FIRST},
		  {USER_RDMA_READ, WIRE_RC_READ_REQUEST}};

/* Two entries: one cannot be that long. */
static struct sim_wr longest(uint8_t opcode, uint64_t at, uint32_t key)
{
	return (struct sim_wr){.opcode = opcode,
			       .remote = PEER_FAR,
			       .sge = {{at, LONGEST - 1, key}, {at + LONGEST - 1, 1, key}},
			       .sges = 2};
}

static struct sim_params params(uint8_t mtu, unsigned qps)
{
	struct sim_params p = peer_params();

	p.mtu = mtu;
	p.qps = qps;
	p.psn = PSN;
	return p;
}

/* Each is begun, which announces its length to the peer. */
TEST(c9_072__two_gibibytes_at_every_mtu)
{
	for (uint8_t mtu = 1; mtu <= 5; mtu++) {
		struct sim_params p = params(mtu, KINDS);
		struct sim *s = peer_create(&p);
		uint32_t key, seen = 0;
		uint64_t at = sim_map(s, 0, LONGEST, &key);
		struct rig_packet got;

		for (unsigned i = 0; i < KINDS; i++) {
			struct sim_wr wr = longest(kinds[i].opcode, at, key);

			sim_post(s, 0, i, &wr);
		}
		while (rig_recv(s, &got, 100 * US))
			for (unsigned i = 0; i < KINDS; i++)
				if (got.h.psn == PSN && got.h.opcode == kinds[i].first) {
					seen |= 1u << i;
					assert_true(i == 0 || got.h.dma_len == LONGEST);
				}
		assert_int_equal(seen, 7);
		rig_no_cqe(s);
		for (unsigned i = 0; i < KINDS; i++)
			rig_reconnect(s, i);
		rig_end(s);
	}
}

/* A READ with 2^23 responses is all that may be outstanding; it is sent again as a whole, once for
 * each timeout, and then from where its responses end; behind its first response there is room for
 * one PSN more. */
TEST(c9_061__exactly_the_window)
{
	struct sim_params p = params(1, 1);
	struct sim *s = peer_create(&p);
	uint32_t key;
	uint64_t at = sim_map(s, 0, LONGEST, &key);
	struct sim_wr read = longest(USER_RDMA_READ, at, key);
	struct rig_packet got;

	sim_post(s, 0, 0, &read);
	peer_post(s, USER_SEND, 8);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(rig_recv(s, &got, 100 * MS));
		assert_int_equal(got.h.opcode, WIRE_RC_READ_REQUEST);
		assert_int_equal(got.h.psn, PSN);
		assert_true(got.h.dma_len == LONGEST);
		rig_silent(s, 60 * MS);
	}
	rig_ack(s, 0, PSN + WINDOW, aeth_ack(31), 1); /* of nothing that was sent */
	rig_ack(s, 0, PSN - 1, aeth_ack(31), 0);
	rig_silent(s, 100 * US);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_FIRST, PSN, 0, NULL, PEER_MTU);
	rig_expect(s, WIRE_RC_SEND_ONLY, (PSN + WINDOW) & PSN_MASK);
	rig_ack(s, 0, PSN + WINDOW, aeth_ack(31), 2); /* the rest of the responses was lost */
	got = rig_expect(s, WIRE_RC_READ_REQUEST, PSN + 1);
	assert_true(got.h.dma_len == LONGEST - PEER_MTU);
	rig_no_cqe(s);
	rig_reconnect(s, 0);
	rig_end(s);
}

/* While its responses come nothing goes that would lie more than 2^23 PSNs behind its first: it
 * would be taken for something older, and for done. */
TEST(c9_061__no_psn_looks_older_than_the_read_before_it)
{
	struct sim_params p = params(1, 1);
	struct sim *s = peer_create(&p);
	uint32_t key;
	uint64_t at = sim_map(s, 0, LONGEST, &key);
	struct sim_wr read = longest(USER_RDMA_READ, at, key);
	struct rig_packet got;

	sim_post(s, 0, 0, &read);
	peer_post(s, USER_RDMA_READ, 8);
	peer_post(s, USER_SEND, 8);
	assert_true(rig_recv(s, &got, MS));
	for (unsigned i = 0; i < 3; i++)
		rig_read_response(s, 0, i == 0 ? WIRE_RC_READ_RESP_FIRST : WIRE_RC_READ_RESP_MIDDLE,
				  (PSN + i) & PSN_MASK, 0, NULL, PEER_MTU);
	rig_expect(s, WIRE_RC_READ_REQUEST, (PSN + WINDOW) & PSN_MASK);
	rig_read_response(s, 0, WIRE_RC_READ_RESP_MIDDLE, PSN + 3, 0, NULL, PEER_MTU);
	rig_silent(s, 100 * US);
	rig_no_cqe(s);
	rig_reconnect(s, 0);
	rig_end(s);
}

static void expect_responses(struct sim *s, uint32_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rig_expect(s,
			   first == 0 && i == 0 ? WIRE_RC_READ_RESP_FIRST
						: WIRE_RC_READ_RESP_MIDDLE,
			   (PSN + first + i) & PSN_MASK);
}

/* The responder: when such a READ is asked for again its PSN lies 2^23 before the expected one, and
 * it is answered from there again. */
TEST(c9_061__asked_for_again_across_the_window)
{
	struct sim_params p = params(1, 1);
	struct sim *s = rig_create(&p);
	struct wire_headers h;
	struct rig_packet got;
	uint32_t key;
	uint64_t at = sim_map(s, 0, LONGEST, &key);
	unsigned left = 100000;

	h = rig_headers(s, 0, WIRE_RC_READ_REQUEST, PSN, at, LONGEST);
	h.rkey = key;
	rig_send(s, h, NULL, 0);
	expect_responses(s, 0, 500);
	assert_int_equal(rig_epsn(s, 0), (PSN + WINDOW) & PSN_MASK);
	rig_send(s, h, NULL, 0);
	do
		assert_true(rig_recv(s, &got, MS));
	while (got.h.psn != PSN && left--);
	assert_int_equal(got.h.opcode, WIRE_RC_READ_RESP_FIRST);
	expect_responses(s, 1, 500);
	assert_int_equal(sim_counter(s, 0, COUNTER_duplicate_requests), 1);
	rig_reconnect(s, 0);
	rig_end(s);
}

/* The whole transfer from one HCA to the other; the last bytes written are the last bytes read. */
static void all_of_it(uint8_t opcode, uint8_t mtu)
{
	struct sim_params p = params(mtu, 1);
	uint64_t at[2];
	uint32_t key[2];
	struct sim_wr wr;
	struct sim *s;
	struct cqe c;
	bool read = opcode == USER_RDMA_READ;

	p.packets = 16383;
	s = sim_create(&p);
	for (unsigned n = 0; n < 2; n++)
		at[n] = sim_map(s, n, LONGEST, &key[n]);
	wr = longest(opcode, at[0], key[0]);
	wr.remote = at[1];
	wr.rkey = key[1];
	for (uint32_t i = 0; i < SIM_FOLD; i++)
		((uint8_t *)s->node[read].mapped)[i] = (uint8_t)(i * 31 + (i >> 12));
	if (opcode == USER_SEND)
		sim_post_recv_list(s, 1, 0,
				   (struct sim_sge[]){{at[1], LONGEST - 1, key[1]},
						      {at[1] + LONGEST - 1, 1, key[1]}},
				   2);
	sim_post(s, 0, 0, &wr);
	assert_true(sim_wait(s, 0, &c, 60000 * MS));
	assert_int_equal(c.opcode, opcode);
	assert_true(c.byte_count == LONGEST);
	assert_int_equal(psn_sub(sim_context(s, 0, 0)->rtc.next_psn, PSN + LONGEST / (128u << mtu)),
			 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	assert_memory_equal(s->node[0].mapped, s->node[1].mapped, SIM_FOLD);
	while (sim_poll_cq(s, 1, &c))
		assert_true(c.byte_count == LONGEST);
	rig_end(s);
}

TEST(c9_072__a_read_of_two_gibibytes_is_answered_in_full)
{
	all_of_it(USER_RDMA_READ, 5);
}

TEST(c9_072__every_operation_in_full_at_every_mtu)
{
	if (!getenv("SOFTHCA_LONGEST"))
		skip();
	for (uint8_t mtu = 1; mtu <= 5; mtu++)
		for (unsigned i = 0; i < KINDS; i++) {
			print_message("MTU %u, opcode 0x%02x\n", 128u << mtu, kinds[i].opcode);
			all_of_it(kinds[i].opcode, mtu);
		}
}
