/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_CM_IDS_H
#define PRELOAD_CM_IDS_H
/*
 * What this process knows of its channels' identifiers: just enough to report the death of their
 * daemon on each of them (RDMA_CM_EVENT_DEVICE_REMOVAL), and to destroy them afterwards. Any
 * thread; no locks, no heap.
 *
 * channel: this process's number for it. number: the daemon's for an identifier; unused ones are
 * ignored. After fork() each process knows what it has seen.
 */
#include <stdbool.h>
#include <stdint.h>
#include "host-abi/cm_channel.h"

/* From the kernel's rdma/rdma_cm.h, which is not a uapi header. */
enum {
	CM_EVENT_ADDR_RESOLVED = 0,
	CM_EVENT_CONNECT_REQUEST = 4,
	CM_EVENT_DEVICE_REMOVAL = 11,
};

/* The daemon has executed a command of the channel. body, response: of the command and the reply,
 * h->in and reply->bytes bytes long. */
void cm_ids_learn(uint32_t channel, const struct rdma_ucm_cmd_hdr *h, const void *body,
		  const struct cm_channel_reply *reply, const void *response);
/* An identifier has been migrated. */
void cm_ids_moved(uint32_t number, uint32_t to_channel);
/* Removes it. Returns the number of events that the program has had; 0 if unknown. */
uint32_t cm_ids_destroyed(uint32_t channel, uint32_t number);

/* Takes the next identifier of the channel that is bound to a device, has a uid and has not been
 * reported: fills in its event, which counts for it. False: none. */
bool cm_ids_removal(uint32_t channel, struct rdma_ucm_event_resp *event);
/* Is there one? */
bool cm_ids_removal_waits(uint32_t channel);

#endif
