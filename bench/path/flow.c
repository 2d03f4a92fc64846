/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, polling and checking of one direction; see flow.h. The hot loops of the benchmarks. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "flow.h"
#include "verify.h"

#define ARRIVAL_NS 1000000000ull

static bool acts_as_source(const struct session *s, unsigned direction)
{
	return s->sides == 2 || (direction == 0) == s->client;
}

static bool acts_as_sink(const struct session *s, unsigned direction)
{
	return s->sides == 2 || (direction == 0) != s->client;
}

int flow_open(struct flow *f, struct session *s, unsigned direction, enum kind kind, uint32_t size,
	      bool verify)
{
	const struct options *o = s->o;

	*f = (struct flow){.s = s,
			   .kind = &kinds[kind],
			   .direction = direction,
			   .size = size,
			   .stride = session_stride(o, size),
			   .slots = 1,
			   .list = o->post_list,
			   .cq_mod = o->cq_mod,
			   .verify = verify,
			   .qps = o->qps};
	if (acts_as_source(s, direction))
		f->source = &s->side[s->sides == 2 ? direction : 0];
	if (acts_as_sink(s, direction))
		f->sink = &s->side[s->sides == 2 ? !direction : 0];
	if (verify || o->span)
		f->slots = (uint32_t)(s->area_bytes / f->stride);
	if (f->slots > FLOW_SLOTS_MAX && !o->span)
		f->slots = FLOW_SLOTS_MAX;
	f->q = calloc(f->qps, sizeof(*f->q));
	f->ready = calloc(f->qps, sizeof(*f->ready));
	if (!f->q || !f->ready)
		return session_fail("memory", ENOMEM);
	for (uint32_t i = 0; i < f->qps; i++) {
		f->q[i].source = f->source ? &f->source->ends[i] : NULL;
		f->q[i].sink = f->sink ? &f->sink->ends[i] : NULL;
		/* The word that atomics change; their messages expect to find their number. */
		if (f->kind->atomic && f->sink)
			memset(f->q[i].sink->out, 0, 8);
	}
	return 0;
}

void flow_close(struct flow *f)
{
	free(f->q);
	free(f->ready);
	f->q = NULL;
	f->ready = NULL;
}

static void set_target(const struct flow *f, const struct end *e, struct softhca_send_wr *w,
		       uint64_t message, size_t offset)
{
	uint64_t base = e->remote.addr;

	if (f->s->o->service == SOFTHCA_QP_UD) {
		w->wr.ud.ah = e->ah;
		w->wr.ud.remote_qpn = e->remote.qp.qpn;
		w->wr.ud.remote_qkey = f->s->qkey;
	} else if (f->kind->atomic) {
		bool add = f->kind->opcode == SOFTHCA_WR_ATOMIC_FETCH_AND_ADD;

		w->wr.atomic.remote_addr = base;
		w->wr.atomic.rkey = e->remote.rkey;
		w->wr.atomic.compare_add = add ? 1 : message;
		w->wr.atomic.swap = message + 1;
	} else if (f->kind->empty) {
		w->wr.atomic.remote_addr = base + f->s->in_offset + offset;
		w->wr.atomic.rkey = e->remote.rkey;
		w->wr.atomic.compare_add = SOFTHCA_FLUSH_GLOBAL;
		w->wr.atomic.swap = f->size;
	} else {
		w->wr.rdma.remote_addr = base + (f->kind->inbound ? 0 : f->s->in_offset) + offset;
		w->wr.rdma.rkey = e->remote.rkey;
	}
}

static void build(struct flow *f, const struct flow_qp *q, uint32_t qp, uint64_t message,
		  unsigned i)
{
	struct softhca_send_wr *w = &f->wr[i];
	struct end *e = q->source;
	size_t offset = message % f->slots * f->stride;
	bool signaled = (message + 1) % f->cq_mod == 0 || message + 1 == q->goal;
	bool inlined = !f->kind->inbound && f->size <= f->s->o->inline_bytes;

	f->sge[i] = (struct softhca_sge){.addr = (uintptr_t)(f->kind->inbound ? e->in : e->out) +
						 offset,
					 .length = f->size,
					 .lkey = f->source->mr->lkey};
	w->wr_id = (uint64_t)qp << 40 | (message & 0xffffffffffull);
	w->next = w + 1;
	w->sg_list = &f->sge[i];
	w->num_sge = !f->kind->empty;
	w->opcode = f->kind->opcode;
	w->send_flags =
		(signaled ? SOFTHCA_SEND_SIGNALED : 0) | (inlined ? SOFTHCA_SEND_INLINE : 0);
	w->imm_data = f->kind->imm ? htonl((uint32_t)message) : 0;
	set_target(f, e, w, message, offset);
}

int flow_post(struct flow *f, uint32_t qp, uint32_t n)
{
	struct flow_qp *q = &f->q[qp];

	for (unsigned i = 0; i < n; i++)
		build(f, q, qp, q->posted + i, i);
	f->wr[n - 1].next = NULL;
	if (session_post_send(q->source->qp, f->wr))
		return -1;
	q->posted += n;
	return 0;
}

/* How many messages may be posted now: queue depth, receives of a sink that we see, and goal. */
static uint64_t room(const struct flow *f, const struct flow_qp *q)
{
	uint64_t n = f->s->o->tx_depth - (q->posted - q->completed);
	uint64_t left = q->goal - q->posted;

	if (f->kind->receives && q->sink) {
		uint64_t receives = f->s->o->rx_depth - (q->posted - q->received);

		n = receives < n ? receives : n;
	}
	return left < n ? left : n;
}

static int post_some(struct flow *f, uint32_t qp)
{
	struct flow_qp *q = &f->q[qp];
	uint64_t n = room(f, q);

	/* Whole lists, except the last one, so that each doorbell pays. */
	if (n > f->list)
		n = f->list;
	if (n == 0 || (n < f->list && n < q->goal - q->posted))
		return 0;
	return flow_post(f, qp, (uint32_t)n) ? -1 : (int)n;
}

/* The queue pair may have room: flow_step_source() will look at it. */
static void make_ready(struct flow *f, struct flow_qp *q)
{
	uint32_t last = f->first_ready + f->readies;

	if (!f->source || q->ready)
		return;
	q->ready = true;
	f->ready[last < f->qps ? last : last - f->qps] = (uint32_t)(q - f->q);
	f->readies++;
}

static void make_all_ready(struct flow *f)
{
	for (uint32_t i = 0; i < f->qps; i++)
		make_ready(f, &f->q[i]);
}

/* The queue pair that is ready for longest, or any of them if the order is random. */
static uint32_t take_ready(struct flow *f)
{
	uint32_t *first = &f->ready[f->first_ready], qp = *first;

	if (f->s->o->random && f->readies > 1) {
		uint32_t *other =
			&f->ready[(f->first_ready + verify_mix(f->draws++) % f->readies) % f->qps];

		qp = *other;
		*other = *first;
	}
	f->first_ready = f->first_ready + 1 < f->qps ? f->first_ready + 1 : 0;
	f->readies--;
	f->q[qp].ready = false;
	return qp;
}

static int failed_completion(const struct flow *f, const struct softhca_wc *wc, const char *what)
{
	fprintf(stderr, "softhca-perf: %s of %s failed on QP %u: %s (vendor 0x%x)\n", what,
		f->kind->name, (unsigned)(wc->wr_id >> 40), softhca_wc_status_str(wc->status),
		wc->vendor_err);
	return -1;
}

int flow_poll_source(struct flow *f)
{
	struct softhca_wc wc[POLL_BURST];
	int n = softhca_poll_cq(f->source->send_cq, POLL_BURST, wc);

	for (int i = 0; i < n; i++) {
		struct flow_qp *q = &f->q[wc[i].wr_id >> 40];

		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return failed_completion(f, &wc[i], "completion");
		q->completed = (wc[i].wr_id & 0xffffffffffull) + 1;
		make_ready(f, q);
	}
	return n < 0 ? session_fail("poll CQ", n) : n;
}

int flow_step_source(struct flow *f)
{
	int progress = flow_poll_source(f);

	for (uint32_t left = f->readies; left > 0 && progress >= 0; left--) {
		uint32_t qp = take_ready(f);
		int n = post_some(f, qp);

		if (n > 0)
			make_ready(f, &f->q[qp]);
		progress = n < 0 ? -1 : progress + n;
	}
	return progress;
}

static int post_receives(struct flow *f, uint32_t qp)
{
	struct flow_qp *q = &f->q[qp];
	struct end *e = q->sink;
	struct softhca_recv_wr wr[POLL_BURST];
	struct softhca_sge sge[POLL_BURST];
	uint64_t outstanding = e->rq_posted - e->rq_done;
	uint64_t wanted = q->goal - q->received, n;
	int error;

	if (wanted > f->s->o->rx_depth)
		wanted = f->s->o->rx_depth;
	n = wanted > outstanding ? wanted - outstanding : 0;
	if (n > POLL_BURST)
		n = POLL_BURST;
	for (unsigned i = 0; i < n; i++) {
		uint64_t message = q->received + outstanding + i;

		/* One slot: the whole area, so that what is left over fits any later flow. */
		sge[i] = (struct softhca_sge){
			.addr = (uintptr_t)e->in + message % f->slots * f->stride,
			.length = (uint32_t)(f->slots > 1 ? f->stride : f->s->area_bytes),
			.lkey = f->sink->mr->lkey};
		wr[i] = (struct softhca_recv_wr){.wr_id = (uint64_t)qp << 40,
						 .next = i + 1 < n ? &wr[i + 1] : NULL,
						 .sg_list = &sge[i],
						 .num_sge = 1};
	}
	if (n == 0)
		return 0;
	error = f->sink->srq ? softhca_post_srq_recv(f->sink->srq, wr, NULL)
			     : softhca_post_recv(e->qp, wr, NULL);
	if (error)
		return session_fail("post receive", error);
	e->rq_posted += n;
	return (int)n;
}

int flow_post_receives(struct flow *f)
{
	int n = 1;

	if (!f->sink || !f->kind->receives)
		return 0;
	for (uint32_t i = 0; i < f->qps; i++)
		while ((n = post_receives(f, i)) > 0)
			;
	return n < 0 ? -1 : 0;
}

static int check_receive(const struct flow *f, const struct flow_qp *q, const struct softhca_wc *wc)
{
	uint32_t grh = f->s->o->service == SOFTHCA_QP_UD ? UD_GRH_BYTES : 0;

	if (wc->byte_len != f->size + grh) {
		fprintf(stderr, "softhca-perf: %s: received %u bytes instead of %u\n",
			f->kind->name, wc->byte_len, f->size + grh);
		return -1;
	}
	if (f->kind->imm && ntohl(wc->imm_data) != (uint32_t)q->received) {
		fprintf(stderr, "softhca-perf: %s: received message %u instead of %u\n",
			f->kind->name, ntohl(wc->imm_data), (uint32_t)q->received);
		return -1;
	}
	return 0;
}

/* With an SRQ the request that was posted for one QP serves another. */
static struct flow_qp *receiver(struct flow *f, uint32_t qpn, struct flow_qp *guess)
{
	if (!f->sink->srq || softhca_qp_number(guess->sink->qp) == qpn)
		return guess;
	for (uint32_t i = 0; i < f->qps; i++)
		if (softhca_qp_number(f->q[i].sink->qp) == qpn)
			return &f->q[i];
	return guess;
}

int flow_step_sink(struct flow *f)
{
	struct softhca_wc wc[POLL_BURST];
	int n = softhca_poll_cq(f->sink->recv_cq, POLL_BURST, wc);

	for (int i = 0; i < n; i++) {
		uint32_t qp = (uint32_t)(wc[i].wr_id >> 40);
		struct flow_qp *posted_for = &f->q[qp];
		struct flow_qp *q = receiver(f, wc[i].qp_num, posted_for);

		if (wc[i].status != SOFTHCA_WC_SUCCESS)
			return failed_completion(f, &wc[i], "receive");
		if (f->verify && check_receive(f, q, &wc[i]))
			return -1;
		q->received++;
		make_ready(f, q);
		posted_for->sink->rq_done++;
	}
	/* Half a burst at a time: a doorbell record is shared with the daemon. */
	for (uint32_t i = 0; i < f->qps && n > 0; i++)
		if (post_receives(f, i) < 0)
			return -1;
	return n < 0 ? session_fail("poll CQ", n) : n;
}

bool flow_source_done(const struct flow *f)
{
	for (uint32_t i = 0; i < f->qps && f->source; i++)
		if (f->q[i].completed < f->q[i].goal)
			return false;
	return true;
}

bool flow_sink_done(const struct flow *f)
{
	for (uint32_t i = 0; i < f->qps && f->sink && f->kind->receives; i++)
		if (f->q[i].received < f->q[i].goal)
			return false;
	return true;
}

uint64_t flow_posted(const struct flow *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->qps; i++)
		sum += f->q[i].posted;
	return sum;
}

uint64_t flow_received(const struct flow *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < f->qps; i++)
		sum += f->q[i].received;
	return sum;
}

void flow_extend(struct flow *f, uint64_t n)
{
	for (uint32_t i = 0; i < f->qps; i++)
		f->q[i].goal = n == GOAL_OPEN ? GOAL_OPEN : f->q[i].goal + n;
	make_all_ready(f);
}

void flow_finish(struct flow *f)
{
	for (uint32_t i = 0; i < f->qps && f->source; i++)
		f->q[i].goal = (f->q[i].posted + f->cq_mod - 1) / f->cq_mod * f->cq_mod;
	make_all_ready(f);
}

static uint64_t key_of(const struct flow *f, uint32_t qp, uint64_t message)
{
	return verify_key(f->s->seed, (uint64_t)f->direction << 32 | qp, message);
}

static void fill_qp(struct flow *f, uint32_t qp)
{
	struct flow_qp *q = &f->q[qp];
	struct end *holder = f->kind->inbound ? q->sink : q->source;

	for (uint64_t m = q->checked; holder && m < q->goal; m++)
		verify_fill(holder->out + m % f->slots * f->stride, f->size, key_of(f, qp, m));
}

void flow_fill(struct flow *f)
{
	for (uint32_t i = 0; i < f->qps && !f->kind->atomic && !f->kind->empty; i++)
		fill_qp(f, i);
}

/* An atomic returns the value it found: its own number. */
static int check_atomic(const struct flow *f, const uint8_t *slot, uint64_t message)
{
	uint64_t found;

	memcpy(&found, slot, 8);
	if (found == message)
		return 0;
	fprintf(stderr, "softhca-perf: %s, message %llu: found %llu\n", f->kind->name,
		(unsigned long long)message, (unsigned long long)found);
	return -1;
}

static int check_qp(struct flow *f, uint32_t qp)
{
	struct flow_qp *q = &f->q[qp];
	struct end *receiver = f->kind->inbound ? q->source : q->sink;
	uint32_t grh = f->s->o->service == SOFTHCA_QP_UD ? UD_GRH_BYTES : 0;

	for (uint64_t m = q->checked; receiver && !f->kind->empty && m < q->goal; m++) {
		const uint8_t *slot = receiver->in + m % f->slots * f->stride;
		int error = f->kind->atomic ? check_atomic(f, slot, m)
					    : verify_message(slot + grh, f->size, key_of(f, qp, m),
							     f->kind->name, m);

		if (error)
			return -1;
	}
	q->checked = q->goal;
	return 0;
}

/*
 * The writes of an unreliable service complete before they arrive, and their arrival is not
 * reported: waits a while for the last one.
 */
static void await_writes(struct flow *f, uint32_t qp)
{
	struct flow_qp *q = &f->q[qp];
	uint64_t last = q->goal - 1, until = now_ns() + ARRIVAL_NS;
	const uint8_t *slot = q->sink->in + last % f->slots * f->stride;

	while (verify_check(slot, f->size, key_of(f, qp, last)) != f->size && now_ns() < until)
		;
}

int flow_check(struct flow *f)
{
	bool blind = f->s->o->service != SOFTHCA_QP_RC && !f->kind->receives;

	for (uint32_t i = 0; i < f->qps && f->sink && blind; i++)
		await_writes(f, i);
	for (uint32_t i = 0; i < f->qps; i++)
		if (check_qp(f, i))
			return -1;
	return 0;
}
