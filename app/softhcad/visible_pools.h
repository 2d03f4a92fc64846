/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VISIBLE_POOLS_H
#define VISIBLE_POOLS_H

/* The name of the packet pool ops visible to ThreadSanitizer. In its builds only. */
const char *visible_pools(void);

#endif
