/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_VIEW_H
#define CM_VIEW_H

struct daemon;
struct rte_tel_data;

/* Puts the connection manager into a dictionary. Telemetry's threads, without the daemon's lock. */
void cm_put(struct daemon *d, struct rte_tel_data *to);

#endif
