/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, thread domains, parent domains.
 */
#include "verbs_priv.h"

struct ibv_pd *shca_alloc_parent_domain(
	struct ibv_context *c, struct ibv_parent_domain_init_attr *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_td *shca_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

int shca_dealloc_td(struct ibv_td *td)
{
	return EOPNOTSUPP;
}
