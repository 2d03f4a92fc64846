/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_PAUSE_H
#define CONTROL_PAUSE_H
#include "control_priv.h"

/* Does the setting debug of that HCA allow to stop modules and to capture channels? */
bool device_may_stop(const struct device *d);
/* Lets the modules run that stand because of the client. */
void pause_client_end(struct client *client);
/* Lets all modules of a device run that is being removed. */
void pause_device_end(struct control *c, struct device *d);

#endif
