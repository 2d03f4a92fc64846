/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VISIBLE_POOLS_H
#define VISIBLE_POOLS_H

/* The name of the kind of packet pools that ThreadSanitizer sees through. In its builds only. */
const char *visible_pools(void);

#endif
