/* SPDX-License-Identifier: BSD-3-Clause */
/* See metrics.h. The format wants all samples of a metric together: query everything first. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "columns.h"
#include "metrics.h"
#include "target.h"

enum { NAME_BYTES = 128 };

/* The daemon's answers. Those of HCAs by their names, those of engines by "HCA,ENGINE". */
struct scrape {
	json_t *status, *limits, *cm, *counters, *held, *fifos;
};

/* ---- the questions ---- */

/* An HCA that was removed after the `status` query has nothing more to show. */
static bool ask_hca(struct connection *c, struct scrape *s, const char *hca)
{
	return (connection_ask_into(c, s->counters, "counters", hca) &&
		connection_ask_into(c, s->held, "held", hca) &&
		engines_ask_into(c, s->fifos, "fifos", hca)) ||
	       hca_has_gone(c);
}

static bool metrics_ask_all(struct connection *c, struct scrape *s)
{
	const char *hca;
	json_t *port;
	bool ok;

	s->counters = json_object();
	s->held = json_object();
	s->fifos = json_object();
	s->status = connection_ask(c, "status", NULL);
	s->limits = s->status ? connection_ask(c, "limits", NULL) : NULL;
	ok = s->limits != NULL;
	json_object_foreach(json_object_get(s->status, "ports"), hca, port)
	{
		ok = ok && ask_hca(c, s, hca);
	}
	/* last: a connection manager that is too busy to answer leaves the rest */
	s->cm = ok ? connection_ask(c, "cm", NULL) : NULL;
	return ok;
}

static void metrics_forget(struct scrape *s)
{
	json_decref(s->status);
	json_decref(s->limits);
	json_decref(s->cm);
	json_decref(s->counters);
	json_decref(s->held);
	json_decref(s->fifos);
}

/* ---- the parts of a metric ---- */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Objects of one kind, with the labels that tell one from another. */
struct family {
	struct {
		const json_t *object;
		char *labels; /* `{hca="hca0"}`, or "" */
	} * of;
	unsigned count;
};

static void family_add(struct family *f, const json_t *object, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void family_add(struct family *f, const json_t *object, const char *format, ...)
{
	void *more = realloc(f->of, (f->count + 1) * sizeof(*f->of));
	va_list arguments;
	int bytes = -1;

	va_start(arguments, format);
	if (more) {
		f->of = more;
		bytes = vasprintf(&f->of[f->count].labels, format, arguments);
	}
	va_end(arguments);
	if (bytes < 0) {
		fputs("softhca: out of memory\n", stderr);
		exit(EXIT_CODE_FAILURE);
	}
	f->of[f->count++].object = object;
}

static void family_end(struct family *f)
{
	for (unsigned i = 0; i < f->count; i++)
		free(f->of[i].labels);
	free(f->of);
	*f = (struct family){.count = 0};
}

/* ---- values of views.def ---- */

/* What a unit becomes: seconds, bytes and ratios. */
struct base_unit {
	bool shown, counts;
	const char *from, *to; /* the end of the key, and of the name */
	double factor;
};

static struct base_unit base_unit_of(enum unit unit)
{
	switch (unit) {
	case UNIT_COUNT:
		return (struct base_unit){true, true, "", "_total", 1};
	case UNIT_LEVEL:
		/* a name that ends in _total would be a count's */
		return (struct base_unit){true, false, "total", "capacity", 1};
	case UNIT_BYTES:
		return (struct base_unit){true, false, "", "_bytes", 1};
	case UNIT_MEMORY:
		return (struct base_unit){true, false, "", "", 1};
	case UNIT_KIB:
		return (struct base_unit){true, false, "_kib", "_bytes", 1024};
	case UNIT_MIB:
		return (struct base_unit){true, false, "_mib", "_bytes", 1048576};
	case UNIT_MBPS:
		return (struct base_unit){true, false, "_mbps", "_bytes_per_second", 1e6 / 8};
	case UNIT_SECONDS:
		return (struct base_unit){true, false, "_s", "_seconds", 1};
	case UNIT_MS:
		return (struct base_unit){true, false, "_ms", "_seconds", 0.001};
	case UNIT_PERMILLE:
		return (struct base_unit){true, false, "_permille", "_ratio", 0.001};
	case UNIT_TEXT:
	case UNIT_ID:
	case UNIT_SECRET:
	case UNIT_SECRET_TEXT:
	case UNIT_NODE:
	case UNIT_DISTANCE:
		break;
	}
	return (struct base_unit){.shown = false};
}

static void name_metric(char name[NAME_BYTES], const char *prefix, const char *key,
			const struct base_unit *u)
{
	size_t length = strlen(key), end = strlen(u->from);
	bool ends = length >= end && strcmp(key + length - end, u->from) == 0;

	snprintf(name, NAME_BYTES, "softhca_%s%.*s%s", prefix, (int)(ends ? length - end : length),
		 key, ends ? u->to : "");
}

/* A metric for each column that is a number, a sample for each object. Frees the family. */
static void print_view(FILE *out, const char *prefix, const char *what,
		       const struct column *columns, unsigned count, struct family *f)
{
	char name[NAME_BYTES], help[NAME_BYTES];

	for (unsigned i = 0; i < count && f->count; i++) {
		struct base_unit u = base_unit_of(columns[i].unit);

		if (!u.shown)
			continue;
		name_metric(name, prefix, columns[i].key, &u);
		snprintf(help, sizeof(help), "%s: %s", what,
			 columns[i].heading ? columns[i].heading : columns[i].key);
		head(out, name, u.counts ? "counter" : "gauge", help);
		for (unsigned k = 0; k < f->count; k++)
			fprintf(out, "%s%s %.16g\n", name, f->of[k].labels,
				number_of(f->of[k].object, columns[i].key) * u.factor);
	}
	family_end(f);
}

#define PRINT_VIEW(out, prefix, what, VIEW, family)                                                \
	do {                                                                                       \
		static const struct column columns_[] = {VIEW(COLUMN)};                            \
		print_view(out, prefix, what, columns_, COUNT_OF(columns_), family);               \
	} while (0)

/* The objects of a dictionary, one label with their names. */
static void add_named(struct family *f, json_t *objects, const char *label)
{
	const char *name;
	json_t *object;

	json_object_foreach(objects, name, object)
	{
		family_add(f, object, "{%s=\"%s\"}", label, name);
	}
}

/* Those of each engine: `kind` is "fifos" or "stages". */
static void add_of_engines(struct family *f, json_t *engines, const char *kind, const char *label)
{
	const char *key, *name;
	json_t *engine, *object;

	json_object_foreach(engines, key, engine)
	{
		json_object_foreach(json_object_get(engine, kind), name, object)
		{
			family_add(f, object, "{hca=\"%s\",engine=\"%llu\",%s=\"%s\"}",
				   text_of(engine, "hca"), number_of(engine, "engine"), label,
				   name);
		}
	}
}

static void add_shares(struct family *f, json_t *rows)
{
	const char *key;
	json_t *row;

	json_object_foreach(rows, key, row)
	{
		family_add(f, row, "{share=\"%s\",hca=\"%s\"}", text_of(row, "name"),
			   text_of(row, "hca"));
	}
}

static void print_views(FILE *out, const struct scrape *s)
{
	json_t *memory = json_object_get(s->status, "memory");
	struct family f = {.count = 0};

	family_add(&f, s->status, "%s", "");
	PRINT_VIEW(out, "", "the daemon", STATUS_VIEW, &f);
	family_add(&f, memory, "%s", "");
	PRINT_VIEW(out, "memory_", "memory of the daemon", MEMORY_VIEW, &f);
	add_named(&f, json_object_get(memory, "buffers"), "pool");
	PRINT_VIEW(out, "pool_", "buffers of a pool", POOL_VIEW, &f);
	add_named(&f, json_object_get(s->status, "ports"), "hca");
	PRINT_VIEW(out, "port_", "port", PORT_VIEW, &f);
	add_named(&f, json_object_get(s->status, "lcores"), "cpu");
	PRINT_VIEW(out, "lcore_", "lcore", LCORE_VIEW, &f);
	add_of_engines(&f, s->fifos, "fifos", "fifo");
	PRINT_VIEW(out, "fifo_", "channel between modules", CHANNEL_VIEW, &f);
	add_of_engines(&f, s->fifos, "stages", "stage");
	PRINT_VIEW(out, "stage_", "stage of the pipeline", STAGE_VIEW, &f);
	add_named(&f, s->held, "hca");
	PRINT_VIEW(out, "held_", "held for clients", HELD_VIEW, &f);
	add_shares(&f, json_object_get(s->limits, "rows"));
	PRINT_VIEW(out, "share_", "shared by clients", SHARE_VIEW, &f);
	head(out, "softhca_clients", "gauge", "connected clients");
	fprintf(out, "softhca_clients %llu\n", number_of(s->status, "client_count"));
}

/* ---- counters ---- */

/* The counters of a table, from each HCA's answer in `answers`, or in its part `part`. */
static void metrics_print_table(FILE *out, const char *prefix, const struct named_text *texts,
				json_t *answers, const char *part)
{
	char name[NAME_BYTES];
	const char *hca;
	json_t *answer;

	for (unsigned i = 0; texts[i].name; i++) {
		snprintf(name, sizeof(name), "softhca_%s%s_total", prefix, texts[i].name);
		head(out, name, "counter", texts[i].text);
		json_object_foreach(answers, hca, answer)
		{
			fprintf(out, "%s{hca=\"%s\"} %llu\n", name, hca,
				number_of(part ? json_object_get(answer, part) : answer,
					  texts[i].name));
		}
	}
}

static void print_cm_counters(FILE *out, const json_t *cm)
{
	const json_t *counters = json_object_get(cm, "counters");
	char name[NAME_BYTES];

	if (!counters)
		return; /* daemon.cm is off, or busy */
	for (unsigned i = 0; cm_counter_texts[i].name; i++) {
		snprintf(name, sizeof(name), "softhca_cm_%s_total", cm_counter_texts[i].name);
		head(out, name, "counter", cm_counter_texts[i].text);
		fprintf(out, "%s %llu\n", name, number_of(counters, cm_counter_texts[i].name));
	}
	metrics_print_table(out, "cm_port_", cm_port_counter_texts, json_object_get(cm, "ports"),
			    NULL);
}

/* ---- what others know ---- */

/* A term of a sum: where its counter is in an answer. */
struct term {
	const char *part, *name;
};

/* Times / unit as in known_counters.def. */
struct known_metric {
	const char *name, *text;
	unsigned unit, times;
	struct term terms[12]; /* the last has no name */
};

#define HCA(name)  {"counters", #name},
#define PORT(name) {"port_counters", #name},
#define TERMS_OF(...)                                                                              \
	{                                                                                          \
		__VA_ARGS__                                                                        \
		{                                                                                  \
			NULL, NULL                                                                 \
		}                                                                                  \
	}

static const struct known_metric known_metrics[] = {
#define STANDARD_COUNTER(name, unit, metric, times, terms)                                         \
	{"node_infiniband_" metric "_total", "as the sysfs attribute " #name, unit, times,         \
	 TERMS_OF terms},
#define HW_COUNTER(name, text, terms) {"rdma_" #name "_total", text, 1, 1, TERMS_OF terms},
#include "../known_counters.def"
};

static unsigned long long sum_of(const json_t *answer, const struct known_metric *m)
{
	unsigned long long sum = 0;

	for (const struct term *t = m->terms; t->name; t++)
		sum += number_of(json_object_get(answer, t->part), t->name);
	return sum * m->times / m->unit;
}

static void print_known(FILE *out, json_t *counters)
{
	const char *hca;
	json_t *answer;

	for (unsigned i = 0; i < COUNT_OF(known_metrics); i++) {
		const struct known_metric *m = &known_metrics[i];

		head(out, m->name, "counter", m->text);
		json_object_foreach(counters, hca, answer)
		{
			fprintf(out, "%s{device=\"%s\",port=\"1\"} %llu\n", m->name, hca,
				sum_of(answer, m));
		}
	}
}

static bool is_active(const json_t *port)
{
	return strcmp(text_of(port, "link"), "up") == 0 && number_of(port, "path_mtu");
}

/* The codes of the standard, as in sysfs. */
static double state_id(const json_t *port)
{
	return is_active(port) ? 4 : 1;
}

static double physical_state_id(const json_t *port)
{
	return is_active(port) ? 5 : 3;
}

static double rate_bytes_per_second(const json_t *port)
{
	return number_of(port, "speed_mbps") * 1e6 / 8;
}

static void print_states(FILE *out, const json_t *status)
{
	static const struct {
		const char *name, *text;
		double (*read)(const json_t *port);
	} states[] = {
		{"node_infiniband_state_id", "logical state: 1 down, 4 active", state_id},
		{"node_infiniband_physical_state_id", "physical state: 3 disabled, 5 link up",
		 physical_state_id},
		{"node_infiniband_rate_bytes_per_second", "speed of the port",
		 rate_bytes_per_second},
	};
	json_t *ports = json_object_get(status, "ports"), *port;
	const char *hca;

	head(out, "node_infiniband_info", "gauge", "always 1");
	json_object_foreach(ports, hca, port)
	{
		fprintf(out,
			"node_infiniband_info{device=\"%s\",board_id=\"softhca\","
			"firmware_version=\"%s\",hca_type=\"softhca\"} 1\n",
			hca, text_of(status, "version"));
	}
	for (unsigned i = 0; i < COUNT_OF(states); i++) {
		head(out, states[i].name, "gauge", states[i].text);
		json_object_foreach(ports, hca, port)
		{
			fprintf(out, "%s{device=\"%s\",port=\"1\"} %.16g\n", states[i].name, hca,
				states[i].read(port));
		}
	}
}

/* ---- all ---- */

static bool print_all(FILE *out, struct connection *c)
{
	struct scrape s = {.status = NULL};
	bool up = metrics_ask_all(c, &s);

	if (up) {
		print_known(out, s.counters);
		print_states(out, s.status);
		metrics_print_table(out, "", counter_texts, s.counters, "counters");
		metrics_print_table(out, "port_", port_counter_texts, s.counters, "port_counters");
		print_cm_counters(out, s.cm);
		print_views(out, &s);
	}
	metrics_forget(&s);
	return up;
}

static void print_up(FILE *out, bool up)
{
	head(out, "softhca_up", "gauge", "does the daemon answer?");
	fprintf(out, "softhca_up %d\n", up);
}

void metrics_print(FILE *out, const struct request *r)
{
	static struct connection c;
	bool up = target_connect(r, &c) == 0;

	if (up) {
		up = print_all(out, &c);
		connection_close(&c);
	}
	print_up(out, up);
}

int view_metrics(struct connection *c, const struct request *r)
{
	bool up = print_all(stdout, c);

	print_up(stdout, up);
	return up ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}
