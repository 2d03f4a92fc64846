/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_MULTI_QUEUE_H
#define REQUESTER_MULTI_QUEUE_H
/*
 * MultiQueue (doc/modules.md#multiqueue): the retransmit buffers. Three element pools (Send/Write
 * packets, Read requests, Read scatter entries), each with a free FIFO, and in each QP a list of
 * each kind. RequesterTransControl puts elements at the tail, RequesterRecvControl takes them from
 * the head; they may run on different lcores, without locks.
 *
 * The race over one element: the consumer frees the last element while the producer
 * links a new one behind it. Here the two meet in one atomic operation on the element's `next`:
 *   - the producer swings it from NIL to the new element; if it finds CLOSED, the consumer was
 *     first and the list is empty: the new element becomes the head;
 *   - the consumer, taking what seems to be the last element, swings it from NIL to CLOSED; if it
 *     finds an index, the producer was first and that is the new head. `consumed` is stored before
 *     the element goes to the free FIFO, and the producer reads it before it trusts its tail: a
 *     tail that counts as consumed may belong to another list already and is never touched.
 * On one lcore the two cannot meet, and a plain store suffices (`one_lcore`).
 */
#include <stdbool.h>
#include <stdint.h>
#include <rte_branch_prediction.h>
#include "base/assert.h"
#include "context/qp_list.h"
#include "pipeline/engine.h"
#include "pipeline/message.h"
#include "wire/psn.h"

#define MQ_NIL	  0xffffffffu
#define MQ_CLOSED 0xfffffffeu

/* A SEND or WRITE packet, or a train of them; or a local operation that has been executed, whose
 * completion waits for the packet or response with its PSN. */
struct sw_element {
	uint32_t next; /* atomic */
	uint32_t psn;
	struct rte_mbuf *m; /* one reference; NULL: a local operation */
	uint32_t wqe_offset;
	uint32_t length;  /* of the message, bytes */
	uint8_t opcode;	  /* enum user_opcode */
	uint8_t flags;	  /* ELEMENT_* */
	uint16_t packets; /* from `psn` on; more than 1: a train */
	/* RequesterRecvControl: NPSN when it was last sent again selectively, with bit 24 set; 0:
	 * never. */
	uint32_t again;
};
#define ELEMENT_LAST	 1u /* last packet of its message: completes the WQE */
#define ELEMENT_SIGNALED 2u

/* The PSN of the element's last packet. */
static inline uint32_t sw_last_psn(const struct sw_element *x)
{
	return psn_add(x->psn, x->packets - 1u);
}

/* A READ or atomic request. */
struct rd_element {
	uint32_t next;	  /* atomic */
	uint32_t psn;	  /* of the request = of its first response */
	uint32_t packets; /* responses */
	uint32_t length;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t wqe_offset;
	uint64_t swap_add, compare;
	uint8_t opcode; /* enum user_opcode */
	uint8_t flags;
	uint8_t entries; /* scatter entries in the third queue */
	uint8_t reserved[5];
	/* RequesterRecvControl: when responses were last requested again selectively, and how many,
	 * from the first on, ever were. */
	uint32_t again, asked;
};

/* A scatter entry of a READ or atomic. */
struct re_element {
	uint32_t next; /* atomic */
	uint32_t lkey;
	uint64_t addr;
	uint32_t length;
	uint32_t reserved;
};

/* Free FIFO: indices given back by the consumer, and those never used yet (so that an idle pool is
 * not touched). */
struct mq_free {
	uint32_t size;
	uint32_t mask; /* of fifo, whose length is a power of two */
	uint32_t *fifo;
	uint32_t fresh __rte_cache_aligned; /* producer: next index never used */
	uint32_t taken;			    /* producer: indices taken from fifo; atomic */
	uint32_t given __rte_cache_aligned; /* consumer: indices put into fifo; atomic */
	/* By holder: elements put so far, by the producer, and got back, by the consumer; free
	 * running, atomic. See buffer_shares.h. */
	uint32_t *put __rte_cache_aligned;
	uint32_t *got;
};

/* Whose elements are counted: all together, each client's, each user's. */
enum {
	HOLDER_ALL,
	HOLDER_CLIENT,
	HOLDER_USER = HOLDER_CLIENT + CLIENTS_MAX,
	HOLDERS = HOLDER_USER + USERS_MAX,
};

struct multi_queue {
	struct sw_element *sw;
	struct rd_element *rd;
	struct re_element *re;
	struct mq_free sw_free, rd_free, re_free;
	bool one_lcore; /* both sides run on one; set before they do */
};

/* 0 or -ENOMEM. */
int mq_create(struct engine *e);
void mq_destroy(struct engine *e);

/* Free elements. Producer. */
static inline uint32_t mq_free_count(const struct mq_free *f)
{
	return f->size - f->fresh + (__atomic_load_n(&f->given, __ATOMIC_ACQUIRE) - f->taken);
}

/* How many elements a holder holds. Any stage; elements taken may be counted before those put. */
static inline uint32_t mq_held(const struct mq_free *f, uint32_t holder)
{
	int32_t n = (int32_t)(__atomic_load_n(&f->put[holder], __ATOMIC_RELAXED) -
			      __atomic_load_n(&f->got[holder], __ATOMIC_RELAXED));

	return n > 0 ? (uint32_t)n : 0;
}

/* An index; the caller knows that there is one. Producer. */
static inline uint32_t mq_alloc(struct mq_free *f)
{
	if (likely(__atomic_load_n(&f->given, __ATOMIC_ACQUIRE) != f->taken))
		return f->fifo[f->taken++ & f->mask];
	ASSERT(f->fresh < f->size);
	return f->fresh++;
}

static inline void mq_give(struct mq_free *f, uint32_t index)
{
	f->fifo[f->given & f->mask] = index;
	__atomic_store_n(&f->given, f->given + 1, __ATOMIC_RELEASE);
}

static inline uint32_t mq_count(const struct mq_list *l)
{
	return __atomic_load_n(&l->produced, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&l->consumed, __ATOMIC_ACQUIRE);
}

/* Swings an element's next from NIL. Returns what it was: if not NIL, the other side was first. */
static inline uint32_t mq_swing(bool one_lcore, uint32_t *next, uint32_t to)
{
	uint32_t was = MQ_NIL;

	if (likely(one_lcore))
		__atomic_store_n(next, to, __ATOMIC_RELAXED);
	else
		__atomic_compare_exchange_n(next, &was, to, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	return was;
}

/* Links element `index`, whose own next is `next`, behind the tail, whose next is *tail_next.
 * Producer. */
static inline void mq_link(bool one_lcore, struct mq_list *l, uint32_t *next, uint32_t *tail_next,
			   uint32_t index)
{
	__atomic_store_n(next, MQ_NIL, __ATOMIC_RELAXED);
	if (__atomic_load_n(&l->consumed, __ATOMIC_ACQUIRE) == l->produced ||
	    mq_swing(one_lcore, tail_next, index) != MQ_NIL)
		__atomic_store_n(&l->head, index, __ATOMIC_RELEASE);
	l->tail = index;
	__atomic_store_n(&l->produced, l->produced + 1, __ATOMIC_RELEASE);
}

/* Unlinks the first n elements; *next is the `next` of the last of them. Consumer; the list has at
 * least n. The caller gives their indices back afterwards. */
static inline void mq_unlink(bool one_lcore, struct mq_list *l, uint32_t n, uint32_t *next)
{
	uint32_t after = __atomic_load_n(next, __ATOMIC_ACQUIRE);

	if (after == MQ_NIL) /* seems to be the last; if not, this returns the next */
		after = mq_swing(one_lcore, next, MQ_CLOSED);
	if (after != MQ_NIL) /* else the producer sets the head, and may have done so already */
		__atomic_store_n(&l->head, after, __ATOMIC_RELEASE);
	__atomic_store_n(&l->consumed, l->consumed + n, __ATOMIC_RELEASE);
}

/* Field by field: a copy of a structure that was just filled would wait for its stores. */
static inline void sw_put(struct multi_queue *mq, struct mq_list *l, const struct sw_element *from)
{
	uint32_t i = mq_alloc(&mq->sw_free);
	struct sw_element *x = &mq->sw[i];

	x->psn = from->psn;
	x->m = from->m;
	x->wqe_offset = from->wqe_offset;
	x->length = from->length;
	x->opcode = from->opcode;
	x->flags = from->flags;
	x->packets = from->packets;
	x->again = 0;
	mq_link(mq->one_lcore, l, &x->next, &mq->sw[l->tail].next, i);
}

static inline void rd_put(struct multi_queue *mq, struct mq_list *l, const struct rd_element *from)
{
	uint32_t i = mq_alloc(&mq->rd_free);
	struct rd_element *x = &mq->rd[i];

	x->psn = from->psn;
	x->packets = from->packets;
	x->length = from->length;
	x->raddr = from->raddr;
	x->rkey = from->rkey;
	x->wqe_offset = from->wqe_offset;
	x->swap_add = from->swap_add;
	x->compare = from->compare;
	x->opcode = from->opcode;
	x->flags = from->flags;
	x->entries = from->entries;
	x->again = x->asked = 0;
	mq_link(mq->one_lcore, l, &x->next, &mq->rd[l->tail].next, i);
}

static inline void re_put(struct multi_queue *mq, struct mq_list *l, const struct re_element *from)
{
	uint32_t i = mq_alloc(&mq->re_free);
	struct re_element *x = &mq->re[i];

	x->lkey = from->lkey;
	x->addr = from->addr;
	x->length = from->length;
	mq_link(mq->one_lcore, l, &x->next, &mq->re[l->tail].next, i);
}

/* Heads, or NULL when the list is empty. Consumer. */
static inline struct sw_element *sw_head(struct multi_queue *mq, const struct mq_list *l)
{
	return mq_count(l) ? &mq->sw[__atomic_load_n(&l->head, __ATOMIC_ACQUIRE)] : NULL;
}

static inline struct rd_element *rd_head(struct multi_queue *mq, const struct mq_list *l)
{
	return mq_count(l) ? &mq->rd[__atomic_load_n(&l->head, __ATOMIC_ACQUIRE)] : NULL;
}

/* Scatter entries are put before their READ: a module that sees the READ sees them, too. */
static inline struct re_element *re_head(struct multi_queue *mq, const struct mq_list *l)
{
	return &mq->re[__atomic_load_n(&l->head, __ATOMIC_ACQUIRE)];
}

/* The heads of both lists, or NULL; false: both are empty. Even while the producer adds elements,
 * none that is older than one of the two heads is missed. */
static inline bool mq_heads(struct multi_queue *mq, const struct mq_list *sw_list,
			    const struct mq_list *rd_list, struct sw_element **sw,
			    struct rd_element **rd)
{
	*sw = sw_head(mq, sw_list);
	*rd = rd_head(mq, rd_list);
	if (*rd) /* a packet older than this READ may have come in between */
		*sw = sw_head(mq, sw_list);
	return *sw || *rd;
}

/* Removes the first n packets, at least 1. The caller has already dealt with their mbufs. Consumer;
 * the list has at least n. */
static inline void sw_pop_run(struct multi_queue *mq, struct mq_list *l, uint32_t n)
{
	struct mq_free *f = &mq->sw_free;
	uint32_t i = l->head;

	/* Nobody reads these places before `given` covers them. */
	for (uint32_t k = 0; k < n - 1; k++) {
		f->fifo[(f->given + k) & f->mask] = i;
		i = mq->sw[i].next; /* set: only the last one's may change now */
	}
	f->fifo[(f->given + n - 1) & f->mask] = i;
	mq_unlink(mq->one_lcore, l, n, &mq->sw[i].next);
	__atomic_store_n(&f->given, f->given + n, __ATOMIC_RELEASE);
}

/* Removes the head; likewise below for the other two lists. */
static inline void sw_pop(struct multi_queue *mq, struct mq_list *l)
{
	sw_pop_run(mq, l, 1);
}

static inline void rd_pop(struct multi_queue *mq, struct mq_list *l)
{
	uint32_t i = l->head;

	mq_unlink(mq->one_lcore, l, 1, &mq->rd[i].next);
	mq_give(&mq->rd_free, i);
}

static inline void re_pop(struct multi_queue *mq, struct mq_list *l)
{
	uint32_t i = l->head;

	mq_unlink(mq->one_lcore, l, 1, &mq->re[i].next);
	mq_give(&mq->re_free, i);
}

/* Is the READ at the head of its queue older than the packet at the head of the other (or alone)? A
 * local operation has the PSN of the request before it: a READ with the same PSN is older. */
static inline bool read_is_older(const struct sw_element *sw, const struct rd_element *rd)
{
	return rd && (!sw || psn_before_eq(rd->psn, sw->psn));
}

/* Sets AckReq. The packet may be in MultiQueue already, where a retransmission reads the bit.
 * RequesterTransControl; packet_asks(): RequesterRecvControl. */
static inline void packet_ask(struct packet *p)
{
	__atomic_store_n(&p->headers.ackreq, 1, __ATOMIC_RELAXED);
}

static inline bool packet_asks(const struct packet *p)
{
	return __atomic_load_n(&p->headers.ackreq, __ATOMIC_RELAXED);
}

#endif
