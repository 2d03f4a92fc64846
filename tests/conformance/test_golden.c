/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The captures of tests/golden, replayed: our HCA plays one side (once the client's, once the
 * server's), the other side's packets are those of the capture. Our packets must equal those of
 * that side, one by one, except for the differences in the table below; our client must see the
 * same completions and data. Timing is causal: a packet of the peer arrives as soon as we have sent
 * everything that the peer had received before it.
 */
#include "golden.h"
#include "golden_scenario.h"
#include "rig.h"

/* Differences where the standard leaves a choice or that peer is wrong. All others fail. */
enum difference {
	ACKREQ,
	CREDITS,
	UNSOLICITED_ACK,
	ACK_COALESCED,
	RNR_THEN_SILENCE,
	READ_AGAIN_AS_FIRST,
	SEND_TOO_LONG,
	LIMITED_START,
	DIFFERENCES,
};
static const struct {
	const char *name, *reason;
} differences[DIFFERENCES] = {
	[ACKREQ] = {"AckReq",
		    "which packets ask for an ACK is the requester's choice (DESIGN 3); that "
		    "peer: a message's last"},
	[CREDITS] = {"credits", "we give end-to-end credits (C9-150), that peer 11111b"},
	[UNSOLICITED_ACK] = {"unsolicited ACK", "it tells new credits (C9-152)"},
	[ACK_COALESCED] = {"ACK coalesced",
			   "one ACK acknowledges all before it (C9-134); that peer "
			   "answers each duplicate too"},
	[RNR_THEN_SILENCE] =
		{"silence behind an RNR NAK",
		 "one NAK for a PSN is enough; that peer answers the rest of the message with a "
		 "sequence NAK, which its requester must ignore (C9-128)"},
	[READ_AGAIN_AS_FIRST] =
		{"READ asked again answered from FIRST",
		 "a response message begins with FIRST (C9-99, C9-117); that peer goes on with "
		 "MIDDLE"},
	[SEND_TOO_LONG] = {"SEND longer than the receive",
			   "an invalid request (C9-91); that peer: a remote operational error"},
	[LIMITED_START] =
		{"limited start",
		 "without credits yet a request goes limited, as C9-156 asks, until an answer says "
		 "11111b; that peer sends at will from the start: an ACK of the PSN before the "
		 "first "
		 "says 11111b here"},
};
/* Omitted: cm_rping, which belongs to the connection manager. The standard leaves timing more open
 * (the peer waits for its timer where a gap in a READ's responses would show the loss, its RNR
 * waits are longer): that makes no difference here, where timing is causal. */

static struct golden golden;
static unsigned seen[DIFFERENCES];

#define TESTS_MAX   64
#define MEMORY	    (1u << 20)
#define RECEIVES_AT 0x40000u
#define READS_AT    0x20000u
#define ATOMICS_AT  0x30000u
#define SENDS_AT    0x80000u
#define WINDOW_AT   0xf0000u
#define BUFFER	    8192u
#define QKEY	    0x11111111u

/* Requests and responses of one side are in order each, and not with each other. */
enum who { PEER, OUR_REQUEST, OUR_RESPONSE };

struct frame {
	const uint8_t *bytes;
	unsigned length;
	struct wire_frame f;
	enum who who;
	bool done; /* injected; or sent by us, or left out */
};

struct replay {
	const struct golden_scenario *g;
	int us; /* 0: client, 1: server */
	struct sim *s;
	struct frame frame[512];
	unsigned frames;
	unsigned event, receives; /* next event; receives posted */
	struct cqe sent[64], received[64];
	unsigned sents, sents_taken, receiveds, receiveds_taken;
	uint32_t wqe[64], recv_wqe[64]; /* by request, by receive */
	uint32_t acked;			/* the last PSN that we acknowledged */
	bool acks;			/* we have acknowledged something */
};

static const struct golden_side *own(const struct replay *r)
{
	return &r->g->side[r->us];
}

/* The first of those that is still to come; r->frames: none. */
static unsigned first(const struct replay *r, enum who who)
{
	unsigned i = 0;

	while (i < r->frames && (r->frame[i].who != who || r->frame[i].done))
		i++;
	return i;
}

static unsigned first_ours(const struct replay *r)
{
	unsigned request = first(r, OUR_REQUEST), response = first(r, OUR_RESPONSE);

	return request < response ? request : response;
}

#define wrong(r, ...)                                                                              \
	do {                                                                                       \
		print_error("%s as the %s, frame %u, event %u: ", (r)->g->name,                    \
			    (r)->us ? "server" : "client", first_ours(r), (r)->event);             \
		fail_msg(__VA_ARGS__);                                                             \
	} while (0)

static void differs(enum difference d)
{
	seen[d]++;
}

/* ---- the capture ---- */

static void load_frames(struct replay *r)
{
	const struct golden_capture *c = NULL;

	for (size_t i = 0; i < golden.count; i++)
		if (!strcmp(golden.captures[i].name, r->g->capture[r->us]))
			c = &golden.captures[i];
	assert_non_null(c);
	for (size_t i = 0; i < c->count; i++) {
		struct frame *f = &r->frame[r->frames];

		f->bytes = c->frames[i].bytes;
		f->length = c->frames[i].length;
		if (wire_parse_frame(f->bytes, f->length, &f->f) != WIRE_OK)
			continue; /* not RoCE */
		if (f->f.h.dest_qp != r->g->side[0].identity.qpn &&
		    f->f.h.dest_qp != r->g->side[1].identity.qpn)
			continue; /* another QP's */
		f->who =
			memcmp(f->f.src_ip, &own(r)->identity.ip[16 - f->f.ip_bytes], f->f.ip_bytes)
				? PEER
			: wire_opcodes[f->f.h.opcode].flags & WIRE_REQUEST ? OUR_REQUEST
									   : OUR_RESPONSE;
		r->frames++;
		assert_in_range(r->frames, 1, 511);
	}
}

/* ---- our client's memory ---- */

static uint8_t pattern(const struct replay *r, uint32_t m, uint32_t i)
{
	return r->g->fill >= 0 ? (uint8_t)r->g->fill : (uint8_t)(7 * i + 13 * m + 1);
}

static void prove(struct replay *r, uint32_t at, uint32_t m, uint32_t from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (r->s->node[0].memory[at + i] != pattern(r, m, from + i))
			wrong(r, "byte %u of message %u is wrong", i, m);
}

static void prepare_memory(struct replay *r)
{
	static const uint64_t atomics[2] = {0x1122334455667788ull, 5};
	uint8_t *memory = r->s->node[0].memory;

	memset(memory, 0xee, MEMORY);
	for (uint32_t i = 0; r->us && i < 0x8000; i++)
		memory[READS_AT + i] = pattern(r, 99, i);
	memcpy(memory + ATOMICS_AT, atomics, sizeof(atomics));
}

/* ---- our client ---- */

static void post_receive(struct replay *r)
{
	unsigned k = r->receives++;

	r->recv_wqe[k] = sim_post_recv(r->s, 0, 0, RECEIVES_AT + k * BUFFER, r->g->recv_bytes);
}

static unsigned receives_wanted(const struct replay *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < own(r)->event_count; i++)
		n += own(r)->events[i].kind == GOLDEN_RECEIVED;
	return n;
}

static void post(struct replay *r, const struct golden_event *e)
{
	const struct frame *next = &r->frame[first(r, OUR_REQUEST)];
	uint32_t at = SENDS_AT + (e->wr_id - 1) % 50 * BUFFER;
	struct sim_wr wr = {.opcode = e->opcode,
			    .solicited = e->solicited,
			    .imm = e->opcode == USER_SEND_INV ? e->key : e->imm,
			    .remote = e->remote,
			    .swap_add = e->swap_add,
			    .compare = e->compare,
			    .sge = {{at, e->bytes, 0}},
			    .sges = e->bytes != 0};

	if (e->key && e->opcode != USER_SEND_INV) { /* a separate key, from the capture */
		wr.rkey = e->key;
		wr.remote = next->f.h.va - r->s->node[1].va;
	}
	if (e->opcode == USER_ATOMIC_FA) {
		wr.swap_add = e->compare; /* ibverbs' compare_add */
		wr.compare = 0;
	}
	if (r->g->service == SERVICE_UD) {
		wr.ud_qpn = r->g->side[!r->us].identity.qpn;
		wr.ud_qkey = next->f.h.qkey;
		wr.ud_traffic_class = next->f.tos;
	}
	for (uint32_t i = 0; i < e->bytes; i++)
		r->s->node[0].memory[at + i] =
			!(sim_traits[e->opcode] & USER_SCATTERS) ? pattern(r, e->wr_id, i) : 0xee;
	r->wqe[e->wr_id] = sim_post(r->s, 0, 0, &wr);
}

static void take_completions(struct replay *r)
{
	struct cqe c;

	while (sim_poll_cq(r->s, 0, &c)) {
		if (c.is_send)
			r->sent[r->sents++] = c;
		else
			r->received[r->receiveds++] = c;
		assert_true(r->sents < 64 && r->receiveds < 64);
	}
}

static const struct golden_event *request(const struct replay *r, uint32_t wr_id)
{
	for (unsigned i = 0; i < own(r)->event_count; i++)
		if (own(r)->events[i].kind == GOLDEN_POST && own(r)->events[i].wr_id == wr_id)
			return &own(r)->events[i];
	return NULL;
}

static void prove_sent(struct replay *r, const struct golden_event *e, const struct cqe *c)
{
	const struct golden_event *p = request(r, e->wr_id);

	if (c->wqe_offset != r->wqe[e->wr_id])
		wrong(r, "a completion at %u instead of %u", c->wqe_offset, r->wqe[e->wr_id]);
	if (c->opcode != (e->syndrome ? USER_INVALID : p->opcode))
		wrong(r, "completion %#x, syndrome %#x", c->opcode, c->imm_or_error);
	if (e->syndrome && (c->imm_or_error & 0xff) != e->syndrome)
		wrong(r, "syndrome %#x instead of %#x", c->imm_or_error & 0xff, e->syndrome);
	if (!e->syndrome && c->byte_count != e->bytes)
		wrong(r, "%u bytes instead of %u", c->byte_count, e->bytes);
	if (p->opcode == USER_RDMA_READ)
		prove(r, SENDS_AT + (e->wr_id - 1) % 50 * BUFFER, 99, p->remote - READS_AT,
		      e->bytes);
}

/* Which of the peer's requests fills our receive k. */
static uint32_t message_of(const struct replay *r, unsigned k)
{
	const struct golden_side *peer = &r->g->side[!r->us];

	for (unsigned i = 0; i < peer->event_count; i++) {
		const struct golden_event *e = &peer->events[i];

		if (e->kind == GOLDEN_POST && e->opcode != USER_RDMA_WRITE &&
		    !(sim_traits[e->opcode] & USER_SCATTERS) && k-- == 0)
			return e->wr_id;
	}
	return 0;
}

/* `k`: which receive it is, from 0. */
static void prove_received(struct replay *r, const struct golden_event *e, const struct cqe *c,
			   unsigned k)
{
	uint32_t at = RECEIVES_AT + k * BUFFER;
	char grh[81];

	if (c->wqe_offset != r->recv_wqe[k])
		wrong(r, "receive %u completed at %u", k, c->wqe_offset);
	if (c->opcode != (e->syndrome ? USER_INVALID : e->opcode))
		wrong(r, "receive %u: %#x, syndrome %#x", k, c->opcode, c->imm_or_error);
	if (e->syndrome == SYNDROME_LOCAL_QP_OP && r->g->recv_bytes < BUFFER &&
	    (c->imm_or_error & 0xff) == SYNDROME_LOCAL_LENGTH)
		differs(SEND_TOO_LONG);
	else if (e->syndrome && (c->imm_or_error & 0xff) != e->syndrome)
		wrong(r, "receive %u: syndrome %#x", k, c->imm_or_error & 0xff);
	if (e->syndrome)
		return;
	if (c->byte_count != e->bytes)
		wrong(r, "receive %u: %u bytes instead of %u", k, c->byte_count, e->bytes);
	if ((e->opcode == USER_RECV_IMM || e->opcode == USER_RECV_RDMA_IMM) &&
	    c->imm_or_error != e->imm)
		wrong(r, "receive %u: immediate %#x", k, c->imm_or_error);
	if (r->g->service != SERVICE_UD) {
		if (e->opcode != USER_RECV_RDMA_IMM)
			prove(r, at, message_of(r, k), 0, e->bytes);
		return;
	}
	if (c->remote_qpn != r->g->side[!r->us].identity.qpn)
		wrong(r, "receive %u: from QP %#x", k, c->remote_qpn);
	for (unsigned i = 0; i < 40; i++)
		snprintf(grh + 2 * i, 3, "%02x", r->s->node[0].memory[at + i]);
	if (own(r)->grh[0] && strncmp(grh, own(r)->grh + 80 * k, 80))
		wrong(r, "receive %u: GRH space %s", k, grh);
	prove(r, at + 40, message_of(r, k), 0, e->bytes - 40);
}

/* Performs our side's next actions, as far as they are possible now. */
static void follow_events(struct replay *r)
{
	take_completions(r);
	while (r->event < own(r)->event_count) {
		const struct golden_event *e = &own(r)->events[r->event];

		if (e->kind == GOLDEN_POST) {
			post(r, e);
		} else if (e->kind == GOLDEN_SENT && r->sents_taken < r->sents) {
			prove_sent(r, e, &r->sent[r->sents_taken]);
			r->sents_taken++;
		} else if (e->kind == GOLDEN_RECEIVED && r->receiveds_taken < r->receiveds) {
			prove_received(r, e, &r->received[r->receiveds_taken], r->receiveds_taken);
			r->receiveds_taken++;
		} else {
			return;
		}
		r->event++;
	}
}

/* ---- packets ---- */

static bool plain_ack(const struct wire_headers *h)
{
	return h->opcode == WIRE_RC_ACK && aeth_kind(h->syndrome) == AETH_ACK;
}

/* May what that side sent next be missing from what we send? `upto`: the last PSN that we
 * acknowledge, by then. */
static bool may_miss(const struct replay *r, const struct frame *f, uint32_t upto, bool acks)
{
	const struct wire_headers *h = &f->f.h;
	unsigned before = (unsigned)(f - r->frame);

	if (h->opcode != WIRE_RC_ACK)
		return false;
	if (plain_ack(h) && acks && psn_before_eq(h->psn, upto)) {
		differs(ACK_COALESCED);
		return true;
	}
	if (h->syndrome != aeth_nak(AETH_NAK_SEQUENCE))
		return false;
	while (before && r->frame[before - 1].who != OUR_RESPONSE)
		before--;
	if (!before || aeth_kind(r->frame[before - 1].f.h.syndrome) != AETH_RNR)
		return false;
	differs(RNR_THEN_SILENCE);
	return true;
}

/* NULL: the same packet except for permitted differences; else what differs. */
static const char *compare(const struct replay *r, const struct frame *f,
			   const struct rig_packet *p)
{
	struct wire_headers a = f->f.h, b = p->h;

	if (a.opcode == WIRE_RC_READ_RESP_MIDDLE && b.opcode == WIRE_RC_READ_RESP_FIRST) {
		differs(READ_AGAIN_AS_FIRST);
		a.opcode = b.opcode;
		a.msn = b.msn;
		a.syndrome = b.syndrome;
	}
	if (a.opcode != b.opcode || a.psn != b.psn)
		return "opcode or PSN";
	if (a.ackreq != b.ackreq) {
		differs(ACKREQ);
		b.ackreq = a.ackreq;
	}
	if (wire_opcodes[a.opcode].headers & WIRE_HAS_AETH && a.syndrome != b.syndrome) {
		if (aeth_kind(a.syndrome) == AETH_ACK && aeth_kind(b.syndrome) == AETH_ACK)
			differs(CREDITS);
		else if (a.syndrome == aeth_nak(AETH_NAK_REMOTE_OPERATION) &&
			 b.syndrome == aeth_nak(AETH_NAK_INVALID_REQUEST) &&
			 r->g->recv_bytes < BUFFER)
			differs(SEND_TOO_LONG);
		else
			return "syndrome";
		b.syndrome = a.syndrome;
	}
	if (memcmp(&a, &b, sizeof(a)))
		return "a header field";
	if (f->f.payload_bytes != p->bytes ||
	    memcmp(f->bytes + f->f.payload_offset, p->payload, p->bytes))
		return "payload";
	if (f->f.sport != p->sport || f->f.tos != p->tos || f->f.ttl != p->ttl)
		return "UDP source port, TOS or TTL";
	return NULL;
}

/* A packet that we sent: is it the next one of that side? */
static void match(struct replay *r, const struct rig_packet *p)
{
	bool request = wire_opcodes[p->h.opcode].flags & WIRE_REQUEST;
	struct frame *f;
	const char *what;

	if (plain_ack(&p->h)) {
		if ((!r->acks && p->h.psn == psn_sub(r->g->side[!r->us].identity.psn, 1)) ||
		    (r->acks && p->h.psn == r->acked &&
		     !plain_ack(&r->frame[first(r, OUR_RESPONSE)].f.h))) {
			differs(UNSOLICITED_ACK);
			return;
		}
		r->acked = p->h.psn;
		r->acks = true;
	}
	for (;;) {
		f = &r->frame[first(r, request ? OUR_REQUEST : OUR_RESPONSE)];
		if (f == &r->frame[r->frames])
			wrong(r, "we sent %s PSN %#x syndrome %#x; that side nothing more",
			      wire_opcode_name(p->h.opcode), p->h.psn, p->h.syndrome);
		what = compare(r, f, p);
		if (!what || !may_miss(r, f, r->acked, r->acks))
			break;
		f->done = true;
	}
	if (what)
		wrong(r,
		      "%s differs: we sent %s PSN %#x syndrome %#x MSN %u, that side %s PSN %#x "
		      "syndrome %#x MSN %u",
		      what, wire_opcode_name(p->h.opcode), p->h.psn, p->h.syndrome, p->h.msn,
		      wire_opcode_name(f->f.h.opcode), f->f.h.psn, f->f.h.syndrome, f->f.h.msn);
	f->done = true;
}

/* Late receives: posted before the packet whose message the capture acknowledges. */
static void post_late(struct replay *r, const struct frame *f)
{
	const struct frame *answer = &r->frame[first(r, OUR_RESPONSE)];

	if (r->g->late && r->us && wire_opcodes[f->f.h.opcode].flags & WIRE_START &&
	    plain_ack(&answer->f.h))
		post_receive(r);
}

/* The peer's packets that are due. */
static void inject(struct replay *r)
{
	struct frame *f;

	while ((f = &r->frame[first(r, PEER)]) < &r->frame[first_ours(r)]) {
		post_late(r, f);
		sim_wire_send(r->s, 1, f->bytes, f->length);
		f->done = true;
	}
}

/* Takes the packets that we sent. Returns how many. */
static unsigned take_packets(struct replay *r)
{
	struct rig_packet p;
	unsigned n = 0;

	for (; rig_recv(r->s, &p, 0); n++)
		match(r, &p);
	return n;
}

/* Nothing happens any more until a timer expires: the peer may be waiting for what we leave out. */
static bool skip_missing(struct replay *r)
{
	struct frame *f = &r->frame[first(r, OUR_RESPONSE)];

	if (f == &r->frame[r->frames] || !may_miss(r, f, r->acked, r->acks))
		return false;
	f->done = true;
	return true;
}

static bool played(const struct replay *r)
{
	return r->event == own(r)->event_count && first_ours(r) == r->frames &&
	       first(r, PEER) == r->frames;
}

static void play(struct replay *r)
{
	uint64_t limit = r->s->now_ns + 60000 * MS;
	unsigned quiet = 0;

	while (!played(r)) {
		inject(r);
		follow_events(r);
		sim_step(r->s);
		quiet = take_packets(r) ? 0 : quiet + 1;
		if (quiet < 10) /* longer than a packet takes to us */
			continue;
		if (!skip_missing(r) && !sim_advance(r->s, limit) && quiet > 20)
			wrong(r, "stuck: nothing is due any more");
		if (r->s->now_ns >= limit)
			wrong(r, "stuck");
	}
}

/* ---- the scenarios ---- */

static void prove_memory(struct replay *r)
{
	const struct golden_side *client = &r->g->side[0];

	if (own(r)->memory_bytes &&
	    memcmp(r->s->node[0].memory + ATOMICS_AT, own(r)->memory, own(r)->memory_bytes))
		wrong(r, "the atomics' words are wrong");
	for (unsigned i = 0; r->us && i < client->event_count; i++) {
		const struct golden_event *e = &client->events[i];

		if (e->kind == GOLDEN_POST && !e->key &&
		    (e->opcode == USER_RDMA_WRITE || e->opcode == USER_RDMA_WRITE_IMM))
			prove(r, e->remote, e->wr_id, 0, e->bytes);
	}
}

/* The memory window that a peer's SEND invalidates, bound to our memory. */
static void make_window(struct replay *r)
{
	const struct golden_side *g = own(r);
	struct mpt_entry m = {.pd = 2,
			      .access = ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE,
			      .flags = MPT_INVALIDATE_REMOTE,
			      .key = g->window_key,
			      .start = g->window_va,
			      .length = BUFFER,
			      .phys = r->s->node[0].memory + WINDOW_AT};
	uint32_t index = v2p_index(&r->s->node[0].hca->v2p, g->window_key);

	if (g->window_key)
		assert_int_equal(
			ceu_exec(r->s->node[0].ceu, CEU_SW2HW_MPT, index, &m, sizeof(m), NULL, 0),
			CEU_OK);
}

/* Bytes written by the window's first WRITE, and not by the second. */
static void prove_window(struct replay *r)
{
	if (!own(r)->window_key)
		return;
	prove(r, WINDOW_AT, 1, 0, 128);
	assert_int_equal(sim_context(r->s, 0, 0)->state, QP_ERR);
}

/* No credits are needed, whatever the first answer says. */
static void unlimited_start(struct replay *r)
{
	if (r->g->service != SERVICE_RC)
		return;
	rig_ack(r->s, 0, psn_sub(own(r)->identity.psn, 1), aeth_ack(AETH_CREDIT_INVALID), 0);
	sim_run(r->s, 10 * US);
	differs(LIMITED_START);
}

static void replay(const struct golden_scenario *g, int us, bool credits)
{
	static struct replay r;
	struct sim_params p = SIM_PARAMS_DEFAULT;

	r = (struct replay){.g = g, .us = us};
	p.service = g->service;
	p.mtu = wire_mtu_code(g->mtu);
	p.timeout = g->timeout;
	p.min_rnr_timer = g->min_rnr_timer;
	p.memory_bytes = MEMORY;
	p.no_credits = !credits;
	p.identity[0] = &g->side[us].identity;
	p.identity[1] = &g->side[!us].identity;
	r.s = rig_create(&p);
	prepare_memory(&r);
	load_frames(&r);
	for (unsigned n = g->late && us ? 0 : receives_wanted(&r); n; n--)
		post_receive(&r);
	make_window(&r);
	unlimited_start(&r);
	play(&r);
	prove_memory(&r);
	prove_window(&r);
	take_completions(&r);
	if (r.sents_taken != r.sents || r.receiveds_taken != r.receiveds)
		wrong(&r, "a completion too many");
	rig_end(r.s);
}

/* Both sides, with and without credits. */
static void one_scenario(void **state)
{
	const struct golden_scenario *g = *state;

	machine_set_test("golden");
	for (unsigned how = 0; how < 4; how++)
		replay(g, how & 1, how >> 1);
}

static void golden__each_permitted_difference_is_needed(void **state)
{
	for (unsigned d = 0; d < DIFFERENCES; d++) {
		print_message("%6u times: %s: %s\n", seen[d], differences[d].name,
			      differences[d].reason);
		assert_true(seen[d] > 0);
	}
}

static int hand_over(void **state)
{
	return 0; /* *state is the scenario, as passed to the test */
}

int main(void)
{
	static struct CMUnitTest tests[TESTS_MAX];
	static char names[TESTS_MAX][64];
	unsigned n = 0;
	int failed;

	if (golden_load(&golden, GOLDEN_DIR))
		return 2;
	for (; n < golden_scenario_count && n < TESTS_MAX - 1; n++) {
		snprintf(names[n], sizeof(names[n]), "golden__%s", golden_scenarios[n].name);
		for (char *c = names[n]; *c; c++)
			*c = *c == '.' || *c == '-' ? '_' : *c;
		tests[n] = (struct CMUnitTest){names[n], one_scenario, hand_over, NULL,
					       (void *)&golden_scenarios[n]};
	}
	tests[n++] =
		(struct CMUnitTest)cmocka_unit_test(golden__each_permitted_difference_is_needed);
	failed = _cmocka_run_group_tests("golden", tests, n, NULL, NULL);
	golden_free(&golden);
	return failed;
}
