/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_REGIONS_H
#define VERBS_REGIONS_H
#include "verbs_priv.h"

/* memory.c: as pd_show(). */
struct ibv_mr *mr_show(struct ibv_pd *pd, struct softhca_mr *mr, uint32_t handle);

#endif
