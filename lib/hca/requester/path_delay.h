/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PATH_DELAY_H
#define REQUESTER_PATH_DELAY_H
/*
 * Round trips for congestion control by delay (congestion/delay.h). A queue pair times one packet
 * at a time, the last of a turn, which requests an acknowledgement: from when link transmit gives
 * it to the port until RequesterRecvControl has the acknowledgement. So time spent waiting in our
 * own channels or for the flow's own rate is not network delay; nor is time in which others had our
 * CPU. A packet that is sent again, or is sent with READs or atomics outstanding, gives no sample.
 */
#include "outstanding.h"
#include "pipeline/message.h"

/* Times p, the last packet of its turn, unless another is being timed; p is still
 * RequesterTransControl's. `reads`: READs and atomics outstanding. Stage segmentation. */
static inline void path_time(const struct engine *e, struct qp *q, struct packet *p, uint32_t reads)
{
	if (likely(!(__atomic_load_n(&q->cc, __ATOMIC_RELAXED) & CC_DELAY)) || reads ||
	    q->trip.begun != __atomic_load_n(&q->trip_end.ended, __ATOMIC_ACQUIRE))
		return;
	q->trip.psn = p->headers.psn;
	q->trip.flight = qp_outstanding(q);
	q->trip.missed_ns = engine_missed(e);
	p->flags |= PACKET_TIMED;
	__atomic_store_n(&q->trip.begun, q->trip.begun + 1, __ATOMIC_RELEASE);
}

/* The timed packet, if any, has been or will be sent again: discards its measurement. Stage
 * requester_recv. */
static inline void path_forget(struct qp *q)
{
	__atomic_store_n(&q->trip_end.ended, __atomic_load_n(&q->trip.begun, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
}

/*
 * Packets of a turn have been lost. Behind a queue, that means congestion: the queue is longer than
 * measured (the least round trip included a queue, too), or its buffer has no room for the target.
 * Without a queue it was chance. Stage requester_recv.
 */
void path_lost(struct engine *e, struct qp *q);

/* Something was acknowledged while a packet is timed: ends the measurement if it was that one.
 * Stage requester_recv. */
void path_acked(struct engine *e, struct qp *q);

static inline bool path_is_timed(const struct qp *q)
{
	return __atomic_load_n(&q->trip.begun, __ATOMIC_ACQUIRE) != q->trip_end.ended;
}

/* A limited flow is about to send. If nothing can be timed (READs are always outstanding, say), its
 * rate grows with time. Stage segmentation. */
void path_untimed(struct engine *e, struct qp *q);

/* PSNs that a flow limited by delay may have outstanding: what it sends in one round trip with the
 * target's queueing delay. So queues stay bounded until a sample shows a change. Stage
 * segmentation. */
uint32_t path_window(const struct engine *e, const struct qp *q);

/* Slows the flow down or lets it grow, if RequesterRecvControl has taken a new sample. Stage
 * segmentation. */
void path_take_sample(struct engine *e, struct qp *q);

#endif
