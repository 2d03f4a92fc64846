/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_CHANNEL_H
#define CM_SERVICE_CHANNEL_H
/* A program's socket: its commands, its end. The CM thread's alone. */
#include "ucm.h"

/* Serves a bounded number of a channel's commands. May free the channel. */
void ucm_channel_serve(struct ucm_channel *ch);
void ucm_channel_close(struct ucm_channel *ch);

#endif
