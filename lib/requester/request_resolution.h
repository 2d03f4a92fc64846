/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQUEST_RESOLUTION_H
#define REQUESTER_REQUEST_RESOLUTION_H
/*
 * The request-resolution machine (seed 003, ReqTransCore_Thread_2): what a request needs beside its
 * packets, in turn: its client's memory, a place in a CQ, a place in an EQ. RequesterTransControl
 * takes a UC or UD request through it while it segments it (UCUD_SEG) and completes it (UCUD_CPL).
 * The state lies in the request, so that one whose neighbour is not ready goes on where it was.
 * RC requests stay in IDLE: RequesterRecvControl completes them. Stage segmentation; nothing here
 * waits.
 */
#include <stdbool.h>
#include "requester_priv.h"

enum rr_state {
#define STATE(id, text) RR_##id,
#include "request_resolution.def"
};

/* IDLE to BYPASS or FETCH_DATA_MR. The outcome is known, if it is not OK. */
void resolution_judge(struct request *r);

/* In one of those two: `done`, all segments are sent or the request failed (its outcome says so):
 * on to CQ_REQ or IDLE; else stays. */
void resolution_data(struct request *r, bool done);

/* One step from CQ_REQ or a later state; the state does not change when the neighbour is not ready.
 * Returns the state. */
enum rr_state resolution_step(struct engine *e, struct qp *q, struct rte_mbuf *m);

/* Steps until IDLE (true) or until a neighbour is not ready (false: call again later). */
bool resolution_complete(struct engine *e, struct qp *q, struct rte_mbuf *m);

/* The QP is taken away: back to IDLE from any state. A place that the request has reserved is
 * written all the same, lest others wait behind it for ever. False: its queue is held, call again
 * later. */
bool resolution_abandon(struct engine *e, struct qp *q, struct rte_mbuf *m);

#endif
