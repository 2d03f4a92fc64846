/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: create, arm, post. Any thread; posting and completing are hot.
 *
 * Descriptors complete out of order, so each carries a tag, which its completion returns. There are
 * max_wr tags, at most as many as slots in the ring. A tag is in use from post to completion, a
 * slot only until the daemon takes the descriptor, so a free tag implies a free slot. A tag that is
 * lost with its queue pair (softhca_create_srq()) stays lost.
 */
#include <stdlib.h>
#include <string.h>
#include "context.h"
#include "events.h"
#include "post.h"
#include "regions.h"
#include "srq.h"

enum { ENTRIES_MIN = 4 };

/* ---- create and destroy ---- */

static int srq_register(struct softhca_srq *srq)
{
	struct control_srq in = {
		.pd = srq->pd->number,
		.lkey = srq->memory.chunk->lkey,
		.log_entries = (uint32_t)__builtin_ctz(srq->mask + 1),
		.stride = 1u << srq->shift,
		.ring_va = (uintptr_t)srq->ring,
		.record_va = (uintptr_t)srq->record,
	};

	return ctx_call_for_number(srq->pd->node.ctx, CONTROL_CREATE_SRQ, &in, sizeof(in),
				   &srq->number);
}

/* context.lock is held. */
static int srq_make(struct softhca_context *ctx, struct softhca_srq *srq)
{
	size_t ring_bytes = ((size_t)srq->mask + 1) << srq->shift;
	int rc = queue_memory_get(ctx, ring_bytes + sizeof(struct srq_record), &srq->memory);

	if (rc)
		return rc;
	srq->ring = srq->memory.addr;
	srq->record = (struct srq_record *)(srq->memory.addr + ring_bytes);
	rc = srq_register(srq);
	if (rc) {
		queue_memory_put(ctx, &srq->memory);
		return rc;
	}
	node_add(ctx, &srq->node, NODE_SRQ);
	srq->pd->node.users++;
	return 0;
}

void srq_free(struct softhca_srq *srq)
{
	free(srq->wr_id);
	free(srq->free_tags);
	free(srq);
}

static struct softhca_srq *srq_new(struct softhca_pd *pd, struct softhca_srq_init_attr *attr)
{
	struct softhca_srq *srq = aligned_alloc(64, sizeof(*srq));
	uint32_t entries = round_up(attr->max_wr, ENTRIES_MIN);
	uint32_t stride = receive_stride(attr->max_sge);

	if (!srq)
		return NULL;
	memset(srq, 0, sizeof(*srq));
	srq->pd = pd;
	srq->user = attr->user;
	srq->mask = entries - 1;
	srq->shift = (uint8_t)__builtin_ctz(stride);
	srq->max_wr = attr->max_wr;
	srq->max_sge = attr->max_sge;
	srq->wr_id = calloc(entries, sizeof(srq->wr_id[0]));
	srq->free_tags = calloc(entries, sizeof(srq->free_tags[0]));
	if (!srq->wr_id || !srq->free_tags) {
		srq_free(srq);
		return NULL;
	}
	for (uint32_t i = 0; i < srq->max_wr; i++)
		srq->free_tags[i] = srq->max_wr - 1 - i;
	srq->free_count = srq->max_wr;
	return srq;
}

struct softhca_srq *softhca_create_srq(struct softhca_pd *pd, struct softhca_srq_init_attr *attr)
{
	struct softhca_context *ctx = pd->node.ctx;
	struct softhca_srq *srq;
	int rc;

	if (attr->max_wr == 0 || attr->max_wr > ctx->hello.max_srq_wr ||
	    attr->max_sge > ctx->hello.max_sge) {
		errno = EINVAL;
		return NULL;
	}
	srq = srq_new(pd, attr);
	if (!srq) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&ctx->lock);
	rc = srq_make(ctx, srq);
	pthread_mutex_unlock(&ctx->lock);
	if (rc) {
		srq_free(srq);
		errno = -rc;
		return NULL;
	}
	return srq;
}

int softhca_destroy_srq(struct softhca_srq *srq)
{
	struct softhca_context *ctx = srq->node.ctx;
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = node_destroy(&srq->node, CONTROL_DESTROY_SRQ, srq->number);
	if (!rc) {
		events_drain(ctx);
		node_remove(&srq->node);
		srq->pd->node.users--;
		queue_memory_put(ctx, &srq->memory);
	}
	pthread_mutex_unlock(&ctx->lock);
	if (rc)
		return rc;
	events_forget(&srq->node);
	srq_free(srq);
	return 0;
}

uint32_t softhca_srq_number(const struct softhca_srq *srq)
{
	return srq->number;
}

void *softhca_srq_user(const struct softhca_srq *srq)
{
	return srq->user;
}

int softhca_arm_srq(struct softhca_srq *srq, uint32_t limit)
{
	struct control_srq_limit in = {.srqn = srq->number, .limit = limit};

	if (limit > srq->max_wr)
		return -EINVAL;
	return ctx_call(srq->node.ctx, CONTROL_MODIFY_SRQ, &in, sizeof(in), NULL, 0, -1, NULL);
}

int softhca_query_srq(struct softhca_srq *srq, struct softhca_srq_attr *attr)
{
	struct control_number in = {.number = srq->number};
	struct control_srq_attr out;
	int rc = ctx_call(srq->node.ctx, CONTROL_QUERY_SRQ, &in, sizeof(in), &out, sizeof(out), -1,
			  NULL);

	if (rc)
		return rc;
	*attr = (struct softhca_srq_attr){.max_wr = srq->max_wr,
					  .max_sge = srq->max_sge,
					  .limit = out.limit,
					  .available = out.available,
					  .error = out.error};
	return 0;
}

/* ---- post and complete ---- */

int softhca_post_srq_recv(struct softhca_srq *srq, struct softhca_recv_wr *wr,
			  struct softhca_recv_wr **bad_wr)
{
	uint32_t head;
	int rc = unlikely(ctx_dead(srq->node.ctx)) ? -EIO : 0;

	spin_lock(&srq->lock);
	head = srq->head;
	for (; wr && !rc; wr = wr->next) {
		uint8_t *wqe = srq->ring + ((size_t)(head & srq->mask) << srq->shift);
		uint32_t tag;

		if (unlikely(srq->free_count == 0 || wr->num_sge < 0 ||
			     (uint32_t)wr->num_sge > srq->max_sge)) {
			rc = srq->free_count == 0 ? -ENOMEM : -EINVAL;
			break;
		}
		tag = srq->free_tags[--srq->free_count];
		put_receive(wr, srq->shift, tag, wqe);
		srq->wr_id[tag] = wr->wr_id;
		head++;
	}
	srq->head = head;
	__atomic_store_n(&srq->record->posted, head, __ATOMIC_RELEASE);
	spin_unlock(&srq->lock);
	if (unlikely(rc) && bad_wr)
		*bad_wr = wr;
	return rc;
}

uint64_t srq_retire(struct softhca_srq *srq, uint32_t tag)
{
	uint64_t wr_id;

	spin_lock(&srq->lock);
	wr_id = srq->wr_id[tag & srq->mask];
	if (likely(srq->free_count < srq->max_wr))
		srq->free_tags[srq->free_count++] = tag & srq->mask;
	spin_unlock(&srq->lock);
	return wr_id;
}
