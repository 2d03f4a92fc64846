/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: allocation, and binding those of type 1. Type 2 is bound by work requests:
 * post.c, qp_ex.c. Any thread.
 */
#include <stdlib.h>
#include "domain.h"
#include "handles.h"
#include "operations.h"
#include "qp.h"

struct ibv_mw *shca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct handle *h;
	struct shca_mw *mw;

	if (!pd_known(pd))
		return none_for_no_such_object();
	h = handle_revive(HANDLE_MW);
	mw = h ? container(h, struct shca_mw, handle) : calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->mw = softhca_alloc_mw(to_shca_pd(pd)->pd, (enum softhca_mw_type)type);
	if (!mw->mw) {
		handle_retire(&mw->handle, HANDLE_MW);
		return NULL;
	}
	mw->ibv = (struct ibv_mw){
		.context = pd->context,
		.pd = pd,
		.rkey = mw->mw->rkey,
		.handle = mw->mw->rkey,
		.type = type,
	};
	handle_add(&mw->handle, HANDLE_MW, to_shca_context(pd->context)->hca, mw->ibv.handle, NULL);
	pd_hold(pd);
	return &mw->ibv;
}

int shca_dealloc_mw(struct ibv_mw *ibv)
{
	struct shca_mw *mw = to_shca_mw(ibv);
	int rc;

	if (!mw_take(ibv))
		return no_such_object();
	rc = handle_end(&mw->handle, softhca_dealloc_mw(mw->mw));
	if (rc)
		return rc;
	pd_release(ibv->pd);
	handle_retire(&mw->handle, HANDLE_MW);
	return 0;
}

/* verbs.h has checked the window's type and the region's PD. */
int shca_bind_mw(struct ibv_qp *qp, struct ibv_mw *ibv, struct ibv_mw_bind *bind)
{
	struct shca_mw *mw = to_shca_mw(ibv);
	struct softhca_mw_bind ours = {
		.wr_id = bind->wr_id,
		.send_flags = bind->send_flags,
	};
	int rc;

	bind_info_convert(&bind->bind_info, &ours.bind_info);
	rc = softhca_bind_mw(to_shca_qp(qp)->qp, mw->mw, &ours);
	if (rc)
		return verbs_status(rc);
	ibv->rkey = mw->mw->rkey;
	return 0;
}
