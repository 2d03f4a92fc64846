/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which parts of which files the daemon has mapped for one context: each MR of the program's own
 * memory refers to ranges of these pieces. Pieces are large, so that most registrations find theirs
 * mapped. context.lock is held. Any thread, never on the data path.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "share-in-place/sharing.h"
#include "context.h"
#include "pieces.h"

enum { IDLE_MAX = 1024 };	  /* pieces kept without users */
#define GRANULE	    (64ull << 20) /* pieces begin and end at multiples, or at the end of the file */
#define PIECE_BYTES (64ull << 30) /* of one piece, at most */

/* ---- the list: by file, by kind, by offset ---- */

static int compare(const struct file_piece *a, const struct file_piece *b)
{
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	if (a->writable != b->writable)
		return a->writable ? 1 : -1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The index of the first piece after `p` in the list. */
static uint32_t behind(const struct softhca_context *ctx, const struct file_piece *p)
{
	uint32_t low = 0, high = ctx->piece_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare(ctx->pieces[middle], p) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool pieces_same_file(const struct file_piece *a, const struct file_piece *b)
{
	return a->device == b->device && a->inode == b->inode && a->writable == b->writable;
}

/* The piece that holds byte p->offset of the file, or NULL. */
static struct file_piece *piece_find(const struct softhca_context *ctx, const struct file_piece *p)
{
	uint32_t i = behind(ctx, p);
	struct file_piece *before = i ? ctx->pieces[i - 1] : NULL;

	if (before && pieces_same_file(before, p) && p->offset - before->offset < before->bytes)
		return before;
	return NULL;
}

static int pieces_insert(struct softhca_context *ctx, struct file_piece *p)
{
	uint32_t i = behind(ctx, p);

	if (ctx->piece_count == ctx->piece_room) {
		uint32_t room = ctx->piece_room ? ctx->piece_room * 2 : 16;
		struct file_piece **more = realloc(ctx->pieces, room * sizeof(more[0]));

		if (!more)
			return -ENOMEM;
		ctx->pieces = more;
		ctx->piece_room = room;
	}
	memmove(&ctx->pieces[i + 1], &ctx->pieces[i],
		(ctx->piece_count - i) * sizeof(ctx->pieces[0]));
	ctx->pieces[i] = p;
	ctx->piece_count++;
	return 0;
}

static void pieces_forget(struct softhca_context *ctx, struct file_piece *p)
{
	uint32_t i = behind(ctx, p) - 1;

	ctx->piece_count--;
	memmove(&ctx->pieces[i], &ctx->pieces[i + 1],
		(ctx->piece_count - i) * sizeof(ctx->pieces[0]));
	free(p);
}

/* ---- idle ones ---- */

static void pieces_drop(struct softhca_context *ctx, struct file_piece *p)
{
	int rc = ctx_call_number(ctx, CONTROL_DROP_PIECE, p->number);

	if (rc == 0 || rc == -ENOTCONN)
		pieces_forget(ctx, p);
}

/* Drops the piece that has been unused longest, if there are more than `most`. False: none
 * dropped. */
static bool drop_oldest(struct softhca_context *ctx, uint32_t most)
{
	struct file_piece *oldest = NULL;
	uint32_t idle = 0, before = ctx->piece_count;

	for (uint32_t i = 0; i < ctx->piece_count; i++) {
		struct file_piece *p = ctx->pieces[i];

		if (p->users)
			continue;
		idle++;
		if (!oldest || p->idle_since < oldest->idle_since)
			oldest = p;
	}
	if (idle <= most)
		return false;
	pieces_drop(ctx, oldest);
	return ctx->piece_count < before;
}

/* ---- new ones ---- */

static uint64_t round_to(uint64_t n, uint64_t step)
{
	return (n + step - 1) & ~(step - 1);
}

/* Sets how far a new piece from p->offset on, for `bytes` bytes, may reach: whole granules inside
 * the file that do not overlap its neighbours. 0, -errno. */
static int widen(const struct softhca_context *ctx, const struct sharing_piece *file,
		 struct file_piece *p, uint64_t bytes)
{
	const uint64_t page = 1ull << file->log_page, granule = page > GRANULE ? page : GRANULE;
	uint64_t low = p->offset & ~(granule - 1), high = round_to(p->offset + bytes, granule), end;
	uint32_t i = behind(ctx, p);
	const struct file_piece *before = i ? ctx->pieces[i - 1] : NULL;
	const struct file_piece *next = i < ctx->piece_count ? ctx->pieces[i] : NULL;
	struct stat st;

	if (file->segment_bytes) { /* a segment is mapped whole */
		p->offset = 0;
		p->bytes = file->segment_bytes;
		return 0;
	}
	if (fstat(file->fd, &st))
		return -errno;
	end = round_to((uint64_t)st.st_size, page);
	if (before && pieces_same_file(before, p) && before->offset + before->bytes > low)
		low = before->offset + before->bytes;
	if (next && pieces_same_file(next, p) && next->offset < high)
		high = next->offset;
	high = high < end ? high : end;
	if (high <= p->offset)
		return -EFAULT; /* the file was truncated meanwhile */
	p->offset = low;
	p->bytes = high - low < PIECE_BYTES ? high - low : PIECE_BYTES;
	return 0;
}

/* How many pieces of the pool to ask for at once: the more a program has, the more it will soon
 * need. They must not overlap the next piece in the list. */
static uint32_t how_many(const struct softhca_context *ctx, const struct sharing_piece *file,
			 const struct file_piece *p)
{
	uint32_t i = behind(ctx, p), n = ctx->piece_count + 1;
	const struct file_piece *next = i < ctx->piece_count ? ctx->pieces[i] : NULL;
	uint64_t room = CONTROL_PIECES_MAX;

	if (!file->stride || !p->writable || p->offset % file->stride || p->bytes != GRANULE)
		return 1;
	if (next && pieces_same_file(next, p))
		room = (next->offset - p->offset) / file->stride;
	if (n > CONTROL_PIECES_MAX)
		n = CONTROL_PIECES_MAX;
	n = n < room ? n : (uint32_t)room;
	return n ? n : 1;
}

static int call_for_pieces(struct softhca_context *ctx, const struct sharing_piece *file,
			   const struct file_piece *p, uint32_t count,
			   struct control_pieces_reply *out)
{
	const uint32_t flags = p->writable ? 0 : PIECE_READ_ONLY;
	const struct control_segment segment = {.id = (uint32_t)file->inode, .flags = flags};
	const struct control_pieces part = {
		.first = {.offset = p->offset, .bytes = p->bytes, .flags = flags},
		.stride = file->stride,
		.count = count};

	out->count = 1;
	if (file->segment_bytes)
		return ctx_call_for_number(ctx, CONTROL_ADD_SEGMENT, &segment, sizeof(segment),
					   &out->number[0]);
	return ctx_call(ctx, CONTROL_ADD_PIECES, &part, sizeof(part), out, sizeof(*out), file->fd,
			NULL);
}

/* Keeps the pieces that came with the first one, for later registrations. */
static void keep_others(struct softhca_context *ctx, const struct file_piece *first,
			uint64_t stride, const struct control_pieces_reply *there)
{
	for (uint32_t i = 1; i < there->count && i < CONTROL_PIECES_MAX; i++) {
		struct file_piece *p = malloc(sizeof(*p));

		if (p) {
			*p = *first;
			p->offset += i * stride;
			p->number = there->number[i];
			p->idle_since = ctx->releases;
		}
		if (!p || pieces_insert(ctx, p)) {
			ctx_call_number(ctx, CONTROL_DROP_PIECE, there->number[i]);
			free(p);
		}
	}
}

static int piece_register(struct softhca_context *ctx, const struct sharing_piece *file,
			  struct file_piece *p)
{
	struct control_pieces_reply there = {0};
	int rc;

	do
		rc = call_for_pieces(ctx, file, p, how_many(ctx, file, p), &there);
	while (rc == -ENOSPC && drop_oldest(ctx, 0));
	if (rc)
		return rc;
	p->number = there.number[0];
	rc = pieces_insert(ctx, p);
	if (rc)
		ctx_call_number(ctx, CONTROL_DROP_PIECE, p->number);
	else
		keep_others(ctx, p, file->stride, &there);
	return rc;
}

static int pieces_add(struct softhca_context *ctx, const struct sharing_piece *file,
		      const struct file_piece *wanted, uint64_t bytes, struct file_piece **out)
{
	struct file_piece *p = malloc(sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	*p = *wanted;
	p->kept = !file->owned;
	rc = widen(ctx, file, p, bytes);
	if (!rc)
		rc = piece_register(ctx, file, p);
	if (rc)
		free(p);
	else
		*out = p;
	return rc;
}

/* ---- for regions ---- */

/* A writable piece serves reads, too. */
static struct file_piece *find_for(const struct softhca_context *ctx, struct file_piece wanted,
				   bool write)
{
	struct file_piece *p;

	wanted.writable = true;
	p = piece_find(ctx, &wanted);
	wanted.writable = false;
	return p || write ? p : piece_find(ctx, &wanted);
}

/* Would replacing this unused piece by a larger one keep the bytes up to `end` in one piece? */
static bool too_short(const struct softhca_context *ctx, const struct file_piece *p, uint64_t end)
{
	const uint32_t i = behind(ctx, p);
	const uint64_t its_end = p->offset + p->bytes;

	if (p->users || p->bytes >= PIECE_BYTES || its_end >= end)
		return false;
	return i == ctx->piece_count || !pieces_same_file(ctx->pieces[i], p) ||
	       ctx->pieces[i]->offset > its_end;
}

int piece_get(struct softhca_context *ctx, const struct sharing_piece *file, uint64_t offset,
	      uint64_t bytes, bool write, struct file_piece **out)
{
	const struct file_piece wanted = {
		.device = file->device, .inode = file->inode, .offset = offset, .writable = write};
	int rc = 0;

	*out = find_for(ctx, wanted, write);
	if (*out && too_short(ctx, *out, offset + bytes)) {
		pieces_drop(ctx, *out);
		*out = find_for(ctx, wanted, write);
	}
	if (!*out)
		rc = pieces_add(ctx, file, &wanted, bytes, out);
	if (!rc)
		(*out)->users++;
	return rc;
}

void piece_put(struct softhca_context *ctx, struct file_piece *p)
{
	if (--p->users)
		return;
	p->idle_since = ctx->releases++;
	if (!p->kept)
		pieces_drop(ctx, p);
	else
		drop_oldest(ctx, IDLE_MAX);
}

void pieces_close(struct softhca_context *ctx)
{
	for (uint32_t i = 0; i < ctx->piece_count; i++)
		free(ctx->pieces[i]);
	free(ctx->pieces);
	ctx->pieces = NULL;
	ctx->piece_count = ctx->piece_room = 0;
}
