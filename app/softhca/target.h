/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TARGET_H
#define TARGET_H
/* The daemon to query: as the command line or the environment name it, or the usual one. */
#include "view.h"

/* Connects to it. 0 or -errno. */
int target_connect(const struct request *r, struct connection *c);
/* Prints where there is none, or why not to us, by that -errno. Returns EXIT_CODE_FAILURE. */
int target_missing(const struct request *r, int error);

#endif
