/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_DEAD_PEER_H
#define PATH_DEAD_PEER_H
/* Measures what a queue pair with a dead peer costs the others. */
#include "options.h"

/* Measures and prints. 0; 1: it costs too much; -1: failed. */
int dead_peer_main(const struct options *o);

#endif
