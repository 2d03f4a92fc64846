/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_ROUTE_H
#define CM_SERVICE_ROUTE_H
/* Paths. The CM thread's alone. */
#include "ucm.h"

enum { UCM_NO_GID = 255 }; /* no device has that many */
/* The present index of a device's GID, or UCM_NO_GID: the device does not have it. */
uint8_t ucm_gid_index(const struct cm_device *d, const uint8_t gid[16]);
/* Sets the path to the destination, by the port's present attributes. */
void ucm_path_make(struct ucm_id *id);
/* What a program's queue pair needs of it. If our GID is gone its index is UCM_NO_GID, which no
 * queue pair accepts. */
void ucm_ah_attr(const struct cm_device *d, const struct cm_path *path,
		 struct ib_uverbs_ah_attr *out);

#endif
