/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca show runtime`: the work and cost of each module in an interval. A query makes the daemon
 * measure an engine for some seconds, if we may change it; the tool queries twice and shows the
 * difference.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "columns.h"
#include "table.h"
#include "view.h"

enum { ASK_S = 2 };

/* The first answers, by "HCA,ENGINE". */
static json_t *before;
static bool first;

static unsigned long long runtime_since(const json_t *then, const json_t *now, const char *key)
{
	return number_of(now, key) - number_of(then, key);
}

static void add_ratio(struct table *t, double of, double to, const char *unit)
{
	if (to > 0)
		table_add(t, "%.1f%s", of / to, unit);
	else
		table_add(t, "-");
}

static void add_module(struct table *t, const char *name, const json_t *then, const json_t *now,
		       unsigned long long tsc)
{
	unsigned long long busy = runtime_since(then, now, "busy_polls"),
			   elements = runtime_since(then, now, "elements"),
			   cycles = runtime_since(then, now, "cycles");

	table_add(t, "%s", name);
	table_add(t, "%s", text_of(now, "stage"));
	table_add(t, "%llu", runtime_since(then, now, "polls"));
	table_add(t, "%llu", busy);
	table_add(t, "%llu", elements);
	add_ratio(t, elements, busy, "");
	add_ratio(t, cycles, elements, "");
	add_ratio(t, 100.0 * cycles, tsc, "");
	add_ratio(t, 100.0 * runtime_since(then, now, "idle_cycles"), tsc, "");
}

static void print_modules(const char *key, const json_t *then, const json_t *now)
{
	unsigned long long tsc = runtime_since(then, now, "tsc");
	json_t *modules = json_object_get(now, "modules"), *module;
	const json_t *old = json_object_get(then, "modules");
	const char *name;
	struct table t;

	if (!number_of(now, "measured")) {
		printf("%s is not measured: %s\n", key, ONLY_ADMINS_MAY("start that"));
		return;
	}
	printf("%s: %.2f s\n", key, tsc / (double)number_of(now, "tsc_hz"));
	table_begin(&t, "module|stage|>polls|>with work|>elements|>per poll|>cycles each|>busy %|"
			">idle %");
	json_object_foreach(modules, name, module)
	{
		add_module(&t, name, json_object_get(old, name), module, tsc);
	}
	table_end(&t, stdout, "  ");
}

/* Queries each engine of an HCA: keeps the first answer, then prints the differences. */
static int runtime_ask(struct connection *c, const struct request *r, const char *hca)
{
	struct engines e = {.hca = hca};
	json_t *answer;

	while ((answer = engines_ask(&e, c, "runtime"))) {
		if (first)
			json_object_set(before, e.key, answer);
		else if (r->json)
			puts(c->answer);
		else
			print_modules(e.key, json_object_get(before, e.key), answer);
		json_decref(answer);
	}
	return engines_done(&e) ? EXIT_CODE_OK : EXIT_CODE_FAILURE;
}

/* The daemon stops measuring after some seconds without a query. */
static void runtime_pass(struct connection *c, double seconds)
{
	for (; seconds > ASK_S; seconds -= ASK_S) {
		sleep(ASK_S);
		engines_ask_again(c, before, "runtime");
	}
	usleep(seconds * 1000000);
}

int view_runtime(struct connection *c, const struct request *r)
{
	int code;

	before = json_object();
	first = true;
	code = for_each_hca(c, r, runtime_ask);
	if (code == EXIT_CODE_OK) {
		first = false;
		runtime_pass(c, r->interval_s);
		code = for_each_hca(c, r, runtime_ask);
	}
	json_decref(before);
	return code;
}
