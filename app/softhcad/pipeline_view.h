/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_VIEW_H
#define PIPELINE_VIEW_H
/* The pipeline, into dictionaries. Telemetry's threads. */
struct engine;
struct rte_tel_data;

/* Counts of an engine's channels, calls and stages. Under the daemon's lock. */
void pipeline_put(const struct engine *e, struct rte_tel_data *to);

/* Work and cost of its modules while they were measured. */
void runtime_put(const struct engine *e, struct rte_tel_data *to);

/* Its modules, channels and calls, which are always the same. */
void topology_put(struct rte_tel_data *to);

#endif
