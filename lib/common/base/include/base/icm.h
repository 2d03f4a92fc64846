/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ICM_H
#define BASE_ICM_H
/*
 * ICM: memory of a table of contexts, in chunks of 256 KiB that are mapped on demand
 * (doc/virt-to-phys.md#tptmetadata), so that a table may be large and yet cost only what is used of
 * it.
 *
 * The address space of the whole table is reserved at once: finding an entry is one indexing
 * operation, and whoever looks at one that has no memory, by a number that somebody made up, reads
 * zeroes, which is what a free entry looks like. Mapping a chunk gives it memory before anybody
 * needs it, unmapping takes it back.
 *
 * An entry may lie across the border of two chunks; it needs both.
 *
 * Control thread, but for `mapped`, which anybody may read. The one who unmaps sees to it that no
 * other thread writes into the chunk or keeps something there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ICM_CHUNK_BYTES (256u << 10)
#define ICM_CHUNK_PAGES (ICM_CHUNK_BYTES >> 12)

struct icm {
	uint8_t *base; /* of entry 0; NULL: nothing is reserved */
	uint32_t entry_bytes, entries;
	uint32_t chunks; /* that the table has */
	uint32_t mapped; /* of them; atomic */
	struct icm_chunk *chunk;
	void *reserved;
	size_t reserved_bytes;
};

struct icm_chunk {
	uint32_t live; /* entries in use that lie in it, whole or in part */
	bool mapped;
};

/* Reserves address space; touches nothing. 0, -ENOMEM. */
int icm_reserve(struct icm *m, uint32_t entries, uint32_t entry_bytes);
/* Gives back all of it. */
void icm_release(struct icm *m);

/* The chunks that entry `index` lies in. */
static inline uint32_t icm_first(const struct icm *m, uint32_t index)
{
	return (uint32_t)((uint64_t)index * m->entry_bytes / ICM_CHUNK_BYTES);
}

static inline uint32_t icm_last(const struct icm *m, uint32_t index)
{
	return (uint32_t)((((uint64_t)index + 1) * m->entry_bytes - 1) / ICM_CHUNK_BYTES);
}

/* The first entry that lies in a chunk, and one past the last. */
uint32_t icm_entry_first(const struct icm *m, uint32_t chunk);
uint32_t icm_entry_end(const struct icm *m, uint32_t chunk);

/* Has the entry its memory? */
bool icm_ready(const struct icm *m, uint32_t index);
/* The entry, whose memory is mapped, comes into use, or goes out of it. */
void icm_use(struct icm *m, uint32_t index);
void icm_leave(struct icm *m, uint32_t index);

/* Gives a chunk memory, zeroed. 0; -EEXIST: it has some; -ENOMEM. */
int icm_map(struct icm *m, uint32_t chunk);
/* Takes it back. 0; -ENOENT: it has none; -EBUSY: an entry is in use. */
int icm_unmap(struct icm *m, uint32_t chunk);

#endif
