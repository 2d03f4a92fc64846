/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on memory windows, keys for fast registrations, and regions
 * without memory. Work requests bind windows and such keys; here they are created and destroyed,
 * bound or not. Everything in a request is untrusted. Control thread.
 */
#include <errno.h>
#include "host-abi/wqe.h"
#include "mrs.h"
#include "objects.h"
#include "session.h"

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
	rc = mpt_write(&mw->object, (struct mpt_entry){.pd = in->pd, .flags = flags});
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
	rc = mpt_invalidate(&mw->object);
	if (rc)
		return rc;
	mw->pd->object.users--;
	object_drop(&mw->object);
	return 0;
}

/* MTT entries for a key's pages, none of them there yet. */
static int take_pages(struct mr *mr, uint32_t pages)
{
	static struct ceu_write_mtt none;
	struct client *client = mr->object.client;
	int rc = mtt_take(client, pages, &mr->memory);

	if (rc)
		return rc;
	none.first = mr->memory.mtt_first;
	return client_command(client, CEU_WRITE_MTT, pages, &none, sizeof(none));
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
	rc = take_pages(mr, in->pages);
	if (!rc)
		rc = mpt_write(&mr->object,
			       (struct mpt_entry){.pd = in->pd,
						  .flags = MPT_FAST | MPT_INVALIDATE_REMOTE |
							   MPT_OWNS_PAGES,
						  .mtt_first = mr->memory.mtt_first,
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
	rc = mpt_write(&mr->object, (struct mpt_entry){.pd = in->number,
						       .access = ACCESS_LOCAL_WRITE,
						       .flags = MPT_NULL,
						       .length = UINT64_MAX});
	return mr_made(mr, pd, rc, out);
}
