/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PATH_SOAK_H
#define PATH_SOAK_H
/* Random operations over RC on a wire that loses, doubles and reorders: each must happen exactly
 * once, complete in order, with every byte right. */
#include "options.h"

/* Runs o->soak_operations of them, prints progress and verdict. 0 or -1. */
int soak_main(const struct options *o);

#endif
