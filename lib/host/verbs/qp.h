/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_QP_H
#define VERBS_QP_H
#include "verbs_priv.h"

/* Stands for all opcodes that libsofthca does not know: refused as EINVAL. */
enum { NO_OPCODE = 16 };

/* Sets the wr_*() of a QP that `ops` (IBV_QP_EX_WITH_*) requests. 0, EOPNOTSUPP. */
int qp_ex_fill(struct shca_qp *qp, uint64_t ops);
/* Converts bind information to libsofthca's form. */
void bind_info_convert(const struct ibv_mw_bind_info *from, struct softhca_mw_bind_info *to);

#endif
