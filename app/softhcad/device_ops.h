/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_OPS_H
#define DEVICE_OPS_H
/* What the control socket asks about a device. Control thread. */
struct control_device;
struct device;

/* The device as control_create() wants it; its ctx is v, which must stay where it is. */
void device_describe(struct device *v, struct control_device *out);

#endif
