/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIPELINE_VIEW_H
#define PIPELINE_VIEW_H
/* The pipeline, into dictionaries. */
#include <jansson.h>

struct engine;

/* Counts of an engine's channels, calls and stages. Under the daemon's lock. */
void pipeline_put(const struct engine *e, json_t *to);

/* Work and cost of its modules while they were measured. Under the daemon's lock. */
void runtime_put(const struct engine *e, json_t *to);

/* Its modules, channels and calls, which are always the same. */
void topology_put(json_t *to);

#endif
