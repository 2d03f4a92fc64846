/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIRT_TO_PHYS_TPT_METADATA_H
#define VIRT_TO_PHYS_TPT_METADATA_H
/*
 * TPTMetaData (doc/virt-to-phys.md#tptmetadata): the memory of the MPT's and the MTT's entries.
 * Each table is a range of ICM addresses; MAP_ICM backs them with pages of 4 KiB, and a directory
 * holds the address of each page and whether it is mapped.
 *
 * Written by the control thread; read on any lcore, by the holder of the set that an entry maps to
 * (tpt_cache.h): unmapping a page is followed by dropping its entries from the cache, set by set,
 * after which nothing accesses it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TPT_LOG_PAGE = 12,
	TPT_PAGE_BYTES = 1 << TPT_LOG_PAGE,
	TPT_CHUNK_PAGES = 64, /* 256 KiB, the unit of MAP_ICM */
	TPT_CHUNK_BYTES = TPT_CHUNK_PAGES * TPT_PAGE_BYTES,
	TPT_LOG_MPT_ENTRY = 6,
	TPT_LOG_MTT_ENTRY = 3,
};
#define TPT_PAGE_VALID 1ull

struct tpt_table {
	uint64_t base;	      /* ICM address of entry 0; INIT_HCA */
	uint64_t *pages;      /* page address | TPT_PAGE_VALID; atomic */
	uint32_t entries;     /* a power of two, 0: closed; INIT_HCA */
	uint32_t entries_max; /* capacity of the directory */
	uint8_t log_entry;    /* log2 of an entry's bytes */
};

/* Creates the directory, all pages invalid. 0 or -ENOMEM. */
int tpt_table_create(struct tpt_table *t, const char *name, uint32_t entries_max, uint8_t log_entry,
		     int socket);
void tpt_table_destroy(struct tpt_table *t);

/* Bytes of ICM covered by `entries`, in whole chunks. */
static inline uint64_t tpt_chunk_bytes(uint64_t entries, uint8_t log_entry)
{
	return ((entries << log_entry) + TPT_CHUNK_BYTES - 1) & ~(uint64_t)(TPT_CHUNK_BYTES - 1);
}

static inline uint64_t tpt_table_bytes(const struct tpt_table *t)
{
	return tpt_chunk_bytes(t->entries, t->log_entry);
}

/* Address of the entry, NULL: not mapped. */
static inline void *tpt_address(const struct tpt_table *t, uint32_t index)
{
	uint64_t offset = (uint64_t)index << t->log_entry;
	uint64_t page = __atomic_load_n(&t->pages[offset >> TPT_LOG_PAGE], __ATOMIC_ACQUIRE);

	if (!(page & TPT_PAGE_VALID))
		return NULL;
	return (uint8_t *)(uintptr_t)(page - TPT_PAGE_VALID) + (offset & (TPT_PAGE_BYTES - 1));
}

/* MPT Read, MTT Read, MPT Write, MTT Write: copies `bytes` of entries, all in one page, from or to
 * memory. Any lcore that holds their set. False: not mapped. */
bool tpt_table_read(const struct tpt_table *t, uint32_t index, void *to, uint32_t bytes);
bool tpt_table_write(const struct tpt_table *t, uint32_t index, const void *from, uint32_t bytes);

/* INIT_HCA: sets the number of entries, a power of two, at most the directory's capacity. */
void tpt_table_open(struct tpt_table *t, uint64_t base, uint32_t entries);
/* CLOSE_HCA: unmaps all pages; no entries. Returns true if some were mapped. */
bool tpt_table_close(struct tpt_table *t);

/* Does [virt, virt + pages x 4 KiB) lie in the table? */
bool tpt_table_has(const struct tpt_table *t, uint64_t virt, uint32_t pages);
/* Maps, all or nothing; zeroes the memory, so its entries are invalid. The range is in the
 * table. 0, -EEXIST. */
int tpt_table_map(struct tpt_table *t, uint64_t virt, void *memory, uint32_t pages);
/* Unmaps the range. 0, -ENOENT: some of it was not mapped; nothing was done. */
int tpt_table_unmap(struct tpt_table *t, uint64_t virt, uint32_t pages);

#endif
