/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_DOORBELL_PROCESSING_H
#define SEND_QUEUE_DOORBELL_PROCESSING_H
/* DoorbellProcessing (doc/modules.md#doorbellprocessing). Stage doorbell_wqe. */
#include "pipeline/engine.h"

/* 0 or -ENOMEM. */
int dbp_create(struct engine *e);
void dbp_destroy(struct engine *e);
/* Returns how many it handled. */
unsigned dbp_poll(struct engine *e);

#endif
