/* SPDX-License-Identifier: BSD-3-Clause */
/* `softhca all`: the daemon's answers as one document, whose form doc/json.md describes. */
#include <stdio.h>
#include <string.h>
#include "columns.h"
#include "view.h"

enum { SCHEMA = 1 };

/* Turns a dictionary of objects into an array under the same key. Its names are numbers that only
 * telemetry needs, or that the objects contain themselves. */
static void make_array(json_t *in, const char *key)
{
	json_t *objects = json_object_get(in, key), *array = json_array(), *one;
	const char *name;

	json_object_foreach(objects, name, one)
	{
		json_array_append(array, one);
	}
	json_object_set_new(in, key, array);
}

/* Puts what `from` has under that key into `to`. */
static void move_key(json_t *to, json_t *from, const char *key)
{
	json_object_set(to, key, json_object_get(from, key));
}

/* An answer, of which a part is a list; NULL after printing why not. */
static json_t *ask_list(struct connection *c, const char *command, const char *list)
{
	json_t *answer = connection_ask(c, command, NULL);

	if (answer)
		make_array(answer, list);
	return answer;
}

/* The engines of an HCA: fifos, calls and stages of each. */
static json_t *engines_of(struct connection *c, const char *hca)
{
	struct engines e = {.hca = hca};
	json_t *array = json_array(), *answer;

	while ((answer = engines_ask(&e, c, "fifos"))) {
		json_object_del(answer, "hca");
		json_object_del(answer, "engines");
		json_array_append_new(array, answer);
	}
	if (engines_done(&e))
		return array;
	json_decref(array);
	return NULL;
}

/* NULL after printing why not. */
static json_t *everything_hca_of(struct connection *c, const char *hca, json_t *port)
{
	json_t *counters = connection_ask(c, "counters", hca);
	json_t *held = counters ? connection_ask(c, "held", hca) : NULL;
	json_t *qps = held ? qps_ask(c, hca) : NULL;
	json_t *engines = qps ? engines_of(c, hca) : NULL;
	json_t *to = engines ? json_object() : NULL;

	if (to) {
		json_object_set(to, "port", port);
		move_key(to, counters, "counters");
		move_key(to, counters, "port_counters");
		json_object_del(held, "hca");
		json_object_set(to, "held", held);
		make_array(qps, "qps");
		move_key(to, qps, "qps");
		move_key(to, qps, "qp_count");
		json_object_set(to, "engines", engines);
	}
	json_decref(counters);
	json_decref(held);
	json_decref(qps);
	json_decref(engines);
	return to;
}

/* Adds the wanted HCA, or each that is not removed meanwhile. False after printing why not. */
static bool put_hcas(struct connection *c, const struct request *r, json_t *to, json_t *ports)
{
	json_t *hcas = json_object(), *port, *one;
	bool found = !r->hca;
	const char *hca;

	json_object_set_new(to, "hcas", hcas);
	json_object_foreach(ports, hca, port)
	{
		if (r->hca && strcmp(r->hca, hca) != 0)
			continue;
		one = everything_hca_of(c, hca, port);
		if (!one && !hca_has_gone(c))
			return false;
		if (one)
			found = json_object_set_new(hcas, hca, one) == 0;
	}
	if (!found)
		print_no_hca(r->hca, -1);
	return found;
}

static bool put_clients(struct connection *c, json_t *to)
{
	json_t *clients = clients_ask(c);

	if (!clients)
		return false;
	make_array(clients, "clients");
	move_key(to, clients, "clients");
	move_key(to, clients, "client_count");
	json_decref(clients);
	return true;
}

static bool put_limits(struct connection *c, json_t *to)
{
	json_t *limits = ask_list(c, "limits", "rows");

	if (!limits)
		return false;
	make_array(limits, "holders");
	return json_object_set_new(to, "limits", limits) == 0;
}

static bool put_cm(struct connection *c, json_t *to)
{
	json_t *cm = ask_list(c, "cm", "ids");

	return cm && json_object_set_new(to, "cm", cm) == 0;
}

/* Adds the daemon itself, and what belongs to no single HCA. */
static bool put_daemon(struct connection *c, const struct request *r, json_t *to)
{
	json_t *status = connection_ask(c, "status", NULL), *ports;
	bool done;

	if (!status)
		return false;
	ports = json_incref(json_object_get(status, "ports"));
	json_object_set_new(to, "schema", json_integer(SCHEMA));
	json_object_del(status, "ports");
	json_object_del(status, "clients");
	json_object_del(status, "client_count");
	json_object_set_new(to, "daemon", status);
	done = put_clients(c, to) && put_limits(c, to) && put_cm(c, to) &&
	       put_hcas(c, r, to, ports);
	json_decref(ports);
	return done;
}

json_t *all_ask(struct connection *c, const struct request *r)
{
	json_t *all = json_object();

	if (put_daemon(c, r, all))
		return all;
	json_decref(all);
	return NULL;
}

int view_all(struct connection *c, const struct request *r)
{
	json_t *all = all_ask(c, r);

	if (!all)
		return EXIT_CODE_FAILURE;
	json_dumpf(all, stdout, r->json ? JSON_COMPACT : JSON_INDENT(2));
	puts("");
	json_decref(all);
	return EXIT_CODE_OK;
}
