/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_OPS_H
#define DEVICE_OPS_H
/* The control socket's callbacks for a device. Control thread. */
struct control_device;
struct device;

/* Describes the device to control_create(); its ctx is v, which must not move. */
void device_describe(struct device *v, struct control_device *out);

#endif
