/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of queues: completion queues that are resized while they fill, one that overflows, send
 * queues of UC and UD that fail (SQE) and are restarted.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "stress.h"

enum { SMALL = 16 /* the smallest CQ that there is */, TOO_MANY = SMALL + 8 };
#define EVENT_NS 30000000000ull

static void must(int rc, const char *what)
{
	if (rc)
		wrong("%s: %s", what, strerror(-rc));
}

void resize_step(struct world *w, struct pair *p)
{
	struct end *e = &p->end[below(&w->random, SIDES)];
	struct softhca_cq *cq = one_in(&w->random, 2) ? e->send_cq : e->recv_cq;
	uint32_t entries = CQ_ENTRIES << below(&w->random, 4);

	must(softhca_resize_cq(cq, entries), "resize CQ");
	if (softhca_cq_entries(cq) != entries)
		wrong("a CQ resized to %u has %u entries", entries, softhca_cq_entries(cq));
	add(TALLY_RESIZES, 1);
}

/* ---- SQE ---- */

void sqe_step(struct world *w, struct pair *p)
{
	unsigned side = below(&w->random, SIDES);
	struct end *e = &p->end[side];
	struct op op = {.kind = KIND_BAD, .length = 100, .expect = SOFTHCA_WC_LOC_PROT_ERR};

	if (p->type == SOFTHCA_QP_RC || e->sqe || e->draining || p->disturbed)
		return;
	e->sqe = post_special(w, p, side, &op);
}

bool sqe_took(struct end *e, const struct op *op, const struct softhca_wc *wc)
{
	if (!e->sqe || e->error)
		return false;
	if (op->kind == KIND_BAD)
		e->sqe_seen = true;
	return op->kind == KIND_BAD || (e->sqe_seen && wc->status == SOFTHCA_WC_WR_FLUSH_ERR);
}

void sqe_recover(struct pair *p, unsigned side)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RTS, .cur_state = SOFTHCA_QPS_SQE};
	struct end *e = &p->end[side];
	int rc;

	if (!e->sqe_seen || e->error || e->completed != e->posted)
		return;
	if (softhca_qp_current_state(e->qp) != SOFTHCA_QPS_SQE)
		wrong("QP %u has failed and is in state %s", softhca_qp_number(e->qp),
		      softhca_qp_state_str(softhca_qp_current_state(e->qp)));
	rc = softhca_modify_qp(e->qp, &attr, SOFTHCA_QP_STATE | SOFTHCA_QP_CUR_STATE);
	if (rc && !p->disturbed)
		wrong("SQE to RTS: %s", strerror(-rc));
	e->sqe = e->sqe_seen = false;
	add(TALLY_SQE, 1);
}

/* ---- a CQ that overflows ---- */

/* One queue pair on each side; side 1 receives more than its CQ holds. */
struct overflow {
	struct softhca_cq *cq[SIDES];
	struct softhca_qp *qp[SIDES];
};

static int make(struct world *w, struct overflow *o)
{
	struct softhca_endpoint at[SIDES];
	struct softhca_connect_attr attr;

	softhca_connect_defaults(w->ctx[0], &attr);
	attr.timeout = 19; /* a daemon that is late must not look like a peer that is dead */
	for (unsigned side = 0; side < SIDES; side++) {
		struct softhca_qp_init_attr init = {
			.cap = {.max_send_wr = TOO_MANY, .max_recv_wr = TOO_MANY}};

		o->cq[side] = softhca_create_cq(w->ctx[side], side ? SMALL : CQ_ENTRIES, o, NULL);
		init.send_cq = init.recv_cq = o->cq[side];
		o->qp[side] = o->cq[side] ? softhca_create_qp(w->pd[side], &init) : NULL;
		if (!o->qp[side] || softhca_init_qp(o->qp[side], &attr) ||
		    softhca_local_endpoint(o->qp[side], 0, &at[side]))
			return -1;
	}
	for (unsigned side = 0; side < SIDES; side++)
		if (softhca_connect_qp(o->qp[side], &at[side], &at[!side], &attr))
			return -1;
	return 0;
}

static int post(struct overflow *o)
{
	int rc = 0;

	for (uint64_t i = 0; i < TOO_MANY && !rc; i++) {
		struct softhca_recv_wr wr = {.wr_id = i};

		rc = softhca_post_recv(o->qp[1], &wr, NULL);
	}
	for (uint64_t i = 0; i < TOO_MANY && !rc; i++) {
		struct softhca_send_wr wr = {
			.wr_id = i, .opcode = SOFTHCA_WR_SEND, .send_flags = SOFTHCA_SEND_SIGNALED};

		do
			rc = softhca_post_send(o->qp[0], &wr, NULL);
		while (rc == -EAGAIN);
	}
	return rc;
}

/* Until the CQ is reported. Events of the thread's pairs come in between. */
static bool reported(struct world *w, struct overflow *o)
{
	uint64_t until = clock_ns() + EVENT_NS;
	struct softhca_event event;

	while (clock_ns() < until) {
		if (softhca_get_async_event(w->ctx[1], &event)) {
			usleep(100);
			continue;
		}
		add(TALLY_EVENTS, 1);
		if (event.type == SOFTHCA_EVENT_CQ_ERR)
			return event.cq == o->cq[1];
	}
	return false;
}

/* Completions before the overflow are complete and in order; the queue pair has failed. */
static void check(struct overflow *o)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RESET};
	uint64_t until = clock_ns() + EVENT_NS;
	struct softhca_wc wc[TOO_MANY];
	int n;

	while (clock_ns() < until && attr.state != SOFTHCA_QPS_ERR)
		must(softhca_query_qp(o->qp[1], &attr), "query queue pair");
	if (attr.state != SOFTHCA_QPS_ERR)
		wrong("the queue pair of a CQ that overflowed is in state %s",
		      softhca_qp_state_str(attr.state));
	n = softhca_poll_cq(o->cq[1], TOO_MANY, wc);
	if (n != SMALL)
		wrong("a CQ of %d that overflowed gives %d completions", SMALL, n);
	for (int i = 0; i < n; i++)
		if (wc[i].wr_id != (uint64_t)i || wc[i].status != SOFTHCA_WC_SUCCESS)
			wrong("completion %d before the overflow: request %llu, %s", i,
			      (unsigned long long)wc[i].wr_id, softhca_wc_status_str(wc[i].status));
}

void overflow_step(struct world *w)
{
	struct overflow o = {0};

	if (make(w, &o) || post(&o))
		wrong("a CQ to overflow: %s", strerror(errno));
	else if (!reported(w, &o))
		wrong("a CQ overflowed and nobody was told");
	else
		check(&o);
	for (unsigned side = 0; side < SIDES; side++) {
		if (o.qp[side])
			must(softhca_destroy_qp(o.qp[side]), "destroy queue pair");
		if (o.cq[side])
			must(softhca_destroy_cq(o.cq[side]), "destroy CQ");
	}
	add(TALLY_OVERFLOWS, 1);
}
