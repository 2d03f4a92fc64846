/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_VIEW_H
#define QP_VIEW_H
/* Queue pairs, into dictionaries. Telemetry's threads, under the daemon's lock. */
#include <stdint.h>

struct device;
struct rte_tel_data;

/* Those in use, the first ones, and how many there are. */
void qps_put(const struct device *v, struct rte_tel_data *to);

/* All about one, and what it waits for. 0; -ENOENT: there is no such one. */
int qp_put(const struct device *v, uint32_t qpn, struct rte_tel_data *to);

#endif
