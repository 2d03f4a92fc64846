/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_LOCAL_OPERATION_H
#define REQUESTER_LOCAL_OPERATION_H
/* RequesterTransControl's state LOCAL. Stage segmentation. */
#include "rtc_visit.h"

/* Executes the local operation at work. Returns the next state. */
enum rtc_state rtc_local(struct visit *v);

#endif
