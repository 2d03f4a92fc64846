/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_ORPHANS_H
#define CLIENT_ORPHANS_H
#include "client_priv.h"

/* The daemon has died and the CQ is empty: returns up to n of the requests that would have
 * completed into it, as flushed, and their number. No lock is held. */
int flush_orphans(struct softhca_cq *cq, int n, struct softhca_wc *wc);

#endif
