/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ICM_H
#define BASE_ICM_H
/*
 * ICM: memory of a table of contexts, in chunks of 256 KiB mapped on demand
 * (doc/virt-to-phys.md#tptmetadata), so that a table may be large yet cost only what is used of it.
 *
 * The address space of the whole table is reserved at once: finding an entry is one indexing
 * operation, and a lookup of an entry without memory (an invented number) reads zeros, which look
 * like a free entry. Mapping a chunk gives it memory before it is needed, unmapping frees it.
 *
 * An entry may straddle two chunks; it then needs both.
 *
 * Control thread, except `mapped` and icm_skip(), which any thread may read. The caller that unmaps
 * a chunk ensures that no other thread writes into it or keeps something there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ICM_CHUNK_BYTES (256u << 10)
#define ICM_CHUNK_PAGES (ICM_CHUNK_BYTES >> 12)

struct icm {
	uint8_t *base; /* of entry 0; NULL: not reserved */
	uint32_t entry_bytes, entries;
	uint32_t chunks; /* in the table */
	uint32_t mapped; /* chunks mapped; atomic */
	struct icm_chunk *chunk;
	void *reserved;
	size_t reserved_bytes;
};

struct icm_chunk {
	uint32_t live; /* used entries in it, whole or in part */
	bool mapped;   /* atomic */
};

/* Reserves address space; touches nothing. 0, -ENOMEM. */
int icm_reserve(struct icm *m, uint32_t entries, uint32_t entry_bytes);
/* Unreserves it. */
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

/* The first entry in a chunk, and one past the last. */
uint32_t icm_entry_first(const struct icm *m, uint32_t chunk);
uint32_t icm_entry_end(const struct icm *m, uint32_t chunk);

/*
 * For walks over the table: `index` (< entries), or, if its chunk has no memory and so no used
 * entry, the first index behind that chunk. Any thread; while a chunk is being mapped, either.
 */
static inline uint32_t icm_skip(const struct icm *m, uint32_t index)
{
	uint32_t chunk = icm_last(m, index);

	return __atomic_load_n(&m->chunk[chunk].mapped, __ATOMIC_RELAXED) ? index
									  : icm_entry_end(m, chunk);
}

/* Is the entry's memory mapped? */
bool icm_ready(const struct icm *m, uint32_t index);
/* Marks the entry, whose memory is mapped, as used, or as free. */
void icm_use(struct icm *m, uint32_t index);
void icm_leave(struct icm *m, uint32_t index);

/* Maps zeroed memory for a chunk. 0; -EEXIST: mapped already; -ENOMEM. */
int icm_map(struct icm *m, uint32_t chunk);
/* Unmaps a chunk. 0; -ENOENT: not mapped; -EBUSY: an entry is in use. */
int icm_unmap(struct icm *m, uint32_t chunk);

#endif
