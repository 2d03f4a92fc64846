/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels, asynchronous events. Any thread. Their descriptors are libsofthca's: the
 * program may poll them, and make them O_NONBLOCK.
 */
#include <stdlib.h>
#include <string.h>
#include "handles.h"

/* ---- completions ---- */

VERBS_PUBLIC struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct shca_channel *channel =
		context_known(context) ? calloc(1, sizeof(*channel)) : none_for_no_such_object();

	if (!channel)
		return NULL;
	channel->channel = softhca_create_channel(to_shca_context(context)->hca);
	if (!channel->channel) {
		free(channel);
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = softhca_channel_fd(channel->channel);
	handle_add(&channel->handle, HANDLE_CHANNEL, to_shca_context(context)->hca, 0, NULL);
	return &channel->ibv;
}

VERBS_PUBLIC int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct shca_channel *channel = to_shca_channel(ibv);
	int rc;

	if (!channel_take(ibv))
		return no_such_object();
	rc = handle_end(&channel->handle, softhca_destroy_channel(channel->channel));
	if (rc)
		return rc;
	free(channel);
	return 0;
}

VERBS_PUBLIC int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
				  void **cq_context)
{
	void *user;
	int rc = channel_known(channel)
			 ? softhca_get_cq_event(to_shca_channel(channel)->channel, NULL, &user)
			 : -EINVAL;

	if (rc)
		return verbs_minus_one(rc);
	*cq = &((struct shca_cq *)user)->ibv;
	*cq_context = (*cq)->cq_context;
	return 0;
}

/*
 * An object's count of acknowledged events is public: programs read it, and wait for it, under its
 * mutex. It is updated first: once libsofthca knows, another thread may destroy the object.
 */
static void count(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
		  unsigned int events)
{
	pthread_mutex_lock(mutex);
	*completed += events;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

VERBS_PUBLIC void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!nevents || !cq_there(cq))
		return;
	count(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
	softhca_ack_cq_events(to_shca_cq(cq)->cq, nevents);
}

/* ---- asynchronous events ---- */

enum subject { OF_CQ, OF_QP, OF_SRQ, OF_DEVICE };

static enum subject subject_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return OF_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return OF_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return OF_SRQ;
	default: /* of the port, or of the device */
		return OF_DEVICE;
	}
}

/* libsofthca keeps the object alive until the event is acknowledged. */
VERBS_PUBLIC int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct softhca_event e;
	int rc = context_known(context) ? softhca_get_async_event(to_shca_context(context)->hca, &e)
					: -EINVAL;

	if (rc)
		return verbs_minus_one(rc);
	memset(event, 0, sizeof(*event));
	event->event_type = e.type; /* the same numbers */
	switch (subject_of(event->event_type)) {
	case OF_CQ:
		event->element.cq = &((struct shca_cq *)softhca_cq_user(e.cq))->ibv;
		break;
	case OF_QP:
		event->element.qp = &((struct shca_qp *)softhca_qp_user(e.qp))->ibv;
		break;
	case OF_SRQ:
		event->element.srq = &((struct shca_srq *)softhca_srq_user(e.srq))->ibv;
		break;
	case OF_DEVICE:
		event->element.port_num = VERBS_PORT;
		break;
	}
	return 0;
}

VERBS_PUBLIC void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;
	struct softhca_event e = {.type = event->event_type};

	switch (subject_of(event->event_type)) {
	case OF_CQ:
		if (!cq_there(cq))
			return;
		e.cq = to_shca_cq(cq)->cq;
		count(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	case OF_QP:
		if (!qp_there(qp))
			return;
		e.qp = to_shca_qp(qp)->qp;
		count(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	case OF_SRQ:
		if (!srq_there(srq))
			return;
		e.srq = to_shca_srq(srq)->srq;
		count(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	case OF_DEVICE:
		break;
	}
	softhca_ack_async_event(&e);
}
