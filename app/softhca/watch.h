/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WATCH_H
#define WATCH_H
/* --watch: a view again and again, with what has changed since the last time. */
#include <jansson.h>
#include "commands.h"

/* Executes the command until a signal, its count or an error ends it. Exit code. */
int watch_run(const struct command *command, struct connection *c, const struct request *r);

/* Remembers the answer under that name until the next round. Returns the one of the last round,
 * valid until the next; NULL: there was none. */
const json_t *watch_last(const char *name, json_t *answer);
/* How long ago the last round was, in seconds; 0: this is the first, or the only one. */
double watch_elapsed(void);

#endif
