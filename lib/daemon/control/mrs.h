/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_MRS_H
#define CONTROL_MRS_H
/* Memory regions. */
#include "control_priv.h"

/* Allocates MTT entries for `pages` pages, all empty. No client may have them all. 0, -ENOSPC,
 * -errno. */
int mtt_take(struct client *client, uint32_t pages, struct mr_memory *m);
/* Frees the resources of an MR's memory, which nothing accesses any more. */
void mr_memory_drop(struct client *client, struct mr_memory *m);

/* The daemon's address of [va, va + bytes) if it lies in an MR of the client's queue PD with local
 * write, else NULL. */
uint8_t *queue_memory(const struct client *client, const struct mr *mr, uint64_t va, uint64_t bytes,
		      uint32_t align);

#endif
