/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEND_QUEUE_SEND_QUEUE_H
#define SEND_QUEUE_SEND_QUEUE_H
/*
 * The doorbell_wqe stage: DoorbellProcessing, WQEScheduler, WQEIndicatorTable, WQEParse, DataPack.
 * doorbell FIFOs → dbp → DBP_WS → ws → WS_WP → wp → WP_DP → dp → DP_RTC, and back WP_WS.
 */
#include <stdint.h>
#include "context/qp_context.h"
#include "host-abi/wqe.h"
#include "pipeline/engine.h"
#include "pipeline/message.h"

struct uar_page;

/* Creates the modules' state. 0 or -ENOMEM. Control thread. */
int send_queue_create(struct engine *e);
void send_queue_destroy(struct engine *e);

/* One poll of the stage: bounded work, never waits. Returns how many elements it handled; 0:
 * nothing to do. */
unsigned doorbell_wqe_poll(struct engine *e);

/* Adds a client's doorbell page, or removes it (uar NULL). Control thread; after a removal the
 * caller quiesces. */
void dbp_set_client(struct engine *e, uint32_t client, struct uar_page *uar);

/* Publishes to the clients of this engine whether its lcore sleeps: if so they kick after a
 * doorbell. Called by the lcore itself, followed by a parking_fence() and one more poll before it
 * sleeps. */
void dbp_set_asleep(struct engine *e, bool asleep);
/* Is there a client that an lcore without work should leave its CPU to? */
enum dbp_crowd {
	CROWD_NONE,
	CROWD_YIELDS, /* it polls an empty CQ on this CPU, and yields too */
	CROWD_SPINS,  /* it may poll its memory, and gives the CPU back only when preempted */
};

enum { DBP_ACTIVE_NS = 10000000 }; /* a client that rang within this time may be polling */

/*
 * The most demanding of this engine's clients that rang recently and claim to be on this CPU.
 * Called by the lcore itself, when it finds no work. A client may lie: before the lcore sleeps
 * early, it checks whether another thread wants its CPU.
 */
enum dbp_crowd dbp_crowd(const struct engine *e, unsigned cpu);
/* Publishes to the clients of this engine the CPU of its lcore. Control thread, before it runs. */
void dbp_set_cpu(struct engine *e, unsigned cpu);
/* Is a doorbell waiting? Called by the lcore itself, once more before it sleeps. */
bool dbp_pending(struct engine *e);

/* Counts n more descriptors of a client as in use; for n fewer, pass -n. Any stage of the engine.
 * A locked instruction would wait for all stores before it, some of them to memory in no cache. */
static inline void descriptors_note(struct engine *e, uint32_t client, uint32_t n)
{
	uint32_t *held = &e->held[client], *total = &e->held_total;

	if (likely(e->one_lcore)) {
		__atomic_store_n(held, *held + n, __ATOMIC_RELAXED);
		__atomic_store_n(total, *total + n, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_add(held, n, __ATOMIC_RELAXED);
		__atomic_fetch_add(total, n, __ATOMIC_RELAXED);
	}
}

/* Frees a request. Any stage of the engine. */
static inline void request_free(struct engine *e, struct rte_mbuf *m)
{
	descriptors_note(e, request_of(m)->client, -1u);
	rte_mbuf_raw_free(m);
}

/* The QP of a request. `before`: the QP of the previous one, often the same, or NULL. NULL: the QP
 * has been reset or destroyed, and the request has been counted and freed. Any stage of the engine:
 * `stage` is the caller's. */
static inline struct qp *request_qp_after(struct engine *e, enum stage_id stage, struct rte_mbuf *m,
					  struct qp *before)
{
	const struct request *r = request_of(m);
	struct qp *q = before;

	if (!q || qp_number(q) != r->qpn)
		q = qp_find(e->qps, r->qpn);
	if (likely(q && q->epoch == r->epoch))
		return q;
	count(stage_counters(e, stage), COUNTER_drop_stale_wqe);
	request_free(e, m);
	return NULL;
}

static inline struct qp *request_qp(struct engine *e, enum stage_id stage, struct rte_mbuf *m)
{
	return request_qp_after(e, stage, m, NULL);
}

/* Lists of requests in a QP, each of one module. */
static inline void requests_append(struct rte_mbuf **head, struct rte_mbuf **tail,
				   struct rte_mbuf *m)
{
	request_of(m)->next = NULL;
	if (*head)
		request_of(*tail)->next = m;
	else
		*head = m;
	*tail = m;
}

/* Frees a whole list. */
static inline void requests_free(struct engine *e, struct rte_mbuf **head)
{
	struct rte_mbuf *m;

	while ((m = *head)) {
		*head = request_of(m)->next;
		request_free(e, m);
	}
}

/* The WQE's units in a request's mbuf. */
static inline uint8_t *request_wqe(struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr;
}

/* Its data units, if it has any and is not inline. */
static inline const struct wqe_data *request_entries(struct rte_mbuf *m)
{
	return (const struct wqe_data *)(request_wqe(m) + request_of(m)->data_first);
}

#endif
