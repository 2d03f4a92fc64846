/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIMITS_VIEW_H
#define LIMITS_VIEW_H
#include <jansson.h>

struct daemon;

/* Shared resources and their holders. Under the daemon's lock. */
void limits_put(const struct daemon *d, json_t *to);

#endif
