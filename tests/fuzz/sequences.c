/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequences of packets against requester and responder, beside a client that posts and a wire that
 * takes its time. The oracles are the rules that hold whatever a peer sends.
 *
 * Input: steps, each a byte that chooses a row of `steps`, then what the row reads. A packet names
 * PSNs relative to those that its queue pair expects, so that most mean something. From TRAINS on the byte makes
 * four packets of one, with PSNs in a row, and what the next step does comes in the same burst.
 */
#include "wire/aeth.h"
#include "wire/psn.h"
#include "world.h"

enum { STEPS = 48, POSTED_MAX = 64, PATIENCE = 400, TRAINS = 24 * 9 };

/* The peer's and the client's view of a queue pair. */
static struct view {
	uint32_t posted[POSTED_MAX]; /* offsets of requests, in order */
	unsigned int count, done;    /* posted; completed */
	uint32_t received;	     /* receives completed */
	uint32_t epsn;		     /* behind the last that was acknowledged or expected */
	uint32_t msn;		     /* the last that an acknowledgement said */
	uint32_t acked;		     /* behind the last PSN that the peer has acknowledged */
	bool failed;		     /* a completion with an error has come */
} views[WORLD_QPS];

static int index_of(uint32_t qpn)
{
	for (int i = 0; i < WORLD_QPS; i++)
		if (world->node[0].qp[i].qpn == qpn)
			return i;
	return -1;
}

static int index_of_peer(uint32_t dest_qp)
{
	for (int i = 0; i < WORLD_QPS; i++)
		if (world->node[1].qp[i].qpn == dest_qp)
			return i;
	return -1;
}

/* ---- oracles ---- */

/* C9-88, C9-110: acknowledges nothing that has not been executed; a NAK names the PSN that is missing, but a
 * peer may send another request with that PSN, which is executed before it leaves. C9-151: the MSN never goes back. */
static void judge_answer(struct view *v, const struct qp *q, const struct wire_headers *h)
{
	uint32_t epsn = q->ee.expected_psn;

	if (!(wire_opcodes[h->opcode].headers & WIRE_HAS_AETH))
		return;
	REQUIRE(psn_after_eq(h->msn, v->msn) && psn_before_eq(h->msn, q->ee.msn));
	v->msn = h->msn;
	switch (aeth_kind(h->syndrome)) {
	case AETH_ACK:
		REQUIRE(psn_before(h->psn, epsn));
		break;
	case AETH_NAK:
	case AETH_RNR:
		REQUIRE(psn_before_eq(h->psn, epsn));
		break;
	case AETH_RESERVED:
		REQUIRE(!"a syndrome that is not defined");
	}
}

/* C9-61: packets sent lie between the PSNs acknowledged and those numbered. */
static void judge_request(const struct qp *q, const struct wire_headers *h)
{
	REQUIRE(psn_after_eq(h->psn, q->rrc.unacked_psn));
	REQUIRE(psn_diff(h->psn, q->rtc.next_psn) <= 0);
	REQUIRE(qp_state(q) != QP_RTR);
}

static void on_packet(const struct wire_frame *f)
{
	int i = index_of_peer(f->h.dest_qp);
	const struct qp *q = i < 0 ? NULL : sim_context(world, 0, (unsigned int)i);

	if (!q || wire_opcodes[f->h.opcode].service != SERVICE_RC)
		return;
	if (wire_opcodes[f->h.opcode].flags & WIRE_RESPONSE)
		judge_answer(&views[i], q, &f->h);
	else
		judge_request(q, &f->h);
}

/* Requests complete once each, in the order posted, and nothing succeeds behind a failure. An
 * unsignalled one completes with the next. */
static void judge_send(struct view *v, const struct cqe *c)
{
	while (v->done < v->count && v->posted[v->done] != c->wqe_offset)
		v->done++;
	REQUIRE(v->done < v->count);
	v->done++;
	REQUIRE(!v->failed || c->opcode == USER_INVALID);
	v->failed |= c->opcode == USER_INVALID;
}

static void on_completion(const struct cqe *c)
{
	int i = index_of(c->my_qpn);

	REQUIRE(i >= 0);
	if (c->opcode >= USER_RECV && c->opcode <= USER_RECV_INV)
		REQUIRE(c->byte_count <= WORLD_RECEIVE_BYTES + (i == WORLD_UD ? 40u : 0u));
	else if (c->opcode != USER_INVALID && i != WORLD_SRQ)
		judge_send(&views[i], c);
}

static void on_restored(unsigned int qp)
{
	views[qp] = (struct view){0};
	views[qp].posted[0] = 0;
	views[qp].count = world->node[0].qp[qp].posted;
	for (unsigned int i = 0; i < views[qp].count; i++)
		views[qp].posted[i] = i * SIM_STRIDE;
}

/* ---- steps ---- */

static unsigned int some_qp(struct fuzz_bytes *b)
{
	return fuzz_u8(b) % WORLD_QPS;
}

static unsigned int packets; /* that a step makes of one */

static void transmit(struct wire_headers *h, unsigned int bytes)
{
	uint8_t frame[WORLD_FRAME_BYTES];

	if (!(wire_opcodes[h->opcode].headers & WIRE_HAS_PAYLOAD))
		bytes = 0;
	for (unsigned int i = 0; i < packets; i++, h->psn = psn_add(h->psn, 1))
		sim_wire_send(world, 1, frame, world_frame(frame, *h, bytes));
}

static struct wire_headers headers(unsigned int qp, uint8_t opcode, uint32_t psn)
{
	return (struct wire_headers){.opcode = opcode,
				     .psn = psn & PSN_MASK,
				     .dest_qp = world->node[0].qp[qp].qpn,
				     .src_qp = WORLD_PEER_QPN + 1 + qp,
				     .pkey = 0xffff,
				     .qkey = WORLD_QKEY};
}

static uint8_t opcode_of(uint8_t byte, uint8_t flags)
{
	do
		byte++;
	while (!wire_opcodes[byte].defined || !(wire_opcodes[byte].flags & flags));
	return byte;
}

static unsigned int some_length(struct fuzz_bytes *b)
{
	uint8_t byte = fuzz_u8(b);

	return byte < 8 ? WORLD_MTU : byte < 12 ? WORLD_MTU + 1u : byte;
}

static void request(struct fuzz_bytes *b)
{
	static const uint32_t keys[] = {WORLD_KEY, WORLD_KEY, WORLD_KEY_READ_ONLY,
					WORLD_KEY_FOREIGN};
	unsigned int qp = some_qp(b);
	uint8_t opcode = opcode_of(fuzz_u8(b), WIRE_REQUEST), delta = fuzz_u8(b), how = fuzz_u8(b);
	struct wire_headers h = headers(qp, opcode,
					sim_context(world, 0, qp)->ee.expected_psn +
						(delta < 0xe0 ? 0 : (uint32_t)(delta & 0x1f) - 8));

	h.ackreq = how & 1;
	h.rkey = h.invalidate_rkey = keys[how >> 1 & 3];
	h.va = (how & 0x10 ? WORLD_VAULT_VA : WORLD_VA) + (how >> 5) * 8u;
	h.dma_len = how & 8 ? fuzz_u16(b) : WORLD_MTU * (how >> 5);
	h.swap_add = how;
	transmit(&h, some_length(b));
}

static void response(struct fuzz_bytes *b)
{
	unsigned int qp = some_qp(b);
	uint8_t opcode = opcode_of(fuzz_u8(b), WIRE_RESPONSE);
	struct wire_headers h = headers(
		qp, opcode, sim_context(world, 0, qp)->rrc.unacked_psn + fuzz_u8(b) % 12 - 2);

	h.syndrome = fuzz_u8(b);
	if (h.syndrome < 0x80)
		h.syndrome = 0x1f;
	h.msn = fuzz_u8(b) % 8;
	transmit(&h, some_length(b));
}

static void post(struct fuzz_bytes *b)
{
	static const uint8_t opcodes[] = {USER_SEND,	  USER_SEND_IMM,    USER_RDMA_WRITE,
					  USER_RDMA_READ, USER_ATOMIC_CS,   USER_ATOMIC_FA,
					  USER_SEND_INV,  USER_ATOMIC_WRITE};
	unsigned int qp = some_qp(b);
	struct view *v = &views[qp];
	uint8_t how = fuzz_u8(b), opcode = opcodes[how % 8];
	struct sim_wr wr = {.opcode = opcode,
			    .fence = how >> 3 & 1,
			    .unsignaled = how >> 4 & 1,
			    .sges = 1,
			    .sge = {{.offset = 1024, .length = fuzz_u16(b) % 2000}}};

	if (v->count == POSTED_MAX)
		return;
	if (sim_traits[opcode] & USER_EIGHT_BYTES)
		wr.sge[0].length = 8;
	if (qp == WORLD_UD)
		wr.ud_qpn = WORLD_PEER_QPN;
	v->posted[v->count++] = sim_post(world, 0, qp, &wr);
}

static void post_receive(struct fuzz_bytes *b)
{
	unsigned int qp = some_qp(b);

	if (qp != WORLD_SRQ && world->node[0].qp[qp].rq_posted < SIM_RQ_ENTRIES)
		sim_post_recv(world, 0, qp, 2048, fuzz_u16(b) % WORLD_RECEIVE_BYTES);
}

static void run(struct fuzz_bytes *b)
{
	world_run(1 + fuzz_u8(b) % 8);
}

/* Until the next timer, often. */
static void wait_for_timer(struct fuzz_bytes *b)
{
	sim_steal_to_due(world, 1ull << 32);
	world_run(2);
}

static void change_state(struct fuzz_bytes *b)
{
	unsigned int qp = some_qp(b);
	enum qp_state from = qp_state(sim_context(world, 0, qp));
	bool on = fuzz_u8(b) & 1;

	world->params.service = sim_context(world, 0, qp)->service;
	if (from == QP_RTS && on)
		sim_modify(world, 0, qp, world->params.service == SERVICE_RC ? QP_SQD : QP_ERR, 0);
	else if ((from == QP_SQD || from == QP_RTR) && on)
		sim_modify(world, 0, qp, QP_RTS, 0);
	else if (from != QP_RST && from != QP_ERR)
		sim_modify(world, 0, qp, QP_ERR, 0);
}

static void (*const steps[])(struct fuzz_bytes *b) = {
	request, response, request, response, post, post_receive, run, wait_for_timer, change_state,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	world_watch = (struct world_watch){on_packet, on_completion, on_restored};
	world_start();
	for (unsigned int i = 0; b.left && i < STEPS; i++) {
		uint8_t step = fuzz_u8(&b);

		packets = step < TRAINS ? 1 : 4;
		steps[step % RTE_DIM(steps)](&b);
		world_run(step < TRAINS);
	}
	world_restore();
	return 0;
}
