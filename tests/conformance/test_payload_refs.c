/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that refer to their payload (virt-to-phys/payload_ref.h): which do, and what becomes of
 * them when the payload's region, or the request itself, goes while they are on their way. The wire
 * takes 50 µs here.
 */
#include "pipeline/train.h"
#include "rig.h"
#include "virt-to-phys/tpt_cache.h"

enum { BYTES = 2048, REMOTE = 2 << 20, LATE_NS = 50000 };

static struct sim *two_hcas(struct sim_params *p)
{
	struct sim *s;

	p->payload_refs = true;
	p->mtu = 4; /* a message of BYTES is one packet */
	s = sim_create(p);
	s->faults.reorder_ppm = 1000000;
	s->faults.delay_ns = LATE_NS;
	return s;
}

static void over(struct sim *s)
{
	assert_true(sim_settle(s, 60000 * MS));
	assert_true(sim_quiet(s));
	sim_destroy(s);
}

TEST(refs__to_what_is_long_and_in_one_piece_and_acknowledged)
{
	static const struct {
		uint8_t service;
		uint32_t bytes, first; /* in the first of two entries; 0: there is only one */
		bool is_inline, refers, read;
	} rows[] = {
		{SERVICE_RC, BYTES, 0, false, true, false},
		{SERVICE_RC, 1536, 0, false, false, false},
		{SERVICE_RC, 1537, 0, false, true, false},
		{SERVICE_RC, BYTES + 64, 0, false, true, false},
		{SERVICE_UC, BYTES, 0, false, false, false},
		{SERVICE_RC, BYTES, 100, false, false, false},
		{SERVICE_RC, 2 * BYTES, BYTES, false, true, false},
		{SERVICE_RC, 64, 0, true, false, false},
		{SERVICE_RC, 1536, 0, false, false, true},
		{SERVICE_RC, 1537, 0, false, true, true},
	};

	for (unsigned k = 0; k < 2 * sizeof(rows) / sizeof(rows[0]); k++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		unsigned i = k / 2;
		uint32_t first = rows[i].first ? rows[i].first : rows[i].bytes;
		struct sim_wr wr = {.opcode = rows[i].read ? USER_RDMA_READ : USER_RDMA_WRITE,
				    .remote = REMOTE,
				    .is_inline = rows[i].is_inline,
				    .sge = {{0, first, 0}, {first, rows[i].bytes - first, 0}},
				    .sges = rows[i].first ? 2 : 1};
		struct sim *s;
		struct cqe c;
		bool refers;

		p.service = rows[i].service;
		p.icrcs = k & 1;
		refers = rows[i].refers && !(p.icrcs && rows[i].read);
		s = two_hcas(&p);
		memset(s->node[0].memory, 0x5a, rows[i].bytes);
		sim_post(s, 0, 0, &wr);
		assert_true(sim_wait(s, 0, &c, 100 * MS));
		assert_true(sim_settle(s, 100 * MS));
		if ((sim_counter(s, rows[i].read, COUNTER_payload_refs) > 0) != refers)
			fail_msg("row %u", i);
		assert_memory_equal(s->node[1].memory + REMOTE, s->node[0].memory, rows[i].bytes);
		over(s);
	}
}

/* Events at node 0 while its packet, or node 1's response to its READ, is in flight. */
enum happening { NOTHING, ANOTHER_REGION, REVOKED, REVOKED_AND_MADE_AGAIN, FAILED, RESET };

/* The same key, by which the same addresses are other memory. */
static void make_again(struct sim *s, uint32_t key)
{
	struct sim_node *n = &s->node[0];
	struct mpt_entry e = {.key = key,
			      .pd = sim_context(s, 0, 0)->pd,
			      .access = ACCESS_LOCAL_WRITE,
			      .start = n->va,
			      .length = BYTES,
			      .phys = n->memory + (1 << 20)};

	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, key), &e,
				  sizeof(e), NULL, 0),
			 CEU_OK);
}

static void happen(struct sim *s, enum happening what, uint32_t key)
{
	switch (what) {
	case NOTHING:
		break;
	case ANOTHER_REGION:
		rig_region(s, 1 << 20, 4096, ACCESS_LOCAL_WRITE, 0);
		break;
	case REVOKED:
		rig_revoke(s, key);
		break;
	case REVOKED_AND_MADE_AGAIN:
		rig_revoke(s, key);
		make_again(s, key);
		break;
	case FAILED:
		qp_set_error(s->node[0].hca->engines, sim_context(s, 0, 0));
		break;
	case RESET:
		sim_modify(s, 0, 0, QP_RST, 0);
		break;
	}
	if (what != NOTHING && what != ANOTHER_REGION) /* the request is over, or its fault */
		memset(s->node[0].memory, 0xbb, BYTES);
}

TEST(refs__follow_the_region_and_the_request)
{
	static const struct {
		enum happening what;
		uint8_t opcode;
		bool arrives;
	} rows[] = {
		{NOTHING, USER_SEND, true},
		{ANOTHER_REGION, USER_SEND, true},
		{REVOKED, USER_SEND, false},
		{REVOKED_AND_MADE_AGAIN, USER_SEND, false},
		{FAILED, USER_SEND, false},
		{RESET, USER_SEND, false},
		{REVOKED, USER_RDMA_WRITE_IMM, false},
		{FAILED, USER_RDMA_WRITE_IMM, false},
	};

	for (unsigned k = 0; k < 2 * sizeof(rows) / sizeof(rows[0]); k++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		unsigned i = k / 2;
		struct sim *s;
		struct sim_wr wr = {.opcode = rows[i].opcode, .remote = REMOTE, .sges = 1};
		struct cqe c;
		bool arrived;

		p.retry_cnt = 1;
		p.icrcs = k & 1;
		s = two_hcas(&p);
		wr.sge[0] =
			(struct sim_sge){0, BYTES, rig_region(s, 0, BYTES, ACCESS_LOCAL_WRITE, 0)};
		sim_post_recv(s, 1, 0, REMOTE, BYTES);
		sim_post(s, 0, 0, &wr);
		while (!s->end[1].count)
			sim_step(s);
		assert_int_equal(sim_counter(s, 0, COUNTER_payload_refs), 1);
		happen(s, rows[i].what, wr.sge[0].key);
		arrived = sim_wait(s, 1, &c, MS);
		if (arrived != rows[i].arrives)
			fail_msg("row %u: it %s", i, arrived ? "arrived" : "did not arrive");
		if (!arrived) {
			assert_true(sim_counter(s, 1, COUNTER_drop_payload_gone) > 0);
			assert_int_equal(s->node[1].memory[REMOTE], 0); /* nor a byte of it */
		}
		if (rows[i].what != RESET) {
			assert_true(sim_wait(s, 0, &c, 60000 * MS));
			assert_int_equal(c.opcode == USER_INVALID, !arrived);
		}
		over(s);
	}
}

/* While another lcore holds the entry that a reference has to be checked against, the packet
 * waits. */
TEST(refs__wait_for_the_entry)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s = two_hcas(&p);
	struct v2p *v = &s->node[0].hca->v2p;
	uint32_t key = rig_region(s, 0, BYTES, ACCESS_LOCAL_WRITE, 0);
	struct sim_wr wr = SIM_WR(USER_SEND, 0, BYTES);
	struct tpt_hold hold;
	struct cqe c;

	wr.sge[0].key = key;
	memset(s->node[0].memory, 0x5a, BYTES);
	sim_post_recv(s, 1, 0, REMOTE, BYTES);
	sim_post(s, 0, 0, &wr);
	while (!s->end[1].count)
		sim_step(s);
	rig_region(s, 1 << 20, 4096, ACCESS_LOCAL_WRITE, 0); /* the tables have changed */
	assert_true(tpt_take(&v->mpt_cache, v2p_index(v, key), NULL, &hold));
	assert_false(sim_wait(s, 1, &c, 2 * LATE_NS));
	tpt_release(&hold);
	assert_true(sim_wait(s, 1, &c, LATE_NS));
	assert_memory_equal(s->node[1].memory + REMOTE, s->node[0].memory, BYTES);
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_payload_gone), 0);
	over(s);
}

/* A response that cannot be followed is as good as lost: it is asked for again, and then
 * refused. */
TEST(refs__of_responses_follow_the_region)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s = two_hcas(&p);
	uint32_t key = rig_region(s, 0, BYTES, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ, 0);
	struct sim_wr wr = SIM_WR(USER_RDMA_READ, REMOTE, BYTES, .rkey = key);
	struct cqe c;

	memset(s->node[0].memory, 0x5a, BYTES);
	memset(s->node[1].memory + REMOTE, 0xee, BYTES);
	sim_post(s, 1, 0, &wr);
	while (!sim_counter(s, 0, COUNTER_payload_refs))
		sim_step(s);
	happen(s, REVOKED, key);
	assert_true(sim_wait(s, 1, &c, 60000 * MS));
	assert_int_equal(sim_counter(s, 1, COUNTER_drop_payload_gone), 1);
	assert_true(c.opcode == USER_INVALID);
	assert_int_equal(s->node[1].memory[REMOTE], 0xee);
	over(s);
}

/* ---- references with ICRCs ---- */

/* What the client of the sender has written when its packets are on their way: the receiver drops those
 * that it spoils, and they are sent again with an ICRC of what is there now. Trains leave from the
 * second packet on. READs, of whose responses only trains refer to memory, get what is there. */
TEST(refs__to_what_its_client_changes)
{
	enum { LONG = 20 * BYTES + 701 };
	static const struct {
		uint8_t opcode;
		uint32_t bytes, changes; /* at this byte; LONG: behind the message */
		unsigned after;		 /* so many frames have left */
		uint64_t lost;		 /* frames of node 0, by bit */
		bool noticed;
		uint32_t entry; /* READ: bytes of the first of two scatter entries, or 0 */
	} rows[] = {
		{USER_SEND, BYTES - 3, LONG, 1, 0, false, 0},
		{USER_SEND, BYTES - 3, BYTES - 4, 1, 0, true, 0},
		{USER_RDMA_WRITE, LONG, LONG, 3, 0, false, 0},
		{USER_RDMA_WRITE, LONG, 0, 1, 0, true, 0},
		{USER_RDMA_WRITE, LONG, 5 * BYTES, 2, 0, true, 0},
		{USER_SEND, LONG, 5 * BYTES, 2, 0, true, 0},
		{USER_SEND, LONG, LONG - 1, 3, 0, true, 0},
		{USER_RDMA_WRITE, LONG, 5 * BYTES, 2, 2, false, 0}, /* what changes is lost, too */
		{USER_RDMA_READ, LONG, LONG, 2, 0, false, 0},
		{USER_RDMA_READ, LONG, 0, 2, 0, false, 0},
		{USER_RDMA_READ, LONG, 5 * BYTES, 2, 0, true, 0},
		{USER_RDMA_READ, LONG, 18 * BYTES, 2, 0, true, 0},
		{USER_RDMA_READ, LONG, 5 * BYTES, 2, 0, true, 5 * BYTES + 100},
		{USER_RDMA_READ, LONG, 7 * BYTES, 2, 0, true, 5 * BYTES + 100},
		{USER_RDMA_READ, LONG, LONG - 1, 3, 0, false, 0},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		struct sim_wr wr = SIM_WR(rows[i].opcode, 0, rows[i].bytes, .remote = REMOTE);
		bool read = rows[i].opcode == USER_RDMA_READ;
		uint64_t before;
		struct sim *s;
		struct cqe c;

		p.icrcs = p.whole_trains = p.no_credits = true;
		p.retry_cnt = read ? 0 : 7;
		s = two_hcas(&p);
		sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = REMOTE));
		assert_true(sim_wait(s, 0, &c, MS)); /* a SEND is limited before the first answer */
		s->faults.drop_mask = rows[i].lost << s->end[0].sent;
		if (read) /* a response that is overtaken would cost a try */
			s->faults.reorder_ppm = 0;
		before = s->end[read].sent;
		memset(s->node[read].memory + (read ? REMOTE : 0), 0x5a, LONG);
		sim_post_recv(s, 1, 0, REMOTE, LONG);
		if (rows[i].entry) {
			wr.sge[0].length = rows[i].entry;
			wr.sge[1] = (struct sim_sge){rows[i].entry, LONG - rows[i].entry, 0};
			wr.sges = 2;
		}
		sim_post(s, 0, 0, &wr);
		while (s->end[read].sent < before + rows[i].after)
			sim_step(s);
		s->node[read].memory[rows[i].changes + (read ? REMOTE : 0)] = 0xbb;
		assert_true(sim_wait(s, 0, &c, 60000 * MS));
		assert_int_equal(c.opcode, rows[i].opcode);
		if ((sim_counter(s, !read, read ? COUNTER_payload_changed : COUNTER_drop_rx_icrc) >
		     0) != rows[i].noticed)
			fail_msg("row %u: %lu dropped", i,
				 (unsigned long)sim_counter(s, !read, COUNTER_drop_rx_icrc));
		assert_true(!read || !sim_counter(s, 0, COUNTER_drop_rx_icrc));
		if (!read || rows[i].noticed)
			assert_memory_equal(s->node[1].memory + REMOTE, s->node[0].memory,
					    rows[i].bytes);
		over(s);
	}
}

static bool write_all_the_time(struct sim *s, int from, const uint8_t *frame, unsigned bytes,
			       void *arg)
{
	for (unsigned i = 0; i < 20 * BYTES; i += 100)
		s->node[0].memory[i]++, s->node[1].memory[REMOTE + i]++;
	return false;
}

/* Each frame is spoiled as soon as it has left, unless it has its payload with it. For READs that is
 * nobody's fault. */
TEST(refs__to_what_its_client_changes_all_the_time)
{
	static const struct sim_wr rows[] = {
		SIM_WR(USER_SEND, 0, BYTES),
		SIM_WR(USER_RDMA_WRITE, 0, 20 * BYTES, .remote = REMOTE),
		SIM_WR(USER_RDMA_READ, 0, 20 * BYTES, .remote = REMOTE)};

	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct sim_params p = SIM_PARAMS_DEFAULT;
		bool read = rows[i / 2].opcode == USER_RDMA_READ;
		struct sim *s;
		struct cqe c;

		p.icrcs = p.whole_trains = true;
		p.equal = i & 1;
		p.retry_cnt = read ? 0 : 1;
		s = two_hcas(&p);
		s->faults.reorder_ppm = 0;
		s->tap = write_all_the_time;
		sim_post_recv(s, 1, 0, REMOTE, BYTES);
		sim_post(s, 0, 0, &rows[i / 2]);
		assert_true(sim_wait(s, 0, &c, 60000 * MS));
		assert_int_equal(c.opcode, rows[i / 2].opcode);
		assert_true(sim_counter(s, !read,
					read ? COUNTER_payload_changed : COUNTER_drop_rx_icrc) > 0);
		assert_true(!read || !sim_counter(s, 0, COUNTER_drop_rx_icrc));
		s->tap = NULL;
		over(s);
	}
}

/* arg: has it happened? */
static bool spoil_headers(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	bool *done = arg;
	struct wire_frame f;

	if (*done || wire_parse_frame(frame, bytes, &f) != WIRE_OK ||
	    f.h.opcode != WIRE_RC_READ_RESP_MIDDLE)
		return false;
	*train_icrc(frame + f.payload_offset, 3) ^= 1;
	*done = true;
	return false;
}

TEST(refs__of_responses_with_wrong_headers_are_dropped)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	bool done = false;
	struct sim *s;
	struct cqe c;

	p.icrcs = p.whole_trains = true;
	s = two_hcas(&p);
	s->faults.reorder_ppm = 0; /* the train is taken up to the wrong one */
	s->tap = spoil_headers;
	s->tap_arg = &done;
	memset(s->node[1].memory + REMOTE, 0x5a, 20 * BYTES);
	sim_post(s, 0, 0, &SIM_WR(USER_RDMA_READ, 0, 20 * BYTES, .remote = REMOTE));
	assert_true(sim_wait(s, 0, &c, 60000 * MS));
	assert_int_equal(c.opcode, USER_RDMA_READ);
	assert_memory_equal(s->node[1].memory + REMOTE, s->node[0].memory, 20 * BYTES);
	assert_int_equal(sim_counter(s, 0, COUNTER_drop_rx_icrc), 1);
	assert_int_equal(sim_counter(s, 0, COUNTER_payload_changed), 0);
	assert_int_equal(sim_counter(s, 0, COUNTER_ack_duplicate), 0); /* none is taken twice */
	over(s);
}

/* A retransmission copies the payload; it waits while another lcore holds the entry that it has to
 * look at, and no longer. What is missing shows by the WRITE behind it. */
static void send_again_while_held(bool equal)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE_IMM, 0, BYTES, .remote = REMOTE);
	struct tpt_hold hold;
	struct v2p *v;
	struct sim *s;
	struct cqe c;

	p.icrcs = true;
	p.equal = equal;
	s = two_hcas(&p);
	v = &s->node[0].hca->v2p;
	wr.sge[0].key = rig_region(s, 0, BYTES, ACCESS_LOCAL_WRITE, 0);
	memset(s->node[0].memory, 0x5a, BYTES);
	sim_post_recv(s, 1, 0, REMOTE, BYTES);
	sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = REMOTE));
	assert_true(sim_wait(s, 0, &c, MS));
	s->faults.drop_mask = 1ull << s->end[0].sent;
	sim_post(s, 0, 0, &wr);
	sim_post(s, 0, 0, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = 2 * REMOTE));
	while (s->end[0].sent < 3)
		sim_step(s);
	rig_region(s, 1 << 20, 4096, ACCESS_LOCAL_WRITE, 0); /* the tables have changed */
	assert_true(tpt_take(&v->mpt_cache, v2p_index(v, wr.sge[0].key), NULL, &hold));
	assert_false(sim_wait(s, 1, &c, 3 * LATE_NS));
	assert_int_equal(s->end[0].sent, 3);
	tpt_release(&hold);
	assert_true(sim_wait(s, 1, &c, 2 * LATE_NS));
	assert_memory_equal(s->node[1].memory + REMOTE, s->node[0].memory, BYTES);
	over(s);
}

TEST(refs__that_are_sent_again_wait_for_the_entry)
{
	send_again_while_held(false);
	send_again_while_held(true);
}

/* Notes the UDP source port of each SEND; arg: where, the next one's place behind it. */
static bool note_port(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	uint16_t **place = arg;
	struct wire_frame f;

	if (from == 0 && wire_parse_frame(frame, bytes, &f) == WIRE_OK)
		*(*place)++ = f.sport;
	return false;
}

/* With several ways, what is sent again takes another one. */
TEST(refs__that_are_sent_again_take_another_way)
{
	for (unsigned ways = 1; ways <= 2; ways++) {
		uint16_t ports[64] = {0}, *place = ports;
		struct sim_params p = SIM_PARAMS_DEFAULT;
		struct sim *s;
		struct cqe c;

		p.icrcs = p.equal = true;
		p.settings = rig_settings();
		p.settings->path_spread = ways;
		s = two_hcas(&p);
		s->faults.drop_mask = 1;
		s->tap = note_port;
		s->tap_arg = &place;
		sim_post_recv(s, 1, 0, REMOTE, BYTES);
		sim_post(s, 0, 0, &SIM_WR(USER_SEND, 0, BYTES));
		assert_true(sim_wait(s, 0, &c, 5000 * MS));
		assert_true(place - ports >= 2);
		assert_int_equal(ports[0] != ports[1], ways == 2);
		over(s);
	}
}
