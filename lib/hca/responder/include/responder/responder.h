/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_RESPONDER_H
#define RESPONDER_RESPONDER_H
/*
 * The responder_exec stage: ExecutionEngine (with RQWQEManager and WriteAddrTable) and RespPktGen.
 * HP_EE → ee → EE_RESPG → respg → RESPG_TXA.
 */
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct qp;
struct v2p;

/* Makes the modules' own state. 0 or -ENOMEM. Control thread. */
int responder_create(struct engine *e);
void responder_destroy(struct engine *e);

/* One poll of the stage: bounded work, never waits. Returns how many elements it handled; 0:
 * nothing to do. */
unsigned responder_exec_poll(struct engine *e);

/* Packet buffers that the stage keeps: its stock for new frames, and packets that came early. */
unsigned responder_stock(const struct engine *e);

/* Does a queue pair hope for receives, which are posted without a doorbell? The lcore that runs
 * responder_exec. */
bool responder_is_due_soon(const struct engine *e);

/* Receive requests posted and not taken, in the QP's queue or its SRQ, according to the client; may
 * be a moment old. Any thread, while the client's memory cannot be unmapped. */
uint32_t responder_receives(const struct qp *q);

/* Drops the packets that the stage keeps between polls and whose payload lies with `sender`, an HCA
 * that is being removed. No lcore polls. Control thread. */
void responder_drop_orphans(struct engine *e, const struct v2p *sender);

#endif
