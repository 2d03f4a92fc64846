/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `softhca exporter`: GET /metrics. It queries the daemon anew for each request, and so outlives
 * restarts of the daemon.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "http.h"
#include "metrics.h"

static const char front_page[] =
	"<html><title>softhca</title><a href=\"/metrics\">metrics</a></html>\n";

static struct http_reply answer_metrics(const struct request *r)
{
	struct http_reply reply = {.status = HTTP_OK,
				   .type = "text/plain; version=0.0.4; charset=utf-8",
				   .owned = true};
	FILE *out = open_memstream(&reply.text, &reply.bytes);

	if (!out)
		return reply;
	metrics_print(out, r);
	if (fclose(out)) {
		free(reply.text);
		reply.text = NULL;
	}
	return reply;
}

static struct http_reply get_metrics(const struct http_get *get)
{
	if (strcmp(get->path, "/metrics") == 0)
		return answer_metrics(get->request);
	if (strcmp(get->path, "/") == 0)
		return http_words(HTTP_OK, "text/html", front_page);
	return http_words(HTTP_NOT_FOUND, "text/plain", "there is only /metrics\n");
}

int view_exporter(struct connection *c, const struct request *r)
{
	static const struct http_server server = {
		.usual = "127.0.0.1:9315", .path = "/metrics", .get = get_metrics};

	return http_serve(&server, r);
}
