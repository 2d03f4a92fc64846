/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTEXT_SRQ_H
#define CONTEXT_SRQ_H
/*
 * CxtMgt: the contexts of shared receive queues (IBTA volume 1, 10.2.9). An SRQ belongs to a client
 * and so to that client's engine: of all its queue pairs only ExecutionEngine there takes
 * descriptors from it, on one stage, so taking needs no lock.
 *
 * `limit` has two writers, the CEU, which sets it, and RQWQEManager, which clears it when it raises
 * the event; whichever finds the queue below the limit exchanges it for 0, so one of them raises
 * the event, once.
 *
 * An SRQN has 24 bits: the low ones are the index in the table, the rest change with each reuse.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/icm.h"
#include "host-abi/doorbell.h"

struct completion;

enum srq_state {
	SRQ_READY,
	SRQ_ERROR, /* its client's count was impossible: nothing is taken from it any more */
};

struct srq {
	/* ---- CEU; the data path reads ---- */
	uint32_t srqn; /* atomic; 0: this context is free, or given up */
	uint32_t pd;   /* of the local keys in its descriptors */
	uint16_t client, engine;
	uint32_t stride;  /* bytes */
	uint32_t entries; /* power of two */
	uint32_t users;	  /* queue pairs that receive through it; control thread */
	uint8_t *ring;	  /* entries × stride in client memory; its MR stays while the SRQ lives */
	struct srq_record *record;     /* in client memory: read once, bound, never trusted */
	struct completion *completion; /* where its events go */
	/* ---- the CEU and RQWQEManager: see above ---- */
	uint32_t limit; /* atomic: fewer descriptors than this raise an event; 0: not armed */
	/* ---- RQWQEManager (responder_exec) ---- */
	uint32_t consumed; /* atomic: descriptors taken, free running */
	uint8_t state;	   /* atomic: enum srq_state */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct srq) == 64, "one cache line");

struct srq_table {
	struct icm icm; /* where the contexts lie */
	struct srq *srqs;
	uint32_t count; /* power of two */
	uint32_t mask;
};

/* Reserves address space for `count` contexts, a power of two. 0 or -ENOMEM. Control thread. */
int srq_table_create(struct srq_table *t, uint32_t count);
void srq_table_destroy(struct srq_table *t);

/* The context that a 24-bit number means, or NULL. Control thread and telemetry: a queue pair has a
 * pointer to its SRQ. */
static inline struct srq *srq_find(const struct srq_table *t, uint32_t srqn)
{
	struct srq *s = &t->srqs[srqn & t->mask];

	return srqn != 0 && __atomic_load_n(&s->srqn, __ATOMIC_ACQUIRE) == srqn ? s : NULL;
}

/* How many descriptors are posted and not taken, as the client says: may be more than the ring has.
 */
static inline uint32_t srq_claimed(const struct srq *s)
{
	return __atomic_load_n(&s->record->posted, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&s->consumed, __ATOMIC_ACQUIRE);
}

/*
 * Is the limit armed, with fewer than that left? Then it is disarmed, and the caller raises the
 * event. `left`: descriptors in the queue.
 */
static inline bool srq_limit_reached(struct srq *s, uint32_t left)
{
	uint32_t limit = __atomic_load_n(&s->limit, __ATOMIC_RELAXED);

	return limit > left && __atomic_compare_exchange_n(&s->limit, &limit, 0, 0,
							   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

#endif
