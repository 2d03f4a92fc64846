/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open device: the table of operations that the inline functions of verbs.h call, and what is
 * known of the device. Operations missing from the table are unsupported, which verbs.h reports to
 * the program.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "context.h"
#include "device.h"
#include "handles.h"
#include "operations.h"

/* Through struct ibv_context: verbs.h does not check that they are present. */
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
	.alloc_parent_domain = shca_alloc_parent_domain,
	.alloc_td = shca_alloc_td,
	.dealloc_td = shca_dealloc_td,
	.alloc_null_mr = shca_alloc_null_mr,
	.create_cq_ex = shca_create_cq_ex,
	.create_qp_ex = shca_create_qp_ex,
	.create_srq_ex = shca_create_srq_ex,
	.get_srq_num = shca_get_srq_num,
	.sz = sizeof(struct verbs_context),
};

/* ---- all open contexts ---- */

static struct shca_context *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

static void context_enter(struct shca_context *c)
{
	pthread_mutex_lock(&contexts_lock);
	c->next = contexts;
	contexts = c;
	pthread_mutex_unlock(&contexts_lock);
}

/* True: no other context uses its connection. */
static bool leave(struct shca_context *c)
{
	struct shca_context **at = &contexts;
	bool last = true;

	pthread_mutex_lock(&contexts_lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	for (struct shca_context *other = contexts; other; other = other->next)
		last &= other->hca != c->hca;
	pthread_mutex_unlock(&contexts_lock);
	return last;
}

/* ---- open, import, close ---- */

/* What the program gets for the kernel's descriptor: can be duplicated, passed on and closed. */
static int identity(void)
{
	return memfd_create("softhca-verbs", MFD_CLOEXEC);
}

/* Fills in the public part; the rest is set up. */
static struct ibv_context *context_fill(struct shca_context *c, struct ibv_device *device,
					int cmd_fd)
{
	struct ibv_context *public = &c->verbs.context;

	c->verbs = extended;
	public->device = device;
	public->ops = operations;
	public->cmd_fd = cmd_fd;
	public->async_fd = softhca_async_fd(c->hca);
	public->num_comp_vectors = 1;
	public->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&public->mutex, NULL);
	device_hold(to_shca_device(device));
	handle_add(&c->handle, HANDLE_CONTEXT, c->hca, 0, NULL);
	context_enter(c);
	return public;
}

/* Connects and enables events. 0, or an errno. */
static int connect_to(struct shca_context *c, const char *device, int *cmd_fd)
{
	int fd;

	c->hca = softhca_open(NULL, device);
	if (!c->hca)
		return errno;
	softhca_query_device(c->hca, &c->attr);
	softhca_acknowledge_async_events(c->hca);
	fd = softhca_async_fd(c->hca);
	if (fd < 0)
		return -fd;
	*cmd_fd = identity();
	return *cmd_fd < 0 ? errno : 0;
}

VERBS_PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct shca_context *c = calloc(1, sizeof(*c));
	int cmd_fd = -1, error = c ? connect_to(c, device->name, &cmd_fd) : ENOMEM;

	if (!error)
		return context_fill(c, device, cmd_fd);
	if (c)
		softhca_close(c->hca);
	free(c);
	errno = error;
	return NULL;
}

static bool context_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

struct ibv_context *context_import(int cmd_fd)
{
	struct shca_context *c = calloc(1, sizeof(*c)), *from;
	struct ibv_device *device = NULL;

	if (!c)
		return NULL;
	pthread_mutex_lock(&contexts_lock);
	for (from = contexts; from; from = from->next)
		if (context_same_file(from->verbs.context.cmd_fd, cmd_fd))
			break;
	if (from) {
		c->hca = from->hca;
		c->attr = from->attr;
		device = from->verbs.context.device;
	}
	pthread_mutex_unlock(&contexts_lock);
	if (device)
		return context_fill(c, device, cmd_fd);
	free(c);
	errno = fcntl(cmd_fd, F_GETFD) < 0 ? EBADF : EOPNOTSUPP;
	return NULL;
}

VERBS_PUBLIC int ibv_close_device(struct ibv_context *context)
{
	struct shca_context *c = to_shca_context(context);

	if (!context_take(context))
		return no_such_object();
	handle_end(&c->handle, 0);
	if (leave(c)) {
		handles_forget(c->hca);
		softhca_close(c->hca);
	}
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	device_release(to_shca_device(context->device));
	free(c);
	return 0;
}
