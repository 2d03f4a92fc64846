/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests: from the form of verbs to that of libsofthca (hot).
 */
#include "verbs_priv.h"

int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return EOPNOTSUPP;
}

int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return EOPNOTSUPP;
}
