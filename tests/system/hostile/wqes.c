/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors and doorbells: each word of each kind set to boundary and random values, on queue
 * pairs that work except for that; doorbells for queue pairs of others.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "doorbell.h"
#include "hostile.h"

enum { SLOTS = 16, UNITS_MAX = 10 };

static const uint8_t kinds[] = {
	USER_SEND,	USER_SEND_IMM,	USER_RDMA_WRITE, USER_RDMA_WRITE_IMM, USER_RDMA_READ,
	USER_ATOMIC_CS, USER_ATOMIC_FA, USER_SEND_INV,	 USER_BIND_MW,	      USER_NOP};

static uint8_t *slot_at(struct softhca_qp *qp, uint32_t slot)
{
	return qp->sq.buffer + ((size_t)(slot & qp->sq.mask) << qp->sq.shift);
}

static uint8_t *put_data(struct attacker *a, unsigned side, uint8_t *at, uint32_t bytes)
{
	struct side *s = &a->side[side];
	struct wqe_data data = {.length = bytes, .lkey = s->mr->lkey};

	data.addr = (uintptr_t)s->area + below(a, AREA_BYTES / 2);
	memcpy(at, &data, sizeof(data));
	return at + sizeof(data);
}

static uint8_t *put_address(struct attacker *a, unsigned side, uint8_t kind, uint8_t *at)
{
	struct side *peer = &a->side[!side];
	struct wqe_raddr raddr = {.addr = (uintptr_t)peer->area + 8 * below(a, AREA_BYTES / 16),
				  .rkey = peer->mr->rkey};
	struct wqe_atomic atomic = {.swap_add = 1, .compare = 0};

	if (kind < USER_RDMA_WRITE || (kind >= USER_SEND && kind <= USER_SEND_INV) ||
	    kind == USER_BIND_MW)
		return at;
	memcpy(at, &raddr, sizeof(raddr));
	at += sizeof(raddr);
	if (kind != USER_ATOMIC_CS && kind != USER_ATOMIC_FA)
		return at;
	memcpy(at, &atomic, sizeof(atomic));
	return at + sizeof(atomic);
}

unsigned wqe_write(struct attacker *a, unsigned side, enum which which, uint32_t slot,
		   uint8_t *opcode)
{
	uint8_t kind = kinds[below(a, sizeof(kinds))],
		*begin = slot_at(a->side[side].qp[which], slot), *at = begin;
	struct wqe_next next = {.flags = below(a, 4) ? WQE_SIGNALED : 0, .imm = (uint32_t)draw(a)};
	uint32_t inlined = WQE_INLINE | 60;

	memset(begin, 0, UNITS_MAX * UNIT_BYTES);
	memcpy(at, &next, sizeof(next));
	at = put_address(a, side, kind, at + sizeof(next));
	if (which == UD) {
		struct wqe_ud ud = a->side[side].ah->ud;

		ud.qpn = a->side[!side].qp[UD]->number;
		ud.qkey = 0x11111111;
		memcpy(at, &ud, sizeof(ud));
		at += sizeof(ud);
	}
	if (kind == USER_ATOMIC_CS || kind == USER_ATOMIC_FA) {
		at = put_data(a, side, at, 8);
	} else if (kind != USER_RDMA_READ && below(a, 4) == 0) {
		memcpy(at, &inlined, sizeof(inlined));
		at += 64;
	} else {
		for (unsigned i = below(a, 4); i; i--)
			at = put_data(a, side, at, below(a, 2) ? below(a, 64) : below(a, 9000));
	}
	*opcode = kind;
	return (unsigned)(at - begin) / UNIT_BYTES;
}

/* While the FIFO is full the daemon has enough of them. */
static void ring_some_time(struct softhca_qp *qp, uint32_t word0, uint32_t word1)
{
	for (unsigned tries = 0; tries < 100000 && !ring(qp, word0, word1); tries++)
		sched_yield();
}

void wqe_ring(struct attacker *a, unsigned side, enum which which, uint32_t slot, uint8_t opcode,
	      unsigned units)
{
	struct softhca_qp *qp = a->side[side].qp[which];
	uint32_t offset = (uint32_t)(slot_at(qp, slot) - qp->sq.buffer) / UNIT_BYTES;

	ring_some_time(qp, offset << DOORBELL_OFFSET_SHIFT | opcode,
		       qp->number << DOORBELL_QPN_SHIFT | units);
}

/* The same in any FIFO that the side has, maybe another engine's. */
static void wqe_ring_anywhere(struct attacker *a, unsigned side, enum which which, uint32_t slot,
			      uint8_t opcode, unsigned units)
{
	struct softhca_qp *qp = a->side[side].qp[which];
	struct doorbell_fifo *own = qp->fifo;

	qp->fifo = a->side[side].qp[below(a, WHICH_COUNT)]->fifo;
	wqe_ring(a, side, which, slot, opcode, units);
	qp->fifo = own;
}

/* The next unit of one slot leads to another: chains, circles. */
static void chain(struct attacker *a, struct softhca_qp *qp, uint32_t slot)
{
	struct wqe_next *next = (struct wqe_next *)(void *)slot_at(qp, slot);

	next->nda_nop = (below(a, SLOTS) << qp->sq.shift) | kinds[below(a, sizeof(kinds))];
	next->ee_nds = 1 + below(a, UNITS_MAX);
	if (below(a, 4) == 0)
		next->ee_nds |= WQE_NEXT_D | WQE_NEXT_F;
}

static void spoil_wqe(struct attacker *a, struct softhca_qp *qp, uint32_t slot, unsigned units)
{
	uint32_t *words = (uint32_t *)(void *)slot_at(qp, slot);

	if (below(a, 6) == 0)
		chain(a, qp, slot);
	else if (qp->type == SOFTHCA_QP_UD && below(a, 2)) /* its address */
		words[4 + below(a, 12)] = (uint32_t)nasty(a);
	else if (below(a, 8))
		words[below(a, (units ? units : 1) * 4)] = (uint32_t)nasty(a);
}

/* Keys that are wrong in another way: of no right, of nothing. */
static void spoil_keys(struct attacker *a, unsigned side, enum which which, uint32_t slot,
		       unsigned units)
{
	uint32_t *words = (uint32_t *)(void *)slot_at(a->side[side].qp[which], slot);
	const uint32_t keys[] = {a->side[side].read_only->lkey, a->side[!side].read_only->rkey,
				 a->side[!side].mr->rkey, a->side[side].mr->lkey ^ 0x10000,
				 a->side[side].ctx->chunks ? a->side[side].ctx->chunks->lkey : 0};

	words[4 * below(a, units ? units : 1) + 1 + below(a, 2)] =
		keys[below(a, sizeof(keys) / sizeof(keys[0]))];
}

void receives_post(struct attacker *a, unsigned side, enum which which)
{
	struct side *s = &a->side[side];
	struct softhca_sge sge[4];
	struct softhca_recv_wr wr = {.sg_list = sge, .num_sge = 1 + (int)below(a, 4)};

	for (int i = 0; i < 4; i++)
		sge[i] = (struct softhca_sge){.addr = (uintptr_t)s->area + below(a, AREA_BYTES / 2),
					      .length = below(a, 2) ? 4096 : 100,
					      .lkey = s->mr->lkey};
	for (int i = 0; i < 4; i++)
		if (which == SHARED)
			(void)softhca_post_srq_recv(s->srq, &wr, NULL);
		else
			(void)softhca_post_recv(s->qp[which], &wr, NULL);
}

static void poll_some(struct attacker *a)
{
	struct softhca_wc wc[16];

	for (unsigned side = 0; side < SIDES; side++)
		while (softhca_poll_cq(a->side[side].cq, 16, wc) == 16)
			;
}

void attack_wqes(struct attacker *a)
{
	for (;;) {
		enum which which = below(a, WHICH_COUNT);
		unsigned side = below(a, SIDES), units;
		uint32_t slot = below(a, SLOTS);
		uint8_t opcode;

		receives_post(a, !side, which);
		for (unsigned i = 1 + below(a, 4); i; i--) {
			units = wqe_write(a, side, which, slot + i, &opcode);
			if (below(a, 3) == 0)
				spoil_keys(a, side, which, slot + i, units);
			else
				spoil_wqe(a, a->side[side].qp[which], slot + i, units);
			if (below(a, 10) == 0)
				units = below(a, 256);
			if (below(a, 16))
				wqe_ring(a, side, which, slot + i, opcode, units);
			else
				wqe_ring_anywhere(a, side, which, slot + i, opcode, units);
		}
		if (below(a, 3) == 0)
			usleep(200);
		poll_some(a);
		objects_revive(a, which);
	}
}

/* A receive descriptor that is wrong, or the count of them. */
static void spoil_receive(struct attacker *a, unsigned side, enum which which)
{
	struct side *s = &a->side[side];
	uint8_t *ring_at = which == SHARED ? s->srq->ring : s->qp[which]->rq.buffer;
	uint8_t shift = which == SHARED ? s->srq->shift : s->qp[which]->rq.shift;
	uint32_t *words = (uint32_t *)(void *)ring_at;

	words[(below(a, SLOTS) << shift) / 4 + below(a, (1u << shift) / 4)] = (uint32_t)nasty(a);
	if (below(a, 10))
		return;
	if (which == SHARED)
		s->srq->record->posted = (uint32_t)nasty(a);
	else
		s->qp[which]->record->rq_posted += (uint32_t)nasty(a);
}

void attack_receives(struct attacker *a)
{
	for (;;) {
		enum which which = below(a, WHICH_COUNT);
		unsigned side = below(a, SIDES);
		uint8_t opcode;

		receives_post(a, side, which);
		spoil_receive(a, side, which);
		for (uint32_t slot = 0; slot < 6; slot++) {
			unsigned units = wqe_write(a, !side, which, slot, &opcode);

			wqe_ring(a, !side, which, slot, opcode, units);
		}
		usleep(300);
		poll_some(a);
		objects_revive(a, which);
	}
}

static uint32_t some_qpn(struct attacker *a, struct softhca_qp *mine)
{
	switch (below(a, 4)) {
	case 0:
		return victim_count ? victims[below(a, victim_count)] : 0;
	case 1:
		return (uint32_t)draw(a) & 0xffffff;
	case 2:
		return mine->number ^ 1u << below(a, 24);
	}
	return mine->number;
}

void attack_doorbells(struct attacker *a)
{
	for (unsigned n = 0;; n++) {
		enum which which = below(a, WHICH_COUNT);
		struct softhca_qp *qp = a->side[below(a, SIDES)].qp[which];
		uint32_t word0 = (uint32_t)nasty(a) & ~DOORBELL_PHASE;

		ring_some_time(qp, word0,
			       some_qpn(a, qp) << DOORBELL_QPN_SHIFT | ((uint32_t)nasty(a) & 0xff));
		if (n % 64)
			continue;
		poll_some(a);
		objects_revive(a, which);
		if (below(a, 4) == 0) { /* and one in RST */
			struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RESET};

			(void)softhca_modify_qp(qp, &attr, SOFTHCA_QP_STATE);
		}
	}
}
