/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TPTMetaData's directories (seed 004 5.3): pages behind ICM addresses. Commands on the control
 * thread; entries are read and written by whoever holds their set of the cache, on any lcore.
 *
 * The tables of transitions are tptmdata.def, and, for mptm_proc and mttm_proc each, tptm_ceu.def
 * and tptm_entry.def.
 */
#include <errno.h>
#include <string.h>
#include <rte_malloc.h>
#include "base/assert.h"
#include "pipeline/machine.h"
#include "virt-to-phys/tpt_metadata.h"

enum tptmdata {
#define STATE(id, text) TPTMDATA_##id,
#include "tptmdata.def"
};
#define MACHINE	      tptmdata_machine
#define MACHINE_NAME  "tptmdata"
#define MACHINE_ID(s) TPTMDATA_##s
#define MACHINE_DEF   "tptmdata.def"
#include "pipeline/machine_define.h"

enum tptm_ceu {
#define STATE(id, text) TPTM_##id,
#include "tptm_ceu.def"
};
#define MACHINE	      mptm_ceu_machine
#define MACHINE_NAME  "mptm_proc, CEU"
#define MACHINE_ID(s) TPTM_##s
#define MACHINE_DEF   "tptm_ceu.def"
#include "pipeline/machine_define.h"
#define MACHINE	      mttm_ceu_machine
#define MACHINE_NAME  "mttm_proc, CEU"
#define MACHINE_ID(s) TPTM_##s
#define MACHINE_DEF   "tptm_ceu.def"
#include "pipeline/machine_define.h"

enum tptm_entry {
#define STATE(id, text) TPTM_ENTRY_##id,
#include "tptm_entry.def"
};
#define MACHINE	      mptm_machine
#define MACHINE_NAME  "mptm_proc, MPT"
#define MACHINE_ID(s) TPTM_ENTRY_##s
#define MACHINE_DEF   "tptm_entry.def"
#include "pipeline/machine_define.h"
#define MACHINE	      mttm_machine
#define MACHINE_NAME  "mttm_proc, MTT"
#define MACHINE_ID(s) TPTM_ENTRY_##s
#define MACHINE_DEF   "tptm_entry.def"
#include "pipeline/machine_define.h"

static void ceu_step(const struct tpt_table *t, enum tptm_ceu from, enum tptm_ceu to)
{
	if (t->log_entry == TPT_LOG_MPT_ENTRY)
		MACHINE_STEP(mptm_ceu_machine, from, to);
	else
		MACHINE_STEP(mttm_ceu_machine, from, to);
}

static void entry_step(const struct tpt_table *t, enum tptm_entry from, enum tptm_entry to)
{
	if (t->log_entry == TPT_LOG_MPT_ENTRY)
		MACHINE_STEP(mptm_machine, from, to);
	else
		MACHINE_STEP(mttm_machine, from, to);
}

static void command_begins(const struct tpt_table *t)
{
	MACHINE_STEP(tptmdata_machine, TPTMDATA_IDLE, TPTMDATA_PROC);
	ceu_step(t, TPTM_CEU_IDLE, TPTM_CEU_ACCESS);
}

static void command_ends(const struct tpt_table *t, enum tptm_ceu state)
{
	ceu_step(t, state, TPTM_CEU_IDLE);
	MACHINE_STEP(tptmdata_machine, TPTMDATA_PROC, TPTMDATA_IDLE);
}

int tpt_table_create(
	struct tpt_table *t, const char *name, uint32_t entries_max, uint8_t log_entry, int socket)
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
	command_begins(t);
	t->base = base;
	t->entries = entries;
	command_ends(t, TPTM_CEU_ACCESS);
}

void tpt_table_close(struct tpt_table *t)
{
	command_begins(t);
	for (uint64_t i = 0; i < tpt_table_bytes(t) >> TPT_LOG_PAGE; i++)
		__atomic_store_n(&t->pages[i], 0, __ATOMIC_SEQ_CST);
	t->entries = 0;
	command_ends(t, TPTM_CEU_ACCESS);
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
			((uintptr_t)memory + ((uint64_t)i << TPT_LOG_PAGE)) | TPT_PAGE_VALID,
			__ATOMIC_RELEASE);
}

int tpt_table_map(struct tpt_table *t, uint64_t virt, void *memory, uint32_t pages)
{
	uint64_t *page = directory_at(t, virt);

	ASSERT((uintptr_t)memory % TPT_PAGE_BYTES == 0);
	command_begins(t);
	if (!all_mapped(page, pages, false)) {
		command_ends(t, TPTM_CEU_ACCESS);
		return -EEXIST;
	}
	ceu_step(t, TPTM_CEU_ACCESS, TPTM_CEU_PAYLOAD);
	put_pages(page, memory, pages);
	command_ends(t, TPTM_CEU_PAYLOAD);
	return 0;
}

int tpt_table_unmap(struct tpt_table *t, uint64_t virt, uint32_t pages)
{
	uint64_t *page = directory_at(t, virt);
	bool mapped = all_mapped(page, pages, true);

	command_begins(t);
	for (uint32_t i = 0; mapped && i < pages; i++)
		__atomic_store_n(&page[i], 0, __ATOMIC_SEQ_CST);
	command_ends(t, TPTM_CEU_ACCESS);
	return mapped ? 0 : -ENOENT;
}

/* Where a line lies; NULL: no page is mapped there. Whoever gets an address calls entry_done(). */
static void *entry_access(const struct tpt_table *t, uint32_t index)
{
	void *at;

	MACHINE_STEP(tptmdata_machine, TPTMDATA_IDLE, TPTMDATA_PROC);
	entry_step(t, TPTM_ENTRY_IDLE, TPTM_ENTRY_ACCESS);
	at = tpt_address(t, index);
	entry_step(t, TPTM_ENTRY_ACCESS, at ? TPTM_ENTRY_DMA_REQ : TPTM_ENTRY_IDLE);
	if (!at)
		MACHINE_STEP(tptmdata_machine, TPTMDATA_PROC, TPTMDATA_IDLE);
	return at;
}

static void entry_done(const struct tpt_table *t)
{
	entry_step(t, TPTM_ENTRY_DMA_REQ, TPTM_ENTRY_IDLE);
	MACHINE_STEP(tptmdata_machine, TPTMDATA_PROC, TPTMDATA_IDLE);
}

bool tpt_table_read(const struct tpt_table *t, uint32_t index, void *to, uint32_t bytes)
{
	const void *from = entry_access(t, index);

	if (!from)
		return false;
	memcpy(to, from, bytes);
	entry_done(t);
	return true;
}

bool tpt_table_write(const struct tpt_table *t, uint32_t index, const void *from, uint32_t bytes)
{
	void *to = entry_access(t, index);

	if (!to)
		return false;
	memcpy(to, from, bytes);
	entry_done(t);
	return true;
}
