/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows and fast-registered regions (IBTA 10.6.7): entries that work requests bind to a
 * registered region's memory and invalidate again. Any lcore, data path; no locks. An operation
 * that finds a cache set held by another lcore is V2P_PENDING and has changed nothing: every change
 * is made to a copy, which is checked and replaces the entry as a whole unless the entry has
 * changed since. Two work requests that change one entry at the same time are their client's
 * mistake: the second is refused.
 *
 * A fast registration of pages in any order is three changes, as its pages lie in the MTT: the
 * entry is claimed, the pages are written, it becomes valid.
 *
 * The memory stays the region's. `bound` counts the entries that refer to it, from before an entry
 * does until after it no longer does; HW2SW_MPT begins by changing that count from 0 to
 * V2P_LEAVING, so that either the region stays or no reference follows. Counting requires the key
 * and the PD of a live region, so no client can block another's.
 */
#include <rte_pause.h>
#include "v2p_priv.h"

#define REMOTE_RIGHTS                                                                              \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL)
#define REMOTE_WRITES (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

/* Adds a reference to a region. False: it is being deregistered. */
static bool parent_hold(struct v2p *v, uint32_t parent)
{
	uint32_t *bound = &v->bound[v2p_index(v, parent)];
	uint32_t n = __atomic_load_n(bound, __ATOMIC_RELAXED);

	do {
		if (n & V2P_LEAVING)
			return false;
	} while (!__atomic_compare_exchange_n(bound, &n, n + 1, true, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return true;
}

void v2p_parent_release(struct v2p *v, uint32_t parent)
{
	if (parent)
		__atomic_fetch_sub(&v->bound[v2p_index(v, parent)], 1, __ATOMIC_SEQ_CST);
}

/* Replaces `old` by the entry, and moves the reference, if any, from the old parent to the new. */
static enum v2p_state window_exchange(struct v2p *v, const struct mpt_entry *old,
				      struct mpt_entry *entry)
{
	enum v2p_state s;

	if (entry->parent && !parent_hold(v, entry->parent))
		return V2P_KEY_ERR;
	s = v2p_entry_replace(v, old->key, entry);
	if (s != V2P_SUCCESS) {
		v2p_parent_release(v, entry->parent);
		return s;
	}
	v2p_parent_release(v, old->parent);
	return V2P_SUCCESS;
}

/* The same entry, invalid and without memory. Not for an ordinary region: a look-up on the short
 * path may have seen its key and be reading the rest. */
static struct mpt_entry emptied(const struct mpt_entry *old)
{
	struct mpt_entry e = *old;

	e.key = 0;
	if (!(e.flags & MPT_CHANGES))
		return e;
	e.flags &= ~(MPT_PAGES | MPT_CLAIMED);
	e.parent = e.qpn = e.rights = 0;
	e.start = e.length = 0;
	e.phys = NULL;
	if (e.flags & MPT_WINDOW)
		e.mtt_first = 0;
	return e;
}

/* The region that a window or registration is to refer to: an ordinary one, of that PD, that allows
 * it. */
static enum v2p_state parent_get(const struct v2p *v, uint32_t key, uint32_t pd,
				 struct mpt_entry *parent)
{
	enum v2p_state s = v2p_entry_try(v, key, parent);

	if (s != V2P_SUCCESS)
		return s;
	if (key == 0 || parent->key != key)
		return V2P_KEY_ERR;
	if (parent->pd != pd)
		return V2P_PD_ERR;
	if (parent->flags & MPT_CHANGES || !(parent->access & ACCESS_MW_BIND) ||
	    parent->access & ACCESS_ZERO_BASED)
		return V2P_FLAGS_ERR;
	return V2P_SUCCESS;
}

static bool window_inside(const struct mpt_entry *m, uint64_t start, uint64_t length)
{
	uint64_t offset = start - m->start;

	return offset <= m->length && length <= m->length - offset;
}

/* ---- windows ---- */

/* Checks the request as such. */
static enum v2p_state bind_judge(const struct mpt_entry *w, const struct v2p_bind *b)
{
	bool type_2 = w->flags & MPT_WINDOW_2;
	uint32_t rights = REMOTE_RIGHTS | (type_2 ? ACCESS_ZERO_BASED : 0);

	if (w->pd != b->pd)
		return V2P_PD_ERR;
	if (type_2 && w->key)
		return V2P_KEY_ERR;
	if (b->access & ~rights)
		return V2P_FLAGS_ERR;
	return type_2 && !b->length ? V2P_LENGTH_ERR : V2P_SUCCESS;
}

/* The window begins `offset` bytes into the region, whose pages it shares: they stay what they are
 * while it is counted there. */
static void lie_over(struct mpt_entry *w, const struct mpt_entry *parent, uint64_t offset)
{
	if (!(parent->flags & MPT_PAGES)) {
		w->phys = parent->phys + offset;
		return;
	}
	w->flags |= MPT_PAGES;
	w->mtt_first = parent->mtt_first;
	w->log_page = parent->log_page;
	w->first_offset = parent->first_offset + offset;
}

/* Checks the bind against the region; *bound is the resulting window. */
static enum v2p_state bind_memory(const struct v2p *v, const struct v2p_bind *b,
				  struct mpt_entry *bound)
{
	struct mpt_entry m;
	enum v2p_state s = parent_get(v, b->parent, b->pd, &m);

	if (s != V2P_SUCCESS)
		return s;
	if (b->access & REMOTE_WRITES && !(m.access & ACCESS_LOCAL_WRITE))
		return V2P_FLAGS_ERR;
	if (!window_inside(&m, b->start, b->length))
		return V2P_LENGTH_ERR;
	bound->key = b->key;
	bound->parent = b->parent;
	bound->qpn = bound->flags & MPT_WINDOW_2 ? b->qpn : 0;
	bound->rights = (uint16_t)(b->access & REMOTE_RIGHTS);
	bound->start = b->access & ACCESS_ZERO_BASED ? 0 : b->start;
	bound->length = b->length;
	lie_over(bound, &m, b->start - m.start);
	return V2P_SUCCESS;
}

enum v2p_state v2p_bind(struct v2p *v, const struct v2p_bind *b)
{
	struct mpt_entry w, bound;
	enum v2p_state s = v2p_entry_try(v, b->key, &w);

	if (s != V2P_SUCCESS)
		return s;
	s = w.flags & MPT_WINDOW ? bind_judge(&w, b) : V2P_KEY_ERR;
	if (s != V2P_SUCCESS)
		return s;
	bound = emptied(&w);
	if (b->length)
		s = bind_memory(v, b, &bound);
	return s == V2P_SUCCESS ? window_exchange(v, &w, &bound) : s;
}

/* ---- fast registration ---- */

/* The number of pages that the region needs; 0: invalid. */
static uint64_t pages_needed(const struct v2p_registration *r)
{
	uint64_t page = 1ull << r->log_page, first = r->iova & (page - 1);

	if (r->length == 0 || r->iova + r->length < r->iova || r->length > UINT64_MAX - 2 * page)
		return 0;
	return (first + r->length + page - 1) >> r->log_page;
}

/* Where a page of the parent's memory lies; the parent's own pages may be smaller, but it must be
 * in one piece. V2P_SUCCESS, V2P_LENGTH_ERR, V2P_PENDING. */
static enum v2p_state page_find(struct v2p_port *port, const struct mpt_entry *parent, uint64_t va,
				uint64_t bytes, uint64_t *address)
{
	uint64_t offset = va - parent->start, run;

	if (va & (bytes - 1) || !window_inside(parent, va, bytes))
		return V2P_LENGTH_ERR;
	*address = (uintptr_t)parent->phys + offset; /* of one without pages */
	if (!(parent->flags & MPT_PAGES))
		return V2P_SUCCESS;
	for (uint64_t at = 0; at < bytes; at += run) {
		uint8_t *piece = NULL;
		enum v2p_state s = mtt_map(port, parent, offset + at, bytes - at, &piece, &run);

		if (s != V2P_SUCCESS)
			return s;
		if (at == 0)
			*address = (uintptr_t)piece;
		else if ((uintptr_t)piece != *address + at)
			return V2P_LENGTH_ERR;
	}
	return V2P_SUCCESS;
}

/* The lcore does nothing else while it reads the parent's pages, so their number is bounded. */
static bool too_many(const struct v2p_registration *r, const struct mpt_entry *parent)
{
	return parent->flags & MPT_PAGES && r->log_page > parent->log_page &&
	       (uint64_t)r->pages << (r->log_page - parent->log_page) > V2P_FAST_PARENT_PAGES_MAX;
}

/* The same for all pages. */
static enum v2p_state pages_find(struct v2p_port *port, const struct v2p_registration *r,
				 const struct mpt_entry *parent, uint64_t *address)
{
	enum v2p_state s = too_many(r, parent) ? V2P_LENGTH_ERR : V2P_SUCCESS;

	for (uint32_t i = 0; i < r->pages && s == V2P_SUCCESS; i++)
		s = page_find(port, parent, r->page[i], 1ull << r->log_page, &address[i]);
	return s;
}

static bool one_piece(const struct v2p_registration *r, const uint64_t *address)
{
	for (uint32_t i = 1; i < r->pages; i++)
		if (address[i] != address[0] + ((uint64_t)i << r->log_page))
			return false;
	return true;
}

/* Can the entry's part of the MTT take them? */
static bool pages_fit(const struct mpt_entry *f, const struct v2p_registration *r,
		      const uint64_t *address)
{
	if (!(f->flags & MPT_OWNS_PAGES))
		return false;
	for (uint32_t i = 0; i < r->pages; i++)
		if (address[i] & (TPT_PAGE_BYTES - 1))
			return false;
	return true;
}

static enum v2p_state registration_judge(const struct mpt_entry *f,
					 const struct v2p_registration *r)
{
	if (f->pd != r->pd)
		return V2P_PD_ERR;
	if (f->key || f->flags & MPT_CLAIMED)
		return V2P_KEY_ERR;
	if (r->access & ~(uint32_t)(REMOTE_RIGHTS | ACCESS_LOCAL_WRITE) ||
	    !mpt_access_ok(r->access, r->iova))
		return V2P_FLAGS_ERR;
	if (r->log_page < V2P_LOG_PAGE_MIN || r->log_page > V2P_LOG_PAGE_MAX || r->pages == 0 ||
	    r->pages > UINT8_MAX || r->pages != pages_needed(r))
		return V2P_LENGTH_ERR;
	if (f->flags & MPT_OWNS_PAGES && r->pages > f->pages_max)
		return V2P_LENGTH_ERR;
	return V2P_SUCCESS;
}

/* The new entry, except for its memory. */
static struct mpt_entry registered(const struct mpt_entry *f, const struct v2p_registration *r)
{
	struct mpt_entry e = emptied(f);

	e.key = r->key;
	e.parent = r->parent;
	e.rights = (uint16_t)(r->access | V2P_LOCAL_READ);
	e.start = r->iova;
	e.length = r->length;
	e.log_page = r->log_page;
	return e;
}

/* Releases the claim. */
static enum v2p_state window_finish(struct v2p *v, const struct mpt_entry *claimed,
				    struct mpt_entry *entry)
{
	enum v2p_state s;

	while ((s = window_exchange(v, claimed, entry)) == V2P_PENDING)
		rte_pause();
	return s;
}

/* Through the MTT: from the claim on, only we write its entries there; HW2SW_MPT may still remove
 * the entry, but does not reuse them before this lcore's poll is over. */
static enum v2p_state register_pages(struct v2p *v, const struct mpt_entry *f,
				     struct mpt_entry *made, const uint64_t *address,
				     uint32_t pages)
{
	struct mpt_entry claimed = *f, empty;
	enum v2p_state s;

	claimed.flags |= MPT_CLAIMED;
	claimed.parent = made->parent;
	s = window_exchange(v, f, &claimed);
	if (s != V2P_SUCCESS)
		return s;
	made->flags |= MPT_PAGES;
	made->version = claimed.version = f->version + 1;
	if (mtt_put(v, f->mtt_first, address, pages))
		return window_finish(v, &claimed, made);
	empty = emptied(&claimed);
	window_finish(v, &claimed, &empty);
	return V2P_LENGTH_ERR;
}

enum v2p_state v2p_fast_register(struct v2p_port *port, const struct v2p_registration *r)
{
	uint64_t address[UINT8_MAX], in_page;
	struct v2p *v = port->v2p;
	struct mpt_entry f, m, made;
	enum v2p_state s = v2p_entry_try(v, r->key, &f);

	if (s != V2P_SUCCESS)
		return s;
	s = f.flags & MPT_FAST ? registration_judge(&f, r) : V2P_KEY_ERR;
	if (s == V2P_SUCCESS)
		s = parent_get(v, r->parent, r->pd, &m);
	if (s != V2P_SUCCESS)
		return s;
	if (r->access & ACCESS_LOCAL_WRITE && !(m.access & ACCESS_LOCAL_WRITE))
		return V2P_FLAGS_ERR;
	s = pages_find(port, r, &m, address);
	if (s != V2P_SUCCESS)
		return s;
	made = registered(&f, r);
	in_page = r->iova & ((1ull << r->log_page) - 1);
	if (one_piece(r, address)) {
		made.phys = (uint8_t *)(uintptr_t)(address[0] + in_page);
		return window_exchange(v, &f, &made);
	}
	made.first_offset = in_page;
	return pages_fit(&f, r, address) ? register_pages(v, &f, &made, address, r->pages)
					 : V2P_LENGTH_ERR;
}

/* ---- both ---- */

enum v2p_state v2p_invalidate(struct v2p *v, uint32_t pd, uint32_t qpn, uint32_t key)
{
	struct mpt_entry old, empty;
	enum v2p_state s = v2p_entry_try(v, key, &old);

	if (s != V2P_SUCCESS)
		return s;
	if (key == 0 || old.key != key)
		return V2P_KEY_ERR;
	if (old.pd != pd)
		return V2P_PD_ERR;
	if (!(old.flags & MPT_INVALIDATE_REMOTE))
		return V2P_FLAGS_ERR;
	if (old.flags & MPT_WINDOW_2 && old.qpn != qpn)
		return V2P_PD_ERR;
	empty = emptied(&old);
	return window_exchange(v, &old, &empty);
}

enum v2p_state changing_check(const struct mpt_entry *m, const struct v2p_access *a,
			      uint64_t *offset)
{
	uint32_t rights = a->rights & ~(V2P_RELATIVE | V2P_CHECK_ONLY);
	uint64_t va = a->va + (a->rights & V2P_RELATIVE ? m->start : 0);

	if (a->key == 0 || m->key != a->key)
		return V2P_KEY_ERR;
	if (m->pd != a->pd || (m->flags & MPT_WINDOW_2 && m->qpn != a->qpn))
		return V2P_PD_ERR;
	if ((m->rights & rights) != rights)
		return V2P_FLAGS_ERR;
	*offset = va - m->start;
	return window_inside(m, va, a->length) ? V2P_SUCCESS : V2P_LENGTH_ERR;
}

/* For a region with its own MTT entries: did the pages read there belong to it throughout? If not,
 * its key was invalid for a time, whatever it is now. A window's pages are its region's, which
 * stays. */
enum v2p_state changing_still(const struct v2p *v, const struct mpt_entry *m)
{
	struct mpt_entry now;
	enum v2p_state s;

	if (!(m->flags & MPT_OWNS_PAGES))
		return V2P_SUCCESS;
	s = v2p_entry_try(v, m->key, &now);
	return s == V2P_SUCCESS && now.version != m->version ? V2P_KEY_ERR : s;
}

enum v2p_state v2p_may_become(const struct v2p *v, uint32_t key)
{
	struct mpt_entry m;
	enum v2p_state s = key ? v2p_entry_try(v, key, &m) : V2P_KEY_ERR;

	return s != V2P_SUCCESS || m.flags & MPT_FAST ? s : V2P_KEY_ERR;
}
