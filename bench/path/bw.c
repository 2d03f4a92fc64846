/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Throughput runs: one flow or, bidirectional, two; in one stretch, or in rounds when all data are
 * verified. Only the transfer is timed.
 */
#include <stdio.h>
#include <string.h>
#include "base/progress.h"
#include "bw.h"
#include "flow.h"
#include "wait.h"

enum {
	AREA_VERIFY_BYTES = 16 << 20,
	SLOTS_VERIFY = 256,
	PEAK_STRETCH_NS = 2000000,
	CLOCK_EVERY = 16
};

/* How long a sink waits for what may have been lost; longer when a loss is a failure. */
#define SETTLE_NS	 20000000ull
#define SETTLE_VERIFY_NS 2000000000ull

struct run {
	struct session *s;
	const struct bw_params *p;
	struct flow flow[2];
	unsigned flows;
	struct waiter waiter;
	bool announced;	 /* our sources are done and the other side knows it */
	uint64_t theirs; /* messages that the other process has sent, ever */
	uint64_t start_ns, deadline_ns, done_ns;
	uint64_t peak_ns, peak_messages; /* where the current stretch began */
	double peak_mpps;
	uint64_t walked; /* messages before those that count */
	struct progress progress;
};

size_t bw_area_bytes(const struct options *o, uint32_t size, bool verify)
{
	size_t stride = session_stride(o, size), bytes = stride * SLOTS_VERIFY;
	uint64_t limit = o->span ? o->span : AREA_VERIFY_BYTES;

	if (!verify && !o->span)
		return stride;
	if (o->span || bytes > limit / o->qps)
		bytes = limit / o->qps / stride * stride;
	return bytes > stride ? bytes : stride;
}

static int step(struct run *r)
{
	int progress = 0;

	for (unsigned i = 0; i < r->flows && progress >= 0; i++) {
		struct flow *f = &r->flow[i];
		int n = f->source ? flow_step_source(f) : 0;
		int m = n >= 0 && f->sink && f->kind->receives ? flow_step_sink(f) : 0;

		progress = n < 0 || m < 0 ? -1 : progress + n + m;
	}
	return progress;
}

static bool all_done(const struct run *r, bool (*done)(const struct flow *))
{
	for (unsigned i = 0; i < r->flows; i++)
		if (!done(&r->flow[i]))
			return false;
	return true;
}

static uint64_t posted(const struct run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->flows; i++)
		sum += flow_posted(&r->flow[i]);
	return sum;
}

static void note_peak(struct run *r, uint64_t now)
{
	uint64_t messages;
	double mpps;

	if (now - r->peak_ns < PEAK_STRETCH_NS)
		return; /* posted() would look at each queue pair */
	messages = posted(r);
	mpps = (double)(messages - r->peak_messages) * 1e3 / (double)(now - r->peak_ns);
	if (mpps > r->peak_mpps)
		r->peak_mpps = mpps;
	r->peak_ns = now;
	r->peak_messages = messages;
}

/* Of the time or of the messages that were asked for; the side that only receives knows neither. */
static void note_progress(struct run *r, uint64_t now)
{
	const struct bw_params *p = r->p;
	double ns = (double)(now - r->progress.begin_ns),
	       messages = (double)(posted(r) - r->walked);
	double gbps = ns > 0 ? messages * p->size * 8 / ns : 0;

	if (messages > 0 && p->messages)
		progress_write(&r->progress, now, messages,
			       (double)p->messages * r->flows * r->s->o->qps, gbps, "Gbit/s");
	else if (messages > 0)
		progress_write(&r->progress, now, ns, (double)p->duration_ns, gbps, "Gbit/s");
}

static void note_time(struct run *r, uint64_t now)
{
	note_peak(r, now);
	if (progress_is_due(&r->progress, now))
		note_progress(r, now);
	if (r->deadline_ns && now >= r->deadline_ns) {
		r->deadline_ns = 0;
		for (unsigned i = 0; i < r->flows; i++)
			flow_finish(&r->flow[i]);
	}
}

/*
 * Has the sink all it will get? A sink whose source is elsewhere, or whose service may lose
 * messages, does not wait for more once the source is done and nothing came for a while.
 */
static bool arrived(const struct run *r)
{
	if (all_done(r, flow_sink_done))
		return true;
	if (wait_idle_ns(&r->waiter) <= (r->p->verify ? SETTLE_VERIFY_NS : SETTLE_NS))
		return false;
	return r->s->sides == 2 ? r->announced : exchange_waits(r->s->socket);
}

/* One stretch, from both sides being ready to all completions of n messages, or of as many as the
 * time allows. 0 or -1. */
static int transfer(struct run *r, uint64_t n)
{
	unsigned turns = 0;

	if (exchange_sync(r->s->socket, 0, NULL))
		return -1;
	r->announced = false;
	r->start_ns = r->peak_ns = now_ns();
	r->peak_messages = posted(r);
	if (n == GOAL_OPEN)
		r->deadline_ns = r->start_ns + r->p->duration_ns;
	wait_begin(&r->waiter, r->s, "transfer");
	for (;;) {
		int progress = step(r);

		if (progress < 0)
			return -1;
		if (++turns % CLOCK_EVERY == 0)
			note_time(r, now_ns());
		if (!r->announced && all_done(r, flow_source_done)) {
			r->announced = true;
			r->done_ns = now_ns();
			if (exchange_put(r->s->socket, posted(r)))
				return -1;
		}
		if (wait_turn(&r->waiter, progress))
			return -1;
		if (r->announced && arrived(r))
			break;
	}
	return exchange_get(r->s->socket, &r->theirs);
}

static int check_arrival(const struct run *r)
{
	for (unsigned i = 0; i < r->flows; i++) {
		const struct flow *f = &r->flow[i];
		uint64_t sent = flow_posted(f), received = flow_received(f);

		if (!f->sink || !f->kind->receives)
			continue;
		if (f->source && received != sent) {
			fprintf(stderr, "softhca-perf: %s: %llu of %llu messages arrived\n",
				f->kind->name, (unsigned long long)received,
				(unsigned long long)sent);
			return -1;
		}
		if (!f->source && r->p->verify && !flow_sink_done(f)) {
			fprintf(stderr, "softhca-perf: %s: messages are missing\n", f->kind->name);
			return -1;
		}
	}
	return 0;
}

/* Messages of the next round: all that is left, or as many as have a slot and a receive. */
static uint64_t round_messages(const struct run *r, uint64_t done)
{
	const struct flow *f = &r->flow[0];
	uint64_t n = f->slots;

	if (!r->p->verify)
		return r->p->messages ? r->p->messages : GOAL_OPEN;
	if (f->kind->receives && n > r->s->o->rx_depth)
		n = r->s->o->rx_depth;
	if (r->p->messages && n > r->p->messages - done)
		n = r->p->messages - done;
	return n;
}

static int verify_round(struct run *r, bool arrival_wrong)
{
	uint64_t failures = arrival_wrong, theirs;

	for (unsigned i = 0; i < r->flows && !failures; i++)
		failures += flow_check(&r->flow[i]) != 0;
	if (exchange_sync(r->s->socket, failures, &theirs))
		return -1;
	if (theirs)
		fprintf(stderr, "softhca-perf: the other side found data wrong\n");
	return failures || theirs ? -1 : 0;
}

static int round_once(struct run *r, uint64_t n)
{
	bool wrong;

	for (unsigned i = 0; i < r->flows; i++) {
		flow_extend(&r->flow[i], n);
		if (r->p->verify)
			flow_fill(&r->flow[i]);
		if (flow_post_receives(&r->flow[i]))
			return -1;
	}
	if (transfer(r, n))
		return -1;
	wrong = check_arrival(r) != 0;
	if (r->p->verify)
		return verify_round(r, wrong);
	return wrong ? -1 : 0;
}

/* Verified runs have another round until the client has had enough. 0 or -1. */
static int more_rounds(struct run *r, uint64_t done, uint64_t begin_ns, bool *more)
{
	uint64_t theirs;

	*more = r->p->verify &&
		(r->p->messages ? done < r->p->messages : now_ns() - begin_ns < r->p->duration_ns);
	if (!r->p->verify)
		return 0;
	if (exchange_sync(r->s->socket, *more, &theirs))
		return -1;
	if (!r->s->client)
		*more = theirs;
	return 0;
}

/*
 * With --span: once through all of it, which does not count. The daemon maps the pages of a long
 * region when it first touches them, on the data path, not when the region is registered. (Verified
 * rounds, whose rate is mostly that of the client's work, do without.) 0 or -1.
 */
static int walk(struct run *r)
{
	if (!r->s->o->span || r->p->verify)
		return 0;
	if (round_once(r, r->flow[0].slots))
		return -1;
	r->walked = posted(r);
	r->peak_mpps = 0;
	return 0;
}

static int run_rounds(struct run *r, struct bw_result *result)
{
	uint64_t done = 0, begin;
	bool more = true;

	progress_begin(&r->progress, now_ns());
	if (walk(r))
		return -1;
	begin = now_ns();
	progress_begin(&r->progress, begin);
	while (more) {
		uint64_t n = round_messages(r, done), end, before = posted(r) + r->theirs;

		if (round_once(r, n))
			return -1;
		done += n;
		end = r->p->bidirectional || r->s->sides == 2 ? wait_last_ns(&r->waiter)
							      : r->done_ns;
		result->ns += end - r->start_ns;
		result->messages += posted(r) + r->theirs - before;
		if (more_rounds(r, done, begin, &more))
			return -1;
	}
	if (r->p->verify)
		result->whole_ns = now_ns() - begin;
	return 0;
}

int bw_run(struct session *s, const struct bw_params *p, struct bw_result *result)
{
	struct run r = {.s = s, .p = p, .flows = p->bidirectional ? 2 : 1};
	int error = 0;

	*result = (struct bw_result){.size = p->size};
	for (unsigned i = 0; i < r.flows; i++)
		error |= flow_open(&r.flow[i], s, i, p->kind, p->size, p->verify);
	if (!error)
		error = run_rounds(&r, result);
	progress_clear(&r.progress);
	for (unsigned i = 0; i < r.flows; i++)
		flow_close(&r.flow[i]);
	result->peak_gbps = r.peak_mpps * p->size * 8e-3;
	if (result->peak_gbps < bw_gbps(result))
		result->peak_gbps = bw_gbps(result);
	return error;
}

int bw_one_size(struct session *s, uint32_t size)
{
	const struct options *o = s->o;
	struct bw_params p = {.kind = o->kind,
			      .size = size,
			      .messages = o->duration_s ? 0 : o->iterations,
			      .duration_ns = (uint64_t)o->duration_s * 1000000000ull,
			      .bidirectional = o->bidirectional,
			      .verify = o->verify};
	struct bw_result result;

	if (bw_run(s, &p, &result))
		return -1;
	if (s->client)
		report_bw(o->json, &result);
	return 0;
}
