/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended queue pairs: requests made by calls, wr_start() to wr_complete().
 */
#include "verbs_priv.h"

int qp_ex_fill(struct shca_qp *qp, uint64_t ops)
{
	return EOPNOTSUPP;
}

void qp_ex_free(struct shca_qp *qp)
{
}
