/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_CONNECTING_H
#define CM_SERVICE_CONNECTING_H
/* Connections: the protocol's events for their identifiers. The CM thread's alone. */
#include "ucm.h"

void ucm_connection_event(void *ctx, void *owner, struct cm_connection *c,
			  const struct cm_event *e);

#endif
