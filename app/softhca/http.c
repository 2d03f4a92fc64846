/* SPDX-License-Identifier: BSD-3-Clause */
/* See http.h. On libmicrohttpd. */
#include <errno.h>
#include <linux/capability.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "http.h"

enum { CONNECTIONS_MAX = 16, PATIENCE_S = 10, HOST_BYTES = 256 };

/* What the server's thread is handed. */
struct serving {
	const struct http_server *server;
	const struct request *request;
};

const char *http_header(const struct http_get *get, const char *name)
{
	return MHD_lookup_connection_value(get->connection, MHD_HEADER_KIND, name);
}

const char *http_argument(const struct http_get *get, const char *name)
{
	return MHD_lookup_connection_value(get->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct http_reply http_words(enum http_status status, const char *type, const char *words)
{
	return (struct http_reply){status, type, (char *)words, strlen(words), false};
}

static enum MHD_Result http_answer(struct MHD_Connection *to, const struct http_server *server,
				   const struct http_reply *r)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		r->bytes, r->text, r->owned ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response) {
		if (r->owned)
			free(r->text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
	for (const struct http_field *f = server->fields; f && f->name; f++)
		MHD_add_response_header(response, f->name, f->value);
	if (r->status == HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (r->status == HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	result = MHD_queue_response(to, r->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *to, const char *path,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	const struct serving *s = context;
	const struct http_get get = {s->request, path, to};
	struct http_reply reply;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		reply = http_words(HTTP_METHOD_NOT_ALLOWED, "text/plain", "GET only\n");
	else
		reply = s->server->get(&get);
	return reply.text ? http_answer(to, s->server, &reply) : MHD_NO;
}

/* Reads "ADDR:PORT", "[ADDR]:PORT" or ":PORT". 0, or the error for gai_strerror(). */
static int parse_address(const char *text, struct addrinfo **found)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				       .ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	char host[HOST_BYTES];

	if (!colon || !colon[1] || length >= sizeof(host))
		return EAI_NONAME;
	if (length > 1 && text[0] == '[' && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	memcpy(host, text, length);
	host[length] = '\0';
	return getaddrinfo(length ? host : NULL, colon + 1, &hints, found);
}

/* A socket that listens there, or -errno. */
static int open_listener(const struct addrinfo *at)
{
	const int on = 1;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, CONNECTIONS_MAX) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

/* The port that it has if 0 was asked for. */
static unsigned port_of(int listener)
{
	struct sockaddr_in6 at = {.sin6_port = 0}; /* sin_port is at the same place */
	socklen_t bytes = sizeof(at);

	getsockname(listener, (struct sockaddr *)&at, &bytes);
	return ntohs(at.sin6_port);
}

/* Root keeps the capability to connect to a socket in another user's folder. */
static void drop_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capget, &header, data))
		return;
	data[0].permitted &= geteuid() == 0 ? 1u << CAP_DAC_OVERRIDE : 0;
	data[1].permitted = 0;
	for (unsigned i = 0; i < 2; i++) {
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
}

/* Owns the listener. */
static int serve(int listener, const char *where, const struct http_server *server,
		 const struct request *r)
{
	struct serving serving = {server, r};
	struct MHD_Daemon *daemon;
	int got, host_bytes;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	drop_privileges();
	daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handle, &serving,
				  MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
				  (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
				  (unsigned)PATIENCE_S, MHD_OPTION_END);
	if (!daemon) {
		close(listener);
		return failed("cannot serve", where);
	}
	host_bytes = strrchr(where, ':') - where;
	printf("softhca: http://%.*s:%u%s\n", host_bytes ? host_bytes : -1,
	       host_bytes ? where : "localhost", port_of(listener), server->path);
	fflush(stdout);
	sigwait(&signals, &got);
	MHD_stop_daemon(daemon); /* closes the listener */
	return EXIT_CODE_OK;
}

int http_serve(const struct http_server *server, const struct request *r)
{
	const char *where = r->listen ? r->listen : server->usual;
	struct addrinfo *at;
	int listener;

	if (parse_address(where, &at)) {
		fprintf(stderr, "softhca: not an address and port, as in %s: %s\n", server->usual,
			where);
		return EXIT_CODE_USAGE;
	}
	listener = open_listener(at);
	freeaddrinfo(at);
	if (listener < 0) {
		fprintf(stderr, "softhca: cannot listen at %s: %s\n", where, strerror(-listener));
		return EXIT_CODE_FAILURE;
	}
	return serve(listener, where, server, r);
}
