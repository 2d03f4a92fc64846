/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts, protection domains and regions under another name in the same process: found by the
 * descriptor or number of the original. Any thread. Another process has its own connection to the
 * daemon, so there is nothing to import: EOPNOTSUPP.
 *
 * As with a kernel, the program has to know when an object is no longer used: deallocating it ends
 * it for all users; the others only unimport it.
 */
#include <stdlib.h>
#include "context.h"
#include "domain.h"
#include "handles.h"
#include "regions.h"

/* NULL with errno: the context has none of that number. */
static void *import_find(const struct ibv_context *context, enum handle_kind kind, uint32_t number)
{
	void *object = handle_find(container(context, struct shca_context, verbs.context)->hca,
				   kind, number);

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
	struct softhca_pd *pd;

	if (!context_known(context))
		return none_for_no_such_object();
	pd = import_find(context, HANDLE_PD, pd_handle);
	return pd ? pd_show(context, pd, pd_handle) : NULL;
}

VERBS_PUBLIC void ibv_unimport_pd(struct ibv_pd *ibv)
{
	if (!pd_take(ibv))
		return;
	handle_end(&to_shca_pd(ibv)->handle, 0);
	free(to_shca_pd(ibv));
}

/* The importer does not get addr and length: NULL and 0. */
VERBS_PUBLIC struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct softhca_mr *mr;
	struct ibv_mr *ibv;

	if (!pd_known(pd))
		return none_for_no_such_object();
	mr = import_find(pd->context, HANDLE_MR, mr_handle);
	ibv = mr ? mr_show(pd, mr, mr_handle) : NULL;
	if (ibv) {
		ibv->addr = NULL;
		ibv->length = 0;
	}
	return ibv;
}

VERBS_PUBLIC void ibv_unimport_mr(struct ibv_mr *ibv)
{
	if (!mr_take(ibv))
		return;
	pd_release(ibv->pd);
	handle_end(&to_shca_mr(ibv)->handle, 0);
	free(to_shca_mr(ibv));
}
