/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that is shared: each word of the client page, the records, the queues set to boundary
 * and random values while traffic runs; descriptors that change while they are read; memory that is
 * punched and unmapped.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hostile.h"

struct piece {
	void *at;
	size_t bytes;
};

/* A random piece of shared memory of a random side. Queue memory holds queues and records. */
static struct piece some_piece(struct attacker *a)
{
	struct side *s = &a->side[below(a, SIDES)];
	struct softhca_qp *qp = s->qp[below(a, WHICH_COUNT)];
	const struct piece pieces[] = {
		{s->ctx->page->uar, sizeof(s->ctx->page->uar)},
		{qp->fifo->page, sizeof(struct uar_page)},
		{qp->fifo->page->doorbell, sizeof(qp->fifo->page->doorbell)},
		{qp->fifo->page, 128},
		{&s->ctx->page->eq_consumer, 8},
		{s->ctx->page->eq, sizeof(s->ctx->page->eq)},
		{s->cq->record, sizeof(*s->cq->record)},
		{s->cq->buffer, 64 * sizeof(struct cqe)},
		{s->srq->record, 4},
		{qp->record, 4},
		{qp->sq.buffer, 16u << qp->sq.shift},
		{qp->rq.buffer, qp->rq.buffer ? 16u << qp->rq.shift : 0},
		{s->srq->ring, 16u << s->srq->shift},
	};

	return pieces[below(a, sizeof(pieces) / sizeof(pieces[0]))];
}

static void scribble(struct attacker *a)
{
	struct piece p = some_piece(a);
	uint32_t *words = p.at;

	if (p.bytes)
		__atomic_store_n(&words[below(a, (uint32_t)(p.bytes / 4))], (uint32_t)nasty(a),
				 __ATOMIC_RELAXED);
}

/* The other thread: flips bits of descriptors, or scribbles everywhere. */
struct companion {
	struct attacker a;
	void (*act)(struct attacker *a);
};

static void *companion_main(void *argument)
{
	struct companion *c = argument;

	for (;;) {
		c->act(&c->a);
		if (below(&c->a, 64) == 0)
			usleep(50);
	}
	return NULL;
}

static void start_companion(struct attacker *a, void (*act)(struct attacker *a))
{
	static struct companion c;
	pthread_t id;

	c = (struct companion){.a = *a, .act = act};
	c.a.state = draw(a);
	if (pthread_create(&id, NULL, companion_main, &c))
		exit(SET_UP_FAILED);
}

/* Traffic that would be in order if the memory stayed as it is. */
static void traffic(struct attacker *a)
{
	enum which which = below(a, WHICH_COUNT);
	unsigned side = below(a, SIDES);
	struct softhca_wc wc[16];
	uint8_t opcode;

	receives_post(a, !side, which);
	for (uint32_t slot = 0; slot < 8; slot++) {
		unsigned units = wqe_write(a, side, which, slot, &opcode);

		wqe_ring(a, side, which, slot, opcode, units);
	}
	for (unsigned i = 0; i < SIDES; i++)
		(void)softhca_poll_cq(a->side[i].cq, 16, wc);
	if (below(a, 8) == 0)
		objects_revive(a, which);
}

void attack_words(struct attacker *a)
{
	start_companion(a, scribble);
	for (;;)
		traffic(a);
}

static void flip(struct attacker *a)
{
	struct side *s = &a->side[below(a, SIDES)];
	struct softhca_qp *qp = s->qp[below(a, WHICH_COUNT)];
	uint32_t *words = (uint32_t *)(void *)(below(a, 3) ? qp->sq.buffer : s->srq->ring);
	uint32_t at = below(a, 8) * (1u << qp->sq.shift) / 4 + below(a, 24),
		 bit = 1u << below(a, 32);

	for (unsigned i = 0; i < 200; i++)
		__atomic_fetch_xor(&words[at], bit, __ATOMIC_RELAXED);
}

void attack_flips(struct attacker *a)
{
	start_companion(a, flip);
	for (;;)
		traffic(a);
}

/* ---- memory that goes ---- */

static void punch(struct attacker *a)
{
	struct side *s = &a->side[below(a, SIDES)];
	uint8_t *at = s->area + 4096 * below(a, AREA_BYTES / 4096);
	struct piece p = some_piece(a);
	uintptr_t page = (uintptr_t)p.at & ~(uintptr_t)4095;

	madvise(at, 4096, MADV_REMOVE);
	if (below(a, 20) == 0 && p.bytes)
		madvise((void *)page, 4096, MADV_REMOVE);
}

void attack_memory(struct attacker *a)
{
	start_companion(a, punch);
	for (unsigned n = 0; n < 300; n++)
		traffic(a);
	/* Unmapped here, it stays mapped in the daemon. This process dies of it, sooner or
	 * later. */
	for (unsigned side = 0; side < SIDES; side++)
		munmap(a->side[side].area, AREA_BYTES);
	for (;;)
		traffic(a);
}
