/* SPDX-License-Identifier: BSD-3-Clause */
/* MultiQueue's pools, in hugepage memory if there is any. Reserved in full, but touched only as
 * they are used. */
#include <errno.h>
#include <string.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include "multi_queue.h"
#include "requester/requester.h"

static void *reserve(const struct engine *e, const char *what, size_t bytes)
{
	return rte_malloc_socket(what, bytes, RTE_CACHE_LINE_SIZE, e->socket);
}

static int free_fifo_create(const struct engine *e, struct mq_free *f, uint32_t size)
{
	*f = (struct mq_free){.size = size, .mask = rte_align32pow2(size) - 1};
	f->fifo = reserve(e, "mq_free", (f->mask + 1) * sizeof(uint32_t));
	f->put = engine_alloc(e, "mq_put", HOLDERS * sizeof(uint32_t));
	f->got = engine_alloc(e, "mq_got", HOLDERS * sizeof(uint32_t));
	return f->fifo && f->put && f->got ? 0 : -ENOMEM;
}

static void free_fifo_destroy(struct mq_free *f)
{
	rte_free(f->fifo);
	rte_free(f->put);
	rte_free(f->got);
}

int mq_create(struct engine *e)
{
	const struct engine_settings *s = &e->settings;
	struct multi_queue *mq = engine_alloc(e, "mq", sizeof(*mq));

	if (!mq)
		return -ENOMEM;
	e->mq = mq;
	mq->sw = reserve(e, "mq_sw", s->swpb_elements * sizeof(*mq->sw));
	mq->rd = reserve(e, "mq_rd", s->rpb_elements * sizeof(*mq->rd));
	mq->re = reserve(e, "mq_re", s->reb_elements * sizeof(*mq->re));
	if (!mq->sw || !mq->rd || !mq->re || free_fifo_create(e, &mq->sw_free, s->swpb_elements) ||
	    free_fifo_create(e, &mq->rd_free, s->rpb_elements) ||
	    free_fifo_create(e, &mq->re_free, s->reb_elements))
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
	free_fifo_destroy(&mq->sw_free);
	free_fifo_destroy(&mq->rd_free);
	free_fifo_destroy(&mq->re_free);
	rte_free(mq);
	e->mq = NULL;
}

static unsigned holders(const struct mq_free *f)
{
	unsigned n = 0;

	if (!memcmp(f->put, f->got, HOLDERS * sizeof(*f->put)))
		return 0;
	for (unsigned i = 0; i < HOLDERS; i++)
		n += f->put[i] != f->got[i];
	return n;
}

unsigned requester_holders(const struct engine *e)
{
	const struct multi_queue *mq = e->mq;

	return holders(&mq->sw_free) + holders(&mq->rd_free) + holders(&mq->re_free);
}

unsigned requester_elements(const struct engine *e)
{
	const struct multi_queue *mq = e->mq;

	return mq->sw_free.size - mq_free_count(&mq->sw_free) + mq->rd_free.size -
	       mq_free_count(&mq->rd_free) + mq->re_free.size - mq_free_count(&mq->re_free);
}

static const struct mq_free *pool_of(const struct engine *e, enum data_share which)
{
	const struct multi_queue *mq = e->mq;

	return which == DATA_SHARE_packets_kept ? &mq->sw_free
	       : which == DATA_SHARE_reads_kept ? &mq->rd_free
						: &mq->re_free;
}

unsigned requester_room(const struct engine *e, enum data_share which)
{
	return pool_of(e, which)->size;
}

unsigned requester_kept(const struct engine *e, enum data_share which, unsigned client)
{
	return mq_held(pool_of(e, which),
		       client == REQUESTER_ALL ? HOLDER_ALL : HOLDER_CLIENT + client);
}

bool requester_rests(const struct engine *e)
{
	return !requester_kept(e, DATA_SHARE_packets_kept, REQUESTER_ALL) &&
	       !requester_kept(e, DATA_SHARE_reads_kept, REQUESTER_ALL) &&
	       !requester_kept(e, DATA_SHARE_entries_kept, REQUESTER_ALL);
}
