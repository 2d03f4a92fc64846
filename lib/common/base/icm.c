/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICM chunks on anonymous memory. Asks the kernel for huge pages if a table is large enough:
 * contexts are looked up by number, at random. Control thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/assert.h"
#include "base/icm.h"

#define HUGE_BYTES ((size_t)2 << 20)

int icm_reserve(struct icm *m, uint32_t entries, uint32_t entry_bytes)
{
	uint64_t bytes = (uint64_t)entries * entry_bytes;
	uint32_t chunks = (uint32_t)((bytes + ICM_CHUNK_BYTES - 1) / ICM_CHUNK_BYTES);
	size_t reserve = (size_t)chunks * ICM_CHUNK_BYTES + HUGE_BYTES;
	void *at = mmap(NULL, reserve, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	*m = (struct icm){.entry_bytes = entry_bytes,
			  .entries = entries,
			  .chunks = chunks,
			  .chunk = calloc(chunks, sizeof(*m->chunk)),
			  .reserved = at,
			  .reserved_bytes = reserve};
	if (!m->chunk) {
		icm_release(m);
		return -ENOMEM;
	}
	m->base = (uint8_t *)(((uintptr_t)at + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	if (bytes >= HUGE_BYTES) /* a hint: small pages do, too */
		(void)madvise(m->base, (size_t)chunks * ICM_CHUNK_BYTES, MADV_HUGEPAGE);
	return 0;
}

void icm_release(struct icm *m)
{
	if (m->reserved)
		munmap(m->reserved, m->reserved_bytes);
	free(m->chunk);
	*m = (struct icm){0};
}

uint32_t icm_entry_first(const struct icm *m, uint32_t chunk)
{
	return (uint32_t)((uint64_t)chunk * ICM_CHUNK_BYTES / m->entry_bytes);
}

uint32_t icm_entry_end(const struct icm *m, uint32_t chunk)
{
	uint64_t last = (((uint64_t)chunk + 1) * ICM_CHUNK_BYTES - 1) / m->entry_bytes;

	return last < m->entries ? (uint32_t)last + 1 : m->entries;
}

bool icm_ready(const struct icm *m, uint32_t index)
{
	return index < m->entries && m->chunk[icm_first(m, index)].mapped &&
	       m->chunk[icm_last(m, index)].mapped;
}

void icm_use(struct icm *m, uint32_t index)
{
	ASSERT(icm_ready(m, index));
	for (uint32_t i = icm_first(m, index); i <= icm_last(m, index); i++)
		m->chunk[i].live++;
}

void icm_leave(struct icm *m, uint32_t index)
{
	for (uint32_t i = icm_first(m, index); i <= icm_last(m, index); i++) {
		ASSERT(m->chunk[i].live > 0);
		m->chunk[i].live--;
	}
}

/* Populates memory before a thread that must not fault touches it. Kernels before 5.14 lack the
 * advice: there the memory, which is unused yet, is written. */
static int icm_populate(uint8_t *at)
{
	if (madvise(at, ICM_CHUNK_BYTES, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -ENOMEM;
	memset(at, 0, ICM_CHUNK_BYTES);
	return 0;
}

int icm_map(struct icm *m, uint32_t chunk)
{
	int err;

	if (m->chunk[chunk].mapped)
		return -EEXIST;
	err = icm_populate(m->base + (size_t)chunk * ICM_CHUNK_BYTES);
	if (err)
		return err;
	__atomic_store_n(&m->chunk[chunk].mapped, true, __ATOMIC_RELAXED);
	__atomic_store_n(&m->mapped, m->mapped + 1, __ATOMIC_RELAXED);
	return 0;
}

int icm_unmap(struct icm *m, uint32_t chunk)
{
	if (!m->chunk[chunk].mapped)
		return -ENOENT;
	if (m->chunk[chunk].live)
		return -EBUSY;
	(void)madvise(m->base + (size_t)chunk * ICM_CHUNK_BYTES, ICM_CHUNK_BYTES, MADV_DONTNEED);
	__atomic_store_n(&m->chunk[chunk].mapped, false, __ATOMIC_RELAXED);
	__atomic_store_n(&m->mapped, m->mapped - 1, __ATOMIC_RELAXED);
	return 0;
}
