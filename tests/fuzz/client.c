/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes of a hostile client into its memory while the pipeline runs: descriptors, doorbells,
 * receive descriptors, counts and indices.
 *
 * Input: writes, each a byte that chooses a row of `writes`, then what the row reads.
 */
#include "world.h"

static struct sim_node *n;

/* ---- queues ---- */

static void into(uint8_t *memory, size_t room, struct fuzz_bytes *b)
{
	size_t at = fuzz_u16(b) * 16u % room, bytes = fuzz_u8(b);
	const uint8_t *from;

	if (bytes > room - at)
		bytes = room - at;
	from = fuzz_take(b, &bytes);
	memcpy(memory + at, from, bytes);
}

static struct sim_qp *some_qp(struct fuzz_bytes *b)
{
	return &n->qp[fuzz_u8(b) % WORLD_QPS];
}

static void write_sq(struct fuzz_bytes *b)
{
	into(some_qp(b)->sq, SIM_SQ_ENTRIES * SIM_STRIDE, b);
}

static void write_rq(struct fuzz_bytes *b)
{
	into(some_qp(b)->rq, SIM_RQ_ENTRIES * SIM_RQ_STRIDE, b);
}

static void write_srq(struct fuzz_bytes *b)
{
	into(n->srq.ring, SIM_SRQ_ENTRIES * SIM_RQ_STRIDE, b);
}

/* A descriptor of units that make sense, with the fields of the input. */
static void write_request(struct fuzz_bytes *b)
{
	struct sim_wr wr = {.opcode = fuzz_u8(b) % USER_OPCODES};
	unsigned int qp = fuzz_u8(b) % WORLD_QPS;
	uint8_t flags = fuzz_u8(b);

	wr.fence = flags & 1;
	wr.unsignaled = flags >> 1 & 1;
	wr.is_inline = flags >> 2 & 1;
	wr.sges = wr.is_inline ? 1 : flags >> 3 & 3;
	wr.rkey = flags >> 5 & 1 ? fuzz_u32(b) : 0;
	wr.imm = flags >> 6 & 1 ? fuzz_u32(b) : WORLD_KEY_FOREIGN;
	wr.ud_qpn = qp == WORLD_UD ? WORLD_PEER_QPN : 0;
	wr.remote = fuzz_u16(b);
	for (unsigned int i = 0; i < wr.sges; i++)
		wr.sge[i] = (struct sim_sge){.offset = fuzz_u16(b), .length = fuzz_u16(b)};
	if (wr.is_inline) /* the capacity of an entry of the queue */
		wr.sge[0] = (struct sim_sge){.length = wr.sge[0].length % 32};
	sim_post(world, 0, qp, &wr);
}

/* ---- doorbells, counts, indices ---- */

static void ring(struct fuzz_bytes *b)
{
	struct uar_page *uar = n->page->uar;
	uint64_t w = fuzz_u64(b), phase = n->doorbells / UAR_DOORBELLS & 1 ? 0 : DOORBELL_PHASE;
	uint8_t qp = fuzz_u8(b);

	if (qp < 0xc0) /* one of its own */
		w = (uint64_t)((uint32_t)(w & 0xff) | n->qp[qp % WORLD_QPS].qpn
							      << DOORBELL_QPN_SHIFT)
			    << 32 |
		    w >> 32;
	if (!(qp & 0x10)) /* near the beginning of the queue */
		w &= ~(uint64_t)0xffff0000u;
	__atomic_store_n(&uar->doorbell[n->doorbells++ % UAR_DOORBELLS],
			 (w & ~(uint64_t)DOORBELL_PHASE) | phase, __ATOMIC_RELEASE);
}

static void scribble_doorbells(struct fuzz_bytes *b)
{
	into((uint8_t *)n->page->uar->doorbell, sizeof(n->page->uar->doorbell), b);
}

/* A little more than is there, or anything. */
static uint32_t some_count(struct fuzz_bytes *b, uint32_t now)
{
	uint8_t how = fuzz_u8(b);

	return how < 200 ? now + how - 8 : fuzz_u32(b);
}

static void count_receives(struct fuzz_bytes *b)
{
	struct sim_qp *q = some_qp(b);

	q->record->rq_posted = some_count(b, q->record->rq_posted);
}

static void count_srq(struct fuzz_bytes *b)
{
	n->srq.record->posted = some_count(b, n->srq.record->posted);
}

static void move_consumer(struct fuzz_bytes *b)
{
	n->cq_record->consumer_index = some_count(b, n->cq_record->consumer_index);
}

static void arm(struct fuzz_bytes *b)
{
	n->cq_record->arm_next += fuzz_u8(b);
	n->cq_record->arm_solicited += fuzz_u8(b);
}

static void write_cq(struct fuzz_bytes *b)
{
	into((uint8_t *)n->cq, sizeof(struct cqe) << SIM_CQ_LOG, b);
}

static void write_page(struct fuzz_bytes *b)
{
	into((uint8_t *)&n->page->eq_consumer, sizeof(*n->page) - sizeof(n->page->uar), b);
}

/* ---- the peer, and time ---- */

static void receive(struct fuzz_bytes *b)
{
	static const uint8_t opcodes[] = {
		WIRE_RC_SEND_ONLY, WIRE_RC_SEND_FIRST, WIRE_RC_SEND_LAST, WIRE_RC_WRITE_ONLY_IMM,
		WIRE_RC_ACK,	   WIRE_UC_SEND_ONLY,  WIRE_UD_SEND_ONLY, WIRE_RC_READ_RESP_ONLY};
	uint8_t opcode = opcodes[fuzz_u8(b) % RTE_DIM(opcodes)], qp = fuzz_u8(b) % WORLD_QPS;
	const struct qp *q = sim_context(world, 0, qp);
	uint8_t frame[WORLD_FRAME_BYTES];
	struct wire_headers h = {.opcode = opcode,
				 .dest_qp = n->qp[qp].qpn,
				 .src_qp = WORLD_PEER_QPN + 1 + qp,
				 .psn = wire_opcodes[opcode].flags & WIRE_REQUEST
						? q->ee.expected_psn
						: q->rrc.unacked_psn,
				 .pkey = 0xffff,
				 .qkey = WORLD_QKEY,
				 .va = WORLD_VA,
				 .rkey = WORLD_KEY,
				 .dma_len = 64,
				 .syndrome = 0x1f,
				 .ackreq = 1};

	sim_wire_send(
		world, 1, frame,
		world_frame(frame, h, wire_opcodes[opcode].headers & WIRE_HAS_PAYLOAD ? 64 : 0));
}

static void poll(struct fuzz_bytes *b)
{
	for (unsigned int i = 1 + fuzz_u8(b) % 4; i; i--)
		sim_step(world);
}

static void (*const writes[])(struct fuzz_bytes *b) = {
	write_sq,	    write_rq,	    write_srq, write_request, ring,
	scribble_doorbells, count_receives, count_srq, move_consumer, arm,
	write_cq,	    write_page,	    receive,   poll,
};

/* What creates all again is no news. */
static void learn_background(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	world_rebuild();
	world_restore();
	fuzz_background();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = {data, size};

	world_start();
	learn_background();
	n = &world->node[0];
	for (unsigned int i = 0; b.left && i < 64; i++)
		writes[fuzz_u8(&b) % RTE_DIM(writes)](&b);
	for (unsigned int i = 0; i < 8; i++)
		sim_step(world);
	world_rebuild();
	world_restore();
	return 0;
}
