/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca qp`, `fifos`, `counters` and `held`: one table per HCA (and engine). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "columns.h"
#include "table.h"
#include "view.h"
#include "watch.h"

enum { QPN_MAX = 0xffffff };

const struct named_text counter_texts[] = {
#define COUNTER(name, text) {#name, text},
#include "base/counters.def"
#undef COUNTER
	{NULL, NULL},
};

const struct named_text port_counter_texts[] = {
#define PORT_COUNTER(name, text) {#name, text},
#include "pmd-glue/port_counters.def"
#undef PORT_COUNTER
	{NULL, NULL},
};

int for_each_hca(struct connection *c, const struct request *r,
		 int (*show)(struct connection *c, const struct request *r, const char *hca))
{
	json_t *status, *port;
	int code = EXIT_CODE_OK;
	const char *hca;

	if (r->hca)
		return show(c, r, r->hca);
	status = connection_ask(c, "status", NULL);
	if (!status)
		return EXIT_CODE_FAILURE;
	json_object_foreach(json_object_get(status, "ports"), hca, port)
	{
		if (code == EXIT_CODE_OK)
			code = show(c, r, hca);
	}
	json_decref(status);
	return code;
}

static void print_qps(json_t *qps, const json_t *last)
{
	static const struct column columns[] = {
		QP_VIEW(COLUMN){"pid", "pid", UNIT_ID},
		{"command", "command", UNIT_TEXT},
	};
	const struct objects_table t = {">qpn", columns, COUNT_OF(columns), NULL, NULL};

	print_changes(qps, last, watch_elapsed(), &t, "  ");
}

static void print_value(struct table *t, const char *key, const json_t *value)
{
	table_add(t, "%s", key);
	if (json_is_string(value))
		table_add(t, "%s", json_string_value(value));
	else
		table_add(t, "%lld", json_integer_value(value));
}

/* Adds the fields that we may not see. */
static void add_secrets(struct table *t, const json_t *answer)
{
	static const struct column all[] = {QP_VIEW(COLUMN) QP_ATTRIBUTES_VIEW(
		COLUMN) QP_REQUESTER_VIEW(COLUMN) QP_RESPONDER_VIEW(COLUMN)};

	for (unsigned i = 0; i < COUNT_OF(all); i++) {
		if ((all[i].unit != UNIT_SECRET && all[i].unit != UNIT_SECRET_TEXT) ||
		    json_object_get(answer, all[i].key) ||
		    json_object_get(json_object_get(answer, "qp"), all[i].key))
			continue;
		table_add(t, "%s", all[i].key);
		table_add(t, "-");
	}
}

/* Prints all fields of one QP. */
static void print_one_qp(json_t *answer)
{
	struct table t;
	const char *key;
	json_t *value;

	table_begin(&t, "field|value");
	json_object_foreach(json_object_get(answer, "qp"), key, value)
	{
		print_value(&t, key, value);
	}
	json_object_foreach(answer, key, value)
	{
		if (!json_is_object(value))
			print_value(&t, key, value);
	}
	add_secrets(&t, answer);
	table_end(&t, stdout, "  ");
}

/* The clients of that HCA, by their number there. */
static json_t *clients_of(const json_t *answer, const char *hca)
{
	json_t *of = json_object(), *one;
	char index[16];
	const char *id;

	json_object_foreach(json_object_get(answer, "clients"), id, one)
	{
		snprintf(index, sizeof(index), "%llu", number_of(one, "index"));
		if (strcmp(text_of(one, "hca"), hca) == 0)
			json_object_set(of, index, one);
	}
	return of;
}

static int by_qpn(const void *a, const void *b)
{
	unsigned long long x = number_of(*(json_t *const *)a, "qpn"),
			   y = number_of(*(json_t *const *)b, "qpn");

	return x < y ? -1 : x > y;
}

/* Names a queue pair's process. */
static void add_process(json_t *qp, const json_t *clients)
{
	const json_t *client;
	char index[16];

	snprintf(index, sizeof(index), "%llu", number_of(qp, "client"));
	client = json_object_get(clients, index);
	json_object_set_new(qp, "pid", json_integer(number_of(client, "pid")));
	json_object_set_new(qp, "command", json_string(text_of(client, "command")));
}

/* The same queue pairs, by their numbers, with their processes. */
static json_t *arrange(json_t *qps, const json_t *clients)
{
	size_t count = json_object_size(qps), n = 0;
	json_t **all = calloc(count + 1, sizeof(*all)), *to = json_object(), *qp;
	const char *key;
	char name[16];

	if (!all) {
		json_decref(to);
		return json_incref(qps);
	}
	json_object_foreach(qps, key, qp)
	{
		add_process(qp, clients);
		all[n++] = qp;
	}
	qsort(all, n, sizeof(*all), by_qpn);
	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%llu", number_of(all[i], "qpn"));
		json_object_set(to, name, all[i]);
	}
	free(all);
	return to;
}

json_t *qps_ask(struct connection *c, const char *hca)
{
	json_t *answer, *all, *clients;
	char before[64];

	snprintf(before, sizeof(before), "%s,0,", hca);
	answer = connection_ask_pages(c, "qp", before, "qps");
	all = answer ? clients_ask(c) : NULL;
	clients = clients_of(all, hca);
	if (answer)
		json_object_set_new(answer, "qps",
				    arrange(json_object_get(answer, "qps"), clients));
	json_decref(clients);
	json_decref(all);
	return answer;
}

/* Removes those that were not asked for. */
static void filter_qps(const struct request *r, json_t *qps)
{
	const char *qpn;
	json_t *qp;
	void *next;

	json_object_foreach_safe(qps, next, qpn, qp)
	{
		if ((r->state && strcasecmp(r->state, text_of(qp, "state")) != 0) ||
		    (r->pid && number_of(qp, "pid") != r->pid))
			json_object_del(qps, qpn);
	}
}

/* Has an HCA a queue pair of the number that was asked for? */
static bool one_qp_found;

static int show_one_qp(struct connection *c, const struct request *r, const char *hca)
{
	char parameters[64];
	json_t *answer;

	snprintf(parameters, sizeof(parameters), "%s,%s", hca, r->object);
	answer = connection_try(c, "qp", parameters, r->hca ? 0 : -ENOENT);
	if (!answer && c->error == -ENOENT && !r->hca)
		return EXIT_CODE_OK; /* another may have it */
	if (!answer)
		return EXIT_CODE_FAILURE;
	one_qp_found = true;
	if (r->json)
		puts(c->answer);
	else
		print_one_qp(answer);
	json_decref(answer);
	return EXIT_CODE_OK;
}

static int show_qps(struct connection *c, const struct request *r, const char *hca)
{
	json_t *answer = qps_ask(c, hca);
	const json_t *last;
	unsigned long long count;

	if (!answer)
		return EXIT_CODE_FAILURE;
	count = number_of(answer, "qp_count");
	last = watch_last(hca, answer);
	filter_qps(r, json_object_get(answer, "qps"));
	if (r->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		puts("");
	} else {
		printf("%s: %llu queue pair%s\n", hca, count, count == 1 ? "" : "s");
		print_qps(json_object_get(answer, "qps"), json_object_get(last, "qps"));
	}
	json_decref(answer);
	return EXIT_CODE_OK;
}

int check_state(const struct request *r)
{
	static const char *const names[] = {QP_STATE_NAMES};

	if (!r->state)
		return EXIT_CODE_OK;
	for (unsigned i = 0; i < COUNT_OF(names); i++) {
		if (strcasecmp(r->state, names[i]) == 0)
			return EXIT_CODE_OK;
	}
	fprintf(stderr, "softhca: '%s' is no state of a queue pair; these are:", r->state);
	for (unsigned i = 0; i < COUNT_OF(names); i++)
		fprintf(stderr, " %s", names[i]);
	fputs("\n", stderr);
	return EXIT_CODE_USAGE;
}

int view_qp(struct connection *c, const struct request *r)
{
	char *end;
	int code;

	if (r->object && (strtoul(r->object, &end, 0) - 1 >= QPN_MAX || *end)) {
		fprintf(stderr, "softhca: '%s' is no number of a queue pair\n", r->object);
		return EXIT_CODE_USAGE;
	}
	if (check_state(r))
		return EXIT_CODE_USAGE;
	code = for_each_hca(c, r, r->object ? show_one_qp : show_qps);
	if (!code && r->object && !one_qp_found) {
		fprintf(stderr, "softhca: no HCA has a queue pair %s\n", r->object);
		code = EXIT_CODE_FAILURE;
	}
	return code;
}

static void print_calls(json_t *calls)
{
	struct table t;
	const char *name;
	json_t *count;

	table_begin(&t, "call|>commands");
	json_object_foreach(calls, name, count)
	{
		print_value(&t, name, count);
	}
	table_end(&t, stdout, "  ");
}

static void print_paused(const json_t *paused)
{
	const char *name;
	json_t *text;

	json_object_foreach((json_t *)(uintptr_t)paused, name, text)
	{
		printf("  %s is paused (%s)\n", name, json_string_value(text));
	}
}

static void print_fifos(const json_t *answer)
{
	static const struct column of_fifo[] = {CHANNEL_VIEW(COLUMN)};
	static const struct column of_stage[] = {STAGE_VIEW(COLUMN)};
	const struct objects_table fifos = {"fifo", of_fifo, COUNT_OF(of_fifo), NULL, NULL};
	const struct objects_table stages = {"stage", of_stage, COUNT_OF(of_stage), NULL, NULL};

	print_paused(json_object_get(answer, "paused"));
	print_objects(json_object_get(answer, "fifos"), &fifos, "  ");
	print_calls(json_object_get(answer, "calls"));
	print_objects(json_object_get(answer, "stages"), &stages, "  ");
}

static int show_fifos(struct connection *c, const struct request *r, const char *hca)
{
	struct engines e = {.hca = hca};
	json_t *answer;

	while ((answer = engines_ask(&e, c, "fifos"))) {
		if (r->json) {
			puts(c->answer);
		} else {
			printf("%s, engine %u\n", hca, e.next - 1);
			print_fifos(answer);
		}
		json_decref(answer);
	}
	return engines_done(&e) ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}

int view_fifos(struct connection *c, const struct request *r)
{
	return for_each_hca(c, r, show_fifos);
}

/* The change since the last round and in a second, if that is known. */
static void add_change(struct table *t, unsigned long long value, const json_t *last,
		       const char *name)
{
	unsigned long long change = value - number_of(last, name);

	if (last && change) {
		table_add(t, "%llu", change);
		table_add(t, "%.0f", change / watch_elapsed());
	} else {
		table_add(t, last ? "0" : "-");
		table_add(t, last ? "0" : "-");
	}
}

/* Prints counters in the order of their table, with their sentences; zeroes only if `all`. */
void print_counters(const json_t *counters, const json_t *last, const struct named_text *texts,
		    bool all)
{
	bool changes = watch_elapsed() > 0;
	struct table t;

	table_begin(&t, changes ? "counter|>value|>change|>a second|what it counts"
				: "counter|>value|what it counts");
	for (unsigned i = 0; texts[i].name; i++) {
		unsigned long long value = number_of(counters, texts[i].name);

		if (value == 0 && !all)
			continue;
		table_add(&t, "%s", texts[i].name);
		table_add(&t, "%llu", value);
		if (changes)
			add_change(&t, value, last, texts[i].name);
		table_add(&t, "%s", texts[i].text);
	}
	table_end(&t, stdout, "  ");
}

static int show_counters(struct connection *c, const struct request *r, const char *hca)
{
	json_t *answer = connection_ask(c, "counters", hca);
	const json_t *last;

	if (!answer)
		return EXIT_CODE_FAILURE;
	last = watch_last(hca, answer);
	if (r->json) {
		puts(c->answer);
	} else {
		printf("%s\n", hca);
		print_counters(json_object_get(answer, "counters"),
			       json_object_get(last, "counters"), counter_texts, r->all);
		printf("%s, port\n", hca);
		print_counters(json_object_get(answer, "port_counters"),
			       json_object_get(last, "port_counters"), port_counter_texts, r->all);
	}
	json_decref(answer);
	return EXIT_CODE_OK;
}

int view_counters(struct connection *c, const struct request *r)
{
	return for_each_hca(c, r, show_counters);
}

static int show_held(struct connection *c, const struct request *r, const char *hca)
{
	json_t *answer = connection_ask(c, "held", hca), *value;
	const char *key;
	struct table t;

	if (!answer)
		return EXIT_CODE_FAILURE;
	if (r->json) {
		puts(c->answer);
	} else {
		printf("%s\n", hca);
		table_begin(&t, "held|>number");
		json_object_foreach(answer, key, value)
		{
			if (json_is_integer(value))
				print_value(&t, key, value);
		}
		table_end(&t, stdout, "  ");
	}
	json_decref(answer);
	return EXIT_CODE_OK;
}

int view_held(struct connection *c, const struct request *r)
{
	return for_each_hca(c, r, show_held);
}
