/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended completion queues: one completion at a time, field by field.
 */
#include "verbs_priv.h"

void cq_ex_fill(struct shca_cq *cq, uint64_t wc_flags)
{
}
