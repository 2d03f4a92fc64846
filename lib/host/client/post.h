/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_POST_H
#define CLIENT_POST_H
/* Work requests and doorbells. */
#include "client_priv.h"

/* Writes a receive descriptor into an entry of 1 << shift bytes, which has room for its scatter
 * entries. */
void put_receive(const struct softhca_recv_wr *wr, uint8_t shift, uint32_t tag, uint8_t *wqe);

/* Rings one doorbell of the QP. False: its FIFO is full. */
bool ring(struct softhca_qp *qp, uint32_t word0, uint32_t word1);
/* Makes the daemon look at the QP's receive queue, as soon as its FIFO has room: it flushes
 * one in ERR, and asks no other for its receives before the first one. */
void ring_for_receives(struct softhca_qp *qp);
/* Rings as many of the waiting doorbells (context.unrung) as there is room for. Never waits: if
 * another thread holds context.lock or posts, some stay. */
void ring_unrung(struct softhca_context *ctx);
/* The QP is reset or destroyed: forgets its waiting doorbells. context.lock is held. */
void unrung_forget(struct softhca_qp *qp);

#endif
