/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTTP_H
#define HTTP_H
/*
 * The HTTP server of `softhca exporter` and `softhca web`. It answers GET and HEAD, at one address,
 * in one thread; the main thread waits for a signal. The number of connections and their idle time
 * are limited. Before the server accepts the first one, it drops all privileges but that of
 * connecting to the daemon's socket.
 */
#include <stdbool.h>
#include <stddef.h>
#include "view.h"

enum http_status {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_UNAUTHORIZED = 401,
	HTTP_FORBIDDEN = 403,
	HTTP_NOT_FOUND = 404,
	HTTP_METHOD_NOT_ALLOWED = 405,
	HTTP_UNAVAILABLE = 503,
};

struct MHD_Connection;

/* A request for a path, "/" and so on, valid until it is answered. */
struct http_get {
	const struct request *request; /* the command line's */
	const char *path;
	struct MHD_Connection *connection;
};

/* Its header or its argument ("?name=value") of that name; NULL: none. */
const char *http_header(const struct http_get *get, const char *name);
const char *http_argument(const struct http_get *get, const char *name);

struct http_reply {
	enum http_status status;
	const char *type; /* of the content; constant */
	char *text;
	size_t bytes;
	bool owned; /* `text` is freed once it is sent; else it stays */
};

/* A reply of constant words. */
struct http_reply http_words(enum http_status status, const char *type, const char *words);

struct http_field {
	const char *name, *value; /* both NULL: the end */
};

struct http_server {
	const char *usual; /* address and port if the command line names none */
	/* Follows the address that is printed for the user once the server listens. */
	const char *path;
	/* Sent with every reply. */
	const struct http_field *fields;
	/* Runs in the server's thread. A reply without `text` closes the connection. */
	struct http_reply (*get)(const struct http_get *get);
};

/* Serves until a signal ends it. Exit code. */
int http_serve(const struct http_server *server, const struct request *r);

#endif
