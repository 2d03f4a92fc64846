/* SPDX-License-Identifier: BSD-3-Clause */
/* See target.h. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ask.h"
#include "target.h"

int target_connect(const struct request *r, struct connection *c)
{
	return connection_open(c, r->socket);
}

int failed(const char *what, const char *why)
{
	fprintf(stderr, "softhca: %s: %s\n", what, why);
	return EXIT_CODE_FAILURE;
}

/* There is a socket, whose owner does not let this user connect. */
static void print_denied(const char *program, const char *path)
{
	const struct group *group = NULL;
	struct stat st;

	fprintf(stderr, "%s: you may not connect to %s (EACCES)", program, path);
	if (stat(path, &st) == 0 && (st.st_mode & S_IWGRP))
		group = getgrgid(st.st_gid);
	if (group)
		fprintf(stderr, ": members of the group '%s' may", group->gr_name);
	fputs("; the daemon's socket_mode and socket_group say who\n", stderr);
}

void target_explain(const char *program, const char *socket, int error)
{
	char path[ASK_PATH_BYTES];

	if (ask_socket_path(socket, path))
		path[0] = '\0';
	if (error == -EACCES)
		print_denied(program, path);
	else if (error == -EPERM)
		fprintf(stderr,
			"%s: who listens at %s is not to be trusted: it is neither root, nor you, "
			"nor "
			"the owner of that folder\n",
			program, path);
	else
		fprintf(stderr, "%s: no daemon answers at %s: %s\n", program, path,
			strerror(-error));
}

int target_missing(const struct request *r, int error)
{
	target_explain("softhca", r->socket, error);
	return EXIT_CODE_FAILURE;
}

int changed(const char *what, const char *not_allowed, int ret,
	    const struct control_change_reply *reply)
{
	if (ret == -EPERM) {
		fprintf(stderr, "softhca: %s\n", not_allowed);
		return EXIT_CODE_FAILURE;
	}
	if (ret == -ENOTCONN)
		return failed(what,
			      "the connection ended before the daemon answered: its log says why; "
			      "'softhca status' shows what is there now");
	if (ret)
		return failed(what, strerror(-ret));
	fprintf(reply->error ? stderr : stdout, "%s%.*s\n", reply->error ? "softhca: " : "",
		(int)sizeof(reply->text), reply->text);
	return reply->error ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

int ask_change(const struct request *r, enum control_type type, const void *in, uint32_t bytes,
	       const char *what, const char *not_allowed)
{
	int daemon = ask_connect(r->socket), ret;
	struct control_change_reply out = {0};

	if (daemon < 0)
		return target_missing(r, daemon);
	ret = ask(daemon, type, in, bytes, &out, sizeof(out), -1, NULL);
	close(daemon);
	return changed(what, not_allowed, ret, &out);
}
