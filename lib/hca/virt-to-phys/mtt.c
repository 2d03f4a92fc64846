/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MTT (doc/virt-to-phys.md#mtt): addresses of the pages of entries that are not contiguous.
 * Look-ups on any lcore, changes by the CEU on the control thread; a fast registration's own
 * entries are changed on the work request's lcore. Pages that are consecutive in memory are
 * returned as one piece.
 */
#include <errno.h>
#include <rte_common.h>
#include <rte_pause.h>
#include "v2p_priv.h"

#define MTT_ADDRESS_MASK (~(uint64_t)(TPT_PAGE_BYTES - 1))

uint64_t mtt_pages(const struct mpt_entry *m)
{
	uint64_t bytes = m->first_offset + m->length;

	return (bytes >> m->log_page) + ((bytes & ((1ull << m->log_page) - 1)) != 0);
}

/* A cursor over entries: their lines are read once each. */
struct cursor {
	struct v2p_port *port;
	uint32_t line; /* that `words` holds; UINT32_MAX: none */
	uint64_t words[MTT_WORDS];
};

/* Address of the page at an index; 0: none, or another state than success. */
static enum v2p_state page_at(struct cursor *c, uint32_t index, uint64_t *address)
{
	struct tpt_cache *cache = &c->port->v2p->mtt_cache;
	uint32_t line = index / MTT_WORDS;
	enum v2p_state s = V2P_SUCCESS;

	if (line != c->line)
		s = tpt_try(c->port, cache, line, c->words, true, COUNTER_v2p_mtt_misses);
	*address = 0;
	if (s != V2P_SUCCESS)
		return s == V2P_PENDING ? s : V2P_LENGTH_ERR;
	c->line = line;
	if (!(c->words[index % MTT_WORDS] & MTT_PRESENT))
		return V2P_LENGTH_ERR;
	*address = c->words[index % MTT_WORDS] & MTT_ADDRESS_MASK;
	return V2P_SUCCESS;
}

enum v2p_state mtt_map(struct v2p_port *port, const struct mpt_entry *m, uint64_t offset,
		       uint64_t length, uint8_t **addr, uint64_t *run)
{
	uint64_t page_bytes = 1ull << m->log_page, at = m->first_offset + offset;
	uint64_t in_page = at & (page_bytes - 1), first, next;
	uint32_t index = m->mtt_first + (uint32_t)(at >> m->log_page);
	struct cursor c = {.port = port, .line = UINT32_MAX};
	enum v2p_state s = page_at(&c, index, &first);
	uint64_t bytes = page_bytes - in_page;

	if (s != V2P_SUCCESS)
		return s;
	for (uint32_t i = 1; i < V2P_RUN_PAGES_MAX && bytes < length; i++) {
		s = page_at(&c, index + i, &next);
		if (s != V2P_SUCCESS || next != first + i * page_bytes)
			break;
		bytes += page_bytes;
	}
	*addr = (uint8_t *)(uintptr_t)(first + in_page);
	*run = RTE_MIN(bytes, length);
	return V2P_SUCCESS;
}

/* Writes what lies in one line: a write miss merges with what memory holds. False: there is none.
 * `entries` NULL: no pages. */
static bool mtt_write_line(struct v2p *v, struct counters *counters, uint32_t first,
			   const uint64_t *entries, uint32_t count)
{
	struct tpt_hold hold;
	uint64_t words[MTT_WORDS];
	bool there;

	while (!tpt_take(&v->mtt_cache, first / MTT_WORDS, counters, &hold))
		rte_pause();
	there = tpt_match(&hold, words) != TPT_NOWHERE;
	if (there) {
		for (uint32_t i = 0; i < count; i++)
			words[first % MTT_WORDS + i] =
				entries && entries[i] ? entries[i] | MTT_PRESENT : 0;
		tpt_write(&hold, words);
	}
	tpt_release(&hold);
	v2p_changed(v);
	return there;
}

static uint32_t in_line(uint32_t index, uint64_t count)
{
	return (uint32_t)RTE_MIN(count, (uint64_t)(MTT_WORDS - index % MTT_WORDS));
}

/* A request of the CEU: line by line. */
static void mtt_write_lines(struct v2p *v, uint32_t first, const uint64_t *pages, uint64_t count)
{
	while (count) {
		uint32_t n = in_line(first, count);

		mtt_write_line(v, v->ceu.counters, first, pages, n);
		first += n;
		pages = pages ? pages + n : NULL;
		count -= n;
	}
}

int v2p_write_mtt(struct v2p *v, uint32_t first, const uint64_t *pages, uint32_t count)
{
	int err;

	if (!v->open || count > v->mtt.entries || first > v->mtt.entries - count)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (pages[i] & ~MTT_ADDRESS_MASK)
			return -EINVAL;
	err = icm_need(v, &v->mtt, first, count);
	if (!err)
		mtt_write_lines(v, first, pages, count);
	return err;
}

void mtt_clear(struct v2p *v, const struct mpt_entry *m)
{
	mtt_write_lines(v, m->mtt_first, NULL, m->flags & MPT_FAST ? m->pages_max : mtt_pages(m));
}

bool mtt_put(struct v2p *v, uint32_t first, const uint64_t *pages, uint32_t count)
{
	bool there = true;

	while (count && there) {
		uint32_t n = in_line(first, count);

		there = mtt_write_line(v, NULL, first, pages, n);
		first += n;
		pages += n;
		count -= n;
	}
	return there;
}
