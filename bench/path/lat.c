/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency runs on QP 0. A message that takes a receive is awaited at the CQ; a plain WRITE by
 * polling the last byte of the buffer, which changes with each message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "flow.h"
#include "lat.h"
#include "verify.h"
#include "wait.h"

enum { WARM_UP_MIN = 10 };
#define SETTLE_NS 1000000000ull

struct ping {
	struct session *s;
	const struct lat_params *p;
	struct flow flow[2]; /* there and back */
	unsigned flows;
	struct waiter waiter;
};

/* The byte that a message shows it has arrived by; never that of its predecessor. */
static uint8_t mark_of(uint64_t message)
{
	return (uint8_t)(1 + message % 255);
}

static bool by_memory(const struct flow *f)
{
	return !f->kind->receives && !f->kind->inbound;
}

static uint64_t lat_key(const struct ping *g, const struct flow *f)
{
	return verify_key(g->s->seed, 0x1a7, f->direction);
}

static int ping_post(struct ping *g, struct flow *f)
{
	struct flow_qp *q = &f->q[0];

	if (by_memory(f))
		q->source->out[f->size - 1] = mark_of(q->posted);
	if (f->kind->inbound) /* each is waited for: each has a completion */
		q->goal = q->posted + 1;
	while (q->posted - q->completed > g->s->o->tx_depth / 2) {
		int n = flow_poll_source(f);

		if (n < 0 || wait_turn(&g->waiter, n))
			return -1;
	}
	return flow_post(f, 0, 1);
}

static int await_memory(struct ping *g, struct flow *f, uint64_t message)
{
	const volatile uint8_t *last = &f->q[0].sink->in[f->size - 1];
	uint8_t mark = mark_of(message);

	while (*last != mark)
		if (wait_turn(&g->waiter, 0))
			return -1;
	return wait_turn(&g->waiter, 1);
}

static int await_receive(struct ping *g, struct flow *f, uint64_t message)
{
	while (f->q[0].received <= message) {
		int n = flow_step_sink(f);

		if (n < 0 || wait_turn(&g->waiter, n))
			return -1;
	}
	return 0;
}

static int await_completion(struct ping *g, struct flow *f)
{
	while (f->q[0].completed < f->q[0].posted) {
		int n = flow_poll_source(f);

		if (n < 0 || wait_turn(&g->waiter, n))
			return -1;
	}
	return 0;
}

/* A marked message may show its last byte before the others: give those a moment. */
static int check_data(struct ping *g, struct flow *f)
{
	struct end *holder = f->kind->inbound ? f->q[0].source : f->q[0].sink;
	size_t bytes = f->size - (by_memory(f) ? 1 : 0);
	uint32_t grh = g->s->o->service == SOFTHCA_QP_UD ? UD_GRH_BYTES : 0;
	uint64_t until = now_ns() + SETTLE_NS;

	if (f->kind->atomic || f->kind->empty)
		return 0;
	while (verify_check(holder->in + grh, bytes, lat_key(g, f)) != bytes && now_ns() < until)
		;
	return verify_message(holder->in + grh, bytes, lat_key(g, f), f->kind->name,
			      f->q[0].received);
}

static int one_way(struct ping *g, struct flow *f, uint64_t message)
{
	int error = 0;

	if (f->source)
		error = ping_post(g, f);
	if (!error && f->kind->inbound && f->source)
		error = await_completion(g, f);
	else if (!error && f->sink && f->kind->receives)
		error = await_receive(g, f, message);
	else if (!error && f->sink && by_memory(f))
		error = await_memory(g, f, message);
	if (!error && g->p->verify && (f->kind->inbound ? f->source : f->sink))
		error = check_data(g, f);
	return error;
}

/* The daemon may fall asleep meanwhile; we must not, or our own wake-up would be measured, too. */
static void let_time_pass(uint32_t us)
{
	const uint64_t until_ns = now_ns() + us * 1000ull;

	while (now_ns() < until_ns)
		;
}

static int run_pings(struct ping *g, double *samples, uint32_t warm_up)
{
	uint64_t n = (uint64_t)warm_up + g->p->iterations;

	/* The passive side of READs and atomics has nothing to do. */
	if (!g->flow[0].source && g->flow[0].kind->inbound)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t before;

		if (g->s->o->gap_us)
			let_time_pass(g->s->o->gap_us);
		before = now_ns();
		for (unsigned k = 0; k < g->flows; k++)
			if (one_way(g, &g->flow[k], i))
				return -1;
		if (i >= warm_up)
			samples[i - warm_up] = (double)(now_ns() - before);
	}
	return 0;
}

static int prepare(struct ping *g, struct flow *f, uint64_t messages)
{
	struct end *holder = f->kind->inbound ? f->q[0].sink : f->q[0].source;

	f->q[0].goal = messages;
	if (f->sink && by_memory(f))
		f->q[0].sink->in[f->size - 1] = 0;
	if (g->p->verify && holder && !f->kind->atomic && !f->kind->empty)
		verify_fill(holder->out, f->size, lat_key(g, f));
	return flow_post_receives(f);
}

/* The last one is signaled; what is unacknowledged would be in the next run's way. */
static int drain(struct ping *g)
{
	for (unsigned i = 0; i < g->flows; i++) {
		struct flow *f = &g->flow[i];

		while (f->source && f->q[0].completed < f->q[0].posted) {
			int n = flow_poll_source(f);

			if (n < 0 || wait_turn(&g->waiter, n))
				return -1;
		}
	}
	return 0;
}

static int measure(struct ping *g, double *samples)
{
	uint32_t warm_up = g->p->iterations / 10 + WARM_UP_MIN;

	for (unsigned i = 0; i < g->flows; i++)
		if (prepare(g, &g->flow[i], (uint64_t)warm_up + g->p->iterations))
			return -1;
	if (exchange_sync(g->s->socket, 0, NULL))
		return -1;
	wait_begin(&g->waiter, g->s, "latency");
	if (run_pings(g, samples, warm_up) || drain(g))
		return -1;
	return exchange_sync(g->s->socket, 0, NULL);
}

int lat_run(struct session *s, const struct lat_params *p, struct lat_result *result)
{
	struct ping g = {.s = s, .p = p, .flows = kinds[p->kind].inbound ? 1 : 2};
	double *samples = calloc(p->iterations, sizeof(*samples));
	int error = samples ? 0 : session_fail("memory", ENOMEM);

	for (unsigned i = 0; i < g.flows && !error; i++)
		error = flow_open(&g.flow[i], s, i, p->kind, p->size, false);
	if (!error)
		error = measure(&g, samples);
	*result = (struct lat_result){.size = p->size};
	if (!error)
		lat_statistics(result, samples, p->iterations, g.flows);
	for (unsigned i = 0; i < g.flows; i++)
		flow_close(&g.flow[i]);
	free(samples);
	return error;
}

int lat_one_size(struct session *s, uint32_t size)
{
	struct lat_params p = {.kind = s->o->kind,
			       .size = size,
			       .iterations = s->o->iterations,
			       .verify = s->o->verify};
	struct lat_result result;

	if (lat_run(s, &p, &result))
		return -1;
	if (s->client)
		report_lat(s->o->json, &result);
	return 0;
}
