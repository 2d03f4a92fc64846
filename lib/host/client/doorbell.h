/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_DOORBELL_H
#define CLIENT_DOORBELL_H
/* Doorbells, and those for which there is no room. */
#include "client_priv.h"

/* A FIFO in which nothing has been rung. */
void fifo_init(struct doorbell_fifo *f, struct uar_page *page);
/* Rings one doorbell of the QP. False: its FIFO is full. */
bool ring(struct softhca_qp *qp, uint32_t word0, uint32_t word1);
/* Makes the daemon look at the QP's receive queue, as soon as its FIFO has room: it flushes
 * one in ERR, and asks no other for its receives before the first one. */
void ring_for_receives(struct softhca_qp *qp);
/* The chain (softhca_qp.unrung) waits for room in the FIFO; the dispatcher, if there is one, sees to
 * it from now on. sq.lock is held. */
void chain_waits(struct softhca_qp *qp);
/* It does so no more, if it did. sq.lock is held. */
void chain_rung(struct softhca_qp *qp);
/* Rings as many of the waiting doorbells (context.unrung) as there is room for, those of the queue
 * pair that waits longest first. Never waits: if another thread holds context.lock or posts, some
 * stay. */
void ring_unrung(struct softhca_context *ctx);
/* The QP is reset or destroyed: forgets its waiting doorbells. context.lock is held. What is posted at
 * the same time may be forgotten or not. */
void unrung_forget(struct softhca_qp *qp);

#endif
