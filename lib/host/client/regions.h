/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_REGIONS_H
#define CLIENT_REGIONS_H
/* memory.c: regions, and memory for queues. */
#include "client_priv.h"

/* Creates a sealed memfd of that size and maps it. -1 with errno. */
int sealed_memory(size_t bytes, void **addr);
/* The region that holds [addr, addr + bytes), or NULL. context.lock is held. */
struct region *region_of(struct softhca_context *ctx, const void *addr, size_t bytes);
/* Faults [addr, addr + bytes) in, as registering with hardware does. The daemon does not, since the
 * pages would be charged to it. 0; -ENOMEM: there is no room for all of it. */
int region_populate(const void *addr, size_t bytes);
/* Fills *in with the runs of [addr, addr + bytes), which the region holds, for REG_MR or REREG_MR;
 * sends the daemon those that do not fit. 0, -errno. context.lock is held. */
int region_runs(struct softhca_context *ctx, const struct region *r, const void *addr, size_t bytes,
		struct control_mr *in);

/* Memory for queues, zeroed, page-aligned. 0, -errno. context.lock is held. */
int queue_memory_get(struct softhca_context *ctx, size_t bytes, struct queue_memory *m);
void queue_memory_put(struct softhca_context *ctx, struct queue_memory *m);
/* Frees all but its first page. */
void queue_memory_keep_first(struct queue_memory *m);
/* Unmaps everything; the daemon frees its side with the connection. */
void memory_close(struct softhca_context *ctx);

#endif
