/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_PIECES_H
#define CLIENT_PIECES_H
/* Pieces of files that the daemon maps. */
#include "client_priv.h"

struct sharing_piece;
/* The piece that holds the file's byte `offset` and as many of the next `bytes` as it covers. If
 * there is none, maps a new one, usually larger than requested. The caller becomes one of its
 * users. 0, -errno of the daemon or of fstat(); -ENOMEM. context.lock is held. */
int piece_get(struct softhca_context *ctx, const struct sharing_piece *file, uint64_t offset,
	      uint64_t bytes, bool write, struct file_piece **out);
/* Drops one user. When the last user goes, so does the piece, unless it belongs to the pool: pages
 * of the pool that are no longer shared have been freed already, and the next registration will
 * need the piece. */
void piece_put(struct softhca_context *ctx, struct file_piece *p);
/* Frees all; the daemon frees its side with the connection. */
void pieces_close(struct softhca_context *ctx);

#endif
