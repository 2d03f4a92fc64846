/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SERVICE_LIFETIME_H
#define CM_SERVICE_LIFETIME_H
/* The end of identifiers. CM thread only. */
#include "ucm.h"

/* Destroys it with its events, memberships and requests not yet accepted; releases its
 * connection. */
void ucm_id_destroy(struct ucm_id *id);

/* The device is being removed: tells the programs of this channel's identifiers on it, and ends
 * what these had begun. */
void ucm_channel_remove(struct ucm_channel *ch, unsigned int device);

#endif
