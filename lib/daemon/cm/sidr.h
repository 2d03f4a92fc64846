/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SIDR_H
#define CM_SIDR_H
/* Messages of service ID resolution. */
#include "connection_priv.h"

void cm_on_sidr_req(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_message *m);
void cm_on_sidr_rep(struct cm *cm, uint64_t now, const struct cm_path *path,
		    const struct cm_message *m);

#endif
