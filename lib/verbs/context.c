/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open device: the table of operations through which the inline functions of verbs.h go, and
 * what is known of it. An operation that is not in the table is one that we do not support: verbs.h
 * tells the program so.
 */
#include <stdlib.h>
#include "verbs_priv.h"

/* Through struct ibv_context: verbs.h does not look whether they are there. */
static const struct ibv_context_ops operations = {
	.alloc_mw = shca_alloc_mw,
	.bind_mw = shca_bind_mw,
	.dealloc_mw = shca_dealloc_mw,
	.poll_cq = shca_poll_cq,
	.req_notify_cq = shca_req_notify_cq,
	.post_srq_recv = shca_post_srq_recv,
	.post_send = shca_post_send,
	.post_recv = shca_post_recv,
};

/* Through struct verbs_context. */
static const struct verbs_context extended = {
	.query_port = shca_query_port,
	.query_device_ex = shca_query_device_ex,
	.query_rt_values = shca_query_rt_values,
	.alloc_null_mr = shca_alloc_null_mr,
	.alloc_parent_domain = shca_alloc_parent_domain,
	.alloc_td = shca_alloc_td,
	.dealloc_td = shca_dealloc_td,
	.create_cq_ex = shca_create_cq_ex,
	.modify_cq = shca_modify_cq,
	.create_qp_ex = shca_create_qp_ex,
	.create_srq_ex = shca_create_srq_ex,
	.get_srq_num = shca_get_srq_num,
	.sz = sizeof(struct verbs_context),
};

VERBS_PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct shca_context *c = calloc(1, sizeof(*c));
	struct ibv_context *public;

	if (!c)
		return NULL;
	c->hca = softhca_open(NULL, device->name);
	if (!c->hca) {
		free(c);
		return NULL;
	}
	c->verbs = extended;
	public = &c->verbs.context;
	softhca_query_device(c->hca, &c->attr);
	public->device = device;
	public->ops = operations;
	public->cmd_fd = -1;
	public->async_fd = softhca_async_fd(c->hca);
	public->num_comp_vectors = 1;
	public->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&public->mutex, NULL);
	device_hold(to_shca_device(device));
	return public;
}

VERBS_PUBLIC int ibv_close_device(struct ibv_context *context)
{
	struct shca_context *c = to_shca_context(context);
	struct ibv_device *device = context->device;

	softhca_close(c->hca);
	pthread_mutex_destroy(&context->mutex);
	free(c);
	device_release(to_shca_device(device));
	return 0;
}
