/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that come and go over the memory that a pair's peer writes and reads: windows of both types
 * and regions that a request registers. Bound, used by the peer's requests, invalidated from either
 * side, freed bound or not. What the peer does through a key must be the same as through the
 * region's own; through one that names nothing any more it must be refused.
 */
#include <errno.h>
#include <string.h>
#include "stress.h"

enum { PAGE_BYTES = 4096, REGION_PAGES = SLOT_BYTES / PAGE_BYTES };
_Static_assert((unsigned)REGION_PAGES <= (unsigned)REGION_PAGES_MAX, "a slot is so many pages");

static void make(struct world *w, struct end *e, struct handle *h)
{
	*h = (struct handle){.kind = (uint8_t)(1 + below(&w->random, HANDLE_REGION))};
	if (h->kind == HANDLE_REGION)
		h->mr = softhca_alloc_mr(e->pd, REGION_PAGES);
	else
		h->mw = softhca_alloc_mw(e->pd, h->kind == HANDLE_WINDOW_1 ? SOFTHCA_MW_TYPE_1
									   : SOFTHCA_MW_TYPE_2);
	if (!h->mr && !h->mw) {
		wrong("window or region: %s", strerror(errno));
		*h = (struct handle){0};
		return;
	}
	h->key = h->mr ? h->mr->rkey : h->mw->rkey;
	add(TALLY_KEYS, 1);
}

void handle_free(struct end *e)
{
	struct handle *h = &e->handle;
	int rc = h->mw ? softhca_dealloc_mw(h->mw) : h->mr ? softhca_dereg_mr(h->mr) : 0;

	if (rc)
		wrong("free a window or region: %s", strerror(-rc));
	*h = (struct handle){0};
}

/* ---- what is posted ---- */

static uint8_t *first_byte(const struct end *e, const struct handle *h)
{
	return e->area + (WINDOW + h->first) * SLOT_BYTES;
}

static void fill_bind(const struct end *e, const struct handle *h, struct softhca_send_wr *wr)
{
	struct softhca_mw_bind_info *info = &wr->wr.bind_mw.bind_info;

	wr->wr.bind_mw.mw = h->mw;
	wr->wr.bind_mw.rkey = h->next_key;
	*info = (struct softhca_mw_bind_info){.mr = e->mr,
					      .addr = (uintptr_t)first_byte(e, h),
					      .length = (uint64_t)h->slots * SLOT_BYTES,
					      .access = SOFTHCA_ACCESS_REMOTE_READ |
							SOFTHCA_ACCESS_REMOTE_WRITE};
	if (h->kind == HANDLE_WINDOW_2 && h->base == 0)
		info->access |= SOFTHCA_ACCESS_ZERO_BASED;
	if (h->too_long)
		info->length = AREA_BYTES + 1;
}

static void fill_register(const struct end *e, struct handle *h, struct softhca_send_wr *wr)
{
	for (unsigned i = 0; i < REGION_PAGES; i++)
		h->page[i] = (uintptr_t)first_byte(e, h) + i * PAGE_BYTES;
	wr->wr.reg_mr.key = h->next_key;
	wr->wr.reg_mr.access = SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
			       SOFTHCA_ACCESS_REMOTE_READ;
	wr->wr.reg_mr.memory = e->mr;
	wr->wr.reg_mr.iova = h->base;
	wr->wr.reg_mr.length = SLOT_BYTES;
	wr->wr.reg_mr.page = h->page;
	wr->wr.reg_mr.pages = h->too_long ? REGION_PAGES - 1 : REGION_PAGES;
	wr->wr.reg_mr.log_page = 12;
}

void handle_fill(struct pair *p, unsigned side, const struct op *op, struct softhca_send_wr *wr)
{
	struct end *e = &p->end[side], *peer = &p->end[!side];

	if (op->kind == KIND_BIND) {
		fill_bind(e, &e->handle, wr);
	} else if (op->kind == KIND_REGISTER) {
		fill_register(e, &e->handle, wr);
	} else if (op->kind == KIND_INVALIDATE) {
		wr->invalidate_rkey = e->handle.key;
	} else if (op->kind == KIND_SEND_INV) {
		wr->invalidate_rkey = peer->handle.key;
	} else { /* KIND_STALE */
		wr->wr.rdma.remote_addr = peer->handle.base;
		wr->wr.rdma.rkey = peer->handle.key;
	}
}

int handle_post_bind(struct end *e, const struct softhca_send_wr *wr)
{
	struct softhca_mw_bind bind = {.wr_id = wr->wr_id,
				       .send_flags = wr->send_flags,
				       .bind_info = wr->wr.bind_mw.bind_info};
	struct handle *h = &e->handle;
	int rc = softhca_bind_mw(e->qp, h->mw, &bind);

	if (rc == 0)
		h->next_key = h->mw->rkey;
	return rc;
}

/* ---- what the peer may name ---- */

bool handle_covers(const struct end *e, uint64_t seq)
{
	const struct handle *h = &e->handle;
	uint64_t slot = seq % WINDOW;

	return h->bound && !h->changing && slot >= h->first && slot < h->first + h->slots;
}

uint64_t handle_address(const struct end *e, const uint8_t *at)
{
	return e->handle.base + (uint64_t)(at - first_byte(e, &e->handle));
}

/* ---- results ---- */

/* `e`: whose key it is. */
static void changed(struct end *e, enum kind kind)
{
	struct handle *h = &e->handle;

	h->changing = false;
	h->bound = (kind == KIND_BIND && h->slots) || kind == KIND_REGISTER;
	if (kind == KIND_BIND || kind == KIND_REGISTER)
		h->key = h->next_key;
	add(TALLY_KEYS_CHANGED, 1);
}

void handle_done(struct pair *p, unsigned side, const struct op *op, bool ok)
{
	struct end *e = &p->end[side], *peer = &p->end[!side];

	if (op->through && peer->handle.uses)
		peer->handle.uses--;
	if (!ok)
		return;
	if (op->kind == KIND_SEND_INV)
		changed(peer, KIND_SEND_INV);
	else if (op->kind >= KIND_BIND && op->kind <= KIND_INVALIDATE)
		changed(e, (enum kind)op->kind);
}

/* ---- steps ---- */

/* Type 1 is bound to nothing, the others are invalidated, at times by the peer. */
static void unbind(struct world *w, struct pair *p, unsigned side)
{
	struct handle *h = &p->end[side].handle;
	struct op op = {.kind = KIND_INVALIDATE};

	if (h->uses && !one_in(&w->random, 16))
		return;
	if (h->uses) /* requests in flight may find it invalid */
		p->disturbed++;
	if (h->kind == HANDLE_WINDOW_1) {
		op.kind = KIND_BIND;
		h->slots = 0;
	} else if (one_in(&w->random, 2)) {
		op.kind = KIND_SEND_INV;
		op.length = 1 + below(&w->random, MESSAGE_MAX);
		side = !side;
	}
	h->changing = post_special(w, p, side, &op);
	h->lost = !h->changing;
}

static void bind(struct world *w, struct pair *p, unsigned side)
{
	struct end *e = &p->end[side];
	struct handle *h = &e->handle;
	bool region = h->kind == HANDLE_REGION;
	struct op op = {.kind = region ? KIND_REGISTER : KIND_BIND};

	h->next_key = softhca_inc_rkey(h->key);
	h->slots = region ? 1 : 1 + below(&w->random, WINDOW);
	h->first = (uint8_t)below(&w->random, WINDOW + 1 - h->slots);
	h->base = (uintptr_t)first_byte(e, h);
	if (region)
		h->base = draw(&w->random) >> 8 & ~(uint64_t)(PAGE_BYTES - 1);
	else if (h->kind == HANDLE_WINDOW_2 && one_in(&w->random, 2))
		h->base = 0;
	h->too_long = one_in(&w->random, 40);
	if (h->too_long) {
		op.expect = SOFTHCA_WC_MW_BIND_ERR;
		p->disturbed++;
	}
	h->changing = post_special(w, p, side, &op);
	h->lost = !h->changing;
}

/* Through the key that names nothing any more. */
static void use_stale(struct world *w, struct pair *p, unsigned side)
{
	struct op op = {.kind = KIND_STALE, .length = 64, .expect = SOFTHCA_WC_REM_ACCESS_ERR};

	p->disturbed++;
	post_special(w, p, !side, &op);
}

void handle_step(struct world *w, struct pair *p, unsigned side)
{
	struct end *e = &p->end[side];
	struct handle *h = &e->handle;

	if (p->type != SOFTHCA_QP_RC || p->disturbed || h->changing || !can_post(p, 0) ||
	    !can_post(p, 1))
		return;
	if (h->kind == HANDLE_NONE)
		make(w, e, h);
	if (h->kind == HANDLE_NONE)
		return;
	if (h->lost || (h->uses == 0 && one_in(&w->random, 20)))
		handle_free(e);
	else if (h->bound)
		unbind(w, p, side);
	else if (h->next_key && one_in(&w->random, 20))
		use_stale(w, p, side);
	else
		bind(w, p, side);
}
