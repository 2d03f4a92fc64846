/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_BUFFER_SHARES_H
#define REQUESTER_BUFFER_SHARES_H
/*
 * How MultiQueue's elements are shared out. The limits follow the number F of free elements: a QP
 * may hold F, a client's QPs 2 F together, a user's 3 F. So one QP gets at most half of a pool, one
 * client two thirds, one user three quarters, and some are left for latecomers.
 *
 * If other users hold any elements, a user that holds an eighth of the pool or more leaves the
 * pool's last quarter to them: for that user and its clients, F excludes it. Otherwise two users
 * could leave only a sixteenth to all others.
 *
 * Elements held for a silent peer come back late or never, so a QP whose peer has not answered yet,
 * or not for a while, gets only a few, and only its first from the last quarter of the pool. A QP
 * or user that holds next to nothing is served from a reserve even if the share of its client or
 * user is used up: a QP while a quarter of the pool is left, a user while anything is.
 *
 * RequesterTransControl counts the elements that it puts when a visit ends; RequesterRecvControl
 * counts those that it takes. Each writes its own counters; the difference may be a moment old.
 */
#include "multi_queue.h"
#include "outstanding.h"

enum {
	USER_FLOOR = 16,      /* elements that a user gets out of the reserve */
	UNPROVEN_PACKETS = 16 /* outstanding, of a QP whose peer is silent */
};

/* A peer that owes an answer counts as silent after this time, or eight round trips if longer. */
#define PROOF_NS 100000000ull

/* Each counter has one writer; the other side may read it at any time. */
static inline void holder_add(uint32_t *counter, uint32_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline void holders_add(uint32_t *count, const struct qp *q, uint32_t n)
{
	holder_add(&count[HOLDER_ALL], n);
	holder_add(&count[HOLDER_CLIENT + q->client], n);
	holder_add(&count[HOLDER_USER + q->user], n);
}

/* Counts n elements that the QP has put. Producer. */
static inline void mq_charge(struct mq_free *f, const struct qp *q, uint32_t n)
{
	if (n)
		holders_add(f->put, q, n);
}

/* Counts n of the QP's elements as taken. Consumer. */
static inline void mq_discharge(struct mq_free *f, const struct qp *q, uint32_t n)
{
	if (n)
		holders_add(f->got, q, n);
}

/* How many more a holder of `held` may take if it may hold `times` what is left. */
static inline uint32_t share_of(uint32_t times, uint32_t left, uint32_t held)
{
	return held > times * left ? 0 : (times * left - held) / (times + 1) + (left != 0);
}

/* The same for a QP, which may hold only `few` unless its peer is proven to be there. */
static inline uint32_t share_of_qp(bool proven, const struct mq_free *f, uint32_t left,
				   uint32_t held, uint32_t few)
{
	if (likely(proven))
		return share_of(1, left, held);
	if (held == 0)
		return left != 0;
	return held < few && left > f->size / 4 ? few - held : 0;
}

/* What a user that holds `user` elements must leave to others. */
static inline uint32_t reserve_of_others(const struct mq_free *f, uint32_t user)
{
	return user >= f->size / 8 && mq_held(f, HOLDER_ALL) > user ? f->size / 4 : 0;
}

/* What the shares of its client and user, or else the reserves, leave to a QP that holds `held`. */
static inline uint32_t share_of_owner(const struct mq_free *f, uint32_t left, const struct qp *q,
				      uint32_t held)
{
	uint32_t client = mq_held(f, HOLDER_CLIENT + q->client);
	uint32_t user = mq_held(f, HOLDER_USER + q->user);
	uint32_t rest = left - RTE_MIN(left, reserve_of_others(f, user));
	uint32_t client_more = share_of(2, rest, client), user_more = share_of(3, rest, user);

	if (unlikely(!client_more))
		client_more = held == 0 && left >= f->size / 4;
	if (unlikely(!user_more) && user < USER_FLOOR)
		client_more = user_more = left != 0;
	return RTE_MIN(client_more, user_more);
}

/* Has the peer answered, and, if it owes an answer, not too long ago? Stage segmentation. */
static inline bool peer_is_proven(const struct engine *e, const struct qp *q)
{
	uint64_t since, srtt;

	if (!__atomic_load_n(&q->rrc.proven, __ATOMIC_RELAXED))
		return false;
	if (qp_outstanding(q) == 0)
		return true;
	since = qp_unanswered_since(q);
	srtt = __atomic_load_n(&q->rrc.srtt_ns, __ATOMIC_RELAXED);
	return engine_now(e) < since + RTE_MAX(PROOF_NS, 8 * srtt);
}

/* How many more elements of a pool the QP may have. It holds `held`; all that it has put has been
 * charged. Producer. */
static inline uint32_t mq_share(const struct engine *e, const struct mq_free *f, const struct qp *q,
				uint32_t held, uint32_t few)
{
	uint32_t left = mq_free_count(f), owner = share_of_owner(f, left, q, held);

	return RTE_MIN(owner, share_of_qp(peer_is_proven(e, q), f, left, held, few));
}

/* Is so little left that a silent QP must give way, because its user holds more than is left for
 * all others? Consumer. */
static inline bool mq_must_give_way(const struct mq_free *f, const struct qp *q)
{
	uint32_t all = mq_held(f, HOLDER_ALL), left = f->size - RTE_MIN(all, f->size);

	return left < f->size / 4 && mq_held(f, HOLDER_USER + q->user) > left;
}

#endif
