/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues with their buffers, and regions that come and go while requests name them:
 * after a region was deregistered nothing may change in it any more.
 */
#include <errno.h>
#include <string.h>
#include "stress.h"

enum { STRAY_BYTES_MAX = 64 << 10, CANARY = 0xc5 };

/* ---- shared receive queues ---- */

void box_make(struct world *w, unsigned side)
{
	struct srq_box *b = &w->box[side];
	struct softhca_srq_init_attr attr = {.max_wr = RECVS, .max_sge = 1};

	*b = (struct srq_box){0};
	b->area = softhca_alloc(w->ctx[side], BOX_SLOTS * SLOT_BYTES);
	if (b->area)
		b->mr = softhca_reg_mr(w->pd[side], b->area, BOX_SLOTS * SLOT_BYTES,
				       SOFTHCA_ACCESS_LOCAL_WRITE);
	if (b->mr)
		b->srq = softhca_create_srq(w->pd[side], &attr);
	if (!b->srq)
		wrong("SRQ: %s", strerror(errno));
}

static uint64_t free_slot(const struct srq_box *b)
{
	uint64_t i = 0;

	while (i < BOX_SLOTS && b->posted[i])
		i++;
	return i;
}

/* A queue pair that goes takes at most RECVS along: with PAIRS of them each buffer that may be
 * needed is still there when the last one goes. */
bool box_worn(const struct srq_box *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BOX_SLOTS; i++)
		n += b->posted[i];
	return n > BOX_SLOTS - PAIRS * RECVS;
}

/* Posts until it is full. Returns how many. */
static unsigned fill(struct srq_box *b)
{
	unsigned n = 0;

	for (;;) {
		uint64_t slot = free_slot(b);
		struct softhca_sge sge = {.addr = (uintptr_t)(b->area + slot * SLOT_BYTES),
					  .length = SLOT_BYTES,
					  .lkey = b->mr->lkey};
		struct softhca_recv_wr wr = {
			.wr_id = RECEIVE | slot, .sg_list = &sge, .num_sge = 1};
		int rc;

		if (slot == BOX_SLOTS)
			return n;
		rc = softhca_post_srq_recv(b->srq, &wr, NULL);
		if (rc && rc != -ENOMEM)
			wrong("post to SRQ: %s", strerror(-rc));
		if (rc)
			return n;
		b->posted[slot] = true;
		n++;
	}
}

void box_fill(struct srq_box *b)
{
	fill(b);
}

/* No queue pair uses it: every request that was posted has completed or is still there. */
void box_free(struct srq_box *b)
{
	struct softhca_srq_attr attr;
	int rc;

	if (!b->srq)
		return;
	fill(b);
	rc = softhca_query_srq(b->srq, &attr);
	if (rc || attr.error)
		wrong("query SRQ: %s, error %u", strerror(-rc), attr.error);
	else if (free_slot(b) < BOX_SLOTS && attr.available != attr.max_wr)
		wrong("an SRQ of %u requests holds %u, and takes no more", attr.max_wr,
		      attr.available);
	rc = softhca_destroy_srq(b->srq);
	if (!rc)
		rc = softhca_dereg_mr(b->mr);
	if (rc)
		wrong("free SRQ: %s", strerror(-rc));
	*b = (struct srq_box){.area = b->area};
}

/* ---- regions that come and go ---- */

struct stray *stray_on(struct world *w, unsigned side)
{
	struct stray *s = &w->stray[below(&w->random, STRAYS)];

	return s->memory && s->side == side ? s : NULL;
}

static void make(struct world *w, struct stray *s)
{
	unsigned access = SOFTHCA_ACCESS_LOCAL_WRITE;

	*s = (struct stray){.side = (uint8_t)below(&w->random, SIDES),
			    .bytes = 1 + below(&w->random, STRAY_BYTES_MAX)};
	if (!one_in(&w->random, 4))
		access |= SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ;
	s->memory = softhca_alloc(w->ctx[s->side], s->bytes);
	if (s->memory)
		s->mr = softhca_reg_mr(w->pd[s->side], s->memory, s->bytes, access);
	if (!s->mr)
		wrong("region: %s", strerror(errno));
	s->state = STRAY_REGISTERED;
	add(TALLY_REGIONS, 1);
}

static void check_canary(const struct stray *s)
{
	for (uint32_t i = 0; i < s->bytes; i++)
		if (s->memory[i] != CANARY) {
			wrong("byte %u of %u was written after the right to it had gone", i,
			      s->bytes);
			break;
		}
}

/* The same keys, other rights: first without remote writes, then with them again. */
static void rereg(struct world *w, struct stray *s)
{
	bool close = s->state == STRAY_REGISTERED;
	unsigned access = SOFTHCA_ACCESS_LOCAL_WRITE, flags = SOFTHCA_REREG_MR_CHANGE_ACCESS;
	uint32_t rkey = s->mr->rkey;
	int rc;

	if (!close) {
		check_canary(s);
		access |= SOFTHCA_ACCESS_REMOTE_WRITE | SOFTHCA_ACCESS_REMOTE_READ;
	}
	if (one_in(&w->random, 2))
		flags |= SOFTHCA_REREG_MR_CHANGE_TRANSLATION;
	if (one_in(&w->random, 2))
		flags |= SOFTHCA_REREG_MR_CHANGE_PD;
	rc = softhca_rereg_mr(s->mr, flags, w->pd[s->side], s->memory, s->bytes, access);
	if (rc)
		wrong("register anew: %s", strerror(-rc));
	if (s->mr->rkey != rkey)
		wrong("registered anew a region has another key");
	if (close)
		memset(s->memory, CANARY, s->bytes);
	s->state = close ? STRAY_CLOSED : STRAY_REGISTERED;
	add(TALLY_REREGISTERED, 1);
}

static void unmake(struct stray *s)
{
	int rc = softhca_dereg_mr(s->mr);

	if (rc)
		wrong("deregister: %s", strerror(-rc));
	s->mr = NULL;
	if (s->state == STRAY_REGISTERED)
		memset(s->memory, CANARY, s->bytes);
	s->state = STRAY_GONE;
}

static void check_untouched(struct world *w, struct stray *s)
{
	int rc;

	check_canary(s);
	rc = softhca_free(w->ctx[s->side], s->memory);
	if (rc)
		wrong("free: %s", strerror(-rc));
	*s = (struct stray){0};
}

static void step(struct world *w, struct stray *s)
{
	switch ((enum stray_state)s->state) {
	case STRAY_NONE:
		make(w, s);
		break;
	case STRAY_REGISTERED:
	case STRAY_CLOSED:
		if (one_in(&w->random, 2))
			rereg(w, s);
		else
			unmake(s);
		break;
	case STRAY_GONE:
		check_untouched(w, s);
		break;
	}
}

void stray_step(struct world *w)
{
	step(w, &w->stray[below(&w->random, STRAYS)]);
}

void strays_free(struct world *w)
{
	for (unsigned i = 0; i < STRAYS; i++)
		while (w->stray[i].state != STRAY_NONE)
			step(w, &w->stray[i]);
}
