/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_CQ_H
#define VERBS_CQ_H
#include "verbs_priv.h"

/* Sets the functions of an extended CQ that `wc_flags` request. */
void cq_ex_fill(struct shca_cq *cq, uint64_t wc_flags);

#endif
