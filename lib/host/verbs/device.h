/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H
#include "verbs_priv.h"

/* Adds or drops a user of a device. */
void device_hold(struct shca_device *d);
void device_release(struct shca_device *d);

#endif
