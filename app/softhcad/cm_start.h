/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_START_H
#define CM_START_H
/* The daemon's connection manager. Control thread. */

struct daemon;

/* Starts it, if configured, and serves the control socket, which is up, until it runs. 0 or -errno,
 * logged. */
int cm_start(struct daemon *d);

/* Opens device i, which has just been added: cm_thread_add(). Without a connection manager 0. */
int cm_add(struct daemon *d, unsigned i);

/* control_config.cm_adopt; ctx: struct daemon. */
int cm_adopt(void *ctx, int fd);

#endif
