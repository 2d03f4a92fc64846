/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of the control socket on shared receive queues. All that a request says is the
 * client's word. Control thread.
 */
#include <errno.h>
#include "mrs.h"
#include "objects.h"
#include "session.h"

/* Converts the ring's addresses to the daemon's; the CEU checks its geometry. 0, -EINVAL. */
static int ring(const struct client *client, const struct mr *mr, const struct control_srq *in,
		struct ceu_srq *make)
{
	if (in->log_entries > 31 || 1u << in->log_entries > CONTROL_SRQ_WR_MAX)
		return -EINVAL;
	make->entries = 1u << in->log_entries;
	make->stride = in->stride;
	make->ring = queue_memory(client, mr, in->ring_va, (uint64_t)in->stride << in->log_entries,
				  WQE_UNIT_BYTES);
	make->record = (struct srq_record *)queue_memory(client, mr, in->record_va,
							 sizeof(struct srq_record), 64);
	return make->ring && make->record ? 0 : -EINVAL;
}

int run_create_srq(struct call *call)
{
	const struct control_srq *in = call->body;
	struct control_number *out = call->reply;
	struct client *client = call->client;
	const struct device *d = client->device;
	struct pd *pd = object_find(client, OBJECT_PD, in->pd);
	struct mr *mr = object_find(client, OBJECT_MR, in->lkey);
	struct ceu_srq make = {.client = (uint16_t)client->index, .pd = in->pd};
	struct srq_object *srq;
	int rc;

	if (!pd || !mr)
		return -ENOENT;
	rc = ring(client, mr, in, &make);
	if (rc)
		return rc;
	make.engine = (uint16_t)client_engine(client);
	srq = object_make(client, OBJECT_SRQ, sizeof(*srq), &rc);
	if (!srq)
		return rc;
	rc = ceu_errno(ceu_map_context(d->config.ceu, CEU_CONTEXT_SRQ, srq->object.number));
	if (!rc)
		rc = client_command(client, CEU_SW2HW_SRQ, srq->object.number, &make, sizeof(make));
	if (rc) {
		object_drop(&srq->object);
		return rc;
	}
	srq->pd = pd;
	srq->mr = mr;
	srq->engine = make.engine;
	client_engine_take(client, srq->engine);
	pd->object.users++;
	mr->object.users++;
	out->number = srq->object.number;
	return 0;
}

int run_modify_srq(struct call *call)
{
	const struct control_srq_limit *in = call->body;
	const struct ceu_srq_limit limit = {.limit = in->limit};

	if (!object_find(call->client, OBJECT_SRQ, in->srqn))
		return -ENOENT;
	return client_command(call->client, CEU_ARM_SRQ, in->srqn, &limit, sizeof(limit));
}

int run_query_srq(struct call *call)
{
	const struct control_number *in = call->body;

	if (!object_find(call->client, OBJECT_SRQ, in->number))
		return -ENOENT;
	return client_query(call->client, CEU_QUERY_SRQ, in->number, call->reply,
			    sizeof(struct control_srq_attr));
}

int run_destroy_srq(struct call *call)
{
	int rc;
	struct srq_object *srq = object_named(call, OBJECT_SRQ, &rc);

	if (rc)
		return rc;
	rc = client_command(call->client, CEU_HW2SW_SRQ, srq->object.number, NULL, 0);
	if (rc)
		return rc;
	srq->pd->object.users--;
	srq->mr->object.users--;
	client_engine_give(call->client, srq->engine);
	object_drop(&srq->object);
	return 0;
}
