/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory protection table and its changes (seed 004 5.4). Control thread, but for the one
 * change that peers may make; readers on other lcores see an entry whole or not at all: the key is
 * written last and cleared first.
 */
#include <errno.h>
#include <stdio.h>
#include <rte_memzone.h>
#include "virt-to-phys/v2p.h"

int v2p_create(struct v2p *v, const char *name, uint32_t mpts, int socket)
{
	char zone_name[RTE_MEMZONE_NAMESIZE];

	snprintf(zone_name, sizeof(zone_name), "%s_mpt", name);
	*v = (struct v2p){.mpts = mpts, .mask = mpts - 1};
	v->zone = rte_memzone_reserve_aligned(zone_name, (size_t)mpts * sizeof(struct mpt_entry),
		socket, RTE_MEMZONE_SIZE_HINT_ONLY, sizeof(struct mpt_entry));
	if (!v->zone)
		return -ENOMEM;
	v->mpt = v->zone->addr;
	return 0;
}

void v2p_destroy(struct v2p *v)
{
	if (v->zone)
		rte_memzone_free(v->zone);
	*v = (struct v2p){0};
}

int v2p_write_mpt(struct v2p *v, const struct mpt_entry *entry)
{
	struct mpt_entry *m = &v->mpt[entry->key & v->mask];

	if (entry->key == 0 || entry->start + entry->length < entry->start ||
		entry->flags & ~MPT_INVALIDATE_REMOTE)
		return -EINVAL;
	if (m->owned != 0)
		return -EEXIST;
	m->owned = entry->key;
	m->pd = entry->pd;
	m->access = entry->access;
	m->flags = entry->flags;
	m->start = entry->start;
	m->length = entry->length;
	m->phys = entry->phys;
	m->mtt_first = entry->mtt_first;
	m->log_page = entry->log_page;
	__atomic_store_n(&m->key, entry->key, __ATOMIC_RELEASE);
	return 0;
}

int v2p_invalidate_mpt(struct v2p *v, uint32_t key)
{
	struct mpt_entry *m = &v->mpt[key & v->mask];

	if (key == 0 || m->owned != key)
		return -ENOENT;
	__atomic_store_n(&m->key, 0, __ATOMIC_SEQ_CST);
	m->owned = 0;
	return 0;
}

enum v2p_state v2p_invalidate_remote(struct v2p *v, uint32_t pd, uint32_t key)
{
	struct mpt_entry *m = &v->mpt[key & v->mask];
	uint32_t expected = key;

	if (key == 0 || __atomic_load_n(&m->key, __ATOMIC_ACQUIRE) != key)
		return V2P_KEY_ERR;
	if (m->pd != pd)
		return V2P_PD_ERR;
	if (!(m->flags & MPT_INVALIDATE_REMOTE))
		return V2P_FLAGS_ERR;
	/* A key is not used again before every lcore has polled: what was read belongs to it. */
	if (!__atomic_compare_exchange_n(
		    &m->key, &expected, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return V2P_KEY_ERR;
	return V2P_SUCCESS;
}

void v2p_count_error(struct counters *c, enum v2p_state s)
{
	switch (s) {
	case V2P_SUCCESS:
	case V2P_PENDING:
		return;
	case V2P_KEY_ERR:
		count(c, COUNTER_v2p_key_error);
		return;
	case V2P_PD_ERR:
		count(c, COUNTER_v2p_pd_error);
		return;
	case V2P_FLAGS_ERR:
		count(c, COUNTER_v2p_flags_error);
		return;
	case V2P_LENGTH_ERR:
		count(c, COUNTER_v2p_length_error);
		return;
	}
}
