/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on the TPT: what goes to VirtToPhys (seed 004 5.1). Control thread.
 */
#include <errno.h>
#include "ceu_priv.h"

/* One that work requests give its memory has none to begin with; there are three kinds of it. */
static bool changing_mpt(const struct mpt_entry *entry)
{
	switch (entry->flags) {
	case MPT_WINDOW_1:
	case MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE:
	case MPT_FAST | MPT_INVALIDATE_REMOTE:
		return !entry->phys && !entry->start && !entry->length && !entry->access;
	}
	return false;
}

static bool region_mpt(const struct mpt_entry *entry)
{
	const uint32_t rights = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
				ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND | ACCESS_ZERO_BASED;

	if (!entry->phys || entry->access & ~rights)
		return false;
	if (entry->access & ACCESS_ZERO_BASED && entry->start)
		return false;
	return !(entry->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) ||
	       entry->access & ACCESS_LOCAL_WRITE;
}

enum ceu_status ceu_mpt_make(struct ceu *ceu, uint32_t index, const struct mpt_entry *entry)
{
	if ((entry->key & ceu->config.v2p->mask) != index ||
		!(entry->flags & MPT_CHANGES ? changing_mpt(entry) : region_mpt(entry)))
		return CEU_BAD_PARAM;
	return ceu_status_of(v2p_write_mpt(ceu->config.v2p, entry));
}

enum ceu_status ceu_mpt_free(struct ceu *ceu, uint32_t key)
{
	int err = v2p_invalidate_mpt(ceu->config.v2p, key);

	if (err) /* busy: something lies over its memory */
		return err == -EBUSY ? CEU_BAD_SYS_STATE : CEU_BAD_PARAM;
	ceu_settle(ceu);
	return CEU_OK;
}

enum ceu_status ceu_tpt_init(struct ceu *ceu, const struct ceu_init_hca *in)
{
	(void)ceu;
	(void)in;
	return CEU_OK;
}

enum ceu_status ceu_tpt_close(struct ceu *ceu)
{
	(void)ceu;
	return CEU_OK;
}

enum ceu_status ceu_icm_map_tpt(struct ceu *ceu, uint32_t count, const struct ceu_map_icm *in)
{
	(void)ceu;
	(void)count;
	(void)in;
	return CEU_BAD_OP;
}

enum ceu_status ceu_icm_unmap_tpt(struct ceu *ceu, const struct ceu_unmap_icm *in)
{
	(void)ceu;
	(void)in;
	return CEU_BAD_OP;
}
