/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_TEARDOWN_H
#define CONTROL_TEARDOWN_H
#include "control_priv.h"

/* The client's objects, contexts, memory; waits for the data path once. */
void client_teardown(struct client *client);

#endif
