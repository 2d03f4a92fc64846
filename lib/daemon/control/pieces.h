/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_PIECES_H
#define CONTROL_PIECES_H
/* Pieces: client memory that is mapped into the daemon. */
#include "control_priv.h"

/* Is the user of the client in debt for time that the control thread waited (SHARE_waited_ms)? */
bool mapping_deferred(struct client *client);
/* Charges the client for one more mapping of `bytes`. 0; -ENOSPC; -EAGAIN: it will fit when others
 * have been unmapped, or its user is in debt. Undone by mapping_uncharge(), or by
 * mapping_unmap_later() when it has been unmapped. */
int mapping_charge(struct client *client, uint64_t bytes);
void mapping_uncharge(struct client *client, uint64_t bytes);
/* Starts unmapping it, bit by bit: pieces_turn(). Nothing may access it any more. */
void mapping_unmap_later(struct client *client, struct mapping *m);
/* The same of a piece. The object stays. */
void piece_unmap(struct piece *piece);
/* Populates [offset, offset + bytes), at once or bit by bit: pieces_turn(). */
void piece_populate(struct piece *piece, uint64_t offset, uint64_t bytes, bool at_once);
/* `bytes` more of it are registered: its client's share of SHARE_registered_bytes, of which a piece
 * takes no more than it has. 0, -ENOMEM. */
int piece_register(struct piece *piece, uint64_t bytes);
void piece_deregister(struct piece *piece, uint64_t bytes);
/* Unmaps and populates some more, for users who may be served in this turn. */
void pieces_turn(struct control *c);
/* Is there more? */
bool pieces_pending(const struct control *c);
/* Gives the deferred ones turns again. */
void pieces_resume(struct control *c);
/* Unmaps all of it. */
void pieces_unmap_all(struct control *c);

#endif
