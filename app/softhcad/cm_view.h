/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_VIEW_H
#define CM_VIEW_H
#include <jansson.h>

struct daemon;

/* Puts the connection manager into a dictionary. 0; -EAGAIN: it is busy, perhaps with waiting for
 * the control thread. Under the daemon's lock. */
int cm_put(struct daemon *d, json_t *to);

#endif
