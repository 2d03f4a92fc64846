/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_SCATTER_ENTRY_MANAGER_H
#define REQUESTER_SCATTER_ENTRY_MANAGER_H
/*
 * ScatterEntryManager (doc/modules.md#scatterentrymanager): the scatter entries of READ and atomic
 * requests, at the head of MultiQueue's third queue. Commands of RequesterRecvControl; stage
 * requester_recv.
 */
#include "context/qp_context.h"
#include "buffer_shares.h"
#include "multi_queue.h"

/* Counts n commands. */
static inline void sem_note(struct engine *e, unsigned n)
{
	call_note(&e->stage[STAGE_REQUESTER_RECV], CALL_RRC_SEM, n);
}

enum sem_response { SEM_VALID_ENTRY = 0x00, SEM_INVALID_ENTRY = 0x01 };

/* Removes the entry at the head. */
static inline void sem_take(struct engine *e, struct qp *q)
{
	re_pop(e->mq, &q->mq.re);
	mq_discharge(&e->mq->re_free, q, 1);
}

/* FETCH_ENTRY: the unused part of the entry at the head; releases empty ones on the way. *entries:
 * how many the current request has left, updated here. */
static inline enum sem_response sem_fetch(struct engine *e, struct qp *q, uint8_t *entries,
					  struct re_element *out)
{
	sem_note(e, 1);
	while (*entries) {
		const struct re_element *r = re_head(e->mq, &q->mq.re);

		*out = *r;
		out->addr += q->rrc.entry_bytes;
		out->length -= q->rrc.entry_bytes;
		if (out->length)
			return SEM_VALID_ENTRY;
		sem_take(e, q);
		q->rrc.entry_bytes = 0;
		--*entries;
	}
	return SEM_INVALID_ENTRY;
}

/* UPDATE_ENTRY: `bytes` more of the entry at the head are used. */
static inline void sem_update(struct engine *e, struct qp *q, uint32_t bytes)
{
	sem_note(e, 1);
	q->rrc.entry_bytes += bytes;
}

/* RELEASE_ENTRY: the remaining `entries` of the current request; in two steps for several
 * requests. */
static inline void sem_pop(struct engine *e, struct qp *q, uint8_t entries)
{
	for (unsigned i = 0; i < entries; i++)
		re_pop(e->mq, &q->mq.re);
}

static inline void sem_released(struct engine *e, struct qp *q, uint32_t entries)
{
	mq_discharge(&e->mq->re_free, q, entries);
	q->rrc.entry_bytes = 0;
	q->rrc.scattered = 0;
}

static inline void sem_release(struct engine *e, struct qp *q, uint8_t entries)
{
	sem_note(e, 1);
	sem_pop(e, q, entries);
	sem_released(e, q, entries);
}

#endif
