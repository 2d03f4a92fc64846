/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_PAUSE_H
#define CONTROL_PAUSE_H
#include "control_priv.h"

/* Does the HCA's setting `debug` allow stopping modules and capturing channels? */
bool device_may_stop(const struct device *d);
/* Resumes the modules that are paused until the client ends. */
void pause_client_end(struct client *client);
/* Resumes all modules of a device that is being removed. */
void pause_device_end(struct control *c, struct device *d);

#endif
