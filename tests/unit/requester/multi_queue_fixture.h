/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MULTI_QUEUE_FIXTURE_H
#define MULTI_QUEUE_FIXTURE_H
/* A MultiQueue in ordinary memory: no EAL, so that nothing but the lists themselves is tested. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "requester_priv.h"

static inline void free_fifo_make(struct mq_free *f, uint32_t size)
{
	*f = (struct mq_free){.size = size};
	f->fifo = calloc(size, sizeof(uint32_t));
}

static inline struct multi_queue *multi_queue_make(uint32_t size)
{
	struct multi_queue *mq = aligned_alloc(64, RTE_ALIGN(sizeof(*mq), 64));

	mq->sw = calloc(size, sizeof(*mq->sw));
	mq->rd = calloc(size, sizeof(*mq->rd));
	mq->re = calloc(size, sizeof(*mq->re));
	free_fifo_make(&mq->sw_free, size);
	free_fifo_make(&mq->rd_free, size);
	free_fifo_make(&mq->re_free, size);
	return mq;
}

static inline void multi_queue_unmake(struct multi_queue *mq)
{
	free(mq->sw);
	free(mq->rd);
	free(mq->re);
	free(mq->sw_free.fifo);
	free(mq->rd_free.fifo);
	free(mq->re_free.fifo);
	free(mq);
}

#endif
