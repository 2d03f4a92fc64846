/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RTC_VISIT_H
#define REQUESTER_RTC_VISIT_H
/*
 * What the files of RequesterTransControl share: requester_trans_control.c schedules and judges,
 * segmentation.c makes packets, local_operation.c executes operations that send none. Stage
 * segmentation.
 */
#include "completion/completion.h"
#include "context/qp_list.h"
#include "pipeline/message.h"
#include "multi_queue.h"
#include "requester_trans_control.h"

enum rtc_state {
#define STATE(id, text) RTC_##id,
#include "requester_trans_control.def"
};

/* Packets that a QP may have outstanding before its peer has acknowledged any. */
#define UNPROVEN_PACKETS 16

struct rtc {
	struct qp_list active; /* queue pairs with requests */
	uint32_t turn_left;    /* bytes left of the turn of the first one, which was cut short; 0:
				  it was not */
	unsigned out_count, spares;
	struct rte_mbuf *spare[BURST]; /* packet buffers in stock */
	struct rte_mbuf *out[BURST];   /* packets on their way to RTC_RPG */
	unsigned done_count;
	struct rte_mbuf *done[BURST]; /* descriptors on their way back, within one visit */
};

/* A visit to one queue pair. */
struct visit {
	struct engine *e;
	struct rtc *t;
	struct qp *q;
	struct rte_mbuf *m; /* the request at work */
	struct request *r;
	uint32_t quantum; /* bytes left of its turn in this poll */
	uint32_t later;	  /* bytes of its turn for which this poll has no time */
	uint32_t window;  /* PSNs left to send */
	unsigned room;	  /* left in RTC_RPG */
	enum park_reason reason;
	unsigned freed; /* descriptors, those in rtc.done and before */
	bool sent;
};

static inline struct counters *rtc_counters(struct engine *e)
{
	return stage_counters(e, STAGE_SEGMENTATION);
}

static inline enum rtc_state rtc_park(struct visit *v, enum park_reason reason)
{
	v->reason = reason;
	return RTC_PARKED;
}

/*
 * May a QP that holds `held` of a pool's elements have one more? A QP whose peer answers
 * (rrc.proven) gets as much as is left free. One whose peer has not answered yet, or not since the
 * last timeout, gets a few, and not from the last quarter of the pool: that is reserved for QPs
 * that make progress, however many peers are dead. Only its first element may come from there, so
 * that it can prove itself.
 */
static inline bool rtc_share(const struct qp *q, const struct mq_free *f, uint32_t held,
			     uint32_t few)
{
	uint32_t left = mq_free_count(f);

	if (likely(__atomic_load_n(&q->rrc.proven, __ATOMIC_RELAXED)))
		return held <= left && left != 0;
	return held == 0 ? left != 0 : held < few && left > f->size / 4;
}

static inline bool rtc_buffer_share(const struct multi_queue *mq, const struct qp *q)
{
	return rtc_share(q, &mq->sw_free, mq_count(&q->mq.sw), UNPROVEN_PACKETS);
}

/* The request at work is done with; its descriptor is the caller's. */
static inline void rtc_finish_request(struct visit *v)
{
	struct qp *q = v->q;

	q->rtc.head = v->r->next;
	__atomic_store_n(&q->rtc.consumed, q->rtc.consumed + 1, __ATOMIC_RELEASE);
}

static inline void rtc_done_flush(struct visit *v)
{
	if (v->t->done_count)
		rte_mempool_put_bulk(v->e->descriptors, (void **)v->t->done, v->t->done_count);
	v->t->done_count = 0;
}

/* A descriptor that is done with goes back, at the end of the visit at the latest. Raw, as
 * rte_mbuf_raw_free() would. */
static inline void rtc_free_descriptor(struct visit *v)
{
	if (unlikely(v->t->done_count == BURST))
		rtc_done_flush(v);
	v->t->done[v->t->done_count++] = v->m;
	v->freed++;
}

/* Charges `bytes` to the QP's turn, 64 at least, so that every turn ends. */
static inline void rtc_spend(struct visit *v, uint32_t bytes)
{
	uint32_t cost = RTE_MAX(bytes, 64u);

	v->quantum -= RTE_MIN(v->quantum, cost);
}

#endif
