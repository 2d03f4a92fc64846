/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows.
 */
#include "verbs_priv.h"

struct ibv_mw *shca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	errno = EOPNOTSUPP;
	return NULL;
}

int shca_dealloc_mw(struct ibv_mw *mw)
{
	return EOPNOTSUPP;
}

int shca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return EOPNOTSUPP;
}
