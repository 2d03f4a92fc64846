/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on memory windows, keys for fast registrations, regions
 * without memory, and the re-registration of regions. What a window or such a key is bound to is
 * the work requests' business; here they are made and taken back, bound or not. All that a request
 * says is the client's word. Control thread.
 */
#include <errno.h>
#include "host-abi/wqe.h"
#include "control_priv.h"

int run_alloc_mw(struct call *call)
{
	const struct control_mw *in = call->body;
	struct control_number *out = call->reply;
	struct pd *pd = object_find(call->client, OBJECT_PD, in->pd);
	struct mw *mw;
	uint32_t flags;
	int rc;

	if (!pd)
		return -ENOENT;
	if (in->type != 1 && in->type != 2)
		return -EINVAL;
	mw = object_make(call->client, OBJECT_MW, sizeof(*mw), &rc);
	if (!mw)
		return rc;
	flags = in->type == 1 ? MPT_WINDOW_1 : MPT_WINDOW_2 | MPT_INVALIDATE_REMOTE;
	rc = mpt_enter(&mw->object, (struct mpt_entry){.pd = in->pd, .flags = flags});
	if (rc) {
		object_drop(&mw->object);
		return rc;
	}
	mw->pd = pd;
	pd->object.users++;
	out->number = mw->object.number;
	return 0;
}

int run_dealloc_mw(struct call *call)
{
	int rc;
	struct mw *mw = object_named(call, OBJECT_MW, &rc);

	if (rc)
		return rc;
	rc = mpt_leave(&mw->object);
	if (rc)
		return rc;
	mw->pd->object.users--;
	object_drop(&mw->object);
	return 0;
}

/* MTT entries for a key's pages, none of them there yet. No client gets all there are. */
static int take_slot(struct mr *mr, uint32_t pages)
{
	static struct ceu_write_mtt none;
	struct client *client = mr->object.client;
	struct device *d = client->device;

	if (client->slots >= d->slots.count - d->slots.count / 4)
		return -ENOSPC;
	mr->slot = slots_take(&d->slots);
	if (!mr->slot)
		return -ENOSPC;
	client->slots++;
	none.first = mr_mtt_first(mr);
	return ceu_errno(
		ceu_exec(d->config.ceu, CEU_WRITE_MTT, pages, &none, sizeof(none), NULL, 0));
}

/* A region without a place in client memory stays if rc is 0. */
static int mr_made(struct mr *mr, struct pd *pd, int rc, struct control_mr_reply *out)
{
	if (rc) {
		object_drop(&mr->object);
		return rc;
	}
	mr->pd = pd;
	pd->object.users++;
	out->lkey = out->rkey = mr->object.number;
	return 0;
}

int run_alloc_mr(struct call *call)
{
	const struct control_alloc_mr *in = call->body;
	struct control_mr_reply *out = call->reply;
	struct pd *pd = object_find(call->client, OBJECT_PD, in->pd);
	struct mr *mr;
	int rc;

	if (!pd)
		return -ENOENT;
	if (in->pages == 0 || in->pages > WQE_REGISTER_PAGES)
		return -EINVAL;
	mr = object_make(call->client, OBJECT_MR, sizeof(*mr), &rc);
	if (!mr)
		return rc;
	rc = take_slot(mr, in->pages);
	if (!rc)
		rc = mpt_enter(&mr->object,
			(struct mpt_entry){.pd = in->pd,
				.flags = MPT_FAST | MPT_INVALIDATE_REMOTE | MPT_OWNS_PAGES,
				.mtt_first = mr_mtt_first(mr),
				.pages_max = (uint8_t)in->pages});
	return mr_made(mr, pd, rc, out);
}

int run_alloc_null_mr(struct call *call)
{
	const struct control_number *in = call->body;
	struct control_mr_reply *out = call->reply;
	struct pd *pd = object_find(call->client, OBJECT_PD, in->number);
	struct mr *mr;
	int rc;

	if (!pd)
		return -ENOENT;
	mr = object_make(call->client, OBJECT_MR, sizeof(*mr), &rc);
	if (!mr)
		return rc;
	rc = mpt_enter(&mr->object, (struct mpt_entry){.pd = in->number,
					    .access = ACCESS_LOCAL_WRITE,
					    .flags = MPT_NULL,
					    .length = UINT64_MAX});
	return mr_made(mr, pd, rc, out);
}

/* The MR as it would be registered now. */
static struct control_mr as_is(const struct mr *mr)
{
	return (struct control_mr){.pd = mr->pd->object.number,
		.region = mr->region->object.number,
		.offset = (uint64_t)(mr->phys - mr->region->mapping.base),
		.length = mr->length,
		.iova = mr->iova,
		.access = mr->access};
}

static void change(struct control_mr *to, const struct control_rereg_mr *in)
{
	if (in->mask & REREG_TRANSLATION) {
		to->region = in->mr.region;
		to->offset = in->mr.offset;
		to->length = in->mr.length;
		to->iova = in->mr.iova;
	}
	if (in->mask & REREG_PD)
		to->pd = in->mr.pd;
	if (in->mask & REREG_ACCESS)
		to->access = in->mr.access;
}

static void count_users(const struct mr *mr, int n)
{
	mr->pd->object.users += (uint32_t)n;
	mr->region->object.users += (uint32_t)n;
}

/* Between the old and the new there is a moment in which the key names nothing. */
int run_rereg_mr(struct call *call)
{
	const uint32_t all = REREG_TRANSLATION | REREG_PD | REREG_ACCESS;
	const struct control_rereg_mr *in = call->body;
	struct control_mr_reply *out = call->reply;
	struct mr *mr = object_find(call->client, OBJECT_MR, in->lkey);
	struct control_mr to;
	int rc;

	if (!mr)
		return -ENOENT;
	if (!mr->region || !(in->mask & all) || in->mask & ~all)
		return -EINVAL;
	if (mr->object.users)
		return -EBUSY;
	to = as_is(mr);
	change(&to, in);
	rc = mr_check(call->client, &to);
	if (rc)
		return rc;
	rc = mpt_leave(&mr->object);
	if (rc)
		return rc;
	count_users(mr, -1);
	rc = mr_enter(mr, &to);
	count_users(mr, 1);
	out->lkey = out->rkey = mr->object.number;
	return rc;
}
