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

/* Takes the LSN of the newest acknowledgement; our additions start again from there (C9-161). */
static inline void look_at_credits(struct qp *q)
{
	uint32_t credits = __atomic_load_n(&q->rrc.credits, __ATOMIC_ACQUIRE);

	if (credits != q->rtc.credits_seen) {
		q->rtc.credits_seen = credits;
		q->rtc.lsn = credits & PSN_MASK;
	}
}

/* Does request `ssn` have a credit? Not before any credits came (C9-156): the LSN is 0 then, and
 * fewer additions are made to it than there are requests. */
static inline bool has_credit(const struct qp *q, uint32_t ssn)
{
	if (q->rtc.credits_seen & CREDITS_UNLIMITED)
		return true;
	return psn_before_eq(ssn, q->rtc.lsn);
}

/* Must the queue still wait for its limited request? Not if that has a credit by now or was
 * executed, nor if its first packet has taken a receive descriptor: then the rest needs none. */
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

/* C9-162, C9-163: without credit, one packet of a SEND or a whole WRITE with immediate may go. The
 * last packet that goes requests an acknowledgement, because the turn ends with it until a credit
 * comes. True: the rest of the message has to wait. */
static inline bool limit(struct qp *q, struct request *r, bool last)
{
	if (r->traits & USER_RADDR && !last)
		return false;
	r->flags &= ~REQUEST_LIMITED;
	q->rtc.limited = last ? LIMITED_MESSAGE : LIMITED_REST;
	return !last;
}

#endif
