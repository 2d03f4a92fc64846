/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_DATA_PACK_H
#define SEND_QUEUE_DATA_PACK_H
/* DataPack (doc/modules.md#datapack). Stage doorbell_wqe. */
#include "pipeline/engine.h"

/* Returns how many it handled. */
unsigned dp_poll(struct engine *e);

#endif
