/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_RESPONDER_H
#define RESPONDER_RESPONDER_H
/*
 * The responder_exec stage: ExecutionEngine (with RQWQEManager and WriteAddrTable) and RespPktGen.
 * HP_EE → ee → EE_RESPG → respg → RESPG_TXA.
 */
#include <stdbool.h>

struct engine;
struct qp;

/* Makes the modules' own state in e->module[]. 0 or -ENOMEM. Control thread. */
int responder_create(struct engine *e);
void responder_destroy(struct engine *e);

/* One poll of the stage: bounded work, never waits. Returns how many elements it handled; 0:
 * nothing to do. */
unsigned responder_exec_poll(struct engine *e);

/*
 * Sets what these modules keep in a QP to its initial values. The CEU calls it while the QP is in
 * RST (or before it exists to anybody), and only when responder_qp_idle() said so. The expected PSN
 * is taken from qp->rq_psn when the first packet arrives.
 */
void responder_qp_reset(struct qp *qp);

/*
 * True when RespPktGen keeps nothing for the QP any more. A QP in ERR or RST gives up what it keeps
 * within a few polls; its context must not be reset or reused before. Packets still in HP_EE and
 * EE_RESPG find out by themselves. Any thread.
 */
bool responder_qp_idle(const struct qp *qp);

#endif
