/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues; posting to them is in post.c. Any thread.
 */
#include <stdlib.h>
#include "verbs_priv.h"

VERBS_PUBLIC struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct softhca_srq_init_attr attr = {
		.max_wr = init->attr.max_wr, .max_sge = init->attr.max_sge};
	struct shca_srq *srq = calloc(1, sizeof(*srq));

	if (!srq)
		return NULL;
	attr.user = srq;
	srq->srq = softhca_create_srq(to_shca_pd(pd)->pd, &attr);
	if (!srq->srq) {
		free(srq);
		return NULL;
	}
	init->attr.max_wr = attr.max_wr;
	init->attr.max_sge = attr.max_sge;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = softhca_srq_number(srq->srq);
	pd_hold(pd);
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	return &srq->ibv;
}

/* verbs.h sends basic ones to ibv_create_srq(); the others are not ours. */
struct ibv_srq *shca_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr)
{
	(void)c;
	errno = attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? EOPNOTSUPP : EINVAL;
	return NULL;
}

/* Its size stays: IBV_DEVICE_SRQ_RESIZE is not among our capabilities. */
VERBS_PUBLIC int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	if (attr_mask & ~IBV_SRQ_LIMIT)
		return attr_mask & IBV_SRQ_MAX_WR ? EOPNOTSUPP : EINVAL;
	if (!attr_mask)
		return 0;
	return verbs_status(softhca_arm_srq(to_shca_srq(srq)->srq, attr->srq_limit));
}

VERBS_PUBLIC int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct softhca_srq_attr now;
	int rc = softhca_query_srq(to_shca_srq(srq)->srq, &now);

	if (rc)
		return verbs_status(rc);
	*attr = (struct ibv_srq_attr){
		.max_wr = now.max_wr, .max_sge = now.max_sge, .srq_limit = now.limit};
	return 0;
}

int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	*number = softhca_srq_number(to_shca_srq(srq)->srq);
	return 0;
}

VERBS_PUBLIC int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct shca_srq *srq = to_shca_srq(ibv);
	int rc = softhca_destroy_srq(srq->srq);

	if (rc)
		return verbs_status(rc);
	pd_release(ibv->pd);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(srq);
	return 0;
}
