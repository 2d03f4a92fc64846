/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMITS_VIEW_H
#define LIMITS_VIEW_H

struct daemon;
struct rte_tel_data;

/* What clients share, and who holds how much of it. Telemetry's threads, under the daemon's lock. */
void limits_put(const struct daemon *d, struct rte_tel_data *to);

#endif
