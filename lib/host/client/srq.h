/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_SRQ_H
#define CLIENT_SRQ_H
#include "client_priv.h"

void srq_free(struct softhca_srq *srq);
/* The wr_id of the descriptor with that tag, which has completed. The tag is free again. */
uint64_t srq_retire(struct softhca_srq *srq, uint32_t tag);

#endif
