/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_ROUTE_H
#define CM_SERVICE_ROUTE_H
/* Paths. The CM thread's alone. */
#include "ucm.h"

/* Sets the path to the destination, by the port's present attributes. */
void ucm_path_make(struct ucm_id *id);
void ucm_ah_attr(const struct cm_path *path, struct ib_uverbs_ah_attr *out);

#endif
