/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The traffic of pairs and its checks: each request completes at most once and in order, each
 * message arrives whole and at most once, and the data of an operation are in place when it has
 * completed.
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
	static const uint8_t rc[] = {KIND_SEND,	 KIND_SEND,	 KIND_SEND_IMM, KIND_WRITE,
				     KIND_WRITE, KIND_WRITE_IMM, KIND_READ,	KIND_READ,
				     KIND_ADD,	 KIND_SWAP};

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
		[KIND_SEND_INV] = SOFTHCA_WR_SEND_WITH_INV,
		[KIND_BIND] = SOFTHCA_WR_BIND_MW,
		[KIND_REGISTER] = SOFTHCA_WR_REG_MR,
		[KIND_INVALIDATE] = SOFTHCA_WR_LOCAL_INV,
		[KIND_STALE] = SOFTHCA_WR_RDMA_WRITE,
		[KIND_BAD] = SOFTHCA_WR_SEND,
	};

	return opcode[kind];
}

static bool takes_receive(enum kind kind)
{
	return kind == KIND_SEND || kind == KIND_SEND_IMM || kind == KIND_WRITE_IMM ||
	       kind == KIND_SEND_INV;
}

/* The slot at the peer, by the key that the operation names. */
static void name_slot(const struct end *peer, const struct op *op, struct softhca_send_wr *wr)
{
	const uint8_t *at = remote_slot(peer, op->seq);

	wr->wr.rdma.remote_addr = op->through ? handle_address(peer, at) : (uintptr_t)at;
	wr->wr.rdma.rkey = op->through ? peer->handle.key : peer->mr ? peer->mr->rkey : 1;
}

/* Fills in what the operation names at the peer, and the data on either side. */
static void address(struct world *w, struct pair *p, unsigned side, struct op *op,
		    struct request *q)
{
	struct end *e = &p->end[side], *peer = &p->end[!side];
	const struct stray *stray = w ? stray_on(w, !side) : NULL;

	switch ((enum kind)op->kind) {
	case KIND_SEND_INV:
		handle_fill(p, side, op, &q->wr);
		__attribute__((fallthrough));
	case KIND_SEND:
	case KIND_SEND_IMM:
	case KIND_BAD:
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
		name_slot(peer, op, &q->wr);
		break;
	case KIND_READ:
		if (peer->area)
			verify_fill(remote_slot(peer, op->seq), op->length,
				    key_of(p, side, op->seq));
		name_slot(peer, op, &q->wr);
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
	case KIND_BIND:
	case KIND_REGISTER:
	case KIND_INVALIDATE:
	case KIND_STALE:
		handle_fill(p, side, op, &q->wr);
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
		p->disturbed++;
	}
	if (op->kind == KIND_ADD || op->kind == KIND_SWAP)
		op->length = 8;
	op->through = p->type == SOFTHCA_QP_RC && op->kind >= KIND_WRITE && op->kind <= KIND_READ &&
		      handle_covers(&p->end[!side], op->seq) && !one_in(&w->random, 4);
}

static bool is_local(enum kind kind)
{
	return kind >= KIND_BIND && kind <= KIND_INVALIDATE;
}

static void posted(struct pair *p, unsigned side, const struct op *op)
{
	struct end *e = &p->end[side];

	e->op[op->seq % WINDOW] = *op;
	e->posted++;
	add(TALLY_POSTED, 1);
	if (op->through) {
		p->end[!side].handle.uses++;
		add(TALLY_THROUGH, 1);
	}
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
	scatter(&q, local_slot(e, op->seq), op->length,
		op->kind == KIND_BAD ? ~e->mr->lkey : e->mr->lkey, is_local(op->kind) ? 0 : pieces);
	rc = op->kind == KIND_BIND && e->handle.kind == HANDLE_WINDOW_1
		     ? handle_post_bind(e, &q.wr)
		     : softhca_post_send(e->qp, &q.wr, NULL);
	if (rc == 0)
		posted(p, side, op);
	return rc;
}

bool can_post(const struct pair *p, unsigned side)
{
	const struct end *e = &p->end[side];

	return e->qp && p->end[!side].qp && p->connected && e->posted - e->completed < WINDOW;
}

bool post_special(struct world *w, struct pair *p, unsigned side, struct op *op)
{
	int rc;

	if (!can_post(p, side))
		return false;
	op->seq = p->end[side].posted;
	op->open = op->signaled = true;
	op->disturbed = p->disturbed;
	rc = post_op(w, p, side, op);
	if (rc && rc != -EAGAIN)
		wrong("post request of kind %u: %s", op->kind, strerror(-rc));
	return rc == 0;
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

static void check_data(const uint8_t *at, uint32_t bytes, uint64_t key, const char *what,
		       uint64_t seq)
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

	handle_done(p, side, op, true);
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
	case KIND_SEND_INV:
	case KIND_BIND:
	case KIND_REGISTER:
	case KIND_INVALIDATE:
	case KIND_STALE:
	case KIND_BAD:
	case KIND_COUNT:
		break;
	}
}

static bool may_fail(const struct pair *p)
{
	return p->disturbed || p->timeout < 16;
}

/* A request that has to be refused: was it, and if nothing else was done to the pair, for that
 * reason? */
static void check_expected(const struct pair *p, const struct op *op, uint32_t status)
{
	if (!op->expect)
		return;
	if (status == op->expect)
		add(TALLY_REFUSED, 1);
	else if (status == SOFTHCA_WC_SUCCESS ||
		 (op->disturbed == p->disturbed && op->disturbed <= 1 && p->timeout >= 16))
		wrong("request %llu of kind %u: %s, not %s", (unsigned long long)op->seq, op->kind,
		      softhca_wc_status_str(status), softhca_wc_status_str(op->expect));
}

static void failed(struct pair *p, unsigned side, const struct op *op, const struct softhca_wc *wc)
{
	struct end *e = &p->end[side];

	handle_done(p, side, op, false);
	add(TALLY_FAILED, 1);
	if (sqe_took(e, op, wc))
		return;
	e->error = true;
	if (!may_fail(p))
		wrong("request %llu of kind %u: %s, nobody had touched the pair",
		      (unsigned long long)wc->wr_id, op->kind, softhca_wc_status_str(wc->status));
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
	check_expected(p, &e->op[wc->wr_id % WINDOW], wc->status);
	if (wc->status == SOFTHCA_WC_SUCCESS)
		succeeded(p, side, &e->op[wc->wr_id % WINDOW]);
	else
		failed(p, side, &e->op[wc->wr_id % WINDOW], wc);
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
	if (wc->wc_flags & SOFTHCA_WC_WITH_INV && wc->invalidated_rkey != e->handle.key)
		wrong("the peer invalidated %#x, not %#x", wc->invalidated_rkey, e->handle.key);
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

/* What one end receives after its poll may complete at the other in the same call. */
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
		sqe_recover(p, side);
		if (!e->error && softhca_qp_current_state(e->qp) != SOFTHCA_QPS_RESET)
			post_receives(p, side);
	}
	return n;
}
