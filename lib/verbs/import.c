/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts, protection domains and regions under another name in the same process: found by the
 * descriptor or number of the original. Any thread. Another process has a connection of its own to
 * the daemon: there is nothing to import there, EOPNOTSUPP.
 *
 * As with a kernel it is for the program to say when nobody uses the object any more: whoever
 * deallocates it ends it for all, the others only unimport.
 */
#include <stdlib.h>
#include "verbs_priv.h"

static struct handle *handles;
static uint32_t last_number;
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

void handle_add(struct handle *h, const struct softhca_context *hca, uint32_t number, void *object)
{
	pthread_mutex_lock(&handles_lock);
	*h = (struct handle){.next = handles,
		.at = &handles,
		.hca = hca,
		.number = number ? number : ++last_number,
		.object = object};
	if (handles)
		handles->at = &h->next;
	handles = h;
	pthread_mutex_unlock(&handles_lock);
}

void handle_remove(struct handle *h)
{
	pthread_mutex_lock(&handles_lock);
	*h->at = h->next;
	if (h->next)
		h->next->at = h->at;
	pthread_mutex_unlock(&handles_lock);
}

/* NULL with errno: none of the context has that number. */
static void *find(const struct ibv_context *context, uint32_t number)
{
	const struct softhca_context *hca =
		container(context, struct shca_context, verbs.context)->hca;
	void *object = NULL;

	pthread_mutex_lock(&handles_lock);
	for (struct handle *h = handles; h && !object; h = h->next)
		if (h->number == number && h->hca == hca)
			object = h->object;
	pthread_mutex_unlock(&handles_lock);
	if (!object)
		errno = ENOENT;
	return object;
}

VERBS_PUBLIC struct ibv_context *ibv_import_device(int cmd_fd)
{
	return context_import(cmd_fd);
}

VERBS_PUBLIC struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct softhca_pd *pd = find(context, pd_handle);

	return pd ? pd_show(context, pd, pd_handle) : NULL;
}

VERBS_PUBLIC void ibv_unimport_pd(struct ibv_pd *ibv)
{
	struct shca_pd *pd = to_shca_pd(ibv);

	handle_remove(&pd->handle);
	free(pd);
}

/* Its addr and length are not the importer's affair: NULL and 0. */
VERBS_PUBLIC struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct softhca_mr *mr = find(pd->context, mr_handle);
	struct ibv_mr *ibv = mr ? mr_show(pd, mr, mr_handle) : NULL;

	if (ibv) {
		ibv->addr = NULL;
		ibv->length = 0;
	}
	return ibv;
}

VERBS_PUBLIC void ibv_unimport_mr(struct ibv_mr *ibv)
{
	struct shca_mr *mr = to_shca_mr(ibv);

	handle_remove(&mr->handle);
	pd_release(ibv->pd);
	free(mr);
}
