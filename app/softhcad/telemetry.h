/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_H
#define TELEMETRY_H
/* What telemetry.c leaves to other files. */

struct device;
struct rte_tel_data;

/* held.c: what the HCA holds for its clients, into a dictionary. Waits for the lcores. Telemetry's
 * threads, under the daemon's lock. */
void held_put(struct device *v, struct rte_tel_data *to);

#endif
