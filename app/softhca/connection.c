/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a daemon for views over its control socket. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "ask.h"
#include "connection.h"

int connection_open(struct connection *c, const char *socket)
{
	const struct timeval patience = {.tv_sec = 5};

	c->fd = ask_connect(socket);
	if (c->fd < 0)
		return c->fd;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return 0;
}

void connection_close(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Extracts the value of {"/softhca/...": value}. */
static json_t *unwrap(const char *answer, const char *key)
{
	json_error_t error;
	json_t *whole = json_loads(answer, 0, &error), *value;

	if (!whole) {
		fprintf(stderr, "softhca: the answer is not JSON: %s\n", error.text);
		return NULL;
	}
	value = json_incref(json_object_get(whole, key));
	json_decref(whole);
	return value;
}

/* Receives the view as a NUL-terminated text. 0 or -errno. */
static int receive(struct connection *c, const char *name, const char *parameters)
{
	struct control_view in = {.version = CONTROL_VERSION};
	int n;

	if (snprintf(in.name, sizeof(in.name), "%s", name) >= (int)sizeof(in.name) ||
	    snprintf(in.parameters, sizeof(in.parameters), "%s", parameters) >=
		    (int)sizeof(in.parameters))
		return -ENAMETOOLONG;
	n = ask_text(c->fd, CONTROL_VIEW, &in, sizeof(in), c->answer, sizeof(c->answer) - 1);
	c->answer[n < 0 ? 0 : n] = '\0';
	if (n == -ENOTCONN ||
	    n == -ETIMEDOUT) /* a late answer must not pass for one to the next question */
		connection_close(c);
	return n < 0 ? n : 0;
}

void print_no_hca(const char *hca, int bytes)
{
	fprintf(stderr, "softhca: there is no HCA '%.*s'; 'softhca status' lists them\n", bytes,
		hca);
}

/* parameters: "HCA[,NUMBER...]" */
static void explain(const char *name, const char *parameters, int error)
{
	const char *comma = strchr(parameters, ',');
	int hca = (int)strcspn(parameters, ",");

	if (error == -ENOTCONN)
		fputs("softhca: the daemon has gone\n", stderr);
	else if (error == -ENODEV)
		print_no_hca(parameters, hca);
	else if (error == -ENOENT && comma)
		fprintf(stderr, "softhca: %.*s has no queue pair %s\n", hca, parameters, comma + 1);
	else
		fprintf(stderr, "softhca: the daemon does not answer %s%s%s: %s\n", name,
			parameters[0] ? " " : "", parameters, strerror(-error));
}

json_t *connection_try(struct connection *c, const char *name, const char *parameters, int expected)
{
	const char *which = parameters ? parameters : "";
	char key[64];
	json_t *value;

	if (c->fd < 0)
		return NULL; /* that has been printed */
	c->error = receive(c, name, which);
	if (c->error && c->error != expected)
		explain(name, which, c->error);
	if (c->error)
		return NULL;
	snprintf(key, sizeof(key), "/softhca/%s", name);
	value = unwrap(c->answer, key);
	if (!value)
		explain(name, which, -EPROTO);
	return value;
}

json_t *connection_ask(struct connection *c, const char *name, const char *parameters)
{
	return connection_try(c, name, parameters, 0);
}

json_t *connection_ask_pages(struct connection *c, const char *command, const char *before,
			     const char *list)
{
	json_int_t next = 0, from;
	json_t *all = NULL, *page;
	char parameters[96];

	do {
		from = next;
		snprintf(parameters, sizeof(parameters), "%s%lld", before, (long long)from);
		page = connection_ask(c, command, parameters);
		next = json_integer_value(json_object_get(page, "next"));
		json_object_del(page, "next");
		if (all) {
			json_object_update(json_object_get(all, list), json_object_get(page, list));
			json_decref(page);
		} else {
			all = page;
		}
	} while (next && next != from);
	return all;
}

bool connection_ask_into(struct connection *c, json_t *to, const char *command,
			 const char *parameters)
{
	json_t *answer = connection_ask(c, command, parameters);

	return answer && json_object_set_new(to, parameters, answer) == 0;
}

json_t *engines_ask(struct engines *e, struct connection *c, const char *command)
{
	json_t *answer;

	if (engines_done(e))
		return NULL;
	snprintf(e->key, sizeof(e->key), "%s,%u", e->hca, e->next);
	answer = connection_ask(c, command, e->key);
	if (!answer)
		return NULL;
	e->next++;
	e->count = json_integer_value(json_object_get(answer, "engines"));
	if (e->count < e->next)
		e->count = e->next;
	return answer;
}

bool engines_ask_into(struct connection *c, json_t *to, const char *command, const char *hca)
{
	struct engines e = {.hca = hca};
	json_t *answer;

	while ((answer = engines_ask(&e, c, command)))
		json_object_set_new(to, e.key, answer);
	return engines_done(&e);
}

void engines_ask_again(struct connection *c, json_t *answers, const char *command)
{
	json_t *before, *answer;
	const char *key;

	json_object_foreach(answers, key, before)
	{
		answer = connection_ask(c, command, key);
		if (!answer)
			return;
		json_decref(answer);
	}
}
