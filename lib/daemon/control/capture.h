/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_CAPTURE_H
#define CONTROL_CAPTURE_H
#include "control_priv.h"

/* Ends the client's capture, if it has one. */
void capture_client_end(struct client *client);
/* Ends captures of channels at HCAs that do not allow them any more. */
void captures_debug_changed(struct control *c);

#endif
