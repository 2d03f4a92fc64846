/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_DEMO_H
#define PATH_DEMO_H
/* Every operation on every service that has it, in sizes from 8 bytes to 1 MiB, both directions. */
#include "options.h"

/* Runs it and prints the table. 0 or -1. */
int demo_main(const struct options *o);

#endif
