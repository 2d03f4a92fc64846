/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues.
 */
#include "verbs_priv.h"

struct ibv_srq *shca_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	return EOPNOTSUPP;
}

int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return EOPNOTSUPP;
}
