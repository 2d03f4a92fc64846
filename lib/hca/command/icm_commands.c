/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CEU's commands on the memory of contexts, MAP_ICM and UNMAP_ICM, and what the driver does
 * with them: maps a chunk when the first context in it is needed, unmaps chunks in which none is
 * left. Control thread.
 */
#include <errno.h>
#include "base/assert.h"
#include "ceu_priv.h"

_Static_assert((int)TPT_CHUNK_PAGES == (int)ICM_CHUNK_PAGES &&
		       (int)TPT_CHUNK_BYTES == (int)ICM_CHUNK_BYTES,
	       "one size of chunks");

struct icm *ceu_area(const struct ceu *ceu, enum ceu_context kind)
{
	switch (kind) {
	case CEU_CONTEXT_QP:
		return &ceu->config.qps->icm;
	case CEU_CONTEXT_SRQ:
		return ceu->config.srqs ? &ceu->config.srqs->icm : NULL;
	case CEU_CONTEXT_CQ:
	case CEU_CONTEXTS:
		break;
	}
	return &ceu->config.completion->icm;
}

static uint64_t base_of(const struct ceu_init_hca *in, enum ceu_context kind)
{
	return kind == CEU_CONTEXT_QP	 ? in->qpc_base
	       : kind == CEU_CONTEXT_SRQ ? in->srqc_base
					 : in->cqc_base;
}

/* The table and the chunk at a virtual address. NULL: there is none. */
static struct icm *chunk_at(const struct ceu *ceu, uint64_t virt, uint32_t *chunk)
{
	for (enum ceu_context kind = CEU_CONTEXT_QP; kind < CEU_CONTEXTS; kind++) {
		struct icm *m = ceu_area(ceu, kind);
		uint64_t offset = virt - base_of(&ceu->init, kind);

		if (m && offset % CEU_ICM_CHUNK_BYTES == 0 &&
		    offset / CEU_ICM_CHUNK_BYTES < m->chunks) {
			*chunk = (uint32_t)(offset / CEU_ICM_CHUNK_BYTES);
			return m;
		}
	}
	return NULL;
}

static enum ceu_status map_one(struct ceu *ceu, uint64_t virt, uint64_t page)
{
	uint32_t chunk;
	struct icm *m = chunk_at(ceu, virt, &chunk);

	if (!m || page != CEU_ICM_PAGES)
		return CEU_BAD_PARAM;
	switch (icm_map(m, chunk)) {
	case 0:
		return CEU_OK;
	case -EEXIST:
		return CEU_BAD_SYS_STATE;
	default:
		return CEU_BAD_NVMEM;
	}
}

static void unmap_one(struct ceu *ceu, uint64_t virt)
{
	uint32_t chunk;
	struct icm *m = chunk_at(ceu, virt, &chunk);

	if (m)
		icm_unmap(m, chunk);
}

/* All or none: chunks mapped just now are not in use yet. */
static enum ceu_status map_contexts(struct ceu *ceu, uint32_t count, const struct ceu_map_icm *in)
{
	enum ceu_status status = CEU_OK;
	uint32_t done;

	if (count == 0 || count > CEU_ICM_MAPS_MAX)
		return CEU_BAD_PARAM;
	for (done = 0; done < count && status == CEU_OK; done++)
		status = map_one(ceu, in->chunk[done].virt, in->chunk[done].page);
	if (status == CEU_OK)
		return CEU_OK;
	for (done--; done > 0; done--)
		unmap_one(ceu, in->chunk[done - 1].virt);
	return status;
}

/* Is no context of that chunk in a list of the data path? None of them is in use. */
static bool unlisted(const struct ceu *ceu, const struct icm *m, uint32_t chunk)
{
	uint32_t first = icm_entry_first(m, chunk), end = icm_entry_end(m, chunk);

	if (m == ceu_area(ceu, CEU_CONTEXT_QP))
		return qp_table_unlisted(ceu->config.qps, first, end);
	if (m == ceu_area(ceu, CEU_CONTEXT_CQ))
		return cq_table_unlisted(ceu->config.completion, first, end);
	return true; /* an SRQ is in none */
}

static enum ceu_status may_unmap(const struct ceu *ceu, uint64_t virt)
{
	uint32_t chunk;
	const struct icm *m = chunk_at(ceu, virt, &chunk);

	if (!m)
		return CEU_BAD_PARAM;
	return m->chunk[chunk].mapped && !m->chunk[chunk].live && unlisted(ceu, m, chunk)
		       ? CEU_OK
		       : CEU_BAD_SYS_STATE;
}

/*
 * No number in the chunk is live, so no module holds one of its contexts for longer than a poll.
 * The first wait ends such polls: a module that was adding a context to a list has done so. If no
 * context is in a list then, a module that has just taken one off a list is done with it after the
 * second wait.
 */
static enum ceu_status unmap_contexts(struct ceu *ceu, const struct ceu_unmap_icm *in)
{
	uint32_t chunks = in->pages / CEU_ICM_PAGES;
	enum ceu_status status = CEU_OK;

	if (chunks == 0 || in->pages % CEU_ICM_PAGES || in->reserved ||
	    in->virt + (uint64_t)chunks * CEU_ICM_CHUNK_BYTES < in->virt)
		return CEU_BAD_PARAM;
	ceu_quiesce(ceu);
	for (uint32_t i = 0; i < chunks && status == CEU_OK; i++)
		status = may_unmap(ceu, in->virt + (uint64_t)i * CEU_ICM_CHUNK_BYTES);
	if (status != CEU_OK)
		return status;
	ceu_quiesce(ceu);
	for (uint32_t i = 0; i < chunks; i++)
		unmap_one(ceu, in->virt + (uint64_t)i * CEU_ICM_CHUNK_BYTES);
	return CEU_OK;
}

/* The part of the modifier that selects the space, contexts or TPT. */
#define ICM_SPACE (0xffu << 24)

enum ceu_status ceu_icm_map(struct ceu *ceu, uint32_t modifier, const struct ceu_map_icm *in)
{
	uint32_t chunks = modifier & ~ICM_SPACE;

	switch (modifier & ICM_SPACE) {
	case CEU_ICM_CONTEXTS:
		return map_contexts(ceu, chunks, in);
	case CEU_ICM_TPT:
		return ceu_tpt_map(ceu, chunks, in);
	default:
		return CEU_BAD_PARAM;
	}
}

enum ceu_status ceu_icm_unmap(struct ceu *ceu, uint32_t modifier, const struct ceu_unmap_icm *in)
{
	switch (modifier) {
	case CEU_ICM_CONTEXTS:
		return unmap_contexts(ceu, in);
	case CEU_ICM_TPT:
		return ceu_tpt_unmap(ceu, in);
	default:
		return CEU_BAD_PARAM;
	}
}

/* Contexts that are not in use may still be in lists of modules, which will visit them once more.
 * Then their memory stays, as before the first mapping. */
void ceu_icm_close(struct ceu *ceu, enum ceu_context kind)
{
	struct icm *m = ceu_area(ceu, kind);

	for (uint32_t i = 0; m && i < m->chunks; i++) {
		const struct ceu_unmap_icm in = {.virt = base_of(&ceu->init, kind) +
							 (uint64_t)i * CEU_ICM_CHUNK_BYTES,
						 .pages = CEU_ICM_PAGES};

		if (m->chunk[i].mapped)
			unmap_contexts(ceu, &in);
	}
}

/* ---- the driver ---- */

enum ceu_status ceu_map_context(struct ceu *ceu, enum ceu_context kind, uint32_t number)
{
	struct icm *m = ceu_area(ceu, kind);
	uint32_t index = m ? number & (m->entries - 1) : 0, count = 0;
	struct ceu_map_icm in;

	if (!m)
		return CEU_BAD_PARAM;
	if (icm_ready(m, index))
		return CEU_OK;
	for (uint32_t i = icm_first(m, index); i <= icm_last(m, index); i++) {
		if (m->chunk[i].mapped)
			continue;
		in.chunk[count].virt =
			base_of(&ceu->init, kind) + (uint64_t)i * CEU_ICM_CHUNK_BYTES;
		in.chunk[count++].page = CEU_ICM_PAGES;
	}
	return ceu_exec(ceu, CEU_MAP_ICM, CEU_ICM_CONTEXTS | count, &in, sizeof(in), NULL, 0);
}

static bool icm_idle(const struct icm *m, uint32_t chunk)
{
	return m->chunk[chunk].mapped && !m->chunk[chunk].live;
}

/* Unmaps a run of chunks in one command, which waits for the data path once, however many they
 * are. */
static uint32_t icm_give_back(struct ceu *ceu, enum ceu_context kind, uint32_t first, uint32_t end)
{
	const struct ceu_unmap_icm in = {.virt = base_of(&ceu->init, kind) +
						 (uint64_t)first * CEU_ICM_CHUNK_BYTES,
					 .pages = (end - first) * CEU_ICM_PAGES};

	if (ceu_exec(ceu, CEU_UNMAP_ICM, CEU_ICM_CONTEXTS, &in, sizeof(in), NULL, 0) == CEU_OK)
		return end - first;
	ceu->may_trim = true; /* one was in a list: try again later */
	return 0;
}

/* One unused chunk stays, so that creating and destroying one object repeatedly does not map and
 * unmap memory each time. */
static uint32_t icm_trim(struct ceu *ceu, enum ceu_context kind)
{
	const struct icm *m = ceu_area(ceu, kind);
	uint32_t given = 0, first = 0, end;

	if (!m)
		return 0;
	while (first < m->chunks && !icm_idle(m, first))
		first++;
	for (first++; first < m->chunks; first = end + 1) {
		for (end = first; end < m->chunks && icm_idle(m, end); end++)
			;
		if (end > first)
			given += icm_give_back(ceu, kind, first, end);
	}
	return given;
}

uint32_t ceu_trim_contexts(struct ceu *ceu)
{
	uint32_t given = 0;

	if (!ceu->may_trim || !ceu->up)
		return 0;
	ceu->may_trim = false;
	for (enum ceu_context kind = CEU_CONTEXT_QP; kind < CEU_CONTEXTS; kind++)
		given += icm_trim(ceu, kind);
	return given;
}

void ceu_context_leave(struct ceu *ceu, enum ceu_context kind, uint32_t index)
{
	struct icm *m = ceu_area(ceu, kind);

	icm_leave(m, index);
	ceu->may_trim |= icm_idle(m, icm_first(m, index)) || icm_idle(m, icm_last(m, index));
}
