/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_TIMERS_H
#define REQUESTER_RRC_TIMERS_H
/* RequesterRecvControl's timers and wakes. Stage requester_recv. */
#include "context/qp_context.h"
#include "pipeline/engine.h"

/* Takes up to a burst of expiries. Returns how many. */
unsigned rrc_take_expiries(struct engine *e);

/* Takes all wakes: QPs that go away, have failed, or have new settings. */
void rrc_take_wakes(struct engine *e);

/* Frees what it holds of a QP that the CEU took away. */
void rrc_let_go(struct engine *e, struct qp *q);

#endif
