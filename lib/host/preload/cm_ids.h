/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_CM_IDS_H
#define PRELOAD_CM_IDS_H
/*
 * What is known of the identifiers of this process's channels: as much as is needed when their
 * daemon has gone, to say so of each (RDMA_CM_EVENT_DEVICE_REMOVAL) and to destroy them. Any
 * thread; no locks, no heap.
 *
 * channel: a number of this process's own. number: the daemon's for an identifier; those that it
 * does not use are ignored. After fork() each process knows what it has seen.
 */
#include <stdbool.h>
#include <stdint.h>
#include "host-abi/cm_channel.h"

/* Of a kernel's rdma/rdma_cm.h, which is no public header. */
enum {
	CM_EVENT_ADDR_RESOLVED = 0,
	CM_EVENT_CONNECT_REQUEST = 4,
	CM_EVENT_DEVICE_REMOVAL = 11,
};

/* The daemon has done a command of the channel. body, response: as in the command and the reply,
 * h->in and reply->bytes bytes of them. */
void cm_ids_learn(uint32_t channel, const struct rdma_ucm_cmd_hdr *h, const void *body,
		  const struct cm_channel_reply *reply, const void *response);
/* An identifier has been migrated. */
void cm_ids_moved(uint32_t number, uint32_t to_channel);
/* It is destroyed: forgotten. How many events the program has had; 0 if it is not known. */
uint32_t cm_ids_destroyed(uint32_t channel, uint32_t number);

/* The next identifier of the channel that is on a device, has a uid, and has not been told of yet:
 * its event, which counts for it. False: none. */
bool cm_ids_removal(uint32_t channel, struct rdma_ucm_event_resp *event);
/* Is there another? */
bool cm_ids_removal_waits(uint32_t channel);

#endif
