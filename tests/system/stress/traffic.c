/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What pairs send, and what must come of it: each request completes at most once and in order, each
 * message arrives whole and at most once, and what an operation was to write stands there when it
 * has completed.
 */
#include <errno.h>
#include <string.h>
#include "../../../bench/path/verify.h"
#include "stress.h"

static uint8_t *local_slot(const struct end *e, uint64_t seq)
{
	return e->area + (seq % WINDOW) * SLOT_BYTES;
}

static uint8_t *remote_slot(const struct end *e, uint64_t seq)
{
	return e->area + (WINDOW + seq % WINDOW) * SLOT_BYTES;
}

static uint8_t *receive_slot(const struct end *e, uint64_t n)
{
	if (e->box)
		return e->box->area + n % BOX_SLOTS * SLOT_BYTES;
	return e->area + (2 * WINDOW + n % RECVS) * SLOT_BYTES;
}

static uint64_t key_of(const struct pair *p, unsigned side, uint64_t seq)
{
	return verify_key(p->key, side, seq);
}

/* How long a message is follows from its key, so that its receiver knows. */
static uint32_t length_of(const struct pair *p, unsigned side, uint64_t seq, uint32_t max)
{
	uint64_t key = verify_mix(key_of(p, side, seq));
	uint32_t any = (uint32_t)(key >> 32);

	switch (key % 8) {
	case 0:
		return 0;
	case 1:
	case 2:
	case 3:
		return any % 64;
	case 4:
	case 5:
		return any % (max < 1500 ? max : 1500);
	}
	return any % (max + 1);
}

/* ---- receive requests ---- */

void post_receives(struct pair *p, unsigned side)
{
	struct end *e = &p->end[side];

	if (e->box) {
		box_fill(e->box);
		return;
	}
	while (e->recv_posted - e->recv_completed < RECVS) {
		struct softhca_sge sge = {.addr = (uintptr_t)receive_slot(e, e->recv_posted),
			.length = SLOT_BYTES,
			.lkey = e->mr->lkey};
		struct softhca_recv_wr wr = {
			.wr_id = RECEIVE | e->recv_posted % RECVS, .sg_list = &sge, .num_sge = 1};
		int rc = softhca_post_recv(e->qp, &wr, NULL);

		if (rc) {
			wrong("post receive: %s", strerror(-rc));
			return;
		}
		e->recv_posted++;
	}
}

/* ---- send requests ---- */

struct request {
	struct softhca_send_wr wr;
	struct softhca_sge sge[3];
};

/* The buffer in one to three pieces. */
static void scatter(struct request *q, uint8_t *at, uint32_t bytes, uint32_t lkey, uint32_t pieces)
{
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t n = i + 1 == pieces ? bytes : bytes / (pieces - i);

		q->sge[i] = (struct softhca_sge){.addr = (uintptr_t)at, .length = n, .lkey = lkey};
		at += n;
		bytes -= n;
	}
	q->wr.sg_list = q->sge;
	q->wr.num_sge = (int)pieces;
}

static void put_message(const struct pair *p, unsigned side, uint64_t seq, uint8_t *at, uint32_t n)
{
	verify_fill(at, n, key_of(p, side, seq));
	if (n >= sizeof(seq))
		memcpy(at, &seq, sizeof(seq));
}

static enum kind choose(struct random *r, enum softhca_qp_type type)
{
	static const uint8_t rc[] = {KIND_SEND, KIND_SEND, KIND_SEND_IMM, KIND_WRITE, KIND_WRITE,
		KIND_WRITE_IMM, KIND_READ, KIND_READ, KIND_ADD, KIND_SWAP};

	switch (type) {
	case SOFTHCA_QP_RC:
		return rc[below(r, sizeof(rc))];
	case SOFTHCA_QP_UC:
		return rc[below(r, 6)];
	case SOFTHCA_QP_UD:
		break;
	}
	return rc[below(r, 3)];
}

static uint32_t opcode_of(enum kind kind)
{
	static const uint8_t opcode[KIND_COUNT] = {
		[KIND_SEND] = SOFTHCA_WR_SEND,
		[KIND_SEND_IMM] = SOFTHCA_WR_SEND_WITH_IMM,
		[KIND_WRITE] = SOFTHCA_WR_RDMA_WRITE,
		[KIND_WRITE_IMM] = SOFTHCA_WR_RDMA_WRITE_WITH_IMM,
		[KIND_READ] = SOFTHCA_WR_RDMA_READ,
		[KIND_ADD] = SOFTHCA_WR_ATOMIC_FETCH_AND_ADD,
		[KIND_SWAP] = SOFTHCA_WR_ATOMIC_CMP_AND_SWP,
		[KIND_STRAY_WRITE] = SOFTHCA_WR_RDMA_WRITE,
		[KIND_STRAY_READ] = SOFTHCA_WR_RDMA_READ,
	};

	return opcode[kind];
}

static bool takes_receive(enum kind kind)
{
	return kind == KIND_SEND || kind == KIND_SEND_IMM || kind == KIND_WRITE_IMM;
}

/* Fills in what the operation names at the peer, and the data on either side. */
static void address(
	struct world *w, struct pair *p, unsigned side, struct op *op, struct request *q)
{
	struct end *e = &p->end[side], *peer = &p->end[!side];
	const struct stray *stray = w ? stray_on(w, !side) : NULL;

	switch ((enum kind)op->kind) {
	case KIND_SEND:
	case KIND_SEND_IMM:
		put_message(p, side, op->seq, local_slot(e, op->seq), op->length);
		if (p->type == SOFTHCA_QP_UD) {
			q->wr.wr.ud.ah = e->ah;
			q->wr.wr.ud.remote_qpn = softhca_qp_number(peer->qp);
			q->wr.wr.ud.remote_qkey = 0x11111111;
		}
		break;
	case KIND_WRITE:
	case KIND_WRITE_IMM:
		verify_fill(local_slot(e, op->seq), op->length, key_of(p, side, op->seq));
		q->wr.wr.rdma.remote_addr = (uintptr_t)remote_slot(peer, op->seq);
		q->wr.wr.rdma.rkey = peer->mr ? peer->mr->rkey : 1;
		break;
	case KIND_READ:
		if (peer->area)
			verify_fill(
				remote_slot(peer, op->seq), op->length, key_of(p, side, op->seq));
		q->wr.wr.rdma.remote_addr = (uintptr_t)remote_slot(peer, op->seq);
		q->wr.wr.rdma.rkey = peer->mr ? peer->mr->rkey : 1;
		break;
	case KIND_ADD:
	case KIND_SWAP:
		q->wr.wr.atomic.remote_addr =
			(uintptr_t)&WORDS(peer)[op->kind == KIND_ADD ? WORD_ADDED : WORD_SWAPPED];
		q->wr.wr.atomic.compare_add = 1; /* a swap never finds it */
		q->wr.wr.atomic.swap = 7;
		q->wr.wr.atomic.rkey = peer->mr ? peer->mr->rkey : 1;
		break;
	case KIND_STRAY_WRITE:
	case KIND_STRAY_READ:
		q->wr.wr.rdma.remote_addr = stray ? (uintptr_t)stray->memory : 4096;
		q->wr.wr.rdma.rkey = stray && stray->mr ? stray->mr->rkey : 12345;
		break;
	case KIND_COUNT:
		break;
	}
}

static uint32_t max_of(const struct world *w, const struct pair *p)
{
	return p->type == SOFTHCA_QP_UD && w->mtu_bytes < MESSAGE_MAX ? w->mtu_bytes : MESSAGE_MAX;
}

static void choose_op(struct world *w, struct pair *p, unsigned side, struct op *op)
{
	struct end *e = &p->end[side];
	const struct stray *stray = stray_on(w, !side);

	*op = (struct op){.seq = e->posted, .open = true, .signaled = !one_in(&w->random, 4)};
	op->kind = choose(&w->random, p->type);
	op->length = length_of(p, side, op->seq, max_of(w, p));
	if (p->type == SOFTHCA_QP_RC && one_in(&w->random, 150) && stray) {
		op->kind = one_in(&w->random, 2) ? KIND_STRAY_WRITE : KIND_STRAY_READ;
		if (op->length > stray->bytes)
			op->length = stray->bytes;
		p->disturbed = true;
	}
	if (op->kind == KIND_ADD || op->kind == KIND_SWAP)
		op->length = 8;
}

static int post_op(struct world *w, struct pair *p, unsigned side, struct op *op)
{
	struct end *e = &p->end[side];
	struct request q = {.wr = {.wr_id = op->seq, .opcode = opcode_of(op->kind)}};
	uint32_t pieces = w && op->length != 8 ? 1 + below(&w->random, 3) : 1;
	int rc;

	q.wr.send_flags = op->signaled ? SOFTHCA_SEND_SIGNALED : 0;
	if (w && one_in(&w->random, 6))
		q.wr.send_flags |= SOFTHCA_SEND_FENCE;
	if (w && one_in(&w->random, 6))
		q.wr.send_flags |= SOFTHCA_SEND_SOLICITED;
	if (op->length <= 64 && op->kind <= KIND_WRITE_IMM)
		q.wr.send_flags |= SOFTHCA_SEND_INLINE;
	q.wr.imm_data = (uint32_t)op->seq;
	address(w, p, side, op, &q);
	scatter(&q, local_slot(e, op->seq), op->length, e->mr->lkey, pieces);
	rc = softhca_post_send(e->qp, &q.wr, NULL);
	if (rc == 0) {
		e->op[op->seq % WINDOW] = *op;
		e->posted++;
		add(TALLY_POSTED, 1);
	}
	return rc;
}

void post_some(struct world *w, struct pair *p, unsigned side)
{
	struct end *e = &p->end[side];
	uint32_t n = 1 + below(&w->random, WINDOW);

	if (!e->qp || !p->end[!side].qp || !p->connected)
		return;
	while (n-- && e->posted - e->completed < WINDOW) {
		struct op op;
		int rc;

		choose_op(w, p, side, &op);
		op.signaled = op.signaled || e->posted - e->completed == WINDOW - 1;
		rc = post_op(w, p, side, &op);
		if (rc == -EAGAIN)
			return;
		if (rc) {
			wrong("post send: %s", strerror(-rc));
			return;
		}
	}
}

bool post_marker(struct pair *p, unsigned side)
{
	struct end *e = &p->end[side];
	struct op op = {.seq = e->posted, .open = true, .signaled = true};

	if (e->posted - e->completed >= WINDOW)
		return false;
	op.kind = p->type == SOFTHCA_QP_UD ? KIND_SEND : KIND_WRITE;
	return post_op(NULL, p, side, &op) == 0;
}

/* ---- completions ---- */

static void check_data(
	const uint8_t *at, uint32_t bytes, uint64_t key, const char *what, uint64_t seq)
{
	size_t bad = verify_check(at, bytes, key);

	add(TALLY_VERIFIED_BYTES, bytes);
	if (bad != bytes)
		wrong("%s %llu: byte %zu of %u is wrong", what, (unsigned long long)seq, bad,
			bytes);
}

static void succeeded(struct pair *p, unsigned side, const struct op *op)
{
	struct end *e = &p->end[side], *peer = &p->end[!side];
	uint64_t key = key_of(p, side, op->seq), fetched;

	if (takes_receive(op->kind))
		e->delivered++;
	memcpy(&fetched, local_slot(e, op->seq), sizeof(fetched));
	switch ((enum kind)op->kind) {
	case KIND_WRITE:
	case KIND_WRITE_IMM:
		if (p->type == SOFTHCA_QP_RC && peer->area)
			check_data(remote_slot(peer, op->seq), op->length, key, "WRITE", op->seq);
		break;
	case KIND_READ:
		check_data(local_slot(e, op->seq), op->length, key, "READ", op->seq);
		break;
	case KIND_ADD:
		if (fetched < e->added)
			wrong("ADD fetched %llu after %llu", (unsigned long long)fetched,
				(unsigned long long)e->added);
		e->added++;
		break;
	case KIND_SWAP:
		if (fetched != 0)
			wrong("SWAP fetched %llu", (unsigned long long)fetched);
		break;
	case KIND_SEND:
	case KIND_SEND_IMM:
	case KIND_STRAY_WRITE:
	case KIND_STRAY_READ:
	case KIND_COUNT:
		break;
	}
}

static bool may_fail(const struct pair *p)
{
	return p->disturbed || p->timeout < 16;
}

static void sent(struct pair *p, unsigned side, const struct softhca_wc *wc)
{
	struct end *e = &p->end[side];

	add(TALLY_COMPLETED, 1);
	if (wc->wr_id < e->completed || wc->wr_id >= e->posted) {
		wrong("request %llu completes, %llu to %llu are open",
			(unsigned long long)wc->wr_id, (unsigned long long)e->completed,
			(unsigned long long)e->posted);
		return;
	}
	for (; e->completed < wc->wr_id; e->completed++) {
		if (e->op[e->completed % WINDOW].signaled)
			wrong("request %llu was passed over", (unsigned long long)e->completed);
		succeeded(p, side, &e->op[e->completed % WINDOW]);
	}
	e->completed++;
	if (wc->status == SOFTHCA_WC_SUCCESS) {
		succeeded(p, side, &e->op[wc->wr_id % WINDOW]);
		return;
	}
	add(TALLY_FAILED, 1);
	e->error = true;
	if (!may_fail(p))
		wrong("request %llu: %s, nobody had touched the pair",
			(unsigned long long)wc->wr_id, softhca_wc_status_str(wc->status));
}

/* The message in a receive buffer. UC and UD may have lost some before it. */
static void check_message(struct pair *p, unsigned side, const struct softhca_wc *wc, uint8_t *at)
{
	struct end *e = &p->end[side];
	uint32_t bytes = wc->byte_len;
	uint64_t seq, whole;

	if (p->type == SOFTHCA_QP_UD) {
		at += GRH_BYTES;
		bytes -= GRH_BYTES;
	}
	if (bytes < sizeof(seq))
		return;
	memcpy(&seq, at, sizeof(seq));
	if (seq < e->recv_seq || seq >= p->end[!side].posted) {
		wrong("message %llu arrives, %llu is the next", (unsigned long long)seq,
			(unsigned long long)e->recv_seq);
		return;
	}
	e->recv_seq = seq + 1;
	whole = key_of(p, !side, seq);
	memcpy(at, &whole, sizeof(whole)); /* the first word of the pattern */
	check_data(at, bytes, whole, "SEND", seq);
}

static void received(struct pair *p, unsigned side, const struct softhca_wc *wc)
{
	struct end *e = &p->end[side];
	uint64_t slot = wc->wr_id & ~RECEIVE;

	add(TALLY_RECEIVED, 1);
	if (slot >= (e->box ? BOX_SLOTS : RECVS) || (e->box && !e->box->posted[slot])) {
		wrong("receive %llu was not posted", (unsigned long long)slot);
		return;
	}
	if (e->box)
		e->box->posted[slot] = false;
	else if (slot != e->recv_completed % RECVS)
		wrong("receive %llu completes, %llu is the next", (unsigned long long)slot,
			(unsigned long long)(e->recv_completed % RECVS));
	e->recv_completed++;
	if (wc->status != SOFTHCA_WC_SUCCESS) {
		e->error = true;
		if (!may_fail(p))
			wrong("receive: %s, nobody had touched the pair",
				softhca_wc_status_str(wc->status));
		return;
	}
	e->received++;
	if (wc->opcode == SOFTHCA_WC_RECV)
		check_message(p, side, wc, receive_slot(e, slot));
}

static unsigned poll_cq(struct pair *p, unsigned side, struct softhca_cq *cq)
{
	struct softhca_wc wc[16];
	int n = cq ? softhca_poll_cq(cq, 16, wc) : 0;

	if (n < 0)
		wrong("poll: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		if (wc[i].qp_num != softhca_qp_number(p->end[side].qp))
			wrong("a completion of QP %u came to another's CQ", wc[i].qp_num);
		else if (wc[i].wr_id & RECEIVE)
			received(p, side, &wc[i]);
		else
			sent(p, side, &wc[i]);
	}
	return n > 0 ? (unsigned)n : 0;
}

/* Receives first: when a request has completed its message has been received. */
unsigned pair_poll(struct pair *p)
{
	unsigned n = 0;

	for (unsigned side = 0; side < SIDES; side++) {
		struct end *e = &p->end[side];

		if (!e->qp)
			continue;
		n += poll_cq(p, side, e->recv_cq);
		if (e->send_cq != e->recv_cq)
			n += poll_cq(p, side, e->send_cq);
		if (!e->error && softhca_qp_current_state(e->qp) != SOFTHCA_QPS_RESET)
			post_receives(p, side);
	}
	return n;
}
