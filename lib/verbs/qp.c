/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs.
 */
#include "verbs_priv.h"

struct ibv_qp *shca_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}
