/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQUESTER_RECV_CONTROL_H
#define REQUESTER_REQUESTER_RECV_CONTROL_H
/*
 * RequesterRecvControl (doc/modules.md#requesterrecvcontrol): responses, bad requests, expired
 * timers. HP_RRC, RTC_RRC, TC_RRC → RRC_RPG, RRC_TC, client memory, send completions. Stage
 * requester_recv.
 */
#include <stdbool.h>
#include "pipeline/engine.h"

int rrc_create(struct engine *e); /* 0 or -ENOMEM */
void rrc_destroy(struct engine *e);

/* One poll of it. Returns elements taken and packets sent again. */
unsigned rrc_poll(struct engine *e);

/* Responses that came early and are kept. Stage requester_recv, or while it rests. */
unsigned rrc_kept(const struct engine *e);

/* Does it hold responses that VirtToPhys has pending, or whose turn has come? Stage
 * requester_recv. */
bool rrc_holds_responses(const struct engine *e);

#endif
