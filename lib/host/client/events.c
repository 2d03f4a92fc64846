/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: a thread takes what the daemon writes into the event queue of the client's page and sorts
 * it into the channels and the asynchronous queue; each has a semaphore eventfd for the user to
 * wait on. The thread also notices when the daemon dies. It is started by the first channel or
 * request for asynchronous events.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "share-in-place/sharing.h"
#include "context.h"
#include "doorbell.h"
#include "events.h"
#include "qp.h"

enum {
	UNRUNG_MS = 1,	      /* between two looks at a full doorbell FIFO */
	EVENTS_OF_OBJECT = 8, /* in a queue */
};

/* ---- queues ---- */

int event_queue_create(struct event_queue *q)
{
	*q = (struct event_queue){.size = 16};
	q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (q->fd < 0)
		return -errno;
	q->events = calloc(q->size, sizeof(q->events[0]));
	return q->events ? 0 : -ENOMEM;
}

void event_queue_destroy(struct event_queue *q)
{
	if (q->fd >= 0)
		close(q->fd);
	free(q->events);
	*q = (struct event_queue){.fd = -1};
}

static void events_announce(const struct event_queue *q)
{
	uint64_t one = 1;

	/* Fails only when 2^64 - 2 events are pending. */
	if (write(q->fd, &one, sizeof(one)) < 0)
		return;
}

/* Takes back one announcement. If there is none a reader has it already, and will find the queue
 * empty and wait again. */
static void recant(const struct event_queue *q)
{
	uint64_t n;
	struct iovec to = {.iov_base = &n, .iov_len = sizeof(n)};

	if (preadv2(q->fd, &to, 1, -1, RWF_NOWAIT) < 0)
		return;
}

static bool event_queue_grow(struct event_queue *q)
{
	struct softhca_event *events = calloc((size_t)q->size * 2, sizeof(events[0]));

	if (!events)
		return false;
	for (uint32_t i = 0; i < q->count; i++)
		events[i] = q->events[(q->head + i) & (q->size - 1)];
	free(q->events);
	q->events = events;
	q->head = 0;
	q->size *= 2;
	return true;
}

/* event_lock is held. */
static void event_queue_put(struct event_queue *q, const struct softhca_event *e)
{
	if (q->count == q->size && !event_queue_grow(q))
		return;
	q->events[(q->head + q->count++) & (q->size - 1)] = *e;
	events_announce(q);
}

/* The same for events from the daemon, of which only a bounded number is kept unread: as many as
 * the daemon's queue holds, and a few for each object. event_lock is held. */
static void event_queue_offer(const struct softhca_context *ctx, struct event_queue *q,
			      const struct softhca_event *e)
{
	if (q->count < EQ_ENTRIES + (uint64_t)EVENTS_OF_OBJECT * ctx->node_count)
		event_queue_put(q, e);
}

/* event_lock is held. */
static bool event_queue_take(struct event_queue *q, struct softhca_event *e)
{
	if (q->count == 0)
		return false;
	*e = q->events[q->head & (q->size - 1)];
	q->head++;
	q->count--;
	return true;
}

/* The object that the event is about, or NULL. */
static struct node *event_node(const struct softhca_event *e)
{
	if (e->cq)
		return &e->cq->node;
	if (e->qp)
		return &e->qp->node;
	return e->srq ? &e->srq->node : NULL;
}

/* The event now belongs to the user: its object lives until the event is acknowledged. event_lock
 * is held. */
static void event_given(const struct softhca_context *ctx, bool async,
			const struct softhca_event *e)
{
	if (!async)
		e->cq->events++;
	else if (ctx->acknowledges && event_node(e))
		event_node(e)->events++;
}

/* Drops an object's events, or only their pointers to it. event_lock is held. */
static void event_queue_forget(struct event_queue *q, const struct node *object, bool drop)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < q->count; i++) {
		struct softhca_event e = q->events[(q->head + i) & (q->size - 1)];

		if (event_node(&e) == object) {
			if (drop) {
				recant(q);
				continue;
			}
			e.cq = NULL;
			e.qp = NULL;
			e.srq = NULL;
		}
		q->events[(q->head + kept++) & (q->size - 1)] = e;
	}
	q->count = kept;
}

/* Waits for one event. It is counted before the lock is dropped: from then on the object's
 * destruction waits for the acknowledgement. 0, -EAGAIN, -EINTR, -EIO (the daemon has died and no
 * event is left). */
static int event_queue_wait(struct softhca_context *ctx, struct event_queue *q,
			    struct softhca_event *e)
{
	bool async = q == &ctx->async, got, gone;
	uint64_t n;
	int rc;

	for (;;) {
		if (ctx_dead(ctx))
			ctx_alive(ctx); /* wakes all waiters, unless done already */
		pthread_mutex_lock(&ctx->event_lock);
		if (async && ctx->fatal_raised && q->count == 0) { /* fd is not readable any more */
			pthread_mutex_unlock(&ctx->event_lock);
			return -EIO;
		}
		q->waiting++;
		pthread_mutex_unlock(&ctx->event_lock);
		rc = read(q->fd, &n, sizeof(n)) < 0 ? -errno : 0;
		pthread_mutex_lock(&ctx->event_lock);
		q->waiting--;
		got = !rc && event_queue_take(q, e);
		gone = !rc && ctx->fatal_raised && q->count == 0;
		if (got)
			event_given(ctx, async, e);
		if (gone && (async ? q->waiting : !got))
			events_announce(q); /* for the next caller */
		pthread_mutex_unlock(&ctx->event_lock);
		if (rc || got)
			return rc;
		if (gone)
			return -EIO;
	}
}

/* ---- the dispatcher ---- */

static struct softhca_cq *cq_lookup(struct softhca_context *ctx, uint32_t number)
{
	for (struct node *n = ctx->nodes[NODE_CQ]; n; n = n->next)
		if (((struct softhca_cq *)n)->number == number)
			return (struct softhca_cq *)n;
	return NULL;
}

static struct softhca_srq *srq_lookup(struct softhca_context *ctx, uint32_t number)
{
	for (struct node *n = ctx->nodes[NODE_SRQ]; n; n = n->next)
		if (((struct softhca_srq *)n)->number == number)
			return (struct softhca_srq *)n;
	return NULL;
}

static const struct {
	uint8_t known, type, of_qp, fails;
} types[32] = {
	[EQE_PATH_MIG] = {1, SOFTHCA_EVENT_PATH_MIG, 1, 0},
	[EQE_PATH_MIG_ERR] = {1, SOFTHCA_EVENT_PATH_MIG_ERR, 1, 0},
	[EQE_COMM_EST] = {1, SOFTHCA_EVENT_COMM_EST, 1, 0},
	[EQE_SQ_DRAINED] = {1, SOFTHCA_EVENT_SQ_DRAINED, 1, 0},
	[EQE_CQ_ERROR] = {1, SOFTHCA_EVENT_CQ_ERR, 0, 0},
	[EQE_WQ_CATAS_ERROR] = {1, SOFTHCA_EVENT_QP_FATAL, 1, 1},
	[EQE_LOCAL_CATAS_ERROR] = {1, SOFTHCA_EVENT_DEVICE_FATAL, 0, 0},
	[EQE_PORT_CHANGE] = {1, SOFTHCA_EVENT_PORT_ACTIVE, 0, 0},
	[EQE_GID_CHANGE] = {1, SOFTHCA_EVENT_GID_CHANGE, 0, 0},
	[EQE_WQ_INVAL_REQ_ERROR] = {1, SOFTHCA_EVENT_QP_REQ_ERR, 1, 1},
	[EQE_WQ_ACCESS_ERROR] = {1, SOFTHCA_EVENT_QP_ACCESS_ERR, 1, 1},
	[EQE_SRQ_ERROR] = {1, SOFTHCA_EVENT_SRQ_ERR, 0, 0},
	[EQE_SRQ_LIMIT] = {1, SOFTHCA_EVENT_SRQ_LIMIT, 0, 0},
	[EQE_LAST_WQE] = {1, SOFTHCA_EVENT_QP_LAST_WQE, 1, 0},
};

static bool of_object(uint8_t type)
{
	return types[type].of_qp || type == EQE_CQ_ERROR || type == EQE_SRQ_LIMIT ||
	       type == EQE_SRQ_ERROR;
}

/* lock and event_lock are held. */
static void events_dispatch(struct softhca_context *ctx, const struct eqe *eqe)
{
	struct softhca_event e = {.number = eqe->number};

	if (eqe->type == EQE_COMPLETION) {
		e.cq = cq_lookup(ctx, eqe->number);
		if (e.cq && e.cq->channel)
			event_queue_offer(ctx, &e.cq->channel->queue, &e);
		return;
	}
	if (eqe->type >= 32 || !types[eqe->type].known)
		return;
	e.type = types[eqe->type].type;
	if (types[eqe->type].of_qp)
		e.qp = qp_lookup(ctx, eqe->number);
	if (eqe->type == EQE_CQ_ERROR)
		e.cq = cq_lookup(ctx, eqe->number);
	if (eqe->type == EQE_SRQ_LIMIT || eqe->type == EQE_SRQ_ERROR)
		e.srq = srq_lookup(ctx, eqe->number);
	if (eqe->type == EQE_PORT_CHANGE)
		e.type = eqe->number ? SOFTHCA_EVENT_PORT_ACTIVE : SOFTHCA_EVENT_PORT_ERR;
	if (eqe->type == EQE_PORT_CHANGE || eqe->type == EQE_GID_CHANGE)
		e.number = 1; /* the port's */
	if (e.qp && types[eqe->type].fails)
		qp_failed(e.qp, SOFTHCA_QPS_ERR);
	/* The object is destroyed, and the user wants no events about destroyed objects. */
	if (ctx->acknowledges && of_object(eqe->type) && !event_node(&e))
		return;
	event_queue_offer(ctx, &ctx->async, &e);
}

/* The dispatcher calls it without the lock: it may see an event that another thread has just
 * taken. */
static bool event_there(const struct softhca_context *ctx)
{
	uint32_t taken = __atomic_load_n(&ctx->eq_taken, __ATOMIC_RELAXED);
	uint8_t phase = (taken / EQ_ENTRIES & 1) ^ 1;

	return __atomic_load_n(&ctx->page->eq[taken % EQ_ENTRIES].owner, __ATOMIC_ACQUIRE) == phase;
}

void events_drain(struct softhca_context *ctx)
{
	pthread_mutex_lock(&ctx->event_lock);
	/* Bounded: the daemon may keep writing. */
	for (unsigned int n = 0; n < EQ_ENTRIES && event_there(ctx); n++) {
		struct eqe e = ctx->page->eq[ctx->eq_taken % EQ_ENTRIES];

		__atomic_store_n(&ctx->eq_taken, ctx->eq_taken + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&ctx->page->eq_consumer, ctx->eq_taken, __ATOMIC_RELEASE);
		events_dispatch(ctx, &e);
	}
	pthread_mutex_unlock(&ctx->event_lock);
}

static void drain_events(struct softhca_context *ctx)
{
	pthread_mutex_lock(&ctx->lock);
	events_drain(ctx);
	pthread_mutex_unlock(&ctx->lock);
}

/* Takes one ring; if there are more, poll() returns again, so that a daemon that keeps ringing does
 * not starve the dispatcher's other descriptors. A daemon that hung up the bell counts as dead. */
static void bell_take(struct softhca_context *ctx)
{
	char byte;
	ssize_t n = recv(ctx->bell, &byte, 1, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		__atomic_store_n(&ctx->dead, 1, __ATOMIC_SEQ_CST);
}

/* Sleeps until the bell rings, the daemon dies or the context is closed; only for a moment while
 * doorbells wait for room in the FIFO, since nothing announces that. False: closed. */
static bool sleep_until_bell(struct softhca_context *ctx, struct sharing_worker *worker)
{
	struct pollfd p[3] = {{.fd = ctx->bell, .events = POLLIN},
			      {.fd = ctx->wake, .events = POLLIN},
			      {.fd = ctx->fd, .events = POLLRDHUP}};
	uint64_t times;
	int n;

	__atomic_store_n(&ctx->page->waiting, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* A thread that found the daemon dead while ringing a doorbell woke no one. */
	if (event_there(ctx) || ctx_dead(ctx))
		return true;
	sharing_worker_sleeps(worker);
	n = poll(p, 3, __atomic_load_n(&ctx->unrung, __ATOMIC_RELAXED) ? UNRUNG_MS : -1);
	sharing_worker_wakes(worker);
	if (n < 0)
		return true;
	if (p[1].revents && read(ctx->wake, &times, sizeof(times)) == sizeof(times) &&
	    __atomic_load_n(&ctx->closing, __ATOMIC_RELAXED))
		return false;
	if (p[0].revents)
		bell_take(ctx);
	if (p[2].revents)
		ctx_alive(ctx);
	return true;
}

static void *dispatcher(void *arg)
{
	struct softhca_context *ctx = arg;
	struct sharing_worker *worker = sharing_worker_enter();

	do {
		drain_events(ctx);
		if (__atomic_load_n(&ctx->unrung, __ATOMIC_RELAXED))
			ring_unrung(ctx);
	} while (sleep_until_bell(ctx, worker) && !ctx_dead(ctx));
	if (ctx_dead(ctx))
		ctx_alive(ctx); /* wakes all waiters, unless done already */
	drain_events(ctx);
	sharing_worker_leave(worker);
	return NULL;
}

int events_start(struct softhca_context *ctx)
{
	int rc = 0;

	pthread_mutex_lock(&ctx->event_lock);
	if (!ctx->dispatching) {
		if (ctx->wake < 0)
			ctx->wake = eventfd(0, EFD_CLOEXEC);
		rc = ctx->wake < 0 ? -errno
				   : -pthread_create(&ctx->dispatcher, NULL, dispatcher, ctx);
		__atomic_store_n(&ctx->dispatching, rc == 0, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ctx->event_lock);
	return rc;
}

bool events_wake(struct softhca_context *ctx)
{
	uint64_t one = 1;

	return __atomic_load_n(&ctx->dispatching, __ATOMIC_ACQUIRE) &&
	       write(ctx->wake, &one, sizeof(one)) == sizeof(one);
}

void events_stop(struct softhca_context *ctx)
{
	__atomic_store_n(&ctx->closing, true, __ATOMIC_RELAXED);
	if (events_wake(ctx))
		pthread_join(ctx->dispatcher, NULL);
	ctx->dispatching = false;
}

void events_dead(struct softhca_context *ctx)
{
	struct softhca_event fatal = {.type = SOFTHCA_EVENT_DEVICE_FATAL};

	pthread_mutex_lock(&ctx->event_lock);
	if (ctx->async.fd >= 0)
		event_queue_put(&ctx->async, &fatal);
	ctx->fatal_raised = true;
	for (struct node *n = ctx->nodes[NODE_CHANNEL]; n; n = n->next)
		events_announce(&((struct softhca_channel *)n)->queue);
	pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->event_lock);
}

void events_forget(struct node *object)
{
	struct softhca_context *ctx = object->ctx;
	struct softhca_cq *cq = object->kind == NODE_CQ ? (struct softhca_cq *)object : NULL;

	pthread_mutex_lock(&ctx->event_lock);
	if (cq && cq->channel)
		event_queue_forget(&cq->channel->queue, object, true);
	event_queue_forget(&ctx->async, object, ctx->acknowledges);
	while (object->events != object->acked || (cq && cq->events != cq->acked))
		pthread_cond_wait(&ctx->acked, &ctx->event_lock);
	pthread_mutex_unlock(&ctx->event_lock);
}

/* ---- the user's side ---- */

struct softhca_channel *softhca_create_channel(struct softhca_context *ctx)
{
	struct softhca_channel *channel = calloc(1, sizeof(*channel));
	int rc = channel ? event_queue_create(&channel->queue) : -ENOMEM;

	if (!rc)
		rc = events_start(ctx);
	if (rc) {
		if (channel)
			event_queue_destroy(&channel->queue);
		free(channel);
		errno = -rc;
		return NULL;
	}
	pthread_mutex_lock(&ctx->lock);
	pthread_mutex_lock(&ctx->event_lock);
	node_add(ctx, &channel->node, NODE_CHANNEL);
	if (ctx_dead(ctx))
		events_announce(&channel->queue);
	pthread_mutex_unlock(&ctx->event_lock);
	pthread_mutex_unlock(&ctx->lock);
	return channel;
}

int softhca_destroy_channel(struct softhca_channel *channel)
{
	struct softhca_context *ctx = channel->node.ctx;
	bool busy;

	pthread_mutex_lock(&ctx->lock);
	pthread_mutex_lock(&ctx->event_lock);
	busy = channel->node.users != 0;
	if (!busy)
		node_remove(&channel->node);
	pthread_mutex_unlock(&ctx->event_lock);
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return -EBUSY;
	event_queue_destroy(&channel->queue);
	free(channel);
	return 0;
}

int softhca_channel_fd(const struct softhca_channel *channel)
{
	return channel->queue.fd;
}

int softhca_get_cq_event(struct softhca_channel *channel, struct softhca_cq **cq, void **user)
{
	struct softhca_context *ctx = channel->node.ctx;
	struct softhca_event e;
	int rc = event_queue_wait(ctx, &channel->queue, &e);

	if (rc)
		return rc;
	if (cq)
		*cq = e.cq;
	if (user)
		*user = e.cq->user;
	return 0;
}

void softhca_ack_cq_events(struct softhca_cq *cq, unsigned int events)
{
	struct softhca_context *ctx = cq->node.ctx;

	pthread_mutex_lock(&ctx->event_lock);
	cq->acked += events;
	pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->event_lock);
}

int softhca_async_fd(struct softhca_context *ctx)
{
	int rc = events_start(ctx);

	return rc ? rc : ctx->async.fd;
}

int softhca_get_async_event(struct softhca_context *ctx, struct softhca_event *event)
{
	int rc = events_start(ctx);

	return rc ? rc : event_queue_wait(ctx, &ctx->async, event);
}

void softhca_acknowledge_async_events(struct softhca_context *ctx)
{
	pthread_mutex_lock(&ctx->event_lock);
	ctx->acknowledges = true;
	pthread_mutex_unlock(&ctx->event_lock);
}

void softhca_ack_async_event(const struct softhca_event *event)
{
	struct node *object = event_node(event);

	if (!object)
		return;
	pthread_mutex_lock(&object->ctx->event_lock);
	object->acked++;
	pthread_cond_broadcast(&object->ctx->acked);
	pthread_mutex_unlock(&object->ctx->event_lock);
}
