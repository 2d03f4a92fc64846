/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMITS_VIEW_H
#define LIMITS_VIEW_H

struct daemon;
struct rte_tel_data;

/* Shared resources and their holders. Telemetry's threads, under the daemon's lock. */
void limits_put(const struct daemon *d, struct rte_tel_data *to);

#endif
