/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels, asynchronous events. Any thread. Their descriptors are libsofthca's: the
 * program may poll them, and make them O_NONBLOCK.
 */
#include <stdlib.h>
#include <string.h>
#include "verbs_priv.h"

/* -1 with errno. */
static int fails(int rc)
{
	if (rc < 0)
		errno = -rc;
	return rc < 0 ? -1 : 0;
}

/* ---- completions ---- */

VERBS_PUBLIC struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct shca_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->channel = softhca_create_channel(to_shca_context(context)->hca);
	if (!channel->channel) {
		free(channel);
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = softhca_channel_fd(channel->channel);
	return &channel->ibv;
}

VERBS_PUBLIC int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct shca_channel *channel = to_shca_channel(ibv);
	int rc = softhca_destroy_channel(channel->channel);

	if (!rc)
		free(channel);
	return verbs_status(rc);
}

VERBS_PUBLIC int ibv_get_cq_event(
	struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	void *user;
	int rc = softhca_get_cq_event(to_shca_channel(channel)->channel, NULL, &user);

	if (rc)
		return fails(rc);
	*cq = &((struct shca_cq *)user)->ibv;
	*cq_context = (*cq)->cq_context;
	return 0;
}

VERBS_PUBLIC void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (nevents)
		softhca_ack_cq_events(to_shca_cq(cq)->cq, nevents);
}

/* ---- asynchronous events ---- */

/* The event as the program knows it; false: what it is about has gone. */
static bool translate(const struct softhca_event *from, struct ibv_async_event *to)
{
	memset(to, 0, sizeof(*to));
	to->event_type = from->type; /* the same numbers */
	switch (from->type) {
	case SOFTHCA_EVENT_CQ_ERR:
		to->element.cq = from->cq ? softhca_cq_user(from->cq) : NULL;
		return to->element.cq;
	case SOFTHCA_EVENT_QP_FATAL:
	case SOFTHCA_EVENT_QP_REQ_ERR:
	case SOFTHCA_EVENT_QP_ACCESS_ERR:
	case SOFTHCA_EVENT_COMM_EST:
	case SOFTHCA_EVENT_SQ_DRAINED:
	case SOFTHCA_EVENT_QP_LAST_WQE:
		to->element.qp = from->qp ? softhca_qp_user(from->qp) : NULL;
		return to->element.qp;
	case SOFTHCA_EVENT_SRQ_ERR:
	case SOFTHCA_EVENT_SRQ_LIMIT:
		to->element.srq = from->srq ? softhca_srq_user(from->srq) : NULL;
		return to->element.srq;
	default: /* of the port, or of the device */
		to->element.port_num = VERBS_PORT;
		return true;
	}
}

VERBS_PUBLIC int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct softhca_event e;
	int rc;

	do {
		rc = softhca_get_async_event(to_shca_context(context)->hca, &e);
		if (rc)
			return fails(rc);
	} while (!translate(&e, event));
	return 0;
}

VERBS_PUBLIC void ibv_ack_async_event(struct ibv_async_event *event)
{
}
