/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: create, resize, destroy, poll (hot), arm. Any thread.
 */
#include <stdlib.h>
#include "cq.h"
#include "handles.h"
#include "operations.h"

/* libsofthca's completions are those of verbs: the same numbers at the same offsets. */
#define SAME_PLACE(field)                                                                          \
	static_assert(offsetof(struct softhca_wc, field) == offsetof(struct ibv_wc, field) &&      \
			      sizeof(((struct softhca_wc *)0)->field) ==                           \
				      sizeof(((struct ibv_wc *)0)->field),                         \
		      #field)
SAME_PLACE(wr_id);
SAME_PLACE(status);
SAME_PLACE(opcode);
SAME_PLACE(vendor_err);
SAME_PLACE(byte_len);
SAME_PLACE(imm_data);
SAME_PLACE(invalidated_rkey);
SAME_PLACE(qp_num);
SAME_PLACE(src_qp);
SAME_PLACE(wc_flags);
SAME_PLACE(pkey_index);
SAME_PLACE(slid);
SAME_PLACE(sl);
SAME_PLACE(dlid_path_bits);
static_assert(sizeof(struct softhca_wc) == sizeof(struct ibv_wc), "completion");
static_assert((int)SOFTHCA_WC_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR, "statuses");
#define OPERATION(id, code, services, traits, packets, wr, wc, call) COMPLETION(id, code, wc, )
#define NATIVE_OPERATION(...)
#define COMPLETION(id, code, wc, flags)                                                            \
	static_assert((int)SOFTHCA_WC_##wc == (int)IBV_WC_##wc, "opcodes");
#include "host-abi/user_opcodes.def"
static_assert((int)SOFTHCA_WC_WITH_INV == (int)IBV_WC_WITH_INV, "flags");

/* ---- create and destroy ---- */

static void channel_use(struct ibv_comp_channel *channel, int by)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += by;
	pthread_mutex_unlock(&channel->context->mutex);
}

/* NULL with errno. */
static struct shca_cq *create_cq(struct ibv_context *c, uint32_t entries, void *user,
				 struct ibv_comp_channel *channel, uint32_t vector)
{
	struct shca_cq *cq;

	if (!context_known(c) || (channel && !channel_known(channel)) || entries > INT32_MAX ||
	    vector >= (uint32_t)c->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->cq = softhca_create_cq(to_shca_context(c)->hca, entries, cq,
				   channel ? to_shca_channel(channel)->channel : NULL);
	if (!cq->cq) {
		free(cq);
		return NULL;
	}
	/* Programs poll as if the device were hardware, but it is a program, too. */
	softhca_yield_when_empty(cq->cq);
	cq->ibv.context = c;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = user;
	cq->ibv.handle = handle_add(&cq->handle, HANDLE_CQ, to_shca_context(c)->hca,
				    softhca_cq_number(cq->cq), NULL);
	cq->ibv.cqe = (int)softhca_cq_entries(cq->cq);
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	channel_use(channel, 1);
	return cq;
}

VERBS_PUBLIC struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					  struct ibv_comp_channel *channel, int comp_vector)
{
	/* Negative numbers become too large ones. */
	struct shca_cq *cq =
		create_cq(context, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);

	return cq ? &cq->ibv : NULL;
}

struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct shca_cq *cq;

	if (attr->comp_mask & ~known || flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
	    attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = create_cq(c, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	cq->single_thread = flags != 0;
	cq_ex_fill(cq, attr->wc_flags);
	return &cq->ex;
}

VERBS_PUBLIC int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int rc = cqe < 1 || !cq_known(cq) ? -EINVAL
					  : softhca_resize_cq(to_shca_cq(cq)->cq, (uint32_t)cqe);

	if (!rc)
		cq->cqe = (int)softhca_cq_entries(to_shca_cq(cq)->cq);
	return verbs_status(rc == -EBUSY ? -EINVAL : rc); /* too small for its contents */
}

VERBS_PUBLIC int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct shca_cq *cq = to_shca_cq(ibv);
	int rc;

	if (!cq_take(ibv))
		return no_such_object();
	/* Waits until its events are acknowledged. */
	rc = handle_end(&cq->handle, softhca_destroy_cq(cq->cq));
	if (rc)
		return rc;
	channel_use(ibv->channel, -1);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(cq);
	return 0;
}

/* ---- poll and arm ---- */

int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return softhca_poll_cq(to_shca_cq(cq)->cq, n, (struct softhca_wc *)wc);
}

int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	/* Without a channel there is no one to notify, which is no error. */
	if (!cq->channel)
		return 0;
	return verbs_status(softhca_req_notify_cq(to_shca_cq(cq)->cq, solicited_only));
}
