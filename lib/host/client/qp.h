/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_QP_H
#define CLIENT_QP_H
#include "client_priv.h"

void qp_free(struct softhca_qp *qp);
struct softhca_qp *qp_lookup(struct softhca_context *ctx, uint32_t number);
/* Records that the QP has failed. */
void qp_failed(struct softhca_qp *qp, enum softhca_qp_state state);

#endif
