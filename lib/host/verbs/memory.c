/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions. Any thread.
 */
#include <stdlib.h>
#include "domain.h"
#include "handles.h"
#include "operations.h"
#include "regions.h"

/* Access rights that we support, and one without effect here that is no error. */
enum {
	ACCESS_OURS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
		      LATER_ACCESS_FLUSH_GLOBAL,
	ACCESS_NO_MATTER = IBV_ACCESS_HUGETLB,
};

/* 0, or an errno. Optional rights are ignored, as they are meant to be. */
static int access_check(unsigned int access)
{
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~(unsigned int)(ACCESS_OURS | ACCESS_NO_MATTER))
		return EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* Fills in what the program sees. */
static void mr_describe(struct shca_mr *mr, struct ibv_pd *pd)
{
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = mr->mr->addr;
	mr->ibv.length = mr->mr->length;
	mr->ibv.lkey = mr->mr->lkey;
	mr->ibv.rkey = mr->mr->rkey;
	mr->ibv.handle = mr->handle.number;
}

struct ibv_mr *mr_show(struct ibv_pd *pd, struct softhca_mr *mr, uint32_t handle)
{
	struct shca_mr *shown = calloc(1, sizeof(*shown));

	if (!shown)
		return NULL;
	shown->mr = mr;
	handle_add(&shown->handle, HANDLE_MR, to_shca_context(pd->context)->hca, handle, mr);
	pd_hold(pd);
	mr_describe(shown, pd);
	return &shown->ibv;
}

/* Wraps `mr` for the program; on failure frees it and returns NULL with errno. */
static struct ibv_mr *shown_or_gone(struct ibv_pd *pd, struct softhca_mr *mr)
{
	struct ibv_mr *shown = mr ? mr_show(pd, mr, 0) : NULL;

	if (mr && !shown) {
		softhca_dereg_mr(mr);
		errno = ENOMEM;
	}
	return shown;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access)
{
	int error = pd_known(pd) ? access_check(access) : EINVAL;

	if (error) {
		errno = error;
		return NULL;
	}
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	return shown_or_gone(pd, softhca_reg_mr_iova(to_shca_pd(pd)->pd, addr, length, iova,
						     access & ACCESS_OURS));
}

struct ibv_mr *shca_alloc_null_mr(struct ibv_pd *pd)
{
	if (!pd_known(pd))
		return none_for_no_such_object();
	return shown_or_gone(pd, softhca_alloc_null_mr(to_shca_pd(pd)->pd));
}

VERBS_PUBLIC struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

VERBS_PUBLIC struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					    uint64_t iova, int access)
{
	return reg(pd, addr, length, iova, (unsigned int)access);
}

VERBS_PUBLIC struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
					     uint64_t iova, unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

static int rereg_check(int flags, const struct ibv_pd *pd, const void *addr, size_t length,
		       unsigned int access)
{
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD && !pd_known(pd))
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		return EINVAL;
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return EINVAL;
	return access_check(access);
}

/* All our own errors are found before anything changes, except the death of the daemon. */
VERBS_PUBLIC int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr,
			      size_t length, int access)
{
	struct shca_mr *mr = to_shca_mr(ibv);
	int rc = mr_known(ibv) ? -rereg_check(flags, pd, addr, length, (unsigned int)access)
			       : -EINVAL;
	bool moves = flags & IBV_REREG_MR_CHANGE_PD;

	if (!rc && moves && pd->context != ibv->context)
		rc = -EINVAL;
	if (!rc)
		rc = softhca_rereg_mr(mr->mr, (unsigned int)flags,
				      moves ? to_shca_pd(pd)->pd : NULL, addr, length,
				      (unsigned int)access & ACCESS_OURS);
	if (rc) {
		errno = -rc;
		return rc == -ENOTCONN ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
	}
	if (moves) {
		pd_hold(pd);
		pd_release(ibv->pd);
	}
	mr_describe(mr, moves ? pd : ibv->pd);
	return 0;
}

VERBS_PUBLIC int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct shca_mr *mr = to_shca_mr(ibv);
	int rc;

	if (!mr_take(ibv))
		return no_such_object();
	rc = handle_end(&mr->handle, softhca_dereg_mr(mr->mr));
	if (rc)
		return rc;
	pd_release(ibv->pd);
	free(mr);
	return 0;
}
