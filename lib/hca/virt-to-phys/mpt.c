/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPT (doc/virt-to-phys.md#mpt): creates and removes entries (CEU), replaces them as a whole
 * (data path), and looks them up when the short path of v2p_request() does not suffice. Any lcore
 * unless said otherwise.
 */
#include <errno.h>
#include <rte_pause.h>
#include "base/assert.h"
#include "v2p_priv.h"

bool v2p_map_second(struct v2p_port *port, const struct v2p_access *a, uint8_t **addr)
{
	const struct tpt_cache *c = &port->v2p->mpt_cache;
	uint32_t n = v2p_index(port->v2p, a->key) & c->set_mask, seq;
	const struct mpt_entry *m = (const struct mpt_entry *)mpt_lines(c, n) + 1;
	struct tpt_set *s = &c->sets[n];

	seq = __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE);
	return mpt_is(m, a->key) && mpt_allows(port, m, s, 1, seq, a, addr);
}

/* A read miss: select and replace with what memory holds, which is not dirty. */
static enum tpt_result mpt_refill(struct v2p_port *port, const struct tpt_cache *c, uint32_t line,
				  uint64_t *out, enum counter miss)
{
	struct tpt_hold hold;
	enum tpt_result r;

	if (!tpt_take(c, line, port->counters, &hold))
		return TPT_BUSY;
	r = tpt_match(&hold, out);
	if (r == TPT_MISS) {
		tpt_replace(&hold, out, false);
		count(port->counters, miss);
	}
	tpt_release(&hold);
	return r;
}

enum v2p_state tpt_try(struct v2p_port *port, const struct tpt_cache *c, uint32_t line,
		       uint64_t *out, bool may_refill, enum counter miss)
{
	enum tpt_result r = tpt_read(c, line, out);

	if (r == TPT_MISS && may_refill)
		r = mpt_refill(port, c, line, out, miss);
	else if (r == TPT_MISS)
		r = TPT_BUSY;
	return r == TPT_NOWHERE ? V2P_KEY_ERR : r == TPT_BUSY ? V2P_PENDING : V2P_SUCCESS;
}

enum v2p_state mpt_try(struct v2p_port *port, uint32_t key, uint64_t *words, bool may_refill)
{
	struct v2p *v = port->v2p;
	uint32_t index = v2p_index(v, key);

	if (!may_refill)
		__builtin_prefetch(tpt_address(&v->mpt, index));
	return tpt_try(port, &v->mpt_cache, index, words, may_refill, COUNTER_v2p_mpt_misses);
}

/* ---- changes ---- */

/* Takes the set of an index. The control thread waits: a holder is finished after a few stores. */
static void take_waiting(struct v2p *v, uint32_t index, struct tpt_hold *hold)
{
	while (!tpt_take(&v->mpt_cache, index, v->ceu.counters, hold))
		rte_pause();
}

static bool in_mtt(const struct v2p *v, const struct mpt_entry *m, uint64_t pages)
{
	return pages <= v->mtt.entries && m->mtt_first <= v->mtt.entries - pages;
}

static bool entry_valid(const struct v2p *v, const struct mpt_entry *m)
{
	if (!(m->key & ~MPT_KEY_TAG) || m->start + m->length < m->start || m->flags & ~MPT_FLAGS)
		return false;
	if (m->flags & MPT_CHANGES && m->flags & MPT_PAGES)
		return false;
	if (m->flags & MPT_NULL)
		return m->flags == MPT_NULL &&
		       (m->length == 0 || !(m->access & ~(uint32_t)ACCESS_LOCAL_WRITE));
	if (!(m->flags & MPT_PAGES))
		return !(m->flags & MPT_OWNS_PAGES) ||
		       (m->flags & MPT_FAST && m->pages_max && in_mtt(v, m, m->pages_max));
	if (m->log_page < V2P_LOG_PAGE_MIN || m->log_page > V2P_LOG_PAGE_MAX)
		return false;
	if (m->first_offset + m->length < m->length)
		return false;
	return in_mtt(v, m, mtt_pages(m));
}

int v2p_write_mpt(struct v2p *v, const struct mpt_entry *entry)
{
	uint32_t index = v2p_index(v, entry->key);
	union mpt_line old, new = {.entry = *entry};
	bool changes = entry->flags & MPT_CHANGES;
	uint32_t plain = entry->flags & MPT_NOT_PLAIN ? 0 : V2P_PLAIN;
	struct tpt_hold hold;
	int err;

	if (!v->open || !entry_valid(v, entry))
		return -EINVAL;
	new.entry.key = changes ? 0 : entry->key;
	new.entry.access = changes ? 0 : entry->access | V2P_LOCAL_READ | plain;
	new.entry.parent = new.entry.qpn = new.entry.rights = 0;
	if (!(entry->flags & MPT_OWNS_PAGES))
		new.entry.pages_max = 0;
	err = icm_need(v, &v->mpt, index, 1);
	if (err)
		return err;
	take_waiting(v, index, &hold);
	tpt_match(&hold, old.words);
	if (old.entry.owned == 0) {
		new.entry.owned = entry->key;
		new.entry.version = old.entry.version + 1;
		__atomic_store_n(&v->written[index],
				 __atomic_load_n(&v->generation, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
		__atomic_store_n(&v->bound[index], 0, __ATOMIC_RELEASE);
		tpt_write(&hold, new.words);
		v->live[index / V2P_CHUNK_MPTS]++;
	} else {
		err = -EEXIST;
	}
	tpt_release(&hold);
	v2p_changed(v);
	return err;
}

/* Takes the entry away, if it is owned under this key; *old is what it was. */
static bool take_away(struct v2p *v, uint32_t key, struct mpt_entry *old)
{
	union mpt_line m, none = {.words = {0}};
	struct tpt_hold hold;
	bool found;

	take_waiting(v, v2p_index(v, key), &hold);
	found = tpt_match(&hold, m.words) != TPT_NOWHERE && m.entry.owned == key;
	if (found) {
		none.entry.version = m.entry.version + 1;
		tpt_write(&hold, none.words);
		*old = m.entry;
	}
	tpt_release(&hold);
	v2p_changed(v);
	return found;
}

int v2p_invalidate_mpt(struct v2p *v, uint32_t key)
{
	struct mpt_entry old;
	uint32_t none = 0;

	if (key == 0 || !v->open || !v2p_entry_get(v, key, &old) || old.owned != key)
		return -ENOENT;
	if (!__atomic_compare_exchange_n(&v->bound[v2p_index(v, key)], &none, V2P_LEAVING, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return -EBUSY;
	if (!take_away(v, key, &old))
		return -ENOENT;
	v2p_parent_release(v, old.parent);
	v->live[v2p_index(v, key) / V2P_CHUNK_MPTS]--;
	if (old.flags & MPT_OWNS_PAGES)
		mtt_clear(v, &old);
	return 0;
}

enum v2p_state v2p_entry_try(const struct v2p *v, uint32_t key, struct mpt_entry *copy)
{
	uint32_t index = v2p_index(v, key);
	union mpt_line m;
	enum tpt_result r = tpt_read(&v->mpt_cache, index, m.words);
	struct tpt_hold hold;

	if (r == TPT_MISS && tpt_take(&v->mpt_cache, index, NULL, &hold)) {
		r = tpt_match(&hold, m.words);
		tpt_release(&hold);
	} else if (r != TPT_HIT) {
		return V2P_PENDING;
	}
	if (r == TPT_NOWHERE || m.entry.owned == 0 || (m.entry.owned ^ key) & ~MPT_KEY_TAG)
		return V2P_KEY_ERR;
	*copy = m.entry;
	return V2P_SUCCESS;
}

bool v2p_entry_get(const struct v2p *v, uint32_t key, struct mpt_entry *copy)
{
	enum v2p_state s;

	while ((s = v2p_entry_try(v, key, copy)) == V2P_PENDING)
		rte_pause();
	return s == V2P_SUCCESS;
}

enum v2p_state v2p_entry_replace(struct v2p *v, uint32_t expected_key,
				 const struct mpt_entry *entry)
{
	union mpt_line old, new = {.entry = *entry};
	struct tpt_hold hold;
	bool same;

	if (!tpt_take(&v->mpt_cache, v2p_index(v, entry->owned), NULL, &hold))
		return V2P_PENDING;
	same = tpt_match(&hold, old.words) != TPT_NOWHERE && old.entry.owned == entry->owned &&
	       old.entry.key == expected_key && old.entry.version == entry->version;
	new.entry.version++;
	if (same)
		tpt_write(&hold, new.words);
	tpt_release(&hold);
	v2p_changed(v);
	return same ? V2P_SUCCESS : V2P_KEY_ERR;
}
