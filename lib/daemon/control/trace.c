/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces of a queue pair, for those who may change the daemon. A trace begins on the engine of the
 * queue pair and, if the peer is an HCA of this daemon, on the peer's engine; the client reads it
 * bit by bit; it ends with the connection. Control thread.
 */
#include <errno.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include "session.h"
#include "settings.h"
#include "trace.h"
#include "host-abi/trace_record.h"
#include "pipeline/stepping.h"
#include "pipeline/trace.h"

/* 0, -ENOMEM, -EBUSY: somebody traces that engine. */
static int follow(struct client *client, struct device *d, const struct qp *q)
{
	struct traced *to = &client->traced[client->traced_count];
	struct engine *e = &d->config.hca->engines[q->engine];
	int rc = trace_begin(e, qp_number(q));

	if (rc)
		return rc;
	*to = (struct traced){.device = d, .engine = e, .qpn = qp_number(q)};
	client->traced_count++;
	return 0;
}

/* The other end, if it is ours. Two queue pairs of one engine are not followed at once. */
static void follow_peer(struct client *client, const struct qp *q)
{
	struct control *c = client->control;

	FOR_EACH_DEVICE (d, c) {
		const struct qp *peer = qp_find(&d->config.hca->qps, q->dest_qpn);

		if (q->dest_qpn && peer && peer->dest_qpn == qp_number(q) && peer != q) {
			follow(client, d, peer);
			return;
		}
	}
}

int run_trace(struct call *call)
{
	const struct control_trace *in = call->body;
	struct control_trace_reply *out = call->reply;
	struct client *client = call->client;
	struct control *c = client->control;
	int rc = -ENOENT;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (!client_may_change(client))
		return -EPERM;
	if (!memchr(in->device, 0, sizeof(in->device)))
		return -EINVAL;
	if (client->traced_count)
		return -EBUSY;
	FOR_EACH_DEVICE (d, c) {
		const struct qp *q = qp_find(&d->config.hca->qps, in->qpn);

		if (rc != -ENOENT || !q ||
		    (in->device[0] && strcmp(in->device, d->config.name) != 0))
			continue;
		rc = follow(client, d, q);
		if (!rc)
			follow_peer(client, q);
	}
	if (rc)
		return rc;
	client->looks = true;
	out->tsc_hz = rte_get_tsc_hz();
	out->places = client->traced_count * STAGE_COUNT;
	CLIENT_LOG(client, NOTICE, "user %u traces queue pair %u of %s", (unsigned int)client->uid,
		   (unsigned int)in->qpn, client->traced[0].device->config.name);
	return 0;
}

int run_read_trace(struct call *call)
{
	const struct control_read_trace *in = call->body;
	struct control_read_trace_reply *out = call->reply;
	const struct client *client = call->client;
	const struct traced *from;
	const struct trace_stage *stage;
	uint32_t there;

	if (in->version != CONTROL_VERSION)
		return -EPROTO;
	if (in->place >= client->traced_count * STAGE_COUNT)
		return -ENOENT;
	from = &client->traced[in->place / STAGE_COUNT];
	stage = &from->engine->stepping->trace->stage[in->place % STAGE_COUNT];
	there = __atomic_load_n(&stage->count, __ATOMIC_ACQUIRE);
	if (in->from > there)
		return -EINVAL;
	memcpy(out->device, from->device->config.name, sizeof(out->device));
	out->qpn = from->qpn;
	out->full = there == TRACE_RECORDS_MAX;
	out->count = there - in->from;
	if (out->count > CONTROL_TRACE_RECORDS)
		out->count = CONTROL_TRACE_RECORDS;
	memcpy(out->record, &stage->record[in->from], out->count * sizeof(out->record[0]));
	return 0;
}

void trace_client_end(struct client *client)
{
	struct trace *traces[CLIENT_TRACES_MAX];

	if (!client->traced_count)
		return;
	for (unsigned int i = 0; i < client->traced_count; i++)
		traces[i] = trace_end(client->traced[i].engine);
	ceu_quiesce(device_first(client->control)->config.ceu);
	for (unsigned int i = 0; i < client->traced_count; i++)
		rte_free(traces[i]);
	client->traced_count = 0;
}
