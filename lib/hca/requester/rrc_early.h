/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RRC_EARLY_H
#define REQUESTER_RRC_EARLY_H
/*
 * Keeps responses to READs and atomics that arrive ahead of missing ones, unchanged
 * (context/early.h), and takes them in turn as if they had just arrived. Part of
 * RequesterRecvControl; stage requester_recv.
 */
#include "rrc_work.h"

/* Keeps the response, if there is a place; else it is as good as lost. */
void rrc_keep_early(struct rrc_work *w);

/* A response has been taken: is the next one kept? */
void rrc_look_early(struct engine *e, struct qp *q);

/* Takes kept responses whose turn has come, a bounded number. Returns how many. */
unsigned rrc_take_early(struct engine *e);

/* Drops all that is kept for the QP: nothing waits for it any more. */
void rrc_drop_early(struct engine *e, struct qp *q);

#endif
