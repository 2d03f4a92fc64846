/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains (pipeline/train.h): whatever happens to a train, the outcome is that of its packets sent
 * one by one. Each row runs with single packets and with trains that the wire keeps whole, without
 * and with ICRCs, and compares what clients and peers see. First trains of middle packets, then of
 * single-packet messages.
 */
#include <rte_ether.h>
#include "rig.h"

enum { REMOTE = 2 << 20, BYTES = 300000, MTU = 1024 };

enum how { ALONE, TRAINS, TRAINS_WITH_ICRCS, HOWS };

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
	uint64_t marks; /* packets that the peer received marked */
};

/* ---- buffers for packets that are split off trains ---- */

enum { CLONES = 63 };

static struct rte_mbuf *clones[CLONES];

/* From now on no train can be split. */
static void take_clones(struct sim *s)
{
	assert_int_equal(rte_pktmbuf_alloc_bulk(s->clones, clones, CLONES), 0);
}

/* Fails if a train should have been split and `whole`, or if none should and not `whole`. */
static void return_clones(struct sim *s, const char *name, bool whole)
{
	uint64_t splits =
		sim_counter(s, 0, COUNTER_packet_empty) + sim_counter(s, 1, COUNTER_packet_empty);

	if (whole != !splits)
		fail_msg("%s: %lu splits", name, (unsigned long)splits);
	rte_pktmbuf_free_bulk(clones, CLONES);
}

/* A congested router has had all frames; IPv6 has no checksum over that. */
static bool mark(struct sim *s, int from, const uint8_t *frame, unsigned bytes, void *arg)
{
	((uint8_t *)frame)[RTE_ETHER_HDR_LEN + 1] |= WIRE_ECN_CE << 4;
	return false;
}

/* ---- trains of middle packets ---- */

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
	bool marked;		  /* by the network, all of them */
	bool whole;		  /* the receiver splits no train */
	bool same_packets;	  /* as many packets with trains as without */
};

static const struct row rows[] = {
	{"a WRITE", USER_RDMA_WRITE, .whole = true, .same_packets = true},
	{"a WRITE of two entries", USER_RDMA_WRITE, .gather = 100000, .whole = true,
	 .same_packets = true},
	{"a WRITE whose first entry is shorter than a packet", USER_RDMA_WRITE, .gather = 700,
	 .whole = true, .same_packets = true},
	{"a WRITE with immediate data",
	 USER_RDMA_WRITE_IMM,
	 true,
	 {0},
	 .whole = true,
	 .same_packets = true},
	{"a WRITE to too small a region", USER_RDMA_WRITE, .region = 30 * MTU + 100},
	{"a SEND", USER_SEND, true, {BYTES}, .whole = true, .same_packets = true},
	{"a SEND into two entries", USER_SEND, true, {77777, BYTES}, .same_packets = true},
	{"a SEND whose train fills an entry",
	 USER_SEND,
	 true,
	 {33 * MTU, BYTES},
	 .whole = true,
	 .same_packets = true},
	{"a SEND longer than its receive", USER_SEND, true, {50 * MTU, 60}, .gather = 0},
	{"a SEND into a bad entry", USER_SEND, true, {MTU, BYTES}, .bad_entry = true},
	{"a READ", USER_RDMA_READ, .whole = true, .same_packets = true},
	{"a READ whose train fills an entry", USER_RDMA_READ, .entry = {33 * MTU}, .whole = true,
	 .same_packets = true},
	{"a READ into two entries", USER_RDMA_READ, .entry = {77777}, .same_packets = true},
	{"a READ of too small a region", USER_RDMA_READ, .region = 30 * MTU + 100},
	{"a marked WRITE", USER_RDMA_WRITE, .marked = true, .same_packets = true},
	{"a marked SEND", USER_SEND, true, {BYTES}, .marked = true, .same_packets = true},
	{"a marked READ", USER_RDMA_READ, .marked = true, .same_packets = true},
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
				     sim_counter(s, !from, COUNTER_rx_packets)},
			    .marks = sim_counter(s, !from, COUNTER_np_ecn_marked_roce_packets)};

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
static uint64_t run(const struct row *r, enum how how, struct outcome *o, uint8_t *memory)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	bool trains = how != ALONE;
	struct sim_wr wr;
	struct sim *s;
	unsigned from = r->opcode == USER_RDMA_READ;
	bool whole = trains && r->whole;
	uint64_t frames;
	uint32_t bad;

	p.payload_refs = p.whole_trains = trains;
	p.icrcs = how == TRAINS_WITH_ICRCS;
	p.settings = rig_settings();
	p.settings->nt_copy_bytes = p.icrcs; /* all messages, or none */
	p.equal = r->equal;
	p.retry_cnt = 7;
	p.no_credits = true;
	p.clones = CLONES;
	p.ipv6 = r->marked;
	s = sim_create(&p);
	s->tap = r->marked ? mark : NULL;
	bad = r->bad_entry ? s->node[1].key + (9 << 8) : 0;
	s->faults = r->faults;
	wr = request(s, r);
	for (unsigned i = 0; i < BYTES; i++) {
		s->node[0].memory[i] = (uint8_t)(i * 7 + (i >> 8));
		s->node[1].memory[i] = (uint8_t)(i * 5 + (i >> 9));
	}
	if (r->region)
		wr.rkey = rig_peer_region(s, wr.remote, wr.remote, r->region);
	if (r->receives)
		sim_post_recv_list(s, 1, 0,
				   (struct sim_sge[]){{REMOTE, r->entry[0], 0},
						      {REMOTE + r->entry[0], r->entry[1], bad}},
				   r->entry[1]	 ? 2
				   : r->entry[0] ? 1
						 : 0);
	if (whole)
		take_clones(s);
	sim_post(s, 0, 0, &wr);
	if (whole) {
		sim_settle(s, 10 * MS);
		return_clones(s, r->name, true);
	}
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
	SAME(r, alone, together, marks);
}

TEST(trains__of_middle_packets)
{
	uint8_t *memory[2] = {malloc(BYTES + MTU), malloc(BYTES + MTU)};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o[2];
		uint64_t alone = run(&rows[i], ALONE, &o[0], memory[0]);

		for (enum how how = TRAINS; how < HOWS; how++) {
			uint64_t together = run(&rows[i], how, &o[1], memory[1]);
			/* What is sent again with ICRCs goes packet by packet. */
			bool copied = rows[i].faults.drop_mask || rows[i].faults.reorder_ppm;

			if (alone > 1 && (how == TRAINS || !copied) && together > alone / 4)
				fail_msg("%s: %lu frames instead of %lu", rows[i].name,
					 (unsigned long)together, (unsigned long)alone);
			compare(&rows[i], &o[0], &o[1]);
			if (memcmp(memory[0], memory[1], BYTES + MTU))
				fail_msg("%s: the bytes differ", rows[i].name);
		}
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
	bool marked;	   /* by the network, all of them */
	bool whole;	   /* the receiver splits no train but perhaps the first */
	bool starved;	   /* trains wait for buffers to be split */
	bool from_zero;	   /* the first PSN */
	bool full;	   /* the receiver's completion queue has only ROOM places left */
};

#define SENDS(bytes)	     PLAIN(USER_SEND, bytes)
#define PLAIN(opcode, bytes) opcode, 0, bytes, 0, NONE, .receives = MESSAGES
#define CORRUPTED	     .faults = {.corrupt_ppm = 1000000, .most_lost = 6}
#define EARLY		     .faults = {.reorder_ppm = 500000, .delay_ns = 9000}

static const struct message_row messages[] = {
	{"WRITEs", PLAIN(USER_RDMA_WRITE, 64), .whole = true},
	{"WRITEs of an odd length", PLAIN(USER_RDMA_WRITE, 61), .unsignaled = true, .whole = true},
	{"corrupted WRITEs", PLAIN(USER_RDMA_WRITE, 61), CORRUPTED},
	{"corrupted WRITEs of which a few fit", PLAIN(USER_RDMA_WRITE, 500), CORRUPTED},
	{"corrupted READs", PLAIN(USER_RDMA_READ, 61), CORRUPTED},
	{"WRITEs of a byte", PLAIN(USER_RDMA_WRITE, 1), .is_inline = true, .whole = true},
	{"WRITEs without payload", PLAIN(USER_RDMA_WRITE, 0)},
	{"WRITEs of which two fit into a buffer", PLAIN(USER_RDMA_WRITE, 511), .whole = true},
	{"WRITEs with immediate data", PLAIN(USER_RDMA_WRITE_IMM, 64)},
	{"SENDs", SENDS(64)},
	{"SENDs with immediate data", PLAIN(USER_SEND_IMM, 17)},
	{"READs", PLAIN(USER_RDMA_READ, 64), .whole = true},
	{"READs of an odd length", PLAIN(USER_RDMA_READ, 13), .whole = true},
	{"READs too long to be answered at once", PLAIN(USER_RDMA_READ, 500), .whole = true},
	{"READs of several packets", PLAIN(USER_RDMA_READ, 3000)},
	{"atomics", PLAIN(USER_ATOMIC_FA, 8), .whole = true},
	{"atomics, compare and swap", PLAIN(USER_ATOMIC_CS, 8), .whole = true},
	{"ATOMIC WRITEs", PLAIN(USER_ATOMIC_WRITE, 8)},
	{"READs, few at a time", PLAIN(USER_RDMA_READ, 64), .reads = 3, .whole = true},
	{"READs, two at a time", PLAIN(USER_RDMA_READ, 64), .reads = 2, .whole = true},
	{"atomics, few at a time", PLAIN(USER_ATOMIC_FA, 8), .reads = 3, .whole = true},
	{"WRITEs of two lengths", USER_RDMA_WRITE, USER_RDMA_WRITE, 64, 48, NONE,
	 .receives = MESSAGES},
	{"WRITEs and SENDs", USER_RDMA_WRITE, USER_SEND, 64, 64, NONE, .receives = MESSAGES},
	{"READs and WRITEs", USER_RDMA_READ, USER_RDMA_WRITE, 64, 64, NONE, .receives = MESSAGES},
	{"READs and atomics", USER_RDMA_READ, USER_ATOMIC_FA, 64, 8, NONE, .receives = MESSAGES},
	{"a bad WRITE", USER_RDMA_WRITE, 0, 64, 0, 17, .receives = MESSAGES},
	{"a bad READ", USER_RDMA_READ, 0, 64, 0, 7, .receives = MESSAGES},
	{"a bad atomic", USER_ATOMIC_FA, 0, 8, 0, 7, .receives = MESSAGES},
	{"a bad WRITE, no buffers", USER_RDMA_WRITE, 0, 64, 0, 17, .receives = MESSAGES,
	 .starved = true},
	{"a bad READ, no buffers", USER_RDMA_READ, 0, 64, 0, 7, .receives = MESSAGES,
	 .starved = true},
	{"READs and WRITEs, no buffers", USER_RDMA_READ, USER_RDMA_WRITE, 64, 64, NONE,
	 .receives = MESSAGES, .starved = true},
	{"WRITEs from PSN 0 on", PLAIN(USER_RDMA_WRITE, 64), .from_zero = true},
	{"WRITEs without the right", PLAIN(USER_RDMA_WRITE, 64), .first = USER_RDMA_READ,
	 .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC},
	{"READs without the right", PLAIN(USER_RDMA_READ, 64), .first = USER_ATOMIC_FA,
	 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC},
	{"atomics without the right", PLAIN(USER_ATOMIC_FA, 8), .first = USER_RDMA_READ,
	 .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ},
	{"atomics across words", PLAIN(USER_ATOMIC_FA, 8), .first = USER_RDMA_READ, .shift = 4},
	{"WRITEs above the peer's MTU", PLAIN(USER_RDMA_WRITE, 300), .first = USER_RDMA_WRITE,
	 .peer_mtu = 256},
	{"READs above the peer's MTU", PLAIN(USER_RDMA_READ, 257), .first = USER_ATOMIC_FA,
	 .peer_mtu = 256},
	{"marked WRITEs", PLAIN(USER_RDMA_WRITE, 64), .marked = true},
	{"marked READs", PLAIN(USER_RDMA_READ, 64), .marked = true},
	{"marked atomics", PLAIN(USER_ATOMIC_FA, 8), .marked = true},
	{"SENDs, too few receives", USER_SEND, 0, 64, 0, NONE, .receives = 23},
	{"SENDs, a full completion queue", SENDS(64), .full = true},
	{"lost WRITEs", PLAIN(USER_RDMA_WRITE, 64), .faults.drop_mask = 2},
	{"lost SENDs", SENDS(64), .faults.drop_mask = 4},
	{"lost READs", PLAIN(USER_RDMA_READ, 64), .faults.drop_mask = 2},
	{"lost atomics", PLAIN(USER_ATOMIC_FA, 8), .faults.drop_mask = 4},
	{"lost acknowledgements", PLAIN(USER_RDMA_WRITE, 64), .faults.drop_mask_b = 0xe},
	{"lost responses", PLAIN(USER_RDMA_READ, 64), .faults.drop_mask_b = 0xe},
	{"lost results", PLAIN(USER_ATOMIC_FA, 8), .faults.drop_mask_b = 0xe},
	{"SENDs twice", SENDS(64), .faults.duplicate_ppm = 1000000},
	{"READs twice", PLAIN(USER_RDMA_READ, 64), .faults.duplicate_ppm = 1000000},
	{"atomics twice", PLAIN(USER_ATOMIC_FA, 8), .faults.duplicate_ppm = 1000000},
	{"late SENDs", SENDS(64), EARLY},
	{"late WRITEs", PLAIN(USER_RDMA_WRITE, 64), EARLY},
	{"late READs", PLAIN(USER_RDMA_READ, 64), EARLY},
	{"late atomics", PLAIN(USER_ATOMIC_CS, 8), EARLY},
	{"lost SENDs, selective repeat", SENDS(64), .faults.drop_mask = 4, .equal = true},
	{"lost READs, selective repeat", PLAIN(USER_RDMA_READ, 64), .faults.drop_mask_b = 0xe,
	 .equal = true},
	{"late SENDs, selective repeat", SENDS(64), EARLY, .equal = true},
	{"late READs, selective repeat", PLAIN(USER_RDMA_READ, 64), EARLY, .equal = true},
};

struct messages_outcome {
	struct cqe cqe[2][2 * MESSAGES]; /* without numbers of queue pairs */
	unsigned cqes[2];
	uint32_t msn, epsn, unacked;
	uint8_t state[2];
	uint64_t executed, messages, read, requests, marks[2], duplicates;
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
static uint64_t run_messages(const struct message_row *r, enum how how, struct messages_outcome *o,
			     uint8_t *memory)
{
	struct sim_params p = SIM_PARAMS_DEFAULT;
	bool trains = how != ALONE, short_of = trains && (r->whole || r->starved);
	struct sim *s;
	uint64_t frames;

	p.payload_refs = p.whole_trains = trains;
	p.icrcs = how == TRAINS_WITH_ICRCS;
	p.equal = r->equal;
	p.max_rd_atomic = r->reads ? r->reads : p.max_rd_atomic;
	p.access = r->access ? r->access : p.access;
	p.clones = CLONES;
	p.ipv6 = r->marked;
	p.psn = r->from_zero ? 0 : p.psn;
	s = sim_create(&p);
	s->tap = r->marked ? mark : NULL;
	if (r->peer_mtu)
		sim_context(s, 1, 0)->mtu_bytes = r->peer_mtu;
	for (unsigned i = 0; i < REMOTE; i++)
		for (unsigned node = 0; node < 2; node++)
			s->node[node].memory[i] = (uint8_t)(i * (7 - node) + (i >> 8));
	memset(s->node[1].memory + REMOTE, 0, REMOTE);
	post_receives(s, r, 0, r->receives);
	/* Credits come with the first answer, and the first packet is never executed in a train. */
	if (!r->from_zero)
		post_message(s, r, 0);
	sim_run(s, MS);
	s->faults = r->faults;
	s->faults.drop_mask <<= s->end[0].sent; /* of the frames that come now */
	s->faults.drop_mask_b <<= s->end[1].sent;
	memset(o, 0, sizeof(*o));
	take_completions(s, o);
	if (r->full)
		fill_cq(s);
	if (short_of)
		take_clones(s);
	frames = s->end[0].sent;
	for (unsigned i = o->cqes[0]; i < MESSAGES; i++)
		post_message(s, r, i);
	sim_run(s, 100000);
	if (short_of)
		return_clones(s, r->name, r->whole);
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
	o->duplicates = sim_counter(s, 1, COUNTER_duplicate_requests);
	for (unsigned node = 0; node < 2; node++) {
		o->state[node] = qp_state(sim_context(s, node, 0));
		o->marks[node] = sim_counter(s, node, COUNTER_np_ecn_marked_roce_packets);
	}
	memcpy(memory, s->node[0].memory, REMOTE);
	memcpy(memory + REMOTE, s->node[1].memory + REMOTE, REMOTE);
	assert_true(sim_quiet(s));
	sim_destroy(s);
	return frames;
}

static void compare_messages(const struct message_row *r, const struct messages_outcome o[2])
{
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
	SAME(r, &o[0], &o[1], marks);
	if (r->whole)
		SAME(r, &o[0], &o[1], duplicates);
}

TEST(trains__of_messages)
{
	uint8_t *memory[2] = {malloc(2 * REMOTE), malloc(2 * REMOTE)};
	static struct messages_outcome o[2];

	for (unsigned i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const struct message_row *r = &messages[i];
		uint64_t alone = run_messages(r, ALONE, &o[0], memory[0]);

		for (enum how how = TRAINS; how < HOWS; how++) {
			uint64_t together = run_messages(r, how, &o[1], memory[1]);

			if (alone == MESSAGES - 1 && r->bytes <= 64 && !r->other && !r->reads &&
			    !r->faults.drop_mask && together > MESSAGES / 4)
				fail_msg("%s: %lu frames", r->name, (unsigned long)together);
			compare_messages(r, o);
			if (memcmp(memory[0], memory[1], 2 * REMOTE))
				fail_msg("%s: the bytes differ", r->name);
		}
	}
	free(memory[0]);
	free(memory[1]);
}
