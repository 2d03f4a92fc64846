/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADDITION_H
#define ADDITION_H
/*
 * Adds HCAs to a running daemon, with ports that it can still open then (config_may_add()). The
 * other HCAs go on after a pause of some milliseconds. Control thread, under the daemon's lock.
 */
#include <stdint.h>

struct daemon;
struct control_changer;

/* Creates the configured HCAs that do not exist yet, and completes those that the connection
 * manager has opened. Logs those that fail and drops them from the configuration. */
void addition_turn(struct daemon *d);

/* Adds an HCA, as control_settings_ops.add; ctx: struct daemon. -EAGAIN; -EINVAL: its settings are
 * wrong; -EBUSY: another one is being removed; -ENOMEM; another -errno. */
int addition_ask(void *ctx, const struct control_changer *who, const char *hca,
		 const char *settings, uint32_t *ticket, char *text, unsigned int bytes);

#endif
