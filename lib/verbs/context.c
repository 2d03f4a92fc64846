/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open device: the table of operations through which the inline functions of verbs.h go, and
 * what is known of it. An operation that is not in the table is one that we do not support: verbs.h
 * tells the program so.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
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

/* What the program holds for a kernel's descriptor: it can be duplicated, passed on and closed. */
static int identity(void)
{
	return memfd_create("softhca-verbs", MFD_CLOEXEC);
}

static void context_free(struct shca_context *c)
{
	if (c->verbs.context.cmd_fd >= 0)
		close(c->verbs.context.cmd_fd);
	softhca_close(c->hca);
	free(c);
}

/* Connected, with its events coming. NULL with errno. */
static struct shca_context *context_new(const char *device)
{
	struct shca_context *c = calloc(1, sizeof(*c));
	int fd, error;

	if (!c)
		return NULL;
	c->verbs = extended;
	c->verbs.context.cmd_fd = -1;
	c->hca = softhca_open(NULL, device);
	error = c->hca ? 0 : errno;
	if (!error) {
		softhca_acknowledge_async_events(c->hca);
		fd = softhca_async_fd(c->hca);
		c->verbs.context.async_fd = fd;
		error = fd < 0 ? -fd : 0;
	}
	if (!error) {
		c->verbs.context.cmd_fd = identity();
		error = c->verbs.context.cmd_fd < 0 ? errno : 0;
	}
	if (!error)
		return c;
	context_free(c);
	errno = error;
	return NULL;
}

VERBS_PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct shca_context *c = context_new(device->name);
	struct ibv_context *public;

	if (!c)
		return NULL;
	public = &c->verbs.context;
	softhca_query_device(c->hca, &c->attr);
	public->device = device;
	public->ops = operations;
	public->num_comp_vectors = 1;
	public->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&public->mutex, NULL);
	device_hold(to_shca_device(device));
	return public;
}

VERBS_PUBLIC int ibv_close_device(struct ibv_context *context)
{
	struct ibv_device *device = context->device;

	pthread_mutex_destroy(&context->mutex);
	context_free(to_shca_context(context));
	device_release(to_shca_device(device));
	return 0;
}
