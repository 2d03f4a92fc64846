/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQUESTER_H
#define REQUESTER_REQUESTER_H
/*
 * The segmentation and requester_recv stages: RequesterTransControl, ReqPktGen;
 * RequesterRecvControl, ScatterEntryManager, TimerControl; and MultiQueue between them.
 */
#include "base/limits.h"
#include "base/shares.h"
#include "pipeline/engine.h"

struct qp;

/* Makes the modules' own state and MultiQueue. 0 or -ENOMEM. Control thread. */
int requester_create(struct engine *e);
void requester_destroy(struct engine *e);

/* Notes that both stages of the engine will run on one lcore. Call it before they run. */
void requester_on_one_lcore(struct engine *e);

/* One poll of the stage: bounded work, never waits. Returns how many elements it handled; 0:
 * nothing to do. */
unsigned segmentation_poll(struct engine *e);
unsigned requester_recv_poll(struct engine *e);

/* Packet buffers that the stages keep in stock for what comes next. */
unsigned requester_stock(const struct engine *e);

/* Timer events that the engine keeps for what comes next. Any thread. */
unsigned requester_spare_events(const struct engine *e);

/* Retransmit buffers in use: elements of MultiQueue's three pools. 0 at rest. While the stages
 * rest. */
unsigned requester_elements(const struct engine *e);

/* Users and clients that are charged with elements, in all three pools. 0 at rest. While the stages
 * rest. */
unsigned requester_holders(const struct engine *e);

/* MultiQueue's capacity for packets, READs or entries (DATA_SHARE_*_kept), and how much of it one
 * client, or (REQUESTER_ALL) all of them use. Any thread; may be a moment old. */
enum { REQUESTER_ALL = CLIENTS_MAX };
unsigned requester_room(const struct engine *e, enum data_share which);
unsigned requester_kept(const struct engine *e, enum data_share which, unsigned client);

/* Does it keep nothing that a peer has still to acknowledge? Any thread; may be a moment old. */
bool requester_rests(const struct engine *e);

/* Why RequesterTransControl has parked the queue pair, in words; never NULL. May be a moment old.
 * Any thread. */
const char *requester_waits_for(const struct qp *q);

/* Timers armed. 0 at rest. The lcore that runs requester_recv, or while the stages rest. */
unsigned requester_timers_armed(const struct engine *e);
/* Does a queue pair wait to send again (RNR)? The lcore that runs requester_recv. */
bool requester_is_due_soon(const struct engine *e);

/* Drops the packets that the stage keeps between polls and whose payload lies with `sender`, an HCA
 * that is being removed. No lcore polls. Control thread. */
void requester_drop_orphans(struct engine *e, const struct v2p *sender);

#endif
