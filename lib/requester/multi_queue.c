/* SPDX-License-Identifier: BSD-3-Clause */
/* MultiQueue's pools, in hugepage memory where there is any. Reserved whole, touched only as far as
 * they are used. */
#include <errno.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include "multi_queue.h"
#include "requester_priv.h"

static void *reserve(const char *what, size_t bytes, int socket)
{
	return rte_malloc_socket(what, bytes, RTE_CACHE_LINE_SIZE, socket);
}

static int free_fifo_create(struct mq_free *f, uint32_t size, int socket)
{
	*f = (struct mq_free){.size = size, .mask = rte_align32pow2(size) - 1};
	f->fifo = reserve("mq_free", (f->mask + 1) * sizeof(uint32_t), socket);
	return f->fifo ? 0 : -ENOMEM;
}

int mq_create(struct engine *e, int socket)
{
	const struct engine_settings *s = &e->settings;
	struct multi_queue *mq = rte_zmalloc_socket("mq", sizeof(*mq), RTE_CACHE_LINE_SIZE, socket);

	if (!mq)
		return -ENOMEM;
	e->mq = mq;
	mq->sw = reserve("mq_sw", s->swpb_elements * sizeof(*mq->sw), socket);
	mq->rd = reserve("mq_rd", s->rpb_elements * sizeof(*mq->rd), socket);
	mq->re = reserve("mq_re", s->reb_elements * sizeof(*mq->re), socket);
	if (!mq->sw || !mq->rd || !mq->re ||
		free_fifo_create(&mq->sw_free, s->swpb_elements, socket) ||
		free_fifo_create(&mq->rd_free, s->rpb_elements, socket) ||
		free_fifo_create(&mq->re_free, s->reb_elements, socket))
		return -ENOMEM;
	return 0;
}

void mq_destroy(struct engine *e)
{
	struct multi_queue *mq = e->mq;

	if (!mq)
		return;
	rte_free(mq->sw);
	rte_free(mq->rd);
	rte_free(mq->re);
	rte_free(mq->sw_free.fifo);
	rte_free(mq->rd_free.fifo);
	rte_free(mq->re_free.fifo);
	rte_free(mq);
	e->mq = NULL;
}

unsigned requester_elements(const struct engine *e)
{
	const struct multi_queue *mq = e->mq;

	return mq->sw_free.size - mq_free_count(&mq->sw_free) + mq->rd_free.size -
	       mq_free_count(&mq->rd_free) + mq->re_free.size - mq_free_count(&mq->re_free);
}
