/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QP_VIEW_H
#define QP_VIEW_H
#include <stdint.h>

struct qp;
struct rte_tel_data;

/* All about one queue pair that is in use, and what it waits for, into a dictionary. now_ns: the
 * daemon's clock. Telemetry's threads, under the daemon's lock. */
void qp_view_put(struct rte_tel_data *to, const struct qp *q, uint64_t now_ns);

#endif
