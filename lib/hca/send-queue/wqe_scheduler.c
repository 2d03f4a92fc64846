/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WQEScheduler and WQEIndicatorTable (doc/modules.md#wqescheduler): keeps the order of a queue
 * pair's descriptors. Q1 are the doorbells, Q2 the descriptors that WQEParse sends back from the
 * middle of a chain; Q2 goes first, and a doorbell waits while a chain of its queue pair is with
 * WQEParse. Stage doorbell_wqe.
 *
 * In the hardware one waiting doorbell holds up Q1; here each queue pair has its own list, and
 * queue pairs take turns. A queue pair that has `pipeline_depth` requests between here and
 * RequesterTransControl is parked until some of them finish: so one whose peer does not answer
 * holds only a few descriptors.
 */
#include <errno.h>
#include "pipeline/parking.h"
#include "context/qp_list.h"
#include "descriptors.h"
#include "doorbell_processing.h"
#include "wqe_scheduler.h"

/* Requests of one QP in the pipeline while descriptors are scarce, and its user holds many. */
#define DEPTH_SCARCE 2

struct ws {
	struct qp_list ready; /* queue pairs that may continue */
};

int ws_create(struct engine *e)
{
	struct ws *w = engine_alloc(e, "ws", sizeof(*w));

	if (!w)
		return -ENOMEM;
	qp_list_init(&w->ready, e->qps, offsetof(struct qp, ws.ready));
	e->ws = w;
	return 0;
}

void ws_destroy(struct engine *e)
{
	rte_free(e->ws);
	e->ws = NULL;
}

/* A QP with something in its list, no chain at WQEParse, and not parked. */
static void ready_if(struct engine *e, struct qp *q)
{
	if (q->ws.head && !q->ws.chain && !q->ws.parked)
		qp_list_add(&e->ws->ready, q);
}

void wit_set(struct qp *q)
{
	q->ws.chain = 1;
}

void wit_clear(struct engine *e, struct qp *q)
{
	q->ws.chain = 0;
	ready_if(e, q);
}

/* The CEU has destroyed the QP: frees its requests. */
static void ws_release(struct engine *e, struct qp *q)
{
	requests_free(e, &q->ws.head);
	qp_list_remove(&e->ws->ready, q);
	qp_close(q, WAKE_WS);
}

static void ws_take_wakes(struct engine *e)
{
	uint32_t i = wake_take(&e->wake[WAKE_WS]);

	while (i != WAKE_END) {
		struct qp *q = qp_at(e->qps, i);

		i = wake_next(&q->wake[WAKE_WS]);
		if (unlikely(qp_closing(q))) {
			ws_release(e, q);
			continue;
		}
		unpark(&q->ws.parked);
		ready_if(e, q);
	}
}

/* Q2: the rest of a chain goes in front of its QP's doorbells. */
static unsigned take_chained(struct engine *e)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_WP_WS], m, BURST);

	for (unsigned i = 0; i < n; i++) {
		struct qp *q = request_qp(e, STAGE_DOORBELL_WQE, m[i]);

		if (!q)
			continue;
		request_of(m[i])->next = q->ws.head;
		if (!q->ws.head)
			q->ws.tail = m[i];
		q->ws.head = m[i];
		wit_clear(e, q);
	}
	return n;
}

/* Q1 */
static unsigned take_doorbells(struct engine *e)
{
	struct rte_mbuf *m[BURST];
	unsigned n = channel_take(&e->channel[CHANNEL_DBP_WS], m, BURST);

	for (unsigned i = 0; i < n; i++) {
		struct qp *q = request_qp(e, STAGE_DOORBELL_WQE, m[i]);

		if (!q)
			continue;
		requests_append(&q->ws.head, &q->ws.tail, m[i]);
		ready_if(e, q);
	}
	return n;
}

/* How many more requests the QP may have in the pipeline; 0: it is parked until
 * RequesterTransControl has consumed some, or the CEU leaves SQD. */
static uint32_t allowance(struct engine *e, struct qp *q)
{
	uint32_t depth = dbp_user_gets_less(e, q->user) ? DEPTH_SCARCE : e->settings.pipeline_depth;
	uint32_t held = q->ws.issued - __atomic_load_n(&q->rtc.consumed, __ATOMIC_ACQUIRE);

	if (likely(held < depth && qp_state(q) != QP_SQD))
		return depth - held;
	park(&q->ws.parked, 1);
	held = q->ws.issued - __atomic_load_n(&q->rtc.consumed, __ATOMIC_ACQUIRE);
	if (held >= depth || qp_state(q) == QP_SQD)
		return 0;
	unpark(&q->ws.parked);
	return depth - held;
}

/* Hands descriptors of one QP to WQEParse: doorbell after doorbell, until one that begins a chain.
 * Returns how many. */
static unsigned hand_over(struct engine *e, struct qp *q, struct rte_mbuf **out, unsigned room)
{
	uint32_t allowed = allowance(e, q);
	unsigned n = 0;

	while (n < room && n < allowed && q->ws.head && !q->ws.chain) {
		struct rte_mbuf *m = q->ws.head;

		q->ws.head = request_of(m)->next;
		request_of(m)->allowance = allowed - n;
		q->ws.issued++; /* now: the next visit may come before WQEParse's turn */
		if (request_chains(m))
			wit_set(q);
		out[n++] = m;
	}
	ready_if(e, q);
	return n;
}

static unsigned schedule(struct engine *e)
{
	struct channel *out = &e->channel[CHANNEL_WS_WP];
	struct ws *w = e->ws;
	unsigned room = RTE_MIN(channel_room(out), (unsigned)BURST), visits = 0;
	struct rte_mbuf *m[BURST];
	unsigned n = 0;
	struct qp *q;

	while (n < room && visits++ < BURST && (q = qp_list_take(&w->ready))) {
		if (unlikely(qp_closing(q)))
			ws_release(e, q);
		else
			n += hand_over(e, q, m + n, room - n);
	}
	if (n)
		channel_put(out, m, n);
	return n;
}

bool ws_has_work(const struct engine *e)
{
	return !qp_list_empty(&e->ws->ready);
}

static __rte_noinline unsigned ws_work(struct engine *e)
{
	unsigned n;

	ws_take_wakes(e);
	n = take_chained(e);
	n += take_doorbells(e);
	return n + schedule(e);
}

unsigned ws_poll(struct engine *e)
{
	static const enum channel_id inputs[] = {CHANNEL_WP_WS, CHANNEL_DBP_WS};

	if (wake_list_empty(&e->wake[WAKE_WS]) && !ws_has_work(e) &&
	    channels_idle(e->channel, inputs, RTE_DIM(inputs)))
		return 0;
	return ws_work(e);
}
