/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_TABLES_H
#define CM_TABLES_H
/* How connections are found: by communication ID, by the peer's ID or QP, by time. */
#include "connection_priv.h"

/* most: of connections, 1 to 2^CM_PLACE_BITS_MOST. Allocates nothing yet. */
void cm_places_create(struct cm_places *p, uint32_t most);
void cm_places_destroy(struct cm_places *p);
/* Gives c its local_id. 0; -ENOSPC, -ENOMEM. May enlarge the heap, too. */
int cm_place_take(struct cm *cm, struct cm_connection *c);
void cm_place_free(struct cm *cm, struct cm_connection *c);
struct cm_connection *cm_place_find(const struct cm_places *p, uint32_t id);

/* Both keys contain a number chosen by the peer, its GUID (SIDR: 0), its GID and our device. */
void cm_remote_add(struct cm_connection *c);
void cm_qpn_add(struct cm_connection *c);
struct cm_connection *cm_remote_find(const struct cm *cm, uint32_t id, uint64_t guid,
				     const struct cm_path *path, bool sidr);
struct cm_connection *cm_qpn_find(const struct cm *cm, uint32_t qpn, uint64_t guid,
				  const struct cm_path *path);
/* A number below CM_SOURCES for the path's other end. */
unsigned int cm_source(const struct cm *cm, const struct cm_path *path);
/* A no-op if n is not in it. */
void cm_hash_remove(struct cm_hash *h, struct cm_node *n);
void cm_hash_destroy(struct cm_hash *h);

/* Moves an existing timer. */
void cm_timer_set(struct cm_connection *c, uint64_t due);
void cm_timer_cancel(struct cm_connection *c);

#endif
