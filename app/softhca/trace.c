/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca trace`: follows what belongs to a queue pair, and to its peer if that is an HCA of the
 * same daemon, through the modules. Prints a line for each module that took something, or writes a
 * trace in Chrome's format, which Perfetto shows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "pipeline/topology.h"
#include "target.h"
#include "trace_message.h"
#include "trace_text.h"
#include "view.h"

enum { RECORDS_MAX = 16384, PLACES_MAX = 16, POLL_MS = 5, COMPLETION_MS = 100, QPN_MAX = 0xffffff };

struct followed {
	int daemon;
	struct control_trace_reply begun;
	uint32_t read[PLACES_MAX]; /* records of each place */
	char name[PLACES_MAX][48]; /* HCA and queue pair */
	unsigned count;
	bool full;
	struct step step[RECORDS_MAX];
};

static const char *trace_refusal_text(int error)
{
	switch (error) {
	case -EPERM:
		return ONLY_ADMINS_MAY("trace");
	case -ENOENT:
		return "there is no such queue pair";
	case -EBUSY:
		return "busy: its engine is being traced";
	default:
		return strerror(-error);
	}
}

/* ---- reading ---- */

static void keep(struct followed *t, unsigned place, const struct control_read_trace_reply *from)
{
	snprintf(t->name[place], sizeof(t->name[place]), "%.31s QP %u", from->device,
		 (unsigned)from->qpn);
	for (unsigned i = 0; i < from->count && t->count < RECORDS_MAX; i++, t->count++)
		t->step[t->count] = (struct step){from->record[i], place, t->count};
	t->read[place] += from->count;
	t->full |= from->full || t->count == RECORDS_MAX;
}

/* What has been recorded since. 0 or -errno. */
static int read_place(struct followed *t, unsigned place)
{
	struct control_read_trace_reply out = {.count = CONTROL_TRACE_RECORDS};
	int ret = 0;

	while (!ret && out.count == CONTROL_TRACE_RECORDS) {
		const struct control_read_trace in = {CONTROL_VERSION, place, t->read[place], 0};

		ret = ask(t->daemon, CONTROL_READ_TRACE, &in, sizeof(in), &out, sizeof(out), -1,
			  NULL);
		if (!ret && out.count <= CONTROL_TRACE_RECORDS)
			keep(t, place, &out);
	}
	return ret;
}

/* A doorbell of the queue pair itself, not of its peer. */
static bool begins_message(const struct step *s)
{
	return s->r.module == MODULE_DBP && s->place < STAGE_COUNT;
}

static unsigned messages(const struct followed *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->count; i++)
		n += begins_message(&t->step[i]);
	return n;
}

/* Collects for the given time, or until the doorbell after the wanted messages, and a little
 * longer, so that they complete. */
static int collect(struct followed *t, const struct request *r)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000l};
	const unsigned wanted = r->wqe ? r->wqe : r->frames;
	unsigned passed_ms = 0, rest_ms = COMPLETION_MS;
	int ret = 0;

	while (!ret && !t->full && passed_ms < r->interval_s * 1000) {
		if (wanted && messages(t) > wanted) {
			if (rest_ms < POLL_MS)
				break;
			rest_ms -= POLL_MS;
		}
		nanosleep(&pause, NULL);
		passed_ms += POLL_MS;
		for (unsigned i = 0; i < t->begun.places && i < PLACES_MAX && !ret; i++)
			ret = read_place(t, i);
	}
	return ret;
}

static int earlier(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->r.tsc != y->r.tsc)
		return x->r.tsc < y->r.tsc ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* ---- showing ---- */

static double ns(const struct followed *t, uint64_t cycles)
{
	return (double)cycles * 1e9 / (double)t->begun.tsc_hz;
}

static bool is_known(const struct trace_record *r)
{
	return r->module < MODULE_COUNT && r->channel < CHANNEL_COUNT;
}

static void trace_print_lines(const struct followed *t)
{
	uint64_t first = t->count ? t->step[0].r.tsc : 0, last = first;
	char text[TRACE_TEXT_BYTES];

	printf("%12s %10s %8s  %-6s %-10s %s\n", "ns", "since", "cycles", "module", "channel",
	       "what");
	for (unsigned i = 0; i < t->count; i++) {
		const struct step *s = &t->step[i];

		trace_text(&s->r, text);
		if (!is_known(&s->r))
			continue;
		printf("%12.0f %+10.0f %8u  %-6s %-10s %s (%s)\n", ns(t, s->r.tsc - first),
		       ns(t, s->r.tsc - last), (unsigned)s->r.cycles,
		       module_infos[s->r.module].name, channel_infos[s->r.channel].name, text,
		       t->name[s->place]);
		last = s->r.tsc;
	}
}

/* An HCA's queue pair is a process, a module a thread of it. */
static json_t *named(const char *what, unsigned process, unsigned thread, const char *name)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", what, "ph", "M", "pid", process,
			 "tid", thread, "args", "name", name);
}

static json_t *event_of(const struct followed *t, const struct step *s)
{
	char text[TRACE_TEXT_BYTES];

	trace_text(&s->r, text);
	return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:{s:s, s:i}}", "name", text, "ph", "X",
			 "pid", s->place / STAGE_COUNT, "tid", s->r.module, "ts",
			 ns(t, s->r.tsc - t->step[0].r.tsc) / 1000, "dur",
			 ns(t, s->r.cycles) / 1000, "args", "channel",
			 channel_infos[s->r.channel].name, "cycles", (int)s->r.cycles);
}

static json_t *document(const struct followed *t)
{
	json_t *events = json_array();

	for (unsigned i = 0; i < t->begun.places && i < PLACES_MAX; i += STAGE_COUNT) {
		json_array_append_new(events,
				      named("process_name", i / STAGE_COUNT, 0, t->name[i]));
		for (unsigned m = 0; m < MODULE_COUNT; m++)
			json_array_append_new(events, named("thread_name", i / STAGE_COUNT, m,
							    module_infos[m].name));
	}
	for (unsigned i = 0; i < t->count; i++)
		if (is_known(&t->step[i].r))
			json_array_append_new(events, event_of(t, &t->step[i]));
	return json_pack("{s:s, s:o}", "displayTimeUnit", "ns", "traceEvents", events);
}

static int write_file(const struct followed *t, const char *file)
{
	json_t *all = document(t);
	int ret = json_dump_file(all, file, JSON_COMPACT);

	json_decref(all);
	return ret ? failed(file, strerror(errno)) : EXIT_CODE_OK;
}

/* Keeps only message n. Exit code. */
static int show_message(struct followed *t, unsigned n)
{
	const struct step *last;
	uint64_t cycles;

	t->count = trace_message(t->step, t->count, n);
	if (!t->count) {
		fprintf(stderr, "softhca: message %u was not %s\n", n,
			t->full ? "recorded: there were too many steps before it" : "posted");
		return EXIT_CODE_FAILURE;
	}
	last = &t->step[t->count - 1];
	cycles = last->r.tsc + last->r.cycles - t->step[0].r.tsc;
	fprintf(stderr, "softhca: message %u: %u steps, %" PRIu64 " cycles, %.0f ns%s\n", n,
		t->count, cycles, ns(t, cycles),
		last->r.module == MODULE_RRC ? ", from doorbell to completion" : "");
	return EXIT_CODE_OK;
}

/* Keeps only the first `wanted` messages, each as --wqe shows it. Returns how many there are. */
static unsigned keep_messages(struct followed *t, unsigned wanted)
{
	static struct step one[RECORDS_MAX];
	static bool kept[RECORDS_MAX];
	unsigned n, left = 0;

	for (n = 0; n < wanted; n++) {
		unsigned steps;

		memcpy(one, t->step, t->count * sizeof(one[0]));
		steps = trace_message(one, t->count, n + 1);
		if (!steps)
			break;
		for (unsigned i = 0; i < steps; i++)
			kept[one[i].order] = true;
	}
	for (unsigned i = 0; i < t->count; i++) {
		if (kept[t->step[i].order])
			t->step[left++] = t->step[i];
	}
	t->count = left;
	return n;
}

static int trace_show(struct followed *t, const struct request *r)
{
	json_t *all;

	qsort(t->step, t->count, sizeof(t->step[0]), earlier);
	if (r->wqe) {
		int code = show_message(t, r->wqe);

		if (code)
			return code;
	} else {
		unsigned n = r->frames ? keep_messages(t, r->frames) : messages(t);

		fprintf(stderr, "softhca: %u steps of %u message%s%s\n", t->count, n,
			n == 1 ? "" : "s",
			t->full && (!r->frames || n < r->frames)
				? "; what came later was not recorded"
				: "");
	}
	if (r->file)
		return write_file(t, r->file);
	if (!r->json) {
		trace_print_lines(t);
		return EXIT_CODE_OK;
	}
	all = document(t);
	json_dumpf(all, stdout, JSON_COMPACT);
	puts("");
	json_decref(all);
	return EXIT_CODE_OK;
}

/* Exit code. */
static int open_trace(struct followed *t, const struct request *r)
{
	struct control_trace in = {.version = CONTROL_VERSION};
	const char *hca = r->hca ? r->hca : "", *which = r->qp ? r->qp : r->object;
	char *end = NULL;
	unsigned long qpn = which ? strtoul(which, &end, 0) : 0;
	int ret;

	if (!which || (r->qp && r->object) || *end || qpn == 0 || qpn > QPN_MAX) {
		fputs("softhca: trace which queue pair? 'softhca qp' lists them\n", stderr);
		return EXIT_CODE_USAGE;
	}
	in.qpn = (uint32_t)qpn;
	if (snprintf(in.device, sizeof(in.device), "%s", hca) >= (int)sizeof(in.device))
		return failed(hca, trace_refusal_text(-ENOENT));
	t->daemon = ask_connect(r->socket);
	if (t->daemon < 0)
		return target_missing(r, t->daemon);
	ret = ask(t->daemon, CONTROL_TRACE, &in, sizeof(in), &t->begun, sizeof(t->begun), -1, NULL);
	return ret ? failed(which, trace_refusal_text(ret)) : EXIT_CODE_OK;
}

int view_trace(struct connection *unused, const struct request *r)
{
	static struct followed t;
	int code = open_trace(&t, r), ret;

	(void)unused;
	if (code)
		return code;
	ret = collect(&t, r);
	close(t.daemon);
	return ret ? failed("reading the trace", strerror(-ret)) : trace_show(&t, r);
}
