/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RETRANSMISSION_H
#define REQUESTER_RETRANSMISSION_H
/*
 * Go-back-N, and how much may be outstanding after a loss. Part of RequesterRecvControl; stage
 * requester_recv.
 */
#include "context/qp_context.h"
#include "pipeline/engine.h"

/* Sends everything outstanding from `psn` on again, in PSN order, as far as the window allows, and
 * the rest as that is acknowledged. RequesterTransControl sends nothing until then. */
void retransmit_from(struct engine *e, struct qp *q, uint32_t psn);

/* A loss has shown, or the peer had no receive descriptor: halves the window. */
void retransmit_cut(struct qp *q);

/* Both: a loss has shown, from `psn` on. */
void retransmit_lost(struct engine *e, struct qp *q, uint32_t psn);

/* The same because of a sequence NAK. If the peer has shown that it keeps what comes behind a gap,
 * only the missing packet is sent again. */
void retransmit_missing(struct engine *e, struct qp *q, uint32_t psn);

/* The same because nothing was acknowledged for several round trips: then only the oldest packet,
 * at first. */
void retransmit_probe(struct engine *e, struct qp *q);

/* `acked` PSNs were acknowledged: measures the round trip, opens the window. */
void retransmit_acked(struct engine *e, struct qp *q, uint32_t acked);

/* One poll of it. Returns packets sent again. */
unsigned retransmit_poll(struct engine *e);

#endif
