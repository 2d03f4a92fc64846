/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_DOMAIN_H
#define VERBS_DOMAIN_H
/* Protection domains. */
#include "verbs_priv.h"

/* Wraps a PD of libsofthca for the program; `handle` 0: a new one. NULL with errno. */
struct ibv_pd *pd_show(struct ibv_context *c, struct softhca_pd *pd, uint32_t handle);
/* Adds or drops a reference to the PD, which cannot be deallocated while it has any. */
void pd_hold(struct ibv_pd *pd);
void pd_release(struct ibv_pd *pd);

#endif
