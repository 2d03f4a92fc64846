/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's packets: PSNs, segmentation, opcodes, lengths (C9-61 to C9-72). */
#include <sys/mman.h>
#include "peer.h"

enum { PSN = PEER_PSN, MTU = PEER_MTU };

static const uint8_t all_pushes[] = {USER_SEND, USER_SEND_IMM, USER_SEND_INV, USER_RDMA_WRITE,
				     USER_RDMA_WRITE_IMM};
static const uint32_t lengths[] = {0,	    1,		 2,	     3,	      4,
				   MTU - 1, MTU,	 MTU + 1,    MTU + 3, 2 * MTU - 1,
				   2 * MTU, 2 * MTU + 1, 3 * MTU + 5};

/* Posts, checks every packet, acknowledges, and sees it complete. Returns the next PSN. */
static uint32_t through(struct sim *s, const struct sim_wr *wr, uint32_t psn, uint32_t msn)
{
	uint32_t at = sim_post(s, 0, 0, wr), next;
	struct rig_packet last;
	struct cqe c;

	next = peer_expect(s, wr, psn, &last);
	assert_int_equal(last.h.ackreq, 1);
	rig_quiet(s, 20 * US);
	if (wr->opcode == USER_RDMA_READ)
		peer_read_responses(s, psn, peer_length(wr), 0, psn_sub(next, psn + 1), msn);
	else if (wr->opcode > USER_RDMA_READ)
		peer_atomic_response(s, psn, 77, msn);
	else
		peer_ack(s, next - 1, msn);
	c = rig_expect_cqe(s, wr->opcode, 0, at);
	assert_int_equal(c.byte_count, peer_length(wr));
	assert_int_equal(c.my_qpn, s->node[0].qp[0].qpn);
	return next;
}

TEST_PEER(c9_062__every_request_packet_carries_its_psn)
{
	static const uint8_t opcodes[] = {USER_SEND,	   USER_SEND_IMM,	USER_SEND_INV,
					  USER_RDMA_WRITE, USER_RDMA_WRITE_IMM, USER_RDMA_READ,
					  USER_ATOMIC_CS,  USER_ATOMIC_FA,	USER_SEND};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		struct sim_wr wr = peer_wr(opcodes[i], 2 * MTU + 9);

		psn = through(s, &wr, psn, i + 1);
	}
	assert_int_equal(psn, PSN + 7 * 3 + 2);
}

TEST_PEER(c9_064__the_psn_of_a_packet_is_the_current_one)
{
	struct sim_wr a = peer_wr(USER_RDMA_WRITE, 3 * MTU), b = peer_wr(USER_SEND, 1);
	uint32_t psn = PSN;

	sim_post(s, 0, 0, &a); /* all at once: nothing waits for an acknowledgement */
	peer_posts(s, &b, &a);
	psn = peer_expect(s, &a, psn, NULL);
	psn = peer_expect(s, &b, psn, NULL);
	psn = peer_expect(s, &a, psn, NULL);
	assert_int_equal(psn, PSN + 7);
	assert_int_equal(sim_context(s, 0, 0)->rtc.next_psn, PSN + 7);
	peer_ack(s, PSN + 6, 3);
	for (unsigned i = 0; i < 3; i++)
		rig_expect_cqe(s, i == 1 ? USER_SEND : USER_RDMA_WRITE, 0, i * SIM_STRIDE);
}

TEST(c9_065__the_first_request_has_the_initial_psn)
{
	static const uint32_t psns[] = {0, 1, 0x7fffff, 0x800000, 0xfffffe, 0xffffff};

	for (unsigned i = 0; i < 6; i++) {
		struct sim_params p = peer_params();
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 64);
		struct sim *s;

		p.psn = psns[i];
		s = peer_create(&p);
		through(s, &wr, psns[i], 1);
		rig_end(s);
	}
}

TEST_PEER(c9_066__the_hole_behind_a_read)
{
	uint32_t psn = PSN;

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct sim_wr rd = peer_wr(USER_RDMA_READ, lengths[i]), wr = peer_wr(USER_SEND, 5);
		uint32_t at[2] = {sim_post(s, 0, 0, &rd), sim_post(s, 0, 0, &wr)}, behind;
		uint32_t responses = lengths[i] ? (lengths[i] + MTU - 1) / MTU : 1;

		behind = peer_expect(s, &rd, psn, NULL);
		assert_int_equal(behind, psn + responses);
		peer_expect(s, &wr, psn + responses, NULL);
		peer_read_responses(s, psn, lengths[i], 0, responses - 1, 2 * i + 1);
		peer_ack(s, psn + responses, 2 * i + 2);
		rig_expect_cqe(s, USER_RDMA_READ, 0, at[0]);
		rig_expect_cqe(s, USER_SEND, 0, at[1]);
		psn = behind + 1;
	}
}

/* From each PSN before the wrap: WRITE, READ, WRITE, all outstanding across it. */
TEST(c9_066__psn_wraps_at_2_to_the_24)
{
	for (uint32_t before = 0; before < 12; before++) {
		struct sim_params p = peer_params();
		struct sim_wr wr = peer_wr(USER_RDMA_WRITE, 3 * MTU + 5);
		struct sim_wr rd = peer_wr(USER_RDMA_READ, 2 * MTU + 1);
		uint32_t psn = psn_sub(0, before);
		struct sim *s;

		p.psn = psn;
		s = peer_create(&p);
		peer_posts(s, &wr, &rd, &wr);
		assert_int_equal(peer_expect(s, &wr, psn, NULL), psn_add(psn, 4));
		assert_int_equal(peer_expect(s, &rd, psn_add(psn, 4), NULL), psn_add(psn, 7));
		assert_int_equal(peer_expect(s, &wr, psn_add(psn, 7), NULL), psn_add(psn, 11));
		peer_ack(s, psn + 2, 0); /* a part of the first */
		sim_run(s, 10 * US);
		rig_no_cqe(s);
		peer_ack(s, psn + 3, 1);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 0);
		peer_read_responses(s, psn + 4, 2 * MTU + 1, 0, 2, 2);
		rig_expect_cqe(s, USER_RDMA_READ, 0, SIM_STRIDE);
		rig_no_cqe(s);
		peer_ack(s, psn + 10, 3);
		rig_expect_cqe(s, USER_RDMA_WRITE, 0, 2 * SIM_STRIDE);
		rig_end(s);
	}
}

/* ---- C9-61: the window. The context is set to have very much outstanding. ---- */

static void pretend_outstanding(struct sim *s, uint32_t psns)
{
	struct qp *q = sim_context(s, 0, 0);

	q->rrc.unacked_psn = psn_sub(q->rtc.next_psn, psns);
}

static void window(uint8_t opcode, uint32_t bytes, uint32_t psns)
{
	struct sim *s = peer_make();
	struct sim_wr wr = peer_wr(opcode, bytes);

	pretend_outstanding(s, (1 << 23) - psns + 1); /* one PSN too many */
	sim_post(s, 0, 0, &wr);
	rig_silent(s, MS);
	pretend_outstanding(s, (1 << 23) - psns - 1);
	peer_ack(s, sim_context(s, 0, 0)->rrc.unacked_psn - 1, 0);
	peer_expect(s, &wr, PSN, NULL);
	pretend_outstanding(s, psns);
	if (opcode == USER_RDMA_READ)
		peer_read_responses(s, PSN, bytes, 0, psns - 1, 1);
	else
		peer_ack(s, PSN + psns - 1, 1);
	rig_expect_cqe(s, opcode, 0, 0);
	rig_end(s);
}

TEST(c9_061__writes_stop_at_2_to_the_23_psns)
{
	window(USER_RDMA_WRITE, 1, 1);
	window(USER_RDMA_WRITE, 4 * MTU, 4);
	window(USER_SEND, 4 * MTU + 1, 5);
}

TEST(c9_061__read_responses_count)
{
	window(USER_RDMA_READ, 1, 1);
	window(USER_RDMA_READ, 0, 1);
	window(USER_RDMA_READ, 7 * MTU, 7);
	window(USER_RDMA_READ, 7 * MTU + 1, 8);
}

/* ---- opcodes and payloads ---- */

static void sizes(const uint8_t *opcodes, unsigned n, uint8_t mtu, bool solicited)
{
	struct sim_params p = peer_params();
	uint32_t psn = PSN, msn = 0;
	struct sim *s;

	p.mtu = mtu;
	s = peer_create(&p);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			struct sim_wr wr = peer_wr(opcodes[i], lengths[k]);

			wr.solicited = solicited;
			wr.sges = lengths[k] != 0;
			psn = through(s, &wr, psn, ++msn);
		}
	rig_end(s);
}

TEST(c9_067__sequences_of_opcodes_at_each_boundary)
{
	sizes(all_pushes, 5, 1, false);
}

TEST_PEER(c9_067__messages_follow_each_other_whole)
{
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 20; i++)
		peer_post(s, all_pushes[i % 5], lengths[i % 13]);
	for (unsigned i = 0; i < 20; i++) {
		struct sim_wr wr = peer_wr(all_pushes[i % 5], lengths[i % 13]);

		psn = peer_expect(s, &wr, psn, NULL);
	}
	rig_silent(s, MS);
	peer_ack(s, psn - 1, 20);
	for (unsigned i = 0; i < 20; i++)
		rig_expect_cqe(s, all_pushes[i % 5], 0, i * SIM_STRIDE);
}

TEST(c9_068__solicited_event_in_the_last_packet_only)
{
	sizes(all_pushes, 5, 1, true);
}

/* Each path MTU: message lengths around its multiples. */
TEST(c9_069__first_and_middle_packets_are_full)
{
	for (uint8_t mtu = 1; mtu <= 5; mtu++) {
		uint32_t bytes = 128u << mtu, psn = PSN, msn = 0;
		const uint32_t at[] = {bytes - 1, bytes, bytes + 1, 2 * bytes, 3 * bytes + 5};
		struct sim_params p = peer_params();
		struct sim *s;

		p.mtu = mtu;
		s = peer_create(&p);
		for (unsigned k = 0; k < 5; k++) {
			struct sim_wr wr = peer_wr(USER_RDMA_WRITE, at[k]);

			psn = through(s, &wr, psn, ++msn);
		}
		assert_int_equal(psn, PSN + 1 + 1 + 2 + 2 + 4);
		rig_end(s);
	}
}

TEST_PEER(c9_070__only_packets_have_0_to_mtu_bytes)
{
	uint32_t psn = PSN;

	for (uint32_t bytes = 0; bytes <= MTU; bytes++) {
		struct sim_wr wr = peer_wr(all_pushes[bytes % 5], bytes);

		psn = through(s, &wr, psn, bytes + 1);
		assert_int_equal(psn, PSN + bytes + 1);
	}
}

TEST_PEER(c9_071__last_packets_have_1_to_mtu_bytes)
{
	uint32_t psn = PSN;

	for (uint32_t bytes = 1; bytes <= MTU; bytes++) {
		struct sim_wr wr = peer_wr(all_pushes[bytes % 5], MTU + bytes);

		psn = through(s, &wr, psn, bytes);
		assert_int_equal(psn, PSN + 2 * bytes);
	}
}

TEST_PEER(gather__entries_that_packets_share)
{
	static const uint32_t cuts[][4] = {{1, 2, 3, 600},   {255, 2, 255, 1}, {256, 256, 256, 256},
					   {0, 300, 0, 300}, {300, 0, 0, 1},   {0, 0, 0, 5},
					   {0, 0, 0, 0},     {513, 1, 1, 1}};
	uint32_t psn = PSN;

	for (unsigned i = 0; i < 8; i++) {
		struct sim_wr wr = peer_wr(all_pushes[i % 5], 0);

		wr.sges = 4 - !!(sim_traits[wr.opcode] & USER_SCATTERS);
		for (unsigned k = 0; k < 4; k++)
			wr.sge[k] = (struct sim_sge){k * 5003 + i, cuts[i][k], 0};
		psn = through(s, &wr, psn, i + 1);
	}
}

TEST_PEER(inline_data__is_as_good_as_entries)
{
	uint32_t psn = PSN;

	for (uint32_t bytes = 0; bytes <= 76; bytes++) {
		struct sim_wr wr = peer_wr(all_pushes[bytes % 5], bytes);

		wr.is_inline = true;
		psn = through(s, &wr, psn, bytes + 1);
	}
}

/* ---- C9-72 ---- */

/* A region of `bytes` of nothing but zeros, without memory behind it. */
static uint32_t huge_region(struct sim *s, void *at, uint64_t bytes)
{
	struct sim_node *n = &s->node[0];
	struct mpt_entry mpt = {
		.pd = 2, .access = 0xf, .length = bytes, .start = (uintptr_t)at, .phys = at};
	uint32_t key = 0x99900077;

	mpt.key = key;
	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, key), &mpt,
				  sizeof(mpt), NULL, 0),
			 CEU_OK);
	return key;
}

TEST(c9_072__dma_length_up_to_2_to_the_31)
{
	const uint64_t half = 1u << 30;
	struct sim_params p = peer_params();
	void *zeros = mmap(NULL, 2 * half + 4096, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct sim *s;

	assert_true(zeros != MAP_FAILED);
	p.mtu = 5;
	for (unsigned over = 0; over < 2; over++) {
		for (uint8_t opcode = USER_RDMA_WRITE; opcode <= USER_RDMA_WRITE_IMM; opcode++) {
			struct sim_wr wr = peer_wr(opcode, 0);
			struct rig_packet got;
			uint32_t key;

			s = peer_create(&p);
			key = huge_region(s, zeros, 2 * half + 4096);
			wr.sges = 3;
			for (unsigned i = 0; i < 3; i++)
				wr.sge[i] = (struct sim_sge){(uint8_t *)zeros - s->node[0].memory +
								     i * half,
							     i < 2 ? half : over, key};
			sim_post(s, 0, 0, &wr);
			if (over) {
				peer_expect_error(s, SYNDROME_LOCAL_LENGTH, 0);
				rig_silent(s, MS);
			} else {
				got = rig_expect(s, 0x06, PSN);
				assert_int_equal(got.h.dma_len, 0x80000000u);
				assert_int_equal(got.bytes, 4096);
				while (rig_recv(s, &got, 20 * US))
					;
				peer_nak(s, PSN, AETH_NAK_REMOTE_ACCESS, 0);
				peer_expect_error(s, SYNDROME_REMOTE_ACCESS, 0);
			}
			rig_end(s);
		}
	}
	munmap(zeros, 2 * half + 4096);
}

/* ---- C9-146, as far as it concerns packets: the other services, by the same rules ---- */

TEST_PEER_WITH(uc__the_same_packets_and_no_waiting, p.service = SERVICE_UC)
{
	uint32_t psn = PSN;

	for (unsigned k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
		for (unsigned i = 0; i < 5; i++) {
			struct sim_wr wr = peer_wr(all_pushes[i], lengths[k]);
			uint32_t at;

			if (wr.opcode == USER_SEND_INV)
				continue;
			wr.unsignaled = k & 1;
			at = sim_post(s, 0, 0, &wr);
			psn = peer_expect(s, &wr, psn, NULL);
			if (!wr.unsignaled)
				rig_expect_cqe(s, wr.opcode, 0, at);
		}
	rig_quiet(s, MS);
}
