/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_HEADER_PARSER_H
#define LINK_HEADER_PARSER_H
/* HeaderParser (doc/modules.md#headerparser). Stage header_parse. */
#include "pipeline/engine.h"

/* 0 or -ENOMEM. */
int hp_create(struct engine *e);
void hp_destroy(struct engine *e);
/* Returns how many frames it handled. */
unsigned hp_poll(struct engine *e);

#endif
