/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CONNECT_H
#define CM_CONNECT_H
/* Messages of the three-way handshake. */
#include "connection_priv.h"

void cm_on_req(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_mra(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_rep(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);
void cm_on_rtu(struct cm *cm, uint64_t now, const struct cm_path *path, const struct cm_message *m);

#endif
