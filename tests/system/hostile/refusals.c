/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each refusal on purpose: descriptors and records that are wrong in exactly one way. What the
 * other attacks meet by chance, and a short run may not meet at all.
 */
#include <string.h>
#include <sys/socket.h>
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

/* Is one of the two in an error state? */
static bool failed(struct attacker *a, enum which which)
{
	struct softhca_qp_attr attr;

	for (unsigned side = 0; side < SIDES; side++)
		if (softhca_query_qp(a->side[side].qp[which], &attr) ||
		    attr.state != SOFTHCA_QPS_RTS)
			return true;
	return false;
}

/* Until the daemon has refused it. What it lets pass is waited for until this process is killed. */
static void wait_failed(struct attacker *a, enum which which)
{
	while (!failed(a, which))
		usleep(1000);
}

static void refused(struct attacker *a, const struct aim *aim)
{
	post(a, aim);
	wait_failed(a, aim->which);
	objects_rejoin(a, aim->which);
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

	for (unsigned i = 0; i < sizeof(aims) / sizeof(aims[0]); i++)
		refused(a, &aims[i]);
}

/* A message longer than its receive; counts of receive descriptors that cannot be. */
static void aim_at_receives(struct attacker *a)
{
	struct side *s = &a->side[1];
	struct aim send = {
		RC, USER_SEND, a->side[0].mr->lkey, (uintptr_t)a->side[0].area, AREA_BYTES, 0,
		0,  false};

	receives_post(a, 1, RC);
	refused(a, &send);
	send.bytes = 64;
	s->qp[RC]->record->rq_posted = 0x80000000;
	refused(a, &send);
	send.which = SHARED;
	s->srq->record->posted = 0x80000000;
	post(a, &send);
	wait_failed(a, SHARED);
}

/* Another queue pair whose doorbells the same engine reads. */
static enum which beside_rc(const struct attacker *a)
{
	struct softhca_qp *const *qp = a->side[0].qp;
	enum which which = UC;

	while (which != SHARED && qp[which]->fifo != qp[RC]->fifo)
		which++;
	return which;
}

/* Doorbells of nothing, and in RST; the one behind them, whose address unit is missing, proves that
 * they were read. */
static void aim_at_doorbells(struct attacker *a)
{
	struct softhca_qp_attr reset = {.state = SOFTHCA_QPS_RESET};
	enum which which = beside_rc(a);

	(void)softhca_modify_qp(a->side[0].qp[which], &reset, SOFTHCA_QP_STATE);
	wqe_ring(a, 0, which, 0, USER_SEND, 2);
	wqe_ring(a, 0, RC, 0, USER_SEND, 0);
	wqe_ring(a, 0, RC, 0, USER_RDMA_WRITE, 1);
	wait_failed(a, RC);
	objects_rejoin(a, RC);
}

/* An event queue and a completion queue that seem to be full. */
static void aim_at_queues(struct attacker *a)
{
	struct side *s = &a->side[0], *peer = &a->side[1];
	const uint64_t here = (uintptr_t)s->area, there = (uintptr_t)peer->area;
	struct aim write = {RC, USER_RDMA_WRITE, s->mr->lkey, here, 64, there, 0x12345678, false};

	peer->ctx->page->eq_consumer = 0x80000000;
	refused(a, &write);
	s->cq->record->consumer_index = 0x80000000;
	write.rkey = peer->mr->rkey;
	for (unsigned i = 0; i < 1000 && !failed(a, RC); i++) /* until it is full */
		for (unsigned k = 0; k < 8; k++)
			post(a, &write);
}

/* A request that there is not: the end of the connection. */
static void aim_at_control(struct attacker *a)
{
	const struct control_header none = {.type = CONTROL_TYPE_NONE};
	struct control_header answer;
	int fd = a->side[0].ctx->fd;

	if (send(fd, &none, sizeof(none), MSG_NOSIGNAL) == sizeof(none))
		(void)!recv(fd, &answer, sizeof(answer), 0);
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
	aim_at_doorbells(a);
	aim_at_queues(a);
	aim_at_control(a);
}
