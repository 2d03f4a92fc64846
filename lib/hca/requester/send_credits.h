/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_SEND_CREDITS_H
#define REQUESTER_SEND_CREDITS_H
/*
 * End-to-end credits as the requester obeys them (C9-153, C9-156, C9-159 to C9-164): whether the
 * next request may be sent, how far, and when the queue may continue behind a limited one. Used by
 * RequesterTransControl; stage segmentation. RequesterRecvControl records the credits that arrive
 * (rrc.credits).
 */
#include "outstanding.h"
#include "host-abi/wqe.h"
#include "pipeline/message.h"

/* A request without credit (C9-162), sent as far as it may be: nothing is sent behind it until an
 * acknowledgement covers it or credits arrive. Its packet is the last one sent. */
enum limited {
	LIMITED_NOT,
	LIMITED_REST,	 /* the first packet of a SEND; the rest waits, too */
	LIMITED_MESSAGE, /* a whole message */
};

/* A READ or atomic: the requests that max_rd_atomic counts. */
static inline bool is_read(const struct request *r)
{
	return r->traits & USER_ANSWERED;
}

/* Does the request, as far as it is sent, consume a receive descriptor of the peer (C9-159)? */
static inline bool consumes_receive(const struct request *r)
{
	return r->traits & USER_TAKES_RECEIVE;
}

/* The LSN: that of the newest acknowledgement; the additions start again from there (C9-161). */
static inline void look_at_credits(struct qp *q)
{
	uint32_t credits = __atomic_load_n(&q->rrc.credits, __ATOMIC_ACQUIRE);

	if (credits != q->rtc.credits_seen) {
		q->rtc.credits_seen = credits;
		q->rtc.lsn = credits & PSN_MASK;
	}
}

/* Does the request of that number have a credit? Not before any came (C9-156), for the LSN is 0
 * then, and fewer additions are made to it than there are requests. */
static inline bool has_credit(const struct qp *q, uint32_t ssn)
{
	if (q->rtc.credits_seen & CREDITS_UNLIMITED)
		return true;
	return psn_before_eq(ssn, q->rtc.lsn);
}

/* Must the queue still wait for its limited request? That one has credit by now, or was executed,
 * or its first packet has taken a receive descriptor: then its rest needs none. */
static inline bool stays_limited(const struct qp *q)
{
	uint32_t ssn = q->rtc.limited == LIMITED_REST ? q->rtc.ssn : psn_sub(q->rtc.ssn, 1);

	return qp_outstanding(q) && !has_credit(q, ssn);
}

/* A request without credit is sent all the same, as far as C9-162 allows (limit()). */
static inline void judge_credit(const struct qp *q, struct request *r)
{
	r->flags &= ~REQUEST_LIMITED;
	if (unlikely(!has_credit(q, q->rtc.ssn)) && consumes_receive(r))
		r->flags |= REQUEST_LIMITED;
}

/* C9-162, C9-163: of a SEND without credit one packet goes, of a WRITE with immediate the whole
 * message. The last that goes asks for an acknowledgement: as long as no credit comes the turn ends
 * with it. True: the rest of the message has to wait. */
static inline bool limit(struct qp *q, struct request *r, bool last)
{
	if (r->traits & USER_RADDR && !last)
		return false;
	r->flags &= ~REQUEST_LIMITED;
	q->rtc.limited = last ? LIMITED_MESSAGE : LIMITED_REST;
	return !last;
}

#endif
