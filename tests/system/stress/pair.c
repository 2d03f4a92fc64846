/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a pair: created, connected, drained, moved to ERR, reset, destroyed, at any moment of
 * its traffic. Whenever both ends can return what they hold, all of it must be returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "../../../bench/path/verify.h"
#include "stress.h"

static void must(int rc, const char *what)
{
	if (rc)
		wrong("%s: %s", what, strerror(-rc));
}

/* ---- made ---- */

static void make_cqs(struct world *w, struct end *e, unsigned side)
{
	struct softhca_context *ctx = w->ctx[side];

	if (one_in(&w->random, 3)) {
		e->channel = softhca_create_channel(ctx);
		if (e->channel)
			fcntl(softhca_channel_fd(e->channel), F_SETFL, O_NONBLOCK);
	}
	e->send_cq = e->recv_cq = softhca_create_cq(ctx, CQ_ENTRIES, e, e->channel);
	if (one_in(&w->random, 2))
		e->recv_cq = softhca_create_cq(ctx, CQ_ENTRIES, e, NULL);
	if (!e->send_cq || !e->recv_cq)
		wrong("CQ: %s", strerror(errno));
}

static void use_box(struct world *w, struct end *e, unsigned side)
{
	struct srq_box *b = &w->box[side];

	if (b->srq && b->users == 0 && box_worn(b)) {
		box_free(b);
		must(softhca_free(w->ctx[side], b->area), "free");
		b->area = NULL;
	}
	if (!b->srq)
		box_make(w, side);
	if (!b->srq || box_worn(b))
		return;
	e->box = b;
	b->users++;
}

static void make_end(struct world *w, struct pair *p, unsigned side)
{
	struct end *e = &p->end[side];
	struct softhca_qp_init_attr attr = {.type = p->type,
					    .cap = {.max_send_wr = 2 * WINDOW,
						    .max_recv_wr = RECVS,
						    .max_send_sge = 3,
						    .max_recv_sge = 1,
						    .max_inline_data = 64}};

	*e = (struct end){.area = softhca_alloc(w->ctx[side], AREA_BYTES), .pd = w->pd[side]};
	make_cqs(w, e, side);
	if (w->sharing || one_in(&w->random, 3))
		use_box(w, e, side);
	if (e->area)
		e->mr = softhca_reg_mr(e->pd, e->area, AREA_BYTES,
				       SOFTHCA_ACCESS_LOCAL_WRITE | SOFTHCA_ACCESS_REMOTE_WRITE |
					       SOFTHCA_ACCESS_REMOTE_READ |
					       SOFTHCA_ACCESS_REMOTE_ATOMIC |
					       SOFTHCA_ACCESS_MW_BIND);
	attr.send_cq = e->send_cq;
	attr.recv_cq = e->recv_cq;
	if (e->box) {
		attr.srq = e->box->srq;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	}
	e->qp = e->mr ? softhca_create_qp(e->pd, &attr) : NULL;
	if (!e->qp)
		wrong("queue pair: %s", strerror(errno));
}

static void make_addresses(struct world *w, struct pair *p, const struct softhca_endpoint *at)
{
	for (unsigned side = 0; side < SIDES && p->type == SOFTHCA_QP_UD; side++) {
		struct softhca_ah_attr ah = {0};

		if (p->end[side].ah)
			continue;
		memcpy(ah.dgid, at[!side].gid, sizeof(ah.dgid));
		p->end[side].ah = softhca_create_ah(w->pd[side], &ah);
		if (!p->end[side].ah)
			wrong("address: %s", strerror(errno));
	}
}

/* From RST to RTS, both ends, or not quite. */
static void join(struct world *w, struct pair *p)
{
	struct softhca_endpoint at[SIDES];
	struct softhca_connect_attr attr;

	p->key = draw(&w->random);
	p->timeout = one_in(&w->random, 4) ? 10 : 19;
	p->disturbed = 0;
	softhca_connect_defaults(w->ctx[0], &attr);
	attr.timeout = p->timeout;
	attr.min_rnr_timer = 1;
	attr.path_mtu = (uint8_t)(1 + below(&w->random, 3));
	attr.max_rd_atomic = attr.max_dest_rd_atomic = (uint8_t)(1 + below(&w->random, 8));
	for (unsigned side = 0; side < SIDES; side++) {
		must(softhca_init_qp(p->end[side].qp, &attr), "to INIT");
		must(softhca_local_endpoint(p->end[side].qp, 0, &at[side]), "endpoint");
		memset(WORDS(&p->end[side]), 0, 2 * sizeof(uint64_t));
		post_receives(p, side);
	}
	make_addresses(w, p, at);
	for (unsigned side = 0; side < SIDES; side++) {
		if (one_in(&w->random, 30))
			return; /* one or both stay in INIT */
		must(softhca_connect_qp(p->end[side].qp, &at[side], &at[!side], &attr), "connect");
	}
	p->connected = true;
}

void pair_make(struct world *w, struct pair *p)
{
	static const uint8_t types[] = {SOFTHCA_QP_RC, SOFTHCA_QP_RC, SOFTHCA_QP_RC, SOFTHCA_QP_UC,
					SOFTHCA_QP_UD};

	*p = (struct pair){.type = types[below(&w->random, sizeof(types))], .live = true};
	for (unsigned side = 0; side < SIDES; side++)
		make_end(w, p, side);
	add(TALLY_PAIRS, 1);
	if (p->end[0].qp && p->end[1].qp && !one_in(&w->random, 30))
		join(w, p);
}

/* ---- destroyed ---- */

static void forget_events(struct end *e)
{
	struct softhca_cq *cq;

	while (e->channel && softhca_get_cq_event(e->channel, &cq, NULL) == 0) {
		softhca_ack_cq_events(cq, 1);
		add(TALLY_EVENTS, 1);
	}
}

static void destroy_qp(struct end *e)
{
	if (!e->qp)
		return;
	if (e->posted != e->completed)
		add(TALLY_DESTROYED, 1);
	must(softhca_destroy_qp(e->qp), "destroy queue pair");
	e->qp = NULL;
	if (e->box)
		e->box->users--;
	e->box = NULL;
}

/* Removes all its entries from its CQs, to make room for its next life. */
static void nothing_left(struct end *e)
{
	struct softhca_wc wc;

	if ((e->send_cq && softhca_poll_cq(e->send_cq, 1, &wc) > 0) ||
	    (e->recv_cq && softhca_poll_cq(e->recv_cq, 1, &wc) > 0))
		wrong("a completion of a queue pair that was destroyed or reset");
}

static void destroy_end(struct end *e)
{
	destroy_qp(e);
	nothing_left(e);
	forget_events(e);
	if (e->recv_cq && e->recv_cq != e->send_cq)
		must(softhca_destroy_cq(e->recv_cq), "destroy CQ");
	if (e->send_cq)
		must(softhca_destroy_cq(e->send_cq), "destroy CQ");
	if (e->channel)
		must(softhca_destroy_channel(e->channel), "destroy channel");
	if (e->ah)
		softhca_destroy_ah(e->ah);
	handle_free(e);
	if (e->mr)
		must(softhca_dereg_mr(e->mr), "deregister");
}

void pair_destroy(struct pair *p)
{
	for (unsigned side = 0; side < SIDES; side++) {
		struct end *e = &p->end[side];

		if (p->key & 1) /* before its queue pair, or after it */
			handle_free(e);
		destroy_end(e);
	}
}

/* ---- at its end, everything comes back ---- */

static bool over(const struct end *e)
{
	bool received = e->box || !e->error || e->recv_completed == e->recv_posted;

	return e->completed == e->posted && received;
}

/* Messages of the thread's other pairs take receives of a shared queue from this one until they are
 * polled: so waiting for one polls all. */
static unsigned poll_all(struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < PAIRS; i++)
		if (w->pair[i].live)
			n += pair_poll(&w->pair[i]);
	return n;
}

/* Polls until both ends have given back all that they hold. False: they did not, or one failed. */
static bool wait_over(struct world *w, struct pair *p, const char *what, bool error)
{
	uint64_t until = clock_ns() + patience_s * 1000000000ull;
	bool marked[SIDES] = {false, false};

	while (clock_ns() < until) {
		unsigned n = poll_all(w);

		for (unsigned side = 0; side < SIDES; side++)
			if (!marked[side])
				marked[side] = post_marker(p, side);
		if (!error && (p->end[0].error || p->end[1].error))
			return false;
		if (marked[0] && marked[1] && over(&p->end[0]) && over(&p->end[1])) {
			while (poll_all(w)) /* completions of one end while the other was polled */
				;
			return true;
		}
		if (!n)
			usleep(100);
	}
	report_stuck(w, p, what);
	return false;
}

/* Every successful send of one end has been received by the other. */
static void check_counts(const struct pair *p, bool exact)
{
	for (unsigned side = 0; side < SIDES && p->type == SOFTHCA_QP_RC; side++) {
		const struct end *e = &p->end[side], *peer = &p->end[!side];
		uint64_t added = __atomic_load_n(&WORDS(peer)[WORD_ADDED], __ATOMIC_ACQUIRE);

		if (exact ? peer->received != e->delivered : peer->received < e->delivered)
			wrong("%llu messages delivered, %llu received",
			      (unsigned long long)e->delivered, (unsigned long long)peer->received);
		if (exact ? added != e->added : added < e->added)
			wrong("%llu additions, %llu made", (unsigned long long)e->added,
			      (unsigned long long)added);
	}
}

static void resume(struct pair *p)
{
	for (unsigned side = 0; side < SIDES; side++) {
		struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RTS};
		struct end *e = &p->end[side];

		if (!e->draining)
			continue;
		e->draining = false;
		if (softhca_modify_qp(e->qp, &attr, SOFTHCA_QP_STATE) && !p->disturbed &&
		    p->timeout >= 16)
			wrong("SQD to RTS: refused");
	}
}

void pair_finish(struct world *w, struct pair *p)
{
	resume(p);
	if (!wait_over(w, p, "finish", false)) {
		pair_flush(w, p);
		return;
	}
	check_counts(p, true);
	add(TALLY_EXACT, 1);
}

void pair_flush(struct world *w, struct pair *p)
{
	for (unsigned side = 0; side < SIDES; side++) {
		struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_ERR};

		p->disturbed++;
		must(softhca_modify_qp(p->end[side].qp, &attr, SOFTHCA_QP_STATE), "to ERR");
		p->end[side].error = true;
		p->end[side].draining = false;
	}
	if (wait_over(w, p, "flush", true))
		check_counts(p, false);
	add(TALLY_FLUSHED, 1);
}

/* ---- disturbed ---- */

void pair_error(struct world *w, struct pair *p)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_ERR};
	struct end *e = &p->end[below(&w->random, SIDES)];

	p->disturbed++;
	must(softhca_modify_qp(e->qp, &attr, SOFTHCA_QP_STATE), "to ERR");
	e->error = true;
	e->draining = false;
}

static void reset_end(struct end *e)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_RESET};

	must(softhca_modify_qp(e->qp, &attr, SOFTHCA_QP_STATE), "to RST");
	nothing_left(e);
	e->posted = e->completed = e->delivered = e->added = 0;
	e->recv_posted = e->recv_completed = e->received = e->recv_seq = 0;
	e->draining = e->error = e->sqe = e->sqe_seen = false;
}

void pair_reset(struct world *w, struct pair *p)
{
	unsigned first = below(&w->random, SIDES);

	p->connected = false;
	p->disturbed++;
	reset_end(&p->end[first]);
	reset_end(&p->end[!first]);
	handle_free(&p->end[0]);
	handle_free(&p->end[1]);
	add(TALLY_RESETS, 1);
	if (!one_in(&w->random, 4))
		join(w, p);
}

void pair_drain(struct world *w, struct pair *p)
{
	struct softhca_qp_attr attr = {.state = SOFTHCA_QPS_SQD};
	struct end *e = &p->end[below(&w->random, SIDES)];
	uint32_t mask = SOFTHCA_QP_STATE;
	int rc;

	if (e->draining) {
		resume(p);
		return;
	}
	if (e->sqe)
		return;
	if (one_in(&w->random, 2))
		mask |= SOFTHCA_QP_EN_SQD_ASYNC_NOTIFY;
	rc = softhca_modify_qp(e->qp, &attr, mask);
	e->draining = rc == 0;
	add(TALLY_DRAINS, rc == 0);
	if (rc && !e->error && !p->disturbed && p->timeout >= 16)
		wrong("RTS to SQD: %s", strerror(-rc));
}

void pair_look(struct world *w, struct pair *p)
{
	struct end *e = &p->end[below(&w->random, SIDES)];
	struct softhca_qp_attr attr;

	if (!e->qp)
		return;
	must(softhca_query_qp(e->qp, &attr), "query queue pair");
	if (e->channel)
		must(softhca_req_notify_cq(e->send_cq, one_in(&w->random, 2)), "arm CQ");
	forget_events(e);
	if (e->box)
		must(softhca_arm_srq(e->box->srq, below(&w->random, RECVS)), "arm SRQ");
}
