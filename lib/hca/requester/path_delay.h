/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PATH_DELAY_H
#define REQUESTER_PATH_DELAY_H
/*
 * Round trips for congestion control by delay (congestion/delay.h). One packet of a queue pair is
 * timed at a time, the last of a turn, which asks for an acknowledgement: from when link transmit
 * gives it to the port until RequesterRecvControl has the acknowledgement. So what waits in our own
 * channels, or for the flow's own rate, is no delay of the network; nor is time in which others had
 * our CPU. A packet that is sent again, or has anything but a SEND or WRITE before it, tells nothing.
 */
#include "outstanding.h"
#include "pipeline/message.h"

/* The turn ends with that packet; it is still RequesterTransControl's. `reads`: READs and atomics
 * outstanding. Stage segmentation. */
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

/* The timed packet, if there is one, will be sent again or has been: its acknowledgement tells
 * nothing. Stage requester_recv. */
static inline void path_forget(struct qp *q)
{
	__atomic_store_n(&q->trip_end.ended, __atomic_load_n(&q->trip.begun, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
}

/*
 * Packets of a turn have been lost. Behind a queue that tells of congestion: one that is shorter than
 * it is known to be (the least round trip had a queue in it, too) or has no room for the target. Else by
 * chance. Stage requester_recv.
 */
void path_lost(struct engine *e, struct qp *q);

/* Something was acknowledged, and a packet is timed: perhaps it is that one. Stage
 * requester_recv. */
void path_acked(struct engine *e, struct qp *q);

static inline bool path_is_timed(const struct qp *q)
{
	return __atomic_load_n(&q->trip.begun, __ATOMIC_ACQUIRE) != q->trip_end.ended;
}

/* The flow is about to send, and is limited. If nothing can be timed, since READs are always
 * outstanding, say, it grows with the time. Stage segmentation. */
void path_untimed(struct engine *e, struct qp *q);

/* PSNs that a flow whose rate is bounded by delay may have outstanding: what it sends in a round trip
 * with as much queueing as there may be. So queues stay bounded until that is known to have changed.
 * Stage segmentation. */
uint32_t path_window(const struct engine *e, const struct qp *q);

/* Slows the flow down or lets it grow, if RequesterRecvControl has had a sample. Stage
 * segmentation. */
void path_take_sample(struct engine *e, struct qp *q);

#endif
