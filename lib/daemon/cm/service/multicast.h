/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_MULTICAST_H
#define CM_SERVICE_MULTICAST_H
/* Memberships in groups. The CM thread's alone. */
#include "ucm.h"

void ucm_leave_all(struct ucm_id *id);

#endif
