/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_CQ_H
#define CLIENT_CQ_H
#include "client_priv.h"

/* Drops the completions of a QP that nothing writes for any more. */
void cq_forget(struct softhca_cq *cq, const struct softhca_qp *qp);
void cq_free(struct softhca_cq *cq);

#endif
