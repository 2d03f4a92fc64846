/* SPDX-License-Identifier: BSD-3-Clause */
/* See top.h. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "columns.h"
#include "pipeline/topology.h"
#include "top.h"

enum { LINE_BYTES = 160, FILTER_BYTES = 64, MSN_MASK = 0xffffff, FIXED_ROWS = 5 };

const char *const top_sorts[SORT_COUNT] = {"messages", "qpn", "pid", "state"};

/* ---- a look ---- */

static bool ask_qps(struct connection *c, json_t *to, const char *hca)
{
	json_t *answer = qps_ask(c, hca);

	return answer && json_object_set_new(to, hca, answer) == 0;
}

bool look_take(struct look *l, struct connection *c, const struct request *r)
{
	struct timespec t;
	const char *hca;
	json_t *port;
	bool ok, found = false;

	clock_gettime(CLOCK_MONOTONIC, &t);
	*l = (struct look){t.tv_sec + t.tv_nsec * 1e-9,
			   connection_ask(c, "status", NULL),
			   json_object(),
			   json_object(),
			   json_object(),
			   json_object()};
	ok = l->status != NULL;
	json_object_foreach(json_object_get(l->status, "ports"), hca, port)
	{
		if (r->hca && strcmp(r->hca, hca) != 0)
			continue;
		found = true;
		ok = ok && connection_ask_into(c, l->counters, "counters", hca) &&
		     ask_qps(c, l->qps, hca) && engines_ask_into(c, l->fifos, "fifos", hca) &&
		     engines_ask_into(c, l->runtime, "runtime", hca);
	}
	return ok && found;
}

void look_free(struct look *l)
{
	json_decref(l->status);
	json_decref(l->counters);
	json_decref(l->qps);
	json_decref(l->fifos);
	json_decref(l->runtime);
	*l = (struct look){.status = NULL};
}

/* ---- lines, of which the first ones are shown ---- */

struct line {
	double key; /* the largest first */
	char text[LINE_BYTES];
};

struct lines {
	struct line *line;
	unsigned count;
};

/* The next line, to be filled. */
static struct line *frame_add_line(struct lines *l)
{
	void *more = realloc(l->line, (l->count + 1) * sizeof(*l->line));

	if (!more) {
		fputs("softhca: out of memory\n", stderr);
		exit(EXIT_CODE_FAILURE);
	}
	l->line = more;
	return &l->line[l->count++];
}

static int by_key(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return strcmp(x->text, y->text);
}

static void frame_print_lines(FILE *out, const char *head, struct lines *l, unsigned rows)
{
	if (l->count)
		qsort(l->line, l->count, sizeof(*l->line), by_key);
	fprintf(out, "%s\n", head);
	for (unsigned i = 0; i < l->count && i < rows; i++)
		fprintf(out, "%s\n", l->line[i].text);
	free(l->line);
}

/* ---- rates ---- */

static unsigned long long frame_since(const json_t *then, const json_t *now, const char *key)
{
	unsigned long long before = number_of(then, key), after = number_of(now, key);

	return after > before ? after - before : 0;
}

/* All counters of drops in a dictionary. */
static unsigned long long drops_since(const json_t *then, json_t *now)
{
	unsigned long long sum = 0;
	const char *name;
	json_t *value;

	json_object_foreach(now, name, value)
	{
		if (strncmp(name, "drop_", 5) == 0)
			sum += frame_since(then, now, name);
	}
	return sum;
}

struct hca_rates hca_rates_of(const json_t *then, const json_t *now, double seconds)
{
	const json_t *a = json_object_get(then, "counters"),
		     *pa = json_object_get(then, "port_counters");
	json_t *b = json_object_get(now, "counters"), *pb = json_object_get(now, "port_counters");

	return (struct hca_rates){
		.out_gbps = frame_since(a, b, "tx_bytes") * 8e-9 / seconds,
		.in_gbps = frame_since(a, b, "rx_bytes") * 8e-9 / seconds,
		.out_mmsgs = frame_since(a, b, "requests") * 1e-6 / seconds,
		.in_mmsgs = frame_since(a, b, "executed") * 1e-6 / seconds,
		.retransmitted = frame_since(a, b, "retransmitted_packets") / seconds,
		.dropped = (drops_since(a, b) + drops_since(pa, pb)) / seconds,
	};
}

static void add_hca(struct lines *l, const char *hca, const json_t *then, const json_t *now,
		    double seconds)
{
	const struct hca_rates r = hca_rates_of(then, now, seconds);
	struct line *line = frame_add_line(l);

	line->key = 0;
	snprintf(line->text, LINE_BYTES, "%-10.10s %9.3f %9.3f %9.4f %9.4f %10.0f %10.0f", hca,
		 r.out_gbps, r.in_gbps, r.out_mmsgs, r.in_mmsgs, r.retransmitted, r.dropped);
}

/* A stage's share of the time and its cycles for each packet, from those of its modules. A packet
 * passes each of them once: the busiest one has seen all. */
static void add_stage(struct lines *l, const char *key, const char *stage, const json_t *then,
		      const json_t *now)
{
	unsigned long long tsc = frame_since(then, now, "tsc"), cycles = 0, packets = 0, polls = 0;
	json_t *modules = json_object_get(now, "modules"), *module;
	struct line *line = frame_add_line(l);
	const char *name;
	double each, vector;

	json_object_foreach(modules, name, module)
	{
		const json_t *old = json_object_get(json_object_get(then, "modules"), name);
		unsigned long long elements = frame_since(old, module, "elements");

		if (strcmp(text_of(module, "stage"), stage) != 0)
			continue;
		cycles += frame_since(old, module, "cycles");
		if (elements > packets) {
			packets = elements;
			polls = frame_since(old, module, "busy_polls");
		}
	}
	each = packets ? (double)cycles / packets : 0;
	vector = polls ? (double)packets / polls : 0;
	line->key = tsc ? 100.0 * cycles / tsc : 0;
	if (number_of(now, "measured"))
		snprintf(line->text, LINE_BYTES, "%-10.10s %-16s %6.1f %14.0f %12.1f", key, stage,
			 line->key, each, vector);
	else /* we may not start that */
		snprintf(line->text, LINE_BYTES, "%-10.10s %-16s %6s %14s %12s", key, stage, "-",
			 "-", "-");
}

static void add_rings(struct lines *l, const char *key, const json_t *then, const json_t *now,
		      double seconds)
{
	json_t *rings = json_object_get(now, "fifos"), *ring;
	const char *name;

	json_object_foreach(rings, name, ring)
	{
		const json_t *old = json_object_get(json_object_get(then, "fifos"), name);
		unsigned long long depth = number_of(ring, "depth"),
				   high = number_of(ring, "high_water");
		struct line *line = frame_add_line(l);

		line->key = depth ? 100.0 * high / depth : 0;
		snprintf(line->text, LINE_BYTES,
			 "%-10.10s %-16s %6.1f %6llu %6llu %6llu %11.0f %10.0f", key, name,
			 line->key, number_of(ring, "used"), high, depth,
			 frame_since(old, ring, "put") / seconds,
			 frame_since(old, ring, "full") / seconds);
	}
}

/* ---- queue pairs ---- */

/* Does `text` have each of these words, in any case? */
static bool has_words(const char *text, const char *words)
{
	char copy[FILTER_BYTES], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (!strcasestr(text, word))
			return false;
	}
	return true;
}

static bool is_chosen(const struct top_choice *choice, const char *hca, const json_t *qp)
{
	char text[LINE_BYTES];

	if ((choice->pid && number_of(qp, "pid") != choice->pid) ||
	    (choice->state && strcasecmp(choice->state, text_of(qp, "state")) != 0))
		return false;
	snprintf(text, sizeof(text), "%s %llu %s %s %llu %s", hca, number_of(qp, "qpn"),
		 text_of(qp, "service"), text_of(qp, "state"), number_of(qp, "pid"),
		 text_of(qp, "command"));
	return has_words(text, choice->filter);
}

static double key_of(enum top_sort sort, const json_t *qp, double rate)
{
	switch (sort) {
	case SORT_QPN:
		return -(double)number_of(qp, "qpn");
	case SORT_PID:
		return -(double)number_of(qp, "pid");
	case SORT_STATE:
		return text_of(qp, "state")[0] == 'E'; /* ERR first */
	case SORT_MESSAGES:
	case SORT_COUNT:
		break;
	}
	return rate;
}

static void add_qp(struct lines *l, const char *hca, const json_t *then, const json_t *qp,
		   double seconds, enum top_sort sort)
{
	double sent = (uint32_t)(number_of(qp, "sent") - number_of(then, "sent")) / seconds;
	double received =
		((number_of(qp, "received") - number_of(then, "received")) & MSN_MASK) / seconds;
	struct line *line = frame_add_line(l);

	if (!then) /* new: there is nothing to compare with */
		sent = received = 0;
	line->key = key_of(sort, qp, sent + received);
	snprintf(line->text, LINE_BYTES, "%-10.10s %8llu %-4s %-5s %8llu %-15s %10.0f %10.0f", hca,
		 number_of(qp, "qpn"), text_of(qp, "service"), text_of(qp, "state"),
		 number_of(qp, "pid"), text_of(qp, "command"), sent, received);
}

static void add_qps(struct lines *l, const struct look *then, const struct look *now,
		    double seconds, const struct top_choice *choice)
{
	const char *hca, *qpn;
	json_t *answer, *qp;

	json_object_foreach(now->qps, hca, answer)
	{
		const json_t *old = json_object_get(json_object_get(then->qps, hca), "qps");

		json_object_foreach(json_object_get(answer, "qps"), qpn, qp)
		{
			if (is_chosen(choice, hca, qp))
				add_qp(l, hca, json_object_get(old, qpn), qp, seconds,
				       choice->sort);
		}
	}
}

/* ---- the screen ---- */

static void print_title(FILE *out, const struct look *now, double seconds,
			const struct top_choice *choice, unsigned chosen)
{
	unsigned long long all = 0, up_s = number_of(now->status, "uptime_s");
	char part[32] = "";
	const char *hca;
	json_t *answer;

	json_object_foreach(now->qps, hca, answer)
	{
		all += number_of(answer, "qp_count");
	}
	if (chosen != all)
		snprintf(part, sizeof(part), "%u of ", chosen);
	fprintf(out,
		"softhca: up %llu:%02llu:%02llu, %llu clients, %s%llu queue pairs by %s, over %.1f "
		"s\n",
		up_s / 3600, up_s / 60 % 60, up_s % 60, number_of(now->status, "client_count"),
		part, all, top_sorts[choice->sort], seconds);
}

/* Are the loads of all engines known, or may we not start to measure them? */
static bool is_measured(const struct look *now)
{
	const char *key;
	json_t *answer;

	json_object_foreach(now->runtime, key, answer)
	{
		if (!number_of(answer, "measured"))
			return false;
	}
	return true;
}

static unsigned at_most(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Rows for each part, of those that there are. */
struct shares {
	unsigned hcas, stages, rings, qps;
};

static struct shares divide(unsigned rows, unsigned hcas)
{
	struct shares s = {hcas, UINT_MAX, UINT_MAX, UINT_MAX};

	if (!rows)
		return s;
	rows = rows > FIXED_ROWS + 4 ? rows - FIXED_ROWS : 4;
	s.hcas = at_most(hcas, 1 + rows / 5);
	s.stages = rows / 4 + 1;
	s.rings = rows / 5;
	s.qps = rows - at_most(rows, s.hcas + s.stages + s.rings);
	return s;
}

void top_print(FILE *out, const struct look *then, const struct look *now,
	       const struct top_choice *choice, unsigned rows)
{
	struct shares show = divide(rows, json_object_size(now->counters));
	struct lines hcas = {.count = 0}, stages = hcas, rings = hcas, qps = hcas;
	double seconds = now->at_s - then->at_s;
	const char *key;
	json_t *answer;

	json_object_foreach(now->counters, key, answer)
	{
		add_hca(&hcas, key, json_object_get(then->counters, key), answer, seconds);
	}
	json_object_foreach(now->runtime, key, answer)
	{
		for (unsigned s = 0; s < STAGE_COUNT; s++)
			add_stage(&stages, key, stage_infos[s].name,
				  json_object_get(then->runtime, key), answer);
	}
	json_object_foreach(now->fifos, key, answer)
	{
		add_rings(&rings, key, json_object_get(then->fifos, key), answer, seconds);
	}
	add_qps(&qps, then, now, seconds, choice);
	print_title(out, now, seconds, choice, qps.count);
	frame_print_lines(
		out, "HCA        Gbit/s out Gbit/s in  Mmsg/s out Mmsg/s in  retrans/s    drops/s",
		&hcas, show.hcas);
	frame_print_lines(
		out,
		is_measured(now)
			? "ENGINE     STAGE             load % cycles/packet  vector size"
			: "ENGINE     STAGE             load % cycles/packet  vector size  (-: for "
			  "admins)",
		&stages, show.stages);
	frame_print_lines(
		out,
		"ENGINE     RING              high %   used   high  depth       put/s     full/s",
		&rings, show.rings);
	frame_print_lines(
		out, "HCA             QPN SERV STATE      PID PROCESS           sent/s received/s",
		&qps, show.qps);
}
