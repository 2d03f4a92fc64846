/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, thread domains, parent domains. Any thread.
 *
 * A thread domain promises that its objects are used by one thread at a time: our uncontended locks
 * cost little, so it changes nothing. A parent domain is its protection domain under another name.
 * The allocators that a program may give it are meant for queues that drivers allocate with
 * malloc(): ours lie in memory shared with the daemon, so they are not called.
 */
#include <stdlib.h>
#include "domain.h"
#include "handles.h"
#include "operations.h"

static struct shca_td *to_shca_td(struct ibv_td *td)
{
	return td ? container(td, struct shca_td, ibv) : NULL;
}

void pd_hold(struct ibv_pd *pd)
{
	__atomic_add_fetch(&to_shca_pd(pd)->users, 1, __ATOMIC_RELAXED);
}

void pd_release(struct ibv_pd *pd)
{
	__atomic_sub_fetch(&to_shca_pd(pd)->users, 1, __ATOMIC_RELEASE);
}

struct ibv_pd *pd_show(struct ibv_context *c, struct softhca_pd *pd, uint32_t handle)
{
	struct shca_pd *shown = calloc(1, sizeof(*shown));

	if (!shown)
		return NULL;
	shown->pd = pd;
	shown->ibv.context = c;
	shown->ibv.handle =
		handle_add(&shown->handle, HANDLE_PD, to_shca_context(c)->hca, handle, pd);
	return &shown->ibv;
}

VERBS_PUBLIC struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct softhca_pd *pd;
	struct ibv_pd *shown;

	if (!context_known(context))
		return none_for_no_such_object();
	pd = softhca_alloc_pd(to_shca_context(context)->hca);
	shown = pd ? pd_show(context, pd, 0) : NULL;
	if (pd && !shown) {
		softhca_free_pd(pd);
		errno = ENOMEM;
	}
	return shown;
}

static void leave_parent(struct shca_pd *pd)
{
	pd_release(&pd->parent->ibv);
	if (pd->td)
		__atomic_sub_fetch(&pd->td->users, 1, __ATOMIC_RELEASE);
}

VERBS_PUBLIC int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct shca_pd *pd = to_shca_pd(ibv);
	int rc;

	if (!pd_take(ibv))
		return no_such_object();
	rc = __atomic_load_n(&pd->users, __ATOMIC_ACQUIRE) ? -EBUSY : 0;
	if (!rc && !pd->parent)
		rc = softhca_free_pd(pd->pd);
	rc = handle_end(&pd->handle, rc);
	if (rc)
		return rc;
	if (pd->parent)
		leave_parent(pd);
	free(pd);
	return 0;
}

/* 0, or an errno. */
static int parent_domain_check(const struct ibv_context *c,
			       const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	bool allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (!pd_known(attr->pd) || attr->pd->context != c || to_shca_pd(attr->pd)->parent)
		return EINVAL;
	if (attr->td && (!td_known(attr->td) || attr->td->context != c))
		return EINVAL;
	if (allocators && (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *c,
					struct ibv_parent_domain_init_attr *attr)
{
	int error = parent_domain_check(c, attr);
	struct ibv_pd *shown =
		error ? NULL : pd_show(c, to_shca_pd(attr->pd)->pd, attr->pd->handle);
	struct shca_pd *pd;

	if (error)
		errno = error;
	if (!shown)
		return NULL;
	pd = to_shca_pd(shown);
	pd->parent = to_shca_pd(attr->pd);
	pd->td = to_shca_td(attr->td);
	pd_hold(attr->pd);
	if (pd->td)
		__atomic_add_fetch(&pd->td->users, 1, __ATOMIC_RELAXED);
	return shown;
}

struct ibv_td *shca_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	struct handle *h;
	struct shca_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	h = handle_revive(HANDLE_TD);
	td = h ? container(h, struct shca_td, handle) : calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = c;
	handle_add(&td->handle, HANDLE_TD, to_shca_context(c)->hca, 0, NULL);
	return &td->ibv;
}

int shca_dealloc_td(struct ibv_td *ibv)
{
	struct shca_td *td = to_shca_td(ibv);
	int rc;

	if (!td_take(ibv))
		return no_such_object();
	rc = __atomic_load_n(&td->users, __ATOMIC_ACQUIRE) ? -EBUSY : 0;
	rc = handle_end(&td->handle, rc);
	if (rc)
		return rc;
	handle_retire(&td->handle, HANDLE_TD);
	return 0;
}
