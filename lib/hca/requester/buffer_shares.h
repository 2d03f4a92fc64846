/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_BUFFER_SHARES_H
#define REQUESTER_BUFFER_SHARES_H
/*
 * Who may have how many of MultiQueue's elements. The limits follow the number F of free ones: a QP
 * may hold F, the QPs of a client together 2 F, those of a user 3 F. So one QP gets half of a pool
 * at most, one client two thirds, one user three quarters, and whoever comes later finds something.
 *
 * If other users hold any, one who holds an eighth of the pool or more leaves its last quarter to
 * them: for him and his clients F is without it. Else two could leave a sixteenth to all others.
 *
 * What a silent peer holds comes back late or never, so QPs with a silent peer get less: one whose
 * peer has not answered yet, or not for a while, gets a few elements, and only its first from the
 * last quarter of the pool. Who holds next to nothing is served from a reserve even if its client or
 * user has used up its share: a QP as long as a quarter of the pool is left, a user as long as
 * anything is.
 *
 * RequesterTransControl counts what it puts, when a visit ends; RequesterRecvControl counts what it
 * takes. Each writes counters of its own; the difference may be a moment old.
 */
#include "multi_queue.h"
#include "outstanding.h"

enum {
	USER_FLOOR = 16,      /* elements that a user gets out of the reserve */
	UNPROVEN_PACKETS = 16 /* that a QP may have outstanding whose peer is silent */
};

/* An answer this old proves nothing about a peer that owes one; or eight round trips. */
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

/* n elements of the QP's have been put. Producer. */
static inline void mq_charge(struct mq_free *f, const struct qp *q, uint32_t n)
{
	if (n)
		holders_add(f->put, q, n);
}

/* n elements of the QP's have been taken. Consumer. */
static inline void mq_discharge(struct mq_free *f, const struct qp *q, uint32_t n)
{
	if (n)
		holders_add(f->got, q, n);
}

/* How many more one may take that holds `held` and may hold `times` what is left. */
static inline uint32_t share_of(uint32_t times, uint32_t left, uint32_t held)
{
	return held > times * left ? 0 : (times * left - held) / (times + 1) + (left != 0);
}

/* The same of a QP whose peer is proven to be there, or not. */
static inline uint32_t share_of_qp(bool proven, const struct mq_free *f, uint32_t left,
				   uint32_t held, uint32_t few)
{
	if (likely(proven))
		return share_of(1, left, held);
	if (held == 0)
		return left != 0;
	return held < few && left > f->size / 4 ? few - held : 0;
}

/* What a user who holds so many must leave to others. */
static inline uint32_t reserve_of_others(const struct mq_free *f, uint32_t user)
{
	return user >= f->size / 8 && mq_held(f, HOLDER_ALL) > user ? f->size / 4 : 0;
}

/* What the QP's client and user leave to it, which holds `held`; the reserves last. */
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

/* Has the peer answered, and not too long ago for one that owes an answer? Stage segmentation. */
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

/* How many more elements of a pool may the QP have, which holds `held`? What it has put has been
 * charged. Producer. */
static inline uint32_t mq_share(const struct engine *e, const struct mq_free *f, const struct qp *q,
				uint32_t held, uint32_t few)
{
	uint32_t left = mq_free_count(f), owner = share_of_owner(f, left, q, held);

	return RTE_MIN(owner, share_of_qp(peer_is_proven(e, q), f, left, held, few));
}

/* Is so little left that silent holders must give way, those first whose user holds more than all
 * others may still get? Consumer. */
static inline bool mq_must_give_way(const struct mq_free *f, const struct qp *q)
{
	uint32_t all = mq_held(f, HOLDER_ALL), left = f->size - RTE_MIN(all, f->size);

	return left < f->size / 4 && mq_held(f, HOLDER_USER + q->user) > left;
}

#endif
