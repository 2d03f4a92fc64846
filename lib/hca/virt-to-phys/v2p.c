/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VirtToPhys as a whole: creates and destroys its tables and caches, and executes the commands on
 * TPTMetaData (ceu_tptm_proc: INIT_HCA, CLOSE_HCA, MAP_ICM, UNMAP_ICM). Control thread, except
 * v2p_count_error().
 */
#include <errno.h>
#include <stdlib.h>
#include <rte_malloc.h>
#include "v2p_priv.h"

static uint64_t chunks_of(const struct tpt_table *t)
{
	return tpt_chunk_bytes(t->entries_max, t->log_entry) / TPT_CHUNK_BYTES;
}

static int make_parts(struct v2p *v, const struct v2p_config *c)
{
	int err = tpt_table_create(&v->mpt, c->name, c->mpts, TPT_LOG_MPT_ENTRY, c->socket);

	if (!err)
		err = tpt_table_create(&v->mtt, c->name, c->mtts, TPT_LOG_MTT_ENTRY, c->socket);
	if (!err)
		err = tpt_cache_create(&v->mpt_cache, c->name, c->mpt_cache_lines, MPT_WORDS,
				       &v->mpt, c->socket);
	if (!err)
		err = tpt_cache_create(&v->mtt_cache, c->name, c->mtt_cache_lines, MTT_WORDS,
				       &v->mtt, c->socket);
	if (err)
		return err;
	v->chunk = rte_zmalloc_socket(c->name,
				      (chunks_of(&v->mpt) + chunks_of(&v->mtt)) * sizeof(*v->chunk),
				      0, c->socket);
	v->live = rte_zmalloc_socket(c->name, chunks_of(&v->mpt) * sizeof(*v->live), 0, c->socket);
	v->bound =
		calloc(v->mpt.entries_max, sizeof(*v->bound)); /* touched where windows are used */
	v->written = calloc(v->mpt.entries_max, sizeof(*v->written)); /* and where entries are */
	v->zeroes = rte_zmalloc_socket(c->name, 2 * V2P_NULL_BYTES, 64, c->socket);
	v->sink = v->zeroes ? v->zeroes + V2P_NULL_BYTES : NULL;
	return v->chunk && v->live && v->bound && v->written && v->zeroes ? 0 : -ENOMEM;
}

static bool v2p_power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static bool v2p_config_valid(const struct v2p_config *c)
{
	return v2p_power_of_two(c->mpts) && v2p_power_of_two(c->mtts) && c->mtts >= MTT_WORDS &&
	       v2p_power_of_two(c->mpt_cache_lines) && v2p_power_of_two(c->mtt_cache_lines);
}

int v2p_create(struct v2p *v, const struct v2p_config *c)
{
	struct v2p_init init = {.on_demand = true};
	int err;

	*v = (struct v2p){.socket = c->socket};
	if (!v2p_config_valid(c))
		return -EINVAL;
	v->ceu = (struct v2p_port){.v2p = v, .counters = c->counters};
	init.mtt_base = tpt_chunk_bytes(c->mpts, TPT_LOG_MPT_ENTRY);
	init.log_mpts = (uint8_t)__builtin_ctz(c->mpts);
	init.log_mtts = (uint8_t)__builtin_ctz(c->mtts);
	err = make_parts(v, c);
	if (!err)
		err = v2p_init(v, &init);
	if (err)
		v2p_destroy(v);
	return err;
}

void v2p_destroy(struct v2p *v)
{
	icm_free(v, NULL);
	rte_free(v->chunk);
	rte_free(v->live);
	rte_free(v->zeroes);
	free(v->bound);
	free(v->written);
	tpt_cache_destroy(&v->mpt_cache);
	tpt_cache_destroy(&v->mtt_cache);
	tpt_table_destroy(&v->mpt);
	tpt_table_destroy(&v->mtt);
	*v = (struct v2p){0};
}

static bool overlaps(const struct tpt_table *a, const struct tpt_table *b)
{
	return a->base < b->base + tpt_table_bytes(b) && b->base < a->base + tpt_table_bytes(a);
}

/* Is this layout of the tables possible? */
static int init_judge(const struct v2p *v, const struct v2p_init *in)
{
	struct tpt_table mpt = v->mpt, mtt = v->mtt;

	if (v->open)
		return -EBUSY;
	if (in->log_mpts > 31 || 1u << in->log_mpts > mpt.entries_max || in->log_mtts > 31 ||
	    1u << in->log_mtts > mtt.entries_max || 1u << in->log_mtts < MTT_WORDS)
		return -EINVAL;
	mpt.entries = 1u << in->log_mpts;
	mtt.entries = 1u << in->log_mtts;
	mpt.base = in->mpt_base;
	mtt.base = in->mtt_base;
	if (mpt.base % TPT_CHUNK_BYTES || mtt.base % TPT_CHUNK_BYTES ||
	    mpt.base > UINT64_MAX - tpt_table_bytes(&mpt) ||
	    mtt.base > UINT64_MAX - tpt_table_bytes(&mtt) || overlaps(&mpt, &mtt))
		return -EINVAL;
	return 0;
}

int v2p_init(struct v2p *v, const struct v2p_init *in)
{
	int err = init_judge(v, in);

	if (err)
		return err;
	tpt_table_open(&v->mpt, in->mpt_base, 1u << in->log_mpts);
	tpt_table_open(&v->mtt, in->mtt_base, 1u << in->log_mtts);
	v->mpts = v->mpt.entries;
	__atomic_store_n(&v->mask, v->mpts - 1, __ATOMIC_RELAXED);
	v->on_demand = in->on_demand;
	v->open = true;
	return 0;
}

static void close_table(struct tpt_table *t, struct tpt_cache *c)
{
	uint32_t entries = t->entries;

	/* A cache of pages that were never mapped is empty: looking at all of it would make it
	 * resident. */
	if (tpt_table_close(t))
		tpt_drop(c, 0, entries);
}

static bool v2p_in_use(const struct v2p *v)
{
	for (uint32_t i = 0; i < chunks_of(&v->mpt); i++)
		if (v->live[i])
			return true;
	return false;
}

int v2p_close(struct v2p *v)
{
	if (!v->open || v2p_in_use(v))
		return -EBUSY;
	close_table(&v->mpt, &v->mpt_cache);
	close_table(&v->mtt, &v->mtt_cache);
	v2p_changed(v);
	icm_free(v, NULL);
	v->open = false;
	return 0;
}

static const struct tpt_table *v2p_table_of(const struct v2p *v, uint64_t virt, uint32_t pages)
{
	if (!v->open || pages == 0 || pages % TPT_CHUNK_PAGES || virt % TPT_CHUNK_BYTES)
		return NULL;
	if (tpt_table_has(&v->mpt, virt, pages))
		return &v->mpt;
	return tpt_table_has(&v->mtt, virt, pages) ? &v->mtt : NULL;
}

static struct tpt_table *writable(struct v2p *v, const struct tpt_table *t)
{
	return t == &v->mpt ? &v->mpt : &v->mtt;
}

int v2p_map_icm(struct v2p *v, uint64_t virt, void *memory, uint32_t pages)
{
	const struct tpt_table *t = v2p_table_of(v, virt, pages);

	if (!t || (uintptr_t)memory % TPT_PAGE_BYTES || pages != TPT_CHUNK_PAGES)
		return -EINVAL;
	return memory ? tpt_table_map(writable(v, t), virt, memory, pages)
		      : icm_map_own(v, writable(v, t), virt);
}

int v2p_may_unmap_icm(const struct v2p *v, uint64_t virt, uint32_t pages)
{
	const struct tpt_table *t = v2p_table_of(v, virt, pages);

	if (!t)
		return -EINVAL;
	for (uint32_t i = 0; i < pages / TPT_CHUNK_PAGES; i++) {
		uint64_t at = virt - t->base + (uint64_t)i * TPT_CHUNK_BYTES;

		if (!tpt_address(t, (uint32_t)(at >> t->log_entry)))
			return -ENOENT;
		if (t == &v->mpt && v->live[at / TPT_CHUNK_BYTES])
			return -EBUSY;
	}
	return 0;
}

int v2p_unmap_icm(struct v2p *v, uint64_t virt, uint32_t pages)
{
	int err = pages == TPT_CHUNK_PAGES ? v2p_may_unmap_icm(v, virt, pages) : -EINVAL;
	const struct tpt_table *t = v2p_table_of(v, virt, pages);
	uint32_t first;
	void *memory;

	if (err)
		return err;
	first = (uint32_t)((virt - t->base) >> t->log_entry);
	memory = tpt_address(t, first);
	err = tpt_table_unmap(writable(v, t), virt, pages);
	if (err)
		return err;
	tpt_drop(t == &v->mpt ? &v->mpt_cache : &v->mtt_cache, first,
		 TPT_CHUNK_BYTES >> t->log_entry);
	v2p_changed(v);
	icm_free(v, memory);
	return 0;
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
