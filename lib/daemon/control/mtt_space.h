/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_MTT_SPACE_H
#define CONTROL_MTT_SPACE_H
/* Allocator of MTT entries, by buddies of powers of two (doc/virt-to-phys.md#mtt). */
#include <stdbool.h>
#include <stdint.h>
#include "base/limits.h"

enum { MTT_LOG_LEAST = 2, MTT_ORDERS = MTT_INDEX_BITS_MAX - MTT_LOG_LEAST + 1 };
struct mtt_space {
	uint64_t *free[MTT_ORDERS];  /* by log2 of the size, a bit for each free block */
	uint32_t count[MTT_ORDERS];  /* bits that are set */
	uint32_t cursor[MTT_ORDERS]; /* word where the search begins */
	uint32_t entries;
};

/* `entries`: a power of two. 0, -ENOMEM. */
int mtt_space_create(struct mtt_space *s, uint32_t entries);
void mtt_space_destroy(struct mtt_space *s);
/* Entries allocated for `wanted`, 1 or more; 0: too many. */
uint32_t mtt_space_size(uint32_t wanted);
/* Allocates `size` entries, a result of mtt_space_size(). False: no free block of that size. */
bool mtt_space_take(struct mtt_space *s, uint32_t size, uint32_t *first);
void mtt_space_put(struct mtt_space *s, uint32_t first, uint32_t size);

#endif
