/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains (pipeline/train.h): whatever happens to a train, the outcome is that of its packets sent
 * one by one. Each row runs twice, with single packets and with trains that the wire keeps whole,
 * and compares what clients and peers see. First trains of middle packets, then of single-packet
 * messages.
 */
#include "pipeline/stepping.h"
#include "rig.h"

enum { REMOTE = 2 << 20, BYTES = 300000, MTU = 1024 };

/* What clients and the peer can see at the end. */
struct outcome {
	struct cqe cqe[2]; /* without numbers of queue pairs */
	bool completed[2];
	uint32_t msn, epsn, unacked;
	uint8_t state[2];
	uint64_t executed, read, requests;
	/* Packets that the sender of the payload sent, and that its peer received; those in three
	 * channels on their way. */
	uint64_t data[2], channel[3];
};

struct row {
	const char *name;
	uint8_t opcode;
	bool receives;	   /* node 1 posts a receive, with entry[] */
	uint32_t entry[2]; /* bytes of its entries; READ: of the scatter entries at node 0 */
	uint32_t gather;   /* bytes of the first of two gather entries; 0: there is only one */
	uint32_t region;   /* bytes that the key covers; 0: all of node 1's memory */
	bool bad_entry;	   /* the second of entry[] has an invalid key */
	struct sim_faults faults; /* of frames: a train is one */
	bool equal;		  /* the peers have agreed on selective repeat */
	bool same_packets;	  /* as many packets with trains as without */
};

static const struct row rows[] = {
	{"a WRITE", USER_RDMA_WRITE, .same_packets = true},
	{"a WRITE of two entries", USER_RDMA_WRITE, .gather = 100000, .same_packets = true},
	{"a WRITE whose first entry is shorter than a packet", USER_RDMA_WRITE, .gather = 700,
	 .same_packets = true},
	{"a WRITE with immediate data", USER_RDMA_WRITE_IMM, true, {0}, .same_packets = true},
	{"a WRITE to too small a region", USER_RDMA_WRITE, .region = 30 * MTU + 100},
	{"a SEND", USER_SEND, true, {BYTES}, .same_packets = true},
	{"a SEND into two entries", USER_SEND, true, {77777, BYTES}, .same_packets = true},
	{"a SEND longer than its receive", USER_SEND, true, {50 * MTU, 60}, .gather = 0},
	{"a SEND into a bad entry", USER_SEND, true, {MTU, BYTES}, .bad_entry = true},
	{"a READ", USER_RDMA_READ, .same_packets = true},
	{"a READ into two entries", USER_RDMA_READ, .entry = {77777}, .same_packets = true},
	{"a READ of too small a region", USER_RDMA_READ, .region = 30 * MTU + 100},
	/* Frame 0 is the first packet, the others up to the last are trains. */
	{"a lost train", USER_RDMA_WRITE, .faults.drop_mask = 2},
	{"two lost trains", USER_SEND, true, {BYTES}, .faults.drop_mask = 2 + 8},
	{"a lost train of responses", USER_RDMA_READ, .faults.drop_mask_b = 4},
	{"every frame twice", USER_RDMA_WRITE, .faults.duplicate_ppm = 1000000},
	{"every response twice", USER_RDMA_READ, .faults.duplicate_ppm = 1000000},
	{"late trains",
	 USER_SEND,
	 true,
	 {BYTES},
	 .faults = {.reorder_ppm = 500000, .delay_ns = 9000}},
	{"late responses", USER_RDMA_READ, .faults = {.reorder_ppm = 500000, .delay_ns = 9000}},
	{"a lost train, selective repeat", USER_RDMA_WRITE, .faults.drop_mask = 2, .equal = true},
	{"lost trains, selective repeat",
	 USER_SEND,
	 true,
	 {BYTES},
	 .faults.drop_mask = 2 + 8,
	 .equal = true},
	{"a lost train of responses, selective repeat", USER_RDMA_READ, .faults.drop_mask_b = 4,
	 .equal = true},
	{"late trains, selective repeat", USER_RDMA_WRITE,
	 .faults = {.reorder_ppm = 500000, .delay_ns = 9000}, .equal = true},
};

static struct sim_wr request(struct sim *s, const struct row *r)
{
	bool read = r->opcode == USER_RDMA_READ;
	uint32_t first = r->gather ? r->gather : read && r->entry[0] ? r->entry[0] : BYTES;
	struct sim_wr wr = {.opcode = r->opcode,
			    .remote = read ? 0 : REMOTE,
			    .imm = 7,
			    .sge = {{read ? REMOTE : 0, first, 0},
				    {(read ? REMOTE : 0) + first, BYTES - first, 0}},
			    .sges = first == BYTES ? 1 : 2};

	return wr;
}

/* A key at node 1 for only `bytes` of its memory from `offset` on. */
static uint32_t small_region(struct sim *s, uint64_t offset, uint32_t bytes)
{
	struct sim_node *n = &s->node[1];
	uint32_t key = n->key + (1 << 8);
	struct mpt_entry e = {.key = key,
			      .pd = sim_context(s, 1, 0)->pd,
			      .access =
				      ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_LOCAL_WRITE,
			      .start = n->va + offset,
			      .length = bytes,
			      .phys = n->memory + offset};

	assert_int_equal(ceu_exec(n->ceu, CEU_SW2HW_MPT, v2p_index(&n->hca->v2p, key), &e,
				  sizeof(e), NULL, 0),
			 CEU_OK);
	return key;
}

static uint64_t put(struct sim *s, unsigned node, enum channel_id id)
{
	const struct channel *c = &s->node[node].hca->engines[0].channel[id];

	return c->put + c->coupled;
}

static struct outcome look(struct sim *s, unsigned from)
{
	static const enum channel_id channels[2][3] = {
		{CHANNEL_RTC_RPG, CHANNEL_RPG_TXA, CHANNEL_HP_EE},
		{CHANNEL_EE_RESPG, CHANNEL_RESPG_TXA, CHANNEL_HP_RRC},
	};
	struct outcome o = {.msn = sim_context(s, 1, 0)->ee.msn,
			    .epsn = sim_context(s, 1, 0)->ee.expected_psn,
			    .unacked = sim_context(s, 0, 0)->rrc.unacked_psn,
			    .requests = sim_counter(s, 0, COUNTER_request_packets),
			    .executed = sim_counter(s, 1, COUNTER_executed_bytes),
			    .read = sim_counter(s, 0, COUNTER_read_bytes),
			    .data = {sim_counter(s, from, COUNTER_tx_packets),
				     sim_counter(s, !from, COUNTER_rx_packets)}};

	for (unsigned i = 0; i < 3; i++)
		o.channel[i] = put(s, i == 2 ? !from : from, channels[from][i]);
	for (unsigned node = 0; node < 2; node++) {
		o.state[node] = qp_state(sim_context(s, node, 0));
		o.completed[node] = sim_poll_cq(s, node, &o.cqe[node]);
		o.cqe[node].my_qpn = o.cqe[node].remote_qpn = 0;
	}
	return o;
}

/* Returns how many frames the sender of the payload sent: node 0, or node 1 for a READ. */
static uint64_t run(const struct row *r, bool trains, struct outcome *o, uint8_t *memory)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr;
	struct sim *s;
	unsigned from = r->opcode == USER_RDMA_READ;
	uint64_t frames;
	uint32_t bad;

	p.payload_refs = p.whole_trains = trains;
	p.equal = r->equal;
	p.retry_cnt = 7;
	p.no_credits = true;
	s = sim_create(&p);
	bad = r->bad_entry ? s->node[1].key + (9 << 8) : 0;
	s->faults = r->faults;
	wr = request(s, r);
	for (unsigned i = 0; i < BYTES; i++) {
		s->node[0].memory[i] = (uint8_t)(i * 7 + (i >> 8));
		s->node[1].memory[i] = (uint8_t)(i * 5 + (i >> 9));
	}
	if (r->region)
		wr.rkey = small_region(s, wr.remote, r->region);
	if (r->receives)
		sim_post_recv_list(s, 1, 0,
				   (struct sim_sge[]){{REMOTE, r->entry[0], 0},
						      {REMOTE + r->entry[0], r->entry[1], bad}},
				   r->entry[1]	 ? 2
				   : r->entry[0] ? 1
						 : 0);
	sim_post(s, 0, 0, &wr);
	assert_true(sim_settle(s, 60000 * MS));
	*o = look(s, from);
	frames = s->end[from].sent;
	memcpy(memory, s->node[!from].memory + REMOTE, BYTES + MTU);
	assert_true(sim_quiet(s));
	sim_destroy(s);
	return frames;
}

/* Fails with the row's name if the field differs. */
#define SAME(row, a, b, field)                                                                     \
	do {                                                                                       \
		if (memcmp(&(a)->field, &(b)->field, sizeof((a)->field)))                          \
			fail_msg("%s: " #field " differs", (row)->name);                           \
	} while (0)

static void compare(const struct row *r, const struct outcome *alone,
		    const struct outcome *together)
{
	SAME(r, alone, together, completed);
	SAME(r, alone, together, cqe);
	SAME(r, alone, together, msn);
	SAME(r, alone, together, epsn);
	SAME(r, alone, together, unacked);
	SAME(r, alone, together, state);
	SAME(r, alone, together, executed);
	SAME(r, alone, together, read);
	if (!r->same_packets) /* other packets are lost, and others are in flight then */
		return;
	SAME(r, alone, together, requests);
	SAME(r, alone, together, data);
	SAME(r, alone, together, channel);
}

TEST(trains__of_middle_packets)
{
	uint8_t *memory[2] = {malloc(BYTES + MTU), malloc(BYTES + MTU)};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o[2];
		uint64_t alone = run(&rows[i], false, &o[0], memory[0]);
		uint64_t together = run(&rows[i], true, &o[1], memory[1]);

		if (alone > 1 && together > alone / 4)
			fail_msg("%s: %lu frames instead of %lu", rows[i].name,
				 (unsigned long)together, (unsigned long)alone);
		compare(&rows[i], &o[0], &o[1]);
		if (memcmp(memory[0], memory[1], BYTES + MTU))
			fail_msg("%s: the bytes differ", rows[i].name);
	}
	free(memory[0]);
	free(memory[1]);
}

/* ---- single-packet messages ---- */

enum { MESSAGES = 40, SLOT = 512, NONE = MESSAGES, ROOM = 9, FILL = (1 << SIM_CQ_LOG) - ROOM };

struct message_row {
	const char *name;
	uint8_t opcode, other; /* of every tenth message: `other`, if it is not 0 */
	uint32_t bytes, other_bytes;
	unsigned bad;	   /* the message with an invalid key; NONE */
	unsigned receives; /* posted at once; the rest later */
	struct sim_faults faults;
	bool equal, unsignaled, is_inline;
	uint8_t reads;	   /* max_rd_atomic; 0: the default */
	uint8_t first;	   /* of message 0, which has 8 bytes; 0: like the others */
	uint16_t access;   /* rights of node 0 at node 1; 0: all */
	uint16_t peer_mtu; /* node 1's, bytes; 0: the same */
	uint32_t shift;	   /* of the addresses at node 1 */
	bool full;	   /* the receiver's completion queue has only ROOM places left */
};

#define SENDS(bytes)	     PLAIN(USER_SEND, bytes)
#define PLAIN(opcode, bytes) opcode, 0, bytes, 0, NONE, .receives = MESSAGES
#define EARLY		     .faults = {.reorder_ppm = 500000, .delay_ns = 9000}

static const struct message_row messages[] = {
	{"WRITEs", PLAIN(USER_RDMA_WRITE, 64)},
	{"WRITEs of an odd length", PLAIN(USER_RDMA_WRITE, 61), .unsignaled = true},
	{"WRITEs of a byte", PLAIN(USER_RDMA_WRITE, 1), .is_inline = true},
	{"WRITEs without payload", PLAIN(USER_RDMA_WRITE, 0)},
	{"WRITEs of which two fit into a buffer", PLAIN(USER_RDMA_WRITE, 511)},
	{"WRITEs with immediate data", PLAIN(USER_RDMA_WRITE_IMM, 64)},
	{"SENDs", SENDS(64)},
	{"SENDs with immediate data", PLAIN(USER_SEND_IMM, 17)},
	{"READs", PLAIN(USER_RDMA_READ, 64)},
	{"READs of an odd length", PLAIN(USER_RDMA_READ, 13)},
	{"READs too long to be answered at once", PLAIN(USER_RDMA_READ, 500)},
	{"READs of several packets", PLAIN(USER_RDMA_READ, 3000)},
	{"atomics", PLAIN(USER_ATOMIC_FA, 8)},
	{"atomics, compare and swap", PLAIN(USER_ATOMIC_CS, 8)},
	{"ATOMIC WRITEs", PLAIN(USER_ATOMIC_WRITE, 8)},
	{"READs, few at a time", PLAIN(USER_RDMA_READ, 64), .reads = 3},
	{"atomics, few at a time", PLAIN(USER_ATOMIC_FA, 8), .reads = 3},
	{"WRITEs of two lengths", USER_RDMA_WRITE, USER_RDMA_WRITE, 64, 48, NONE,
	 .receives = MESSAGES},
	{"WRITEs and SENDs", USER_RDMA_WRITE, USER_SEND, 64, 64, NONE, .receives = MESSAGES},
	{"READs and WRITEs", USER_RDMA_READ, USER_RDMA_WRITE, 64, 64, NONE, .receives = MESSAGES},
	{"READs and atomics", USER_RDMA_READ, USER_ATOMIC_FA, 64, 8, NONE, .receives = MESSAGES},
	{"a bad WRITE", USER_RDMA_WRITE, 0, 64, 0, 17, .receives = MESSAGES},
	{"a bad READ", USER_RDMA_READ, 0, 64, 0, 7, .receives = MESSAGES},
	{"a bad atomic", USER_ATOMIC_FA, 0, 8, 0, 7, .receives = MESSAGES},
	{"WRITEs without the right", PLAIN(USER_RDMA_WRITE, 64), .first = USER_RDMA_READ,
	 .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC},
	{"READs without the right", PLAIN(USER_RDMA_READ, 64), .first = USER_ATOMIC_FA,
	 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC},
	{"atomics without the right", PLAIN(USER_ATOMIC_FA, 8), .first = USER_RDMA_READ,
	 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ},
	{"atomics across words", PLAIN(USER_ATOMIC_FA, 8), .first = USER_RDMA_READ, .shift = 4},
	{"WRITEs above the peer's MTU", PLAIN(USER_RDMA_WRITE, 300), .first = USER_RDMA_WRITE,
	 .peer_mtu = 256},
	{"READs above the peer's MTU", PLAIN(USER_RDMA_READ, 300), .first = USER_ATOMIC_FA,
	 .peer_mtu = 256},
	{"SENDs, too few receives", USER_SEND, 0, 64, 0, NONE, .receives = 23},
	{"SENDs, a full completion queue", SENDS(64), .full = true},
	{"lost WRITEs", PLAIN(USER_RDMA_WRITE, 64), .faults.drop_mask = 1},
	{"lost SENDs", SENDS(64), .faults.drop_mask = 2},
	{"lost READs", PLAIN(USER_RDMA_READ, 64), .faults.drop_mask = 1},
	{"lost atomics", PLAIN(USER_ATOMIC_FA, 8), .faults.drop_mask = 2},
	{"lost acknowledgements", PLAIN(USER_RDMA_WRITE, 64), .faults.drop_mask_b = 1},
	{"lost responses", PLAIN(USER_RDMA_READ, 64), .faults.drop_mask_b = 1},
	{"lost results", PLAIN(USER_ATOMIC_FA, 8), .faults.drop_mask_b = 1},
	{"SENDs twice", SENDS(64), .faults.duplicate_ppm = 1000000},
	{"READs twice", PLAIN(USER_RDMA_READ, 64), .faults.duplicate_ppm = 1000000},
	{"atomics twice", PLAIN(USER_ATOMIC_FA, 8), .faults.duplicate_ppm = 1000000},
	{"late SENDs", SENDS(64), EARLY},
	{"late READs", PLAIN(USER_RDMA_READ, 64), EARLY},
	{"late atomics", PLAIN(USER_ATOMIC_CS, 8), EARLY},
	{"lost SENDs, selective repeat", SENDS(64), .faults.drop_mask = 2, .equal = true},
	{"lost READs, selective repeat", PLAIN(USER_RDMA_READ, 64), .faults.drop_mask_b = 1,
	 .equal = true},
	{"late SENDs, selective repeat", SENDS(64), EARLY, .equal = true},
	{"late READs, selective repeat", PLAIN(USER_RDMA_READ, 64), EARLY, .equal = true},
};

struct messages_outcome {
	struct cqe cqe[2][2 * MESSAGES]; /* without numbers of queue pairs */
	unsigned cqes[2];
	uint32_t msn, epsn, unacked;
	uint8_t state[2];
	uint64_t executed, messages, read, requests;
};

static void post_message(struct sim *s, const struct message_row *r, unsigned i)
{
	bool other = r->other && i % 10 == 9, first = r->first && i == 0;
	uint8_t opcode = first ? r->first : other ? r->other : r->opcode;
	uint32_t bytes = first ? 8 : other ? r->other_bytes : r->bytes;
	uint64_t here = (uint64_t)i * 4096;
	uint64_t there = REMOTE + (uint64_t)i * SLOT + (first ? 0 : r->shift);
	struct sim_wr wr = {.opcode = opcode,
			    .remote = opcode == USER_RDMA_READ ? (uint64_t)i * SLOT : there,
			    .imm = i,
			    .unsignaled = r->unsignaled && i + 1 < MESSAGES,
			    .is_inline = r->is_inline,
			    .rkey = i == r->bad ? s->node[1].key + (9 << 8) : 0,
			    .swap_add = i + 1,
			    .compare = 0,
			    .sge = {{here, bytes, 0}},
			    .sges = bytes ? 1 : 0};

	sim_post(s, 0, 0, &wr);
}

static void post_receives(struct sim *s, const struct message_row *r, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		sim_post_recv(s, 1, 0, REMOTE + MESSAGES * SLOT + i * SLOT, r->bytes);
}

static void take_completions(struct sim *s, struct messages_outcome *o)
{
	for (unsigned node = 0; node < 2; node++)
		while (sim_poll_cq(s, node, &o->cqe[node][o->cqes[node]])) {
			struct cqe *c = &o->cqe[node][o->cqes[node]++];

			c->my_qpn = c->remote_qpn = 0;
		}
}

/* Leaves ROOM places in the completion queue of node 1. */
static void fill_cq(struct sim *s)
{
	for (unsigned i = 0; i < FILL; i++) {
		sim_post(s, 1, 0, &SIM_WR(USER_RDMA_WRITE, 0, 8, .remote = REMOTE));
		if (i % 32 == 31)
			assert_true(sim_settle(s, 60000 * MS));
	}
	assert_true(sim_settle(s, 60000 * MS));
}

/* Takes what fill_cq() has put there. */
static void empty_cq(struct sim *s)
{
	struct cqe c;

	for (unsigned i = 0; i < FILL; i++)
		assert_true(sim_poll_cq(s, 1, &c));
}

/* Returns how many frames node 0 sent. */
static uint64_t run_messages(const struct message_row *r, bool trains, struct messages_outcome *o,
			     uint8_t *memory)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;
	uint64_t frames;

	p.payload_refs = p.whole_trains = trains;
	p.equal = r->equal;
	p.max_rd_atomic = r->reads ? r->reads : p.max_rd_atomic;
	p.access = r->access ? r->access : p.access;
	s = sim_create(&p);
	if (r->peer_mtu)
		sim_context(s, 1, 0)->mtu_bytes = r->peer_mtu;
	s->faults = r->faults;
	for (unsigned i = 0; i < REMOTE; i++)
		for (unsigned node = 0; node < 2; node++)
			s->node[node].memory[i] = (uint8_t)(i * (7 - node) + (i >> 8));
	memset(s->node[1].memory + REMOTE, 0, REMOTE);
	post_receives(s, r, 0, r->receives);
	if (r->opcode == USER_SEND ||
	    r->opcode == USER_SEND_IMM) /* credits come with the first answer */
		post_message(s, r, 0);
	sim_run(s, MS);
	memset(o, 0, sizeof(*o));
	take_completions(s, o);
	if (r->full)
		fill_cq(s);
	frames = s->end[0].sent;
	for (unsigned i = o->cqes[0]; i < MESSAGES; i++)
		post_message(s, r, i);
	sim_run(s, 100000);
	post_receives(s, r, r->receives, MESSAGES);
	assert_true(sim_settle(s, 60000 * MS));
	if (r->full)
		empty_cq(s);
	take_completions(s, o);
	frames = s->end[0].sent - frames;
	o->msn = sim_context(s, 1, 0)->ee.msn;
	o->epsn = sim_context(s, 1, 0)->ee.expected_psn;
	o->unacked = sim_context(s, 0, 0)->rrc.unacked_psn;
	o->executed = sim_counter(s, 1, COUNTER_executed_bytes);
	o->messages = sim_counter(s, 1, COUNTER_executed);
	o->read = sim_counter(s, 0, COUNTER_read_bytes);
	o->requests = sim_counter(s, 0, COUNTER_request_packets);
	for (unsigned node = 0; node < 2; node++)
		o->state[node] = qp_state(sim_context(s, node, 0));
	memcpy(memory, s->node[0].memory, REMOTE);
	memcpy(memory + REMOTE, s->node[1].memory + REMOTE, REMOTE);
	assert_true(sim_quiet(s));
	sim_destroy(s);
	return frames;
}

TEST(trains__of_messages)
{
	uint8_t *memory[2] = {malloc(2 * REMOTE), malloc(2 * REMOTE)};
	static struct messages_outcome o[2];

	for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const struct message_row *r = &messages[i];
		uint64_t alone = run_messages(r, false, &o[0], memory[0]);
		uint64_t together = run_messages(r, true, &o[1], memory[1]);

		if (alone == MESSAGES && r->bytes <= 64 && !r->other && !r->reads &&
		    !r->faults.drop_mask && together > MESSAGES / 4)
			fail_msg("%s: %lu frames", r->name, (unsigned long)together);
		SAME(r, &o[0], &o[1], cqes);
		SAME(r, &o[0], &o[1], cqe);
		SAME(r, &o[0], &o[1], msn);
		SAME(r, &o[0], &o[1], epsn);
		SAME(r, &o[0], &o[1], unacked);
		SAME(r, &o[0], &o[1], state);
		SAME(r, &o[0], &o[1], executed);
		SAME(r, &o[0], &o[1], messages);
		SAME(r, &o[0], &o[1], read);
		SAME(r, &o[0], &o[1], requests);
		if (memcmp(memory[0], memory[1], 2 * REMOTE))
			fail_msg("%s: the bytes differ", r->name);
	}
	free(memory[0]);
	free(memory[1]);
}

/* ---- acknowledgements ---- */

enum { WRITE_AT = 4, REQUESTS = 12 }; /* one WRITE among READs */

/* Node 1 acknowledges the WRITE; the others have responses. */
static bool check_ack(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	unsigned *acks = arg;
	struct wire_frame f;

	if (from == 0 || wire_parse_frame(frame, bytes, &f) != WIRE_OK || f.h.opcode != WIRE_RC_ACK)
		return false;
	assert_int_equal(f.h.psn, psn_add(s->params.psn, WRITE_AT));
	++*acks;
	return false;
}

/* C9-95: an acknowledgement that is due has the PSN of its request, whatever train comes behind it. */
TEST(c9_095__train_of_reads_behind_a_write)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	unsigned acks = 0;
	struct sim *s;

	p.payload_refs = p.whole_trains = true;
	p.settings = rig_settings();
	p.settings->ack_interval = 1;
	s = sim_create(&p);
	s->tap = check_ack;
	s->tap_arg = &acks;
	for (unsigned i = 0; i < REQUESTS; i++) {
		uint8_t opcode = i == WRITE_AT ? USER_RDMA_WRITE : USER_RDMA_READ;
		struct sim_wr wr = SIM_WR(opcode, 64 * i, 64, .remote = REMOTE);

		sim_post(s, 0, 0, &wr);
	}
	assert_true(sim_settle(s, 60000 * MS));
	assert_int_equal(acks, 1);
	sim_destroy(s);
}

/* ---- a queue pair that is reset while results of its atomics wait ---- */

static void add_to(struct sim *s, unsigned qp, unsigned number, uint64_t there)
{
	struct sim_wr wr = SIM_WR(USER_ATOMIC_FA, 8 * number, 8, .remote = there, .swap_add = 1);

	sim_post(s, 0, qp, &wr);
}

/* Results of atomics in trains wait for RespPktGen in a FIFO that all queue pairs share. */
TEST(trains__of_atomics_leave_no_results_behind)
{
	enum { ATOMICS = 8, START = 1000 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;
	uint64_t *result;

	p.payload_refs = p.whole_trains = true;
	p.qps = 2;
	s = sim_create(&p);
	result = (uint64_t *)s->node[0].memory;
	*(uint64_t *)(s->node[1].memory + REMOTE) = START;
	for (unsigned qp = 0; qp < 2; qp++) /* the first packet of a connection joins no train */
		add_to(s, qp, qp, REMOTE + 64);
	assert_true(sim_settle(s, 60000 * MS));
	stepping_set(&s->node[1].hca->engines[0], 1u << MODULE_RESPG);
	for (unsigned i = 0; i < ATOMICS; i++)
		add_to(s, 0, 2 + i, REMOTE + 64);
	sim_run(s, 20 * US);
	sim_modify(s, 1, 0, QP_RST, 0);
	sim_modify(s, 0, 0, QP_RST, 0);
	stepping_set(&s->node[1].hca->engines[0], 0);
	for (unsigned i = 0; i < ATOMICS; i++)
		add_to(s, 1, 2 + i, REMOTE);
	assert_true(sim_settle(s, 60000 * MS));
	for (unsigned i = 0; i < ATOMICS; i++)
		assert_int_equal(result[2 + i], START + i);
	sim_destroy(s);
}

/* ---- retransmission ---- */

enum { SENT_MAX = 32 };

struct sent {
	const uint8_t *frame;
	uint32_t psn;
};

/* Loses the first train. */
static bool note_middle(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct sent *sent = arg;
	struct wire_frame f;
	unsigned n = 0;

	if (from || wire_parse_frame(frame, bytes, &f) != WIRE_OK ||
	    f.h.opcode != WIRE_RC_WRITE_MIDDLE)
		return false;
	for (; sent[n].frame; n++)
		assert_false(sent[n].frame == frame && sent[n].psn == f.h.psn);
	assert_true(n + 1 < SENT_MAX);
	sent[n] = (struct sent){frame, f.h.psn};
	return n == 0;
}

/* The receiver splits packets off a train, so its buffer must not arrive twice. */
TEST(trains__are_sent_once)
{
	struct sent sent[SENT_MAX] = {{0}};
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr wr = SIM_WR(USER_RDMA_WRITE, 0, BYTES, .remote = REMOTE);
	struct cqe cqe;
	struct sim *s;

	p.payload_refs = p.whole_trains = true;
	s = sim_create(&p);
	s->tap = note_middle;
	s->tap_arg = sent;
	sim_post(s, 0, 0, &wr);
	assert_true(sim_wait(s, 0, &cqe, 1000 * MS));
	assert_int_equal(cqe.opcode, USER_RDMA_WRITE);
	assert_int_not_equal(sim_counter(s, 0, COUNTER_retransmitted_packets), 0);
	sim_destroy(s);
}

/* ---- buffers for packets that are split off trains ---- */

/* Loses the first packet of each queue pair but 0, whenever it is sent. */
static bool loses_first(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	struct wire_frame f;

	return from == 0 && wire_parse_frame(frame, bytes, &f) == WIRE_OK &&
	       f.h.dest_qp != s->node[1].qp[0].qpn && f.h.psn == s->params.psn;
}

/* Packets that are kept early, each a clone split off its train, leave clones for others. */
TEST(trains__that_come_early_leave_buffers_to_others)
{
	enum { QPS = 6, PACKETS = 16, SOON = 3000000 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim_wr big = SIM_WR(USER_SEND, 0, BYTES);
	struct cqe cqe;
	struct sim *s;

	p.payload_refs = p.whole_trains = p.no_credits = true;
	p.qps = QPS;
	p.own = 1;
	p.timeout = 14;
	p.clones = 63;
	s = sim_create(&p);
	s->tap = loses_first;
	for (unsigned i = 0; i < (QPS - 1) * PACKETS; i++) {
		struct sim_wr wr =
			SIM_WR(USER_RDMA_WRITE, 0, i % PACKETS ? 64 : 48, .remote = REMOTE);

		sim_post(s, 0, 1 + i / PACKETS, &wr);
	}
	sim_run(s, MS);
	assert_int_not_equal(sim_counter(s, 1, COUNTER_early_kept), 0);
	sim_post_recv_list(s, 1, 0, (struct sim_sge[]){{REMOTE, 77777, 0}, {REMOTE, BYTES, 0}}, 2);
	sim_post(s, 0, 0, &big);
	assert_true(sim_wait(s, 1, &cqe, SOON));
	assert_int_equal(cqe.opcode, USER_RECV);
	sim_destroy(s);
}

/* ---- answers to trains, and what follows them ---- */

/* READs of a train may be of any length, and then each is answered by a frame of its own. */
static void read_unlike(struct sim *s, unsigned qp, unsigned reads)
{
	for (unsigned i = 0; i < reads; i++) {
		struct sim_wr wr = SIM_WR(USER_RDMA_READ, 4096 * qp + 64 * i, 8 + 8 * (i % 2),
					  .remote = REMOTE + 64 * i);

		sim_post(s, 0, qp, &wr);
	}
}

/* A selective acknowledgement cannot wait: there is a frame for it whatever trains were before it. */
TEST(trains__of_reads_leave_frames_to_others)
{
	enum { READERS = 9, READS = 16 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	struct sim *s;

	p.payload_refs = p.whole_trains = p.equal = true;
	p.qps = READERS + 1;
	s = sim_create(&p);
	for (unsigned qp = 0; qp < READERS; qp++)
		add_to(s, qp, 8192 + qp, REMOTE + 64);
	assert_true(sim_settle(s, 60000 * MS));
	stepping_set(&s->node[1].hca->engines[0], 1u << MODULE_RESPG);
	for (unsigned qp = 0; qp < READERS; qp++)
		read_unlike(s, qp, READS);
	sim_run(s, 20 * US);
	s->tap = loses_first;
	read_unlike(s, READERS, 1);
	sim_post(s, 0, READERS, &SIM_WR(USER_RDMA_WRITE, 0, 64, .remote = REMOTE));
	sim_run(s, 20 * US);
	stepping_set(&s->node[1].hca->engines[0], 0);
	sim_run(s, 20 * US);
	s->tap = NULL;
	assert_int_not_equal(sim_counter(s, 1, COUNTER_sacks_sent), 0);
	assert_true(sim_settle(s, 60000 * MS));
	sim_destroy(s);
}

/* A poll answers READs with as many packets as it could without trains: what it answers is copied
 * by the next stages, and meanwhile nobody else is served. */
TEST(trains__of_responses_leave_time_to_others)
{
	enum { READERS = 8, LONG = 1 << 20 };
	struct sim_params p = SIM_PARAMS_DEFAULT;
	uint64_t before = 0, now, most = 0;
	struct sim *s;

	p.payload_refs = p.whole_trains = true;
	p.qps = READERS;
	s = sim_create(&p);
	for (unsigned qp = 0; qp < READERS; qp++)
		sim_post(s, 0, qp, &SIM_WR(USER_RDMA_READ, 0, LONG, .remote = REMOTE));
	while (before < READERS * LONG / MTU) {
		sim_step(s);
		now = sim_counter(s, 1, COUNTER_read_response_packets);
		most = RTE_MAX(most, now - before);
		before = now;
	}
	assert_in_range(most, BURST, 2 * BURST);
	assert_true(sim_settle(s, 60000 * MS));
	sim_destroy(s);
}
