/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_DISCONNECT_H
#define CM_DISCONNECT_H
/* Messages of disconnection; alternate paths are refused. */
#include "connection_priv.h"

void cm_on_dreq(struct cm *cm, uint64_t now, const struct cm_path *path,
		const struct cm_message *m);
void cm_on_drep(struct cm *cm, uint64_t now, const struct cm_path *path,
		const struct cm_message *m);
void cm_on_lap(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
/* A peer has connected the QP of an established connection again: disconnects the old one. */
void cm_disconnect_stale(struct cm_connection *c, uint64_t now);

#endif
