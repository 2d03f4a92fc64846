/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses, posts and checks the soak's operations; see lane.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "lane.h"
#include "verify.h"

enum { WORD_COMPARED = 0, WORD_ADDED = 8, SIZE_LOG_MAX = 20 };

static uint64_t draw(uint64_t *random)
{
	*random += 1;
	return verify_mix(*random);
}

/* The four places of an operation. `out` is the start of a QP's whole memory. */
static uint8_t *mine(const struct lane *l, uint64_t n)
{
	return l->source->out + n % LANE_WINDOW * LANE_SLOT_BYTES;
}

static size_t theirs_offset(uint64_t n)
{
	return LANE_REGION_BYTES + n % LANE_WINDOW * LANE_SLOT_BYTES;
}

static uint8_t *theirs(const struct lane *l, uint64_t n)
{
	return l->sink->out + theirs_offset(n);
}

static uint8_t *receive_slot(const struct lane *l, uint64_t k)
{
	return l->sink->out + 2 * (size_t)LANE_REGION_BYTES + k % LANE_WINDOW * LANE_SLOT_BYTES;
}

static size_t words_offset(void)
{
	return 3 * (size_t)LANE_REGION_BYTES;
}

void lane_init(struct lane *l, struct session *s, uint32_t qp, unsigned direction)
{
	*l = (struct lane){.s = s,
			   .qp = qp,
			   .direction = direction,
			   .source_side = &s->side[direction],
			   .sink_side = &s->side[!direction]};
	l->source = &l->source_side->ends[qp];
	l->sink = &l->sink_side->ends[qp];
}

static int complain(const struct lane *l, const char *what, uint64_t got, uint64_t wanted)
{
	fprintf(stderr, "soak: QP %u, direction %u: %s is %llu instead of %llu\n", l->qp,
		l->direction, what, (unsigned long long)got, (unsigned long long)wanted);
	return -1;
}

int lane_post_receives(struct lane *l)
{
	while (l->receives - l->received < LANE_WINDOW) {
		struct softhca_sge sge = {.addr = (uintptr_t)receive_slot(l, l->receives),
					  .length = LANE_SLOT_BYTES,
					  .lkey = l->sink_side->mr->lkey};
		struct softhca_recv_wr wr = {.wr_id = (uint64_t)l->qp << 40 | l->receives,
					     .sg_list = &sge,
					     .num_sge = 1};
		int error = softhca_post_recv(l->sink->qp, &wr, NULL);

		if (error)
			return session_fail("post receive", error);
		l->receives++;
	}
	return 0;
}

/* Any order of magnitude is as likely as another; now and then the ends of the range. */
static uint32_t draw_size(uint64_t *random)
{
	uint64_t x = draw(random);

	if (x % 64 == 0)
		return 0;
	if (x % 64 == 1)
		return LANE_BYTES_MAX;
	return (uint32_t)(draw(random) % (1ull << (1 + (x >> 8) % SIZE_LOG_MAX))) + 1;
}

static void expect_atomic(struct lane *l, struct lane_op *op, uint64_t *random)
{
	op->offset = 0;
	op->operand = draw(random);
	if (op->kind == KIND_FETCH_ADD) {
		op->expected = l->added;
		l->added += op->operand;
	} else {
		op->expected = l->compared;
		l->compared = op->operand;
	}
}

static void choose(struct lane *l, uint64_t n, uint64_t *random)
{
	struct lane_op *op = &l->ops[n % LANE_WINDOW];

	op->kind = draw(random) % KIND_COUNT;
	op->size = draw_size(random);
	op->offset = draw(random) % LANE_OFFSETS;
	op->key = verify_key(l->s->seed, (uint64_t)l->direction << 32 | l->qp, n);
	op->left = kinds[op->kind].receives ? 2 : 1;
	if (kinds[op->kind].bytes) {
		op->size = kinds[op->kind].bytes;
		op->offset &= ~(op->size - 1);
	}
	if (kinds[op->kind].atomic)
		expect_atomic(l, op, random);
	else if (!kinds[op->kind].empty)
		verify_fill((kinds[op->kind].inbound ? theirs(l, n) : mine(l, n)) + op->offset,
			    op->size, op->key);
	if (kinds[op->kind].receives)
		l->taker[l->takers++ % LANE_WINDOW] = n;
}

static void build(struct lane *l, uint64_t n, struct softhca_send_wr *w, struct softhca_sge *sge)
{
	const struct lane_op *op = &l->ops[n % LANE_WINDOW];
	const struct kind_info *k = &kinds[op->kind];
	uint64_t base = l->source->remote.addr;

	*sge = (struct softhca_sge){.addr = (uintptr_t)mine(l, n) + op->offset,
				    .length = op->size,
				    .lkey = l->source_side->mr->lkey};
	*w = (struct softhca_send_wr){.wr_id = (uint64_t)l->qp << 40 | n,
				      .next = w + 1,
				      .sg_list = sge,
				      .num_sge = op->size > 0 && !k->empty,
				      .opcode = k->opcode,
				      .send_flags = SOFTHCA_SEND_SIGNALED,
				      .imm_data = k->imm ? htonl((uint32_t)n) : 0};
	if (k->atomic) {
		bool add = op->kind == KIND_FETCH_ADD;

		w->wr.atomic.remote_addr =
			base + words_offset() + (add ? WORD_ADDED : WORD_COMPARED);
		w->wr.atomic.rkey = l->source->remote.rkey;
		w->wr.atomic.compare_add = add ? op->operand : op->expected;
		w->wr.atomic.swap = op->operand;
	} else if (k->empty) {
		w->wr.atomic.remote_addr = base + theirs_offset(n) + op->offset;
		w->wr.atomic.rkey = l->source->remote.rkey;
		w->wr.atomic.compare_add = SOFTHCA_FLUSH_GLOBAL;
		w->wr.atomic.swap = op->size;
	} else {
		w->wr.rdma.remote_addr = base + theirs_offset(n) + op->offset;
		w->wr.rdma.rkey = l->source->remote.rkey;
	}
}

int lane_post(struct lane *l, unsigned n, uint64_t *random)
{
	struct softhca_send_wr wr[LANE_WINDOW];
	struct softhca_sge sge[LANE_WINDOW];
	unsigned count = 0;

	while (count < n && count < LANE_WINDOW &&
	       l->ops[(l->posted + count) % LANE_WINDOW].left == 0) {
		choose(l, l->posted + count, random);
		build(l, l->posted + count, &wr[count], &sge[count]);
		count++;
	}
	if (count == 0)
		return 0;
	wr[count - 1].next = NULL;
	if (session_post_send(l->source->qp, wr))
		return -1;
	l->posted += count;
	return (int)count;
}

static int check_status(const struct lane *l, const struct softhca_wc *wc, const char *what)
{
	if (wc->status == SOFTHCA_WC_SUCCESS)
		return 0;
	fprintf(stderr, "soak: QP %u, direction %u: %s failed: %s (vendor 0x%x)\n", l->qp,
		l->direction, what, softhca_wc_status_str(wc->status), wc->vendor_err);
	return -1;
}

/* Data that an operation returned to its requester. */
static int check_requested(struct lane *l, const struct lane_op *op, uint64_t n)
{
	uint64_t found;

	if (kinds[op->kind].atomic) {
		memcpy(&found, mine(l, n), 8);
		return found == op->expected
			       ? 0
			       : complain(l, "an atomic's value", found, op->expected);
	}
	if (op->kind == KIND_READ)
		return verify_message(mine(l, n) + op->offset, op->size, op->key, "READ", n);
	if (op->kind == KIND_WRITE || op->kind == KIND_ATOMIC_WRITE)
		return verify_message(theirs(l, n) + op->offset, op->size, op->key,
				      kinds[op->kind].name, n);
	return 0;
}

int lane_completed(struct lane *l, const struct softhca_wc *wc)
{
	uint64_t n = wc->wr_id & 0xffffffffffull;
	struct lane_op *op = &l->ops[n % LANE_WINDOW];

	if (check_status(l, wc, kinds[op->kind].name))
		return -1;
	if (n != l->completed || n >= l->posted)
		return complain(l, "the completion's number", n, l->completed);
	if (check_requested(l, op, n))
		return -1;
	l->completed++;
	op->left--;
	l->per_kind[op->kind]++;
	l->bytes += op->size;
	return 0;
}

int lane_received(struct lane *l, const struct softhca_wc *wc)
{
	uint64_t k = l->received, n = l->taker[k % LANE_WINDOW];
	struct lane_op *op = &l->ops[n % LANE_WINDOW];
	const struct kind_info *kind = &kinds[op->kind];
	const uint8_t *data;

	if (check_status(l, wc, "a receive"))
		return -1;
	if ((wc->wr_id & 0xffffffffffull) != k || k >= l->takers)
		return complain(l, "the receive's number", wc->wr_id & 0xffffffffffull, k);
	if (wc->byte_len != op->size)
		return complain(l, "the received length", wc->byte_len, op->size);
	if (!!(wc->wc_flags & SOFTHCA_WC_WITH_IMM) != kind->imm)
		return complain(l, "the immediate flag", wc->wc_flags, kind->imm);
	if (kind->imm && ntohl(wc->imm_data) != (uint32_t)n)
		return complain(l, "the immediate value", ntohl(wc->imm_data), n);
	data = kind->lands_in_recv ? receive_slot(l, k) : theirs(l, n) + op->offset;
	if (verify_message(data, op->size, op->key, kind->name, n))
		return -1;
	l->received++;
	op->left--;
	return lane_post_receives(l);
}

int lane_check_words(const struct lane *l)
{
	uint64_t words[2];

	memcpy(words, l->sink->out + words_offset(), sizeof(words));
	if (words[0] != l->compared)
		return complain(l, "the swapped word", words[0], l->compared);
	if (words[1] != l->added)
		return complain(l, "the sum", words[1], l->added);
	return 0;
}
