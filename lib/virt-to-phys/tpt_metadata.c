/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory protection table and its changes (seed 004 5.4). Control thread, but for whole entries
 * read and replaced on the data path; readers on other lcores see an entry whole or not at all: the
 * key is written last and cleared first, and what else may change under their hands is read under
 * its version.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <rte_memzone.h>
#include <rte_pause.h>
#include "v2p_priv.h"

int v2p_create(struct v2p *v, const char *name, uint32_t mpts, int socket)
{
	char zone_name[RTE_MEMZONE_NAMESIZE];

	snprintf(zone_name, sizeof(zone_name), "%s_mpt", name);
	*v = (struct v2p){.mpts = mpts, .mask = mpts - 1};
	v->zone = rte_memzone_reserve_aligned(zone_name, (size_t)mpts * sizeof(struct mpt_entry),
		socket, RTE_MEMZONE_SIZE_HINT_ONLY, sizeof(struct mpt_entry));
	v->bound = calloc(mpts, sizeof(*v->bound)); /* touched where windows are used */
	if (!v->zone || !v->bound) {
		v2p_destroy(v);
		return -ENOMEM;
	}
	v->mpt = v->zone->addr;
	return 0;
}

void v2p_destroy(struct v2p *v)
{
	if (v->zone)
		rte_memzone_free(v->zone);
	free(v->bound);
	*v = (struct v2p){0};
}

/* In the midst of a change from `version` on. False: somebody else is, or was. */
static bool change_begin(struct mpt_entry *m, uint32_t version)
{
	return !(version & 1) && __atomic_compare_exchange_n(&m->version, &version, version + 1,
					 false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void change_end(struct mpt_entry *m)
{
	__atomic_store_n(&m->version, m->version + 1, __ATOMIC_RELEASE);
}

/* The control thread's: the data path is in the midst of a change for some stores, no longer. */
static void change_wait(struct mpt_entry *m)
{
	while (!change_begin(m, __atomic_load_n(&m->version, __ATOMIC_ACQUIRE)))
		rte_pause();
}

int v2p_write_mpt(struct v2p *v, const struct mpt_entry *entry)
{
	struct mpt_entry *m = &v->mpt[entry->key & v->mask];
	bool changes = entry->flags & MPT_CHANGES;

	if (entry->key == 0 || entry->start + entry->length < entry->start ||
		entry->flags & ~MPT_FLAGS)
		return -EINVAL;
	if (m->owned != 0)
		return -EEXIST;
	change_wait(m);
	__atomic_store_n(&v->bound[entry->key & v->mask], 0, __ATOMIC_RELEASE);
	__atomic_store_n(&m->pd, entry->pd, __ATOMIC_RELAXED);
	__atomic_store_n(
		&m->access, changes ? 0 : entry->access | V2P_LOCAL_READ, __ATOMIC_RELAXED);
	__atomic_store_n(&m->flags, entry->flags, __ATOMIC_RELAXED);
	__atomic_store_n(&m->start, entry->start, __ATOMIC_RELAXED);
	__atomic_store_n(&m->length, entry->length, __ATOMIC_RELAXED);
	__atomic_store_n(&m->phys, entry->phys, __ATOMIC_RELAXED);
	__atomic_store_n(&m->mtt_first, entry->mtt_first, __ATOMIC_RELAXED);
	__atomic_store_n(&m->log_page, entry->log_page, __ATOMIC_RELAXED);
	__atomic_store_n(&m->parent, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->qpn, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->rights, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&m->owned, entry->key, __ATOMIC_RELEASE);
	__atomic_store_n(&m->key, changes ? 0 : entry->key, __ATOMIC_RELEASE);
	change_end(m);
	return 0;
}

int v2p_invalidate_mpt(struct v2p *v, uint32_t key)
{
	struct mpt_entry *m = &v->mpt[key & v->mask];
	uint32_t none = 0, parent;

	if (key == 0 || m->owned != key)
		return -ENOENT;
	if (!__atomic_compare_exchange_n(&v->bound[key & v->mask], &none, V2P_LEAVING, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return -EBUSY;
	change_wait(m);
	__atomic_store_n(&m->key, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&m->owned, 0, __ATOMIC_RELEASE);
	parent = m->parent;
	change_end(m);
	v2p_parent_release(v, parent);
	return 0;
}

/* Is it owned, under these bits of the key? */
static bool is_owned(const struct mpt_entry *m, uint32_t key)
{
	uint32_t owned = __atomic_load_n(&m->owned, __ATOMIC_ACQUIRE);

	return owned && !((owned ^ key) & ~MPT_KEY_TAG);
}

bool v2p_entry_get(const struct v2p *v, uint32_t key, struct mpt_entry *copy)
{
	const struct mpt_entry *m = &v->mpt[key & v->mask];
	uint32_t version = __atomic_load_n(&m->version, __ATOMIC_ACQUIRE);

	if (version & 1 || !is_owned(m, key))
		return false;
	*copy = (struct mpt_entry){
		.key = __atomic_load_n(&m->key, __ATOMIC_ACQUIRE),
		.pd = __atomic_load_n(&m->pd, __ATOMIC_ACQUIRE),
		.access = __atomic_load_n(&m->access, __ATOMIC_ACQUIRE),
		.flags = __atomic_load_n(&m->flags, __ATOMIC_ACQUIRE),
		.start = __atomic_load_n(&m->start, __ATOMIC_ACQUIRE),
		.length = __atomic_load_n(&m->length, __ATOMIC_ACQUIRE),
		.phys = __atomic_load_n(&m->phys, __ATOMIC_ACQUIRE),
		.mtt_first = __atomic_load_n(&m->mtt_first, __ATOMIC_ACQUIRE),
		.owned = __atomic_load_n(&m->owned, __ATOMIC_ACQUIRE),
		.version = version,
		.parent = __atomic_load_n(&m->parent, __ATOMIC_ACQUIRE),
		.qpn = __atomic_load_n(&m->qpn, __ATOMIC_ACQUIRE),
		.rights = __atomic_load_n(&m->rights, __ATOMIC_ACQUIRE),
		.log_page = __atomic_load_n(&m->log_page, __ATOMIC_ACQUIRE),
	};
	return __atomic_load_n(&m->version, __ATOMIC_RELAXED) == version;
}

bool v2p_entry_replace(struct v2p *v, uint32_t expected_key, const struct mpt_entry *entry)
{
	struct mpt_entry *m = &v->mpt[entry->owned & v->mask];

	if (__atomic_load_n(&m->key, __ATOMIC_RELAXED) != expected_key ||
		!change_begin(m, entry->version))
		return false;
	__atomic_store_n(&m->key, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&m->start, entry->start, __ATOMIC_RELEASE);
	__atomic_store_n(&m->length, entry->length, __ATOMIC_RELEASE);
	__atomic_store_n(&m->phys, entry->phys, __ATOMIC_RELEASE);
	__atomic_store_n(&m->parent, entry->parent, __ATOMIC_RELEASE);
	__atomic_store_n(&m->qpn, entry->qpn, __ATOMIC_RELEASE);
	__atomic_store_n(&m->rights, entry->rights, __ATOMIC_RELEASE);
	__atomic_store_n(&m->log_page, entry->log_page, __ATOMIC_RELEASE);
	__atomic_store_n(&m->key, entry->key, __ATOMIC_RELEASE);
	change_end(m);
	return true;
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
