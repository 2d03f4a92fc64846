/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TPTMetaData's directories (doc/virt-to-phys.md#tptmetadata): pages behind ICM addresses. Commands
 * on the control thread; entries are read and written on any lcore that holds their cache set.
 */
#include <errno.h>
#include <string.h>
#include <rte_malloc.h>
#include "base/assert.h"
#include "virt-to-phys/tpt_metadata.h"

int tpt_table_create(struct tpt_table *t, const char *name, uint32_t entries_max, uint8_t log_entry,
		     int socket)
{
	uint64_t pages = tpt_chunk_bytes(entries_max, log_entry) >> TPT_LOG_PAGE;

	*t = (struct tpt_table){.entries_max = entries_max, .log_entry = log_entry};
	t->pages = rte_zmalloc_socket(name, pages * sizeof(*t->pages), 64, socket);
	return t->pages ? 0 : -ENOMEM;
}

void tpt_table_destroy(struct tpt_table *t)
{
	rte_free(t->pages);
	*t = (struct tpt_table){0};
}

bool tpt_table_has(const struct tpt_table *t, uint64_t virt, uint32_t pages)
{
	uint64_t bytes = (uint64_t)pages << TPT_LOG_PAGE, size = tpt_table_bytes(t);

	return virt % TPT_PAGE_BYTES == 0 && virt >= t->base && bytes <= size &&
	       virt - t->base <= size - bytes;
}

static uint64_t *directory_at(const struct tpt_table *t, uint64_t virt)
{
	return &t->pages[(virt - t->base) >> TPT_LOG_PAGE];
}

void tpt_table_open(struct tpt_table *t, uint64_t base, uint32_t entries)
{
	ASSERT(entries <= t->entries_max);
	t->base = base;
	t->entries = entries;
}

bool tpt_table_close(struct tpt_table *t)
{
	bool mapped = false;

	for (uint64_t i = 0; i < tpt_table_bytes(t) >> TPT_LOG_PAGE; i++)
		mapped |= __atomic_exchange_n(&t->pages[i], 0, __ATOMIC_SEQ_CST) != 0;
	t->entries = 0;
	return mapped;
}

static bool all_mapped(const uint64_t *page, uint32_t pages, bool mapped)
{
	for (uint32_t i = 0; i < pages; i++)
		if ((page[i] != 0) != mapped)
			return false;
	return true;
}

static void put_pages(uint64_t *page, uint8_t *memory, uint32_t pages)
{
	memset(memory, 0, (size_t)pages << TPT_LOG_PAGE);
	for (uint32_t i = 0; i < pages; i++)
		__atomic_store_n(&page[i],
				 ((uintptr_t)memory + ((uint64_t)i << TPT_LOG_PAGE)) |
					 TPT_PAGE_VALID,
				 __ATOMIC_RELEASE);
}

int tpt_table_map(struct tpt_table *t, uint64_t virt, void *memory, uint32_t pages)
{
	uint64_t *page = directory_at(t, virt);

	ASSERT((uintptr_t)memory % TPT_PAGE_BYTES == 0);
	if (!all_mapped(page, pages, false))
		return -EEXIST;
	put_pages(page, memory, pages);
	return 0;
}

int tpt_table_unmap(struct tpt_table *t, uint64_t virt, uint32_t pages)
{
	uint64_t *page = directory_at(t, virt);

	if (!all_mapped(page, pages, true))
		return -ENOENT;
	for (uint32_t i = 0; i < pages; i++)
		__atomic_store_n(&page[i], 0, __ATOMIC_SEQ_CST);
	return 0;
}

bool tpt_table_read(const struct tpt_table *t, uint32_t index, void *to, uint32_t bytes)
{
	const void *from = tpt_address(t, index);

	if (!from)
		return false;
	memcpy(to, from, bytes);
	return true;
}

bool tpt_table_write(const struct tpt_table *t, uint32_t index, const void *from, uint32_t bytes)
{
	void *to = tpt_address(t, index);

	if (!to)
		return false;
	memcpy(to, from, bytes);
	return true;
}
