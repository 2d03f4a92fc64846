/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on completion queues. All that a request says is the client's
 * word. Control thread.
 */
#include <errno.h>
#include "mrs.h"
#include "objects.h"
#include "session.h"

/* The entries as an address of the daemon, or NULL. */
static struct cqe *buffer(const struct client *client, const struct mr *mr, uint32_t log_entries,
			  uint64_t va)
{
	if (log_entries > 31 || 1u << log_entries > CONTROL_CQE_MAX)
		return NULL;
	return (struct cqe *)queue_memory(client, mr, va, sizeof(struct cqe) << log_entries, 64);
}

int run_create_cq(struct call *call)
{
	const struct control_cq *in = call->body;
	struct control_number *out = call->reply;
	struct client *client = call->client;
	struct mr *mr = object_find(client, OBJECT_MR, in->lkey);
	struct ceu_cq make = {.client = client->index, .log_entries = in->log_entries};
	struct cq_object *cq;
	int rc;

	if (!mr)
		return -ENOENT;
	make.buffer = buffer(client, mr, in->log_entries, in->buffer_va);
	make.record = (struct cq_record *)queue_memory(client, mr, in->record_va,
						       sizeof(struct cq_record), 64);
	if (!make.buffer || !make.record)
		return -EINVAL;
	cq = object_make(client, OBJECT_CQ, sizeof(*cq), &rc);
	if (!cq)
		return rc;
	rc = ceu_errno(
		ceu_map_context(client->device->config.ceu, CEU_CONTEXT_CQ, cq->object.number));
	if (!rc)
		rc = client_command(client, CEU_SW2HW_CQ, cq->object.number, &make, sizeof(make));
	if (rc) {
		object_drop(&cq->object);
		return rc;
	}
	cq->record_mr = cq->buffer_mr = mr;
	mr->object.users += 2;
	out->number = cq->object.number;
	return 0;
}

int run_resize_cq(struct call *call)
{
	const struct control_resize_cq *in = call->body;
	struct client *client = call->client;
	struct cq_object *cq = object_find(client, OBJECT_CQ, in->cqn);
	struct mr *mr = object_find(client, OBJECT_MR, in->lkey);
	struct ceu_resize_cq resize = {.log_entries = in->log_entries};
	int rc;

	if (!cq || !mr)
		return -ENOENT;
	resize.buffer = buffer(client, mr, in->log_entries, in->buffer_va);
	if (!resize.buffer || in->reserved)
		return -EINVAL;
	rc = client_command(client, CEU_RESIZE_CQ, in->cqn, &resize, sizeof(resize));
	if (rc)
		return rc;
	cq->buffer_mr->object.users--;
	cq->buffer_mr = mr;
	mr->object.users++;
	return 0;
}

int run_destroy_cq(struct call *call)
{
	int rc;
	struct cq_object *cq = object_named(call, OBJECT_CQ, &rc);

	if (rc)
		return rc;
	rc = client_command(call->client, CEU_HW2SW_CQ, cq->object.number, NULL, 0);
	if (rc)
		return rc;
	cq->record_mr->object.users--;
	cq->buffer_mr->object.users--;
	object_drop(&cq->object);
	return 0;
}
