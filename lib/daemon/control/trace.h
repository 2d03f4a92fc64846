/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_TRACE_H
#define CONTROL_TRACE_H
#include "control_priv.h"

/* Ends the client's trace, if it has one. */
void trace_client_end(struct client *client);

#endif
