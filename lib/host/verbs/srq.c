/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues; posting to them is in post.c. Any thread.
 */
#include <stdlib.h>
#include "domain.h"
#include "handles.h"
#include "operations.h"

VERBS_PUBLIC struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct softhca_srq_init_attr attr = {.max_wr = init->attr.max_wr,
					     .max_sge = init->attr.max_sge};
	struct shca_srq *srq = pd_known(pd) ? calloc(1, sizeof(*srq)) : none_for_no_such_object();

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
	srq->ibv.handle = handle_add(&srq->handle, HANDLE_SRQ, to_shca_context(pd->context)->hca,
				     softhca_srq_number(srq->srq), NULL);
	pd_hold(pd);
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	return &srq->ibv;
}

/* verbs.h routes basic SRQs to ibv_create_srq(); other types are unsupported. */
struct ibv_srq *shca_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr)
{
	(void)c;
	errno = attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? EOPNOTSUPP : EINVAL;
	return NULL;
}

/* The size is fixed: IBV_DEVICE_SRQ_RESIZE is not among our capabilities. */
VERBS_PUBLIC int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	if (!srq_known(srq))
		return no_such_object();
	if (attr_mask & ~IBV_SRQ_LIMIT)
		return attr_mask & IBV_SRQ_MAX_WR ? EOPNOTSUPP : EINVAL;
	if (!attr_mask)
		return 0;
	return verbs_status(softhca_arm_srq(to_shca_srq(srq)->srq, attr->srq_limit));
}

VERBS_PUBLIC int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct softhca_srq_attr now;
	int rc = srq_known(srq) ? softhca_query_srq(to_shca_srq(srq)->srq, &now) : -EINVAL;

	if (rc)
		return verbs_status(rc);
	*attr = (struct ibv_srq_attr){
		.max_wr = now.max_wr, .max_sge = now.max_sge, .srq_limit = now.limit};
	return 0;
}

int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	if (!srq_known(srq))
		return no_such_object();
	*number = softhca_srq_number(to_shca_srq(srq)->srq);
	return 0;
}

VERBS_PUBLIC int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct shca_srq *srq = to_shca_srq(ibv);
	int rc;

	if (!srq_take(ibv))
		return no_such_object();
	rc = handle_end(&srq->handle, softhca_destroy_srq(srq->srq));
	if (rc)
		return rc;
	pd_release(ibv->pd);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(srq);
	return 0;
}
