/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATUS_VIEW_H
#define STATUS_VIEW_H

struct daemon;
struct rte_tel_data;

/* The daemon at a glance, ports, lcores, memory, clients, into a dictionary. Telemetry's threads,
 * under the daemon's lock. */
void status_put(struct daemon *d, struct rte_tel_data *to);

#endif
