/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_LINK_H
#define LINK_LINK_H
/*
 * The header_parse stage: link receive (64To256Trans) and HeaderParser; link transmit
 * (256To64Trans). port → hp → HP_RRC, HP_EE; RPG_TXA, RESPG_TXA → txa → port.
 */
#include "pipeline/engine.h"

/* Makes the modules' own state. 0 or -ENOMEM. Control thread. */
int link_create(struct engine *e);
void link_destroy(struct engine *e);

/* One poll of the stage: bounded work, never waits. Returns how many elements it handled; 0:
 * nothing to do. */
unsigned header_parse_poll(struct engine *e);
/* Polls the transmitter once more, unless it has sent a burst in this round: each costs the port a
 * doorbell or a system call. The lcore that polls the stage. Returns how many frames it took. */
unsigned link_transmit(struct engine *e);

/* Drops the packets that the stage keeps between polls and whose payload lies with `sender`, an HCA
 * that is being removed. No lcore polls. Control thread. */
void link_drop_orphans(struct engine *e, const struct v2p *sender);

#endif
