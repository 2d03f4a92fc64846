/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef METRICS_H
#define METRICS_H
/*
 * What a daemon shows, as metrics in Prometheus's text format 0.0.4:
 *   node_infiniband_*{device,port}   as node_exporter names what the kernel's devices count
 *   rdma_*_total{device,port}        hardware counters, as `rdma statistic` shows those of mlx5
 *   softhca_*                        all our counters, and the levels and counts of views.def
 */
#include <stdio.h>
#include "view.h"

/* Queries the daemon and prints all metrics; only `softhca_up 0` if none answers. */
void metrics_print(FILE *out, const struct request *r);

#endif
