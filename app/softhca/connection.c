/* SPDX-License-Identifier: BSD-3-Clause */
/* Speaks DPDK's telemetry protocol, version 2. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "connection.h"

static int receive(struct connection *c)
{
	ssize_t got = recv(c->fd, c->answer, sizeof(c->answer) - 1, 0);

	if (got <= 0)
		return got < 0 ? -errno : -ECONNRESET;
	c->answer[got] = '\0';
	return 0;
}

/* An ordinary user accepts only answers of root and of his own daemon: another user may have
 * prepared that path. Root accepts any. */
static bool is_trusted(int fd)
{
	struct ucred who = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes))
		return false;
	return geteuid() == 0 || who.uid == 0 || who.uid == geteuid();
}

int connection_open(struct connection *c, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = 5};
	int ret;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ret = connect(c->fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
	if (!ret && !is_trusted(c->fd))
		ret = -EPERM;
	if (!ret)
		ret = receive(c); /* the greeting: version, process, longest answer */
	if (ret)
		connection_close(c);
	return ret;
}

void connection_close(struct connection *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Extracts the value of {"/softhca/...": value}; null: the daemon refused. */
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

json_t *connection_ask(struct connection *c, const char *command, const char *parameters)
{
	char key[64], request[256];
	json_t *value;
	int ret = 0;

	snprintf(key, sizeof(key), "/softhca/%s", command);
	snprintf(request, sizeof(request), "%s%s%s", key, parameters && *parameters ? "," : "",
		 parameters ? parameters : "");
	if (send(c->fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		ret = -errno;
	if (!ret)
		ret = receive(c);
	if (ret) {
		fprintf(stderr, "softhca: %s: %s\n", key, strerror(-ret));
		return NULL;
	}
	value = unwrap(c->answer, key);
	if (value && !json_is_null(value))
		return value;
	json_decref(value);
	fprintf(stderr, "softhca: the daemon does not answer %s\n", request);
	return NULL;
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
