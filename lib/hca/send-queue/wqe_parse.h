/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_WQE_PARSE_H
#define SEND_QUEUE_WQE_PARSE_H
/* WQEParse (doc/modules.md#wqeparse). Stage doorbell_wqe. */
#include "pipeline/engine.h"

/* 0 or -ENOMEM. */
int wp_create(struct engine *e);
void wp_destroy(struct engine *e);
/* Returns how many it handled. */
unsigned wp_poll(struct engine *e);

#endif
