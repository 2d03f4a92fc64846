/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_H
#define TELEMETRY_H
/* The daemon's state as commands /softhca/... of DPDK's telemetry. Control thread. */

struct daemon;

/* Registers the commands; they answer from now on, under d->lock. 0 or -errno. */
int telemetry_start(struct daemon *d);

/* Disables the commands. */
void telemetry_stop(void);

#endif
