/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of the program's own memory: lib/host/share-in-place makes it shareable, here it becomes
 * parts of pieces that the daemon has mapped (pieces.c). A region is freed with its last MR. Any
 * thread, never on the data path.
 */
#include <stdlib.h>
#include "share-in-place/sharing.h"
#include "pieces.h"
#include "regions.h"
#include "shared.h"

static struct region_part *part_new(struct region *r)
{
	struct region_part *more = realloc(r->parts, (r->count + 1) * sizeof(more[0]));

	if (!more)
		return NULL;
	r->parts = more;
	return &more[r->count++];
}

/* Adds one file's part of the region, piece by piece. 0, -errno: the region keeps what was
 * added. */
static int shared_add_parts(struct softhca_context *ctx, struct region *r,
			    const struct sharing_piece *file)
{
	uint64_t at = file->offset, end = at + file->bytes;

	while (at < end) {
		struct region_part *part = part_new(r);
		struct file_piece *piece;
		int rc = part ? piece_get(ctx, file, at, end - at, r->sharing->writable, &piece)
			      : -ENOMEM;

		if (rc) {
			r->count -= part != NULL;
			return rc;
		}
		*part = (struct region_part){.piece = piece, .offset = at - piece->offset};
		part->bytes = piece->bytes - part->offset;
		if (part->bytes > end - at)
			part->bytes = end - at;
		at += part->bytes;
	}
	return 0;
}

static void region_free(struct softhca_context *ctx, struct region *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		piece_put(ctx, r->parts[i].piece);
	sharing_put(r->sharing);
	free(r->parts);
	free(r);
}

/* Takes ownership of the sharing, also on failure. */
static struct region *region_shared(struct softhca_context *ctx, struct sharing *s, int *err)
{
	struct region *r = calloc(1, sizeof(*r));

	*err = -ENOMEM;
	if (!r) {
		sharing_put(s);
		return NULL;
	}
	r->addr = (uint8_t *)s->addr;
	r->bytes = s->bytes;
	r->sharing = s;
	*err = 0;
	for (unsigned int i = 0; i < s->count && !*err; i++)
		*err = shared_add_parts(ctx, r, &s->pieces[i]);
	if (*err) {
		region_free(ctx, r);
		return NULL;
	}
	sharing_close_files(s);
	r->next = ctx->shared;
	ctx->shared = r;
	return r;
}

struct region *region_for(struct softhca_context *ctx, const void *addr, size_t bytes, bool write,
			  int *err)
{
	struct region *r = region_of(ctx, addr, bytes);
	struct sharing *s;

	if (r)
		return r;
	*err = bytes > ctx->hello.max_mr_bytes ? -EINVAL : sharing_get(addr, bytes, write, &s);
	return *err ? NULL : region_shared(ctx, s, err);
}

void region_release(struct softhca_context *ctx, struct region *r)
{
	struct region **at = &ctx->shared;

	if (!r->sharing || r->users)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	region_free(ctx, r);
}

void shared_close(struct softhca_context *ctx)
{
	while (ctx->shared) {
		struct region *r = ctx->shared;

		ctx->shared = r->next;
		sharing_put(r->sharing);
		free(r->parts);
		free(r);
	}
	pieces_close(ctx);
}
