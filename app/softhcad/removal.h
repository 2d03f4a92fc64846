/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REMOVAL_H
#define REMOVAL_H
/*
 * Takes HCAs out of a running daemon, as pulling out an adapter does. Their programs get
 * RDMA_CM_EVENT_DEVICE_REMOVAL and IBV_EVENT_DEVICE_FATAL, the peers of their connections a DREQ;
 * the others go on, after a pause of some milliseconds. Control thread, under the daemon's lock.
 */
#include <stdbool.h>

struct daemon;
struct control_changer;

/* Begins to remove the devices whose sections are marked as removed. */
void removal_begin(struct daemon *d);

/* Completes the removal of devices that the connection manager has released. */
void removal_turn(struct daemon *d);

/* Removes the HCA of that name, as control_settings_ops.remove; ctx: struct daemon. -EAGAIN;
 * -ENODEV: there is none; -EBUSY: it is the last one. */
int removal_ask(void *ctx, const struct control_changer *who, const char *hca, bool again,
		char *text, unsigned int bytes);

#endif
