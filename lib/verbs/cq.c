/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues.
 */
#include "verbs_priv.h"

struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

int shca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return EOPNOTSUPP;
}

int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return EOPNOTSUPP;
}

int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return EOPNOTSUPP;
}
