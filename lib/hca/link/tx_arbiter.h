/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_TX_ARBITER_H
#define LINK_TX_ARBITER_H
/* Link transmit (doc/modules.md#link-transmit). Stage header_parse. */
#include "pipeline/engine.h"

/* 0 or -ENOMEM. */
int txa_create(struct engine *e);
void txa_destroy(struct engine *e);
/* Returns how many frames it handled. */
unsigned txa_poll(struct engine *e);

#endif
