/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_SHARED_H
#define CLIENT_SHARED_H
/* Regions of the program's own memory. */
#include "client_priv.h"

/* The region for an MR of [addr, addr + bytes), created if there is none; the caller counts itself
 * as a user, or calls region_release(). `write`: the MR will have LOCAL_WRITE. NULL with *err: as
 * sharing_get(), or the daemon's. context.lock is held. */
struct region *region_for(struct softhca_context *ctx, const void *addr, size_t bytes, bool write,
			  int *err);
/* Frees it if it is of the program's memory and has no users. context.lock is held. */
void region_release(struct softhca_context *ctx, struct region *r);
/* Returns what is shared; the daemon frees its side with the connection. */
void shared_close(struct softhca_context *ctx);

#endif
