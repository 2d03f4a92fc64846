/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on the TPT, passed to VirtToPhys (doc/virt-to-phys.md#commands-of-the-tpt).
 * Control thread.
 */
#include <errno.h>
#include "ceu_priv.h"

/* An entry that gets its memory from work requests starts without any; there are three kinds. A
 * fast registration's may have MTT entries for its pages. */
static bool changing_mpt(const struct mpt_entry *entry)
{
	switch (entry->flags) {
	case MPT_WINDOW_1:
	case MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE:
	case MPT_FAST | MPT_INVALIDATE_REMOTE:
	case MPT_FAST | MPT_INVALIDATE_REMOTE | MPT_OWNS_PAGES:
		return !entry->phys && !entry->start && !entry->length && !entry->access;
	}
	return false;
}

static bool region_mpt(const struct mpt_entry *entry)
{
	return (entry->phys || entry->flags & (MPT_PAGES | MPT_NULL)) &&
	       mpt_access_ok(entry->access, entry->start);
}

enum ceu_status ceu_mpt_make(struct ceu *ceu, uint32_t index, const struct mpt_entry *entry)
{
	if (v2p_index(ceu->config.v2p, entry->key) != index ||
	    !(entry->flags & MPT_CHANGES ? changing_mpt(entry) : region_mpt(entry)))
		return CEU_BAD_PARAM;
	return ceu_status_of(v2p_write_mpt(ceu->config.v2p, entry));
}

enum ceu_status ceu_mpt_free(struct ceu *ceu, uint32_t key)
{
	int err;

	err = v2p_invalidate_mpt(ceu->config.v2p, key);
	if (err == -ENOENT)
		err = -EINVAL; /* a wrong modifier; busy: other entries refer to its memory */
	if (!err)
		ceu_settle(ceu);
	return ceu_status_of(err);
}

enum ceu_status ceu_mtt_write(struct ceu *ceu, uint32_t count, const struct ceu_write_mtt *in)
{
	if (count > CEU_MTT_MAX || in->first > UINT32_MAX)
		return CEU_BAD_PARAM;
	return ceu_status_of(v2p_write_mtt(ceu->config.v2p, (uint32_t)in->first, in->page, count));
}

enum ceu_status ceu_tpt_init(struct ceu *ceu, const struct ceu_init_hca *in)
{
	struct v2p *v = ceu->config.v2p;
	struct v2p_init init = {.mpt_base = in->mpt_base,
				.mtt_base = in->mtt_base,
				.log_mpts = in->log_mpts,
				.log_mtts = in->log_mtts,
				.on_demand = true};

	if (v->open && v2p_close(v)) /* as it was made */
		return ceu_status_of(-EBUSY);
	return ceu_status_of(v2p_init(v, &init));
}

enum ceu_status ceu_tpt_close(struct ceu *ceu)
{
	int err;

	err = v2p_close(ceu->config.v2p);
	if (!err)
		ceu_settle(ceu);
	return ceu_status_of(err);
}

/* Unmaps the first `count` chunks again. */
static void unmap_chunks(struct v2p *v, const struct ceu_map_icm *in, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		v2p_unmap_icm(v, in->chunk[i].virt, CEU_ICM_PAGES);
}

enum ceu_status ceu_tpt_map(struct ceu *ceu, uint32_t count, const struct ceu_map_icm *in)
{
	struct v2p *v = ceu->config.v2p;
	int err = 0;

	if (count == 0 || count > CEU_ICM_MAPS_MAX)
		return CEU_BAD_PARAM;
	for (uint32_t i = 0; i < count && !err; i++) {
		err = in->chunk[i].page == CEU_ICM_PAGES
			      ? v2p_map_icm(v, in->chunk[i].virt, NULL, CEU_ICM_PAGES)
			      : -EINVAL;
		if (err)
			unmap_chunks(v, in, i);
	}
	return ceu_status_of(err);
}

enum ceu_status ceu_tpt_unmap(struct ceu *ceu, const struct ceu_unmap_icm *in)
{
	struct v2p *v = ceu->config.v2p;
	uint64_t at = in->virt, end = at + (uint64_t)in->pages * TPT_PAGE_BYTES;
	int err = v2p_may_unmap_icm(v, in->virt, in->pages);

	if (in->reserved)
		return CEU_BAD_PARAM;
	for (; !err && at < end; at += TPT_CHUNK_BYTES)
		err = v2p_unmap_icm(v, at, CEU_ICM_PAGES);
	return ceu_status_of(err);
}
