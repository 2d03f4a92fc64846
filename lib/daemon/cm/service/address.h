/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_ADDRESS_H
#define CM_SERVICE_ADDRESS_H
/* Binding and resolving. The CM thread's alone. */
#include "ucm.h"

int ucm_bind(struct ucm_id *id, const union ucm_address *source);
/* Continues identifiers that wait for a next hop. */
void ucm_resolve_turn(struct cm_service *s);

#endif
