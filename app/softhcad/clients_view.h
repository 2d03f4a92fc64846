/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENTS_VIEW_H
#define CLIENTS_VIEW_H
#include <stdint.h>
#include <jansson.h>

struct daemon;

/* Puts the clients into an answer, by their IDs, the latest first: as many as fit of those below
 * `before` (0: of all), and under "next" where the rest begins. Under the daemon's lock. */
void clients_put(const struct daemon *d, uint32_t before, json_t *to);

#endif
