/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's half of ICM (doc/virt-to-phys.md#tptmetadata): finds a chunk of memory when the
 * first entry in it is written, and maps it as MAP_ICM does. Control thread. Memory from EAL's
 * heap, which without hugepages is touched only where it is used.
 */
#include <errno.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include "v2p_priv.h"

int icm_map_own(struct v2p *v, struct tpt_table *t, uint64_t virt)
{
	void *memory = rte_malloc_socket("icm", TPT_CHUNK_BYTES, TPT_PAGE_BYTES, v->socket);
	int err;

	if (!memory)
		return -ENOMEM;
	err = tpt_table_map(t, virt, memory, TPT_CHUNK_PAGES);
	if (err)
		rte_free(memory);
	else
		v->chunk[v->chunks++] = memory;
	return err;
}

int icm_need(struct v2p *v, struct tpt_table *t, uint64_t first, uint64_t count)
{
	uint64_t at = first << t->log_entry & ~(uint64_t)(TPT_PAGE_BYTES - 1);

	for (; at < (first + count) << t->log_entry; at += TPT_PAGE_BYTES) {
		int err = -ENOENT;

		if (tpt_address(t, (uint32_t)(at >> t->log_entry)))
			continue;
		if (v->on_demand)
			err = icm_map_own(v, t, t->base + (at & ~(uint64_t)(TPT_CHUNK_BYTES - 1)));
		if (err)
			return err;
	}
	return 0;
}

void icm_free(struct v2p *v, const void *memory)
{
	for (uint32_t i = 0; i < v->chunks; i++) {
		if (memory && v->chunk[i] != memory)
			continue;
		rte_free(v->chunk[i]);
		v->chunk[i--] = v->chunk[--v->chunks];
	}
}
