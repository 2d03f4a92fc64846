/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows, regions for fast registration or without memory, re-registration. The work
 * requests are written by post.c. Any thread, never on the data path, except softhca_bind_mw(),
 * which posts.
 */
#include <stdlib.h>
#include "context.h"
#include "regions.h"
#include "shared.h"

/* Allocates a window of mw->type at the daemon. context.lock is held. */
static int mw_make(struct softhca_pd *pd, struct mw_object *mw)
{
	struct softhca_context *ctx = pd->node.ctx;
	struct control_mw in = {.pd = pd->number, .type = mw->mw.type};
	int rc = ctx_call_for_number(ctx, CONTROL_ALLOC_MW, &in, sizeof(in), &mw->number);

	if (rc)
		return rc;
	mw->mw.rkey = mw->number;
	pd->node.users++;
	node_add(ctx, &mw->node, NODE_MW);
	return 0;
}

struct softhca_mw *softhca_alloc_mw(struct softhca_pd *pd, enum softhca_mw_type type)
{
	struct mw_object *mw = calloc(1, sizeof(*mw));
	int rc = -ENOMEM;

	if (mw) {
		mw->mw = (struct softhca_mw){.type = type, .pd = pd};
		pthread_mutex_lock(&pd->node.ctx->lock);
		rc = mw_make(pd, mw);
		pthread_mutex_unlock(&pd->node.ctx->lock);
	}
	if (rc) {
		free(mw);
		errno = -rc;
		return NULL;
	}
	return &mw->mw;
}

int softhca_dealloc_mw(struct softhca_mw *user_mw)
{
	struct mw_object *mw = (struct mw_object *)user_mw;
	struct softhca_context *ctx = mw->node.ctx;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = node_destroy(&mw->node, CONTROL_DEALLOC_MW, mw->number);
	if (!rc) {
		node_remove(&mw->node);
		mw->mw.pd->node.users--;
		free(mw);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

int softhca_bind_mw(struct softhca_qp *qp, struct softhca_mw *mw,
		    const struct softhca_mw_bind *bind)
{
	struct softhca_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = SOFTHCA_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.wr.bind_mw = {.mw = mw,
			       .rkey = softhca_inc_rkey(mw->rkey),
			       .bind_info = bind->bind_info},
	};
	int rc;

	if (mw->type != SOFTHCA_MW_TYPE_1)
		return -EINVAL;
	rc = softhca_post_send(qp, &wr, NULL);
	if (!rc)
		mw->rkey = wr.wr.bind_mw.rkey;
	return rc;
}

/* Allocates a region without memory at the daemon. context.lock is held. */
static int mr_allocate(struct softhca_pd *pd, struct mr_object *mr, enum control_type type,
		       const void *in, uint32_t bytes)
{
	struct softhca_context *ctx = pd->node.ctx;
	struct control_mr_reply out;
	int rc = ctx_call(ctx, type, in, bytes, &out, sizeof(out), -1, NULL);

	if (rc)
		return rc;
	mr->number = mr->mr.lkey = out.lkey;
	mr->mr.rkey = out.rkey;
	pd->node.users++;
	node_add(ctx, &mr->node, NODE_MR);
	return 0;
}

static struct softhca_mr *allocated(struct softhca_pd *pd, enum control_type type, const void *in,
				    uint32_t bytes)
{
	struct mr_object *mr = calloc(1, sizeof(*mr));
	int rc = -ENOMEM;

	if (mr) {
		mr->mr = (struct softhca_mr){.pd = pd};
		pthread_mutex_lock(&pd->node.ctx->lock);
		rc = mr_allocate(pd, mr, type, in, bytes);
		pthread_mutex_unlock(&pd->node.ctx->lock);
	}
	if (rc) {
		free(mr);
		errno = -rc;
		return NULL;
	}
	return &mr->mr;
}

struct softhca_mr *softhca_alloc_mr(struct softhca_pd *pd, uint32_t pages)
{
	const struct control_alloc_mr in = {.pd = pd->number, .pages = pages};

	return allocated(pd, CONTROL_ALLOC_MR, &in, sizeof(in));
}

struct softhca_mr *softhca_alloc_null_mr(struct softhca_pd *pd)
{
	const struct control_number in = {.number = pd->number};

	return allocated(pd, CONTROL_ALLOC_NULL_MR, &in, sizeof(in));
}

/* The daemon has changed the MR: update our side. */
static void mr_moved(struct mr_object *mr, const struct softhca_mr *to, struct region *region)
{
	struct region *before = mr->region;

	region->users++;
	before->users--;
	mr->region = region;
	region_release(mr->node.ctx, before);
	mr->mr.pd->node.users--;
	to->pd->node.users++;
	mr->mr.addr = to->addr;
	mr->mr.length = to->length;
	mr->mr.pd = to->pd;
}

static uint64_t iova_of(const struct mr_object *mr, unsigned int flags, const struct softhca_mr *to)
{
	if (mr->zero_based || !(flags & SOFTHCA_REREG_MR_CHANGE_TRANSLATION))
		return mr->iova;
	return (uintptr_t)to->addr;
}

/* context.lock is held. */
static int mr_change(struct mr_object *mr, unsigned int flags, const struct softhca_mr *to,
		     unsigned int access)
{
	struct softhca_context *ctx = mr->node.ctx;
	const unsigned int wanted = flags & SOFTHCA_REREG_MR_CHANGE_ACCESS ? access : mr->access;
	struct control_rereg_mr in = {.lkey = mr->number, .mask = flags};
	struct control_mr_reply out;
	int rc;
	struct region *r = region_for(ctx, to->addr, to->length, wanted & ACCESS_LOCAL_WRITE, &rc);

	if (!r)
		return rc;
	if (r != mr->region) /* found another region, perhaps for new rights */
		in.mask |= REREG_TRANSLATION;
	in.mr = (struct control_mr){
		.pd = to->pd->number, .iova = iova_of(mr, flags, to), .access = wanted};
	rc = in.mask & REREG_TRANSLATION ? region_runs(ctx, r, to->addr, to->length, &in.mr) : 0;
	if (!rc)
		rc = region_populate(to->addr, to->length);
	if (!rc)
		rc = ctx_call(ctx, CONTROL_REREG_MR, &in, sizeof(in), &out, sizeof(out), -1, NULL);
	if (rc) {
		region_release(ctx, r);
		return rc;
	}
	mr_moved(mr, to, r);
	mr->iova = in.mr.iova;
	mr->access = wanted;
	return 0;
}

int softhca_rereg_mr(struct softhca_mr *user_mr, unsigned int flags, struct softhca_pd *pd,
		     void *addr, size_t length, unsigned int access)
{
	struct mr_object *mr = (struct mr_object *)user_mr;
	struct softhca_context *ctx = mr->node.ctx;
	struct softhca_mr to = mr->mr;
	int rc;

	if (!mr->region || (flags & SOFTHCA_REREG_MR_CHANGE_PD && !pd))
		return -EINVAL;
	if (flags & SOFTHCA_REREG_MR_CHANGE_TRANSLATION) {
		to.addr = addr;
		to.length = length;
	}
	if (flags & SOFTHCA_REREG_MR_CHANGE_PD)
		to.pd = pd;
	pthread_mutex_lock(&ctx->lock);
	rc = mr_change(mr, flags, &to, access);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}
