/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the daemon maps as well: sealed memfds, one region and one piece each.
 * softhca_alloc() gets a separate region; queues share larger ones. Memory regions (MRs) are
 * registered in the former, and in regions of the program's own memory (shared.c). Any thread,
 * never on the data path.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "context.h"
#include "regions.h"
#include "shared.h"

enum { CHUNK_PAGES = 512, HUGE_BYTES = 2 << 20 };

int sealed_memory(size_t bytes, void **addr)
{
	int fd = memfd_create("softhca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	*addr = MAP_FAILED;
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		*addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*addr != MAP_FAILED) {
		/* A hint for where shmem_enabled is `advise`; whole pages, or it would cost one. */
		if (bytes >= HUGE_BYTES)
			(void)madvise(*addr, bytes & ~(size_t)(HUGE_BYTES - 1), MADV_HUGEPAGE);
		if (madvise(*addr, bytes, MADV_POPULATE_WRITE)) /* before Linux 5.14 */
			(void)region_populate(*addr, bytes);
		return fd;
	}
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* Registers the whole memfd with the daemon as a piece. 0, -errno. */
static int own_piece(struct softhca_context *ctx, struct region *r, int fd)
{
	const struct control_piece in = {.bytes = r->bytes};
	struct control_number out = {0};
	int rc = ctx_call(ctx, CONTROL_ADD_PIECE, &in, sizeof(in), &out, sizeof(out), fd, NULL);

	r->own.number = out.number;
	return rc;
}

/* A new region of that many bytes, whole pages. NULL with *err. context.lock is held. */
static struct region *region_new(struct softhca_context *ctx, size_t bytes, int *err)
{
	struct region *r = calloc(1, sizeof(*r) + sizeof(r->parts[0]));
	void *addr;
	int fd;

	*err = -ENOMEM;
	if (!r)
		return NULL;
	fd = sealed_memory(bytes, &addr);
	if (fd < 0) {
		*err = -errno;
		free(r);
		return NULL;
	}
	r->addr = addr;
	r->bytes = bytes;
	r->parts = (struct region_part *)(r + 1);
	r->parts[0] = (struct region_part){.piece = &r->own, .bytes = bytes};
	r->count = 1;
	*err = own_piece(ctx, r, fd);
	close(fd);
	if (*err) {
		munmap(addr, bytes);
		free(r);
		return NULL;
	}
	r->next = ctx->regions;
	ctx->regions = r;
	return r;
}

static void region_unlink(struct softhca_context *ctx, struct region *r)
{
	struct region **at = &ctx->regions;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	munmap(r->addr, r->bytes);
	free(r);
}

static int add_runs(struct softhca_context *ctx, struct control_mr *in)
{
	struct control_runs runs = {.count = in->count};

	memcpy(runs.run, in->run, sizeof(runs.run));
	in->count = 0;
	return ctx_call(ctx, CONTROL_ADD_RUNS, &runs, sizeof(runs), NULL, 0, -1, NULL);
}

int region_runs(struct softhca_context *ctx, const struct region *r, const void *addr, size_t bytes,
		struct control_mr *in)
{
	uint64_t from = (uint64_t)((const uint8_t *)addr - r->addr), to = from + bytes;
	uint64_t at = 0; /* offset of the part in the region */
	int rc = 0;

	for (uint32_t i = 0; i < r->count && !rc; at += r->parts[i++].bytes) {
		const struct region_part *p = &r->parts[i];
		uint64_t low = from > at ? from : at;
		uint64_t high = to < at + p->bytes ? to : at + p->bytes;

		if (low >= high)
			continue;
		if (in->count == CONTROL_RUNS_MAX)
			rc = add_runs(ctx, in);
		in->run[in->count++] = (struct control_run){.piece = p->piece->number,
							    .offset = p->offset + (low - at),
							    .bytes = high - low};
	}
	return rc;
}

int region_populate(const void *addr, size_t bytes)
{
	uintptr_t from = (uintptr_t)addr & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t to = ((uintptr_t)addr + bytes + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	int saved = errno, rc = 0;

	errno = 0;
	/* A read fault maps shared pages writable, too, and many at once. */
	if (madvise((void *)from, to - from, MADV_POPULATE_READ) && errno != EINVAL)
		rc = -ENOMEM;
	else if (errno == EINVAL) /* before Linux 5.14 */
		for (; from < to; from += PAGE_BYTES)
			(void)*(const volatile uint8_t *)from;
	errno = saved;
	return rc;
}

/* Registers [addr, addr + bytes) of the region; of no region if bytes is 0. */
static int mr_call(struct softhca_context *ctx, const struct region *r, const void *addr,
		   size_t bytes, struct control_mr *in, uint32_t *lkey, uint32_t *rkey)
{
	struct control_mr_reply out;
	int rc = r ? region_runs(ctx, r, addr, bytes, in) : 0;

	if (!rc && r)
		rc = region_populate(addr, bytes);
	if (!rc)
		rc = ctx_call(ctx, CONTROL_REG_MR, in, sizeof(*in), &out, sizeof(out), -1, NULL);
	if (rc)
		return rc;
	*lkey = out.lkey;
	*rkey = out.rkey;
	return 0;
}

/* ---- the user's memory ---- */

void *softhca_alloc(struct softhca_context *ctx, size_t bytes)
{
	struct region *r;
	int err = -EINVAL;

	if (bytes == 0 || bytes > ctx->hello.max_mr_bytes) {
		errno = EINVAL;
		return NULL;
	}
	bytes = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
	pthread_mutex_lock(&ctx->lock);
	r = region_new(ctx, bytes, &err);
	pthread_mutex_unlock(&ctx->lock);
	if (!r) {
		errno = -err;
		return NULL;
	}
	return r->addr;
}

struct region *region_of(struct softhca_context *ctx, const void *addr, size_t bytes)
{
	const uint8_t *at = addr;

	for (struct region *r = ctx->regions; r; r = r->next) {
		size_t offset = (size_t)(at - r->addr);

		if (at >= r->addr && offset <= r->bytes && bytes <= r->bytes - offset)
			return r;
	}
	return NULL;
}

static bool is_chunk(const struct softhca_context *ctx, const struct region *r)
{
	for (const struct chunk *c = ctx->chunks; c; c = c->next)
		if (c->region == r)
			return true;
	return false;
}

int softhca_free(struct softhca_context *ctx, void *addr)
{
	struct region *r;
	int rc = 0;

	if (!addr)
		return 0;
	pthread_mutex_lock(&ctx->lock);
	r = region_of(ctx, addr, 1); /* not a region that ends there */
	if (!r || r->addr != addr || is_chunk(ctx, r))
		rc = -EINVAL;
	else if (r->users)
		rc = -EBUSY;
	else
		rc = ctx_call_number(ctx, CONTROL_DROP_PIECE, r->own.number);
	if (rc == -ENOTCONN)
		rc = 0;
	if (!rc)
		region_unlink(ctx, r);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

static int mr_register(struct softhca_pd *pd, struct mr_object *mr, uint64_t iova,
		       unsigned int access)
{
	struct softhca_context *ctx = pd->node.ctx;
	struct control_mr in = {.pd = pd->number, .iova = iova, .access = access};
	struct region *r = NULL;
	int rc;

	if (mr->mr.length) {
		r = region_for(ctx, mr->mr.addr, mr->mr.length, access & ACCESS_LOCAL_WRITE, &rc);
		if (!r)
			return rc;
	}
	rc = mr_call(ctx, r, mr->mr.addr, mr->mr.length, &in, &mr->mr.lkey, &mr->mr.rkey);
	if (rc) {
		if (r)
			region_release(ctx, r);
		return rc;
	}
	mr->region = r;
	mr->number = mr->mr.lkey;
	mr->access = access;
	mr->iova = iova;
	mr->zero_based = access & ACCESS_ZERO_BASED;
	if (r)
		r->users++;
	pd->node.users++;
	node_add(ctx, &mr->node, NODE_MR);
	return 0;
}

struct softhca_mr *softhca_reg_mr_iova(struct softhca_pd *pd, void *addr, size_t length,
				       uint64_t iova, unsigned int access)
{
	struct softhca_context *ctx = pd->node.ctx;
	struct mr_object *mr = calloc(1, sizeof(*mr));
	int rc = -ENOMEM;

	if (mr) {
		mr->mr = (struct softhca_mr){.addr = addr, .length = length, .pd = pd};
		pthread_mutex_lock(&ctx->lock);
		rc = mr_register(pd, mr, iova, access);
		pthread_mutex_unlock(&ctx->lock);
	}
	if (rc) {
		free(mr);
		errno = -rc;
		return NULL;
	}
	return &mr->mr;
}

struct softhca_mr *softhca_reg_mr(struct softhca_pd *pd, void *addr, size_t length,
				  unsigned int access)
{
	return softhca_reg_mr_iova(pd, addr, length,
				   access & ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr, access);
}

int softhca_dereg_mr(struct softhca_mr *user_mr)
{
	struct mr_object *mr = (struct mr_object *)user_mr;
	struct softhca_context *ctx = mr->node.ctx;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = node_destroy(&mr->node, CONTROL_DEREG_MR, mr->number);
	if (!rc) {
		node_remove(&mr->node);
		if (mr->region) {
			mr->region->users--;
			region_release(ctx, mr->region);
		}
		mr->mr.pd->node.users--;
		free(mr);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* ---- memory for queues ---- */

static struct chunk *chunk_new(struct softhca_context *ctx, uint32_t pages, int *err)
{
	struct control_mr in = {.pd = ctx->hello.queue_pd, .access = ACCESS_LOCAL_WRITE};
	struct chunk *c = calloc(1, sizeof(*c) + pages);
	uint32_t rkey;

	*err = -ENOMEM;
	if (!c)
		return NULL;
	c->pages = pages;
	c->region = region_new(ctx, (size_t)pages * PAGE_BYTES, err);
	if (!c->region) {
		free(c);
		return NULL;
	}
	in.iova = (uintptr_t)c->region->addr;
	*err = mr_call(ctx, c->region, c->region->addr, c->region->bytes, &in, &c->lkey, &rkey);
	if (*err) {
		ctx_call_number(ctx, CONTROL_DROP_PIECE, c->region->own.number);
		region_unlink(ctx, c->region);
		free(c);
		return NULL;
	}
	c->next = ctx->chunks;
	ctx->chunks = c;
	return c;
}

/* First of `pages` free pages in a row, or -1. */
static int64_t chunk_find(const struct chunk *c, uint32_t pages)
{
	uint32_t run = 0;

	if (c->pages - c->pages_used < pages)
		return -1;
	for (uint32_t i = 0; i < c->pages; i++) {
		run = c->used[i] ? 0 : run + 1;
		if (run == pages)
			return (int64_t)i + 1 - pages;
	}
	return -1;
}

int queue_memory_get(struct softhca_context *ctx, size_t bytes, struct queue_memory *m)
{
	size_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	struct chunk *c = ctx->chunks;
	int64_t first = -1;
	int err;

	if (pages > UINT32_MAX / 2)
		return -EINVAL;
	while (c && (first = chunk_find(c, (uint32_t)pages)) < 0)
		c = c->next;
	if (!c) {
		c = chunk_new(ctx, pages > CHUNK_PAGES ? (uint32_t)pages : CHUNK_PAGES, &err);
		if (!c)
			return err;
		first = 0;
	}
	*m = (struct queue_memory){.chunk = c,
				   .addr = c->region->addr + first * PAGE_BYTES,
				   .first = (uint32_t)first,
				   .pages = (uint32_t)pages};
	memset(c->used + first, 1, pages);
	memset(m->addr, 0, pages * PAGE_BYTES);
	c->pages_used += (uint32_t)pages;
	return 0;
}

static void chunk_free(struct softhca_context *ctx, struct chunk *c)
{
	struct chunk **at = &ctx->chunks;

	if (ctx_call_number(ctx, CONTROL_DEREG_MR, c->lkey) ||
	    ctx_call_number(ctx, CONTROL_DROP_PIECE, c->region->own.number))
		return; /* kept until the context is closed */
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	region_unlink(ctx, c->region);
	free(c);
}

void queue_memory_keep_first(struct queue_memory *m)
{
	memset(m->chunk->used + m->first + 1, 0, m->pages - 1);
	m->chunk->pages_used -= m->pages - 1;
	m->pages = 1;
}

void queue_memory_put(struct softhca_context *ctx, struct queue_memory *m)
{
	struct chunk *c = m->chunk;

	if (!c)
		return;
	memset(c->used + m->first, 0, m->pages);
	c->pages_used -= m->pages;
	m->chunk = NULL;
	/* Keep one chunk of the usual size for the next queue. */
	if (c->pages_used == 0 && (c->next || ctx->chunks != c))
		chunk_free(ctx, c);
}

void memory_close(struct softhca_context *ctx)
{
	shared_close(ctx);
	while (ctx->chunks) {
		struct chunk *c = ctx->chunks;

		ctx->chunks = c->next;
		free(c);
	}
	while (ctx->regions)
		region_unlink(ctx, ctx->regions);
}
