/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_MULTICAST_H
#define CONTROL_MULTICAST_H
#include "control_priv.h"

/* Detaches a QP from all its groups. */
void multicast_leave_all(struct qp_object *qp);

#endif
