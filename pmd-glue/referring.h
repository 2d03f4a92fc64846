/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMD_GLUE_REFERRING_H
#define PMD_GLUE_REFERRING_H
/*
 * Frames that refer to their payload (PAYLOAD_REF), over a driver that copies what it sends before
 * its tx_burst returns, and takes frames in pieces: it reads the payload where the client has it.
 *
 * A frame is in pieces only during that call: headers, payload, and what follows it (pad, ICRC).
 * The pieces behind the headers are the queue's own and have no buffer; their counts of references
 * never reach 0, so the driver cannot free them. The frame gets one reference more for the call,
 * since afterwards it becomes whole again; all who hold it are on the queue's lcore.
 */
#include "port_internal.h"

struct referring;

/* 0 or -ENOMEM. Control thread. */
int referring_create(struct port_queue *q, port_payload_place *find);
void referring_destroy(struct port_queue *q);

/* rte_eth_tx_burst() for frames some of which may refer to their payload. Those whose payload is
 * gone are dropped and counted. Queue's lcore. */
uint16_t referring_tx(struct port_queue *q, uint16_t device, struct rte_mbuf **frames, uint16_t n);

#endif
