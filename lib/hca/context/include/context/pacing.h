/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_PACING_H
#define CONTEXT_PACING_H
/*
 * Pacing: how a module that sends (RequesterTransControl, RespPktGen) obeys the rates of its flows
 * (struct qp_flow of a QP). A limited flow sends a burst of a few packets, then waits on the
 * module's wheel until the time that they take at its rate has passed. Unlimited flows never come
 * here.
 *
 * The wheel's slots are PACING_SLOT_NS wide; a QP that waits for longer than it reaches, a
 * millisecond, is taken early, found not due, and waits again. One stage; no locks, no allocation.
 */
#include "context/qp_list.h"

enum {
	PACING_SLOT_SHIFT = 10, /* log2 of ns */
	PACING_SLOTS = 1024,
	PACING_SLOT_NS = 1 << PACING_SLOT_SHIFT,
	PACING_REACH_NS = PACING_SLOTS << PACING_SLOT_SHIFT,
	PACING_BURST_PACKETS = 2, /* at most, */
	PACING_BURST_NS = 100000, /* and no more than this long takes, but at least one packet */
	PACING_SLACK_NS = 16384,  /* how much of the time that a late round missed is made up for */
	PACING_HEADER_BYTES = 82, /* of a packet on the wire, besides its payload: IPv4, no VLAN */
};

struct pacer {
	struct qp_list slot[PACING_SLOTS];
	uint64_t turn;	  /* slots before this one are empty; free running */
	uint32_t waiting; /* QPs on the wheel */
	uint32_t flow;	  /* offset of the struct qp_flow in struct qp */
};

/* `flow`: offsetof(struct qp, ...) of the module's struct qp_flow. */
void pacer_init(struct pacer *p, const struct qp_table *qps, size_t flow);

/* Makes the QP's flow wait until its time, unless it waits already. */
void pacer_wait(struct pacer *p, struct qp *q, uint64_t now_ns);

/* The QP is destroyed: it waits no longer. */
void pacer_leave(struct pacer *p, struct qp *q);

/* The next QP that may look again, no longer on the wheel; NULL: none. In bounded time. */
struct qp *pacer_take(struct pacer *p, uint64_t now_ns);

/* When to take again; UINT64_MAX: no QP waits. The same stage, only when it has nothing else to do:
 * looks at each slot. */
uint64_t pacer_due_ns(const struct pacer *p);

/* Brings the flow's rate up to date. Is the flow still limited? */
bool flow_limited(struct qp_flow *f, const struct dcqcn_params *p, uint64_t now_ns);

/* May a limited flow send a burst? */
static inline bool flow_due(const struct qp_flow *f, uint64_t now_ns)
{
	return now_ns >= f->next_ns;
}

/* How much may leave at once: little, so that queues in the network stay short, and at low rates a
 * packet, so that pauses are short. */
static inline uint32_t flow_burst_bytes(const struct qp_flow *f, uint32_t mtu_bytes)
{
	uint64_t bytes = (uint64_t)f->cc.rate * PACING_BURST_NS / 8000000;

	bytes = RTE_MIN(bytes, (uint64_t)PACING_BURST_PACKETS * mtu_bytes);
	return RTE_MAX((uint32_t)bytes, mtu_bytes);
}

/* A limited flow has sent that many packets, with that many bytes of payload in all. */
void flow_sent(struct qp_flow *f, const struct dcqcn_params *p, uint32_t packets, uint32_t bytes,
	       uint64_t now_ns);

/* CNPs may have come for the QP: cuts the flow's rate if so. */
void flow_take_cnps(struct qp_flow *f, const struct qp *q, const struct dcqcn_params *p,
		    uint64_t now_ns);

#endif
