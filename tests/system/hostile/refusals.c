/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each refusal on purpose: descriptors and records that are wrong in exactly one way. What the
 * other attacks meet by chance, and a short run may not meet at all.
 */
#include <string.h>
#include <unistd.h>
#include "hostile.h"

struct aim {
	enum which which;
	uint8_t opcode;
	uint32_t lkey;
	uint64_t addr;
	uint32_t bytes;
	uint64_t raddr;
	uint32_t rkey;
	bool no_mac;
};

static uint8_t *put(uint8_t *at, const void *unit, size_t bytes)
{
	memcpy(at, unit, bytes);
	return at + bytes;
}

/* One send descriptor of the left side, as said. */
static void post(struct attacker *a, const struct aim *aim)
{
	struct softhca_qp *qp = a->side[0].qp[aim->which];
	struct wqe_next next = {.flags = WQE_SIGNALED};
	struct wqe_raddr raddr = {.addr = aim->raddr, .rkey = aim->rkey};
	struct wqe_data data = {.length = aim->bytes, .lkey = aim->lkey, .addr = aim->addr};
	struct wqe_ud ud = a->side[0].ah->ud;
	uint8_t *begin = qp->sq.buffer, *at;

	memset(begin, 0, 1u << qp->sq.shift);
	at = put(begin, &next, sizeof(next));
	if (aim->opcode == USER_RDMA_WRITE || aim->opcode == USER_RDMA_READ)
		at = put(at, &raddr, sizeof(raddr));
	if (aim->which == UD) {
		ud.qpn = a->side[1].qp[UD]->number;
		ud.qkey = 0x11111111;
		if (aim->no_mac)
			memset(ud.dmac, 0, sizeof(ud.dmac));
		at = put(at, &ud, sizeof(ud));
	}
	at = put(at, &data, sizeof(data));
	wqe_ring(a, 0, aim->which, 0, aim->opcode, (unsigned)(at - begin) / UNIT_BYTES);
}

static void aim_at_all(struct attacker *a)
{
	const struct side *s = &a->side[0], *peer = &a->side[1];
	const struct chunk *queues = s->ctx->chunks;
	const uint64_t here = (uintptr_t)s->area, there = (uintptr_t)peer->area;
	const struct aim aims[] = {
		/* no such key; a key of another PD; no right; outside; wrapping */
		{RC, USER_SEND, 0x12345678, here, 64, 0, 0, false},
		{RC, USER_SEND, queues->lkey, (uintptr_t)queues->region->addr, 64, 0, 0, false},
		{RC, USER_RDMA_READ, s->read_only->lkey, here, 64, there, peer->mr->rkey, false},
		{RC, USER_SEND, s->mr->lkey, here + AREA_BYTES, 64, 0, 0, false},
		{RC, USER_SEND, s->mr->lkey, UINT64_MAX - 16, 64, 0, 0, false},
		/* the same at the peer */
		{RC, USER_RDMA_WRITE, s->mr->lkey, here, 64, there, 0x12345678, false},
		{RC, USER_RDMA_WRITE, s->mr->lkey, here, 64, there, peer->read_only->rkey, false},
		{RC, USER_RDMA_WRITE, s->mr->lkey, here, 64, there + AREA_BYTES, peer->mr->rkey,
			false},
		{RC, USER_RDMA_WRITE, s->mr->lkey, here, 64, UINT64_MAX, peer->mr->rkey, false},
		/* a datagram to nowhere; an operation that the service has not; too long */
		{UD, USER_SEND, s->mr->lkey, here, 64, 0, 0, true},
		{UC, USER_RDMA_READ, s->mr->lkey, here, 64, there, peer->mr->rkey, false},
		{UD, USER_SEND, s->mr->lkey, here, 65536, 0, 0, false},
	};

	for (unsigned i = 0; i < sizeof(aims) / sizeof(aims[0]); i++) {
		post(a, &aims[i]);
		usleep(2000);
		objects_rejoin(a, aims[i].which);
	}
}

/* Counts of receive descriptors that cannot be, and one that no CQ has room for. */
static void aim_at_receives(struct attacker *a)
{
	struct side *s = &a->side[1];
	const struct aim send = {
		RC, USER_SEND, a->side[0].mr->lkey, (uintptr_t)a->side[0].area, 64, 0, 0, false};
	struct aim shared = send;

	s->qp[RC]->record->rq_posted = 0x80000000;
	post(a, &send);
	usleep(2000);
	objects_rejoin(a, RC);
	shared.which = SHARED;
	s->srq->record->posted = 0x80000000;
	post(a, &shared);
	usleep(2000);
	a->side[0].cq->record->consumer_index = 0x80000000;
	post(a, &send);
	usleep(2000);
}

/* An attribute that the transition does not have. */
static void aim_at_commands(struct attacker *a)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RTS, .path_mtu = 1};

	(void)softhca_modify_qp(a->side[0].qp[RC], &attr, SOFTHCA_QP_STATE | SOFTHCA_QP_PATH_MTU);
}

void attack_refusals(struct attacker *a)
{
	aim_at_commands(a);
	aim_at_all(a);
	aim_at_receives(a);
}
