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

/* A loss was detected, or the peer had no receive descriptor: halves the window. */
void retransmit_cut(struct qp *q);

/* Both of the above: a loss was detected, from `psn` on. */
void retransmit_lost(struct engine *e, struct qp *q, uint32_t psn);

/* The same because of a sequence NAK. If the peer has shown that it keeps what comes behind a gap,
 * only the missing packet is sent again. */
void retransmit_missing(struct engine *e, struct qp *q, uint32_t psn);

/* The same because nothing was acknowledged for several round trips; at first, repeats only the
 * oldest packet. */
void retransmit_probe(struct engine *e, struct qp *q);

/* The same because the port failed over or its link came back and packets in flight were lost:
 * repeats only the oldest packet; the rest, if the peer lacks it, once that is acknowledged. */
void retransmit_relinked(struct engine *e, struct qp *q);

/* Between equals: the peer has executed everything before `done`, and what it has sent shows that
 * responses before `end` that have not come are missing. Requests each of them again, once per
 * round trip; if `end` is after `done`, also sends the request at `done` again. */
void retransmit_responses(struct engine *e, struct qp *q, uint32_t end, uint32_t done);

/* A selective acknowledgement: the peer lacks `psn` and keeps the packets after it that `map`
 * names. Sends what is missing before the last of those again, each packet once per round trip. */
void retransmit_sacked(struct engine *e, struct qp *q, uint32_t psn,
		       const uint8_t map[WIRE_SACK_BYTES]);

/* Has the peer shown, or agreed, that it keeps what comes behind a gap, and may we rely on it? */
bool retransmit_trusts(const struct engine *e, const struct qp *q);

/* `acked` PSNs were acknowledged: measures the round trip, opens the window. */
void retransmit_acked(struct engine *e, struct qp *q, uint32_t acked);

/* One poll of it. Returns packets sent again. */
unsigned retransmit_poll(struct engine *e);

#endif
