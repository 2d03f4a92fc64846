/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of the program's own memory: lib/sharing makes it shareable, here the daemon learns of
 * it, piece by piece. A region goes with the last MR in it. MRs of the same context that lie in
 * the same pages share a region. Any thread, never on the data path.
 */
#include <stdlib.h>
#include "sharing/sharing.h"
#include "client_priv.h"

/* Does the region show, at the same addresses, the same bytes of the same file as this piece? */
static bool has_piece(const struct sharing *s, const struct sharing_piece *want)
{
	for (unsigned int i = 0; i < s->count; i++) {
		const struct sharing_piece *p = &s->pieces[i];

		if (want->addr >= p->addr && want->addr + want->bytes <= p->addr + p->bytes)
			return want->inode == p->inode && want->device == p->device &&
			       want->offset - p->offset == want->addr - p->addr;
	}
	return false;
}

static bool covers(const struct region *r, const struct sharing *s, bool write)
{
	if (write && r->read_only)
		return false;
	for (unsigned int i = 0; i < s->count; i++)
		if (!has_piece(r->sharing, &s->pieces[i]))
			return false;
	return true;
}

static int add_piece(struct softhca_context *ctx, const struct region *r, unsigned int i)
{
	const struct sharing_piece *p = &r->sharing->pieces[i];
	const struct control_piece in = {.region = r->handle,
		.at = p->addr - r->sharing->addr,
		.offset = p->offset,
		.bytes = p->bytes};

	return ctx_call(ctx, CONTROL_ADD_PIECE, &in, sizeof(in), NULL, 0, p->fd, NULL);
}

/* Tells the daemon. 0, -errno: it knows of none. */
static int compose(struct softhca_context *ctx, struct region *r)
{
	const struct sharing *s = r->sharing;
	const struct control_compose in = {.length = s->bytes,
		.address = s->addr,
		.offset = s->pieces[0].offset,
		.bytes = s->pieces[0].bytes,
		.flags = r->read_only ? REGION_READ_ONLY : 0,
		.log_page = s->log_page};
	struct control_number out;
	int rc = ctx_call(ctx, CONTROL_COMPOSE_REGION, &in, sizeof(in), &out, sizeof(out),
		s->pieces[0].fd, NULL);

	if (rc)
		return rc;
	r->handle = out.number;
	for (unsigned int i = 1; i < s->count && !rc; i++)
		rc = add_piece(ctx, r, i);
	if (rc)
		ctx_call_number(ctx, CONTROL_DROP_REGION, r->handle);
	return rc;
}

static struct region *region_shared(struct softhca_context *ctx, struct sharing *s, int *err)
{
	struct region *r = calloc(1, sizeof(*r));

	*err = -ENOMEM;
	if (!r)
		return NULL;
	r->addr = (uint8_t *)s->addr;
	r->bytes = s->bytes;
	r->sharing = s;
	r->read_only = !s->writable;
	*err = compose(ctx, r);
	if (*err) {
		free(r);
		return NULL;
	}
	sharing_close_files(s);
	r->next = ctx->shared;
	ctx->shared = r;
	return r;
}

struct region *region_for(
	struct softhca_context *ctx, const void *addr, size_t bytes, bool write, int *err)
{
	struct region *r = region_of(ctx, addr, bytes);
	struct sharing *s;

	if (r)
		return r;
	*err = bytes > ctx->hello.max_mr_bytes ? -EINVAL : sharing_get(addr, bytes, write, &s);
	if (*err)
		return NULL;
	for (r = ctx->shared; r && !covers(r, s, write); r = r->next)
		;
	if (r) {
		sharing_put(s); /* the region's own keeps it shared */
		return r;
	}
	r = region_shared(ctx, s, err);
	if (!r)
		sharing_put(s);
	return r;
}

void region_release(struct softhca_context *ctx, struct region *r)
{
	struct region **at = &ctx->shared;
	int rc;

	if (!r->sharing || r->users)
		return;
	rc = ctx_call_number(ctx, CONTROL_DROP_REGION, r->handle);
	if (rc && rc != -ENOTCONN)
		return; /* it stays the daemon's until the end */
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	sharing_put(r->sharing);
	free(r);
}

void shared_close(struct softhca_context *ctx)
{
	while (ctx->shared) {
		struct region *r = ctx->shared;

		ctx->shared = r->next;
		sharing_put(r->sharing);
		free(r);
	}
}
