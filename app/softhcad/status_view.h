/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATUS_VIEW_H
#define STATUS_VIEW_H
#include <jansson.h>

struct daemon;

/* The daemon at a glance, ports, lcores, memory, clients, into a dictionary. Under the daemon's
 * lock. */
void status_put(struct daemon *d, json_t *to);

#endif
