/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQ_PKT_GEN_H
#define REQUESTER_REQ_PKT_GEN_H
/*
 * ReqPktGen (doc/modules.md#reqpktgen): packets become frames. RTC_RPG, RRC_RPG → RPG_TXA. Stage
 * segmentation.
 */
#include "pipeline/engine.h"

int rpg_create(struct engine *e); /* 0 or -ENOMEM */
void rpg_destroy(struct engine *e);

/* One poll of it. Returns packets taken. */
unsigned rpg_poll(struct engine *e);

/* Payloads up to this length get their CRC together with the headers, in one pass over the finished
 * frame; longer ones while they are copied. */
#define CRC_WITH_COPY_BYTES 256u

#endif
