/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_LIFETIME_H
#define CM_SERVICE_LIFETIME_H
/* The end of identifiers. CM thread only. */
#include "ucm.h"

/* With its events, memberships, requests not yet accepted; releases its connection. */
void ucm_id_destroy(struct ucm_id *id);

#endif
