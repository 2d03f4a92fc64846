/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_RESP_PKT_GEN_H
#define RESPONDER_RESP_PKT_GEN_H
/*
 * RespPktGen (doc/modules.md#resppktgen): builds the frames that ExecutionEngine asks for. EE_RESPG
 * → RESPG_TXA. Stage responder_exec. Its output is complete frames with ICRC, struct packet with
 * PACKET_BUILT.
 */
#include "pipeline/engine.h"
#include "pipeline/message.h"

struct qp;

/* Frames made in one poll at most. */
#define RESPG_FRAMES_MAX (2 * BURST)

int respg_create(struct engine *e); /* 0 or -ENOMEM */
void respg_destroy(struct engine *e);

/* One poll: accepts a burst, makes frames as long as there are buffers and room. Returns elements
 * and frames handled. */
unsigned respg_poll(struct engine *e);

/* The CEU has destroyed the QP: drops all answers that wait for it. */
void respg_forget(struct engine *e, struct qp *qp);

/*
 * The network has marked a packet of this QP's peer, which is connected: the next poll sends the
 * peer a congestion notification packet (CNP), unless the last one was sent less than
 * min_time_between_cnps ago.
 */
void respg_notify(const struct engine *e, struct qp *qp);

/* The same, if RequesterRecvControl has counted marked READ responses since the last call.
 * Conversely, if a CNP has come, READ responses slow down. */
void respg_take_news(const struct engine *e, struct qp *qp);

/* EE → RESPG: the results of atomics that came in a train, one for each, in order. Other atomics
 * carry theirs (arrival.orig). */
uint32_t respg_results_room(const struct engine *e);
void respg_put_result(struct engine *e, uint64_t value);

/* EE → RESPG: the READ or atomic is a duplicate: it holds no resource, its errors are silent
 * (C9-108). */
static inline void response_set_duplicate(struct arrival *a, bool duplicate)
{
	a->duplicate = duplicate;
}

static inline bool response_is_duplicate(const struct arrival *a)
{
	return a->duplicate;
}

#endif
