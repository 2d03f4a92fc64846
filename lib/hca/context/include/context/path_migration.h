/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_PATH_MIGRATION_H
#define CONTEXT_PATH_MIGRATION_H
/*
 * Automatic path migration of a connected queue pair: the transitions of path_migration.def. Each
 * is one compare-and-swap of qp.way, so that only one of several lcores and the CEU makes it, and a
 * reader of the word sees path and state of the same moment. On RoCE the alternate path is another
 * address vector: other GIDs, another next hop or flow label; the port is the same.
 */
#include "context/qp_context.h"

/* Armed: goes on along the alternate path, with its timeout, and raises EQE_PATH_MIG. False: it was
 * not armed, nothing changed. Any stage, with its counters, or the CEU. */
bool qp_migrate(struct engine *e, struct counters *c, struct qp *q);

/* ReArm: becomes armed, as its peer is ready. Any stage. */
void qp_arm(struct qp *q);

/* The peer has asked an armed queue pair to migrate where it has no path: raises EQE_PATH_MIG_ERR,
 * once until the program rearms it. Any stage. */
void qp_refuse_migration(struct engine *e, struct counters *c, struct qp *q);

/* For the program; false: not in this state. The CEU. */
bool qp_rearm(struct qp *q);

/* Makes that path the alternate one: qp_path_unused(), which no module reads yet, or the current
 * path, which means none. The CEU. */
void qp_load_alternate(struct qp *q, unsigned path);
void qp_change_path(struct qp *q, unsigned path);

/* A path of the context that is neither the current nor the alternate one. The last poll that
 * looked at it may not be over. The CEU. */
unsigned qp_path_unused(const struct qp *q);

#endif
