/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on memory regions (MRs): which bytes of which pieces, and
 * where VirtToPhys finds them. An MR whose bytes follow one another in the daemon has a direct
 * entry; any other is a list of pages in the MTT, of the largest size that its memory allows
 * (doc/virt-to-phys.md#mtt). All that a request says is the client's word. Control thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rte_common.h>
#include "mrs.h"
#include "objects.h"
#include "pieces.h"
#include "session.h"

enum { PAGE_LOG = 12, LARGEST_LOG = 30 };
#define POPULATE_BYTES_MAX     (64ull << 20)
#define POPULATE_AT_ONCE_BYTES (2ull << 20) /* of all of its ranges: others wait meanwhile */

/* ---- runs ---- */

int run_add_runs(struct call *call)
{
	const struct control_runs *in = call->body;
	struct client *client = call->client;
	uint32_t count = client->run_count + in->count;
	int rc;

	if (in->reserved || in->count == 0 || in->count > CONTROL_RUNS_MAX)
		return -EINVAL;
	if (count > client->run_room) {
		uint32_t room = client->run_room ? client->run_room * 2 : 4 * CONTROL_RUNS_MAX;
		struct control_run *more = realloc(client->runs, room * sizeof(more[0]));

		if (!more)
			return -ENOMEM;
		client->runs = more;
		client->run_room = room;
	}
	rc = share_take(&client->shares, SHARE_ranges, in->count);
	if (rc)
		return rc;
	memcpy(client->runs + client->run_count, in->run, in->count * sizeof(in->run[0]));
	client->run_count = count;
	return 0;
}

/* Drops the runs of ADD_RUNS. */
static void forget_runs(struct client *client)
{
	free(client->runs);
	client->runs = NULL;
	share_give(&client->shares, SHARE_ranges, client->run_count);
	client->run_count = client->run_room = 0;
}

static bool mr_follows(const struct extent *last, const struct extent *next)
{
	return last->piece == next->piece && last->offset + last->bytes == next->offset;
}

/* One more run, which must lie in a piece that the client has. 0, -ENOENT, -EINVAL. */
static int take_run(struct client *client, const struct control_run *run, struct mr_memory *m)
{
	struct extent next = {.piece = object_find(client, OBJECT_PIECE, run->piece),
			      .offset = run->offset,
			      .bytes = run->bytes};

	if (!next.piece)
		return -ENOENT;
	if (run->reserved || run->bytes == 0 || run->offset > next.piece->mapping.bytes ||
	    run->bytes > next.piece->mapping.bytes - run->offset ||
	    run->bytes > UINT64_MAX - m->length)
		return -EINVAL;
	m->length += run->bytes;
	if (m->count && mr_follows(&m->extents[m->count - 1], &next))
		m->extents[m->count - 1].bytes += next.bytes;
	else
		m->extents[m->count++] = next;
	return 0;
}

/* The runs of earlier messages, and this one's. 0, -errno: *m is empty. */
static int take_runs(struct client *client, const struct control_mr *in, struct mr_memory *m)
{
	uint32_t count = client->run_count + in->count;
	int rc = 0;

	m->extents = calloc(count ? count : 1, sizeof(m->extents[0]));
	if (!m->extents)
		return -ENOMEM;
	for (uint32_t i = 0; i < client->run_count && !rc; i++)
		rc = take_run(client, &client->runs[i], m);
	for (uint32_t i = 0; i < in->count && !rc; i++)
		rc = take_run(client, &in->run[i], m);
	forget_runs(client);
	if (!rc)
		rc = share_take(&client->shares, SHARE_ranges, m->count);
	if (rc) {
		free(m->extents);
		*m = (struct mr_memory){0};
	}
	return rc;
}

/* ---- pages ---- */

static uint8_t *address_of(const struct extent *x)
{
	return x->piece->mapping.base + x->offset;
}

/* Contiguous, or how large its pages may be: a power of two that divides the address of each break,
 * as the MR counts from its first page and in the daemon. 0, -EINVAL: none of 4 KiB or more. A
 * break is where an extent does not follow the one before it, even if it lies where it would
 * without that one: no page reaches beyond the extents that it begins in and that follow it. */
static int find_page_size(struct mr_memory *m)
{
	uint8_t *first = m->count ? address_of(&m->extents[0]) : NULL;
	uintptr_t end = (uintptr_t)first; /* of the extent before */
	uint64_t before = 0, breaks = 0;

	if (!m->count)
		return 0; /* no bytes */
	for (uint32_t i = 0; i < m->count; i++) {
		uintptr_t at = (uintptr_t)address_of(&m->extents[i]);

		if (at != end)
			breaks |= at | ((uintptr_t)first + before);
		before += m->extents[i].bytes;
		end = at + m->extents[i].bytes;
	}
	m->phys = breaks ? NULL : first;
	if (!breaks)
		return 0;
	if (__builtin_ctzll(breaks) < PAGE_LOG)
		return -EINVAL;
	m->log_page = (uint8_t)RTE_MIN(__builtin_ctzll(breaks), (int)LARGEST_LOG);
	return 0;
}

static uint64_t first_offset(const struct mr_memory *m)
{
	return (uintptr_t)address_of(&m->extents[0]) & ((1ull << m->log_page) - 1);
}

static uint64_t pages_of(const struct mr_memory *m)
{
	uint64_t page = 1ull << m->log_page;

	return (first_offset(m) + m->length + page - 1) >> m->log_page;
}

int mtt_take(struct client *client, uint32_t pages, struct mr_memory *m)
{
	struct device *d = client->device;
	uint32_t size = mtt_space_size(pages);

	if (!size || share_take(&client->shares, SHARE_mtts, size))
		return -ENOSPC;
	if (!mtt_space_take(&d->mtts, size, &m->mtt_first)) {
		share_give(&client->shares, SHARE_mtts, size);
		return -ENOSPC;
	}
	m->mtt_size = size;
	return 0;
}

/* The address of each page of the MR, into its MTT entries. 0, -errno. */
static int write_pages(const struct client *client, const struct mr_memory *m)
{
	static struct ceu_write_mtt out;
	const uint64_t page = 1ull << m->log_page, in_page = first_offset(m), pages = pages_of(m);
	const struct extent *x = m->extents;
	uint64_t before = 0; /* bytes of the MR in front of x */
	uint32_t n = 0;
	int rc = 0;

	for (uint64_t i = 0; i < pages && !rc; i++) {
		uint64_t at = i ? (i << m->log_page) - in_page : 0;

		while (at - before >= x->bytes)
			before += x++->bytes;
		out.page[n++] = ((uintptr_t)address_of(x) + (at - before)) & ~(page - 1);
		if (n < CEU_MTT_MAX && i + 1 < pages)
			continue;
		out.first = m->mtt_first + i + 1 - n;
		rc = client_command(client, CEU_WRITE_MTT, n, &out, sizeof(out));
		n = 0;
	}
	return rc;
}

/* ---- an MR's memory ---- */

void mr_memory_drop(struct client *client, struct mr_memory *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		m->extents[i].piece->object.users--;
		piece_deregister(m->extents[i].piece, m->extents[i].bytes);
	}
	share_give(&client->shares, SHARE_ranges, m->count);
	free(m->extents);
	if (m->mtt_size) {
		mtt_space_put(&client->device->mtts, m->mtt_first, m->mtt_size);
		share_give(&client->shares, SHARE_mtts, m->mtt_size);
	}
	*m = (struct mr_memory){0};
}

/* 0; -ENOMEM: *m has only the extents that the client may register. */
static int hold_pieces(struct client *client, struct mr_memory *m)
{
	int rc = 0;

	for (uint32_t i = 0; i < m->count; i++) {
		rc = piece_register(m->extents[i].piece, m->extents[i].bytes);
		if (rc) {
			share_give(&client->shares, SHARE_ranges, m->count - i);
			m->count = i;
		} else {
			m->extents[i].piece->object.users++;
		}
	}
	return rc;
}

/* Takes the memory that a request names and keeps it. 0, -errno: *m is empty. */
static int memory_take(struct client *client, const struct control_mr *in, struct mr_memory *m)
{
	uint64_t pages;
	int rc = take_runs(client, in, m);

	if (rc)
		return rc;
	rc = hold_pieces(client, m);
	if (!rc)
		rc = m->length > CONTROL_PIECE_BYTES_MAX ? -EINVAL : find_page_size(m);
	if (!rc && m->log_page) {
		pages = pages_of(m);
		rc = pages > UINT32_MAX ? -ENOSPC : mtt_take(client, (uint32_t)pages, m);
	}
	if (rc)
		mr_memory_drop(client, m);
	return rc;
}

/* May an MR with these rights lie there? 0, -ENOENT, -EINVAL, -EFAULT. */
static int mr_check(struct client *client, const struct control_mr *in, const struct mr_memory *m)
{
	if (!object_find(client, OBJECT_PD, in->pd))
		return -ENOENT;
	if (!mpt_access_ok(in->access, in->iova) || in->iova + m->length < in->iova)
		return -EINVAL;
	if (in->access & ACCESS_LOCAL_WRITE) /* without it there is no remote write either */
		for (uint32_t i = 0; i < m->count; i++)
			if (m->extents[i].piece->read_only)
				return -EFAULT;
	return 0;
}

/* Populates those pages that the client has brought in, which it does beforehand if it wants to
 * spare the data path the faults. */
static void mr_populate(const struct mr_memory *m)
{
	if (m->length > POPULATE_BYTES_MAX)
		return;
	for (uint32_t i = 0; i < m->count; i++)
		piece_populate(m->extents[i].piece, m->extents[i].offset, m->extents[i].bytes,
			       m->length <= POPULATE_AT_ONCE_BYTES);
}

/* Applies *in to the MR and gives it to the CEU. 0; -errno: the CEU has no entry. */
static int mr_enter(struct mr *mr, const struct control_mr *in)
{
	struct client *client = mr->object.client;
	const struct mr_memory *m = &mr->memory;
	struct mpt_entry e = {.pd = in->pd,
			      .access = in->access,
			      .start = in->iova,
			      .length = m->length,
			      .phys = m->phys};
	int rc = 0;

	mr->pd = object_find(client, OBJECT_PD, in->pd);
	mr->iova = in->iova;
	mr->access = in->access;
	if (!m->length) {
		e.flags = MPT_NULL;
	} else if (m->log_page) {
		e.flags = MPT_PAGES | MPT_OWNS_PAGES;
		e.log_page = m->log_page;
		e.first_offset = first_offset(m);
		e.mtt_first = m->mtt_first;
		rc = write_pages(client, m);
	}
	return rc ? rc : mpt_write(&mr->object, e);
}

/* ---- requests ---- */

static int reg_mr(struct client *client, const struct control_mr *in, struct mr_memory *m,
		  struct control_mr_reply *out)
{
	struct mr *mr;
	int rc = mr_check(client, in, m);

	if (rc)
		return rc;
	mr = object_make(client, OBJECT_MR, sizeof(*mr), &rc);
	if (!mr)
		return rc;
	mr->memory = *m;
	rc = mr_enter(mr, in);
	if (rc) {
		mr->memory = (struct mr_memory){0};
		object_drop(&mr->object);
		return rc;
	}
	mr->pd->object.users++;
	mr_populate(m);
	out->lkey = out->rkey = mr->object.number;
	return 0;
}

static bool mr_well_formed(const struct control_mr *in)
{
	return !in->reserved && in->count <= CONTROL_RUNS_MAX;
}

int run_reg_mr(struct call *call)
{
	const struct control_mr *in = call->body;
	struct client *client = call->client;
	struct mr_memory m = {0};
	int rc = mr_well_formed(in) ? memory_take(client, in, &m) : -EINVAL;

	forget_runs(client);
	if (!rc)
		rc = reg_mr(client, in, &m, call->reply);
	if (rc)
		mr_memory_drop(client, &m);
	return rc;
}

int run_dereg_mr(struct call *call)
{
	int rc;
	struct mr *mr = object_named(call, OBJECT_MR, &rc);

	if (rc)
		return rc;
	rc = mpt_invalidate(&mr->object);
	if (rc)
		return rc;
	mr->pd->object.users--;
	object_drop(&mr->object);
	return 0;
}

/* The wanted properties, completed by those that stay. */
static struct control_mr changed(const struct mr *mr, const struct control_rereg_mr *in)
{
	struct control_mr to = {
		.pd = mr->pd->object.number, .iova = mr->iova, .access = mr->access};

	if (in->mask & REREG_TRANSLATION)
		to.iova = in->mr.iova;
	if (in->mask & REREG_PD)
		to.pd = in->mr.pd;
	if (in->mask & REREG_ACCESS)
		to.access = in->mr.access;
	return to;
}

/* For a moment between the old memory and the new, the key names nothing. Leaves in *m the memory
 * that the MR no longer uses. */
static int rereg(struct mr *mr, const struct control_rereg_mr *in, struct mr_memory *m)
{
	bool moves = in->mask & REREG_TRANSLATION;
	struct control_mr to = changed(mr, in);
	struct mr_memory before = mr->memory;
	int rc = mr_check(mr->object.client, &to, moves ? m : &before);

	if (!rc)
		rc = mpt_invalidate(&mr->object);
	if (rc)
		return rc;
	if (moves) {
		mr->memory = *m;
		*m = before;
	}
	mr->pd->object.users--;
	rc = mr_enter(mr, &to);
	mr->pd->object.users++;
	mr_populate(&mr->memory);
	return rc;
}

/* 0, or what is wrong with the request as such. */
static int rereg_judge(const struct mr *mr, const struct control_rereg_mr *in)
{
	const uint32_t all = REREG_TRANSLATION | REREG_PD | REREG_ACCESS;

	if (!mr)
		return -ENOENT;
	if (!mr->memory.extents || !(in->mask & all) || in->mask & ~all || !mr_well_formed(&in->mr))
		return -EINVAL;
	return mr->object.users ? -EBUSY : 0;
}

int run_rereg_mr(struct call *call)
{
	const struct control_rereg_mr *in = call->body;
	struct control_mr_reply *out = call->reply;
	struct client *client = call->client;
	struct mr *mr = object_find(client, OBJECT_MR, in->lkey);
	struct mr_memory m = {0};
	int rc = rereg_judge(mr, in);

	if (!rc && in->mask & REREG_TRANSLATION)
		rc = memory_take(client, &in->mr, &m);
	forget_runs(client);
	if (!rc) {
		rc = rereg(mr, in, &m);
		out->lkey = out->rkey = mr->object.number;
	}
	mr_memory_drop(client, &m);
	return rc;
}

uint8_t *queue_memory(const struct client *client, const struct mr *mr, uint64_t va, uint64_t bytes,
		      uint32_t align)
{
	uint64_t offset = va - mr->iova;

	if (mr->pd != client->queue_pd || !mr->memory.phys || !(mr->access & ACCESS_LOCAL_WRITE))
		return NULL;
	if (va < mr->iova || offset > mr->memory.length || bytes > mr->memory.length - offset)
		return NULL;
	if (va % align || (uintptr_t)(mr->memory.phys + offset) % align)
		return NULL;
	return mr->memory.phys + offset;
}
