/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQUEST_RESOLUTION_H
#define REQUESTER_REQUEST_RESOLUTION_H
/*
 * Request resolution (doc/modules.md#request-resolution): completes UC and UD requests. When the
 * message has been sent or has failed, RequesterTransControl (UCUD_CPL) takes the request through
 * it: a place in the CQ, then the completion. The request keeps the state, so that one whose CQ is
 * held continues where it was. RC requests stay in IDLE: RequesterRecvControl completes them.
 * Stage segmentation; nothing here waits.
 */
#include <stdbool.h>
#include "context/qp_context.h"
#include "pipeline/message.h"

enum rr_state {
#define STATE(id, text) RR_##id,
#include "request_resolution.def"
};

/* Moves a request whose message has been sent or has failed (see its outcome) from IDLE to CQ_REQ
 * if it needs a completion. */
void resolution_begin(struct request *r);

/* One step; the state does not change when the CQ is held. Returns the state. */
enum rr_state resolution_step(struct engine *e, struct qp *q, struct rte_mbuf *m);

/* Steps until IDLE (true) or until the CQ is not ready (false: call again later). */
bool resolution_complete(struct engine *e, struct qp *q, struct rte_mbuf *m);

/* The QP is being destroyed: back to IDLE from any state. A place that the request has reserved is
 * written all the same, or others would wait behind it for ever. False: the CQ is held, call again
 * later. */
bool resolution_abandon(struct engine *e, struct qp *q, struct rte_mbuf *m);

#endif
