/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_WQE_SCHEDULER_H
#define SEND_QUEUE_WQE_SCHEDULER_H
/* WQEScheduler (doc/modules.md#wqescheduler). Stage doorbell_wqe. */
#include "context/qp_context.h"
#include "pipeline/engine.h"

/* 0 or -ENOMEM. */
int ws_create(struct engine *e);
void ws_destroy(struct engine *e);
/* Returns how many it handled. */
unsigned ws_poll(struct engine *e);
/* Is there a queue pair that may continue? */
bool ws_has_work(const struct engine *e);

/*
 * WQEIndicatorTable: one flag for each QP (qp.ws.chain): a chain of its descriptors is in
 * WQEParse's hands, so the next doorbell has to wait (doc/modules.md#wqeindicatortable).
 * WQEScheduler sets it when it hands over a descriptor that names a next one; WQEParse clears it at
 * the end of the chain, and then a waiting doorbell makes the QP ready again.
 */
void wit_set(struct qp *q);
void wit_clear(struct engine *e, struct qp *q);

#endif
