/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_POST_H
#define CLIENT_POST_H
/* Work requests. */
#include "client_priv.h"

/* Writes a receive descriptor into an entry of 1 << shift bytes, which has room for its scatter
 * entries. */
void put_receive(const struct softhca_recv_wr *wr, uint8_t shift, uint32_t tag, uint8_t *wqe);

#endif
