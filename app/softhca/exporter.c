/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca exporter`: answers GET /metrics. libmicrohttpd's one thread queries the daemon anew for each request, so
 * the exporter outlives restarts of the daemon; the main thread waits for a signal.
 */
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "metrics.h"

enum { CONNECTIONS_MAX = 16, PATIENCE_S = 10, HOST_BYTES = 256 };

#define LISTEN_USUAL "127.0.0.1:9315"

static const char front_page[] =
	"<html><title>softhca</title><a href=\"/metrics\">metrics</a></html>\n";

/* Queues an answer; `text` is freed if `own`. */
static enum MHD_Result answer(struct MHD_Connection *to, unsigned int status, const char *type,
			      char *text, size_t bytes, bool own)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		bytes, text, own ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response) {
		if (own)
			free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(to, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_words(struct MHD_Connection *to, unsigned int status,
				    const char *type, const char *words)
{
	return answer(to, status, type, (char *)words, strlen(words), false);
}

static enum MHD_Result answer_metrics(struct MHD_Connection *to, const struct request *r)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return MHD_NO;
	metrics_print(out, r);
	if (fclose(out)) {
		free(text);
		return MHD_NO;
	}
	return answer(to, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, bytes,
		      true);
}

static enum MHD_Result handle(void *request, struct MHD_Connection *to, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_words(to, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", "GET only\n");
	if (strcmp(url, "/metrics") == 0)
		return answer_metrics(to, request);
	if (strcmp(url, "/") == 0)
		return answer_words(to, MHD_HTTP_OK, "text/html", front_page);
	return answer_words(to, MHD_HTTP_NOT_FOUND, "text/plain", "there is only /metrics\n");
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

/* The port that it has if 0 was asked for. */
static unsigned port_of(struct MHD_Daemon *server)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(server, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}

static int serve(const struct addrinfo *at, const char *listen, const struct request *r)
{
	const int v6 = at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0;
	struct MHD_Daemon *server;
	sigset_t signals;
	int got;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	errno = 0;
	server = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | v6, 0, NULL, NULL, handle,
				  (void *)r, MHD_OPTION_SOCK_ADDR, at->ai_addr,
				  MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
				  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)PATIENCE_S,
				  MHD_OPTION_END);
	if (!server) {
		fprintf(stderr, "softhca: cannot listen at %s: %s\n", listen, strerror(errno));
		return EXIT_CODE_FAILURE;
	}
	printf("softhca: http://%.*s:%u/metrics\n", (int)(strrchr(listen, ':') - listen), listen,
	       port_of(server));
	fflush(stdout);
	sigwait(&signals, &got);
	MHD_stop_daemon(server);
	return EXIT_CODE_OK;
}

int view_exporter(struct connection *c, const struct request *r)
{
	const char *listen = r->listen ? r->listen : LISTEN_USUAL;
	struct addrinfo *at;
	int code = parse_address(listen, &at);

	if (code) {
		fprintf(stderr, "softhca: not an address and port, as in " LISTEN_USUAL ": %s\n",
			listen);
		return EXIT_CODE_USAGE;
	}
	code = serve(at, listen, r);
	freeaddrinfo(at);
	return code;
}
