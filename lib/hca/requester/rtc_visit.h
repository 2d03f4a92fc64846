/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RTC_VISIT_H
#define REQUESTER_RTC_VISIT_H
/*
 * What the files of RequesterTransControl share: requester_trans_control.c schedules and judges,
 * segmentation.c makes packets, local_operation.c executes operations that send none. Stage
 * segmentation.
 */
#include "completion/completion.h"
#include "context/pacing.h"
#include "context/qp_list.h"
#include "pipeline/message.h"
#include "buffer_shares.h"
#include "multi_queue.h"
#include "requester_trans_control.h"

enum rtc_state {
#define STATE(id, text) RTC_##id,
#include "requester_trans_control.def"
};

struct rtc {
	struct qp_list active;	/* queue pairs with requests */
	struct qp_list starved; /* those that hold no buffer and may have none now */
	uint32_t turn_left;	/* bytes left of the turn of the first one, which was cut short; 0:
				  it was not */
	unsigned out_count, spares;
	struct rte_mbuf *spare[BURST]; /* packet buffers in stock */
	struct rte_mbuf *out[BURST];   /* packets on their way to RTC_RPG */
	unsigned done_count;
	struct rte_mbuf *done[BURST]; /* descriptors on their way back, within one visit */
	struct pacer pacer; /* queue pairs whose rate is limited, until their time comes */
};

/* A visit to one queue pair. */
struct visit {
	struct engine *e;
	struct rtc *t;
	struct qp *q;
	struct rte_mbuf *m; /* the request at work */
	struct request *r;
	uint32_t quantum;    /* bytes left of its turn in this poll */
	uint32_t later;	     /* bytes of its turn for which this poll has no time */
	uint32_t window;     /* PSNs left to send */
	uint32_t share;	     /* packets that may be kept, of its share; 0: to be looked up */
	uint32_t reads;	     /* the same of READs and atomics, */
	uint32_t entries;    /* and of their scatter entries */
	uint32_t sw, rd, re; /* elements put in the QP's life and charged so far */
	unsigned room;	     /* left in RTC_RPG */
	enum park_reason reason;
	unsigned freed;		    /* descriptors, those in rtc.done and before */
	const struct packet *alike; /* the first of its packets in rtc.out; NULL: none */
	/* The last packet there, if similar messages may join it (pipeline/train.h); else NULL. */
	struct rte_mbuf *open;
	uint8_t *part;			 /* where the next one goes */
	uint32_t stride;		 /* bytes of each part */
	uint8_t open_opcode, open_flags; /* of the requests in it */
	bool joins;			 /* single-packet messages may form trains */
	uint32_t coupled;		 /* packets of trains beyond the first of each */
	uint32_t requests, packets;	 /* done with; made */
	uint64_t bytes;			 /* in those packets */
	bool sent;
	bool run;	    /* a request may be sent, and so may similar ones that follow, */
	uint8_t run_traits; /* with these (enum user_trait) */
	bool starved;	    /* it holds no buffer, may get none, and nothing would wake it */
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

/* Charges the elements that the visit has put since the last charge. */
static inline void rtc_charge(struct visit *v)
{
	struct multi_queue *mq = v->e->mq;
	const struct qp *q = v->q;

	mq_charge(&mq->sw_free, q, q->mq.sw.produced - v->sw);
	mq_charge(&mq->rd_free, q, q->mq.rd.produced - v->rd);
	mq_charge(&mq->re_free, q, q->mq.re.produced - v->re);
	v->sw = q->mq.sw.produced;
	v->rd = q->mq.rd.produced;
	v->re = q->mq.re.produced;
}

/* How many more packets of the QP may be kept for retransmission. */
static __rte_noinline uint32_t rtc_packet_share(struct visit *v)
{
	rtc_charge(v);
	return mq_share(v->e, &v->e->mq->sw_free, v->q, mq_count(&v->q->mq.sw), UNPROVEN_PACKETS);
}

/* May one more be kept? */
static inline bool rtc_may_keep(struct visit *v)
{
	if (unlikely(!v->share))
		v->share = rtc_packet_share(v);
	return v->share != 0;
}

/* The QP may keep no more packets. If it keeps some, their acknowledgement wakes it; otherwise it
 * joins the starved QPs, which try again in turn. */
static inline enum rtc_state rtc_no_share(struct visit *v)
{
	if (mq_count(&v->q->mq.sw))
		return rtc_park(v, PARK_BUFFER);
	v->starved = true;
	return RTC_STALLED;
}

/* The request at work is done with; its descriptor is the caller's. */
static inline void rtc_finish_request(struct visit *v)
{
	struct qp *q = v->q;

	q->rtc.head = v->r->next;
	__atomic_store_n(&q->rtc.consumed, q->rtc.consumed + 1, __ATOMIC_RELEASE);
}

/* Returns the descriptors in done[] to their pool; there is at least one. */
static inline void rtc_done_flush(struct visit *v)
{
	rte_mempool_put_bulk(v->e->descriptors, (void **)v->t->done, v->t->done_count);
	v->t->done_count = 0;
}

/* Returns the finished descriptor, at the end of the visit at the latest. Raw, as
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
